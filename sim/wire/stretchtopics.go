package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"viad/drivers/urdf"
	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/diagnostic_msgs"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/nav_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/tf2_msgs"
)

// leaseOwn is the driver's own name at the body server.
const leaseOwn = "stretch_driver"

// Frames of the wheels' odometry.
const (
	frameOdom = "wheel_odom"
	frameBase = "base_footprint"
)

// topic advertises one and publishes what f makes, each so many ticks; nil is nothing.
func topic[T any, P msg.Ptr[T]](w *Stretch, name string, depth, every int, f func(now time.Time) P) error {
	p, err := ros.Advertise[T, P](w.node, name, ros.QoS{Reliable: true, Depth: depth})
	if err != nil {
		return err
	}
	w.closers = append(w.closers, p)
	w.outs = append(w.outs, out{every, func(ctx context.Context, now time.Time) error {
		if m := f(now); m != nil {
			return p.Send(ctx, m)
		}
		return nil
	}})
	return nil
}

func (w *Stretch) advertise(description string) error {
	return errors.Join(
		topic[sensor_msgs.JointState](w, "/joint_states", 1, 3, w.jointStates),
		topic[nav_msgs.Odometry](w, "/wheel_odom", 1, 3, w.odometry),
		topic[tf2_msgs.TFMessage](w, "/tf", 100, 3, w.transforms),
		topic[sensor_msgs.BatteryState](w, "/battery", 10, 100, func(now time.Time) *sensor_msgs.BatteryState {
			return &sensor_msgs.BatteryState{Header: stamp(now), Percentage: 0.9, Voltage: 36, Present: true}
		}),
		topic[diagnostic_msgs.DiagnosticArray](w, "/joint_states_diagnostics", 10, 20, w.diagnostics),
		topic[diagnostic_msgs.DiagnosticStatus](w, "/server_lease_holder", 10, 50, w.lease),
		w.state(description),
	)
}

// state is the latched topics.
func (w *Stretch) state(description string) error {
	w.shown = w.mode
	truth := func(name string, b bool) error {
		p, err := ros.Advertise[std_msgs.Bool](w.node, "/"+name, ros.Latched())
		return w.latch(name, p.Outlet, err, &std_msgs.Bool{Data: b})
	}
	word := func(name, s string) error {
		p, err := ros.Advertise[std_msgs.String](w.node, "/"+name, ros.Latched())
		return w.latch(name, p.Outlet, err, &std_msgs.String{Data: s})
	}
	errs := []error{
		truth("is_homed", !w.unhomed), truth("is_runstopped", false), word("mode", w.mode), word("tool", w.tool), word("sensitivity", "default"),
	}
	if description != "" {
		errs = append(errs, word("robot_description", description))
	}
	if r, err := urdf.Parse([]byte(description)); err == nil { // one that is none has no links
		w.links = r
		errs = append(errs, w.keep(publishStatic(w.node, fixedFrames(r))))
	}
	return errors.Join(errs...)
}

func (w *Stretch) latch(name string, o ros.Outlet, err error, m msg.Message) error {
	if err != nil {
		return err
	}
	w.closers = append(w.closers, o)
	w.latched[name] = o
	return o.Publish(context.Background(), m)
}

// quiet: it homes or stows and its loop is blocked.
func (w *Stretch) quiet() bool { return w.fault().QuietTasks && w.in(modeHoming, modeStowing) }

func (w *Stretch) jointStates(now time.Time) *sensor_msgs.JointState {
	f := w.fault()
	if f.SilentJoints || w.quiet() {
		return nil
	}
	if m := w.last; f.FrozenJoints && m != nil {
		again := *m
		again.Header = stamp(now)
		return &again
	}
	w.last = w.joints(now, f)
	return w.last
}

