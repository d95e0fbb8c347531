package stretch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/diagnostic_msgs"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/nav_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
)

// axis is a joint with a motion generator of its own.
type axis struct {
	q, v, target float64
	vel, acc     float64
	asked, was   float64 // speed of the running goal, 0 is vel; the target a step ago
	stuck        bool
}

func (a *axis) step(dt float64) {
	if a.stuck {
		a.v = 0
		return
	}
	d := a.target - a.q
	most := a.vel
	if a.asked > 0 {
		most = math.Min(a.asked, 1.7*a.vel)
	}
	slide := (a.target - a.was) / dt
	a.was = a.target
	want := math.Copysign(math.Min(most, math.Sqrt(2*a.acc*math.Abs(d))), d)
	a.v += math.Max(-a.acc*dt*1.5, math.Min(a.acc*dt, want-a.v))
	if a.q += a.v * dt; math.Abs(d) < 2e-4 && math.Abs(a.v) < 2*a.acc*dt {
		a.q, a.v = a.target, slide
		if math.Abs(slide) > most {
			a.v = 0
		}
	}
}

func (a *axis) brake() { a.target = a.q + a.v*math.Abs(a.v)/(2*a.acc) }

// faults are how the double misbehaves.
type faults struct {
	silent       bool // no joints, no odometry
	partial, nan bool
	ignoreCancel bool
	freeze       bool          // the same joint states again, with new stamps
	reject       bool          // refuses goals
	oneAtATime   bool          // refuses goals while one runs
	positionOnly bool          // takes goals in mode position alone
	lie          bool          // ends every goal as succeeded at once
	deafParams   bool          // services of parameters are dead
	stopFails    bool          // stop_the_robot answers with an error although it acts
	stopDeaf     bool          // and does not act
	skew         time.Duration // of its clock
	homeTime     time.Duration
	noBase       bool    // cmd_vel is not heard
	odomFrom     float64 // x that its odometry counts from
	twin         float64 // every other message of the joints is of a robot whose lift is so much higher
	doubled      bool    // the lift stands twice in its joint states
}

// double is the robot's side as its driver shows it, kinematic.
type double struct {
	t     *testing.T
	node  ros.Node
	n     names
	gen   Generation
	ended sync.WaitGroup
	stop  context.CancelFunc

	mu         sync.Mutex
	f          faults
	j          [5]axis // lift, arm, yaw, pitch, roll
	jaw        axis    // aperture
	object     float64
	base       [3]float64 // pose
	baseV      [3]float64 // own frame
	cmd        [3]float64
	cmdAt      time.Time
	mode       string
	homed      bool
	runstopped bool
	tool       string
	holder     string
	track      map[int][]knotB // B: joints' targets in time
	trackAt    time.Time
	latest     int // goal
	goals      []*control_msgs.FollowJointTrajectory_Goal
	twists     []geometry_msgs.Twist
	stops      int
	urdf       string
	jointModes map[string]string
	frozen     *sensor_msgs.JointState
	odd        bool // the next message of the joints
	params     *ros.ParamServer
	running    int // goals
	topics     []ros.Closer
}

type knotB struct {
	t time.Duration
	q float64
}

var toolNames = map[string]string{toolPG4: "eoa_wrist_dw4_tool_pg4", toolSG4: "eoa_wrist_dw4_tool_sg4"}

func newDouble(t *testing.T, n ros.Node, gen Generation, change func(*double)) *double {
	t.Helper()
	c := Config{Node: n}
	if err := c.fill(); err != nil {
		t.Fatal(err)
	}
	d := &double{
		t: t, node: n, n: c.names(), gen: gen, mode: modeNavigation, homed: true, tool: toolNames[toolPG4], holder: "ros2_driver",
		urdf: description(0.13), jointModes: map[string]string{}, track: map[int][]knotB{},
	}
	d.f.homeTime = 200 * time.Millisecond
	if gen == GenB {
		d.mode, d.f.stopFails = modeActive, true
	}
	d.j = [5]axis{{q: 0.6, vel: 0.3, acc: 0.3}, {q: 0.1, vel: 0.4, acc: 0.4}, {vel: 7, acc: 30}, {vel: 7, acc: 30}, {vel: 7, acc: 30}}
	d.jaw = axis{q: 0.06, vel: 0.08, acc: 1}
	for i := range d.j {
		d.j[i].target, d.j[i].was = d.j[i].q, d.j[i].q
	}
	d.jaw.target = d.jaw.q
	if change != nil {
		change(d)
	}
	d.serve()
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	d.publish(ctx)
	t.Cleanup(d.close)
	return d
}

