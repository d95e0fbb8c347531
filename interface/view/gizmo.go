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
func (r ring) at(c r3.Vec, t float64) r3.Vec {
	s, k := math.Sincos(t)
	return r3.Add(c, r3.Add(r3.Scale(gizmoRadius*k, r.e1), r3.Scale(gizmoRadius*s, r.e2)))
}

// gizmoRadius is the radius of the rings in metres.
const gizmoRadius = .11

// gizmo draws the rings about the closure point, each with an arrow the way a positive angle turns.
func (v view3D) gizmo(g geom.Pose) {
	const n = 96
	rings := gizmoRings(g)
	for _, r := range rings {
		ps := make([]r3.Vec, 0, n+1)
		for i := range n + 1 {
			ps = append(ps, r.at(g.P, 2*math.Pi*float64(i)/n))
		}
		polyline3(v.c, v.l, ps, ink{col: r.col, width: 3.2, halo: 1.2, hidden: .35})
	}
	var tips []r3.Vec // of the arrows placed so far, then also of their words
	var dirs [3]r3.Vec
	var have [3]bool
	for i, r := range rings {
		t := v.arrowAngle(r, g.P, tips)
		tip, ok := v.l.project(r.at(g.P, t))
		tail, ok2 := v.l.project(r.at(g.P, t-.1))
		if !ok || !ok2 || math.Hypot(tip.X-tail.X, tip.Y-tail.Y) < 1e-3 {
			continue
		}
		d := r3.Unit(r3.Vec{X: tip.X - tail.X, Y: tip.Y - tail.Y})
		tip = r3.Vec{X: tip.X + 12*d.X, Y: tip.Y + 12*d.Y} // the ring runs through the arrow's middle
		v.c.dart(tip, d.X, d.Y, 32, r.col)
		dirs[i], have[i] = tip, true
		tips = append(tips, tip)
	}
	mid, ok := v.l.project(g.P)
	for i := range 8 { // words keep off the approach axis too, and off its name
		if s, ok := v.l.project(g.Point(r3.Vec{X: .02 * float64(i)})); ok {
			tips = append(tips, s)
		}
		if s, ok := v.l.project(g.Point(r3.Vec{X: axisName})); ok {
			tips = append(tips, r3.Vec{X: s.X + axisNameAside + 20*float64(i), Y: s.Y})
		}
	}
	for i, r := range rings {
		if !have[i] || !ok {
			continue
		}
		s := v.besides(dirs[i], mid, tips)
		tips = append(tips, s)
		v.plate(s, "+"+r.name, r.col)
	}
}

// besides is a place for a word next to an arrow: outwards, and clear of what is there already.
func (v view3D) besides(tip, mid r3.Vec, taken []r3.Vec) r3.Vec {
	best, most := tip, math.Inf(-1)
	for i := range 16 {
		sn, cs := math.Sincos(2 * math.Pi * float64(i) / 16)
		s := r3.Vec{X: tip.X + 40*cs, Y: tip.Y + 33*sn}
		if s.X < 24 || s.Y < 16 || s.X > float64(v.c.w-24) || s.Y > float64(v.c.h-16) {
			continue
		}
		score := .25 * math.Min(90, math.Hypot(s.X-mid.X, s.Y-mid.Y))
		for _, o := range taken {
			if o != tip {
				score -= 60 * math.Exp(-math.Hypot(o.X-s.X, o.Y-s.Y)/22)
			}
		}
		if score > most {
			best, most = s, score
		}
	}
	return best
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
func (v view3D) arrowAngle(r ring, c r3.Vec, taken []r3.Vec) float64 {
	best, bestScore := 0.0, math.Inf(-1)
	for i := range 48 {
		t := 2 * math.Pi * float64(i) / 48
		p := r.at(c, t)
		s, ok := v.l.project(p)
		q, ok2 := v.l.project(r.at(c, t-.12))
		if !ok || !ok2 || s.X < 40 || s.Y < 40 || s.X > float64(v.l.w-40) || s.Y > float64(v.l.h-40) {
			continue
		}
		toLens := r3.Unit(r3.Sub(v.l.pos, p))
		score := .5*r3.Dot(r3.Unit(r3.Sub(p, c)), toLens) + math.Hypot(s.X-q.X, s.Y-q.Y)/(v.l.fx*gizmoRadius*.12/s.Z)
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
