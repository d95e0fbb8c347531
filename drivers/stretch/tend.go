package stretch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/std_srvs"
)

// The tasks.
const (
	taskHome    = "home"
	taskStow    = "stow"
	taskRelease = "release"
	stowMost    = 60 * time.Second
)

// Tasks are what only an operator may ask for.
func (r *Robot) Tasks() []robot.Task {
	return []robot.Task{
		{Name: taskHome, What: "lift, arm, wrist and gripper move to their ends, up to 90 s: clear everything within the arm's reach first, and take what it holds out of the gripper"},
		{Name: taskStow, What: "the arm comes in, the lift goes down and the wrist turns back over the base: look that nothing is in the way"},
		{Name: taskRelease, What: "the runstop is released and the wrist gets its torque back: look why it was engaged, and that nobody is within reach"},
	}
}

// Do carries a task out and waits for its end.
func (r *Robot) Do(ctx context.Context, task string) error {
	r.mu.Lock()
	known, bad, runstopped, mode := r.known.generation != GenUnknown, r.known.words(), r.status.runstopped.v, r.status.mode.v
	r.mu.Unlock()
	switch {
	case !known:
		return fmt.Errorf("refused: %s", bad)
	case mode == modeTeleop || mode == modeGamepad:
		return fmt.Errorf("refused: the robot is in mode %s, so somebody drives it by hand", mode)
	case runstopped && task != taskRelease:
		return fmt.Errorf("refused: %s", runstopWords)
	}
	ctx, done, err := r.begin(ctx, "the task "+task)
	if err != nil {
		return err
	}
	defer done()
	switch task {
	case taskHome:
		r.setHoming(true)
		if err = r.trigger(ctx, r.home, homingMost); err == nil {
			err = r.homedNow(ctx)
		}
		r.setHoming(false)
	case taskStow:
		err = r.trigger(ctx, r.stow, stowMost)
	case taskRelease:
		err = r.release(ctx)
	default:
		err = fmt.Errorf("no task %q; there are home, stow, release", task)
	}
	if err != nil && ctx.Err() != nil && task != taskRelease {
		err = errors.Join(ended(ctx), r.brake(ctx)) // the call is over, the robot may not be
	}
	return err
}

// trigger calls a service that takes long, and says so to wires that have a time-out of their own.
func (r *Robot) trigger(ctx context.Context, c ros.Caller, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ctx, stop := r.within(ctx, most)
	defer stop()
	var a std_srvs.Trigger_Response
	if err := c.Call(ctx, new(std_srvs.Trigger_Request), &a); err != nil {
		return fmt.Errorf("%w; look at the robot before the next motion", err)
	}
	if !a.Success {
		return fmt.Errorf("the robot's driver did not do it: %s", a.Message)
	}
	return nil
}

func (r *Robot) setHoming(on bool) {
	r.mu.Lock()
	r.homing, r.broken = on, false
	r.mu.Unlock()
}

// homedNow believes the driver's word when no runstop came, not even one that was released by hand meanwhile: the driver
// counts that as homed.
func (r *Robot) homedNow(ctx context.Context) error {
	r.mu.Lock()
	broken := r.broken || r.status.runstopped.v
	if !broken {
		r.rehome = false
	}
	r.mu.Unlock()
	if broken {
		return errors.New("a runstop came while the robot homed: release it if it is still on, then home again")
	}
	ok := r.until(ctx, callTime, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.status.homed.v
	})
	if !ok {
		return errors.New("the robot's driver says that it homed, and not that it is homed: home again, then look at its log")
	}
	return nil
}

func (r *Robot) release(ctx context.Context) error {
	within, cancel := r.within(ctx, callTime)
	defer cancel()
	var a std_srvs.SetBool_Response
	if err := r.runstop.Call(within, &std_srvs.SetBool_Request{Data: false}, &a); err != nil {
		return err
	}
	ok := r.until(ctx, callTime, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return !r.status.runstopped.v && r.status.mode.v != modeRunstopped
	})
	if !ok {
		return fmt.Errorf("the runstop is still on (%s): pull the button on the robot", a.Message)
	}
	return nil
}
