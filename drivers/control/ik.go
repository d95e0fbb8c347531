package control

import "math"

// joints is a configuration in fixed-size form; entries past the chain's length are zero.
type joints = [maxDOF]float64

// turnLength weighs rotation against translation in the solver: one radian counts as this many metres,
// about the distance between wrist and closure point.
const turnLength = 0.3

// Residuals below which a pose counts as solved, metres and radians.
const (
	solvedPos = 1e-5
	solvedRot = 5e-5
)

// solver is damped least squares over a chain, with joint limits by locking and a pull in the null space.
type solver struct {
	c      *chain
	lo, hi joints // the limits that hold for this plan
	free   bool   // ignore the limits: to find out how far past them a pose would be
}

// gap is what is left between a wanted pose and a reached one.
type gap struct{ pos, rot float64 }

func (g gap) solved() bool { return g.pos <= solvedPos && g.rot <= solvedRot }

// cost makes gaps comparable, in metres: position counts fully, a radian as a tenth of a metre.
func (g gap) cost() float64 { return g.pos + 0.1*g.rot }

func gapOf(e vec6) gap {
	return gap{math.Sqrt(e[0]*e[0] + e[1]*e[1] + e[2]*e[2]), math.Sqrt(e[3]*e[3] + e[4]*e[4] + e[5]*e[5])}
}

// pull gives the null-space motion wanted at q; nil for none.
type pull func(q, z *joints)

// patience is how many iterations without a twentieth of progress are a local minimum.
const patience = 8

// solve moves q towards goal for at most n iterations and says what is left. With a pull, the first half
// of the iterations also move in the null space.
func (s *solver) solve(q *joints, goal frame, n int, p pull) gap {
	var j jacobian
	best, g := *q, gap{math.Inf(1), math.Inf(1)}
	mark, since := math.Inf(1), 0
	for it := range n {
		e := poseError(goal, s.c.derive(q, &j))
		now := gapOf(e)
		if now.cost() < g.cost() {
			best, g = *q, now
		}
		var z joints
		switch pulled := p != nil && it < n/2; {
		case pulled:
			p(q, &z)
		case now.solved(), it-since > patience && now.cost() >= 0.95*mark: // there, or in a local minimum
			*q = best
			return g
		case now.cost() < 0.95*mark:
			mark, since = now.cost(), it
		}
		s.step(q, e, &z, &j)
	}
	if e := gapOf(poseError(goal, s.c.forward(q[:s.c.n]))); e.cost() < g.cost() {
		best, g = *q, e
	}
	*q = best
	return g
}

// maxStep bounds one iteration, radians or metres: the Jacobian holds no further.
const maxStep = 0.25

// step is one damped step: q += J+ (e - J z) + z over the joints that are not at a limit.
func (s *solver) step(q *joints, e vec6, z *joints, j *jacobian) {
	e = clipError(e)
	var locked [maxDOF]bool
	var dq joints
	for range s.c.n {
		s.leastSquares(&dq, e, z, j, &locked)
		worst, over := -1, 1e-12
		for i := range s.c.n {
			if locked[i] || s.free {
				continue
			}
			if x := math.Max(s.lo[i]-(q[i]+dq[i]), q[i]+dq[i]-s.hi[i]); x > over {
				worst, over = i, x
			}
		}
		if worst < 0 {
			break
		}
		// The joint goes to its limit and no further; the others make up for it.
		locked[worst] = true
		dq[worst] = math.Max(s.lo[worst], math.Min(s.hi[worst], q[worst]+dq[worst])) - q[worst]
	}
	big := 0.0
	for i := range s.c.n {
		big = math.Max(big, math.Abs(dq[i]))
	}
	k := 1.0
	if big > maxStep {
		k = maxStep / big
	}
	for i := range s.c.n {
		q[i] += k * dq[i]
	}
}

func clipError(e vec6) vec6 {
	g := gapOf(e)
	kp, kr := 1.0, 1.0
	if g.pos > 0.1 {
		kp = 0.1 / g.pos
	}
	if g.rot > 0.5 {
		kr = 0.5 / g.rot
	}
	return vec6{kp * e[0], kp * e[1], kp * e[2], kr * e[3], kr * e[4], kr * e[5]}
}

func column(j *jacobian, i int) vec6 {
	return vec6{j.v[i].X, j.v[i].Y, j.v[i].Z, turnLength * j.w[i].X, turnLength * j.w[i].Y, turnLength * j.w[i].Z}
}

// leastSquares fills dq for the joints that are free, given dq of the locked ones.
func (s *solver) leastSquares(dq *joints, e vec6, z *joints, j *jacobian, locked *[maxDOF]bool) {
	var a mat6
	r := vec6{e[0], e[1], e[2], turnLength * e[3], turnLength * e[4], turnLength * e[5]}
	size := 0.0
	for _, x := range r {
		size += x * x
	}
	for i := range s.c.n {
		c := column(j, i)
		move := z[i]
		if locked[i] {
			move = dq[i]
		}
		for x := range 6 {
			r[x] -= c[x] * move
			if locked[i] {
				continue
			}
			for y := range x + 1 {
				a[x][y] += c[x] * c[y]
			}
		}
	}
	plain := a
	det, ok := plain.cholesky()
	for x := range 6 {
		a[x][x] += damping(det, ok, size)
	}
	if _, ok := a.cholesky(); !ok {
		return // cannot happen: damped and symmetric
	}
	y := a.solve(r)
	for i := range s.c.n {
		if locked[i] {
			continue
		}
		c := column(j, i)
		dq[i] = z[i]
		for x := range 6 {
			dq[i] += c[x] * y[x]
		}
	}
}

// damping grows with the error that is left (Levenberg-Marquardt) and near singularities, where the
// manipulability (det) falls under that of a comfortable posture.
func damping(det float64, ok bool, size float64) float64 {
	const comfortable = 1e-3
	d := 1e-9 + 0.02*size
	if !ok {
		det = 0
	}
	if det < comfortable {
		x := 1 - det/comfortable
		d += 1e-5 * x * x
	}
	return d
}

// margins is each joint's distance to its nearer limit as a share of its range: 0 at a limit, 1 midway.
func (s *solver) share(q *joints, i int) (x, half float64) {
	half = (s.hi[i] - s.lo[i]) / 2
	if half <= 0 {
		return 0, 0
	}
	return (q[i] - (s.lo[i] + half)) / half, half
}

// centre pulls towards the middle of every range, weakly in the middle and hard near a limit.
func (s *solver) centre(gain, most float64) pull {
	return func(q, z *joints) {
		for i := range s.c.n {
			x, half := s.share(q, i)
			z[i] = -gain * x * x * x * half
		}
		clipNorm(z, most)
	}
}

// inside pulls joints that are past a limit back: used with free.
func (s *solver) inside(gain, most float64) pull {
	return func(q, z *joints) {
		for i := range s.c.n {
			z[i] = gain * (math.Max(s.lo[i], math.Min(s.hi[i], q[i])) - q[i])
		}
		clipNorm(z, most)
	}
}

func clipNorm(z *joints, most float64) {
	n := 0.0
	for _, x := range z {
		n = math.Max(n, math.Abs(x))
	}
	if n <= most {
		return
	}
	for i := range z {
		z[i] *= most / n
	}
}

// excess is the joint furthest past its limits and by how much; -1 when none is.
func (s *solver) excess(q *joints) (joint int, by float64) {
	joint = -1
	for i := range s.c.n {
		if x := math.Max(s.lo[i]-q[i], q[i]-s.hi[i]); x > by {
			joint, by = i, x
		}
	}
	return joint, by
}
