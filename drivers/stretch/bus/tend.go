package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"viad/drivers/robot"
)

const (
	taskRelease = "release"
	releaseTime = 2 * time.Second
)

// Tasks are what only an operator may ask for. Homing is not among them: see the package's words.
func (r *Robot) Tasks() []robot.Task {
	return []robot.Task{
		{Name: taskRelease, What: "the runstop is released and the motors obey again: look why it was engaged, and that nobody is within reach"},
	}
}

// Do carries a task out and waits for its end.
func (r *Robot) Do(ctx context.Context, task string) error {
	if task != taskRelease {
		return fmt.Errorf("no task %q; there is %s", task, taskRelease)
	}
	ctx, done, err := r.begin(ctx, "the task "+task)
	if err != nil {
		return err
	}
	defer done()
	r.mu.Lock()
	p, on := r.power.board, r.runstopped()
	r.mu.Unlock()
	switch {
	case p == nil:
		return errors.New("refused: the power board is not there")
	case !on:
		return nil
	}
	within, cancel := r.within(ctx, releaseTime)
	defer cancel()
	if err := p.OperatorReleasesRunstop(within); err != nil {
		return err
	}
	off := r.until(within, releaseTime, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return !r.runstopped()
	})
	if !off {
		return errors.New("the runstop is still on: pull the button on the robot")
	}
	return nil
}
