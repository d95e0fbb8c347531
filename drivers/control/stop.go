package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"viad/drivers/robot"
)

// Stop ends whatever moves: it cancels the running call into the body, walks the ladder and returns nil
// only when standstill was measured. It takes no lock that Go holds, works with stale state, and goes on
// when the context ends: half a stop helps nobody.
func (c *Controller) Stop(ctx context.Context) error {
	defer c.interrupt(robot.Asker(ctx))()
	_, err := c.ladder(context.WithoutCancel(ctx))
	return err
}

// interrupt ends the running call into the body, and keeps others from starting until what it returns is called.
func (c *Controller) interrupt(asker string) (done func()) {
	c.stopping.Add(1)
	c.mu.Lock()
	if c.stops.Add(1) == c.begun+1 {
		c.asker = asker
	}
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	return func() { c.stopping.Add(-1) }
}

// EStop ends whatever moves by the last rung at once. The milder rungs follow only when that one fails or hangs:
// after it there is nothing left for them to do.
func (c *Controller) EStop(ctx context.Context) error {
	defer c.interrupt(robot.Asker(ctx))()
	ctx = context.WithoutCancel(ctx)
	err := c.halt(ctx, robot.RungPower)
	if err == nil && c.standstill(c.set.StopTime) {
		return nil
	}
	errs := append([]error{errNoStandstill, err}, c.mild(ctx)...)
	if c.standstill(c.set.StopTime) {
		return nil
	}
	return notConfirmed(errs)
}

// mild asks for the rungs below power, one after the other.
func (c *Controller) mild(ctx context.Context) (errs []error) {
	for _, r := range []robot.Rung{robot.RungZeroVelocity, robot.RungCancel, robot.RungHold} {
		errs = append(errs, c.halt(ctx, r))
	}
	return errs
}

func notConfirmed(errs []error) error {
	return fmt.Errorf("%s%w", robot.StopNotConfirmed, errors.Join(errs...))
}

// ladder is zero velocity, cancel, hold, and then, only if the robot still moves or nothing can be
// measured, power.
func (c *Controller) ladder(ctx context.Context) (powered bool, err error) {
	begun := c.clock.Now()
	errs := c.mild(ctx)
	// Rungs that hang take from the patience with standstill, so that power comes when it is due.
	used := min(max(c.clock.Now().Sub(begun), 0), c.set.StopTime-c.set.RungTime)
	if c.standstill(c.set.StopTime - used) {
		return false, nil
	}
	errs = append(errs, c.halt(ctx, robot.RungPower))
	if c.standstill(c.set.StopTime) {
		return true, nil
	}
	return true, notConfirmed(append([]error{errNoStandstill}, errs...))
}

var errNoStandstill = errors.New(" (standstill was not measured)")

// halt asks for one rung and gives it its time. A rung that hangs is left behind.
func (c *Controller) halt(ctx context.Context, r robot.Rung) error {
	ctx, cancel := robot.WithTimeout(ctx, c.clock, c.set.RungTime)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.body.Halt(ctx, r) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: no answer within %v", r, c.set.RungTime)
	}
}

// standstill waits until enough new readings in a row were at rest. Readings from before the call, stale
// and incomplete ones do not count.
func (c *Controller) standstill(patience time.Duration) bool {
	tick := c.clock.Ticker(c.set.Tick)
	defer tick.Stop()
	w := watch{last: robot.State{Received: c.clock.Now()}}
	for left := c.countdown(patience); ; {
		<-tick.C()
		over := left.tick()
		now := c.clock.Now()
		if s := c.body.State(); c.whole(s) && now.Sub(s.Received).Abs() <= c.set.StateAge {
			w.calmer(c, s)
		} else {
			w.calm = 0
		}
		if w.calm >= c.set.RestTicks {
			return true
		}
		if over {
			return false
		}
	}
}

// What an encoder may flicker by at rest: one step of a servo's 4096 per turn, and of a stepper's belt.
const (
	grainTurn  = 1.6e-3 // radians
	grainSlide = 2e-4   // metres
)

// atRest judges standstill by what the body reports as speed in b and by how far it has come since a, the first of the
// readings that were at rest.
func (c *Controller) atRest(a, b robot.State) bool {
	if len(a.Q) != len(b.Q) || !c.slow(b) {
		return false
	}
	dt := 2 * b.Received.Sub(a.Received).Seconds()
	for i, j := range c.kin.model.Joints {
		grain := grainTurn
		if j.Prismatic {
			grain = grainSlide
		}
		if !(math.Abs(b.Q[i]-a.Q[i]) <= grain+dt*c.restLimit(j)) {
			return false
		}
	}
	return math.Hypot(b.Base.X-a.Base.X, b.Base.Y-a.Base.Y) <= grainSlide+dt*c.set.RestSlide &&
		math.Abs(b.Base.Yaw-a.Base.Yaw) <= grainTurn+dt*c.set.RestJoint
}