// joints is joint_states: four stages, which generation A divides by five, and the two fingers.
func (w *Stretch) joints(now time.Time, f StretchFaults) *sensor_msgs.JointState {
	b := w.body
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begun {
		return nil
	}
	stages := 4.0
	if w.gen == GenerationA && !f.FourStages {
		stages = 5
	}
	m := &sensor_msgs.JointState{Header: stamp(now)}
	add := func(name string, x, v float64) {
		m.Name, m.Position, m.Velocity, m.Effort = append(m.Name, name), append(m.Position, x), append(m.Velocity, v), append(m.Effort, 0)
	}
	for i := range 3 {
		add(fmt.Sprintf("wheel_%d_joint", i), 0, 0)
	}
	add(stretchJoints()[lift], b.q[lift], b.v[lift])
	for i := range 4 {
		add(fmt.Sprintf("arm_l%d_joint", i+1), b.q[arm5]/stages, b.v[arm5]/stages)
	}
	for j := yaw; j < wrists; j++ {
		add(stretchJoints()[j], b.q[j], b.v[j])
	}
	add("gripper_finger_left_joint", w.finger(b.width), 0)
	add("gripper_finger_right_joint", w.finger(b.width), 0)
	return m
}

func (w *Stretch) odometry(now time.Time) *nav_msgs.Odometry {
	if w.quiet() {
		return nil
	}
	b := w.body
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &nav_msgs.Odometry{Header: stamp(now), ChildFrameId: frameBase}
	m.Header.FrameId = frameOdom
	m.Pose.Pose.Position.X, m.Pose.Pose.Position.Y = b.base[0], b.base[1]
	m.Pose.Pose.Orientation.Z, m.Pose.Pose.Orientation.W = math.Sincos(b.base[2] / 2)
	s, c := math.Sincos(b.base[2])
	m.Twist.Twist.Linear.X, m.Twist.Twist.Linear.Y = c*b.baseV[0]+s*b.baseV[1], c*b.baseV[1]-s*b.baseV[0]
	m.Twist.Twist.Angular.Z = b.baseV[2]
	return m
}

// transforms are the links on /tf, as the robot's state publisher has them, and the odometry where the parameter asks for it.
func (w *Stretch) transforms(now time.Time) *tf2_msgs.TFMessage {
	m := &tf2_msgs.TFMessage{}
	if w.links != nil && !w.fault().SilentJoints && !w.quiet() {
		m.Transforms = movingFrames(w.links, w.twin.Truth().Joints, now)
	}
	if o := w.odometry(now); o != nil && param(w, "broadcast_odom_tf", false) {
		t := geometry_msgs.TransformStamped{Header: o.Header, ChildFrameId: o.ChildFrameId}
		t.Transform.Translation = geometry_msgs.Vector3{X: o.Pose.Pose.Position.X, Y: o.Pose.Pose.Position.Y}
		t.Transform.Rotation = o.Pose.Pose.Orientation
		m.Transforms = append(m.Transforms, t)
	}
	if len(m.Transforms) == 0 {
		return nil
	}
	return m
}

func (w *Stretch) lease(time.Time) *diagnostic_msgs.DiagnosticStatus {
	holder := w.fault().Holder
	if holder == "" {
		holder = leaseOwn
	}
	return &diagnostic_msgs.DiagnosticStatus{Name: "lease", Values: []diagnostic_msgs.KeyValue{{Key: "lease_holder", Value: holder}, {Key: "lease_expired", Value: "False"}}}
}

// diagnostics is what is known of each joint.
func (w *Stretch) diagnostics(now time.Time) *diagnostic_msgs.DiagnosticArray {
	homing := w.in(modeHoming)
	w.mu.Lock()
	homed := !w.unhomed
	w.mu.Unlock()
	yes := func(k string, b bool) diagnostic_msgs.KeyValue {
		return diagnostic_msgs.KeyValue{Key: k, Value: map[bool]string{true: "True", false: "False"}[b]}
	}
	num := func(k string, x float64) diagnostic_msgs.KeyValue {
		return diagnostic_msgs.KeyValue{Key: k, Value: strconv.FormatFloat(x, 'f', 4, 64)}
	}
	b := w.body
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &diagnostic_msgs.DiagnosticArray{Header: stamp(now)}
	for j := range b.joint {
		g := &b.joint[j]
		if !b.begun {
			return nil
		}
		m.Status = append(m.Status, diagnostic_msgs.DiagnosticStatus{Name: stretchJoints()[j], Values: []diagnostic_msgs.KeyValue{
			yes("at_limit", b.q[j] < g.lo+rangeMargin || b.q[j] > g.hi-rangeMargin), yes("is_homed", homed), yes("is_homing", homing), yes("in_collision", false),
			num("soft_motion_limit_lower", g.lo), num("soft_motion_limit_upper", g.hi), num("braking_distance", b.v[j]*b.v[j]/(2*g.a)),
		}})
	}
	return m
}
