package safety

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	m.handed.Store(true)
	go func() {
		out, err := g.inner.Go(m.ctx, p)
		m.back.Store(true)
		if err == nil {
			g.believe(m, &out)
		}
		g.settle(out, err)
		g.end(m)
		done <- ended{out, err}
		m.cancel(nil)
	}()
	// The robot walks its own stop ladder at the deadline; the guard steps in when that has failed.
	patience := g.lim.StopTime + time.Second
	e, ok, cancelled := g.await(m.ctx, m, done, p.Deadline.Sub(g.clock.Now())+patience)
	switch {
	case ok:
		return e.out, e.err
	case !cancelled:
		return g.overrun(m, done, "the motion did not end at its deadline")
	}
	if e, ok, _ := g.await(context.Background(), m, done, patience); ok {
		return e.out, e.err
	}
	return g.overrun(m, done, "the motion was cancelled and did not end")
}

// beat is how finely the guard looks at the clock. It is a ticker and not one long After, because a twin that
// runs as fast as it can may leap to the next time that anybody waits for.
const beat = 50 * time.Millisecond

// patient is how long something is waited for on a clock that may jump: until the clock says so, or until as many
// beats were received as fit into it.
type patient struct {
	clock robot.Clock
	late  time.Time
	beats int
}

func (g *Guard) patient(d time.Duration) patient {
	return patient{g.clock, g.clock.Now().Add(d), int(d/beat) + 2}
}

// over counts one beat and reports whether it was the last.
func (p *patient) over() bool {
	p.beats--
	return p.beats <= 0 || !p.clock.Now().Before(p.late)
}

// await waits for the motion's end, for ctx, or for d. From a motion that has come back its end is not far.
func (g *Guard) await(ctx context.Context, m *motion, done <-chan ended, d time.Duration) (e ended, ok, cancelled bool) {
	t := g.clock.Ticker(beat)
	defer t.Stop()
	for left := g.patient(d); ; {
		select {
		case e = <-done:
			return e, true, false
		case <-ctx.Done():
			return e, false, true
		case <-t.C():
			if left.over() && !m.back.Load() {
				return e, false, false
			}
		}
	}
}

// overrun is for a robot that did not stop by itself: the guard stops it, and latches if that fails too.
func (g *Guard) overrun(m *motion, done <-chan ended, why string) (robot.Outcome, error) {
	g.log.Error("motion overran", slog.String("why", why), slog.Duration("since", g.clock.Now().Sub(m.since)))
	m.cancel(errors.New(why))
	err := g.halt(robot.By(context.Background(), "the guard: "+why), g.inner.Stop, slog.String("why", why))
	if e, ok, _ := g.await(context.Background(), m, done, g.lim.StopTime); ok {
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
		slog.Float64("short", out.Ordered.Dist(out.Realized)), slog.Float64("apart", out.Followed.Apart),
		slog.Int("readings", out.Followed.Readings), slog.String("why", out.Why))
	if out.Result == robot.ResultUnknown {
		g.setUnknown(now)
	}
	if out.Result == robot.ResultFaulted {
		g.countFault(now)
	}
	if out.Stop != robot.StopConfirmed {
		g.setLatch(out.Stop.String())
	}
}

// So many motions that end in a fault within so long lock motion out: a robot that is sent into the same reflex again
// and again does not get better.
const (
	faultsMost = 3
	faultSpan  = time.Minute
)

func (g *Guard) countFault(now time.Time) {
	g.mu.Lock()
	g.faults = append(slices.DeleteFunc(g.faults, func(t time.Time) bool { return now.Sub(t) > faultSpan }), now)
	n := len(g.faults)
	if n >= faultsMost {
		g.faults = nil
	}
	g.mu.Unlock()
	if n >= faultsMost {
		g.setLatch(fmt.Sprintf("%d motions ended in a fault within %v", n, faultSpan))
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
func (g *Guard) Stop(ctx context.Context) error { return g.stop(ctx, g.inner.Stop) }

func (g *Guard) stop(ctx context.Context, ladder func(context.Context) error, more ...any) error {
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
		if m.handed.Load() { // the robot's own stop ends it, by one ladder and not by two
			defer m.cancel(errStopped)
		} else {
			m.cancel(errStopped)
		}
	}
	return g.halt(ctx, ladder, append(more, slog.Bool("moving", m != nil))...)
}

// halt walks the robot's stop ladder within the stop time. A ladder that does not come back is left behind.
func (g *Guard) halt(ctx context.Context, ladder func(context.Context) error, more ...any) error {
	begun, from := g.clock.Now(), g.inner.State()
	more = append(slices.Clip(more), slog.String("by", robot.Asker(ctx)))
	ctx, cancel := g.within(context.WithoutCancel(ctx), g.lim.StopTime)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- ladder(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = fmt.Errorf("no answer within %v", g.lim.StopTime)
	}
	took := append(slices.Clip(more), slog.Duration("took", g.clock.Now().Sub(begun)), slog.Duration("limit", g.lim.StopTime))
	if to := g.inner.State(); from.Complete(g.model) && to.Complete(g.model) {
		took = append(took, slog.Float64("coasted", g.kin.Tool(from.Base, from.Q).Dist(g.kin.Tool(to.Base, to.Q))))
	}
	if err != nil {
		g.log.Error("stop not confirmed", append(took, slog.Any("err", err))...)
		g.setLatch(robot.StopNotConfirmed.String())
		if said := robot.StopNotConfirmed.String(); !strings.HasPrefix(err.Error(), said) {
			return fmt.Errorf("%s: %w", said, err)
		}
		return err
	}
	g.log.Warn("stopped", took...)
	return nil
}

// within is a context that ends d from now on the guard's clock. The returned cancel must be called.
func (g *Guard) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	left, over := g.patient(d), make(chan struct{})
	go func() {
		defer close(over)
		t := g.clock.Ticker(beat)
		defer t.Stop()
		for !left.over() {
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
