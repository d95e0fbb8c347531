package franka

import (
	"context"
	"math"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/controller_manager_msgs"
	"viad/ros/msg/franka_gripper"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/std_srvs"
)

func (d *double) serve() {
	t := d.t
	keep := must[ros.Closer](t)
	keep(d.node.ServeAction(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback](d.n.trajectory), ros.ActionHandler{
		Accept: d.acceptGoal, Run: d.runGoal,
	}))
	keep(d.node.ServeAction(ros.ActionOf[franka_msgs.ErrorRecovery_Goal, franka_msgs.ErrorRecovery_Result, franka_msgs.ErrorRecovery_Feedback](d.n.recovery), ros.ActionHandler{Run: d.runRecovery}))
	keep(d.node.ServeAction(ros.ActionOf[franka_msgs.Homing_Goal, franka_msgs.Homing_Result, franka_msgs.Homing_Feedback](d.n.homing), ros.ActionHandler{
		Run: func(context.Context, ros.GoalID, msg.Message, func(msg.Message)) (msg.Message, ros.GoalStatus) {
			d.set(func(d *double) { d.homed, d.width, d.wantW = true, 0.08, 0.08 })
			return &franka_msgs.Homing_Result{Success: true}, ros.GoalSucceeded
		},
	}))
	keep(d.node.ServeAction(ros.ActionOf[franka_msgs.Move_Goal, franka_msgs.Move_Result, franka_msgs.Move_Feedback](d.n.move), ros.ActionHandler{
		Run: func(_ context.Context, _ ros.GoalID, g msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
			m := g.(*franka_msgs.Move_Goal)
			ok := d.stroke(m.Width, m.Speed, 0.005)
			return &franka_msgs.Move_Result{Success: ok}, status3(ok)
		},
	}))
	keep(d.node.ServeAction(ros.ActionOf[franka_msgs.Grasp_Goal, franka_msgs.Grasp_Result, franka_msgs.Grasp_Feedback](d.n.grasp), ros.ActionHandler{
		Run: func(_ context.Context, _ ros.GoalID, g msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
			m := *g.(*franka_msgs.Grasp_Goal)
			d.set(func(d *double) { d.graspGot = &m })
			ok := d.stroke(m.Width, m.Speed, m.Epsilon.Outer)
			return &franka_msgs.Grasp_Result{Success: ok}, status3(ok)
		},
	}))
	interrupt := func() {
		d.set(func(d *double) {
			d.stops++
			close(d.stopHand)
			d.stopHand = make(chan struct{})
		})
	}
	if d.kind == Panda {
		keep(d.node.ServeAction(ros.ActionOf[franka_gripper.Stop_Goal, franka_gripper.Stop_Result, franka_gripper.Stop_Feedback](d.n.stop), ros.ActionHandler{
			Run: func(context.Context, ros.GoalID, msg.Message, func(msg.Message)) (msg.Message, ros.GoalStatus) {
				interrupt()
				return &franka_gripper.Stop_Result{Success: true}, ros.GoalSucceeded
			},
		}))
	} else {
		keep(d.node.Serve(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response](d.n.stop), func(context.Context, msg.Message) (msg.Message, error) {
			interrupt()
			return &std_srvs.Trigger_Response{Success: true}, nil
		}))
		keep(d.node.Serve(ros.ServiceOf[controller_manager_msgs.SetHardwareComponentState_Request, controller_manager_msgs.SetHardwareComponentState_Response](d.n.hardware), func(_ context.Context, m msg.Message) (msg.Message, error) {
			q := m.(*controller_manager_msgs.SetHardwareComponentState_Request)
			d.set(func(d *double) { d.hardware = append(d.hardware, q.Name+" "+q.TargetState.Label) })
			return &controller_manager_msgs.SetHardwareComponentState_Response{Ok: true, State: q.TargetState}, nil
		}))
	}
	keep(d.node.Serve(ros.ServiceOf[controller_manager_msgs.ListControllers_Request, controller_manager_msgs.ListControllers_Response](d.n.list), d.listed))
	keep(d.node.Serve(ros.ServiceOf[controller_manager_msgs.SwitchController_Request, controller_manager_msgs.SwitchController_Response](d.n.change), d.switched))
}

func status3(ok bool) ros.GoalStatus {
	if ok {
		return ros.GoalSucceeded
	}
	return ros.GoalAborted
}

