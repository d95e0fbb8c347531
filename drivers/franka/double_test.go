package franka

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/franka_ros1_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/trajectory_msgs"
)

// knot is an instant of the double's controller, by the time since its goal came.
type knot struct {
	t       float64
	q, v, a []float64
}

// faults are how the double misbehaves.
type faults struct {
	shuffle      bool          // joints in another order, with others between them
	nan, partial bool          // of joint 3; without joint 5
	silent       bool          // no joints and no state
	noState      bool          // no robot state
	deaf         bool          // accepts no goal, in no time
	ignoreCancel bool          // takes a cancel and goes on
	lieAfter     time.Duration // ends a goal as succeeded so long after the first came, and stays where it is
	blockAfter   time.Duration // the arm stays where it is so long after the first goal came; path tolerance is watched
	staleHand    bool          // publishes the old width with a new stamp
	handError    bool          // move and grasp are answered with failure, though they work
	handHangs    bool          // what runs into something never ends
	inactiveMove bool          // robot_mode stays idle though the controller is active
	slowRecovery time.Duration
	springy      bool          // the arm hangs on its controller by gains and rubs; new goals are blended from where it is measured
	skew         time.Duration // of its clock
	twin         float64       // every other message of the joints is of an arm that has joint 2 so much elsewhere
	doubled      bool          // joint 3 stands twice in them
}

// double is the robot's side: what franka_ros2 (or franka_ros) shows, as far as this driver sees it. It is kinematic.
type double struct {
	t     *testing.T
	node  ros.Node
	kind  Kind
	n     names
	ctrl  string
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu       sync.Mutex
	f        faults
	odd      bool // the next message of the joints
	knots    []knot
	began    time.Time
	first    time.Time // of the first goal since the faults were set
	q, v     []float64
	vWas     []float64
	was      time.Time
	aMost    float64 // largest acceleration that was seen
	mode     uint8
	las      []string // error flags of the last motion
	rate     float64
	force    float64
	replaced chan struct{} // closed when the running goal is over by another or by a fault
	verdict  int32
	active   bool
	rivals   []string
	width    float64
	wantW    float64
	speedW   float64
	object   float64 // between the fingers
	moving   bool
	stopHand chan struct{}
	homed    bool
	goals    int
	stamped  bool // a goal had a stamp
	lastGoal *control_msgs.FollowJointTrajectory_Goal
	graspGot *franka_msgs.Grasp_Goal
	moves    int
	stops    int
	recovers int
	switches []string
	hardware []string
	outs     []func(time.Time)
}

var ready = []float64{0, -0.785, 0, -2.356, 0, 1.571, 0.785}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newDouble(t *testing.T, node ros.Node, kind Kind, change func(*double)) *double {
	t.Helper()
	c := Config{Node: node, Robot: kind}
	if err := c.fill(); err != nil {
		t.Fatal(err)
	}
	d := &double{
		t: t, node: node, kind: kind, n: c.names(), ctrl: c.Controller, q: slices.Clone(ready), v: make([]float64, 7), vWas: make([]float64, 7),
		mode: modeMove, rate: 1, active: true, width: 0.08, wantW: 0.08, speedW: 0.1, homed: true, replaced: make(chan struct{}), stopHand: make(chan struct{}),
	}
	if change != nil {
		change(d)
	}
	d.serve()
	d.publish()
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	d.ended.Go(func() {
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case now := <-tick.C:
				d.step(now, n)
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); d.ended.Wait() })
	return d
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

// at is the controller's desired joints: quintic between knots, at rest after the last.
func (d *double) at(now time.Time) (q, v, a []float64) {
	q, v, a = slices.Clone(d.q), make([]float64, 7), make([]float64, 7)
	if len(d.knots) == 0 {
		return q, v, a
	}
	s := math.Max(0, now.Sub(d.began).Seconds())
	last := d.knots[len(d.knots)-1]
	if s >= last.t {
		return slices.Clone(last.q), v, a
	}
	i := slices.IndexFunc(d.knots, func(k knot) bool { return k.t > s })
	x, y := d.knots[i-1], d.knots[i]
	for j := range 7 {
		q[j], v[j], a[j] = quintic(x, y, j, s)
	}
	return q, v, a
}

func quintic(x, y knot, j int, s float64) (q, v, a float64) {
	h, t := y.t-x.t, s-x.t
	c0, c1, c2 := x.q[j], x.v[j], x.a[j]/2
	dq, dv, da := y.q[j]-c0-c1*h-c2*h*h, y.v[j]-c1-2*c2*h, y.a[j]-2*c2
	c3 := (10*dq - 4*dv*h + da*h*h/2) / (h * h * h)
	c4 := (-15*dq + 7*dv*h - da*h*h) / (h * h * h * h)
	c5 := (6*dq - 3*dv*h + da*h*h/2) / (h * h * h * h * h)
	return c0 + t*(c1+t*(c2+t*(c3+t*(c4+t*c5)))), c1 + t*(2*c2+t*(3*c3+t*(4*c4+t*5*c5))), 2*c2 + t*(6*c3+t*(12*c4+t*20*c5))
}

