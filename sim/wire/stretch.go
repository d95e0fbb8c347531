package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/diagnostic_msgs"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/nav_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
	"viad/sim"
)

// Generation is which of the three drivers of a Stretch 4 is shown.
type Generation string

// The generations, as the driver's history has them.
const (
	GenerationA      Generation = "A"
	GenerationAPrime Generation = "A'"
	GenerationB      Generation = "B"
)

// Stretch is the ROS side of a Stretch 4 with the parallel gripper: its driver, and the head and wrist it carries.
type Stretch struct {
	twin    *sim.Twin
	node    ros.Node
	gen     Generation
	body    *body
	params  *ros.ParamServer
	closers []ros.Closer
	outs    []out
	latched map[string]ros.Outlet

	mu      sync.Mutex
	mode    string
	goal    chan struct{} // closed when the running goal is replaced
	ignores bool
	unhomed bool
}

// StretchFaults are how it misbehaves.
type StretchFaults struct {
	IgnoreCancel bool
	Unhomed      bool
	Mode         string // mode at the start; "" is navigation, in generation B active
	Holder       string // of the body server's lease; "" is the driver itself
}

// NewStretch puts a twin of a stretch4 behind the names of its driver. node must be called /stretch_driver: parameters
// are served under a node's own name.
func NewStretch(twin *sim.Twin, node ros.Node, gen Generation, description string, f StretchFaults) (*Stretch, error) {
	if gen != GenerationA && gen != GenerationAPrime && gen != GenerationB {
		return nil, fmt.Errorf("wire: no generation %q of Stretch's driver; there are A, A' and B", gen)
	}
	w := &Stretch{twin: twin, node: node, gen: gen, body: &body{forever: gen == GenerationB}, latched: map[string]ros.Outlet{}, goal: make(chan struct{}), ignores: f.IgnoreCancel, unhomed: f.Unhomed}
	if w.mode = f.Mode; w.mode == "" {
		w.mode = map[bool]string{true: "active", false: "navigation"}[gen == GenerationB]
	}
	if f.Holder == "" {
		f.Holder = "stretch_driver"
	}
	err := errors.Join(w.listen(), w.serve(), w.declare(), w.advertise(description, f))
	if err == nil {
		err = twin.Govern(w.body.govern)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Close ends what Stretch serves; the node and the twin are their owner's.
func (w *Stretch) Close() error {
	errs := make([]error, 0, 2+len(w.closers))
	if err := w.twin.Govern(nil); !errors.Is(err, sim.ErrOver) {
		errs = append(errs, err)
	}
	if w.params != nil {
		errs = append(errs, w.params.Close())
	}
	for _, c := range w.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Run publishes until ctx ends.
func (w *Stretch) Run(ctx context.Context) error { return publish(ctx, w.twin.Clock(), w.outs) }

func (w *Stretch) keep(c ros.Closer, err error) error {
	if err == nil {
		w.closers = append(w.closers, c)
	}
	return err
}

func (w *Stretch) listen() error {
	drop := func(s ros.Subscription, err error) error { return w.keep(s, err) }
	err := drop(ros.Subscribe(w.node, "/cmd_vel", ros.Default(), func(m *geometry_msgs.Twist, _ ros.Info) {
		w.mu.Lock()
		deaf := w.mode != "navigation" && w.mode != "velocity" && w.mode != "active"
		w.mu.Unlock()
		if !deaf {
			w.body.velocity(m.Linear.X, m.Linear.Y, m.Angular.Z)
		}
	}))
	if w.gen == GenerationB {
		return errors.Join(err,
			drop(ros.Subscribe(w.node, "/joint_position_cmd", ros.Default(), func(*sensor_msgs.JointState, ros.Info) {})),
			drop(ros.Subscribe(w.node, "/joint_velocity_cmd", ros.Default(), func(*sensor_msgs.JointState, ros.Info) {})))
	}
	if w.gen == GenerationAPrime {
		return errors.Join(err, drop(ros.Subscribe(w.node, "/joint_vel", ros.Default(), func(*control_msgs.JointJog, ros.Info) {})))
	}
	return err
}

func (w *Stretch) declare() (err error) {
	ps := []ros.Declared{{Param: ros.P("mode", w.mode)}, {Param: ros.P("action_timeout", 3.0)}}
	switch w.gen {
	case GenerationAPrime:
		ps = append(ps, ros.Declared{Param: ros.P("joint_velocity.lift", 0.3)}, ros.Declared{Param: ros.P("joint_velocity.arm", 0.4)})
	case GenerationB:
		for _, j := range []string{"lift_joint", "arm_joint", "wrist_yaw_joint", "wrist_pitch_joint", "wrist_roll_joint", "gripper_joint"} {
			ps = append(ps, ros.Declared{Param: ros.P("joint_mode."+j, "position")})
		}
		ps = append(ps, ros.Declared{Param: ros.P("trajectory_server.mode", "target_priority")}, ros.Declared{Param: ros.P("trajectory_server.timeout", 5.0)},
			ros.Declared{Param: ros.P("trajectory_server.strict_mode", false)}, ros.Declared{Param: ros.P("trajectory_server.default_tolerance", 0.05)},
			ros.Declared{Param: ros.P("trajectory_server.loop_rate", 50.0)}, ros.Declared{Param: ros.P("trajectory_server.settle_before_return", false)})
	case GenerationA: // it has no more
	}
	w.params, err = ros.ServeParams(w.node, ps, func(set []ros.Param) error {
		for _, p := range set {
			if p.Name != "mode" {
				continue
			}
			mode, err := ros.As[string](p)
			if err != nil {
				return err
			}
			w.enter(mode)
		}
		return nil
	})
	return err
}

// enter changes the mode and tells it.
func (w *Stretch) enter(mode string) {
	w.mu.Lock()
	w.mode = mode
	w.mu.Unlock()
	if o := w.latched["mode"]; o != nil {
		_ = o.Publish(context.Background(), &std_msgs.String{Data: mode})
	}
}

func (w *Stretch) serve() error {
	trigger := func(name string, do func() string) error {
		return w.keep(w.node.Serve(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response](name), func(context.Context, msg.Message) (msg.Message, error) {
			return &std_srvs.Trigger_Response{Success: true, Message: do()}, nil
		}))
	}
	return errors.Join(
		trigger("/stop_the_robot", func() string { w.body.halt(); w.replace(); return "Stopped the robot." }),
		trigger("/home_the_robot", func() string { w.homed(); return "Homed the robot." }),
		trigger("/stow_the_robot", func() string { return "Stowed the robot." }),
		w.keep(w.node.Serve(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response]("/runstop_the_robot"), func(_ context.Context, m msg.Message) (msg.Message, error) {
			if q, is := m.(*std_srvs.SetBool_Request); is {
				w.body.runstop(q.Data)
				w.say("is_runstopped", &std_msgs.Bool{Data: q.Data})
			}
			return &std_srvs.SetBool_Response{Success: true}, nil
		})),
		w.keep(w.node.ServeAction(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback](
			"/follow_joint_trajectory",
		), ros.ActionHandler{Accept: func(msg.Message) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return !w.unhomed && w.mode != "teleop" && w.mode != "homing" && w.mode != "runstopped"
		}, Run: w.follow})),
	)
}

