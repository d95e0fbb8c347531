package view

import (
	"fmt"
	"image"
	"math"
	"slices"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
)

// view3D is the cloud view being drawn: the canvas over its rectangle and the lens it is seen through.
type view3D struct {
	c   *canvas
	l   *lens
	p   *Painter
	box image.Rectangle // pixels the target covers
}

// cloudView draws cloud and target into img, or with a nil img into depths only. The caller gives v.c.z back.
func (p *Painter) cloudView(sn *stage.Snapshot, img *image.RGBA) view3D {
	ly := p.layer(sn)
	r := Layout.Cloud
	z := p.getCells(r.Dx() * r.Dy())
	copy(z, ly.cells)
	c := &canvas{w: r.Dx(), h: r.Dy(), z: z}
	if img != nil {
		c = canvasOn(img, r, z)
	}
	for y := range c.h {
		if img == nil {
			break
		}
		copy(c.pix[y*c.stride:y*c.stride+4*c.w], ly.pix[y*4*c.w:(y+1)*4*c.w])
	}
	v := view3D{c: c, l: &ly.lens, p: p}
	v.box = v.target(sn)
	return v
}

// targetLook is the solid blue gripper; stripes and an amber outline say that it cannot be reached.
func targetLook(sn *stage.Snapshot) look {
	k := look{base: targetBlue, edge: targetBlueEdge, tag: tagTarget, ghost: .3}
	for i := range k.slack {
		k.slack[i] = .002
	}
	// Points of the real gripper lie on the surfaces of a target that rests on it.
	k.slack[tagRobot&7] = .015
	if unreachable(sn) {
		k.edge, k.hatch, k.hatched = warn, warn, .75
	}
	return k
}

func unreachable(sn *stage.Snapshot) bool { return sn.Check.Staged && !sn.Check.Reachable }

// touches are the places where a way that is clear may touch something.
func touches(sn *stage.Snapshot) []r3.Vec {
	if !sn.Check.Staged || !sn.Check.Clear {
		return nil
	}
	return sn.Check.Touch
}

func blocked(sn *stage.Snapshot) bool {
	return sn.Check.Staged && sn.Check.Reachable && !sn.Check.Clear
}

func (v view3D) target(sn *stage.Snapshot) image.Rectangle {
	if !sn.Target.Pose.Finite() {
		return image.Rectangle{}
	}
	return drawSolid(v.c, v.l, v.p.gripper(v.p.aperture(sn)), sn.Target.Pose, targetLook(sn), &v.p.solids)
}

// axes draws the robot frame at its origin.
func (v view3D) axes() {
	const n = .15
	for _, a := range robotAxes {
		v.arrow3(r3.Vec{}, r3.Scale(n, a.dir), ink{col: a.col, width: 3, halo: 1, hidden: .3}, 13)
		o, ok := v.l.project(r3.Vec{})
		s, ok2 := v.l.project(r3.Scale(n, a.dir))
		if ok && ok2 {
			d := r3.Vec{X: s.X - o.X, Y: s.Y - o.Y}
			if l := r3.Norm(d); l > 1 {
				d = r3.Scale(20/l, d)
			}
			v.label(r3.Add(s, d), a.name, a.col)
		}
	}
}

var robotAxes = [3]struct {
	name string
	dir  r3.Vec
	col  rgb
}{{"X", r3.Vec{X: 1}, axisX}, {"Y", r3.Vec{Y: 1}, axisY}, {"Z", r3.Vec{Z: 1}, axisZ}}

// arrow3 draws a line in space with a head of n pixels at b.
func (v view3D) arrow3(a, b r3.Vec, k ink, n float64) {
	segment3(v.c, v.l, a, b, k)
	la, lb, ok := clip(v.l.local(a), v.l.local(b))
	if !ok {
		return
	}
	sa, sb := v.l.screen(la), v.l.screen(lb)
	dx, dy := sb.X-sa.X, sb.Y-sa.Y
	if l := math.Hypot(dx, dy); l > 1 {
		tip := r3.Vec{X: sb.X + dx/l*n*.6, Y: sb.Y + dy/l*n*.6, Z: sb.Z}
		v.c.arrowhead(tip, dx, dy, n, k.col)
	}
}

