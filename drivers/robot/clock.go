package robot

import (
	"context"
	"time"
)

// Clock is the time that ages, caps and rates are measured in: the wall clock on a robot, the
// physics clock on a twin. Control, safety, stage and perception use no other.
type Clock interface {
	Now() time.Time
	// After delivers once, d later on this clock.
	After(d time.Duration) <-chan time.Time
	// Ticker delivers every d until stopped. On a twin that runs as fast as it can, time does not pass a
	// tick that has not been received, so a slow reader slows the twin and misses nothing.
	Ticker(d time.Duration) Ticker
}

// Ticker is a periodic signal.
type Ticker interface {
	C() <-chan time.Time
	Stop()
}

// WallClock is the machine's own clock.
type WallClock struct{}

// Now is time.Now, with its monotonic reading.
func (WallClock) Now() time.Time { return time.Now() }

// After is time.After.
func (WallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Ticker is time.NewTicker.
func (WallClock) Ticker(d time.Duration) Ticker { return wallTicker{time.NewTicker(d)} }

type wallTicker struct{ *time.Ticker }

func (t wallTicker) C() <-chan time.Time { return t.Ticker.C }

// WithTimeout is context.WithTimeout measured on c. The returned cancel must be called.
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	tick := c.Ticker(d)
	go func() {
		defer tick.Stop()
		select {
		case <-tick.C():
			cancel(context.DeadlineExceeded)
		case <-done:
		case <-ctx.Done():
		}
	}()
	var once bool
	return ctx, func() {
		if !once {
			once = true
			close(done)
		}
		cancel(context.Canceled)
	}
}
