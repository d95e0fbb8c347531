package robot

import (
	"fmt"
	"math"
	"sort"
	"time"

	"viad/drivers/geom"
)

// Tolerances of Trajectory.Check: how far the first knot may be from the measured state. They are wide
// enough for the sag of a loaded arm and narrow enough that the first step is no jump.
const (
	StartTolRevolute  = 0.05 // radians, also the base's yaw
	StartTolPrismatic = 0.01 // metres
	StartTolBase      = 0.02 // metres
	restSpeed         = 1e-3 // per second: slower than this at the ends counts as rest
	limitSlack        = 1e-6 // rounding of positions on a limit
	speedSlack        = 1.02 // rounding of speeds on a limit, and of the cubic between knots
)

// At is the trajectory at time t after its start: cubic between knots in joints and base, the first knot
// before the start and the last one, at rest, after the end. The point owns its slices. An empty
// trajectory gives the zero Point.
func (t Trajectory) At(d time.Duration) Point {
	n := len(t.Points)
	if n == 0 {
		return Point{}
	}
	i := sort.Search(n, func(i int) bool { return t.Points[i].T > d })
	if i == 0 || i == n {
		p := t.Points[min(i, n-1)]
		return Point{T: d, Q: append([]float64(nil), p.Q...), QD: make([]float64, len(p.Q)), Base: p.Base}
	}
	a, b := t.Points[i-1], t.Points[i]
	h := (b.T - a.T).Seconds()
	c := newCubic((d-a.T).Seconds()/h, h)
	p := Point{T: d, Q: make([]float64, len(a.Q)), QD: make([]float64, len(a.Q))}
	for k := range a.Q {
		p.Q[k], p.QD[k] = c.at(a.Q[k], a.QD[k], b.Q[k], b.QD[k])
	}
	p.Base.X, p.BaseV.X = c.at(a.Base.X, a.BaseV.X, b.Base.X, b.BaseV.X)
	p.Base.Y, p.BaseV.Y = c.at(a.Base.Y, a.BaseV.Y, b.Base.Y, b.BaseV.Y)
	p.Base.Yaw, p.BaseV.Yaw = c.at(a.Base.Yaw, a.BaseV.Yaw, b.Base.Yaw, b.BaseV.Yaw)
	return p
}

// cubic holds the Hermite weights of one instant of one interval.
type cubic struct{ p0, v0, p1, v1, dp0, dv0, dp1, dv1 float64 }

func newCubic(s, h float64) cubic {
	s2, s3 := s*s, s*s*s
	return cubic{
		p0: 2*s3 - 3*s2 + 1, v0: h * (s3 - 2*s2 + s), p1: -2*s3 + 3*s2, v1: h * (s3 - s2),
		dp0: (6*s2 - 6*s) / h, dv0: 3*s2 - 4*s + 1, dp1: (-6*s2 + 6*s) / h, dv1: 3*s2 - 2*s,
	}
}

func (c cubic) at(p0, v0, p1, v1 float64) (pos, vel float64) {
	return c.p0*p0 + c.v0*v0 + c.p1*p1 + c.v1*v1, c.dp0*p0 + c.dv0*v0 + c.dp1*p1 + c.dv1*v1
}

// Check is the refusal that every Body makes before anything moves: the trajectory must have the model's
// shape, finite numbers, increasing times from 0, positions and speeds inside the model's limits, begin
// at the measured state s and end at rest. The error names the knot, the value and the limit.
//
// A joint that is measured past its limit may start there, as long as it goes no further.
func (t Trajectory) Check(m *Model, s State) error {
	if len(t.Points) < 2 {
		return fmt.Errorf("trajectory has %d knots, needs at least 2", len(t.Points))
	}
	if !s.Complete(m) {
		return fmt.Errorf("trajectory refused: the measured state of %s is incomplete", m.Name)
	}
	for i := range t.Points {
		if err := t.checkKnot(m, s, i); err != nil {
			return err
		}
	}
	if err := t.checkStart(m, s); err != nil {
		return err
	}
	return t.checkRest(m)
}

