package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/controller_manager_msgs"
	"viad/ros/msg/franka_gripper"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/franka_ros1_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
	"viad/sim"
)

var errStopped = errors.New("stopped")

// Franka is the ROS side of an FR3 (franka_ros2) or a Panda (franka_ros) with its hand.
type Franka struct {
	twin       *sim.Twin
	node       ros.Node
	arm        *arm
	one        bool // ROS 1
	prefix     string
	controller string
	closers    []ros.Closer
	outs       []out
}

// out publishes every so many ticks.
type out struct {
	every int
	send  func(ctx context.Context, now time.Time) error
}

// tick is the period of the fastest topic.
const tick = 10 * time.Millisecond

// NewFranka puts a twin of an fr3 (on a node of ROS 2) or of a panda (ROS 1) behind its nodes' names. description is the
// URDF that the robot publishes; empty publishes none.
func NewFranka(twin *sim.Twin, node ros.Node, description string, f Faults) (*Franka, error) {
	w := &Franka{twin: twin, node: node, one: node.Wire() == "ros1", prefix: "fr3", controller: "fr3_arm_controller"}
	if w.one {
		w.prefix, w.controller = "panda", "position_joint_trajectory_controller"
	}
	joints := make([]string, 0, 7)
	for i := range 7 {
		joints = append(joints, fmt.Sprintf("%s_joint%d", w.prefix, i+1))
	}
	w.arm = newArm(joints, f)
	w.arm.fast = fastFR3
	if w.one {
		w.arm.fast = fastPanda
	}
	err := errors.Join(w.serveArm(), w.serveHand(), w.serveManager(), w.advertise(description))
	if err == nil {
		err = twin.Govern(w.arm.govern)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Set changes the faults while the robot runs.
func (w *Franka) Set(f func(*Faults)) { w.arm.set(f) }

// Close ends what Franka serves; the node and the twin are their owner's.
func (w *Franka) Close() error {
	errs := make([]error, 0, 1+len(w.closers))
	if err := w.twin.Govern(nil); !errors.Is(err, sim.ErrOver) {
		errs = append(errs, err)
	}
	w.arm.leave()
	for _, c := range w.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Run publishes until ctx ends.
func (w *Franka) Run(ctx context.Context) error {
	return publish(ctx, w.twin.Clock(), w.outs)
}

// publish sends what is due, tick by tick, until ctx ends.
func publish(ctx context.Context, clock robot.Clock, outs []out) error {
	t := clock.Ticker(tick)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C():
			for _, o := range outs {
				if n%o.every != 0 {
					continue
				}
				if err := o.send(ctx, now); err != nil && ctx.Err() == nil {
					return fmt.Errorf("wire: %w", err)
				}
			}
		}
	}
}

func (w *Franka) keep(c ros.Closer, err error) error {
	if err == nil {
		w.closers = append(w.closers, c)
	}
	return err
}

func (w *Franka) serveArm() error {
	recovery := "/action_server/error_recovery"
	if w.one {
		recovery = "/franka_control/error_recovery"
	}
	return errors.Join(
		w.keep(w.node.ServeAction(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback](
			"/"+w.controller+"/follow_joint_trajectory",
		), ros.ActionHandler{Accept: w.acceptable, Run: w.follow})),
		w.keep(w.node.ServeAction(ros.ActionOf[franka_msgs.ErrorRecovery_Goal, franka_msgs.ErrorRecovery_Result, franka_msgs.ErrorRecovery_Feedback](recovery),
			ros.ActionHandler{Run: func(ctx context.Context, _ ros.GoalID, _ msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
				status := ros.GoalSucceeded
				if w.arm.recover(ctx, w.twin.Clock().After) != nil {
					status = ros.GoalAborted
				}
				if status == ros.GoalSucceeded && w.one { // franka_ros starts its controllers again
					w.arm.bringUp()
					w.activate(true)
				}
				return &franka_msgs.ErrorRecovery_Result{}, status
			}})),
	)
}

func (w *Franka) activate(on bool) bool {
	w.arm.mu.Lock()
	defer w.arm.mu.Unlock()
	if on && (w.arm.down || w.arm.mode != modeIdle && w.arm.mode != modeMove) {
		return false
	}
	w.arm.active = on
	if !on {
		w.arm.end(control_msgs.FollowJointTrajectory_Result_INVALID_GOAL)
	}
	return true
}

// acceptable is what is known of a goal before it runs.
func (w *Franka) acceptable(m msg.Message) bool {
	w.arm.mu.Lock()
	defer w.arm.mu.Unlock()
	_, is := m.(*control_msgs.FollowJointTrajectory_Goal)
	return is && w.arm.active && w.arm.begun
}