// label centres a word with a light rim on a place of the view.
func (v view3D) label(s r3.Vec, word string, col rgb) {
	f := v.p.faces.bold
	v.c.text(f, int(s.X)-f.width(word)/2, int(s.Y)-f.height/2, word, col, true)
}

// plate is words on a light plate with a coloured rim.
type plate struct {
	r   image.Rectangle
	f   *face
	s   string
	col rgb
}

// plateAt has its left middle at x, y, kept inside the canvas.
func plateAt(c *canvas, f *face, x, y int, s string, col rgb) plate {
	w, h := f.width(s)+14, f.height+6
	x = max(4, min(x, c.w-w-4))
	y = max(4, min(y-h/2, c.h-h-4))
	return plate{image.Rect(x, y, x+w, y+h), f, s, col}
}

func (p plate) draw(c *canvas) {
	x, y := p.r.Min.X, p.r.Min.Y
	c.chip(float64(x-1), float64(y-1), float64(p.r.Max.X+1), float64(p.r.Max.Y+1), 6, p.col, 1)
	c.chip(float64(x)+.5, float64(y)+.5, float64(p.r.Max.X)-.5, float64(p.r.Max.Y)-.5, 5, 0xFFFFFF, .94)
	c.text(p.f, x+7, y+3, p.s, inkDark, false)
}

// note draws a plate.
func note(c *canvas, f *face, x, y int, s string, col rgb) { plateAt(c, f, x, y, s, col).draw(c) }

// triadCentre and triadRadius place the little axes in the view's corner.
const (
	triadX, triadY = 58, 742
	triadRadius    = 46
)

// triad draws the directions of the robot axes in the corner, whatever the viewport looks at.
func (v view3D) triad() {
	mid := r3.Vec{X: triadX, Y: triadY}
	v.c.disc(mid, triadRadius, 0, 0xFFFFFF, .92)
	v.c.disc(mid, triadRadius, 1.2, rule, 1)
	axes := robotAxes
	slices.SortStableFunc(axes[:], func(a, b struct {
		name string
		dir  r3.Vec
		col  rgb
	},
	) int {
		if d := r3.Dot(b.dir, v.l.fwd) - r3.Dot(a.dir, v.l.fwd); d < 0 {
			return -1
		}
		return 1
	})
	for _, a := range axes {
		dx, dy := r3.Dot(a.dir, v.l.right), r3.Dot(a.dir, v.l.down)
		end := r3.Vec{X: mid.X + 25*dx, Y: mid.Y + 25*dy}
		v.c.line(mid, end, ink{col: a.col, width: 2.5})
		if math.Hypot(dx, dy) > .25 {
			l := math.Hypot(dx, dy)
			v.c.arrowhead(r3.Vec{X: end.X + 3*dx/l, Y: end.Y + 3*dy/l}, dx, dy, 8, a.col)
		}
		v.label(r3.Vec{X: mid.X + 36*dx, Y: mid.Y + 36*dy}, a.name, a.col)
	}
}

// way draws the path from the real closure point to the target's: green and plain when it can be driven, else
// broken, with a marker and words where it is blocked.
func (v view3D) way(sn *stage.Snapshot) {
	k := sn.Check
	if !k.Staged || sn.Real.Pose.Dist(sn.Target.Pose) < .004 {
		v.verdict(sn)
		return
	}
	path := wayPoints(sn)
	line := ink{col: good, width: 3.5, halo: 1.2, hidden: .45}
	switch {
	case !k.Reachable:
		line.col, line.dash = warn, 7
	case !k.Clear:
		line.col, line.dash = bad, 12
	}
	polyline3(v.c, v.l, path, line)
	if s, ok := v.l.project(sn.Real.Pose.P); ok {
		v.c.disc(r3.Vec{X: s.X, Y: s.Y}, 5, 0, 0xFFFFFF, 1)
		v.c.disc(r3.Vec{X: s.X, Y: s.Y}, 4, 2, line.col, 1)
	}
	v.verdict(sn)
}

