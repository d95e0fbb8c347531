package stretch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/control_msgs"
)

func (d *double) accept(msg.Message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.f.reject && (!d.f.oneAtATime || d.running == 0)
}

var order = []string{"lift_joint", "arm_joint", "wrist_yaw_joint", "wrist_pitch_joint", "wrist_roll_joint"}

func fail(code int32, words string) (msg.Message, ros.GoalStatus) {
	return &control_msgs.FollowJointTrajectory_Result{ErrorCode: code, ErrorString: words}, ros.GoalAborted
}

// run executes a goal as the driver does: a newer one takes its place and nothing is stopped.
func (d *double) run(ctx context.Context, _ ros.GoalID, m msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
	g := m.(*control_msgs.FollowJointTrajectory_Goal)
	d.mu.Lock()
	d.goals = append(d.goals, g)
	d.latest++
	mine := d.latest
	d.running++
	defer d.set(func(d *double) { d.running-- })
	modeOK := d.mode == modePosition || d.mode == modeNavigation && !d.f.positionOnly || d.gen == GenB && d.mode == modeActive
	homed, lie := d.homed, d.f.lie
	d.mu.Unlock()
	switch {
	case !modeOK:
		return fail(-1, "wrong mode")
	case !homed:
		return fail(-1, "not homed")
	case lie:
		return new(control_msgs.FollowJointTrajectory_Result), ros.GoalSucceeded
	}
	use, jaw, err := d.start(g)
	if err != nil {
		return fail(-2, err.Error())
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	began, started := time.Now(), map[int]bool{}
	timeout := 3 * time.Second
	if d.gen == GenB {
		timeout = 5 * time.Second
	}
	for {
		cancelled := false
		select {
		case <-ctx.Done():
			cancelled = true
		case <-tick.C:
		}
		d.mu.Lock()
		switch {
		case d.latest != mine:
			d.mu.Unlock()
			return fail(-6, "Preempted")
		case cancelled && !d.f.ignoreCancel:
			d.halt()
			d.mu.Unlock()
			return new(control_msgs.FollowJointTrajectory_Result), ros.GoalCanceled
		case cancelled: // and it goes on
			d.j[0].target = 1.1
			d.mu.Unlock()
			<-time.After(50 * time.Millisecond)
			return new(control_msgs.FollowJointTrajectory_Result), ros.GoalCanceled
		case time.Since(began) > timeout:
			d.mu.Unlock()
			return fail(-4, "Goal timed out")
		}
		done := d.finished(use, jaw, started, time.Since(began), g)
		d.mu.Unlock()
		if done {
			return new(control_msgs.FollowJointTrajectory_Result), ros.GoalSucceeded
		}
	}
}

func (d *double) start(g *control_msgs.FollowJointTrajectory_Goal) (use []int, jaw bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := g.Trajectory.Points[len(g.Trajectory.Points)-1]
	if d.gen == GenB {
		clear(d.track)
		d.trackAt = time.Now()
	}
	for k, name := range g.Trajectory.JointNames {
		i := slices.Index(order, name)
		switch {
		case name == "parallel_gripper_joint":
			jaw, d.jaw.target = true, last.Positions[k]
		case name == "gripper_joint":
			jaw, d.jaw.target = true, d.sg4(last.Positions[k])
		case i < 0:
			return nil, false, fmt.Errorf("no joint %s", name)
		case d.gen == GenB:
			ks := []knotB{{0, d.j[i].q}}
			for _, p := range g.Trajectory.Points {
				ks = append(ks, knotB{time.Duration(p.TimeFromStart.Sec)*time.Second + time.Duration(p.TimeFromStart.Nanosec), p.Positions[k]})
			}
			d.track[i] = ks
			use = append(use, i)
		default:
			d.j[i].target, d.j[i].asked = last.Positions[k], 0
			if k < len(last.Velocities) {
				d.j[i].asked = last.Velocities[k]
			}
			use = append(use, i)
		}
	}
	return use, jaw, nil
}

// sg4 is the aperture that a gripper goal means, by the servo's linear map of percent to the angle between the fingers.
func (d *double) sg4(x float64) float64 {
	open := 2 * math.Asin(0.150/2/0.18205)
	switch d.gen {
	case GenA:
		return 2 * 0.18205 * math.Sin((x+100)/400*open/2)
	case GenAPrime:
		return 2 * 0.18205 * math.Sin(x)
	}
	return 2 * 0.18205 * math.Sin(x/2)
}

func (d *double) finished(use []int, jaw bool, started map[int]bool, since time.Duration, g *control_msgs.FollowJointTrajectory_Goal) bool {
	if jaw && math.Abs(d.jaw.q-d.jaw.target) > 0.002 {
		return false
	}
	last := g.Trajectory.Points[len(g.Trajectory.Points)-1].TimeFromStart
	for _, i := range use {
		started[i] = started[i] || d.j[i].v != 0
	}
	for _, i := range use {
		a := &d.j[i]
		switch {
		case d.gen == GenB:
			tol := 0.05
			if i <= 1 {
				tol = 0.01
			}
			ks := d.track[i]
			if since < time.Duration(last.Sec)*time.Second+time.Duration(last.Nanosec) || len(ks) == 0 || math.Abs(a.q-ks[len(ks)-1].q) > tol {
				return false
			}
		case i > 1:
			if math.Abs(a.q-a.target) > 0.5 {
				return false
			}
		default:
			if !started[i] || a.v != 0 {
				return false
			}
		}
	}
	return true
}
