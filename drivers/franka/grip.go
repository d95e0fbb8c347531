package franka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/franka_gripper"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/std_srvs"
)

// The hand's measures.
const (
	handRest   = 300 * time.Millisecond // without change, at 15 Hz: at rest
	handSettle = 1500 * time.Millisecond
	handGrace  = 2 * time.Second // over the time that a stroke takes
	emptyBelow = 0.003           // m: less than this between the pads is nothing
	handMoved  = 0.001           // m: less than this is no motion
	homingTime = 20 * time.Second
)

// Grip opens by a move and closes by a grasp with a force, which succeeds at any width: what is between the pads is not
// known before. How it ended is judged by the width, not by the hand's word.
func (r *Robot) Grip(ctx context.Context, t robot.JawTarget) error {
	ctx, end, err := r.takeHand(ctx, false)
	if err != nil {
		return err
	}
	defer end()
	_, h, _ := r.snapshot()
	switch {
	case !h.known || r.clock.Now().Sub(h.received) > staleHand:
		return errors.New("refused: nothing is heard of the hand: look whether its node (franka_gripper) runs")
	case !h.homed:
		return errors.New("refused: the hand reads 0.0 mm, as it does before it was homed since power-up: an operator runs the task home-gripper, with nothing between the fingers")
	case !t.Open && !h.open && h.aperture > emptyBelow && r.clock.Now().Sub(h.changed) > handRest:
		return nil // it holds something: a second command could let it slip
	}
	var goal msg.Message = &franka_msgs.Move_Goal{Width: r.model.Jaw.Max, Speed: r.config.GripSpeed}
	server, target := r.move, r.model.Jaw.Max
	if !t.Open {
		target, server = 0, r.grasp
		goal = &franka_msgs.Grasp_Goal{
			Width: 0, Speed: r.config.GripSpeed, Force: r.config.GripForce,
			Epsilon: franka_msgs.GraspEpsilon{Inner: 0.01, Outer: r.model.Jaw.Max + 0.01},
		}
	}
	r.mu.Lock()
	r.hand.open = t.Open
	r.mu.Unlock()
	stroke := duration(math.Abs(target-h.aperture) / r.config.GripSpeed)
	said := r.handGoal(ctx, server, goal, stroke+handGrace)
	if err := r.judgeHand(ctx, h, target, said); err != nil {
		r.mu.Lock()
		r.hand.open = r.hand.aperture > r.model.Jaw.Max/2
		r.mu.Unlock()
		return err
	}
	return nil
}

// takeHand makes the hand this call's alone; end gives it back. ctx ends when Halt ends it.
func (r *Robot) takeHand(ctx context.Context, task bool) (_ context.Context, end func(), err error) {
	if !task {
		r.mu.Lock()
		busy := r.run != nil || r.gripping || r.tending
		r.mu.Unlock()
		if s := r.State(); busy {
			return nil, nil, ErrBusy
		} else if s.Mode != robot.ModeReady {
			return nil, nil, fmt.Errorf("refused: the robot is %s: %s", s.Mode, s.Fault)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run != nil || r.gripping || r.tending != task {
		cancel(nil)
		return nil, nil, ErrBusy
	}
	r.gripping, r.endHand = true, cancel
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		r.gripping, r.endHand = false, nil
		r.mu.Unlock()
	}, nil
}

// handWord is what the hand's server said.
type handWord struct {
	ok  bool
	why string
	err error // there is no word
}

// handGoal sends a goal to the hand and waits no longer than patience: its servers block for minutes on an obstacle and do
// not listen to a cancel. Then, or when ctx ends, it is stopped.
func (r *Robot) handGoal(ctx context.Context, server ros.Goaler, goal msg.Message, patience time.Duration) handWord {
	bounded, cancel := r.within(ctx, patience)
	defer cancel()
	defer r.stroke(false)
	r.stroke(true)
	g, err := r.handAccepts(bounded, server, goal)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return handWord{err: err}
	}
	var w handWord
	w.ok, w.why, err = handResult(bounded, g, goal)
	var gone *ros.Gone
	switch {
	case err == nil:
		return w
	case errors.Is(context.Cause(ctx), ErrHalted): // Halt stops it
		return handWord{err: ErrHalted}
	case errors.As(err, &gone):
		return handWord{err: unknown(gone)}
	}
	why := fmt.Errorf("the hand did not end its motion within %v and was stopped: look what its fingers press against", patience.Round(100*time.Millisecond))
	if ctx.Err() != nil {
		why = fmt.Errorf("ended before its end: %w", context.Cause(ctx))
	}
	stop, done := r.within(context.WithoutCancel(ctx), haltTime)
	defer done()
	return handWord{err: errors.Join(why, r.stopHand(stop))}
}

