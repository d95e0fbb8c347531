package wire

import (
	"math"
	"strings"
	"testing"

	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/trajectory_msgs"
)

func point(t, q float64, va ...float64) trajectory_msgs.JointTrajectoryPoint {
	p := trajectory_msgs.JointTrajectoryPoint{Positions: []float64{q}, TimeFromStart: builtin_interfaces.Duration{Sec: int32(t), Nanosec: uint32((t - math.Floor(t)) * 1e9)}}
	if len(va) > 0 {
		p.Velocities = va[:1]
	}
	if len(va) > 1 {
		p.Accelerations = va[1:]
	}
	return p
}

// Points of q = t^3 - 2 t^2 (v = 3 t^2 - 4 t, a = 6 t - 4): cubic and quintic must give it back between them, and rest
// after the last.
func TestSplineIsThePolynomial(t *testing.T) {
	q := func(t float64) float64 { return t*t*t - 2*t*t }
	v := func(t float64) float64 { return 3*t*t - 4*t }
	a := func(t float64) float64 { return 6*t - 4 }
	end := 4.0 / 3 // v is 0
	for name, points := range map[string][]trajectory_msgs.JointTrajectoryPoint{
		"cubic":   {point(0.5, q(0.5), v(0.5)), point(end, q(end), 0)},
		"quintic": {point(0.5, q(0.5), v(0.5), a(0.5)), point(end, q(end), 0, a(end))},
	} {
		from := knot{q: []float64{0}, v: []float64{0}, a: []float64{-4}}
		s, err := newSpline(&trajectory_msgs.JointTrajectory{JointNames: []string{"j"}, Points: points}, []string{"j"}, from)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []float64{0, 0.1, 0.49, 0.5, 0.9, 1.3} {
			x, xd, xdd := s.at(at, 0)
			if math.Abs(x-q(at)) > 1e-8 || math.Abs(xd-v(at)) > 1e-7 || math.Abs(xdd-a(at)) > 1e-6 {
				t.Errorf("%s at %.2f: %.6f %.6f %.6f, want %.6f %.6f %.6f", name, at, x, xd, xdd, q(at), v(at), a(at))
			}
		}
		if x, xd, _ := s.at(2, 0); math.Abs(x-q(end)) > 1e-9 || xd != 0 {
			t.Errorf("%s after its end: %v %v", name, x, xd)
		}
	}
}

func TestGoalsThatAreRefused(t *testing.T) {
	from := knot{q: []float64{0}, v: []float64{0}, a: []float64{0}}
	for words, g := range map[string]*trajectory_msgs.JointTrajectory{
		"no points":       {JointNames: []string{"j"}},
		"is not named":    {JointNames: []string{"k"}, Points: []trajectory_msgs.JointTrajectoryPoint{point(1, 1)}},
		"takes no part":   {JointNames: []string{"j", "k"}, Points: []trajectory_msgs.JointTrajectoryPoint{point(1, 1)}},
		"do not increase": {JointNames: []string{"j"}, Points: []trajectory_msgs.JointTrajectoryPoint{point(1, 1), point(1, 2)}},
		"has a velocity":  {JointNames: []string{"j"}, Points: []trajectory_msgs.JointTrajectoryPoint{point(1, 1, 0.1)}},
		"not finite":      {JointNames: []string{"j"}, Points: []trajectory_msgs.JointTrajectoryPoint{point(1, math.NaN())}},
	} {
		if _, err := newSpline(g, []string{"j"}, from); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}
