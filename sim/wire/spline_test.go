package wire

import (
	"math"
	"strings"
	"testing"
	"time"

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
		s, err := newSpline(&trajectory_msgs.JointTrajectory{JointNames: []string{"j"}, Points: points}, []string{"j"}, from, time.Time{}, false)
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

// What the trajectory controllers of ROS 2 and of ROS 1 take and what they reject before anything moves.
func TestGoalsThatAreRejected(t *testing.T) {
	type traj = trajectory_msgs.JointTrajectory
	now := time.Unix(1000, 0)
	at := func(stamp float64, ps ...trajectory_msgs.JointTrajectoryPoint) *traj {
		m := &traj{JointNames: []string{"j"}, Points: ps}
		m.Header.Stamp = builtin_interfaces.Time{Sec: int32(stamp), Nanosec: uint32((stamp - math.Floor(stamp)) * 1e9)}
		return m
	}
	wide := point(1, 1)
	wide.Velocities = []float64{0, 0}
	for _, c := range []struct {
		what     string
		goal     *traj
		two, one string // the reason; "" is taken
	}{
		{"no points", at(0), "no points", ""},
		{"another joint", &traj{JointNames: []string{"k"}, Points: []trajectory_msgs.JointTrajectoryPoint{point(1, 1)}}, "is not named", "is not named"},
		{"a joint too many", &traj{JointNames: []string{"j", "k"}, Points: []trajectory_msgs.JointTrajectoryPoint{point(1, 1)}}, "takes no part", "takes no part"},
		{"no joints", &traj{Points: []trajectory_msgs.JointTrajectoryPoint{point(1, 1)}}, "0 joints", "0 joints"},
		{"the same time twice", at(0, point(1, 1), point(1, 2)), "do not increase", "do not increase"},
		{"backwards", at(0, point(2, 1), point(1, 2)), "do not increase", "do not increase"},
		{"two speeds for one joint", at(0, wide), "2 numbers", "2 numbers"},
		{"no positions", at(0, trajectory_msgs.JointTrajectoryPoint{Velocities: []float64{0}, TimeFromStart: builtin_interfaces.Duration{Sec: 1}}), "0 numbers", "0 numbers"},
		{"moving at the end", at(0, point(1, 1, 0.1)), "has a velocity", ""},
		{"over long ago", at(990, point(1, 1)), "in the past", "in the past"},
		{"over, and the sum of its times is not", at(995, point(2, 1), point(4, 2)), "", "in the past"},
		{"begun a second ago", at(999, point(2, 1)), "", ""},
		{"in a second", at(1001, point(2, 1)), "", ""},
		{"only the present", at(0, point(0, 1)), "", "in the past"},
		{"no number", at(0, point(1, math.NaN())), "", ""},
	} {
		for _, one := range []bool{false, true} {
			from := knot{q: []float64{0}, v: []float64{0}, a: []float64{0}}
			want := map[bool]string{false: c.two, true: c.one}[one]
			_, err := newSpline(c.goal, []string{"j"}, from, now, one)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, ROS 1 %v: %v, want %q", c.what, one, err, want)
			}
		}
	}
}

// A point at the start is where the controller of ROS 2 wants the arm to be at once; the one of ROS 1 drops it. A stamp
// puts everything off, or in its middle.
func TestWhereATrajectoryBegins(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		what  string
		one   bool
		stamp int32
		ps    []trajectory_msgs.JointTrajectoryPoint
		t, q  float64 // so long after now it wants to be here
	}{
		{"from elsewhere at once", false, 0, []trajectory_msgs.JointTrajectoryPoint{point(0, 3), point(1, 4)}, 0, 3},
		{"from elsewhere, later", false, 0, []trajectory_msgs.JointTrajectoryPoint{point(0, 3), point(1, 4)}, 0.5, 3.5},
		{"bridged", true, 0, []trajectory_msgs.JointTrajectoryPoint{point(0, 3), point(1, 4)}, 0.5, 2.5},
		{"from the present", false, 0, []trajectory_msgs.JointTrajectoryPoint{point(1, 4)}, 0.5, 2.5},
		{"in two seconds", false, 1002, []trajectory_msgs.JointTrajectoryPoint{point(1, 4)}, 1.5, 2.5},
		{"begun a second ago", false, 999, []trajectory_msgs.JointTrajectoryPoint{point(0, 3), point(2, 5)}, 0, 4},
		{"begun a second ago, bridged", true, 999, []trajectory_msgs.JointTrajectoryPoint{point(0, 3), point(2, 5)}, 0.5, 3},
	} {
		m := &trajectory_msgs.JointTrajectory{JointNames: []string{"j"}, Points: c.ps}
		m.Header.Stamp.Sec = c.stamp
		s, err := newSpline(m, []string{"j"}, knot{q: []float64{1}, v: []float64{0}, a: []float64{0}}, now, c.one)
		if err != nil {
			t.Fatal(err)
		}
		if q, _, _ := s.at(c.t, 0); math.Abs(q-c.q) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.what, q, c.q)
		}
	}
}