// homed is what homing ends with.
func (w *Stretch) homed() {
	w.mu.Lock()
	w.unhomed = false
	w.mu.Unlock()
	w.say("is_homed", &std_msgs.Bool{Data: true})
}

func (w *Stretch) say(topic string, m msg.Message) {
	if o := w.latched[topic]; o != nil {
		_ = o.Publish(context.Background(), m)
	}
}

// replace ends the running goal for another; it returns the new one's own end.
func (w *Stretch) replace() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.goal)
	w.goal = make(chan struct{})
	return w.goal
}

// follow takes the points one by one: their times mean nothing to generation A.
func (w *Stretch) follow(ctx context.Context, _ ros.GoalID, m msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
	res := &control_msgs.FollowJointTrajectory_Result{}
	g, is := m.(*control_msgs.FollowJointTrajectory_Goal)
	if !is || len(g.Trajectory.Points) == 0 {
		res.ErrorCode = control_msgs.FollowJointTrajectory_Result_INVALID_GOAL
		return res, ros.GoalAborted
	}
	over := w.replace()
	for _, p := range g.Trajectory.Points {
		if len(p.Positions) != len(g.Trajectory.JointNames) {
			res.ErrorCode = control_msgs.FollowJointTrajectory_Result_INVALID_GOAL
			return res, ros.GoalAborted
		}
		moved := w.aim(g.Trajectory.JointNames, p.Positions)
		if code, status := w.wait(ctx, over, moved); status != ros.GoalSucceeded {
			res.ErrorCode = code
			return res, status
		}
	}
	return res, ros.GoalSucceeded
}

