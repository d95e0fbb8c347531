package view

// Colours. Blue, bluish green, amber and vermilion stay apart for every common kind of colour vision; whatever
// they say is also said by a shape or by words.
const (
	inkDark  rgb = 0x1B2430 // text on light
	inkSoft  rgb = 0x5A6675 // lesser text on light
	inkLight rgb = 0xF4F7FA // text on dark
	paper    rgb = 0xF7F9FB // sidebar
	rule     rgb = 0xD5DCE4 // thin separators
	titleBar rgb = 0x27313D

	skyTop    rgb = 0xFCFDFE
	skyBottom rgb = 0xE8EDF3
	gridLine  rgb = 0xAEB9C6

	axisX rgb = 0xD62F2F
	axisY rgb = 0x1E9E4A
	axisZ rgb = 0x2356D8

	targetBlue     rgb = 0x2F7BFF
	targetBlueEdge rgb = 0x0A2C78
	targetRed      rgb = 0xF0322B
	targetRedEdge  rgb = 0x7A0A08
	realGray       rgb = 0x8A939E

	good  rgb = 0x008F68 // reachable, clear
	warn  rgb = 0xE69F00 // not reachable
	bad   rgb = 0xD55E00 // blocked
	mark  rgb = 0xE5007E // crosshair, salient point
	light rgb = 0x6FC8FF // the X
	red   rgb = 0xFF1E1E // dot and glyph
)