func (d *double) acceptGoal(msg.Message) bool {
	for get(d, func(d *double) bool { return d.f.deaf }) {
		<-time.After(10 * time.Millisecond)
	}
	return get(d, func(d *double) bool { return d.active && d.mode == modeMove })
}

func (d *double) runGoal(ctx context.Context, _ ros.GoalID, m msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
	g := *m.(*control_msgs.FollowJointTrajectory_Goal)
	over, end := d.accept(&g)
	lie := get(d, func(d *double) time.Duration { return d.f.lieAfter })
	if lie > 0 {
		end = time.Now().Add(lie)
	}
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	res := new(control_msgs.FollowJointTrajectory_Result)
	for {
		select {
		case <-over:
			code := get(d, func(d *double) int32 { return d.verdict })
			if code == 0 {
				code = control_msgs.FollowJointTrajectory_Result_INVALID_GOAL
			}
			res.ErrorCode, res.ErrorString = code, "aborted"
			return res, ros.GoalAborted
		case <-timer.C:
			return res, ros.GoalSucceeded
		case <-ctx.Done():
			d.mu.Lock()
			if !d.f.ignoreCancel && d.replaced == over {
				d.hold(0)
			}
			d.mu.Unlock()
			return res, ros.GoalCanceled
		}
	}
}

func (d *double) runRecovery(ctx context.Context, _ ros.GoalID, _ msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
	d.set(func(d *double) { d.recovers++ })
	wait := get(d, func(d *double) time.Duration { return d.f.slowRecovery })
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return new(franka_msgs.ErrorRecovery_Result), ros.GoalCanceled
	}
	d.set(func(d *double) {
		d.mode = modeIdle
		if d.kind == Panda {
			d.mode = modeMove
		}
	})
	return new(franka_msgs.ErrorRecovery_Result), ros.GoalSucceeded
}

// reflex is an FCI error: the arm brakes at once, and on ROS 2 the controllers are taken down.
func (d *double) reflex(mode uint8, why ...string) {
	d.set(func(d *double) {
		d.mode, d.las = mode, why
		d.hold(control_msgs.FollowJointTrajectory_Result_INVALID_GOAL)
		if d.kind == FR3 {
			d.active = false
		}
	})
}

// stroke moves the fingers in a call that blocks, whatever is asked of it meanwhile, until it is stopped.
func (d *double) stroke(width, speed, outer float64) bool {
	d.mu.Lock()
	d.moves++
	d.wantW, d.speedW, d.moving = width, speed, true
	stop := d.stopHand
	d.mu.Unlock()
	was, still := -1.0, 0
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for still < 5 {
		select {
		case <-stop:
			d.set(func(d *double) { d.moving = false })
			return false
		case <-tick.C:
		}
		w, hangs := get(d, func(d *double) float64 { return d.width }), get(d, func(d *double) bool { return d.f.handHangs })
		if w == was && !(hangs && math.Abs(w-width) > 1e-3) {
			still++
		} else {
			still = 0
		}
		was = w
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moving = false
	return d.width <= width+outer && d.width >= width-0.01 && !d.f.handError
}

func (d *double) listed(context.Context, msg.Message) (msg.Message, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	on := map[Kind]string{FR3: "active", Panda: "running"}[d.kind]
	a := new(controller_manager_msgs.ListControllers_Response)
	state, claims := "inactive", []string(nil)
	if d.active {
		state = on
		for _, j := range d.n.joints {
			claims = append(claims, j+"/effort")
		}
	}
	a.Controller = append(a.Controller, controller_manager_msgs.ControllerState{Name: d.ctrl, State: state, ClaimedInterfaces: claims})
	for _, r := range d.rivals {
		a.Controller = append(a.Controller, controller_manager_msgs.ControllerState{Name: r, State: on, ClaimedInterfaces: []string{d.n.joints[0] + "/effort"}})
	}
	return a, nil
}

func (d *double) switched(_ context.Context, m msg.Message) (msg.Message, error) {
	q := m.(*controller_manager_msgs.SwitchController_Request)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range q.DeactivateControllers {
		d.switches = append(d.switches, "off "+n)
		d.active, d.mode = false, modeIdle
		d.hold(0)
	}
	for _, n := range q.ActivateControllers {
		d.switches = append(d.switches, "on "+n)
		d.active = true
		if !d.f.inactiveMove {
			d.mode = modeMove
		}
	}
	return &controller_manager_msgs.SwitchController_Response{Ok: true}, nil
}