// accept makes a goal the running one.
func (d *double) accept(g *control_msgs.FollowJointTrajectory_Goal) (over chan struct{}, end time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	q, v, a := d.at(now)
	if d.f.springy {
		q, v, a = slices.Clone(d.q), slices.Clone(d.v), make([]float64, 7)
	}
	close(d.replaced)
	d.replaced = make(chan struct{})
	d.verdict = 0
	d.goals++
	if d.first.IsZero() {
		d.first = now
	}
	d.lastGoal = g
	d.stamped = d.stamped || g.Trajectory.Header.Stamp != builtin_interfaces.Time{}
	d.knots, d.began = []knot{{0, q, v, a}}, now
	for _, p := range g.Trajectory.Points {
		d.knots = append(d.knots, d.knot(g.Trajectory.JointNames, p))
	}
	last := d.knots[len(d.knots)-1].t
	return d.replaced, now.Add(time.Duration(last * 1e9))
}

func (d *double) knot(order []string, p trajectory_msgs.JointTrajectoryPoint) knot {
	k := knot{float64(p.TimeFromStart.Sec) + float64(p.TimeFromStart.Nanosec)/1e9, make([]float64, 7), make([]float64, 7), make([]float64, 7)}
	for i, n := range d.n.joints {
		j := slices.Index(order, n)
		k.q[i], k.v[i], k.a[i] = p.Positions[j], p.Velocities[j], p.Accelerations[j]
	}
	return k
}

// hold ends what runs, at once and where it is.
func (d *double) hold(code int32) {
	d.knots = nil
	d.verdict = code
	close(d.replaced)
	d.replaced = make(chan struct{})
}

func (d *double) step(now time.Time, n int) {
	d.mu.Lock()
	q, v, _ := d.at(now)
	since := now.Sub(d.first)
	stuck := !d.first.IsZero() && (d.f.blockAfter > 0 && since > d.f.blockAfter || d.f.lieAfter > 0 && since > d.f.lieAfter)
	if stuck {
		off := 0.0
		for j := range q {
			off = math.Max(off, math.Abs(q[j]-d.q[j]))
		}
		if g := d.lastGoal; d.f.blockAfter > 0 && len(d.knots) > 0 && len(g.PathTolerance) == 7 && off > g.PathTolerance[0].Position {
			d.hold(control_msgs.FollowJointTrajectory_Result_PATH_TOLERANCE_VIOLATED)
		}
		v = make([]float64, 7)
	} else {
		if d.f.springy {
			d.hang(now, q, v)
		}
		copy(d.q, q)
		for j := range v {
			d.aMost = math.Max(d.aMost, math.Abs(v[j]-d.vWas[j])/math.Max(0.002, now.Sub(d.was).Seconds()))
		}
	}
	copy(d.v, v)
	copy(d.vWas, v)
	d.was = now
	d.hand(0.004)
	outs := d.outs
	d.mu.Unlock()
	for i, o := range outs {
		if n%[]int{2, 5, 8, 8}[i] == 0 {
			o(now)
		}
	}
}

// hang moves the arm towards q and v as a controller with the stock gains does, on joints of one unit of inertia that rub.
func (d *double) hang(now time.Time, q, v []float64) {
	const kp, kd, rub, dt = 600, 30, 1.5, 1e-4
	for range int(math.Min(0.1, now.Sub(d.was).Seconds()) / dt) {
		for j := range q {
			a := kp*(q[j]-d.q[j]) + kd*(v[j]-d.v[j])
			a -= math.Copysign(math.Min(rub, math.Abs(a)+math.Abs(d.v[j])/dt), d.v[j])
			d.v[j] += a * dt
			d.q[j] += d.v[j] * dt
		}
	}
	copy(q, d.q)
	copy(v, d.v)
}

func (d *double) hand(dt float64) {
	if !d.moving {
		return
	}
	step := math.Min(d.speedW*dt, math.Abs(d.wantW-d.width))
	if d.wantW < d.width {
		step = -step
	}
	w := d.width + step
	if w < d.object && d.wantW < d.object {
		w = math.Max(d.object, math.Min(d.width, w))
	}
	d.width = w
}

func (d *double) stamp(now time.Time) builtin_interfaces.Time {
	now = now.Add(d.f.skew)
	return builtin_interfaces.Time{Sec: int32(now.Unix()), Nanosec: uint32(now.Nanosecond())}
}