// aim sets the targets of a point; it returns the joints that are named.
func (w *Stretch) aim(names []string, x []float64) (moved []int) {
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	for i, n := range names {
		j := map[string]int{"lift_joint": lift, "arm_joint": arm5, "wrist_yaw_joint": yaw, "wrist_pitch_joint": pitch, "wrist_roll_joint": roll}
		k, known := j[n]
		switch {
		case known:
			g := &w.body.joint[k]
			if x[i] < g.lo-1e-3 || x[i] > g.hi+1e-3 {
				continue // out of range: warned and dropped
			}
			g.target = math.Max(g.lo, math.Min(g.hi, x[i]))
			moved = append(moved, k)
		case strings.Contains(n, "gripper"):
			w.body.jaw = x[i]
			if x[i] < 0.002 { // shut: it presses
				w.body.jaw = -0.02
			}
		}
	}
	return moved
}

// wait until a point is met, by each generation's test.
func (w *Stretch) wait(ctx context.Context, over <-chan struct{}, moved []int) (int32, ros.GoalStatus) {
	t := w.twin.Clock().Ticker(20 * time.Millisecond)
	defer t.Stop()
	most := 3 * time.Second
	if w.gen == GenerationB {
		most = 5 * time.Second
	}
	if p, ok := w.params.Get(map[bool]string{true: "trajectory_server.timeout", false: "action_timeout"}[w.gen == GenerationB]); ok {
		if s, err := ros.As[float64](p); err == nil {
			most = time.Duration(s * float64(time.Second))
		}
	}
	began := w.twin.Clock().Now()
	started := map[int]bool{}
	done := ctx.Done()
	for {
		select {
		case <-over:
			return -6, ros.GoalAborted
		case <-done:
			if !w.ignores {
				w.hold()
				return 0, ros.GoalCanceled
			}
			done = nil
		case now := <-t.C():
			if w.met(moved, started) {
				return 0, ros.GoalSucceeded
			}
			if now.Sub(began) > most {
				return -4, ros.GoalAborted
			}
		}
	}
}

func (w *Stretch) hold() {
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	for i := range w.body.joint {
		w.body.joint[i].halt()
	}
}

// met: in generation A lift and arm must have started and stopped, the wrist be within half a radian; in B each joint be
// within its tolerance.
func (w *Stretch) met(moved []int, started map[int]bool) bool {
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	all := true
	for _, k := range moved {
		g := w.body.joint[k]
		off := math.Abs(w.body.q[k] - g.target)
		started[k] = started[k] || g.running
		switch {
		case w.gen == GenerationB:
			all = all && off < map[bool]float64{true: 0.01, false: 0.05}[k <= arm5]
		case k <= arm5:
			all = all && started[k] && !g.running
		default:
			all = all && off < 0.5
		}
	}
	return all
}

func (w *Stretch) advertise(description string, f StretchFaults) error {
	joints, err1 := ros.Advertise[sensor_msgs.JointState](w.node, "/joint_states", ros.QoS{Reliable: true, Depth: 1})
	odom, err2 := ros.Advertise[nav_msgs.Odometry](w.node, "/wheel_odom", ros.QoS{Reliable: true, Depth: 1})
	power, err3 := ros.Advertise[sensor_msgs.BatteryState](w.node, "/battery", ros.Default())
	lease, err4 := ros.Advertise[diagnostic_msgs.DiagnosticStatus](w.node, "/server_lease_holder", ros.Default())
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	w.closers = append(w.closers, joints, odom, power, lease)
	w.outs = []out{
		{3, func(ctx context.Context, now time.Time) error {
			m := w.joints(now)
			if m == nil {
				return nil
			}
			return joints.Send(ctx, m)
		}},
		{3, func(ctx context.Context, now time.Time) error { return odom.Send(ctx, w.odometry(now)) }},
		{100, func(ctx context.Context, now time.Time) error {
			return power.Send(ctx, &sensor_msgs.BatteryState{Header: stamp(now), Percentage: 0.9, Voltage: 36, Present: true})
		}},
		{50, func(ctx context.Context, _ time.Time) error {
			return lease.Send(ctx, &diagnostic_msgs.DiagnosticStatus{Name: "lease", Values: []diagnostic_msgs.KeyValue{{Key: "lease_holder", Value: f.Holder}, {Key: "lease_expired", Value: "False"}}})
		}},
	}
	return w.state(description, f)
}

