package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"viad/ros/msg/control_msgs"
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

// newSpline reads a goal's points into the joint order given. They begin at from, where the controller wants to be now.
func newSpline(t *trajectory_msgs.JointTrajectory, joints []string, from knot) (spline, error) {
	if len(t.Points) == 0 {
		return nil, fmt.Errorf("%w: no points", errGoal)
	}
	if len(t.JointNames) != len(joints) {
		return nil, fmt.Errorf("%w: %d joints named, the controller has %d and takes no part of them", errGoal, len(t.JointNames), len(joints))
	}
	at := make([]int, len(joints))
	for i, n := range joints {
		if at[i] = slices.Index(t.JointNames, n); at[i] < 0 {
			return nil, fmt.Errorf("%w: joint %s is not named", errGoal, n)
		}
	}
	out := spline{from}
	last := 0.0
	for n, p := range t.Points {
		k := knot{t: float64(p.TimeFromStart.Sec) + float64(p.TimeFromStart.Nanosec)*1e-9}
		if n > 0 && k.t <= last || k.t < 0 {
			return nil, fmt.Errorf("%w: times do not increase at point %d", errGoal, n)
		}
		last = k.t
		var err error
		if k.q, err = pick(p.Positions, at, true); err == nil {
			if k.v, err = pick(p.Velocities, at, false); err == nil {
				k.a, err = pick(p.Accelerations, at, false)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%w: point %d: %w", errGoal, n, err)
		}
		if k.t <= 0 { // the present, over again
			continue
		}
		out = append(out, k)
	}
	for _, v := range out[len(out)-1].v {
		if math.Abs(v) > 1e-6 {
			return nil, fmt.Errorf("%w: the last point has a velocity", errGoal)
		}
	}
	return out, nil
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
		if out[i] = x[k]; math.IsNaN(x[k]) || math.IsInf(x[k], 0) {
			return nil, errors.New("a number is not finite")
		}
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

// limits are a goal's tolerances per joint: 0 is not watched.
type limits struct {
	path, goal []float64
	late       time.Duration // after the end until the goal must be met; 0: for ever
}

func tolerances(g *control_msgs.FollowJointTrajectory_Goal, joints []string) limits {
	l := limits{path: make([]float64, len(joints)), goal: make([]float64, len(joints))}
	set := func(to []float64, from []control_msgs.JointTolerance) {
		for _, t := range from {
			if i := slices.Index(joints, t.Name); i >= 0 && t.Position > 0 {
				to[i] = t.Position
			}
		}
	}
	set(l.path, g.PathTolerance)
	set(l.goal, g.GoalTolerance)
	l.late = max(0, time.Duration(g.GoalTimeTolerance.Sec)*time.Second+time.Duration(g.GoalTimeTolerance.Nanosec))
	return l
}