// wayPoints is the closure point's path: that of the plan, or the straight line when there is none.
func wayPoints(sn *stage.Snapshot) []r3.Vec {
	if pl := sn.Check.Plan; pl != nil && len(pl.Sweep) > 1 {
		ps := make([]r3.Vec, 0, len(pl.Sweep))
		for _, s := range pl.Sweep {
			ps = append(ps, s.Tool.P)
		}
		return ps
	}
	return []r3.Vec{sn.Real.Pose.P, sn.Target.Pose.P}
}

// verdict puts the marker where the way is blocked and the words beside the target.
func (v view3D) verdict(sn *stage.Snapshot) {
	if blocked(sn) && sn.Check.HasHit {
		if s, ok := v.l.project(sn.Check.Hit); ok && v.l.inside(s.X, s.Y) {
			v.c.warnSign(s.X, s.Y, 13, bad)
		}
	}
	for _, q := range touches(sn) {
		if s, ok := v.l.project(q); ok && v.l.inside(s.X, s.Y) {
			v.c.warnSign(s.X, s.Y, 11, warn)
		}
	}
	if s, ok := v.near(sn); ok {
		v.c.disc(r3.Vec{X: s.X, Y: s.Y}, 7, 4.5, 0xFFFFFF, .9)
		v.c.disc(r3.Vec{X: s.X, Y: s.Y}, 7, 2.5, warn, 1)
	}
	for _, p := range v.verdictPlates(sn) {
		p.draw(v.c)
	}
}

// near is where the nearest reachable pose is seen, when there is one to show.
func (v view3D) near(sn *stage.Snapshot) (r3.Vec, bool) {
	n := sn.Check.Near
	if !unreachable(sn) || n == nil || !n.Near.Finite() || n.Near.Dist(sn.Target.Pose) <= .01 {
		return r3.Vec{}, false
	}
	s, ok := v.l.project(n.Near.P)
	return s, ok && v.l.inside(s.X, s.Y)
}

// verdictPlates are the words of the verdict. Picking asks for them too: they stand over the scene.
func (v view3D) verdictPlates(sn *stage.Snapshot) []plate {
	var ps []plate
	if blocked(sn) && sn.Check.HasHit {
		if s, ok := v.l.project(sn.Check.Hit); ok && v.l.inside(s.X, s.Y) {
			ps = append(ps, plateAt(v.c, v.p.faces.bold, int(s.X)+20, int(s.Y), "way blocked here", bad))
		}
	}
	for _, q := range touches(sn) {
		if s, ok := v.l.project(q); ok && v.l.inside(s.X, s.Y) {
			ps = append(ps, plateAt(v.c, v.p.faces.text, int(s.X)+18, int(s.Y), "may touch here", warn))
			break // one word for all marks
		}
	}
	if s, ok := v.near(sn); ok {
		ps = append(ps, plateAt(v.c, v.p.faces.text, int(s.X)+14, int(s.Y)+16, "nearest reachable", warn))
	}
	switch {
	case v.box.Empty():
	case unreachable(sn):
		ps = append(ps, v.overTarget("target not reachable", warn))
	case blocked(sn) && !sn.Check.HasHit && sn.Check.Refused != nil:
		ps = append(ps, v.overTarget("refused: "+sn.Check.Refused.Rule, bad))
	}
	return ps
}

// overTarget is words above what is seen of the target.
func (v view3D) overTarget(words string, col rgb) plate {
	x := (v.box.Min.X+v.box.Max.X)/2 - v.p.faces.bold.width(words)/2 - 7
	return plateAt(v.c, v.p.faces.bold, x, v.box.Min.Y-16, words, col)
}

