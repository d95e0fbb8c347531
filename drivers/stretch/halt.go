package stretch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"viad/drivers/robot"
	"viad/drivers/stretch/course"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/std_srvs"
	"viad/ros/msg/trajectory_msgs"
)

// Halt ends what runs, by one rung. None of them waits for a goal, and each has a time of its own. A rung that was
// sent and of which nothing can be seen is an error.
func (r *Robot) Halt(ctx context.Context, rung robot.Rung) error {
	r.interrupt(ErrHalted)
	ctx, cancel := r.within(ctx, haltTime)
	defer cancel()
	var err error
	switch rung {
	case robot.RungZeroVelocity:
		err = r.zero(ctx)
	case robot.RungCancel:
		err = r.cancelAll(ctx)
	case robot.RungHold:
		err = r.hold(ctx)
	case robot.RungPower:
		return r.power(ctx)
	default:
		err = fmt.Errorf("no rung %d", rung)
	}
	if err != nil {
		return err
	}
	b := r.snapshot()
	if age := b.age(r.clock.Now()); age > staleJoints+50*time.Millisecond {
		return fmt.Errorf("%s was sent, but nothing has been heard of the robot for %v: it is not known whether it was heard", rung, age.Round(10*time.Millisecond))
	}
	return nil
}

func (r *Robot) zero(ctx context.Context) error {
	if n := r.velocity.Subscribers(); n == 0 {
		return fmt.Errorf("zero velocity: nobody listens to %s", r.names.velocity)
	}
	r.mu.Lock()
	gen := r.known.generation
	r.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- r.standBase(ctx, gen) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return <-done // a bounded number of ticks
	}
}

func (r *Robot) cancelAll(ctx context.Context) error {
	if err := r.arm.CancelAll(ctx); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	return nil
}

// hold stops every actuator where it is. The service of generation B answers with an error, or not at all, even when it
// acted, so that measured speeds decide; an arm that goes on is given its own place as a goal.
func (r *Robot) hold(ctx context.Context) error {
	called := make(chan error, 1)
	r.mu.Lock()
	gen, began := r.known.generation, r.reading.seq
	r.mu.Unlock()
	go func() { // it is not taken back when this rung's time is over
		own, cancel := r.within(context.WithoutCancel(ctx), haltTime)
		defer cancel()
		var a std_srvs.Trigger_Response
		err := r.stop.Call(own, new(std_srvs.Trigger_Request), &a)
		if err == nil && !a.Success && gen != GenB {
			err = fmt.Errorf("%s says no: %s", r.names.stop, a.Message)
		}
		called <- err
	}()
	var err error
	answered, good := false, false
	rest := func() bool {
		b := r.snapshot()
		return !b.fast(2*course.RestTurn, 2*course.RestSlide) && b.age(r.clock.Now()) < staleJoints && b.q != nil && b.seq > began+6
	}
	ok := r.until(ctx, haltTime, func() bool {
		select {
		case err = <-called:
			answered, good = true, err == nil
		default:
		}
		return good || (answered || gen == GenB) && rest()
	})
	if ok || rest() { // a stop that is seen needs no answer
		return nil
	}
	if err == nil {
		err = errors.New("it did not answer in time")
	}
	within, cancel := r.within(context.WithoutCancel(ctx), 200*time.Millisecond)
	defer cancel()
	return fmt.Errorf("hold: the robot still moves, or cannot be measured, after %s: %w", r.names.stop, errors.Join(err, r.holdHere(within)))
}

// holdHere gives the arm its measured place as a goal.
func (r *Robot) holdHere(ctx context.Context) error {
	b := r.snapshot()
	r.mu.Lock()
	model, u := r.known.model, unitsOf(r.known.generation)
	r.mu.Unlock()
	if b.q == nil || u.stages == 0 || b.age(r.clock.Now()) > staleJoints {
		return errors.New("there is no measured place to hold")
	}
	if why := b.doubtful(r.clock.Now()); why != "" {
		return fmt.Errorf("there is no measured place to hold: %s", why)
	}
	g, p := new(control_msgs.FollowJointTrajectory_Goal), trajectory_msgs.JointTrajectoryPoint{TimeFromStart: wireDuration(tickTime)}
	for i, j := range model.Joints {
		g.Trajectory.JointNames = append(g.Trajectory.JointNames, j.Name)
		p.Positions = append(p.Positions, b.q[i]*u.signs[i])
	}
	g.Trajectory.Points = append(g.Trajectory.Points, p)
	_, err := r.arm.Send(ctx, g, nil)
	return err
}

// power engages the runstop. The wrist's torque goes with it, the gripper's does not: a raised tool may drop.
func (r *Robot) power(ctx context.Context) error {
	r.log.Warn("runstop: the wrist loses its torque, so that the tool and what it carries may drop")
	var a std_srvs.SetBool_Response
	err := r.runstop.Call(ctx, &std_srvs.SetBool_Request{Data: true}, &a)
	if err == nil && !a.Success {
		err = fmt.Errorf("the robot did not take the runstop: %s", a.Message)
	}
	on := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.status.runstopped.v || r.status.mode.v == modeRunstopped
	}
	if r.until(ctx, haltTime, on) {
		return nil
	}
	if err == nil {
		err = errors.New("the robot took the runstop and does not say that it is on")
	}
	return fmt.Errorf("runstop: %w; press the button on the robot", err)
}

// brake ends the arm's goals early, and looks whether that stopped it: a cancel may be ignored.
func (r *Robot) brake(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	within, cancel := r.within(ctx, haltTime)
	defer cancel()
	err := r.cancelAll(within)
	rest := func() bool {
		b := r.snapshot()
		return !b.fast(2*course.RestTurn, 2*course.RestSlide)
	}
	if r.until(ctx, haltTime/2, rest) {
		return err
	}
	again, stop := r.within(ctx, haltTime)
	defer stop()
	return errors.Join(err, r.hold(again))
}
