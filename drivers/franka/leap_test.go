package franka

import (
	"math"
	"strings"
	"testing"
	"time"

	"viad/drivers/robot"
)

// Two arms under one topic are not taken for one: no motion begins or goes on, and the arm is not held where the other is.
func TestTwoArmsOneTopic(t *testing.T) {
	b := start(t)
	done := b.follow(b.swing(0.4, 4*time.Second))
	b.moves()
	b.d.set(func(d *double) { d.f.twin = 0.5 })
	b.refused(<-done, "leap", "two programs")
	b.says(robot.ModeFaulted, "joint 2", "two programs")
	was := b.d.truth()
	sent := goals(b.d)
	if err := b.Halt(t.Context(), robot.RungHold); err == nil || !strings.Contains(err.Error(), "two programs") {
		t.Errorf("holding ends with %v", err)
	}
	if n := goals(b.d); n != sent {
		t.Errorf("%d goals were sent to places that one of two arms has", n-sent)
	}
	if d := math.Abs(b.d.truth().Q[1] - was.Q[1]); d > 0.1 {
		t.Errorf("joint 2 went on by %.3f rad", d)
	}
	b.d.set(func(d *double) { d.f.twin = 0 })
	b.ready()
}

// A joint that stands twice in a message is none that is measured.
func TestJointTwice(t *testing.T) {
	b := start(t)
	b.d.set(func(d *double) { d.f.doubled = true })
	b.eventually("it is missing", func() bool { return b.State().Q == nil })
}