// warnSign is a triangle with an exclamation mark.
func (c *canvas) warnSign(x, y, r float64, col rgb) {
	tri := func(r float64) []r3.Vec {
		return []r3.Vec{{X: x, Y: y - r}, {X: x + r*.95, Y: y + r*.7}, {X: x - r*.95, Y: y + r*.7}}
	}
	c.convex(tri(r+3), 0xFFFFFF, 1)
	c.convex(tri(r), col, 1)
	c.line(r3.Vec{X: x, Y: y - r*.35}, r3.Vec{X: x, Y: y + r*.18}, ink{col: 0xFFFFFF, width: math.Max(1.6, r*.17)})
	c.disc(r3.Vec{X: x, Y: y + r*.45}, math.Max(.9, r*.1), 0, 0xFFFFFF, 1)
}

// okSign is a disc with a tick.
func (c *canvas) okSign(x, y, r float64, col rgb) {
	c.disc(r3.Vec{X: x, Y: y}, r, 0, col, 1)
	k := ink{col: 0xFFFFFF, width: math.Max(1.6, r*.25)}
	c.polyline([]r3.Vec{{X: x - r*.45, Y: y + r*.02}, {X: x - r*.1, Y: y + r*.38}, {X: x + r*.5, Y: y - r*.35}}, k)
}

// approachAxis draws the line the fingers reach along, from the closure point on, with a tick every centimetre.
func (v view3D) approachAxis(g geom.Pose) {
	const n = axisLength
	a := g.X()
	v.arrow3(g.P, r3.Add(g.P, r3.Scale(n*.01, a)), ink{col: 0xFFFFFF, width: 6.5, hidden: .3}, 15)
	v.arrow3(g.P, r3.Add(g.P, r3.Scale(n*.01, a)), ink{col: approachInk, width: 3, hidden: .35}, 15)
	for i := 1; i < n; i++ {
		p := r3.Add(g.P, r3.Scale(float64(i)*.01, a))
		side := r3.Cross(a, r3.Sub(p, v.l.pos))
		if r3.Norm(side) < 1e-6 {
			continue
		}
		reach := .004
		if i%5 == 0 {
			reach = .008
		}
		side = r3.Scale(reach, r3.Unit(side))
		segment3(v.c, v.l, r3.Sub(p, side), r3.Add(p, side), ink{col: approachInk, width: 2, halo: .8, hidden: .35})
		if s, ok := v.l.project(r3.Add(p, r3.Scale(2.2, side))); ok && i%5 == 0 {
			v.c.text(v.p.faces.small, int(s.X)-6, int(s.Y)-7, fmt.Sprintf("%d", i), approachInk, true)
		}
	}
	v.c.closure(v.l, g.P, approachInk)
	if s, ok := v.l.project(r3.Add(g.P, r3.Scale(axisName, a))); ok && v.l.inside(s.X, s.Y) {
		note(v.c, v.p.faces.body, int(s.X)+axisNameAside, int(s.Y), "approach (f), ticks 1 cm", approachInk)
	}
}

// The approach axis in centimetres, and where its name stands: metres along it, then pixels to the right.
const (
	axisLength    = 15
	axisName      = axisLength*.01 + .02
	axisNameAside = 14
)

// approachInk is the colour of the approach axis: dark magenta, found nowhere else in the picture.
const approachInk rgb = 0xA1006B

// closure marks a closure point with a small disc.
func (c *canvas) closure(l *lens, p r3.Vec, col rgb) {
	if s, ok := l.project(p); ok {
		c.disc(r3.Vec{X: s.X, Y: s.Y}, 5, 0, 0xFFFFFF, 1)
		c.disc(r3.Vec{X: s.X, Y: s.Y}, 3.6, 0, col, 1)
	}
}
