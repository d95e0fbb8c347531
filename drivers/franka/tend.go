package franka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/controller_manager_msgs"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/lifecycle_msgs"
)

// The tasks.
const (
	taskRecover  = "recover"
	taskHome     = "home-gripper"
	taskActivate = "activate"
)

const (
	recoverTime = 20 * time.Second // measured are 0.4 s to 16 s
	lockOut     = 3                // reflexes within a minute
)

// Tasks are what an operator may ask for.
func (*Robot) Tasks() []robot.Task {
	return []robot.Task{
		{Name: taskRecover, What: "clears a reflex or a released user stop and lets the controller drive again; the arm holds where it is: first see what it touched, free it, and that nobody is near"},
		{Name: taskHome, What: "homes the hand, once after power-up: the fingers close and open fully; nothing may be between them"},
		{Name: taskActivate, What: "lets the trajectory controller drive again after it was switched off; the arm holds where it is"},
	}
}

// Do carries a task out.
func (r *Robot) Do(ctx context.Context, task string) error {
	r.mu.Lock()
	if r.run != nil || r.gripping || r.tending {
		r.mu.Unlock()
		return ErrBusy
	}
	r.tending = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.tending, r.ended = false, r.clock.Now()
		r.mu.Unlock()
	}()
	switch task {
	case taskRecover:
		err := r.recover(ctx)
		if err == nil {
			r.mu.Lock()
			r.tried = false
			r.mu.Unlock()
		}
		return err
	case taskHome:
		return r.homeHand(ctx)
	case taskActivate:
		return r.activate(ctx)
	}
	return fmt.Errorf("there is no task %q; there are %s, %s and %s", task, taskRecover, taskHome, taskActivate)
}

// tend is a context that Halt ends.
func (r *Robot) tend(ctx context.Context, d time.Duration) (context.Context, func(), error) {
	ctx, end, err := r.takeHand(ctx, true)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := r.within(ctx, d)
	return ctx, func() { cancel(); end() }, nil
}

// recover clears a latched fault: the error itself, then on ROS 2 the hardware component and the controller, which the
// fault took down. It is sent only when there is something to clear: sent early, it would clear the next fault unseen.
func (r *Robot) recover(ctx context.Context) error {
	_, _, s := r.snapshot()
	switch {
	case r.clock.Now().Sub(s.received) > staleState:
		return deadNode("refused: nothing is heard of the robot's state")
	case s.mode != modeReflex && s.mode != modeUserStop && !(s.mode == modeIdle && s.latched):
		return fmt.Errorf("refused: the robot is in mode %q, there is nothing to recover from", modeName(s.mode))
	case len(s.reflexes) >= lockOut && r.clock.Now().Sub(s.reflexes[len(s.reflexes)-1]) < time.Minute:
		return fmt.Errorf("refused: %d reflexes within a minute; find their reason first (load and hand set in Desk, what the arm touches, the network), and wait a minute after the last", len(s.reflexes))
	}
	ctx, end, err := r.tend(ctx, recoverTime)
	if err != nil {
		return err
	}
	defer end()
	if err := r.clearError(ctx); err != nil {
		return err
	}
	if err := r.revive(ctx); err != nil {
		return err
	}
	if !r.until(ctx, recoverTime, r.drives) {
		_, _, s := r.snapshot()
		return fmt.Errorf("recovery was carried out, but the robot is in mode %q: run it again once, else restart the robot's bring-up", modeName(s.mode))
	}
	return r.verify(ctx)
}

// drives says that the robot takes commands.
func (r *Robot) drives() bool {
	_, _, s := r.snapshot()
	return s.mode == modeMove && r.clock.Now().Sub(s.received) < staleState
}

// clearError asks for the recovery and cancels the request when it is not answered, so that it cannot act on a later fault.
func (r *Robot) clearError(ctx context.Context) error {
	accept, cancel := r.within(ctx, readyTime)
	defer cancel()
	g, err := r.recovery.Send(accept, new(franka_msgs.ErrorRecovery_Goal), nil)
	if err != nil {
		return errors.Join(fmt.Errorf("the recovery was not taken; older bring-ups die with the fault and must be restarted: %w", err), r.drop())
	}
	var m franka_msgs.ErrorRecovery_Result
	st, err := g.Result(ctx, &m)
	if err != nil {
		return errors.Join(fmt.Errorf("the recovery did not end: %w", err), r.drop())
	}
	patience := recoverTime
	if st != ros.GoalSucceeded { // its word is no evidence; its mode is, soon
		patience = callTime
	}
	if !r.until(ctx, patience, func() bool {
		_, _, s := r.snapshot()
		return s.mode != modeReflex && s.mode != modeUserStop && s.mode != modeRecovering
	}) {
		_, _, s := r.snapshot()
		return fmt.Errorf("the recovery ended, but the robot is still in mode %q: a user stop must be released, and what the arm presses against freed", modeName(s.mode))
	}
	return nil
}

// drop cancels recovery requests that wait.
func (r *Robot) drop() error {
	ctx, cancel := r.within(context.Background(), readyTime)
	defer cancel()
	if err := r.recovery.CancelAll(ctx); err != nil {
		return fmt.Errorf("the request for recovery could not be withdrawn and may clear the next fault by itself, restart the robot's bring-up: %w", err)
	}
	return nil
}

