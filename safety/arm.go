package safety

import (
	"context"
	"log/slog"
	"time"

	"viad/drivers/robot"
)

// Status is the guard's own state.
type Status struct {
	Armed   bool
	ArmedBy string    // who armed it; empty when disarmed
	Latched string    // why motion is latched off; empty when it is not
	Since   time.Time // of the latch
	Unkept  string    // why the next start will not know what the latch is now; empty when it will
	Moving  bool      // a motion is being checked or is under way
	Unknown bool      // the last motion's outcome is unknown and no newer state has come
	Refused *Refused  // what a motion would be told now; nil: it may go
}

// Status is a copy; it never blocks.
func (g *Guard) Status() Status {
	now, s := g.clock.Now(), g.inner.State()
	g.mu.Lock()
	defer g.mu.Unlock()
	return Status{
		Armed: g.armed, ArmedBy: g.armedBy, Latched: g.latch, Since: g.latchAt, Unkept: g.unkept, Moving: g.motion != nil,
		Unknown: !g.unknown.IsZero() && !s.Received.After(g.unknown), Refused: g.ready(s, now),
	}
}

// Latched reports why motion is latched off; empty when it is not.
func (g *Guard) Latched() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.latch
}

// Arm allows motion. Only an operator's hand may lead here, never a tool. A latch must be cleared first.
func (g *Guard) Arm(operator string) error {
	g.mu.Lock()
	latch := g.latch
	if latch == "" {
		g.armed, g.armedBy = true, operator
	}
	g.mu.Unlock()
	if latch != "" {
		f := found(RuleLatch, latch, "", "look at the robot, then clear the latch")
		g.log.Warn("arming refused", slog.String("operator", operator), slog.String("latch", latch))
		return f
	}
	g.log.Warn("armed", slog.String("operator", operator))
	return nil
}

// Disarm allows no further motion, and stops the one under way.
func (g *Guard) Disarm(ctx context.Context, who string) error {
	g.mu.Lock()
	g.armed, g.armedBy = false, ""
	moving := g.motion != nil
	g.mu.Unlock()
	g.log.Warn("disarmed", slog.String("who", who), slog.Bool("moving", moving))
	if !moving {
		return nil
	}
	return g.Stop(robot.By(ctx, who))
}

// EStop latches first, then asks for the robot's last rung at once; a robot without one is stopped. Nothing moves
// until an operator has cleared the latch and armed again, also in a daemon that was started anew meanwhile: keeping
// the latch for that delays no rung, and is done before this returns.
func (g *Guard) EStop(ctx context.Context, why string) error {
	first := g.latchNow("e-stop: " + why)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		g.keep(first)
	}()
	ladder := g.inner.Stop
	power, ok := g.inner.(robot.EStopper)
	if ok {
		ladder = power.EStop
	}
	err := g.stop(robot.By(ctx, "the e-stop of "+why), ladder, slog.String("e_stop", why), slog.Bool("power", ok))
	<-kept
	return err
}

// setLatch keeps the first reason.
func (g *Guard) setLatch(why string) { g.keep(g.latchNow(why)) }

// latchNow locks motion out; it waits for nothing.
func (g *Guard) latchNow(why string) (first bool) {
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if first = g.latch == ""; first {
		g.latch, g.latchAt = why, now
	}
	g.armed, g.armedBy = false, ""
	return first
}

// keep puts a latch away for the next start, and then says what latched.
func (g *Guard) keep(first bool) {
	g.mu.Lock()
	why, again := g.latch, g.unkept != ""
	g.mu.Unlock()
	if first || again {
		g.remember()
	}
	if !first {
		return
	}
	now, s := g.clock.Now(), g.inner.State()
	attrs := []any{slog.String("why", why), slog.Duration("state_age", now.Sub(s.Received)), slog.String("mode", s.Mode.String())}
	if s.Complete(g.model) {
		name, v, _ := g.moving(s)
		attrs = append(attrs, slog.String("fastest", name), slog.Float64("speed", v))
	}
	g.log.Error("latched", attrs...)
}

// remember gives the latch as it is now to the memory. One at a time, so that what is kept last is what is true.
func (g *Guard) remember() {
	if g.memory == nil {
		return
	}
	g.keeping.Lock()
	defer g.keeping.Unlock()
	g.mu.Lock()
	latch, done := g.latch, g.unkept == "" && g.kept == g.latch
	g.mu.Unlock()
	if done {
		return // who came before has kept the same
	}
	err := g.memory.Keep(latch)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept = latch
	if g.unkept = ""; err != nil {
		g.unkept = err.Error()
		g.log.Error("the next start will not know of the latch", slog.String("latch", g.latch), slog.Any("err", err))
	}
}

// ClearLatch is an operator's word that the robot was looked at. It does not arm.
func (g *Guard) ClearLatch(operator string) {
	g.mu.Lock()
	why := g.latch
	g.latch = ""
	g.mu.Unlock()
	g.remember()
	g.log.Warn("latch cleared", slog.String("operator", operator), slog.String("why", why))
}
