package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/trajectory_msgs"
)

// knot is a point of a trajectory in the arm's own joint order; T in seconds from its start. v and a are nil when the
// goal did not give them.
type knot struct {
	t       float64
	q, v, a []float64
}

// spline is what a joint trajectory controller follows.
type spline []knot

// errGoal is a goal that the controller refuses to begin with.
var errGoal = errors.New("invalid goal")

// newSpline reads a goal's points into the joint order given, as the trajectory controller does that it stands for: the
// one of ROS 2, or, one, of ROS 1. They begin at from, where the controller wants to be now. Only franka_ros' takes a
// goal without points, to stop. Neither asks whether the numbers are finite.
func newSpline(t *trajectory_msgs.JointTrajectory, joints []string, from knot, now time.Time, one bool) (spline, error) {
	at, err := order(t.JointNames, joints)
	switch {
	case err != nil:
		return nil, err
	case len(t.Points) == 0 && one:
		return nil, nil
	case len(t.Points) == 0:
		return nil, fmt.Errorf("%w: no points", errGoal)
	}
	shift, err := delay(t, now)
	if err != nil {
		return nil, err
	}
	var out spline
	for n, p := range t.Points {
		k := knot{t: seconds(p.TimeFromStart) + shift}
		if n > 0 && k.t <= seconds(t.Points[n-1].TimeFromStart)+shift {
			return nil, fmt.Errorf("%w: times do not increase at point %d", errGoal, n)
		}
		if k.q, err = pick(p.Positions, at, true); err == nil {
			if k.v, err = pick(p.Velocities, at, false); err == nil {
				k.a, err = pick(p.Accelerations, at, false)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%w: point %d: %w", errGoal, n, err)
		}
		out = append(out, k)
	}
	if one { // what has passed is dropped, and the rest begins at the present
		out = slices.DeleteFunc(out, func(k knot) bool { return k.t <= 0 })
		if len(out) == 0 {
			return nil, fmt.Errorf("%w: all its points lie in the past", errGoal)
		}
	} else if v := out[len(out)-1].v; slices.ContainsFunc(v, func(x float64) bool { return math.Abs(x) > resting }) {
		return nil, fmt.Errorf("%w: the last point has a velocity", errGoal)
	}
	if out[0].t > 0 {
		out = append(spline{from}, out...)
	}
	return out, nil
}

// resting is the largest speed of a last point.
const resting = 1.2e-7

func seconds(d builtin_interfaces.Duration) float64 {
	return float64(d.Sec) + float64(d.Nanosec)*1e-9
}

// order is where in the message each joint is.
func order(named, joints []string) ([]int, error) {
	if len(named) != len(joints) {
		return nil, fmt.Errorf("%w: %d joints named, the controller has %d and takes no part of them", errGoal, len(named), len(joints))
	}
	at := make([]int, len(joints))
	for i, n := range joints {
		if at[i] = slices.Index(named, n); at[i] < 0 {
			return nil, fmt.Errorf("%w: joint %s is not named", errGoal, n)
		}
	}
	return at, nil
}

// delay is how many seconds from now a trajectory begins. No stamp is now. One that ends in the past is refused; its end
// is taken to be after the sum of all its times, as the controller takes it.
func delay(t *trajectory_msgs.JointTrajectory, now time.Time) (float64, error) {
	s := t.Header.Stamp
	if s.Sec == 0 && s.Nanosec == 0 {
		return 0, nil
	}
	shift := time.Unix(int64(s.Sec), int64(s.Nanosec)).Sub(now).Seconds()
	sum := 0.0
	for _, p := range t.Points {
		sum += seconds(p.TimeFromStart)
	}
	if shift+sum < 0 {
		return 0, fmt.Errorf("%w: it ends in the past", errGoal)
	}
	return shift, nil
}

func pick(x []float64, at []int, must bool) ([]float64, error) {
	if len(x) == 0 && !must {
		return nil, nil
	}
	if len(x) != len(at) {
		return nil, fmt.Errorf("%d numbers for %d joints", len(x), len(at))
	}
	out := make([]float64, len(at))
	for i, k := range at {
		out[i] = x[k]
	}
	return out, nil
}

// end is when the last point is due, from the start.
func (s spline) end() time.Duration { return time.Duration(s[len(s)-1].t * float64(time.Second)) }

// at is where the controller wants joint j to be t seconds after the start.
func (s spline) at(t float64, j int) (q, v, a float64) {
	last := s[len(s)-1]
	if t >= last.t {
		return last.q[j], 0, 0
	}
	i := 1
	for s[i].t <= t {
		i++
	}
	x, y := s[i-1], s[i]
	h, u := y.t-x.t, t-x.t
	d := (y.q[j] - x.q[j]) / h
	switch {
	case x.v == nil || y.v == nil:
		return x.q[j] + d*u, d, 0
	case x.a == nil || y.a == nil:
		c2, c3 := (3*d-2*x.v[j]-y.v[j])/h, (x.v[j]+y.v[j]-2*d)/(h*h)
		return x.q[j] + u*(x.v[j]+u*(c2+u*c3)), x.v[j] + u*(2*c2+u*3*c3), 2*c2 + u*6*c3
	}
	// Hermite's quintic in the normalised time w.
	w := u / h
	v0, v1, a0, a1 := x.v[j]*h, y.v[j]*h, x.a[j]*h*h, y.a[j]*h*h
	e := y.q[j] - x.q[j]
	k3 := 10*e - 6*v0 - 4*v1 - (3*a0-a1)/2
	k4 := -15*e + 8*v0 + 7*v1 + (3*a0-2*a1)/2
	k5 := 6*e - 3*v0 - 3*v1 - (a0-a1)/2
	q = x.q[j] + w*(v0+w*(a0/2+w*(k3+w*(k4+w*k5))))
	v = (v0 + w*(a0+w*(3*k3+w*(4*k4+w*5*k5)))) / h
	a = (a0 + w*(6*k3+w*(12*k4+w*20*k5))) / (h * h)
	return q, v, a
}