func (w *Franka) follow(ctx context.Context, _ ros.GoalID, m msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
	res := &control_msgs.FollowJointTrajectory_Result{}
	g, is := m.(*control_msgs.FollowJointTrajectory_Goal)
	if !is {
		return res, ros.GoalAborted
	}
	r, err := w.arm.begin(g)
	if err != nil {
		res.ErrorCode, res.ErrorString = control_msgs.FollowJointTrajectory_Result_INVALID_GOAL, err.Error()
		return res, ros.GoalAborted
	}
	cancelled := ctx.Done()
	for {
		select {
		case res.ErrorCode = <-r.done:
			if res.ErrorCode != 0 {
				return res, ros.GoalAborted
			}
			return res, ros.GoalSucceeded
		case <-cancelled:
			w.arm.mu.Lock()
			deaf := w.arm.faults.IgnoreCancel
			w.arm.mu.Unlock()
			if !deaf {
				w.arm.cancel(r)
				return res, ros.GoalCanceled
			}
			cancelled = nil
		}
	}
}

func (w *Franka) serveManager() error {
	var errs []error
	errs = append(errs,
		w.keep(w.node.Serve(ros.ServiceOf[controller_manager_msgs.ListControllers_Request, controller_manager_msgs.ListControllers_Response]("/controller_manager/list_controllers"), w.list)),
		w.keep(w.node.Serve(ros.ServiceOf[controller_manager_msgs.SwitchController_Request, controller_manager_msgs.SwitchController_Response]("/controller_manager/switch_controller"), w.change)))
	if !w.one {
		errs = append(errs, w.keep(w.node.Serve(ros.ServiceOf[controller_manager_msgs.SetHardwareComponentState_Request, controller_manager_msgs.SetHardwareComponentState_Response]("/controller_manager/set_hardware_component_state"),
			func(_ context.Context, m msg.Message) (msg.Message, error) {
				res := &controller_manager_msgs.SetHardwareComponentState_Response{}
				q, is := m.(*controller_manager_msgs.SetHardwareComponentState_Request)
				if res.State.Label = "unconfigured"; is && q.Name == "FrankaHardwareInterface" && q.TargetState.Label == "active" && w.arm.bringUp() {
					res.Ok, res.State = true, q.TargetState
				}
				return res, nil
			})))
	}
	return errors.Join(errs...)
}

func (w *Franka) list(context.Context, msg.Message) (msg.Message, error) {
	w.arm.mu.Lock()
	defer w.arm.mu.Unlock()
	word := map[bool]string{true: "active", false: "inactive"}
	kind := "joint_trajectory_controller/JointTrajectoryController"
	if w.one {
		word = map[bool]string{true: "running", false: "stopped"}
		kind = "position_controllers/JointTrajectoryController"
	}
	claims := make([]string, 0, len(w.arm.joints))
	for _, j := range w.arm.joints {
		claims = append(claims, j+"/effort")
	}
	mine := controller_manager_msgs.ControllerState{Name: w.controller, Type: kind, State: word[w.arm.active]}
	if w.arm.active {
		mine.ClaimedInterfaces = claims
	}
	res := &controller_manager_msgs.ListControllers_Response{Controller: []controller_manager_msgs.ControllerState{mine}}
	if r := w.arm.faults.Rival; r != "" {
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
		ok = ok && n == w.controller && w.activate(false)
	}
	for _, n := range q.ActivateControllers {
		ok = ok && n == w.controller && w.activate(true)
	}
	return &controller_manager_msgs.SwitchController_Response{Ok: ok}, nil
}

// grasped judges a hand's motion as its server does.
func (w *Franka) moveHand(ctx context.Context, to, speed float64, fine func(width float64) string) (bool, string) {
	w.arm.mu.Lock()
	if !w.arm.hand.homed {
		w.arm.mu.Unlock()
		return false, "libfranka gripper: command failed: width out of range, homing was not done"
	}
	done := w.arm.hand.move(to, speed, w.arm.now)
	w.arm.mu.Unlock()
	select {
	case err := <-done:
		if err != nil {
			return false, "libfranka gripper: command aborted: " + err.Error()
		}
	case <-ctx.Done():
		return false, "cancelled" // the hand itself goes on: only stop interrupts it
	}
	w.arm.mu.Lock()
	defer w.arm.mu.Unlock()
	why := fine(w.arm.hand.width)
	return why == "", why
}

func outcome(ok bool) ros.GoalStatus {
	if ok {
		return ros.GoalSucceeded
	}
	return ros.GoalAborted
}

