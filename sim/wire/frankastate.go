package wire

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/franka_ros1_msgs"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/trajectory_msgs"
)

func stamp(t time.Time) std_msgs.Header {
	return std_msgs.Header{Stamp: builtin_interfaces.Time{Sec: int32(t.Unix()), Nanosec: uint32(t.Nanosecond())}}
}

// view is the arm's state at a moment, for the messages.
type view struct {
	head           std_msgs.Header
	q, v, effort   []float64
	want           knot
	mode           uint8
	err, last      string
	rate           float64
	force          float64
	tau            [7]float64
	contact, hit   bool
	joints, struck [7]float64
	begun, silent  bool
}

func (w *Franka) view(now time.Time) view {
	a := w.arm
	a.mu.Lock()
	defer a.mu.Unlock()
	s := view{
		head: stamp(now.Add(a.faults.skew())), q: slices.Clone(a.q), v: slices.Clone(a.v), effort: slices.Clone(a.effort), want: a.want,
		force: a.force, tau: a.tau, begun: a.begun, silent: a.faults.SilentJoints || !a.begun,
	}
	if a.faults.NaNJoint {
		s.q[3] = math.NaN()
	}
	s.mode, s.err, s.last, s.rate = a.shown()
	s.contact, s.hit, s.joints, s.struck = a.touches()
	return s
}

func (w *Franka) jointState(s view) *sensor_msgs.JointState {
	return &sensor_msgs.JointState{Header: s.head, Name: w.arm.joints, Position: s.q, Velocity: s.v, Effort: s.effort}
}

// topicOf advertises a topic of the controller's process whose messages make builds; nil sends nothing.
func topicOf[T any, P msg.Ptr[T]](w *Franka, name string, qos ros.QoS, every int, build func(view) P) error {
	p, err := ros.Advertise[T, P](w.node, name, qos)
	if err != nil {
		return err
	}
	w.process.closers = append(w.process.closers, p)
	w.process.outs = append(w.process.outs, out{every, func(ctx context.Context, now time.Time) error {
		s := w.view(now)
		if !s.begun {
			return nil
		}
		if m := build(s); m != nil {
			return p.Send(ctx, m)
		}
		return nil
	}})
	return nil
}

// advertise is what goes on without the controller's process: the hand's node, the merged joints, the description.
func (w *Franka) advertise(description string) error {
	all, err := ros.Advertise[sensor_msgs.JointState](w.node, "/joint_states", ros.Default())
	if err := w.keep(all, err); err != nil {
		return err
	}
	fingers, err := ros.Advertise[sensor_msgs.JointState](w.node, "/franka_gripper/joint_states", ros.Default())
	if err := w.keep(fingers, err); err != nil {
		return err
	}
	var arm *sensor_msgs.JointState // the merger goes on with the last that it heard
	w.outs = []out{
		{3, func(ctx context.Context, now time.Time) error {
			s := w.view(now)
			if s.silent {
				return nil
			}
			if w.process.up || arm == nil {
				arm = w.jointState(s)
			}
			return all.Send(ctx, merge(s.head, arm, w.fingers(now)))
		}},
		{7, func(ctx context.Context, now time.Time) error { return fingers.Send(ctx, w.fingers(now)) }},
	}
	if description == "" || w.one {
		return nil
	}
	text, err := ros.Advertise[std_msgs.String](w.node, "/robot_description", ros.Latched())
	if err := w.keep(text, err); err != nil {
		return err
	}
	return text.Send(context.Background(), &std_msgs.String{Data: description})
}

func merge(head std_msgs.Header, parts ...*sensor_msgs.JointState) *sensor_msgs.JointState {
	m := &sensor_msgs.JointState{Header: head}
	for _, p := range parts {
		m.Name = append(m.Name, p.Name...)
		m.Position, m.Velocity, m.Effort = append(m.Position, p.Position...), append(m.Velocity, p.Velocity...), append(m.Effort, p.Effort...)
	}
	return m
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
		Header: stamp(now.Add(w.arm.faults.skew())), Name: []string{w.prefix + "_finger_joint1", w.prefix + "_finger_joint2"},
		Position: []float64{half, half}, Velocity: []float64{0, 0}, Effort: []float64{0, 0},
	}
}

