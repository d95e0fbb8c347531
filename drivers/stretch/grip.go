package stretch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/trajectory_msgs"
)

// How a grip is judged, by the measured aperture.
const (
	jawNear  = 0.002 // m: that near it has arrived
	jawMost  = 6 * time.Second
	jawCalm  = 400 * time.Millisecond // at rest, it is on something or blocked
	jawStart = 700 * time.Millisecond // in which it must have begun to move
)

// Grip opens or closes the jaw and waits until it is at rest: there, on something, or blocked.
func (r *Robot) Grip(ctx context.Context, target robot.JawTarget) error {
	s := r.State()
	switch {
	case s.Mode == robot.ModeMoving:
		return ErrBusy
	case s.Mode != robot.ModeReady:
		return fmt.Errorf("refused: the robot is %s: %s", s.Mode, s.Fault)
	case !s.Jaw.Known:
		return errors.New("refused: the fingers are not in joint_states: look at the gripper's servo")
	}
	ctx, done, err := r.begin(ctx, "a grip")
	if err != nil {
		return err
	}
	defer done()
	if err := r.setModes(ctx, false); err != nil {
		return refused(err)
	}
	r.mu.Lock()
	r.gripping = true
	spec, g := r.known.model.Jaw, unitsOf(r.known.generation).grip[r.known.tool]
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.gripping = false
		r.mu.Unlock()
	}()
	want := spec.Min
	if target.Open {
		want = spec.Max
	}
	goal := new(control_msgs.FollowJointTrajectory_Goal)
	goal.Trajectory.JointNames = []string{g.joint}
	goal.Trajectory.Points = []trajectory_msgs.JointTrajectoryPoint{{Positions: []float64{g.goal(want)}, TimeFromStart: wireDuration(time.Second)}}
	for try := 0; ; try++ { // once more when it neither arrived nor met anything: the driver's own end test misses
		end, err := r.gripOnce(ctx, goal, want)
		if err != nil {
			if !errors.Is(err, ErrHalted) {
				err = errors.Join(err, r.brake(ctx))
			}
			return err
		}
		if end == gripStill && try == 0 {
			continue
		}
		r.mu.Lock()
		if end != gripStill {
			r.jawOpen = &target.Open
		}
		r.mu.Unlock()
		if end == gripStill {
			return errors.New("the jaw did not move, twice: look at the gripper, and whether something holds it")
		}
		return nil
	}
}

// gripEnd is how a grip came to rest.
type gripEnd int

const (
	gripThere   gripEnd = iota
	gripBlocked         // it moved and met something
	gripStill           // it did not move
)

func (r *Robot) gripOnce(ctx context.Context, goal *control_msgs.FollowJointTrajectory_Goal, want float64) (gripEnd, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := r.sendGoal(inner, goal, nil)
	if err != nil {
		if ctx.Err() != nil {
			return 0, ended(ctx)
		}
		return 0, err
	}
	over := make(chan error, 1)
	go func() { over <- gripResult(inner, g) }()
	tick := r.clock.Ticker(tickTime)
	defer tick.Stop()
	began, from := r.clock.Now(), r.State().Jaw.Aperture
	calm, moved := began, false
	for {
		select {
		case err := <-over:
			if err != nil && ctx.Err() == nil {
				return 0, err
			}
			continue
		case <-ctx.Done():
			return 0, ended(ctx)
		case <-tick.C():
		}
		now, j := r.clock.Now(), r.State().Jaw
		if err := r.healthy(now); err != nil {
			return 0, err
		}
		moved = moved || math.Abs(j.Aperture-from) > jawNear
		if math.Abs(j.Speed) > jawRest {
			calm = now
		}
		switch rest := now.Sub(calm); {
		case math.Abs(j.Aperture-want) <= jawNear && rest >= 4*jawWindow/2:
			return gripThere, nil
		case moved && rest >= jawCalm:
			return gripBlocked, nil
		case !moved && now.Sub(began) > jawStart && rest >= jawStart:
			return gripStill, nil
		case now.Sub(began) > jawMost:
			return 0, fmt.Errorf("the jaw is not at rest after %v", jawMost)
		}
	}
}

// gripResult waits for the goal's end. Only words that say that nothing will come of it are an error: the aperture decides.
func gripResult(ctx context.Context, g ros.Goal) error {
	var res control_msgs.FollowJointTrajectory_Result
	status, err := g.Result(ctx, &res)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case status == ros.GoalCanceled:
		return errors.New("the grip was cancelled, and not by this daemon: look which other program commands the robot")
	case status == ros.GoalAborted && res.ErrorCode == codePreempted:
		return errors.New("another program's goal took the place of the grip: end that program")
	case status == ros.GoalAborted && res.ErrorCode == codeInvalid:
		return fmt.Errorf("the robot's driver will not do the grip: %s", res.ErrorString)
	}
	return nil
}
