package wire

import (
	"context"
	"math"
	"testing"
	"time"

	"viad/drivers/sensor"
	"viad/ros"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/trajectory_msgs"
	"viad/sim"
)

// steps drives an arm of one joint that is always where it was told to be.
func steps(a *arm, n int, force float64) {
	axes := make([]sim.Drive, 1)
	for range n {
		const step = 2 * time.Millisecond
		r := sim.Reading{Now: a.now.Add(step), Step: step, Contact: force, Axes: make([]sim.Axis, 1), Aperture: 0.04}
		if a.begun {
			r.Axes[0].X, r.Axes[0].V = a.want.q[0], a.want.v[0]
			axes[0].X = a.want.q[0]
		}
		a.govern(&r, axes, new(sim.JawDrive))
	}
}

func oneJoint() *arm {
	a := newArm([]string{"j"}, buildFR3(), Faults{})
	a.now = time.Unix(1000, 0)
	steps(a, 5, 0)
	return a
}

func to(ps ...trajectory_msgs.JointTrajectoryPoint) *control_msgs.FollowJointTrajectory_Goal {
	return &control_msgs.FollowJointTrajectory_Goal{Trajectory: trajectory_msgs.JointTrajectory{JointNames: []string{"j"}, Points: ps}}
}

// A smooth path is no excuse: a quintic over d in time T is fastest in its middle, at 15 d / 8 T.
func TestTooFastTripsAReflex(t *testing.T) {
	for _, c := range []struct {
		d, seconds float64
		trips      bool
	}{{1.2, 1, false}, {1.5, 1, true}, {2.2, 1.25, true}} { // 2.25, 2.81 and 3.3 rad/s; near 0 joint 1 may do 2.62
		a := oneJoint()
		if _, err := a.start(to(point(c.seconds, c.d, 0, 0))); err != nil {
			t.Fatal(err)
		}
		steps(a, 1000, 0)
		if got := a.last == flagSpeed; got != c.trips || got != (a.mode == modeReflex) {
			t.Errorf("%v rad in %v s: mode %d, %q", c.d, c.seconds, a.mode, a.last)
		}
	}
}

// Franka's bounds at places where they can be said by hand.
func TestSpeedsOfAnFR3(t *testing.T) {
	for _, c := range []struct {
		j           int
		q           float64
		least, most float64
	}{
		{0, 0, -2.62, 2.62},
		{0, 2.7501 - 0.12, -2.62, 0.9},   // sqrt(12 x 0.12) = 1.2
		{0, 2.7501 - 0.0075, -2.62, 0},   // sqrt(0.09) is all of the offset
		{0, 3, -2.62, 0},                 // beyond it
		{3, -3.0481 + 0.125, -0.7, 2.62}, // sqrt(8 x 0.125) = 1
		{5, 4.5205 - 0.11, -4.18, 0.75},  // sqrt(11 x 0.11) = 1.1
		{6, -3.0196 + 0.34, -3.05, 5.26}, // sqrt(34 x 0.34) = 3.4
	} {
		least, most := fastFR3(c.j, c.q)
		if math.Abs(least-c.least) > 1e-9 || math.Abs(most-c.most) > 1e-9 {
			t.Errorf("joint %d at %v: %v to %v, want %v to %v", c.j+1, c.q, least, most, c.least, c.most)
		}
	}
}

// Recovery alone brings no controller back on ROS 2: the hardware component comes first.
func TestRecoveryIsThreeSteps(t *testing.T) {
	a := oneJoint()
	steps(a, 3, 2*40)
	if a.mode != modeReflex || a.activate(true) {
		t.Fatalf("mode %d; the controller came up in a reflex", a.mode)
	}
	steps(a, 3, 0)
	recovered := make(chan error, 1)
	go func() { recovered <- a.recover(context.Background()) }()
	for waits := true; waits; {
		select {
		case err := <-recovered:
			if waits = false; err != nil {
				t.Fatal(err)
			}
		default:
			steps(a, 1, 0)
		}
	}
	if a.activate(true) {
		t.Error("the controller was activated without its hardware")
	}
	if !a.bringUp() || !a.activate(true) {
		t.Error("the controller is not active after all three steps")
	}
}

