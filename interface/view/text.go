package view

import (
	"fmt"
	"image"
	"math"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// runes beyond ASCII that the pictures use.
const extraRunes = "°±–—·…×→←↑↓≤≥µΔ"

// haloRadius is how far the light rim of a label reaches in pixels.
const haloRadius = 2

// glyph is one rasterised rune: coverage and, haloRadius wider all round, its rim.
type glyph struct {
	mask, halo []uint8
	w, h       int // of mask
	x, y       int // of the mask's corner from the pen on the baseline
	adv        int // pixels
}

// face is one font at one size. It is immutable.
type face struct {
	ascii  [128]*glyph
	extra  map[rune]*glyph
	height int // of a line in pixels
	ascent int
}

// faces are the fonts of all pictures.
type faces struct{ small, text, body, bold, title *face }

func loadFaces() (*faces, error) {
	regular, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("parse font: %w", err)
	}
	bold, err := opentype.Parse(gobold.TTF)
	if err != nil {
		return nil, fmt.Errorf("parse bold font: %w", err)
	}
	fs := &faces{}
	for _, f := range []struct {
		to   **face
		from *opentype.Font
		size float64
	}{{&fs.small, regular, 12}, {&fs.text, regular, 13}, {&fs.body, regular, 14}, {&fs.bold, bold, 14}, {&fs.title, bold, 16}} {
		if *f.to, err = rasterise(f.from, f.size); err != nil {
			return nil, err
		}
	}
	return fs, nil
}

func rasterise(f *opentype.Font, px float64) (*face, error) {
	ff, err := opentype.NewFace(f, &opentype.FaceOptions{Size: px, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, fmt.Errorf("font at %g px: %w", px, err)
	}
	m := ff.Metrics()
	out := &face{extra: map[rune]*glyph{}, height: m.Height.Ceil(), ascent: m.Ascent.Ceil()}
	for r := rune(' '); r < 127; r++ {
		out.ascii[r] = rasteriseRune(ff, r)
	}
	for _, r := range extraRunes {
		if g := rasteriseRune(ff, r); g != nil {
			out.extra[r] = g
		}
	}
	return out, ff.Close()
}

func rasteriseRune(ff font.Face, r rune) *glyph {
	dr, mask, mp, adv, ok := ff.Glyph(fixed.Point26_6{}, r)
	if !ok {
		return nil
	}
	g := &glyph{w: dr.Dx(), h: dr.Dy(), x: dr.Min.X, y: dr.Min.Y, adv: adv.Round()}
	g.mask = make([]uint8, g.w*g.h)
	alpha, ok := mask.(*image.Alpha)
	if !ok {
		return g
	}
	for y := range g.h {
		for x := range g.w {
			g.mask[y*g.w+x] = alpha.AlphaAt(mp.X+x, mp.Y+y).A
		}
	}
	g.halo = dilate(g.mask, g.w, g.h)
	return g
}

// dilate spreads coverage over a soft disc of haloRadius.
func dilate(mask []uint8, w, h int) []uint8 {
	const n = haloRadius
	hw, hh := w+2*n, h+2*n
	out := make([]uint8, hw*hh)
	for y := range h {
		for x := range w {
			v := float64(mask[y*w+x])
			if v == 0 {
				continue
			}
			for dy := -n; dy <= n; dy++ {
				for dx := -n; dx <= n; dx++ {
					k := math.Max(0, math.Min(1, haloRadius+.5-math.Hypot(float64(dx), float64(dy))))
					o := &out[(y+dy+n)*hw+x+dx+n]
					*o = max(*o, uint8(v*k))
				}
			}
		}
	}
	return out
}

func (f *face) glyph(r rune) *glyph {
	if r >= 0 && r < 128 {
		if g := f.ascii[r]; g != nil {
			return g
		}
	} else if g := f.extra[r]; g != nil {
		return g
	}
	return f.ascii['?']
}

// width is how many pixels wide a line of text is.
func (f *face) width(s string) int {
	n := 0
	for _, r := range s {
		n += f.glyph(r).adv
	}
	return n
}

// wrap breaks text into at most n lines of at most w pixels; what is left over ends in an ellipsis.
func (f *face) wrap(s string, w, n int) []string {
	var lines []string
	words := strings.Fields(s)
	for len(words) > 0 && len(lines) < n {
		k := 1
		for k < len(words) && f.width(strings.Join(words[:k+1], " ")) <= w {
			k++
		}
		line := strings.Join(words[:k], " ")
		words = words[k:]
		if len(lines) == n-1 && len(words) > 0 {
			line += " …"
		}
		lines = append(lines, f.cutTo(line, w))
	}
	return lines
}

// cutTo shortens a line to w pixels with an ellipsis.
func (f *face) cutTo(s string, w int) string {
	if f.width(s) <= w {
		return s
	}
	rs := []rune(strings.TrimSuffix(s, "…"))
	for len(rs) > 0 && f.width(string(rs)+"…") > w {
		rs = rs[:len(rs)-1]
	}
	return strings.TrimRight(string(rs), " ") + "…"
}

// text draws a line with its top-left corner at x, y; with halo it has a rim of that colour's opposite.
func (c *canvas) text(f *face, x, y int, s string, col rgb, halo bool) int {
	base := y + f.ascent
	if halo {
		rim := rgb(0xFFFFFF)
		if r, g, b := col.parts(); r*3+g*6+b > 255*7 {
			rim = 0x101418
		}
		pen := x
		for _, r := range s {
			g := f.glyph(r)
			c.stamp(g.halo, g.w+2*haloRadius, pen+g.x-haloRadius, base+g.y-haloRadius, rim, .9)
			pen += g.adv
		}
	}
	for _, r := range s {
		g := f.glyph(r)
		c.stamp(g.mask, g.w, x+g.x, base+g.y, col, 1)
		x += g.adv
	}
	return x
}

// stamp blends a coverage mask w pixels wide with its corner at x0, y0.
func (c *canvas) stamp(mask []uint8, w, x0, y0 int, col rgb, a float32) {
	if w == 0 {
		return
	}
	for i, m := range mask {
		if m == 0 {
			continue
		}
		if x, y := x0+i%w, y0+i/w; x >= 0 && y >= 0 && x < c.w && y < c.h {
			c.blend(x, y, col, a*float32(m)/255)
		}
	}
}