func (r *Robot) stroke(runs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stroking = runs
}

func (r *Robot) handAccepts(ctx context.Context, server ros.Goaler, goal msg.Message) (ros.Goal, error) {
	ctx, cancel := r.within(ctx, readyTime)
	defer cancel()
	g, err := server.Send(ctx, goal, nil)
	if err != nil {
		return nil, fmt.Errorf("the hand did not take the command: %w", err)
	}
	return g, nil
}

func handResult(ctx context.Context, g ros.Goal, goal msg.Message) (ok bool, why string, err error) {
	var st ros.GoalStatus
	switch goal.(type) {
	case *franka_msgs.Move_Goal:
		var m franka_msgs.Move_Result
		st, err = g.Result(ctx, &m)
		ok, why = m.Success, m.Error
	case *franka_msgs.Grasp_Goal:
		var m franka_msgs.Grasp_Result
		st, err = g.Result(ctx, &m)
		ok, why = m.Success, m.Error
	case *franka_msgs.Homing_Goal:
		var m franka_msgs.Homing_Result
		st, err = g.Result(ctx, &m)
		ok, why = m.Success, m.Error
	default:
		return false, "", fmt.Errorf("%s is no goal of the hand", goal.TypeName())
	}
	return ok && st == ros.GoalSucceeded, why, err
}

// judgeHand decides by the width. It waits until the width is at rest: results come early.
func (r *Robot) judgeHand(ctx context.Context, before hand, target float64, said handWord) error {
	if said.err != nil {
		return said.err
	}
	from := r.clock.Now()
	var h hand
	rest := r.until(ctx, handSettle, func() bool {
		_, h, _ = r.snapshot()
		now := r.clock.Now()
		return h.received.After(from) && now.Sub(h.changed) > handRest && now.Sub(from) > handRest
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	moved, asked := math.Abs(h.aperture-before.aperture), math.Abs(target-before.aperture)
	switch {
	case !rest && !h.received.After(from):
		return errors.New("the hand's command ended, and nothing is heard of its fingers since: look whether its node (franka_gripper) still reads them")
	case moved < handMoved && asked > emptyBelow && said.ok:
		return fmt.Errorf("the hand says that it is done, but its width still reads %.1f mm: its node publishes an old value again, or the hand is blocked: look at it, restart franka_gripper if the fingers did move", h.aperture*1e3)
	case moved < handMoved && asked > emptyBelow:
		return fmt.Errorf("the fingers did not move (%.1f mm, the hand says %q): look whether something blocks them and whether the hand is connected in Desk", h.aperture*1e3, said.why)
	}
	return nil
}

func stopGoal() msg.Message { return new(franka_gripper.Stop_Goal) }

func stopped(ctx context.Context, g ros.Goal) error {
	var m franka_gripper.Stop_Result
	st, err := g.Result(ctx, &m)
	if err != nil {
		return fmt.Errorf("the hand's stop: %w", err)
	}
	if st != ros.GoalSucceeded || !m.Success {
		return fmt.Errorf("the hand's stop failed: %q", m.Error)
	}
	return nil
}

func (r *Robot) trigger(ctx context.Context, c ros.Caller, what string) error {
	var a std_srvs.Trigger_Response
	if err := c.Call(ctx, new(std_srvs.Trigger_Request), &a); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !a.Success {
		return fmt.Errorf("%s failed: %q", what, a.Message)
	}
	return nil
}
