package control

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

func sub(a, b r3.Vec) float64 { return r3.Norm2(r3.Sub(a, b)) }

// Null-space motion per knot, radians.
const (
	centreGain = 0.03 // of the way back to mid-range, cubed: next to nothing in the middle of the range
	centreMost = 0.02
	changeMost = 0.06 // when the posture has to change on the way
)

// armKnots finds a straight line of the tool for a fixed arm: first with the posture that the arm has,
// then by drifting, along the line, towards other postures in which the goal can be held.
func (p *Planner) armKnots(base geom.SE2, start joints, goal geom.Pose) ([]knot, error) {
	c := &p.kin.chain
	lo, hi := p.limits(&start)
	t := &tracer{solver: solver{c: c, lo: lo, hi: hi}}
	t.from = c.forward(start[:c.n]).pose()
	t.to = base.Pose().Inv().Mul(goal)
	n := steps(t.from, t.to)
	first := t.trace(start, n, t.centre(centreGain, centreMost))
	if first == nil {
		return onBase(t.knots, base), nil
	}
	cands := t.postures(start, first.q)
	furthest := *first
	for i, cand := range cands {
		if i == mostPostures {
			break
		}
		b := t.change(start, n, cand)
		if b == nil {
			return onBase(t.knots, base), nil
		}
		if b.s > furthest.s {
			furthest = *b
		}
	}
	return nil, p.unreachable(t, base, start, &furthest, len(cands) > 0)
}

const mostPostures = 10

func onBase(knots []knot, base geom.SE2) []knot {
	for i := range knots {
		knots[i].base = base
	}
	return knots
}

// change follows the line while the posture drifts to want, with as many knots as the drift needs.
func (t *tracer) change(start joints, n int, want joints) *blocked {
	far := 0.0
	for i := range t.c.n {
		far = math.Max(far, math.Abs(want[i]-start[i]))
	}
	n = min(400, max(n, int(math.Ceil(far/changeMost*1.5))))
	return t.trace(start, n, t.towards(want, 4/float64(n)+0.05, changeMost))
}

// postures are configurations that hold the line's end within the limits, the nearest to start first.
func (t *tracer) postures(start, stuck joints) []joints {
	goal := newFrame(t.to)
	var found []joints
	for _, seed := range t.seeds(start, stuck) {
		q := seed
		if g := t.solve(&q, goal, 60, t.centre(0.1, 0.1)); g.pos > 1e-4 || g.rot > 5e-4 {
			continue
		}
		if !slices.ContainsFunc(found, func(o joints) bool { return apart(&q, &o) < 0.15 }) {
			found = append(found, q)
		}
	}
	slices.SortFunc(found, func(a, b joints) int { return cmp.Compare(apart(&a, &start), apart(&b, &start)) })
	return found
}

