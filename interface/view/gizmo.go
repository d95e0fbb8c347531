package view

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// ring is one of the three turns of gripper_rotate: right-handed about axis, counted from e1 towards e2.
type ring struct {
	name         string
	axis, e1, e2 r3.Vec
	col          rgb
}

// gizmoRings are the turns about the gizmo axes of a tool pose: z_g = -approach, y_g = opening, x_g = y_g x z_g.
func gizmoRings(g geom.Pose) [3]ring {
	z, y := r3.Scale(-1, g.X()), g.Y()
	x := r3.Cross(y, z)
	return [3]ring{
		{"x", x, y, z, axisX},
		{"y", y, z, x, axisY},
		{"z", z, x, y, axisZ},
	}
}

// at is the point of the ring at angle t radians about centre c.
func (r ring) at(c r3.Vec, radius, t float64) r3.Vec {
	s, k := math.Sincos(t)
	return r3.Add(c, r3.Add(r3.Scale(radius*k, r.e1), r3.Scale(radius*s, r.e2)))
}

// gizmo draws the rings about the closure point, each with an arrow the way a positive angle turns.
func (v view3D) gizmo(g geom.Pose) {
	const n = 96
	radius := .1
	var taken []r3.Vec
	rings := gizmoRings(g)
	for _, r := range rings {
		ps := make([]r3.Vec, 0, n+1)
		for i := range n + 1 {
			ps = append(ps, r.at(g.P, radius, 2*math.Pi*float64(i)/n))
		}
		polyline3(v.c, v.l, ps, ink{col: r.col, width: 3, halo: 1.2, hidden: .35})
	}
	for _, r := range rings {
		t := v.arrowAngle(r, g.P, radius, taken)
		tip, ok := v.l.project(r.at(g.P, radius, t))
		tail, ok2 := v.l.project(r.at(g.P, radius, t-.12))
		if !ok || !ok2 {
			continue
		}
		taken = append(taken, tip)
		v.c.arrowhead(r3.Vec{X: tip.X, Y: tip.Y}, tip.X-tail.X, tip.Y-tail.Y, 19, r.col)
		out, ok := v.l.project(r.at(g.P, radius*1.22, t-.1))
		if ok {
			v.plate(out, "+"+r.name, r.col)
		}
	}
}

// plate is a word in white on a coloured plate, centred.
func (v view3D) plate(s r3.Vec, word string, col rgb) {
	f := v.p.faces.bold
	w, h := float64(f.width(word)+10), float64(f.height+2)
	v.c.chip(s.X-w/2-1.5, s.Y-h/2-1.5, s.X+w/2+1.5, s.Y+h/2+1.5, 6, 0xFFFFFF, 1)
	v.c.chip(s.X-w/2, s.Y-h/2, s.X+w/2, s.Y+h/2, 5, col, 1)
	v.c.text(f, int(s.X-w/2)+5, int(s.Y-h/2)+1, word, 0xFFFFFF, false)
}

// arrowAngle is where on a ring its arrow is seen best: towards the lens, across the line of sight, in the
// open, and away from the arrows that are there already.
func (v view3D) arrowAngle(r ring, c r3.Vec, radius float64, taken []r3.Vec) float64 {
	best, bestScore := 0.0, math.Inf(-1)
	for i := range 48 {
		t := 2 * math.Pi * float64(i) / 48
		p := r.at(c, radius, t)
		s, ok := v.l.project(p)
		q, ok2 := v.l.project(r.at(c, radius, t-.12))
		if !ok || !ok2 || s.X < 40 || s.Y < 40 || s.X > float64(v.l.w-40) || s.Y > float64(v.l.h-40) {
			continue
		}
		toLens := r3.Unit(r3.Sub(v.l.pos, p))
		score := .5*r3.Dot(r3.Unit(r3.Sub(p, c)), toLens) + math.Hypot(s.X-q.X, s.Y-q.Y)/(v.l.fx*radius*.12/s.Z)
		if v.c.hides(int(s.X), int(s.Y), s.Z) {
			score -= 1
		}
		for _, o := range taken {
			score -= 1.2 * math.Exp(-math.Hypot(o.X-s.X, o.Y-s.Y)/50)
		}
		if score > bestScore {
			best, bestScore = t, score
		}
	}
	return best
}
