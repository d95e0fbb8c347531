package control

import "math"

// beam looks for a way along the line through all postures that the arm's one redundancy allows: layer by
// layer it keeps the cheapest configuration for every stretch of null-space travel, and so finds the way
// past a limit by swinging the elbow early, which a local pull cannot see.
type beam struct {
	*tracer
}

// node is one configuration of a layer.
type node struct {
	q      joints
	null   joints  // unit null-space direction, of one sense along the beam
	travel float64 // null-space travel from the start, radians
	cost   float64
	from   *node
}

const (
	beamStep  = 0.2 // radians of null-space travel per layer, and the width of a bucket
	beamDwell = 10  // layers in place, at the start, when the way alone is too short to change posture on
	beamMin   = 24  // layers along the line
	beamMax   = 40
	smoothing = 5 // passes at each reach
)

// search fills t.knots with a way to the end of the line; false with the furthest point that was reached.
func (t *tracer) search(start joints, n int) (*blocked, bool) {
	n = max(beamMin, min(beamMax, n))
	var far *blocked
	for _, dwell := range []int{0, beamDwell} {
		b := &beam{tracer: t}
		end, stuck := b.run(start, n, dwell)
		if end != nil {
			b.unroll(end, n, dwell)
			t.smooth()
			if t.refine() {
				return nil, true
			}
			continue
		}
		if far == nil || stuck.s >= far.s {
			far = stuck
		}
		if stuck.s > 0.3 { // there was room on the way to change posture on
			break
		}
	}
	return far, false
}

// run builds the layers; the cheapest node of the last one, or where it got stuck.
func (b *beam) run(start joints, n, dwell int) (*node, *blocked) {
	first := &node{q: start}
	for i := range b.c.n {
		first.null[i] = 1 / math.Sqrt(float64(b.c.n)) * float64(1-2*(i%2)) // any vector that has a part in the null space
	}
	layer := map[int]*node{0: first}
	last := 0.0
	for i := 1; i <= n+dwell; i++ {
		s := math.Max(0, float64(i-dwell)/float64(n))
		goal := newFrame(b.from.Lerp(b.to, s))
		next := map[int]*node{}
		for k := -64; k <= 64; k++ { // in order: the same search every time
			if nd := layer[k]; nd != nil {
				b.grow(nd, goal, next)
			}
		}
		if len(next) == 0 {
			best := cheapest(layer)
			return nil, &blocked{s: last, q: best.q, goal: goal}
		}
		layer, last = next, s
	}
	return cheapest(layer), nil
}

func cheapest(layer map[int]*node) *node {
	var best *node
	for k := -64; k <= 64; k++ {
		if nd := layer[k]; nd != nil && (best == nil || nd.cost < best.cost) {
			best = nd
		}
	}
	return best
}

// grow adds nd's children to the next layer: on along the line with the posture kept, or moved either way.
func (b *beam) grow(nd *node, goal frame, next map[int]*node) {
	var j jacobian
	e := poseError(goal, b.c.derive(&nd.q, &j))
	null, ok := b.nullOf(&nd.null, &j)
	if !ok {
		return
	}
	for _, step := range [3]float64{0, beamStep, -beamStep} {
		var z joints
		for i := range b.c.n {
			z[i] = step * null[i]
		}
		child := &node{q: nd.q, null: null, from: nd}
		b.step(&child.q, e, &z, &j)
		if g := b.correct(&child.q, goal); g.pos > 1e-4 || g.rot > 5e-4 {
			continue
		}
		child.travel = nd.travel
		child.cost = nd.cost + b.crowding(&child.q)
		for i := range b.c.n {
			d := child.q[i] - nd.q[i]
			child.travel += d * null[i]
			child.cost += d * d
		}
		k := int(math.Round(child.travel / beamStep))
		if k < -64 || k > 64 {
			continue
		}
		if old := next[k]; old == nil || child.cost < old.cost {
			next[k] = child
		}
	}
}

