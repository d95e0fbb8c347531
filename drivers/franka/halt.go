package franka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"viad/drivers/robot"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/controller_manager_msgs"
)

// Halt ends what moves, arm and hand. It waits behind no goal: each rung is a message of its own, with a time of its own.
//
//   - zero velocity: brake on the path that is followed, as hard as the joints may; off a path, along the measured speeds
//   - cancel: every goal of the controller, also of others; it holds where it is
//   - hold: a goal at the measured joints
//   - power: the controller is deactivated; an operator activates it again
func (r *Robot) Halt(ctx context.Context, rung robot.Rung) error {
	r.mu.Lock()
	m, endHand, stroking := r.run, r.endHand, r.stroking
	r.mu.Unlock()
	if m != nil {
		m.end(ErrHalted) // nothing more is sent
	}
	ctx, cancel := r.within(ctx, haltTime)
	defer cancel()
	hand := make(chan error, 1)
	if endHand != nil {
		endHand(ErrHalted)
	}
	if stroking { // at rest it may hold something, which a stop would let go
		go func() { hand <- r.stopHand(ctx) }()
	} else {
		hand <- nil
	}
	err := r.rung(ctx, m, rung)
	return errors.Join(err, <-hand)
}

func (r *Robot) rung(ctx context.Context, m *run, rung robot.Rung) error {
	switch rung {
	case robot.RungZeroVelocity:
		if m != nil && !m.newest().sent.IsZero() {
			return r.brake(ctx, m)
		}
		return r.hold(ctx)
	case robot.RungCancel:
		return r.cancelAll(ctx)
	case robot.RungHold:
		return r.hold(ctx)
	case robot.RungPower:
		return r.powerOff(ctx)
	default:
		return fmt.Errorf("there is no rung %d", rung)
	}
}

// brake brakes on the path and waits until the arm rests.
func (r *Robot) brake(ctx context.Context, m *run) error {
	last := m.newest()
	p := m.path.stop(last, r.clock.Now(), r.model)
	if since := p.sent.Sub(last.sent).Seconds(); since >= last.end {
		return r.hold(ctx) // it rests already, if it did as it was told
	}
	if _, err := r.send(ctx, m.path, p, haltTime); err != nil {
		return err
	}
	m.mu.Lock()
	m.last = p
	m.mu.Unlock()
	return r.atRest(ctx)
}

func (r *Robot) atRest(ctx context.Context) error {
	var j reading
	sent := r.clock.Now()
	rests := func() bool {
		j, _, _ = r.snapshot()
		return j.q != nil && j.received.After(sent) && fastest(j.qd) <= restSpeed
	}
	if r.until(ctx, haltTime, rests) {
		return nil
	}
	if j.q == nil || !j.received.After(sent) {
		return errors.New("braking was commanded, and no reading says that the arm rests")
	}
	return fmt.Errorf("braking was commanded, and the arm still moves at %.3f rad/s", fastest(j.qd))
}

func (r *Robot) cancelAll(ctx context.Context) error {
	if err := r.trajectory.CancelAll(ctx); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	return nil
}

// hold is a goal at the measured joints; what still moves gets room to brake in. A reading from before a gap would take
// the arm back to where it was then.
func (r *Robot) hold(ctx context.Context) error {
	if j, _, _ := r.snapshot(); r.clock.Now().Sub(j.received) <= staleJoints {
		r.until(ctx, 2*catchUp, r.caughtUp)
	}
	j, _, _ := r.snapshot()
	if j.lack != "" {
		return fmt.Errorf("there is no whole joint reading to hold at: %s", j.lack)
	}
	if age := r.clock.Now().Sub(j.received); j.q == nil || age > staleJoints {
		return fmt.Errorf("there is no joint reading to hold at: the newest is %v old", age.Round(time.Millisecond))
	}
	if c := j.doubtful(r.clock.Now()); c != nil {
		return fmt.Errorf("there is no joint reading to hold at: %w", c)
	}
	r.mu.Lock()
	driven := r.facts.active || !r.facts.complete
	r.mu.Unlock()
	if !driven && fastest(j.qd) <= restSpeed {
		return nil // no controller drives it, and it rests
	}
	t := 0.1
	for i, spec := range r.model.Joints {
		t = math.Max(t, brakeTime(j.qd[i], spec.Acc, 1))
	}
	n := len(j.q)
	end := sample{q: make([]float64, n), v: make([]float64, n), a: make([]float64, n)}
	for i := range end.q {
		end.q[i] = j.q[i]
		if math.Abs(j.qd[i]) > restSpeed {
			end.q[i] += j.qd[i] * t / 2
		}
	}
	if _, err := r.sendGoal(ctx, r.goal([]float64{t}, []sample{end})); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	return r.atRest(ctx)
}

// powerOff deactivates the controller.
func (r *Robot) powerOff(ctx context.Context) error {
	if err := r.switchTo(ctx, nil, []string{r.config.Controller}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts.active = false
	r.facts.set(robot.Fact{Name: factController, Value: r.config.Controller + " is inactive", Bad: inactiveWords(r.config.Controller, "inactive")})
	return nil
}

func (r *Robot) switchTo(ctx context.Context, on, off []string) error {
	q := &controller_manager_msgs.SwitchController_Request{
		ActivateControllers: on, DeactivateControllers: off, Strictness: controller_manager_msgs.SwitchController_Request_STRICT,
		ActivateAsap: true, Timeout: builtin_interfaces.Duration{Sec: 2},
	}
	var a controller_manager_msgs.SwitchController_Response
	if err := r.change.Call(ctx, q, &a); err != nil {
		return fmt.Errorf("switch controllers: %w", err)
	}
	if !a.Ok {
		return fmt.Errorf("the controller manager did not switch (on %v, off %v): %q", on, off, a.Message)
	}
	return nil
}

// stopHand interrupts the hand: its actions run in blocking calls, and only this ends them.
func (r *Robot) stopHand(ctx context.Context) error {
	if r.stopService != nil {
		return r.trigger(ctx, r.stopService, "the hand's stop")
	}
	g, err := r.stopAction.Send(ctx, stopGoal(), nil)
	if err != nil {
		return fmt.Errorf("the hand's stop: %w", err)
	}
	return stopped(ctx, g)
}
