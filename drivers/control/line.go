package control

import (
	"math"

	"viad/drivers/geom"
)

// knot is one configuration on the way, at share s of the line.
type knot struct {
	s    float64
	q    joints
	base geom.SE2
	stop bool // a corner in the joints: the robot halts here
}

// Spacing of knots along the line, and how far a joint may turn between two before more are put between.
const (
	knotPos   = 0.005 // metres
	knotRot   = 0.03  // radians
	knotJoint = 0.1   // radians or metres
	knotDeep  = 6     // halvings of one interval before the line counts as impassable
	minKnots  = 8
)

// steps is the number of intervals for a line from a to b.
func steps(a, b geom.Pose) int {
	n := math.Max(a.Dist(b)/knotPos, a.Angle(b)/knotRot)
	return max(minKnots, int(math.Ceil(n)))
}

// blocked says why a line could not be followed to its end.
type blocked struct {
	s    float64 // share of the line that was reached
	q    joints  // configuration there
	goal frame   // the pose that could not be met
}

// tracer walks a chain along a straight line of the tool.
type tracer struct {
	solver
	from, to geom.Pose // base frame
	knots    []knot
}

// trace follows the line from q0 with the given null-space pull per knot. Nil means that it arrived.
func (t *tracer) trace(q0 joints, n int, p pull) *blocked {
	t.knots = append(t.knots[:0], knot{q: q0})
	for i := 1; i <= n; i++ {
		if b := t.advance(float64(i)/float64(n), p, 0); b != nil {
			return b
		}
	}
	return nil
}

// advance adds the knot at s, and knots before it where the joints turn fast.
func (t *tracer) advance(s float64, p pull, depth int) *blocked {
	last := t.knots[len(t.knots)-1]
	goal := newFrame(t.from.Lerp(t.to, s))
	q := last.q
	g := t.reach(&q, goal, p)
	turn := 0.0
	for i := range t.c.n {
		turn = math.Max(turn, math.Abs(q[i]-last.q[i]))
	}
	ok := g.pos < 1e-4 && g.rot < 5e-4
	if ok && turn <= knotJoint {
		t.knots = append(t.knots, knot{s: s, q: q})
		return nil
	}
	if depth == knotDeep {
		return &blocked{s: last.s, q: last.q, goal: goal}
	}
	if b := t.advance((last.s+s)/2, p, depth+1); b != nil {
		return b
	}
	return t.advance(s, p, depth+1)
}

// reach meets one pose near q: one step with the pull, then corrections without.
func (t *tracer) reach(q *joints, goal frame, p pull) gap {
	var j jacobian
	var z joints
	if p != nil {
		p(q, &z)
	}
	var g gap
	for range 15 {
		e := poseError(goal, t.c.derive(q, &j))
		if g = gapOf(e); g.solved() && z == (joints{}) {
			return g
		}
		t.step(q, e, &z, &j)
		z = joints{}
	}
	return gapOf(poseError(goal, t.c.forward(q[:t.c.n])))
}