func (w *Franka) serveHand() error {
	errs := []error{
		w.keep(w.node.ServeAction(ros.ActionOf[franka_msgs.Homing_Goal, franka_msgs.Homing_Result, franka_msgs.Homing_Feedback]("/franka_gripper/homing"), ros.ActionHandler{
			Run: func(ctx context.Context, _ ros.GoalID, _ msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
				w.arm.mu.Lock()
				w.arm.hand.homed = true
				w.arm.mu.Unlock()
				ok, why := w.moveHand(ctx, 0, 0.1, func(float64) string { return "" })
				if ok {
					ok, why = w.moveHand(ctx, handMost, 0.1, func(float64) string { return "" })
				}
				return &franka_msgs.Homing_Result{Success: ok, Error: why}, outcome(ok)
			},
		})),
		w.keep(w.node.ServeAction(ros.ActionOf[franka_msgs.Move_Goal, franka_msgs.Move_Result, franka_msgs.Move_Feedback]("/franka_gripper/move"), ros.ActionHandler{Run: w.handMove})),
		w.keep(w.node.ServeAction(ros.ActionOf[franka_msgs.Grasp_Goal, franka_msgs.Grasp_Result, franka_msgs.Grasp_Feedback]("/franka_gripper/grasp"), ros.ActionHandler{Run: w.handGrasp})),
	}
	halt := func() {
		w.arm.mu.Lock()
		defer w.arm.mu.Unlock()
		w.arm.hand.stop()
	}
	if w.one {
		return errors.Join(append(errs, w.keep(w.node.ServeAction(ros.ActionOf[franka_gripper.Stop_Goal, franka_gripper.Stop_Result, franka_gripper.Stop_Feedback]("/franka_gripper/stop"), ros.ActionHandler{
			Run: func(context.Context, ros.GoalID, msg.Message, func(msg.Message)) (msg.Message, ros.GoalStatus) {
				halt()
				return &franka_gripper.Stop_Result{Success: true}, ros.GoalSucceeded
			},
		})))...)
	}
	return errors.Join(append(errs, w.keep(w.node.Serve(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response]("/franka_gripper/stop"),
		func(context.Context, msg.Message) (msg.Message, error) {
			halt()
			return &std_srvs.Trigger_Response{Success: true}, nil
		})))...)
}

func (w *Franka) handMove(ctx context.Context, _ ros.GoalID, m msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
	g, is := m.(*franka_msgs.Move_Goal)
	if !is || !(g.Width >= 0 && g.Width <= handMost && g.Speed > 0) {
		return &franka_msgs.Move_Result{Error: "libfranka gripper: command failed: width or speed out of range"}, ros.GoalAborted
	}
	ok, why := w.moveHand(ctx, g.Width, g.Speed, func(width float64) string {
		if math.Abs(width-g.Width) > 0.005 {
			return "libfranka gripper: command failed: width not reached"
		}
		return ""
	})
	return &franka_msgs.Move_Result{Success: ok, Error: why}, outcome(ok)
}

func (w *Franka) handGrasp(ctx context.Context, _ ros.GoalID, m msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
	g, is := m.(*franka_msgs.Grasp_Goal)
	if !is || !(g.Width >= 0 && g.Width <= handMost && g.Speed > 0) {
		return &franka_msgs.Grasp_Result{Error: "libfranka gripper: command failed: width or speed out of range"}, ros.GoalAborted
	}
	ok, why := w.moveHand(ctx, -1, g.Speed, func(width float64) string { // it presses until something stops it
		if width < g.Width-g.Epsilon.Inner || width > g.Width+g.Epsilon.Outer {
			return "libfranka gripper: grasp failed: no object of that width"
		}
		return ""
	})
	return &franka_msgs.Grasp_Result{Success: ok, Error: why}, outcome(ok)
}

func stamp(t time.Time) std_msgs.Header {
	return std_msgs.Header{Stamp: builtin_interfaces.Time{Sec: int32(t.Unix()), Nanosec: uint32(t.Nanosecond())}}
}

func (w *Franka) advertise(description string) error {
	raw, merged, state := "/franka/joint_states", "/joint_states", "/franka_robot_state_broadcaster/robot_state"
	if w.one {
		raw, state = "/franka_state_controller/joint_states", "/franka_state_controller/franka_states"
	}
	joints, err := ros.Advertise[sensor_msgs.JointState](w.node, raw, ros.Default())
	if err != nil {
		return err
	}
	all, err := ros.Advertise[sensor_msgs.JointState](w.node, merged, ros.Default())
	if err != nil {
		return err
	}
	fingers, err := ros.Advertise[sensor_msgs.JointState](w.node, "/franka_gripper/joint_states", ros.Default())
	if err != nil {
		return err
	}
	w.closers = append(w.closers, joints, all, fingers)
	w.outs = []out{
		{1, func(ctx context.Context, now time.Time) error { return w.sendJoints(ctx, joints, now, false) }},
		{3, func(ctx context.Context, now time.Time) error { return w.sendJoints(ctx, all, now, true) }},
		{7, func(ctx context.Context, now time.Time) error { return fingers.Send(ctx, w.fingers(now)) }},
	}
	if err := w.advertiseState(state); err != nil || description == "" || w.one {
		return err
	}
	text, err := ros.Advertise[std_msgs.String](w.node, "/robot_description", ros.Latched())
	if err != nil {
		return err
	}
	w.closers = append(w.closers, text)
	return text.Send(context.Background(), &std_msgs.String{Data: description})
}