// advertiseArm is the joints and the trajectory controller's state.
func (w *Franka) advertiseArm() error {
	raw, state := "/franka/joint_states", "/"+w.controller+"/controller_state"
	if w.one {
		raw, state = "/franka_state_controller/joint_states", "/"+w.controller+"/state"
	}
	return errors.Join(
		topicOf[sensor_msgs.JointState](w, raw, ros.Default(), 1, func(s view) *sensor_msgs.JointState {
			if s.silent {
				return nil
			}
			return w.jointState(s)
		}),
		topicOf[control_msgs.JointTrajectoryControllerState](w, state, ros.Default(), 2, func(s view) *control_msgs.JointTrajectoryControllerState {
			m := &control_msgs.JointTrajectoryControllerState{Header: s.head, JointNames: w.arm.joints}
			m.Reference = trajectory_msgs.JointTrajectoryPoint{Positions: s.want.q, Velocities: s.want.v, Accelerations: s.want.a}
			m.Feedback = trajectory_msgs.JointTrajectoryPoint{Positions: s.q, Velocities: s.v}
			m.Error = trajectory_msgs.JointTrajectoryPoint{Positions: minus(s.want.q, s.q), Velocities: minus(s.want.v, s.v)}
			if !w.one {
				m.Desired, m.Actual = m.Reference, m.Feedback // their names in Humble
			}
			return m
		}),
	)
}

func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}

// advertiseState is the robot's own state. What the broadcaster of ROS 2 takes out of it goes by best effort.
func (w *Franka) advertiseState() error {
	if w.one {
		return errors.Join(
			topicOf[franka_ros1_msgs.FrankaState](w, "/franka_state_controller/franka_states", ros.Default(), 3, w.stateOne),
			topicOf[geometry_msgs.WrenchStamped](w, "/franka_state_controller/F_ext", ros.Default(), 3, wrench),
		)
	}
	const at = "/franka_robot_state_broadcaster/"
	loose := ros.QoS{Depth: 1}
	pose := func(of func(view) []float64) func(view) *geometry_msgs.PoseStamped {
		return func(s view) *geometry_msgs.PoseStamped {
			return &geometry_msgs.PoseStamped{Header: s.head, Pose: poseMsg(handPose([7]float64(of(s))))}
		}
	}
	measured, wanted := func(s view) []float64 { return s.q }, func(s view) []float64 { return s.want.q }
	return errors.Join(
		topicOf[franka_msgs.FrankaRobotState](w, at+"robot_state", ros.Default(), 2, w.stateTwo),
		topicOf[geometry_msgs.PoseStamped](w, at+"current_pose", loose, 2, pose(measured)),
		topicOf[geometry_msgs.PoseStamped](w, at+"last_desired_pose", loose, 2, pose(wanted)),
		topicOf[geometry_msgs.TwistStamped](w, at+"desired_end_effector_twist", loose, 2, func(s view) *geometry_msgs.TwistStamped {
			v, t := twist([7]float64(s.want.q), [7]float64(s.want.v))
			return &geometry_msgs.TwistStamped{Header: s.head, Twist: geometry_msgs.Twist{Linear: vector(v), Angular: vector(t)}}
		}),
		topicOf[geometry_msgs.WrenchStamped](w, at+"external_wrench_in_base_frame", loose, 2, wrench),
		topicOf[geometry_msgs.WrenchStamped](w, at+"external_wrench_in_stiffness_frame", loose, 2, stiffnessWrench),
		topicOf[sensor_msgs.JointState](w, at+"external_joint_torques", loose, 2, func(s view) *sensor_msgs.JointState {
			return &sensor_msgs.JointState{Header: s.head, Name: w.arm.joints, Effort: s.tau[:]}
		}),
		topicOf[sensor_msgs.JointState](w, at+"measured_joint_states", loose, 2, w.jointState),
		topicOf[sensor_msgs.JointState](w, at+"desired_joint_states", loose, 2, func(s view) *sensor_msgs.JointState {
			return &sensor_msgs.JointState{Header: s.head, Name: w.arm.joints, Position: s.want.q, Velocity: s.want.v}
		}),
		topicOf[std_msgs.Bool](w, at+"collision_detected", loose, 2, func(s view) *std_msgs.Bool { return &std_msgs.Bool{Data: s.hit} }),
	)
}

func vector(v r3.Vec) geometry_msgs.Vector3 { return geometry_msgs.Vector3{X: v.X, Y: v.Y, Z: v.Z} }

