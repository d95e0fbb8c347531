package safety

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestAPlanFromBeforeAStopDoesNotRun: a stop also ends what was asked for before it and has not begun yet.
func TestAPlanFromBeforeAStopDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		old := b.plan()
		<-b.clock.After(time.Millisecond)
		if err := b.guard.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Before the next reading a plan could only be made from what was read before the stop ended.
		if r := b.guard.Ready(); r == nil || r.Rule != RuleBusy {
			t.Errorf("right after the stop: %v", r)
		}
		<-b.clock.After(time.Millisecond)
		if _, err := b.guard.Go(context.Background(), old); refusal(err) != RuleStopping || b.robot.moves() != 0 {
			t.Errorf("a plan from before the stop: %v, %d moves", err, b.robot.moves())
		}
		<-b.clock.After(time.Millisecond)
		if _, err := b.guard.Go(context.Background(), b.plan()); err != nil || b.robot.moves() != 1 {
			t.Errorf("a plan from after the stop: %v, %d moves", err, b.robot.moves())
		}
	})
}