// The twin makes two steps at a time while its clock stands: what is commanded goes on evenly all the same.
func TestCommandsAreEvenInEachStep(t *testing.T) {
	a := oneJoint()
	if _, err := a.start(to(point(1, 0.5, 0, 0))); err != nil {
		t.Fatal(err)
	}
	began, axes := a.now, []sim.Drive{{}}
	for n := 1; n <= 300; n++ {
		r := sim.Reading{Now: began.Add(time.Duration(n/2) * 4 * time.Millisecond), Step: 2 * time.Millisecond, Axes: []sim.Axis{{X: a.want.q[0]}}, Aperture: 0.04}
		axes[0].X = a.want.q[0]
		a.govern(&r, axes, new(sim.JawDrive))
		s := 0.002 * float64(n) // a quintic from rest to rest
		if want := 0.5 * s * s * s * (10 - 15*s + 6*s*s); math.Abs(a.want.q[0]-want) > 1e-9 || a.mode != modeMove {
			t.Fatalf("step %d: at %v, want %v, mode %d %s", n, a.want.q[0], want, a.mode, a.last)
		}
	}
}

// A Panda's limiter takes the edge off a jump of the speed, and the joint arrives; an FR3 trips.
func TestLimiterOfAPanda(t *testing.T) {
	a := newArm([]string{"j"}, buildPanda(), Faults{})
	a.now = time.Unix(1000, 0)
	steps(a, 5, 0)
	straight := point(0.5, 0.3)
	if _, err := a.start(to(straight)); err != nil { // 0.6 rad/s from the first step on
		t.Fatal(err)
	}
	most, was := 0.0, 0.0
	for range 600 {
		steps(a, 1, 0)
		v := a.cmdV[0]
		most, was = math.Max(most, math.Abs(v-was)/0.002), v
	}
	if a.mode != modeMove || most > 15+1e-6 || most < 14 || math.Abs(a.want.q[0]-0.3) > 1e-6 || was != 0 {
		t.Errorf("mode %d %s, up to %v rad/s^2 of 15, at %v with %v rad/s", a.mode, a.last, most, a.want.q[0], was)
	}
	b := oneJoint()
	if _, err := b.start(to(straight)); err != nil {
		t.Fatal(err)
	}
	steps(b, 10, 0)
	if b.last != flagJolt {
		t.Errorf("an FR3: mode %d, %q", b.mode, b.last)
	}
}

// A face that closes leaves no goal waiting, also one that ignores cancels.
func TestLeavingEndsTheGoal(t *testing.T) {
	a := oneJoint()
	r, err := a.start(to(point(5, 0.2, 0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	a.leave()
	select {
	case e := <-r.done:
		if e.code == control_msgs.FollowJointTrajectory_Result_SUCCESSFUL || e.status != ros.GoalAborted {
			t.Error("it counts as reached")
		}
	default:
		t.Error("it waits for ever")
	}
}

// A frozen camera's depth has the new stamp that its colour has: otherwise it looks like a stall.
func TestDepthHasItsColoursStamp(t *testing.T) {
	f := &sensor.Frame{Info: &sensor.Info{}, Stamp: time.Unix(5, 0), Depth: []float32{1.25}}
	f.Info.Intrinsics.W, f.Info.Intrinsics.H = 1, 1
	m := (&stream{}).deep(f, stamp(time.Unix(105, 0)))
	if m.Header.Stamp.Sec != 105 || m.Width != 1 || int(m.Data[0])|int(m.Data[1])<<8 != 1250 {
		t.Errorf("%+v", m)
	}
}