func (w *Franka) sendJoints(ctx context.Context, to ros.Publisher[*sensor_msgs.JointState], now time.Time, merged bool) error {
	w.arm.mu.Lock()
	a := w.arm
	if !a.begun || a.faults.SilentJoints {
		a.mu.Unlock()
		return nil
	}
	m := &sensor_msgs.JointState{Header: stamp(now), Name: a.joints}
	m.Position, m.Velocity, m.Effort = append(m.Position, a.q...), append(m.Velocity, a.v...), append(m.Effort, a.effort...)
	if a.faults.NaNJoint {
		m.Position[3] = math.NaN()
	}
	a.mu.Unlock()
	if merged {
		f := w.fingers(now)
		m.Name = append(append([]string(nil), m.Name...), f.Name...)
		m.Position, m.Velocity, m.Effort = append(m.Position, f.Position...), append(m.Velocity, f.Velocity...), append(m.Effort, f.Effort...)
	}
	return to.Send(ctx, m)
}

func (w *Franka) fingers(now time.Time) *sensor_msgs.JointState {
	w.arm.mu.Lock()
	defer w.arm.mu.Unlock()
	h := &w.arm.hand
	if !w.arm.faults.StaleHand {
		h.shown = h.width
		if !h.homed {
			h.shown = 0
		}
	}
	half := h.shown / 2
	return &sensor_msgs.JointState{
		Header: stamp(now), Name: []string{w.prefix + "_finger_joint1", w.prefix + "_finger_joint2"},
		Position: []float64{half, half}, Velocity: []float64{0, 0}, Effort: []float64{0, 0},
	}
}

func (w *Franka) advertiseState(topic string) error {
	if w.one {
		p, err := ros.Advertise[franka_ros1_msgs.FrankaState](w.node, topic, ros.Default())
		if err != nil {
			return err
		}
		w.closers = append(w.closers, p)
		w.outs = append(w.outs, out{3, func(ctx context.Context, now time.Time) error { return p.Send(ctx, w.state1(now)) }})
		return nil
	}
	p, err := ros.Advertise[franka_msgs.FrankaRobotState](w.node, topic, ros.Default())
	if err != nil {
		return err
	}
	w.closers = append(w.closers, p)
	w.outs = append(w.outs, out{2, func(ctx context.Context, now time.Time) error { return p.Send(ctx, w.state2(now)) }})
	return nil
}

func (w *Franka) state1(now time.Time) *franka_ros1_msgs.FrankaState {
	a := w.arm
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &franka_ros1_msgs.FrankaState{Header: stamp(now), RobotMode: a.mode, ControlCommandSuccessRate: 1}
	copy(m.Q[:], a.q)
	copy(m.Dq[:], a.v)
	m.OFExtHatK[2] = a.force
	m.CurrentErrors.CartesianReflex = a.err == "cartesian_reflex"
	m.LastMotionErrors.CartesianReflex = a.last == "cartesian_reflex"
	m.CurrentErrors.JointMotionGeneratorVelocityDiscontinuity = a.err == "joint_motion_generator_velocity_discontinuity"
	m.CurrentErrors.JointVelocityViolation = a.err == tooFast
	m.LastMotionErrors.JointVelocityViolation = a.last == tooFast
	m.LastMotionErrors.JointMotionGeneratorVelocityDiscontinuity = a.last == "joint_motion_generator_velocity_discontinuity"
	return m
}

func (w *Franka) state2(now time.Time) *franka_msgs.FrankaRobotState {
	a := w.arm
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &franka_msgs.FrankaRobotState{Header: stamp(now), RobotMode: a.mode, ControlCommandSuccessRate: 1}
	m.MeasuredJointState = sensor_msgs.JointState{Header: m.Header, Name: a.joints, Position: append([]float64(nil), a.q...), Velocity: append([]float64(nil), a.v...)}
	m.OFExtHatK.Wrench.Force.Z = a.force
	m.CurrentErrors.CartesianReflex = a.err == "cartesian_reflex"
	m.LastMotionErrors.CartesianReflex = a.last == "cartesian_reflex"
	m.CurrentErrors.JointMotionGeneratorVelocityDiscontinuity = a.err == "joint_motion_generator_velocity_discontinuity"
	m.CurrentErrors.JointVelocityViolation = a.err == tooFast
	m.LastMotionErrors.JointVelocityViolation = a.last == tooFast
	m.LastMotionErrors.JointMotionGeneratorVelocityDiscontinuity = a.last == "joint_motion_generator_velocity_discontinuity"
	return m
}