func (d *double) publish() {
	t, q := d.t, ros.Default()
	joints := must[ros.Publisher[*sensor_msgs.JointState]](t)(ros.Advertise[sensor_msgs.JointState](d.node, d.n.measured, q))
	hand := must[ros.Publisher[*sensor_msgs.JointState]](t)(ros.Advertise[sensor_msgs.JointState](d.node, d.n.handJoints, q))
	ctx := context.Background()
	shown := -1.0
	d.outs = []func(time.Time){
		func(now time.Time) {
			m, ok := d.jointState(now)
			if ok {
				_ = joints.Send(ctx, m)
			}
		},
		nil,
		func(now time.Time) {
			d.mu.Lock()
			if !d.f.staleHand || shown < 0 {
				shown = d.width
				if !d.homed {
					shown = 0
				}
			}
			m := &sensor_msgs.JointState{Name: d.n.fingers[:], Position: []float64{shown / 2, shown / 2}, Velocity: []float64{0, 0}, Effort: []float64{0, 0}}
			m.Header.Stamp = d.stamp(now)
			silent := d.f.silent
			d.mu.Unlock()
			if !silent {
				_ = hand.Send(ctx, m)
			}
		},
	}
	if d.kind == Panda {
		state := must[ros.Publisher[*franka_ros1_msgs.FrankaState]](t)(ros.Advertise[franka_ros1_msgs.FrankaState](d.node, d.n.state, q))
		d.outs[1] = func(time.Time) {
			d.mu.Lock()
			m := &franka_ros1_msgs.FrankaState{RobotMode: d.mode, ControlCommandSuccessRate: d.rate}
			m.OFExtHatK[2] = d.force
			m.LastMotionErrors.CartesianReflex = slices.Contains(d.las, "cartesian_reflex")
			m.LastMotionErrors.CommunicationConstraintsViolation = slices.Contains(d.las, "communication_constraints_violation")
			silent := d.f.silent || d.f.noState
			d.mu.Unlock()
			if !silent {
				_ = state.Send(ctx, m)
			}
		}
		return
	}
	state := must[ros.Publisher[*franka_msgs.FrankaRobotState]](t)(ros.Advertise[franka_msgs.FrankaRobotState](d.node, d.n.state, q))
	d.outs[1] = func(time.Time) {
		d.mu.Lock()
		m := &franka_msgs.FrankaRobotState{RobotMode: d.mode, ControlCommandSuccessRate: d.rate}
		m.OFExtHatK.Wrench.Force.Z = d.force
		m.LastMotionErrors.CartesianReflex = slices.Contains(d.las, "cartesian_reflex")
		m.LastMotionErrors.JointVelocityViolation = slices.Contains(d.las, "joint_velocity_violation")
		m.LastMotionErrors.CommunicationConstraintsViolation = slices.Contains(d.las, "communication_constraints_violation")
		silent := d.f.silent || d.f.noState
		d.mu.Unlock()
		if !silent {
			_ = state.Send(ctx, m)
		}
	}
}

func (d *double) jointState(now time.Time) (*sensor_msgs.JointState, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &sensor_msgs.JointState{Name: slices.Clone(d.n.joints), Position: slices.Clone(d.q), Velocity: slices.Clone(d.v), Effort: make([]float64, 7)}
	m.Header.Stamp = d.stamp(now)
	if d.f.shuffle {
		m.Name, m.Position, m.Velocity = append(m.Name, "other_joint"), append(m.Position, 9), append(m.Velocity, 9)
		slices.Reverse(m.Name)
		slices.Reverse(m.Position)
		slices.Reverse(m.Velocity)
	}
	if d.f.nan {
		m.Position[3] = math.NaN()
	}
	if d.odd = !d.odd; d.odd {
		m.Position[1] += d.f.twin
	}
	if d.f.doubled {
		m.Name, m.Position, m.Velocity = append(m.Name, m.Name[2]), append(m.Position, 0.5), append(m.Velocity, 0)
	}
	if d.f.partial {
		m.Name, m.Position, m.Velocity = m.Name[:5], m.Position[:5], m.Velocity[:5]
	}
	return m, !d.f.silent
}

// describe publishes a description for late joiners.
func (d *double) describe(text string) {
	p := must[ros.Publisher[*std_msgs.String]](d.t)(ros.Advertise[std_msgs.String](d.node, d.n.description, ros.Latched()))
	if err := p.Send(context.Background(), &std_msgs.String{Data: text}); err != nil {
		d.t.Error(err)
	}
}

func (d *double) truth() robot.State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return robot.State{Q: slices.Clone(d.q), QD: slices.Clone(d.v), HasBase: true}
}