// correct meets the goal exactly from close by.
func (s *solver) correct(q *joints, goal frame) gap {
	var j jacobian
	var zero joints
	g := gap{math.Inf(1), math.Inf(1)}
	for range 6 {
		e := poseError(goal, s.c.derive(q, &j))
		now := gapOf(e)
		if now.solved() {
			return now
		}
		if now.cost() > 0.7*g.cost() { // not converging: a limit is in the way
			return now
		}
		g = now
		s.step(q, e, &zero, &j)
	}
	return gapOf(poseError(goal, s.c.forward(q[:s.c.n])))
}

// nullOf is the unit null-space direction nearest to v.
func (s *solver) nullOf(v *joints, j *jacobian) (joints, bool) {
	var dq joints
	var free [maxDOF]bool
	s.leastSquares(&dq, vec6{}, v, j, &free)
	n := 0.0
	for i := range s.c.n {
		n += dq[i] * dq[i]
	}
	if n = math.Sqrt(n); n < 1e-3 {
		return dq, false
	}
	for i := range s.c.n {
		dq[i] /= n
	}
	return dq, true
}

// crowding is the price of being near limits.
func (s *solver) crowding(q *joints) float64 {
	c := 0.0
	for i := range s.c.n {
		if x, _ := s.share(q, i); math.Abs(x) > 0.8 {
			x = math.Abs(x) - 0.8
			c += 0.1 * x * x / 0.04
		}
	}
	return c
}

func (b *beam) unroll(end *node, n, dwell int) {
	b.knots = make([]knot, n+dwell+1)
	for i := n + dwell; i >= 0; i-- {
		b.knots[i] = knot{s: math.Max(0, float64(i-dwell)/float64(n)), q: end.q, stop: i == dwell}
		end = end.from
	}
}

// smooth relaxes the null-space motion of the knots: each moves towards the middle between two others as
// far as its place on the line and the limits allow; first far ones, which straighten the whole way, then
// near ones, which take out the kinks.
func (t *tracer) smooth() {
	for _, reach := range [...]int{16, 8, 4, 2, 1} {
		for range smoothing {
			for i := 1; i < len(t.knots)-1; i++ {
				o := min(reach, i, len(t.knots)-1-i)
				t.relax(&t.knots[i], &t.knots[i-o].q, &t.knots[i+o].q)
			}
		}
	}
}

func (t *tracer) relax(k *knot, a, c *joints) {
	q := k.q
	g := t.reach(&q, newFrame(t.from.Lerp(t.to, k.s)), func(q, z *joints) {
		for i := range t.c.n {
			z[i] = (a[i]+c[i])/2 - q[i]
		}
		clipNorm(z, changeMost)
	})
	if g.pos < 1e-4 && g.rot < 5e-4 {
		k.q = q
	}
}

// refine puts knots between those that are far apart; false when the joints jump between two.
func (t *tracer) refine() bool {
	coarse := append([]knot(nil), t.knots...)
	t.knots = append(t.knots[:0], coarse[0])
	for _, k := range coarse[1:] {
		if !t.between(t.knots[len(t.knots)-1], k, 0) {
			return false
		}
	}
	return true
}

// between adds knots after a up to and including c.
func (t *tracer) between(a, c knot, depth int) bool {
	turn := 0.0
	for i := range t.c.n {
		turn = math.Max(turn, math.Abs(a.q[i]-c.q[i]))
	}
	length := (c.s - a.s) * math.Max(t.from.Dist(t.to)/knotPos, t.from.Angle(t.to)/knotRot)
	if turn <= knotJoint && length <= 1.001 {
		t.knots = append(t.knots, c)
		return true
	}
	if depth == knotDeep {
		return false
	}
	m := knot{s: (a.s + c.s) / 2}
	for i := range t.c.n {
		m.q[i] = (a.q[i] + c.q[i]) / 2
	}
	g := t.reach(&m.q, newFrame(t.from.Lerp(t.to, m.s)), nil)
	if g.pos > 1e-4 || g.rot > 5e-4 {
		return false
	}
	return t.between(a, m, depth+1) && t.between(m, c, depth+1)
}