func (d *double) close() { d.stop(); d.ended.Wait() }

func description(stage float64) string {
	var b strings.Builder
	b.WriteString(`<robot name="stretch"><link name="base_link"/>`)
	limit := func(name string, lo, hi float64) {
		fmt.Fprintf(&b, `<joint name=%q type="prismatic"><parent link="a"/><child link="b"/><limit lower="%g" upper="%g" effort="1" velocity="1"/></joint>`, name, lo, hi)
	}
	limit("lift_joint", 0, 1.2)
	for _, s := range []string{"arm_l1_joint", "arm_l2_joint", "arm_l3_joint", "arm_l4_joint"} {
		limit(s, 0, stage)
	}
	limit("wrist_yaw_joint", -1.135, 4.276)
	limit("wrist_pitch_joint", -1.135, 4.276)
	limit("wrist_roll_joint", -4.276, 1.135)
	return b.String() + `</robot>`
}

func (d *double) set(f func(*double)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

func get[T any](d *double, f func(*double) T) T {
	d.mu.Lock()
	defer d.mu.Unlock()
	return f(d)
}

// step is one tick of the robot. It needs mu.
func (d *double) step(now time.Time, dt float64) {
	if d.runstopped {
		d.cmd = [3]float64{}
		for i := range d.j {
			d.j[i].brake()
		}
	}
	if d.gen == GenB {
		for i, ks := range d.track {
			d.j[i].target = at(ks, now.Sub(d.trackAt))
		}
	} else if now.Sub(d.cmdAt) > time.Second { // the firmware's watchdog, which B defeats by repeating
		d.cmd = [3]float64{}
	}
	for i := range d.j {
		d.j[i].step(dt)
	}
	d.jaw.step(dt)
	if d.object > 0 && d.jaw.q < d.object {
		d.jaw.q, d.jaw.v = d.object, 0
	}
	for i, a := range []float64{0.25, 0.25, 2} {
		d.baseV[i] += math.Max(-a*dt, math.Min(a*dt, d.cmd[i]-d.baseV[i]))
	}
	s, c := math.Sincos(d.base[2])
	d.base[0] += (c*d.baseV[0] - s*d.baseV[1]) * dt
	d.base[1] += (s*d.baseV[0] + c*d.baseV[1]) * dt
	d.base[2] += d.baseV[2] * dt
}

func at(ks []knotB, t time.Duration) float64 {
	for i := 1; i < len(ks); i++ {
		if t < ks[i].t {
			a, b := ks[i-1], ks[i]
			return a.q + (b.q-a.q)*float64(t-a.t)/float64(b.t-a.t)
		}
	}
	return ks[len(ks)-1].q
}

func (d *double) stamp(now time.Time) builtin_interfaces.Time {
	now = now.Add(d.f.skew)
	return builtin_interfaces.Time{Sec: int32(now.Unix()), Nanosec: uint32(now.Nanosecond())}
}

// jointState is what is published; a generation's own mistakes are in it.
func (d *double) jointState(now time.Time) *sensor_msgs.JointState {
	share := 4.0
	if d.gen == GenA {
		share = 5
	}
	m := new(sensor_msgs.JointState)
	add := func(name string, q, v float64) {
		m.Name, m.Position, m.Velocity, m.Effort = append(m.Name, name), append(m.Position, q), append(m.Velocity, v), append(m.Effort, 0)
	}
	for _, s := range []string{"arm_l4_joint", "arm_l3_joint", "arm_l2_joint", "arm_l1_joint"} {
		add(s, d.j[1].q/share, d.j[1].v/share)
	}
	add("wheel_0_joint", 0, 0)
	add("lift_joint", d.j[0].q, d.j[0].v)
	add("wrist_roll_joint", d.j[4].q, d.j[4].v)
	add("wrist_pitch_joint", d.j[3].q, d.j[3].v)
	if !d.f.partial {
		add("wrist_yaw_joint", d.j[2].q, d.j[2].v)
	}
	finger := d.jaw.q / 2
	if d.tool == toolNames[toolSG4] {
		finger = math.Asin(d.jaw.q / 2 / 0.18205)
	}
	add("gripper_finger_left_joint", finger, d.jaw.v/2)
	add("gripper_finger_right_joint", finger, d.jaw.v/2)
	if d.f.nan {
		m.Position[5] = math.NaN()
	}
	if d.f.doubled {
		add("lift_joint", d.j[0].q+0.2, 0)
	}
	if d.odd = !d.odd; d.odd {
		m.Position[5] += d.f.twin
	}
	if d.f.freeze {
		if d.frozen == nil {
			d.frozen = m
		}
		c := *d.frozen
		m = &c
	} else {
		d.frozen = nil
	}
	m.Header.Stamp = d.stamp(now)
	return m
}

func (d *double) odom(now time.Time) *nav_msgs.Odometry {
	o := new(nav_msgs.Odometry)
	o.Header.Stamp = d.stamp(now)
	o.Header.FrameId, o.ChildFrameId = "wheel_odom", "base_footprint"
	o.Pose.Pose.Position.X, o.Pose.Pose.Position.Y = d.base[0]-d.f.odomFrom, d.base[1]
	s, c := math.Sincos(d.base[2] / 2)
	o.Pose.Pose.Orientation.Z, o.Pose.Pose.Orientation.W = s, c
	o.Twist.Twist.Linear.X, o.Twist.Twist.Linear.Y, o.Twist.Twist.Angular.Z = d.baseV[0], d.baseV[1], d.baseV[2]
	return o
}

func out[T any, P msg.Ptr[T]](d *double, topic string, q ros.QoS) func(P) {
	p, err := ros.Advertise[T, P](d.node, topic, q)
	if err != nil {
		d.t.Fatal(err)
	}
	d.topics = append(d.topics, p)
	return func(m P) { _ = p.Send(context.Background(), m) }
}

func latched[T comparable](f func(T)) func(T) {
	var last T
	first := true
	return func(v T) {
		if first || v != last {
			first, last = false, v
			f(v)
		}
	}
}

func (d *double) publish(ctx context.Context) {
	one := ros.QoS{Reliable: true, Depth: 1}
	joints := out[sensor_msgs.JointState](d, d.n.joints, one)
	odom := out[nav_msgs.Odometry](d, d.n.odometry, one)
	lease := out[diagnostic_msgs.DiagnosticStatus](d, d.n.lease, one)
	battery := out[sensor_msgs.BatteryState](d, d.n.battery, one)
	text := func(topic string) func(string) {
		o := out[std_msgs.String](d, topic, ros.Latched())
		return latched(func(s string) { o(&std_msgs.String{Data: s}) })
	}
	flag := func(topic string) func(bool) {
		o := out[std_msgs.Bool](d, topic, ros.Latched())
		return latched(func(s bool) { o(&std_msgs.Bool{Data: s}) })
	}
	mode, tool, urdf := text(d.n.mode), text(d.n.tool), text(d.n.description)
	homed, runstopped := flag(d.n.homed), flag(d.n.runstopped)
	d.ended.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		last := time.Now()
		for n := 0; ; n++ {
			var now time.Time
			select {
			case now = <-tick.C:
			case <-ctx.Done():
				return
			}
			d.mu.Lock()
			for ; now.Sub(last) >= 2*time.Millisecond; last = last.Add(2 * time.Millisecond) {
				d.step(last, 0.002)
			}
			silent := d.f.silent || (d.mode == modeHoming || d.mode == modeStowing) && n%10 != 0
			m, o := d.jointState(now), d.odom(now)
			md, tl, hm, rs, ur, holder := d.mode, d.tool, d.homed, d.runstopped, d.urdf, d.holder
			d.mu.Unlock()
			mode(md)
			tool(tl)
			homed(hm)
			runstopped(rs)
			urdf(ur)
			if silent {
				continue
			}
			joints(m)
			odom(o)
			if n%10 == 0 {
				lease(&diagnostic_msgs.DiagnosticStatus{Values: []diagnostic_msgs.KeyValue{{Key: "lease_holder", Value: holder}, {Key: "lease_expired", Value: "False"}}})
				battery(&sensor_msgs.BatteryState{Percentage: 0.8})
			}
		}
	})
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (d *double) serve() {
	t := d.t
	keep := func(c ros.Closer, err error) { d.topics = append(d.topics, must[ros.Closer](t)(c, err)) }
	keep(ros.Subscribe(d.node, d.n.velocity, ros.QoS{Reliable: true, Depth: 1}, d.onTwist))
	jog := "/joint_vel"
	if d.gen == GenB {
		keep(ros.Subscribe(d.node, "/joint_velocity_cmd", ros.Default(), func(*sensor_msgs.JointState, ros.Info) {}))
		keep(ros.Subscribe(d.node, "/joint_position_cmd", ros.Default(), func(*sensor_msgs.JointState, ros.Info) {}))
	} else {
		keep(ros.Subscribe(d.node, jog, ros.Default(), func(*control_msgs.JointJog, ros.Info) {}))
	}
	trigger := func(name string, f func() (bool, error)) {
		keep(d.node.Serve(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response](name), func(context.Context, msg.Message) (msg.Message, error) {
			ok, err := f()
			return &std_srvs.Trigger_Response{Success: ok, Message: "said the double"}, err
		}))
	}
	trigger(d.n.stop, d.stopAll)
	trigger(d.n.home, func() (bool, error) { return d.busy(modeHoming), nil })
	trigger(d.n.stow, func() (bool, error) { return d.busy(modeStowing), nil })
	keep(d.node.Serve(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response](d.n.runstop), func(_ context.Context, q msg.Message) (msg.Message, error) {
		d.set(func(d *double) { d.setRunstop(q.(*std_srvs.SetBool_Request).Data) })
		return &std_srvs.SetBool_Response{Success: true}, nil
	}))
	keep(d.node.ServeAction(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback](d.n.action), ros.ActionHandler{
		Accept: d.accept, Cancel: func(ros.GoalID) bool { return true }, Run: d.run,
	}))
	declared := []ros.Declared{{Param: ros.P("mode", d.mode)}, {Param: ros.P("action_timeout", 3.0)}}
	if d.gen == GenAPrime {
		declared = append(declared, ros.Declared{Param: ros.P("joint_velocity.lift", 0.3)})
	}
	if d.gen == GenB {
		declared = append(declared, ros.Declared{Param: ros.P("trajectory_server.mode", "target_priority")})
		for _, j := range []string{"lift_joint", "arm_joint", "wrist_yaw_joint", "wrist_pitch_joint", "wrist_roll_joint"} {
			declared = append(declared, ros.Declared{Param: ros.P("joint_mode."+j, modeVelocity)})
		}
	}
	if !d.f.deafParams {
		d.params = must[*ros.ParamServer](t)(ros.ServeParams(d.node, declared, d.onParams))
		d.topics = append(d.topics, d.params)
	}
}

