package wire

import (
	"context"
	"errors"
	"fmt"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/controller_manager_msgs"
	"viad/ros/msg/franka_msgs"
)

func recoveryAction(name string) ros.Action {
	return ros.ActionOf[franka_msgs.ErrorRecovery_Goal, franka_msgs.ErrorRecovery_Result, franka_msgs.ErrorRecovery_Feedback](name)
}

// recovered is a goal of the error recovery.
func (w *Franka) recovered(ctx context.Context, _ ros.GoalID, _ msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
	res := &franka_msgs.ErrorRecovery_Result{}
	switch err := w.arm.recover(ctx); {
	case err == nil:
		return res, ros.GoalSucceeded
	case ctx.Err() != nil:
		return res, ros.GoalCanceled
	}
	return res, ros.GoalAborted
}

func (w *Franka) serveManager() error {
	errs := []error{
		w.part(w.node.Serve(ros.ServiceOf[controller_manager_msgs.ListControllers_Request, controller_manager_msgs.ListControllers_Response]("/controller_manager/list_controllers"), w.list)),
		w.part(w.node.Serve(ros.ServiceOf[controller_manager_msgs.SwitchController_Request, controller_manager_msgs.SwitchController_Response]("/controller_manager/switch_controller"), w.change)),
	}
	if !w.one {
		errs = append(errs, w.part(w.node.Serve(ros.ServiceOf[controller_manager_msgs.SetHardwareComponentState_Request, controller_manager_msgs.SetHardwareComponentState_Response]("/controller_manager/set_hardware_component_state"), w.hardware)))
	}
	return errors.Join(errs...)
}

func (w *Franka) hardware(_ context.Context, m msg.Message) (msg.Message, error) {
	res := &controller_manager_msgs.SetHardwareComponentState_Response{}
	q, is := m.(*controller_manager_msgs.SetHardwareComponentState_Request)
	if res.State.Label = "unconfigured"; is && q.Name == "FrankaHardwareInterface" && q.TargetState.Label == "active" && w.arm.bringUp() {
		res.Ok, res.State = true, q.TargetState
	}
	return res, nil
}

func (w *Franka) list(context.Context, msg.Message) (msg.Message, error) {
	a := w.arm
	a.mu.Lock()
	defer a.mu.Unlock()
	word := map[bool]string{true: "active", false: "inactive"}
	kind, claims := "joint_trajectory_controller/JointTrajectoryController", make([]string, 0, len(a.joints))
	if w.one {
		word = map[bool]string{true: "running", false: "stopped"}
		kind = "position_controllers/JointTrajectoryController"
	}
	for _, j := range a.joints {
		claims = append(claims, j+"/effort")
	}
	mine := controller_manager_msgs.ControllerState{Name: w.controller, Type: kind, State: word[a.listens()]}
	if a.listens() {
		mine.ClaimedInterfaces = claims
	}
	broadcaster := controller_manager_msgs.ControllerState{Name: "franka_robot_state_broadcaster", Type: "franka_robot_state_broadcaster/FrankaRobotStateBroadcaster", State: word[!a.down]}
	if w.one {
		broadcaster.Name, broadcaster.Type = "franka_state_controller", "franka_control/FrankaStateController"
	}
	res := &controller_manager_msgs.ListControllers_Response{Controller: []controller_manager_msgs.ControllerState{broadcaster, mine}}
	if r := a.faults.Rival; r != "" {
		res.Controller = append(res.Controller, controller_manager_msgs.ControllerState{Name: r, Type: "somebody_elses/Controller", State: word[true], ClaimedInterfaces: claims})
	}
	return res, nil
}

func (w *Franka) change(_ context.Context, m msg.Message) (msg.Message, error) {
	q, is := m.(*controller_manager_msgs.SwitchController_Request)
	if !is {
		return nil, fmt.Errorf("wire: a %T", m)
	}
	ok := true
	for _, n := range q.DeactivateControllers {
		ok = ok && n == w.controller && w.arm.activate(false)
	}
	for _, n := range q.ActivateControllers {
		ok = ok && n == w.controller && w.arm.activate(true)
	}
	return &controller_manager_msgs.SwitchController_Response{Ok: ok}, nil
}

