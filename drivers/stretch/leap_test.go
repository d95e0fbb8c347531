package stretch

import (
	"strings"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// A driver that is started anew counts its odometry from zero: the base does not drive to where the plan then seems to be.
func TestOdometryLeaps(t *testing.T) {
	t.Parallel()
	generations(t, func(t *testing.T, g Generation) {
		b := start(t, g)
		done := b.follow(b.plan(6*time.Second, geom.SE2{X: 0.6}))
		b.wait("on its way", func(s robot.State) bool { return s.Base.X > 0.2 })
		b.d.set(func(d *double) { d.f.odomFrom = 1.2 })
		at := b.machine().Base.X
		if err := b.ends(done); err == nil || !strings.Contains(err.Error(), "odometry leaps") {
			t.Errorf("it ends with %v", err)
		}
		b.rests(2 * time.Second)
		if x := b.machine().Base.X; x > at+0.15 {
			t.Errorf("the base went on from %.3f to %.3f m", at, x)
		}
		b.wait("ready again", func(s robot.State) bool { return s.Mode == robot.ModeReady })
	})
}

// Two robots under one topic are not taken for one that moves fast.
func TestTwoRobotsOneTopic(t *testing.T) {
	t.Parallel()
	b := start(t, GenB)
	done := b.follow(b.plan(4*time.Second, geom.SE2{}, 0.2))
	b.d.set(func(d *double) { d.f.twin = 0.3 })
	if err := b.ends(done); err == nil || !strings.Contains(err.Error(), "two programs") {
		t.Errorf("it ends with %v", err)
	}
	b.blocked("joint_states leap")
	if err := b.holdHere(t.Context()); err == nil {
		t.Error("the arm is held at a place that one of two robots has")
	}
	b.d.set(func(d *double) { d.f.twin = 0 })
	b.wait("ready again", func(s robot.State) bool { return s.Mode == robot.ModeReady })
}

// A joint that stands twice in a message is none that is measured.
func TestJointTwice(t *testing.T) {
	t.Parallel()
	b := start(t, GenA)
	b.d.set(func(d *double) { d.f.doubled = true })
	b.blocked("lack a joint")
}