func (d *double) setRunstop(on bool) {
	d.runstopped = on
	if on {
		d.mode = modeRunstopped
	} else if d.gen == GenB {
		d.mode = modeActive
	} else {
		d.mode = modeNavigation
	}
}

func (d *double) onParams(ps []ros.Param) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range ps {
		v, _ := ros.As[string](p)
		switch {
		case p.Name == "mode" && slices.Contains([]string{modeHoming, modeStowing, modeRunstopped}, d.mode):
			return errors.New("not now")
		case p.Name == "mode":
			d.mode = v
		case strings.HasPrefix(p.Name, "joint_mode."):
			d.jointModes[p.Name] = v
		}
	}
	return nil
}

func (d *double) onTwist(m *geometry_msgs.Twist, _ ros.Info) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gen != GenB && d.mode != modeNavigation && d.mode != modeVelocity || d.gen == GenB && d.mode != modeActive || d.f.noBase {
		return
	}
	d.twists = append(d.twists, *m)
	d.cmd, d.cmdAt = [3]float64{m.Linear.X, m.Linear.Y, m.Angular.Z}, time.Now()
}

func (d *double) stopAll() (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stops++
	if !d.f.stopDeaf {
		d.halt()
	}
	if d.f.stopFails {
		return false, errors.New("the handler returns nothing")
	}
	return true, nil
}

func (d *double) halt() {
	clear(d.track)
	d.cmd = [3]float64{}
	for i := range d.j {
		d.j[i].brake()
	}
	d.jaw.brake()
}

func (d *double) busy(mode string) bool {
	d.mu.Lock()
	was, dur := d.mode, d.f.homeTime
	d.mode = mode
	d.mu.Unlock()
	time.Sleep(dur)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mode == mode {
		d.mode = was
		d.homed = true
	}
	return !d.runstopped
}