func apart(a, b *joints) float64 {
	d := 0.0
	for i := range a {
		d += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(d)
}

// seeds spread over postures: where the arm is and stuck, turned elbows and wrists, and a fixed random set.
func (t *tracer) seeds(start, stuck joints) []joints {
	mid := joints{}
	for i := range t.c.n {
		mid[i] = (t.lo[i] + t.hi[i]) / 2
	}
	seeds := []joints{start, stuck, mid}
	for _, from := range []joints{start, stuck} {
		for _, turn := range []float64{-1.6, -0.8, 0.8, 1.6} {
			a, b := from, from
			a[2], a[4] = a[2]+turn, a[4]-turn // swings the elbow
			b[t.c.n-1] += turn                // turns the wrist
			seeds = append(seeds, t.inLimits(a), t.inLimits(b))
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 24 {
		var q joints
		for i := range t.c.n {
			q[i] = t.lo[i] + r.Float64()*(t.hi[i]-t.lo[i])
		}
		q[0] = math.Atan2(t.to.P.Y, t.to.P.X) + 0.8*(r.Float64()-0.5)
		seeds = append(seeds, t.inLimits(q))
	}
	return seeds
}

func (s *solver) inLimits(q joints) joints {
	for i := range s.c.n {
		q[i] = math.Max(s.lo[i], math.Min(s.hi[i], q[i]))
	}
	return q
}

// unreachable says what stands in the way: the joint that would run out and by how much, and how near the
// tool would come.
func (p *Planner) unreachable(t *tracer, base geom.SE2, start joints, b *blocked, held bool) error {
	u := &robot.Unreachable{}
	world := func(q *joints) geom.Pose { return baseFrame(base).mul(t.c.forward(q[:t.c.n])).pose() }
	goal := newFrame(t.to)
	near := b.q
	if held {
		goal = b.goal // the end can be held; it is the way that is shut
	} else {
		near = t.nearest(start, b.q)
	}
	u.Near = world(&near)
	end := base.Pose().Mul(t.to)
	u.Gap, u.Turn = u.Near.Dist(end), u.Near.Angle(end)
	joint, by, reach := t.violation(start, near, goal)
	limit := ""
	if joint >= 0 {
		j := p.kin.model.Joints[joint]
		u.Joint, u.By, u.Unit = j.Name, by, "rad"
		if j.Prismatic {
			u.Unit = "m"
		}
		at := t.hi[joint]
		if reach[joint] < t.lo[joint] {
			at = t.lo[joint]
		}
		limit = fmt.Sprintf("%s would need %.2f %s beyond its limit (%.4f %s, %.2f inside the joint's own)",
			j.Name, by, u.Unit, at, u.Unit, p.margin())
	}
	u.Why = p.why(u, b, held, limit)
	return u
}

func (p *Planner) why(u *robot.Unreachable, b *blocked, held bool, limit string) string {
	near := fmt.Sprintf("nearest reachable pose is %.0f mm and %.1f degrees short", u.Gap*1e3, geom.Deg(u.Turn))
	switch {
	case held && limit != "":
		return fmt.Sprintf("the straight line to the goal is shut after %.0f %% of the way: %s; the goal itself can be held in another arm posture, so go by way of another pose", b.s*100, limit)
	case held:
		return fmt.Sprintf("the straight line to the goal passes a singular posture after %.0f %% of the way; go by way of another pose", b.s*100)
	case limit != "":
		return limit + "; " + near
	}
	return "the goal is out of the arm's reach; " + near
}

// nearest is the configuration inside the limits whose tool comes nearest to the line's end.
func (t *tracer) nearest(start, stuck joints) joints {
	goal := newFrame(t.to)
	best, cost := start, math.Inf(1)
	for _, q := range t.seeds(start, stuck) {
		if g := t.solve(&q, goal, 80, nil); g.cost() < cost {
			best, cost = q, g.cost()
		}
	}
	return best
}

// violation solves goal without limits, drawn back inside them as far as the redundancy allows, and names
// the joint that is furthest out; -1 when the arm cannot hold the pose at all or needs no violation.
func (t *tracer) violation(start, near joints, goal frame) (joint int, by float64, q joints) {
	s := t.solver
	s.free = true
	joint, by = -1, math.Inf(1)
	for _, x := range []joints{near, start, t.knots[len(t.knots)-1].q} {
		g := s.solve(&x, goal, 160, s.inside(0.3, 0.1))
		if g.pos > 1e-3 || g.rot > 5e-3 {
			continue
		}
		if i, d := s.excess(&x); i >= 0 && d < by {
			joint, by, q = i, d, x
		}
	}
	if joint < 0 {
		by = 0
	}
	return joint, by, q
}

// holding are configurations that hold a tool pose, whatever the way there.
func (p *Planner) holding(base geom.SE2, start joints, goal geom.Pose) []knot {
	if p.kin.model.Mobile {
		return p.wholePostures(base, start, goal)
	}
	t := &tracer{solver: solver{c: &p.kin.chain}}
	t.lo, t.hi = p.limits(&start)
	t.from, t.to = t.c.forward(start[:t.c.n]).pose(), base.Pose().Inv().Mul(goal)
	var out []knot
	for _, q := range t.postures(start, start) {
		out = append(out, knot{q: q, base: base})
	}
	return out
}
