package sim

import (
	"fmt"
	"math"

	"viad/drivers/robot"
)

// path is what the servo's reference does over time: a trajectory, a braking ramp, or standing still.
type path interface {
	// at gives the reference t seconds after the path began and whether the path has ended.
	at(t float64, ref []refPoint) bool
}

// stand keeps the reference where it is.
type stand struct{}

func (stand) at(_ float64, ref []refPoint) bool {
	for i := range ref {
		ref[i].v, ref[i].a = 0, 0
	}
	return true
}

// ramp brakes from a measured state: all axes stop together, so that the way stays straight.
type ramp struct {
	from []refPoint
	load []float64 // the servo's integral terms at its start
	t    float64   // seconds to standstill
}

func (r ramp) at(t float64, ref []refPoint) bool {
	t = math.Min(t, r.t)
	for i, f := range r.from {
		a := -f.v / r.t
		ref[i] = refPoint{x: f.x + f.v*t + a*t*t/2, v: f.v + a*t, a: a}
		if t >= r.t {
			ref[i].v, ref[i].a = 0, 0
		}
	}
	return t >= r.t
}

// spline is a trajectory in axis order, cubic between its knots.
type spline struct {
	knots  []knot
	offset []float64 // reference minus trajectory at the start, blended out so that nothing jumps
}

type knot struct {
	t    float64
	x, v []float64
}

const blend = 0.3 // seconds

func (s *spline) at(t float64, ref []refPoint) bool {
	s.sample(t, ref)
	if t < blend {
		// Quintic from 1 to 0 with no speed or acceleration at either end.
		u := t / blend
		w := 1 - u*u*u*(10-15*u+6*u*u)
		wd := -30 * u * u * (1 - u) * (1 - u) / blend
		for i := range ref {
			ref[i].x += w * s.offset[i]
			ref[i].v += wd * s.offset[i]
		}
	}
	return t >= s.knots[len(s.knots)-1].t
}

func (s *spline) sample(t float64, ref []refPoint) {
	k := 0
	for k < len(s.knots) && s.knots[k].t <= t {
		k++
	}
	if k == 0 || k == len(s.knots) {
		end := s.knots[min(k, len(s.knots)-1)]
		for i := range ref {
			ref[i] = refPoint{x: end.x[i]}
		}
		return
	}
	a, b := s.knots[k-1], s.knots[k]
	for i := range ref {
		ref[i] = hermite(t-a.t, b.t-a.t, a.x[i], a.v[i], b.x[i], b.v[i])
	}
}

// hermite is the cubic through (0, x0, v0) and (h, x1, v1) at t.
func hermite(t, h, x0, v0, x1, v1 float64) refPoint {
	d := (x1 - x0) / h
	c2 := (3*d - 2*v0 - v1) / h
	c3 := (v0 + v1 - 2*d) / (h * h)
	return refPoint{
		x: x0 + t*(v0+t*(c2+t*c3)),
		v: v0 + t*(2*c2+t*3*c3),
		a: 2*c2 + 6*c3*t,
	}
}

// What a trajectory may differ from the measured state and from the limits by.
const (
	startTurn  = 0.05  // rad
	startSlide = 0.01  // m
	startSpeed = 0.1   // per second: a trajectory starts at rest
	limitSlack = 0.002 // rad or m
	speedSlack = 1.1
	endSpeed   = 0.02 // per second: a trajectory begins and ends at rest
)