// state is the latched topics.
func (w *Stretch) state(description string, f StretchFaults) error {
	truth := func(b bool) msg.Message { return &std_msgs.Bool{Data: b} }
	word := func(s string) msg.Message { return &std_msgs.String{Data: s} }
	for _, l := range []struct {
		name string
		m    msg.Message
	}{
		{"is_homed", truth(!f.Unhomed)},
		{"is_runstopped", truth(false)},
		{"mode", word(w.mode)},
		{"tool", word("eoa_wrist_dw4_tool_pg4")},
		{"robot_description", word(description)},
	} {
		if l.name == "robot_description" && description == "" {
			continue
		}
		var o ros.Outlet
		var err error
		if _, is := l.m.(*std_msgs.Bool); is {
			var p ros.Publisher[*std_msgs.Bool]
			p, err = ros.Advertise[std_msgs.Bool](w.node, "/"+l.name, ros.Latched())
			o = p.Outlet
		} else {
			var p ros.Publisher[*std_msgs.String]
			p, err = ros.Advertise[std_msgs.String](w.node, "/"+l.name, ros.Latched())
			o = p.Outlet
		}
		if err != nil {
			return err
		}
		w.closers = append(w.closers, o)
		w.latched[l.name] = o
		if err := o.Publish(context.Background(), l.m); err != nil {
			return err
		}
	}
	return nil
}

// joints is joint_states: four stages, which generation A divides by five, and the two fingers.
func (w *Stretch) joints(now time.Time) *sensor_msgs.JointState {
	b := w.body
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begun {
		return nil
	}
	stages := 4.0
	if w.gen == GenerationA {
		stages = 5
	}
	m := &sensor_msgs.JointState{Header: stamp(now)}
	add := func(name string, x, v float64) {
		m.Name, m.Position, m.Velocity, m.Effort = append(m.Name, name), append(m.Position, x), append(m.Velocity, v), append(m.Effort, 0)
	}
	for i := range 3 {
		add(fmt.Sprintf("wheel_%d_joint", i), 0, 0)
	}
	add("lift_joint", b.q[lift], b.v[lift])
	for i := range 4 {
		add(fmt.Sprintf("arm_l%d_joint", i+1), b.q[arm5]/stages, b.v[arm5]/stages)
	}
	add("wrist_yaw_joint", b.q[yaw], b.v[yaw])
	add("wrist_pitch_joint", b.q[pitch], b.v[pitch])
	add("wrist_roll_joint", b.q[roll], b.v[roll])
	add("gripper_finger_left_joint", b.width/2, 0)
	add("gripper_finger_right_joint", b.width/2, 0)
	return m
}

func (w *Stretch) odometry(now time.Time) *nav_msgs.Odometry {
	b := w.body
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &nav_msgs.Odometry{Header: stamp(now), ChildFrameId: "base_footprint"}
	m.Header.FrameId = "wheel_odom"
	m.Pose.Pose.Position.X, m.Pose.Pose.Position.Y = b.base[0], b.base[1]
	m.Pose.Pose.Orientation.Z, m.Pose.Pose.Orientation.W = math.Sincos(b.base[2] / 2)
	s, c := math.Sincos(b.base[2])
	m.Twist.Twist.Linear.X, m.Twist.Twist.Linear.Y = c*b.baseV[0]+s*b.baseV[1], c*b.baseV[1]-s*b.baseV[0]
	m.Twist.Twist.Angular.Z = b.baseV[2]
	return m
}
