package wire

import (
	"context"
	"errors"
	"math"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/franka_gripper"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/std_srvs"
)

// What libfranka says of the hand.
var (
	errStopped = errors.New("libfranka gripper: command aborted: stopped")
	errUnhomed = errors.New("libfranka gripper: command failed: width out of range, homing was not done")
	errLost    = errors.New("libfranka gripper: not connected")
	errRange   = errors.New("libfranka gripper: command failed: width or speed out of range")
	errMissed  = errors.New("libfranka gripper: command failed: width not reached")
	errNothing = errors.New("libfranka gripper: grasp failed: no object of that width")
)

// stuckTime is how long a stuck call takes to return.
const stuckTime = 100 * time.Second

// stroke is a call of libfranka: it waits for its turn, blocks until the hand rests, and says what came of it. The hand's
// server of ROS 2 answers a cancel by a stop; the one of ROS 1 sees it when the call is over.
func (w *Franka) stroke(ctx context.Context, to, speed float64, fine func(width float64) error) error {
	cancelled := ctx.Done()
	for waits := true; waits; {
		select {
		case w.turn <- struct{}{}:
			waits = false
		case <-w.shut:
			return errStopped
		case <-cancelled:
			cancelled = nil
			w.hearCancel()
		}
	}
	defer func() { <-w.turn }()
	a := w.arm
	a.mu.Lock()
	if !a.hand.homed {
		a.mu.Unlock()
		return errUnhomed
	}
	stuck, lost := a.faults.StuckHand, a.faults.HandLost
	done, halted := a.hand.move(to, speed, a.now)
	a.mu.Unlock()
	err := w.rests(done, cancelled)
	if stuck && err == nil {
		select {
		case <-halted:
			err = errStopped
		case <-w.shut:
		case <-w.twin.Clock().After(stuckTime):
		}
	}
	switch {
	case err != nil:
		return err
	case lost:
		return errLost
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return fine(a.hand.width)
}

// rests waits for the hand.
func (w *Franka) rests(done <-chan error, cancelled <-chan struct{}) error {
	for {
		select {
		case err := <-done:
			return err
		case <-w.shut:
			return errStopped
		case <-cancelled:
			cancelled = nil
			w.hearCancel()
		}
	}
}

func (w *Franka) hearCancel() {
	if w.one || w.arm.fault().StuckHand {
		return
	}
	w.stopHand()
}

func (w *Franka) stopHand() {
	w.arm.mu.Lock()
	defer w.arm.mu.Unlock()
	w.arm.hand.stop()
}

// outcome is a goal's status after a call.
func (w *Franka) outcome(ctx context.Context, err error) ros.GoalStatus {
	switch {
	case err == nil:
		return ros.GoalSucceeded
	case ctx.Err() != nil && errors.Is(err, errStopped):
		return ros.GoalCanceled
	}
	return ros.GoalAborted
}

// to moves to a width, which is to be reached.
func (w *Franka) to(ctx context.Context, width, speed float64) error {
	if !(width >= 0 && width <= handMost && speed > 0) {
		return errRange
	}
	return w.stroke(ctx, width, speed, func(is float64) error {
		if math.Abs(is-width) > handNear {
			return errMissed
		}
		return nil
	})
}

// grasp presses until something stops it, which is to be between two widths.
func (w *Franka) grasp(ctx context.Context, g *franka_msgs.Grasp_Goal) error {
	if !(g.Width >= 0 && g.Width <= handMost && g.Speed > 0) {
		return errRange
	}
	return w.stroke(ctx, -1, g.Speed, func(is float64) error {
		if is < g.Width-g.Epsilon.Inner || is > g.Width+g.Epsilon.Outer {
			return errNothing
		}
		return nil
	})
}

// home closes and opens fully.
func (w *Franka) home(ctx context.Context) error {
	w.arm.mu.Lock()
	w.arm.hand.homed = true
	w.arm.mu.Unlock()
	any := func(float64) error { return nil }
	if err := w.stroke(ctx, 0, handSpeed, any); err != nil {
		return err
	}
	return w.stroke(ctx, handMost, handSpeed, any)
}

// press is the action that MoveIt uses: a position is half a width. Closing is a grasp, opening a move.
func (w *Franka) press(ctx context.Context, c control_msgs.GripperCommand) error {
	w.arm.mu.Lock()
	is := w.arm.hand.width
	w.arm.mu.Unlock()
	width := 2 * c.Position
	switch {
	case !(width >= 0 && width <= handMost):
		return errRange
	case math.Abs(width-is) < handNear:
		return nil
	case width > is:
		return w.to(ctx, width, handSpeed)
	}
	return w.grasp(ctx, &franka_msgs.Grasp_Goal{Width: width, Speed: handSpeed, Force: c.MaxEffort, Epsilon: franka_msgs.GraspEpsilon{Inner: handNear, Outer: handNear}})
}

func (w *Franka) serveHand() error {
	const at = "/franka_gripper/"
	return errors.Join(
		w.keep(w.node.ServeAction(ros.ActionOf[franka_msgs.Homing_Goal, franka_msgs.Homing_Result, franka_msgs.Homing_Feedback](at+"homing"), ros.ActionHandler{
			Run: func(ctx context.Context, _ ros.GoalID, _ msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
				err := w.home(ctx)
				return &franka_msgs.Homing_Result{Success: err == nil, Error: sentence(err)}, w.outcome(ctx, err)
			},
		})),
		w.keep(w.node.ServeAction(ros.ActionOf[franka_msgs.Move_Goal, franka_msgs.Move_Result, franka_msgs.Move_Feedback](at+"move"), ros.ActionHandler{
			Run: func(ctx context.Context, _ ros.GoalID, m msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
				err := errRange
				if g, is := m.(*franka_msgs.Move_Goal); is {
					err = w.to(ctx, g.Width, g.Speed)
				}
				return &franka_msgs.Move_Result{Success: err == nil, Error: sentence(err)}, w.outcome(ctx, err)
			},
		})),
		w.keep(w.node.ServeAction(ros.ActionOf[franka_msgs.Grasp_Goal, franka_msgs.Grasp_Result, franka_msgs.Grasp_Feedback](at+"grasp"), ros.ActionHandler{
			Run: func(ctx context.Context, _ ros.GoalID, m msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
				err := errRange
				if g, is := m.(*franka_msgs.Grasp_Goal); is {
					err = w.grasp(ctx, g)
				}
				return &franka_msgs.Grasp_Result{Success: err == nil, Error: sentence(err)}, w.outcome(ctx, err)
			},
		})),
		w.keep(w.node.ServeAction(ros.ActionOf[control_msgs.GripperCommand_Goal, control_msgs.GripperCommand_Result, control_msgs.GripperCommand_Feedback](at+"gripper_action"), ros.ActionHandler{Run: w.pressed})),
		w.serveStop(at+"stop"),
	)
}

func (w *Franka) pressed(ctx context.Context, _ ros.GoalID, m msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
	err := errRange
	if g, is := m.(*control_msgs.GripperCommand_Goal); is {
		err = w.press(ctx, g.Command)
	}
	w.arm.mu.Lock()
	defer w.arm.mu.Unlock()
	return &control_msgs.GripperCommand_Result{Position: w.arm.hand.width / 2, ReachedGoal: err == nil}, w.outcome(ctx, err)
}

// serveStop is a service on ROS 2 and an action on ROS 1.
func (w *Franka) serveStop(name string) error {
	if w.one {
		return w.keep(w.node.ServeAction(ros.ActionOf[franka_gripper.Stop_Goal, franka_gripper.Stop_Result, franka_gripper.Stop_Feedback](name), ros.ActionHandler{
			Run: func(context.Context, ros.GoalID, msg.Message, func(msg.Message)) (msg.Message, ros.GoalStatus) {
				w.stopHand()
				return &franka_gripper.Stop_Result{Success: true}, ros.GoalSucceeded
			},
		}))
	}
	return w.keep(w.node.Serve(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response](name), func(context.Context, msg.Message) (msg.Message, error) {
		w.stopHand()
		return &std_srvs.Trigger_Response{Success: true}, nil
	}))
}
