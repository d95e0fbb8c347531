package safety

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"viad/drivers/robot"
)

// jumpy is a clock that a test sets, over time that goes on as it does.
type jumpy struct {
	robot.WallClock
	mu sync.Mutex
	by time.Duration
}

func (c *jumpy) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.WallClock.Now().Add(c.by)
}

func (c *jumpy) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by += by
}

// TestDeafRobotUnderAJumpingClock: a robot that nothing ends, and whose stop hangs, is given up after as much time as
// really passed, whichever way its clock was set meanwhile.
func TestDeafRobotUnderAJumpingClock(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c := &jumpy{}
			b := newBench(t, func(o *Options) { o.Clock = c })
			b.robot.clock = c
			begun, end, hang := make(chan struct{}), make(chan struct{}), make(chan struct{})
			b.robot.goes = deaf(begun, end)
			b.robot.stops = func(context.Context) error { <-hang; return nil } // and does not heed its context
			p := b.plan()
			go func() { <-begun; <-b.clock.After(time.Second); c.jump(by) }()
			began := b.clock.Now()
			out, err := b.guard.Go(t.Context(), p)
			took := b.clock.Now().Sub(began)
			least := map[bool]time.Duration{true: 0, false: 30 * time.Second}[by > 0]
			if err != nil || out.Stop != robot.StopNotConfirmed || b.guard.Latched() == "" || took < least || took > 45*time.Second {
				t.Errorf("clock by %v: %+v, %v after %v, latched %q", by, out.Result, err, took, b.guard.Latched())
			}
			begunStop := b.clock.Now()
			if err := b.guard.Stop(t.Context()); err == nil || b.clock.Now().Sub(begunStop) > 4*time.Second+2*beat {
				t.Errorf("a stop that hangs: %v after %v", err, b.clock.Now().Sub(begunStop))
			}
			close(end)
			close(hang)
		})
	}
}