// slow says that every speed in s counts as rest.
func (c *Controller) slow(s robot.State) bool {
	for i, j := range c.kin.model.Joints {
		if !(math.Abs(s.QD[i]) <= c.restLimit(j)) {
			return false
		}
	}
	return s.BaseV.Norm() <= c.set.RestSlide && math.Abs(s.BaseV.Yaw) <= c.set.RestJoint
}

func (c *Controller) restLimit(j robot.Joint) float64 {
	if j.Prismatic {
		return c.set.RestSlide
	}
	return c.set.RestJoint
}

// conclude stops what must be stopped, measures standstill and writes the outcome from measured joints.
func (m *motion) conclude(ctx context.Context, end ending) robot.Outcome {
	c := m.c
	still, powered := end.settled, false
	switch {
	case end.stopped: // Stop's own ladder is at work: only measure
		still = c.standstill(3*c.set.RungTime + 2*c.set.StopTime)
	case end.cut:
		var err error
		powered, err = c.ladder(ctx)
		still = err == nil
	case !end.settled:
		still = c.standstill(c.set.StopTime)
	}
	if s := c.body.State(); c.whole(s) {
		m.good = s
	}
	o := robot.Outcome{
		Before: m.before, After: m.good, Ordered: m.goal(), Realized: c.kin.Tool(m.good.Base, m.good.Q),
		Took: m.took(), Planned: m.plan.Traj.Duration(),
		JawFrom: m.before.Jaw, JawTo: m.good.Jaw, Why: end.why, Followed: m.followed,
	}
	if end.short { // where it rests, as the outcome has it, and not where it was when it was cut
		o.Why += m.remaining()
	}
	o.Why = join(o.Why, end.said)
	if still && !end.frozen {
		o.Stop = robot.StopConfirmed
	}
	if powered && still {
		o.Why = join(o.Why, "the last rung of the stop ladder was needed: runstop or controller off")
	}
	o.Result, o.Why = m.verdict(end, o)
	if s := c.body.State(); o.Result == robot.ResultUnknown && s.Fault != "" {
		if is := "the robot is " + s.Mode.String() + ": "; !strings.Contains(o.Why, is) {
			o.Why = join(o.Why, is+s.Fault)
		}
	}
	return o
}

// verdict decides from measured joints and jaw.
func (m *motion) verdict(end ending, o robot.Outcome) (robot.Result, string) {
	if end.frozen || o.Stop != robot.StopConfirmed {
		return robot.ResultUnknown, join(o.Why, "where the robot is now is not known: read its state again")
	}
	if end.result == robot.ResultFaulted || end.result == robot.ResultContact {
		return end.result, o.Why
	}
	pos, rot := m.fromGoal(m.good)
	arrived := len(m.plan.Traj.Points) == 0 || pos <= m.c.set.SettlePos && rot <= m.c.set.SettleRot
	if !arrived {
		return robot.ResultStoppedShort, join(o.Why, "")
	}
	return m.jawVerdict(end, o)
}

func (m *motion) jawVerdict(end ending, o robot.Outcome) (robot.Result, string) {
	kind := m.plan.Waypoint.Kind
	if kind != robot.KindJaw && kind != robot.KindPoseJaw {
		return robot.ResultReached, o.Why
	}
	a, spec := o.JawTo.Aperture, m.c.kin.model.Jaw
	switch {
	case end.cut:
		return robot.ResultStoppedShort, o.Why
	case m.plan.Waypoint.Jaw.Open && a < spec.Max-m.c.set.JawTol:
		return robot.ResultStoppedShort, join(o.Why, fmt.Sprintf("the jaw opened to %.0f mm of %.0f mm and something holds it: look what its fingers press against, move away from it, then open again", a*1e3, spec.Max*1e3))
	case !m.plan.Waypoint.Jaw.Open && a > spec.Max-m.c.set.JawTol && !o.JawTo.Holding:
		return robot.ResultStoppedShort, join(o.Why, "the jaw did not close: look what its fingers press against, then close again")
	}
	return robot.ResultReached, o.Why
}
