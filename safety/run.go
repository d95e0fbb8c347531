package safety

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"viad/drivers/robot"
)

// errStopped is the cause with which a stop ends a motion's context.
var errStopped = errors.New("stopped")

type ended struct {
	out robot.Outcome
	err error
}

// run hands p to the robot and watches that it comes back. The place for a motion stays taken until it does,
// even when nobody waits any more.
func (g *Guard) run(m *motion, p robot.Plan) (robot.Outcome, error) {
	done := make(chan ended, 1)
	go func() {
		out, err := g.inner.Go(m.ctx, p)
		g.settle(out, err)
		g.end(m)
		done <- ended{out, err}
		m.cancel(nil)
	}()
	// The robot walks its own stop ladder at the deadline; the guard steps in when that has failed.
	patience := g.lim.StopTime + time.Second
	late := p.Deadline.Add(patience)
	e, ok, cancelled := g.await(m.ctx, done, late)
	switch {
	case ok:
		return e.out, e.err
	case !cancelled:
		return g.overrun(m, done, "the motion did not end at its deadline")
	}
	if e, ok, _ := g.await(context.Background(), done, g.clock.Now().Add(patience)); ok {
		return e.out, e.err
	}
	return g.overrun(m, done, "the motion was cancelled and did not end")
}

// beat is how finely the guard looks at the clock. It is a ticker and not one long After, because a twin that
// runs as fast as it can may leap to the next time that anybody waits for.
const beat = 50 * time.Millisecond

// await waits for the motion's end, for ctx, or until the clock shows late.
func (g *Guard) await(ctx context.Context, done <-chan ended, late time.Time) (e ended, ok, cancelled bool) {
	t := g.clock.Ticker(beat)
	defer t.Stop()
	for {
		select {
		case e = <-done:
			return e, true, false
		case <-ctx.Done():
			return e, false, true
		case <-t.C():
			if !g.clock.Now().Before(late) {
				return e, false, false
			}
		}
	}
}

// overrun is for a robot that did not stop by itself: the guard stops it, and latches if that fails too.
func (g *Guard) overrun(m *motion, done <-chan ended, why string) (robot.Outcome, error) {
	g.log.Error("motion overran", slog.String("why", why), slog.Duration("since", g.clock.Now().Sub(m.since)))
	m.cancel(errStopped)
	err := g.halt(context.Background())
	if e, ok, _ := g.await(context.Background(), done, g.clock.Now().Add(g.lim.StopTime)); ok {
		if err != nil {
			e.out.Stop = robot.StopNotConfirmed
		}
		return e.out, e.err
	}
	g.setLatch(why + "; " + robot.StopNotConfirmed.String())
	return robot.Outcome{Result: robot.ResultUnknown, Stop: robot.StopNotConfirmed, Why: why, After: g.inner.State(), Took: g.clock.Now().Sub(m.since)}, nil
}

// settle draws the consequences of how a motion ended.
func (g *Guard) settle(out robot.Outcome, err error) {
	now := g.clock.Now()
	if err != nil {
		g.log.Warn("motion failed", slog.Any("err", err))
		g.setUnknown(now)
		return
	}
	g.log.Info("motion ended", slog.String("result", out.Result.String()), slog.String("stop", out.Stop.String()),
		slog.Duration("took", out.Took), slog.Duration("planned", out.Planned),
		slog.Float64("short", out.Ordered.Dist(out.Realized)), slog.String("why", out.Why))
	if out.Result == robot.ResultUnknown {
		g.setUnknown(now)
	}
	if out.Stop != robot.StopConfirmed {
		g.setLatch(out.Stop.String())
	}
}

func (g *Guard) setUnknown(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unknown = now
}

// Stop ends any motion and returns nil when standstill was measured. It never waits behind a motion, works with
// any state, goes on when ctx ends (whoever asked may be gone) and takes at most the operator's stop time. A stop
// that is not confirmed latches.
func (g *Guard) Stop(ctx context.Context) error {
	g.mu.Lock()
	m := g.motion
	g.stopping++
	g.stopped = g.clock.Now()
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.stopping--
		g.stopped = g.clock.Now()
		g.mu.Unlock()
	}()
	if m != nil {
		m.cancel(errStopped)
	}
	return g.halt(ctx)
}

// halt walks the robot's stop ladder within the stop time.
func (g *Guard) halt(ctx context.Context) error {
	begun := g.clock.Now()
	ctx, cancel := g.within(context.WithoutCancel(ctx), g.lim.StopTime)
	defer cancel()
	err := g.inner.Stop(ctx)
	took := slog.Duration("took", g.clock.Now().Sub(begun))
	if err != nil {
		g.log.Error("stop not confirmed", took, slog.Any("err", err))
		g.setLatch(robot.StopNotConfirmed.String())
		if said := robot.StopNotConfirmed.String(); !strings.HasPrefix(err.Error(), said) {
			return fmt.Errorf("%s: %w", said, err)
		}
		return err
	}
	g.log.Warn("stopped", took)
	return nil
}

// within is a context that ends d from now on the guard's clock. The returned cancel must be called.
func (g *Guard) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	late, over := g.clock.Now().Add(d), make(chan struct{})
	go func() {
		defer close(over)
		t := g.clock.Ticker(beat)
		defer t.Stop()
		for g.clock.Now().Before(late) {
			select {
			case <-t.C():
			case <-ctx.Done():
				return
			}
		}
		cancel(context.DeadlineExceeded)
	}()
	return ctx, func() { cancel(context.Canceled); <-over }
}
