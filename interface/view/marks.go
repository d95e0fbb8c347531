package view

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"
)

// crosshair marks exactly one pixel of a picture: the one that fractions (u, v) name.
func (p *Painter) crosshair(c *canvas, m Mark) {
	x, ok := Pixel(m.U, c.w)
	y, ok2 := Pixel(m.V, c.h)
	if !ok || !ok2 {
		return
	}
	s := r3.Vec{X: float64(x) + .5, Y: float64(y) + .5}
	for _, k := range []ink{{col: 0xFFFFFF, width: 4.4}, {col: 0x10151B, width: 1.8}} {
		for _, d := range [4]r3.Vec{{X: 1}, {X: -1}, {Y: 1}, {Y: -1}} {
			c.line(r3.Add(s, r3.Scale(7, d)), r3.Add(s, r3.Scale(20, d)), k)
		}
	}
	c.disc(s, 4, 0, 0xFFFFFF, .95)
	c.disc(s, 2.6, 0, mark, 1)
	if m.Label != "" {
		note(c, p.faces.body, x+26, y-22, m.Label, mark)
	}
}

// drag draws both ends of a drag, the arrow between them, and a crosshair on its end.
func (p *Painter) drag(c *canvas, d Drag) {
	x1, ok1 := Pixel(d.U1, c.w)
	y1, ok2 := Pixel(d.V1, c.h)
	x2, ok3 := Pixel(d.U2, c.w)
	y2, ok4 := Pixel(d.V2, c.h)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return
	}
	a := r3.Vec{X: float64(x1) + .5, Y: float64(y1) + .5}
	b := r3.Vec{X: float64(x2) + .5, Y: float64(y2) + .5}
	if l := math.Hypot(b.X-a.X, b.Y-a.Y); l > 22 {
		dx, dy := (b.X-a.X)/l, (b.Y-a.Y)/l
		from, to := r3.Vec{X: a.X + 8*dx, Y: a.Y + 8*dy}, r3.Vec{X: b.X - 9*dx, Y: b.Y - 9*dy}
		c.line(from, r3.Vec{X: to.X - 9*dx, Y: to.Y - 9*dy}, ink{col: mark, width: 3, halo: 1.4, dash: 9})
		c.arrowhead(to, dx, dy, 14, mark)
	}
	c.disc(a, 9, 0, 0xFFFFFF, .9)
	c.disc(a, 7, 3, mark, 1)
	c.disc(a, 1.8, 0, mark, 1)
	c.text(p.faces.bold, x1-16, y1-28, "start", mark, true)
	c.text(p.faces.bold, x2+14, y2+6, "end", mark, true)
	p.crosshair(c, Mark{U: d.U2, V: d.V2})
}

// salient marks the point of the cloud that a teleport went to.
func (v view3D) salient(q r3.Vec) {
	s, ok := v.l.project(q)
	if !ok || !v.l.inside(s.X, s.Y) {
		return
	}
	flat := r3.Vec{X: s.X, Y: s.Y}
	hidden := v.c.hides(int(s.X), int(s.Y), s.Z-.006)
	v.c.disc(flat, 10, 5, 0xFFFFFF, .9)
	v.c.disc(flat, 10, 2.6, mark, 1)
	v.c.disc(flat, 3.4, 0, 0xFFFFFF, .9)
	v.c.disc(flat, 2.2, 0, mark, 1)
	words := "salient point"
	if hidden {
		words += " (behind)"
	}
	note(v.c, v.p.faces.body, int(s.X)+18, int(s.Y)+16, words, mark)
}
