package control

import (
	"fmt"
	"math"
	"math/rand/v2"

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

// armKnots finds a straight line of the tool for a fixed arm: first with the posture that the arm has, then,
// if the goal can be held at all, by changing posture on the way.
func (p *Planner) armKnots(base geom.SE2, start joints, goal geom.Pose) ([]knot, error) {
	c := &p.kin.chain
	lo, hi := p.limits(&start)
	t := &tracer{solver: solver{c: c, lo: lo, hi: hi}}
	t.from = c.forward(start[:c.n]).pose()
	t.to = base.Pose().Inv().Mul(goal)
	n := steps(t.from, t.to)
	first := t.trace(start, n, t.centre(centreGain, centreMost))
	if first == nil {
		if t.atLimit(start) {
			t.smooth()
		}
		return onBase(t.knots, base), nil
	}
	held, near := t.explore(start, first.q)
	if !held {
		return nil, p.unreachable(t, base, first, near)
	}
	far, ok := t.search(start, n/2)
	if ok {
		return onBase(t.knots, base), nil
	}
	if far.s < first.s {
		far = first
	}
	return nil, p.shut(t, base, far)
}

// atLimit says that a joint is held by a limit somewhere on the way, at which the others took over at once.
func (t *tracer) atLimit(start joints) bool {
	for _, k := range t.knots {
		for i := range t.c.n {
			if k.q[i] != start[i] && math.Min(k.q[i]-t.lo[i], t.hi[i]-k.q[i]) < 1e-6 {
				return true
			}
		}
	}
	return false
}

func onBase(knots []knot, base geom.SE2) []knot {
	for i := range knots {
		knots[i].base = base
	}
	return knots
}

// explore looks for any configuration that holds the line's end within the limits, and returns it or the
// one whose tool comes nearest.
func (t *tracer) explore(start, stuck joints) (held bool, near joints) {
	goal := newFrame(t.to)
	best := math.Inf(1)
	for _, q := range t.seeds(start, stuck) {
		g := t.solve(&q, goal, 60, nil)
		if g.pos < 1e-4 && g.rot < 5e-4 {
			return true, q
		}
		if g.cost() < best {
			best, near = g.cost(), q
		}
	}
	return false, near
}

// seeds spread over postures: where the arm is and stuck, turned elbows and wrists, and a fixed random set.
func (t *tracer) seeds(start, stuck joints) []joints {
	mid := joints{}
	for i := range t.c.n {
		mid[i] = (t.lo[i] + t.hi[i]) / 2
	}
	seeds := append(make([]joints, 0, 48), start, stuck, mid)
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

// unreachable is the report for a goal that no posture holds: the joint that would run out and by how much,
// and how near the tool would come.
func (p *Planner) unreachable(t *tracer, base geom.SE2, b *blocked, near joints) error {
	u := p.report(t, base, near)
	f := t.solver
	f.free = true
	joint, by := -1, math.Inf(1)
	var at joints
	for _, q := range []joints{near, b.q} {
		g := f.solve(&q, newFrame(t.to), 120, f.inside(0.3, 0.1))
		if i, d := f.excess(&q); i >= 0 && d < by && g.pos < 1e-3 && g.rot < 5e-3 {
			joint, by, at = i, d, q
		}
	}
	short := fmt.Sprintf("nearest reachable pose is %.0f mm and %.1f degrees short", u.Gap*1e3, geom.Deg(u.Turn))
	if joint < 0 {
		u.Why = "the goal is out of the arm's reach; " + short
		return u
	}
	u.Why = p.beyond(u, t, joint, by, &at) + "; " + short
	return u
}

// shut is the report for a goal that can be held, though not by the straight line from here: the joint that
// would be furthest out on the way.
func (p *Planner) shut(t *tracer, base geom.SE2, b *blocked) error {
	u := p.report(t, base, b.q)
	f := t.solver
	f.free = true
	joint, by := -1, 0.0
	q := b.q
	var at joints
	const samples = 16
	for i := 1; i <= samples; i++ {
		s := b.s + (1-b.s)*float64(i)/samples
		g := f.solve(&q, newFrame(t.from.Lerp(t.to, s)), 24, f.inside(0.3, 0.1))
		if i, d := f.excess(&q); i >= 0 && d > by && g.pos < 1e-3 && g.rot < 5e-3 {
			joint, by, at = i, d, q
		}
	}
	why := "the arm would have to pass a singular posture"
	if joint >= 0 {
		why = p.beyond(u, t, joint, by, &at)
	}
	u.Why = fmt.Sprintf("the straight line to the goal is shut after %.0f %% of the way: %s; the goal itself can be held only in an arm posture that this line does not lead to; try a pose further along the line's open part, or another angle of the hand", b.s*100, why)
	return u
}

// report is an Unreachable with the nearest pose filled in.
func (p *Planner) report(t *tracer, base geom.SE2, near joints) *robot.Unreachable {
	end := base.Pose().Mul(t.to)
	u := &robot.Unreachable{Near: baseFrame(base).mul(t.c.forward(near[:t.c.n])).pose()}
	u.Gap, u.Turn = u.Near.Dist(end), u.Near.Angle(end)
	return u
}

// beyond names the joint, in u and in words.
func (p *Planner) beyond(u *robot.Unreachable, t *tracer, joint int, by float64, q *joints) string {
	j := p.kin.model.Joints[joint]
	u.Joint, u.By, u.Unit = j.Name, by, "rad"
	limit := t.hi[joint]
	if q[joint] < t.lo[joint] {
		limit = t.lo[joint]
	}
	return fmt.Sprintf("%s would need %.2f rad beyond its limit (%.4f rad, a margin of %.2f kept)", j.Name, by, limit, p.margin())
}

// holding are configurations that hold a tool pose, whatever the way there.
func (p *Planner) holding(base geom.SE2, start joints, goal geom.Pose) []knot {
	if p.kin.model.Mobile {
		return p.wholePostures(base, start, goal)
	}
	t := &tracer{solver: solver{c: &p.kin.chain}}
	t.lo, t.hi = p.limits(&start)
	t.from, t.to = t.c.forward(start[:t.c.n]).pose(), base.Pose().Inv().Mul(goal)
	if held, q := t.explore(start, start); held {
		return []knot{{q: q, base: base}}
	}
	return nil
}