func poseMsg(p geom.Pose) geometry_msgs.Pose {
	return geometry_msgs.Pose{
		Position:    geometry_msgs.Point{X: p.P.X, Y: p.P.Y, Z: p.P.Z},
		Orientation: geometry_msgs.Quaternion{X: p.R.Imag, Y: p.R.Jmag, Z: p.R.Kmag, W: p.R.Real},
	}
}

// wrench is the force on the hand: its size is the twin's, that it points up is assumed.
func wrench(s view) *geometry_msgs.WrenchStamped {
	return &geometry_msgs.WrenchStamped{Header: s.head, Wrench: geometry_msgs.Wrench{Force: geometry_msgs.Vector3{Z: s.force}}}
}

func stiffnessWrench(s view) *geometry_msgs.WrenchStamped {
	up := geom.Rotate(handPose([7]float64(s.q)).Inv().R, r3.Vec{Z: s.force})
	return &geometry_msgs.WrenchStamped{Header: s.head, Wrench: geometry_msgs.Wrench{Force: vector(up)}}
}

// raise sets the flag of that name in a message of flags.
func raise(flags reflect.Value, name string) {
	for i := range flags.NumField() {
		if flags.Type().Field(i).Tag.Get("json") == name {
			flags.Field(i).SetBool(true)
		}
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (w *Franka) stateOne(s view) *franka_ros1_msgs.FrankaState {
	m := &franka_ros1_msgs.FrankaState{
		Header: s.head, RobotMode: s.mode, ControlCommandSuccessRate: s.rate, Time: float64(s.head.Stamp.Sec) + 1e-9*float64(s.head.Stamp.Nanosec),
		Q: [7]float64(s.q), Dq: [7]float64(s.v), QD: [7]float64(s.want.q), DqD: [7]float64(s.want.v), DdqD: [7]float64(s.want.a),
		Theta: [7]float64(s.q), Dtheta: [7]float64(s.v), TauJ: [7]float64(s.effort), TauExtHatFiltered: s.tau,
		OTEE: columns(handPose([7]float64(s.q))), OTEED: columns(handPose([7]float64(s.want.q))), OTEEC: columns(handPose([7]float64(s.want.q))),
		JointContact: s.joints, JointCollision: s.struck,
	}
	m.OFExtHatK[2], m.CartesianContact[2], m.CartesianCollision[2] = s.force, one(s.contact), one(s.hit)
	raise(reflect.ValueOf(&m.CurrentErrors).Elem(), s.err)
	raise(reflect.ValueOf(&m.LastMotionErrors).Elem(), s.last)
	return m
}

func (w *Franka) stateTwo(s view) *franka_msgs.FrankaRobotState {
	m := &franka_msgs.FrankaRobotState{Header: s.head, RobotMode: s.mode, ControlCommandSuccessRate: s.rate, Time: float64(s.head.Stamp.Sec) + 1e-9*float64(s.head.Stamp.Nanosec)}
	m.MeasuredJointState = *w.jointState(s)
	m.DesiredJointState = sensor_msgs.JointState{Header: s.head, Name: w.arm.joints, Position: s.want.q, Velocity: s.want.v}
	m.DdqD = [7]float64(s.want.a)
	m.TauExtHatFiltered = sensor_msgs.JointState{Header: s.head, Name: w.arm.joints, Effort: s.tau[:]}
	m.OTEe = geometry_msgs.PoseStamped{Header: s.head, Pose: poseMsg(handPose([7]float64(s.q)))}
	m.OTEeD = geometry_msgs.PoseStamped{Header: s.head, Pose: poseMsg(handPose([7]float64(s.want.q)))}
	m.OTEeC = m.OTEeD
	m.OFExtHatK, m.KFExtHatK = *wrench(s), *stiffnessWrench(s)
	m.CollisionIndicators = franka_msgs.CollisionIndicators{
		IsCartesianLinearContact: geometry_msgs.Vector3{Z: one(s.contact)}, IsCartesianLinearCollision: geometry_msgs.Vector3{Z: one(s.hit)},
		IsJointContact: s.joints, IsJointCollision: s.struck,
	}
	raise(reflect.ValueOf(&m.CurrentErrors).Elem(), s.err)
	raise(reflect.ValueOf(&m.LastMotionErrors).Elem(), s.last)
	return m
}