// revive brings hardware and controller back where the fault took them down.
func (r *Robot) revive(ctx context.Context) error {
	c, err := r.controllers(ctx)
	if err != nil {
		return err
	}
	if r.hardware != nil && !c.active {
		q := &controller_manager_msgs.SetHardwareComponentState_Request{
			Name: r.config.Hardware, TargetState: lifecycle_msgs.State{Id: lifecycle_msgs.State_PRIMARY_STATE_ACTIVE, Label: "active"},
		}
		var a controller_manager_msgs.SetHardwareComponentState_Response
		if err := r.hardware.Call(ctx, q, &a); err != nil {
			return fmt.Errorf("activate %s: %w", r.config.Hardware, err)
		}
		if !a.Ok {
			return fmt.Errorf("the hardware component %s did not become active (it is %q): restart the robot's bring-up", r.config.Hardware, a.State.Label)
		}
	}
	if !c.active {
		if err := r.takeOver(ctx, c); err != nil {
			return err
		}
	}
	c, err = r.controllers(ctx)
	if err == nil {
		r.note(c, nil)
	}
	return err
}

// takeOver activates the controller, unless another one has the joints.
func (r *Robot) takeOver(ctx context.Context, c controllers) error {
	switch {
	case !c.there:
		return fmt.Errorf("the controller manager knows no %s; there are %v", r.config.Controller, c.names)
	case len(c.rivals) > 0:
		return fmt.Errorf("%v holds the arm's joints: stop it first, nothing is taken by force", c.rivals)
	}
	return r.switchTo(ctx, []string{r.config.Controller}, nil)
}

// activate lets the controller drive again. Starting it would clear a reflex without a word, so there must be none.
func (r *Robot) activate(ctx context.Context) error {
	_, _, s := r.snapshot()
	if s.mode == modeReflex || s.mode == modeUserStop {
		return fmt.Errorf("refused: the robot is in mode %q, which activating would clear without a look: run the task recover", modeName(s.mode))
	}
	ctx, end, err := r.tend(ctx, recoverTime)
	if err != nil {
		return err
	}
	defer end()
	if err := r.revive(ctx); err != nil {
		return err
	}
	if !r.until(ctx, callTime, r.drives) {
		_, _, s := r.snapshot()
		return fmt.Errorf("the controller says that it is active, but the robot is in mode %q: it did not start; restart the robot's bring-up", modeName(s.mode))
	}
	return r.verify(ctx)
}

// verify is a motion of no length: the controller must take it and the arm must stay where it is.
func (r *Robot) verify(ctx context.Context) error {
	was, _, _ := r.snapshot()
	bounded, cancel := r.within(ctx, callTime)
	defer cancel()
	if err := r.hold(bounded); err != nil {
		return fmt.Errorf("the robot looks healthy but did not take a motion of no length: %w", err)
	}
	is, _, _ := r.snapshot()
	if name, off := r.furthest(is.q, was.q); was.q == nil || is.q == nil || off > settledBy {
		return fmt.Errorf("after the recovery %s moved by %.3f rad, allowed %.3f: look at the arm", name, off, settledBy)
	}
	if !r.drives() {
		return r.healthy()
	}
	return nil
}

const settledBy = 0.02 // rad

func (r *Robot) homeHand(ctx context.Context) error {
	ctx, end, err := r.tend(ctx, homingTime)
	if err != nil {
		return err
	}
	defer end()
	said := r.handGoal(ctx, r.homing, new(franka_msgs.Homing_Goal), homingTime)
	if said.err != nil {
		return said.err
	}
	_, before, _ := r.snapshot()
	seen := r.until(ctx, handSettle, func() bool {
		_, h, _ := r.snapshot()
		return h.homed && h.received.After(before.received)
	})
	switch {
	case seen:
		return nil
	case !said.ok:
		return fmt.Errorf("the hand was not homed (%q): look whether it is connected in Desk and nothing is between its fingers", said.why)
	}
	return errors.New("the hand says that it is homed, but its width reads 0.0 mm: look at it, and at franka_gripper's log")
}

// recoverOnce is the one attempt that the driver makes by itself, where the operator's file allows it and only after a
// fault of communication.
func (r *Robot) recoverOnce(ctx context.Context) {
	r.mu.Lock()
	s := r.status
	may := r.config.AutoRecover && !r.tried && r.run == nil && !r.gripping && !r.tending &&
		s.mode == modeReflex && communication(s.last) && len(s.reflexes) < lockOut
	if may {
		r.tried, r.tending = true, true
	}
	r.mu.Unlock()
	if !may {
		return
	}
	err := r.recover(ctx)
	r.mu.Lock()
	r.tending, r.ended = false, r.clock.Now()
	r.mu.Unlock()
	if err != nil {
		r.log.Warn("the automatic recovery failed; the next is for an operator", "err", err)
		return
	}
	r.log.Warn("recovered from a communication fault by itself; the next time it is for an operator, and the motion is not repeated")
}
