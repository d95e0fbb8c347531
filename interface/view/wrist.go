package view

import (
	"image"
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/interface/stage"
)

const (
	padThickness = .012 // metres; a closed glyph's ticks are drawn this far apart
	tickHalf     = .013 // half a tick's length in metres
)

// Wrist draws the wrist view in the camera's own shape, at most 960 wide: the picture with the target as a red
// |----.----| glyph that hides nothing. Ticks are the fingertips, the dot is the closure point.
func (p *Painter) Wrist(sn *stage.Snapshot, ov Overlay) *image.RGBA {
	cam := camera(sn, p.o.Wrist)
	if cam == nil || cam.Frame.Info.Intrinsics.W <= 0 || cam.Frame.Info.Intrinsics.H <= 0 {
		img := image.NewRGBA(image.Rect(0, 0, 640, 480))
		p.noPicture(canvasOn(img, img.Bounds(), nil), "no picture from the "+p.o.Wrist+" camera yet")
		return img
	}
	w, h := WristSize(cam.Frame.Info.Intrinsics.W, cam.Frame.Info.Intrinsics.H)
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	c := canvasOn(img, img.Bounds(), nil)
	if !p.backdrop(c, cam) {
		p.noPicture(c, "the "+p.o.Wrist+" camera sends no colour")
		return img
	}
	l := cameraLens(cam.Pose, cam.Frame.Info.Intrinsics, w, h)
	if ov.X != nil {
		p.bigX(c, &l, *ov.X)
	}
	if sn.Target.Pose.Finite() {
		p.glyph(c, &l, sn)
		p.offView(c, &l, sn.Target.Pose.P)
	}
	p.banner(c, sn)
	if ov.Crosshair != nil {
		p.crosshair(c, *ov.Crosshair)
	}
	return img
}

// WristSize is the size of the wrist view for a camera of w by h pixels.
func WristSize(w, h int) (int, int) {
	if w <= WristMaxWidth {
		return w, h
	}
	return WristMaxWidth, max(1, (h*WristMaxWidth+w/2)/w)
}

// glyph draws |----.----|: every end is where the target's own point projects.
func (p *Painter) glyph(c *canvas, l *lens, sn *stage.Snapshot) {
	g := sn.Target.Pose
	half := math.Max(p.aperture(sn), padThickness) / 2
	at := func(y, z float64) r3.Vec { return g.Point(r3.Vec{Y: y, Z: z}) }
	strokes := [][2]r3.Vec{
		{at(-half, 0), at(half, 0)},
		{at(half, -tickHalf), at(half, tickHalf)},
		{at(-half, -tickHalf), at(-half, tickHalf)},
	}
	for _, k := range []ink{{col: 0xFFFFFF, width: 7, alpha: .8}, {col: red, width: 3.6}} {
		for _, s := range strokes {
			segment3(c, l, s[0], s[1], k)
		}
	}
	if s, ok := l.project(g.P); ok {
		c.disc(r3.Vec{X: s.X, Y: s.Y}, 7, 0, 0xFFFFFF, .9)
		c.disc(r3.Vec{X: s.X, Y: s.Y}, 5.4, 0, red, 1)
	}
}

// bigX draws the light-blue X where the approach axis meets a surface.
func (p *Painter) bigX(c *canvas, l *lens, q r3.Vec) {
	s, ok := l.project(q)
	if !ok {
		return
	}
	const r = 13
	for _, k := range []ink{{col: 0x0B2A40, width: 8.5, alpha: .85}, {col: light, width: 4.6}} {
		for _, d := range [2]r3.Vec{{X: r, Y: r}, {X: r, Y: -r}} {
			flat := r3.Vec{X: s.X, Y: s.Y}
			c.line(r3.Sub(flat, d), r3.Add(flat, d), k)
		}
	}
}
