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
	for _, q := range touches(sn) {
		if s, ok := l.project(q); ok && l.inside(s.X, s.Y) {
			c.warnSign(s.X, s.Y, 11, warn)
		}
	}
	p.banner(c, sn)
	p.seen(c, cam, sn)
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

// glyph draws |----.----|: its ends and its dot are where the target's fingertips and closure point project. So
// that a closed or distant gripper stays legible, ticks are drawn at least glyphGap pixels from the dot and
// glyphTick pixels to either side of the line.
func (p *Painter) glyph(c *canvas, l *lens, sn *stage.Snapshot) {
	const glyphGap, glyphTick = 12, 9
	g := sn.Target.Pose
	half := math.Max(p.aperture(sn), padThickness) / 2
	mid, ok := l.project(g.P)
	var strokes [][2]r3.Vec
	for _, side := range [2]float64{1, -1} {
		a, b := g.Point(r3.Vec{Y: side * half, Z: -tickHalf}), g.Point(r3.Vec{Y: side * half, Z: tickHalf})
		end := mix(a, b, .5)
		pa, ok1 := l.project(a)
		pb, ok2 := l.project(b)
		pe, ok3 := l.project(end)
		if !ok || !ok1 || !ok2 || !ok3 {
			if u, v, seen := clip(l.local(g.P), l.local(end)); seen {
				strokes = append(strokes, [2]r3.Vec{l.screen(u), l.screen(v)})
			}
			continue
		}
		at := atLeast(mid, pe, glyphGap)
		tick := atLeast(r3.Vec{}, r3.Vec{X: (pb.X - pa.X) / 2, Y: (pb.Y - pa.Y) / 2}, glyphTick)
		strokes = append(strokes, [2]r3.Vec{mid, at}, [2]r3.Vec{r3.Sub(at, tick), r3.Add(at, tick)})
	}
	for _, k := range []ink{{col: 0xFFFFFF, width: 7, alpha: .8}, {col: red, width: 3.6}} {
		for _, s := range strokes {
			c.line(r3.Vec{X: s[0].X, Y: s[0].Y}, r3.Vec{X: s[1].X, Y: s[1].Y}, k)
		}
	}
	if ok {
		c.disc(r3.Vec{X: mid.X, Y: mid.Y}, 6.4, 0, 0xFFFFFF, .9)
		c.disc(r3.Vec{X: mid.X, Y: mid.Y}, 5, 0, red, 1)
	}
}

// atLeast is b, pushed away from a on the picture until it is n pixels off.
func atLeast(a, b r3.Vec, n float64) r3.Vec {
	dx, dy := b.X-a.X, b.Y-a.Y
	l := math.Hypot(dx, dy)
	if l >= n || l < 1e-9 {
		return b
	}
	return r3.Vec{X: a.X + dx*n/l, Y: a.Y + dy*n/l}
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