func (t Trajectory) checkKnot(m *Model, s State, i int) error {
	p := t.Points[i]
	if len(p.Q) != len(m.Joints) || len(p.QD) != len(m.Joints) {
		return fmt.Errorf("knot %d has %d positions and %d speeds, %s has %d joints", i, len(p.Q), len(p.QD), m.Name, len(m.Joints))
	}
	if i == 0 && p.T != 0 {
		return fmt.Errorf("knot 0 is at %v, must be at 0", p.T)
	}
	if i > 0 && p.T <= t.Points[i-1].T {
		return fmt.Errorf("knot %d is at %v, not after knot %d at %v", i, p.T, i-1, t.Points[i-1].T)
	}
	if !p.Base.Finite() || !p.BaseV.Finite() {
		return fmt.Errorf("knot %d: base %v, speed %v is not finite", i, p.Base, p.BaseV)
	}
	if !m.Mobile && (baseGap(p.Base, s.Base) != geom.SE2{} || p.BaseV != geom.SE2{}) {
		return fmt.Errorf("knot %d moves the base to %v, %s has none that moves", i, p.Base, m.Name)
	}
	for k, j := range m.Joints {
		if err := t.checkJoint(j, s.Q[k], i, k); err != nil {
			return err
		}
	}
	return nil
}

func (t Trajectory) checkJoint(j Joint, measured float64, i, k int) error {
	q, v := t.Points[i].Q[k], t.Points[i].QD[k]
	if !finite(q) || !finite(v) {
		return fmt.Errorf("knot %d: %s at %v, speed %v is not finite", i, j.Name, q, v)
	}
	lo, hi := math.Min(j.Min, measured)-limitSlack, math.Max(j.Max, measured)+limitSlack
	if !(q >= lo && q <= hi) {
		return fmt.Errorf("knot %d: %s at %.4f, limits %.4f to %.4f", i, j.Name, q, j.Min, j.Max)
	}
	if !(math.Abs(v) <= j.Vel*speedSlack) {
		return fmt.Errorf("knot %d: %s at %.3f per second, limit %.3f", i, j.Name, v, j.Vel)
	}
	if i == 0 {
		return nil
	}
	step, dt := math.Abs(q-t.Points[i-1].Q[k]), (t.Points[i].T - t.Points[i-1].T).Seconds()
	if !(step <= j.Vel*speedSlack*dt+limitSlack) {
		return fmt.Errorf("knot %d: %s jumps by %.4f in %.3f s, limit %.3f per second", i, j.Name, step, dt, j.Vel)
	}
	return nil
}

func (t Trajectory) checkStart(m *Model, s State) error {
	p := t.Points[0]
	for k, j := range m.Joints {
		tol := StartTolRevolute
		if j.Prismatic {
			tol = StartTolPrismatic
		}
		if d := math.Abs(p.Q[k] - s.Q[k]); !(d <= tol) {
			return fmt.Errorf("trajectory starts with %s at %.4f, measured %.4f, allowed difference %.3f", j.Name, p.Q[k], s.Q[k], tol)
		}
	}
	gap := baseGap(p.Base, s.Base)
	if !(gap.Norm() <= StartTolBase && math.Abs(gap.Yaw) <= StartTolRevolute) {
		return fmt.Errorf("trajectory starts with the base %.3f m and %.3f rad from where it is measured, allowed %.3f m and %.3f rad",
			gap.Norm(), gap.Yaw, StartTolBase, StartTolRevolute)
	}
	return nil
}

func (t Trajectory) checkRest(m *Model) error {
	for _, i := range []int{0, len(t.Points) - 1} {
		p := t.Points[i]
		for k, j := range m.Joints {
			if !(math.Abs(p.QD[k]) <= restSpeed) {
				return fmt.Errorf("knot %d, an end, has %s at %.4f per second, must be at rest", i, j.Name, p.QD[k])
			}
		}
		if !(p.BaseV.Norm() <= restSpeed && math.Abs(p.BaseV.Yaw) <= restSpeed) {
			return fmt.Errorf("knot %d, an end, has the base at %.4f m/s, must be at rest", i, p.BaseV.Norm())
		}
	}
	return nil
}

func baseGap(a, b geom.SE2) geom.SE2 {
	return geom.SE2{X: a.X - b.X, Y: a.Y - b.Y, Yaw: geom.WrapAngle(a.Yaw - b.Yaw)}
}