// newSpline checks a trajectory and turns it into axis order. measured is the present axis position.
func newSpline(m *robot.Model, axes []axis, tr robot.Trajectory, measured []float64) (*spline, error) {
	if len(tr.Points) < 2 {
		return nil, fmt.Errorf("twin: a trajectory needs two points or more, got %d", len(tr.Points))
	}
	if tr.Points[0].T != 0 {
		return nil, fmt.Errorf("twin: the trajectory starts at %v, not at 0", tr.Points[0].T)
	}
	if d := tr.Duration(); d > robot.LongestGoal {
		return nil, fmt.Errorf("twin: a trajectory of %v is longer than the %v that one goal may take", d, robot.LongestGoal)
	}
	s := &spline{}
	for i, p := range tr.Points {
		k, err := newKnot(m, p)
		if err != nil {
			return nil, fmt.Errorf("twin: trajectory point %d: %w", i, err)
		}
		if i > 0 && p.T <= tr.Points[i-1].T {
			return nil, fmt.Errorf("twin: trajectory point %d is at %v, not later than the point before", i, p.T)
		}
		s.knots = append(s.knots, k)
	}
	if err := s.checkEnds(axes, measured); err != nil {
		return nil, err
	}
	return s, s.checkLimits(axes)
}

func newKnot(m *robot.Model, p robot.Point) (knot, error) {
	n := len(m.Joints)
	if len(p.Q) != n || len(p.QD) != n {
		return knot{}, fmt.Errorf("%d positions and %d speeds for %d joints", len(p.Q), len(p.QD), n)
	}
	k := knot{t: p.T.Seconds()}
	if m.Mobile {
		k.x = append(k.x, p.Base.X, p.Base.Y, p.Base.Yaw)
		k.v = append(k.v, p.BaseV.X, p.BaseV.Y, p.BaseV.Yaw)
	} else if b, v := p.Base, p.BaseV; !(math.Hypot(b.X, b.Y)+math.Abs(b.Yaw)+math.Hypot(v.X, v.Y)+math.Abs(v.Yaw) <= 1e-6) {
		return knot{}, fmt.Errorf("the base is fixed and cannot go to %v at speed %v", b, v)
	}
	k.x, k.v = append(k.x, p.Q...), append(k.v, p.QD...)
	for i := range k.x {
		if bad(k.x[i]) || bad(k.v[i]) {
			return knot{}, fmt.Errorf("value %d is not a finite number", i)
		}
	}
	return k, nil
}

func bad(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

func (s *spline) checkEnds(axes []axis, measured []float64) error {
	first, last := s.knots[0], s.knots[len(s.knots)-1]
	for i := range axes {
		tol, unit := startTurn, "rad"
		if axes[i].slides {
			tol, unit = startSlide, "m"
		}
		if d := math.Abs(first.x[i] - measured[i]); d > tol {
			return fmt.Errorf("twin: the trajectory starts %.4g %s from where %s is measured; at most %.4g is followed: plan again from the measured state", d, unit, axes[i].spec.name, tol)
		}
		if v := math.Max(math.Abs(first.v[i]), math.Abs(last.v[i])); v > endSpeed {
			return fmt.Errorf("twin: the trajectory begins or ends with %s moving at %.4g per second, not at rest", axes[i].spec.name, v)
		}
	}
	return nil
}

// checkLimits looks at the knots and between them.
func (s *spline) checkLimits(axes []axis) error {
	ref := make([]refPoint, len(axes))
	for k := range s.knots {
		for _, u := range [3]float64{0, 1. / 3, 2. / 3} {
			t := s.knots[k].t
			if k+1 < len(s.knots) {
				t += u * (s.knots[k+1].t - t)
			}
			s.sample(t, ref)
			for i := range axes {
				a := &axes[i]
				if !(ref[i].x >= a.lo-limitSlack && ref[i].x <= a.hi+limitSlack) {
					return fmt.Errorf("twin: the trajectory takes %s to %.4f at %.2f s, outside its range %.4f to %.4f", a.spec.name, ref[i].x, t, a.lo, a.hi)
				}
				if v := math.Abs(ref[i].v); a.spec.vel > 0 && !(v <= a.spec.vel*speedSlack) {
					return fmt.Errorf("twin: the trajectory moves %s at %.3f per second at %.2f s; the machine can do %.3f", a.spec.name, v, t, a.spec.vel)
				}
			}
		}
	}
	return nil
}