// serveSettings are the services that set the control box up. They are refused while a controller drives.
func (w *Franka) serveSettings() error {
	at := "/service_server/"
	if w.one {
		at = "/franka_control/"
	}
	errs := []error{
		w.part(w.node.Serve(ros.ServiceOf[franka_msgs.SetFullCollisionBehavior_Request, franka_msgs.SetFullCollisionBehavior_Response](at+"set_full_collision_behavior"),
			func(_ context.Context, m msg.Message) (msg.Message, error) {
				err := w.arm.setTouch(m)
				return &franka_msgs.SetFullCollisionBehavior_Response{Success: err == nil, Error: sentence(err)}, nil
			})),
		w.part(w.node.Serve(ros.ServiceOf[franka_msgs.SetForceTorqueCollisionBehavior_Request, franka_msgs.SetForceTorqueCollisionBehavior_Response](at+"set_force_torque_collision_behavior"),
			func(_ context.Context, m msg.Message) (msg.Message, error) {
				err := w.arm.setTouch(m)
				return &franka_msgs.SetForceTorqueCollisionBehavior_Response{Success: err == nil, Error: sentence(err)}, nil
			})),
		w.setting(ros.ServiceOf[franka_msgs.SetLoad_Request, franka_msgs.SetLoad_Response](at+"set_load"), func(ok bool, why string) msg.Message {
			return &franka_msgs.SetLoad_Response{Success: ok, Error: why}
		}),
	}
	if !w.one {
		errs = append(errs,
			w.setting(ros.ServiceOf[franka_msgs.SetJointStiffness_Request, franka_msgs.SetJointStiffness_Response](at+"set_joint_stiffness"), func(ok bool, why string) msg.Message {
				return &franka_msgs.SetJointStiffness_Response{Success: ok, Error: why}
			}),
			w.setting(ros.ServiceOf[franka_msgs.SetCartesianStiffness_Request, franka_msgs.SetCartesianStiffness_Response](at+"set_cartesian_stiffness"), func(ok bool, why string) msg.Message {
				return &franka_msgs.SetCartesianStiffness_Response{Success: ok, Error: why}
			}),
			w.setting(ros.ServiceOf[franka_msgs.SetTCPFrame_Request, franka_msgs.SetTCPFrame_Response](at+"set_tcp_frame"), func(ok bool, why string) msg.Message {
				return &franka_msgs.SetTCPFrame_Response{Success: ok, Error: why}
			}),
			w.setting(ros.ServiceOf[franka_msgs.SetStiffnessFrame_Request, franka_msgs.SetStiffnessFrame_Response](at+"set_stiffness_frame"), func(ok bool, why string) msg.Message {
				return &franka_msgs.SetStiffnessFrame_Response{Success: ok, Error: why}
			}))
	}
	return errors.Join(errs...)
}

// setting serves one that the twin takes, while no controller drives, and that changes nothing of it.
func (w *Franka) setting(of ros.Service, answer func(ok bool, why string) msg.Message) error {
	return w.part(w.node.Serve(of, func(context.Context, msg.Message) (msg.Message, error) {
		err := w.arm.idle()
		return answer(err == nil, sentence(err)), nil
	}))
}

func sentence(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

var errDriven = errors.New("libfranka: command rejected: a controller is running (command not possible in the current mode)")

// idle is an error while a controller has the robot.
func (a *arm) idle() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.free()
}

func (a *arm) free() error {
	if a.mode == modeMove {
		return errDriven
	}
	return nil
}

// setTouch takes the thresholds of a collision.
func (a *arm) setTouch(m msg.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.free(); err != nil {
		return err
	}
	switch q := m.(type) {
	case *franka_msgs.SetFullCollisionBehavior_Request:
		a.touch[0] = touch{q.LowerTorqueThresholdsNominal, q.UpperTorqueThresholdsNominal, q.LowerForceThresholdsNominal, q.UpperForceThresholdsNominal}
		a.touch[1] = touch{q.LowerTorqueThresholdsAcceleration, q.UpperTorqueThresholdsAcceleration, q.LowerForceThresholdsAcceleration, q.UpperForceThresholdsAcceleration}
	case *franka_msgs.SetForceTorqueCollisionBehavior_Request: // for both, as libfranka's short form
		a.touch[0] = touch{q.LowerTorqueThresholdsNominal, q.UpperTorqueThresholdsNominal, q.LowerForceThresholdsNominal, q.UpperForceThresholdsNominal}
		a.touch[1] = a.touch[0]
	}
	return nil
}
