package wire

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/ros/msg"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/controller_manager_msgs"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/lifecycle_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/trajectory_msgs"
	"viad/sim"
)

// armRig is an FR3 on the wire, and a client of it that is another participant.
type armRig struct {
	t    *testing.T
	ctx  context.Context
	twin *sim.Twin
	face *Franka
	node ros.Node
	arm  ros.Goaler

	mu    sync.Mutex
	news  chan struct{} // closed at each message
	state *franka_msgs.FrankaRobotState
}

func fr3OnTheWire(t *testing.T, f Faults) *armRig {
	t.Helper()
	domain, release, err := interop.Domain()
	must(t, err)
	t.Cleanup(release)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	r := &armRig{t: t, ctx: ctx, news: make(chan struct{})}
	r.twin, err = sim.NewTwin(sim.Options{Robot: "fr3", World: "tabletop", Seed: 1, Light: true, Pace: sim.PaceReal})
	must(t, err)
	t.Cleanup(r.twin.Close)
	open := func(name string) *dds.Node {
		n, err := dds.Open(dds.Config{Node: name, Domain: domain, Localhost: true, Distro: cdr.Jazzy})
		must(t, err)
		t.Cleanup(func() { _ = n.Close() })
		return n
	}
	r.node = open("client")
	r.face, err = NewFranka(r.twin, open("franka"), "<robot/>", f)
	must(t, err)
	run, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.twin.Run(run) })
	wg.Go(func() { _ = r.face.Run(run) })
	t.Cleanup(func() {
		stop()
		wg.Wait()
		_ = r.face.Close()
	})
	_, err = ros.Subscribe(r.node, "/franka_robot_state_broadcaster/robot_state", ros.Default(), func(m *franka_msgs.FrankaRobotState, _ ros.Info) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.state = m
		close(r.news)
		r.news = make(chan struct{})
	})
	must(t, err)
	r.arm, err = r.node.ActionClient(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback]("/fr3_arm_controller/follow_joint_trajectory"))
	must(t, err)
	r.mode(modeMove)
	return r
}

// until waits for a state that is as told.
func (r *armRig) until(what string, f func(*franka_msgs.FrankaRobotState) bool) {
	r.t.Helper()
	for {
		r.mu.Lock()
		ok, news := r.state != nil && f(r.state), r.news
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case <-r.ctx.Done():
			r.t.Fatalf("never: %s; the mode is %v", what, r.state)
		}
	}
}

func (r *armRig) mode(m uint8) {
	r.t.Helper()
	r.until("the mode", func(s *franka_msgs.FrankaRobotState) bool { return s.RobotMode == m })
}

func (r *armRig) q() []float64 { return r.twin.Truth().Q }

// goal moves joint 7 by d in the seconds given, from rest to rest.
func (r *armRig) goal(d, seconds float64) *control_msgs.FollowJointTrajectory_Goal {
	p := trajectory_msgs.JointTrajectoryPoint{Positions: r.q(), Velocities: make([]float64, 7), Accelerations: make([]float64, 7)}
	p.Positions[6] += d
	p.TimeFromStart = builtin_interfaces.Duration{Sec: int32(seconds), Nanosec: uint32((seconds - math.Floor(seconds)) * 1e9)}
	return &control_msgs.FollowJointTrajectory_Goal{Trajectory: trajectory_msgs.JointTrajectory{JointNames: slices.Clone(r.face.arm.joints), Points: []trajectory_msgs.JointTrajectoryPoint{p}}}
}

func (r *armRig) send(g *control_msgs.FollowJointTrajectory_Goal) (ros.Goal, error) {
	return r.arm.Send(r.ctx, g, nil)
}

func (r *armRig) ends(g ros.Goal) (ros.GoalStatus, control_msgs.FollowJointTrajectory_Result) {
	r.t.Helper()
	var res control_msgs.FollowJointTrajectory_Result
	st, err := g.Result(r.ctx, &res)
	must(r.t, err)
	return st, res
}

func ask[Q, A any, PQ msg.Ptr[Q], PA msg.Ptr[A]](r *armRig, name string, q PQ) PA {
	r.t.Helper()
	c, err := r.node.Client(ros.ServiceOf[Q, A, PQ, PA](name))
	must(r.t, err)
	defer func() { _ = c.Close() }()
	a := PA(new(A))
	must(r.t, c.Call(r.ctx, q, a))
	return a
}

// What is wrong with a goal is said by not taking it; what is right with it moves the arm; a new goal replaces the old.
func TestGoalsOnTheWire(t *testing.T) {
	r := fr3OnTheWire(t, Faults{})
	for what, spoil := range map[string]func(*trajectory_msgs.JointTrajectory){
		"a joint of another arm":  func(m *trajectory_msgs.JointTrajectory) { m.JointNames[0] = "panda_joint1" },
		"no points":               func(m *trajectory_msgs.JointTrajectory) { m.Points = nil },
		"six numbers":             func(m *trajectory_msgs.JointTrajectory) { m.Points[0].Positions = m.Points[0].Positions[:6] },
		"an end in the past":      func(m *trajectory_msgs.JointTrajectory) { m.Header.Stamp.Sec = 1000 },
		"times that do not grow":  func(m *trajectory_msgs.JointTrajectory) { m.Points = append(m.Points, m.Points[0]) },
		"a speed at the very end": func(m *trajectory_msgs.JointTrajectory) { m.Points[0].Velocities[2] = 0.1 },
	} {
		g := r.goal(0.1, 1)
		spoil(&g.Trajectory)
		var refused *ros.Rejected
		if _, err := r.send(g); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want a rejection", what, err)
		}
	}
	was := r.q()[6]
	first, err := r.send(r.goal(0.5, 3))
	must(t, err)
	second, err := r.send(r.goal(0.2, 1))
	must(t, err)
	if st, res := r.ends(first); st != ros.GoalAborted || res.ErrorCode != jtcInvalid {
		t.Errorf("the replaced goal ended as %v, %d", st, res.ErrorCode)
	}
	if st, res := r.ends(second); st != ros.GoalSucceeded || math.Abs(r.q()[6]-was-0.2) > 0.02 {
		t.Errorf("%v, %+v, moved by %v", st, res, r.q()[6]-was)
	}
	// On the topic nothing is refused and nothing told; an empty trajectory stops what runs.
	long := r.goal(0.6, 6)
	g, err := r.send(long)
	must(t, err)
	out, err := ros.Advertise[trajectory_msgs.JointTrajectory](r.node, "/fr3_arm_controller/joint_trajectory", ros.Default())
	must(t, err)
	must(t, out.Ready(r.ctx, 1))
	r.until("it moves", func(s *franka_msgs.FrankaRobotState) bool { return s.MeasuredJointState.Velocity[6] > 0.05 })
	must(t, out.Send(r.ctx, &trajectory_msgs.JointTrajectory{JointNames: long.Trajectory.JointNames}))
	r.until("it rests", func(s *franka_msgs.FrankaRobotState) bool { return math.Abs(s.MeasuredJointState.Velocity[6]) < 0.005 })
	if s := g.Status(); s != ros.GoalExecuting && s != ros.GoalAccepted {
		t.Errorf("the goal is %v: an empty trajectory stops the arm and tells nobody", s)
	}
	must(t, g.Cancel(r.ctx))
	if st, _ := r.ends(g); st != ros.GoalCanceled {
		t.Errorf("cancelled, it is %v", st)
	}
}

// Commands that jump trip the box's own rules, each by its name.
func TestDiscontinuitiesOnTheWire(t *testing.T) {
	for want, spoil := range map[string]func(*trajectory_msgs.JointTrajectory){
		flagJolt: func(m *trajectory_msgs.JointTrajectory) { m.Points[0].Velocities, m.Points[0].Accelerations = nil, nil },
		flagJerk: func(m *trajectory_msgs.JointTrajectory) { // two cubics of 0.45 rad in 0.3 s: from -30 to 30 rad/s^2 between them
			first := m.Points[0]
			first.Positions = slices.Clone(first.Positions)
			first.Positions[6] += 0.25
			first.Accelerations, first.TimeFromStart = nil, builtin_interfaces.Duration{Nanosec: 300e6}
			second := first
			second.Positions = slices.Clone(first.Positions)
			second.Positions[6] += 0.45
			second.TimeFromStart.Nanosec = 600e6
			m.Points = []trajectory_msgs.JointTrajectoryPoint{first, second}
		},
	} {
		r := fr3OnTheWire(t, Faults{})
		g, err := r.send(func() *control_msgs.FollowJointTrajectory_Goal { g := r.goal(0.2, 1); spoil(&g.Trajectory); return g }())
		must(t, err)
		if st, _ := r.ends(g); st != ros.GoalAborted {
			t.Errorf("%s: the goal ended as %v", want, st)
		}
		r.mode(modeReflex)
		r.mu.Lock()
		last := r.state.LastMotionErrors
		r.mu.Unlock()
		if last.JointMotionGeneratorVelocityDiscontinuity != (want == flagJolt) || last.JointMotionGeneratorAccelerationDiscontinuity != (want == flagJerk) {
			t.Errorf("%s: the flags are %+v", want, last)
		}
	}
}

// The state's small topics go by best effort: who wants them reliably hears nothing.
func TestBroadcastersTopics(t *testing.T) {
	r := fr3OnTheWire(t, Faults{})
	heard := make(chan *geometry_msgs.PoseStamped, 1)
	reliably := make(chan struct{}, 1)
	first := func(m *geometry_msgs.PoseStamped, _ ros.Info) {
		select {
		case heard <- m:
		default:
		}
	}
	_, err := ros.Subscribe(r.node, "/franka_robot_state_broadcaster/current_pose", ros.Default(), func(*geometry_msgs.PoseStamped, ros.Info) { reliably <- struct{}{} })
	must(t, err)
	_, err = ros.Subscribe(r.node, "/franka_robot_state_broadcaster/current_pose", ros.SensorData(), first)
	must(t, err)
	var m *geometry_msgs.PoseStamped
	select {
	case m = <-heard:
	case <-r.ctx.Done():
		t.Fatal("no pose")
	}
	p := m.Pose.Position
	if d := r3.Norm(r3.Sub(r3.Vec{X: p.X, Y: p.Y, Z: p.Z}, r3.Vec{X: .30689, Z: .48688})); d > 2e-3 {
		t.Errorf("the hand is told to be at %+v, %v m from where it stands ready", p, d)
	}
	if len(reliably) > 0 {
		t.Error("a reliable subscriber heard what is sent by best effort")
	}
	states := make(chan *control_msgs.JointTrajectoryControllerState, 1)
	_, err = ros.Subscribe(r.node, "/fr3_arm_controller/controller_state", ros.SensorData(), func(m *control_msgs.JointTrajectoryControllerState, _ ros.Info) {
		select {
		case states <- m:
		default:
		}
	})
	must(t, err)
	select {
	case s := <-states:
		if len(s.Reference.Positions) != 7 || math.Abs(s.Feedback.Positions[3]-r.q()[3]) > 1e-3 || math.Abs(s.Error.Positions[3]) > 1e-3 {
			t.Errorf("%+v", s)
		}
	case <-r.ctx.Done():
		t.Fatal("no controller state")
	}
}

// Thresholds of collisions are set while no controller drives, and then they count.
func TestCollisionBehaviour(t *testing.T) {
	r := fr3OnTheWire(t, Faults{})
	q := &franka_msgs.SetFullCollisionBehavior_Request{}
	for j := range 7 {
		q.LowerTorqueThresholdsAcceleration[j], q.UpperTorqueThresholdsAcceleration[j], q.LowerTorqueThresholdsNominal[j], q.UpperTorqueThresholdsNominal[j] = 5, 90, 5, 90
	}
	for j := range 6 {
		q.LowerForceThresholdsAcceleration[j], q.UpperForceThresholdsAcceleration[j], q.LowerForceThresholdsNominal[j], q.UpperForceThresholdsNominal[j] = 3, 6, 3, 6
	}
	const name = "/service_server/set_full_collision_behavior"
	if a := ask[franka_msgs.SetFullCollisionBehavior_Request, franka_msgs.SetFullCollisionBehavior_Response](r, name, q); a.Success || a.Error == "" {
		t.Errorf("set while a controller drives: %+v", a)
	}
	change := func(on, off []string) bool {
		return ask[controller_manager_msgs.SwitchController_Request, controller_manager_msgs.SwitchController_Response](r, "/controller_manager/switch_controller",
			&controller_manager_msgs.SwitchController_Request{ActivateControllers: on, DeactivateControllers: off}).Ok
	}
	mine := []string{"fr3_arm_controller"}
	if !change(nil, mine) {
		t.Fatal("it does not let go")
	}
	r.mode(modeIdle)
	if a := ask[franka_msgs.SetFullCollisionBehavior_Request, franka_msgs.SetFullCollisionBehavior_Response](r, name, q); !a.Success {
		t.Errorf("set while idle: %+v", a)
	}
	if a := ask[franka_msgs.SetTCPFrame_Request, franka_msgs.SetTCPFrame_Response](r, "/service_server/set_tcp_frame", new(franka_msgs.SetTCPFrame_Request)); !a.Success {
		t.Errorf("the tool's frame, set while idle: %+v", a)
	}
	if !change(mine, nil) {
		t.Fatal("it does not start")
	}
	r.mode(modeMove)
	a := r.face.arm
	for _, c := range []struct {
		force    float64
		contact  bool
		collides string
	}{{2, false, ""}, {4, true, ""}, {7, true, flagForce}} {
		a.mu.Lock()
		a.force = c.force
		a.feel()
		contact, _, _, _ := a.touches()
		if got := a.collides(); got != c.collides || contact != c.contact {
			t.Errorf("%v N: contact %v, collision %q", c.force, contact, got)
		}
		a.mu.Unlock()
	}
}

// Two goals to the hand: the second waits for the first, as its calls block. A cancel stops it; MoveIt's action means half
// widths.
func TestTheHandBlocks(t *testing.T) {
	r := fr3OnTheWire(t, Faults{})
	hand := func(a ros.Action) ros.Goaler {
		g, err := r.node.ActionClient(a)
		must(t, err)
		return g
	}
	move := hand(ros.ActionOf[franka_msgs.Move_Goal, franka_msgs.Move_Result, franka_msgs.Move_Feedback]("/franka_gripper/move"))
	send := func(width, speed float64) ros.Goal {
		g, err := move.Send(r.ctx, &franka_msgs.Move_Goal{Width: width, Speed: speed}, nil)
		must(t, err)
		return g
	}
	ended := func(g ros.Goal) (ros.GoalStatus, franka_msgs.Move_Result) {
		var res franka_msgs.Move_Result
		st, err := g.Result(r.ctx, &res)
		must(t, err)
		return st, res
	}
	first, second := send(0.03, 0.1), send(0.07, 0.1)
	if st, res := ended(first); st != ros.GoalSucceeded || math.Abs(r.twin.Truth().Aperture-0.03) > 0.01 {
		t.Errorf("the first ended as %v %+v at %v", st, res, r.twin.Truth().Aperture)
	}
	if st, res := ended(second); st != ros.GoalSucceeded || math.Abs(r.twin.Truth().Aperture-0.07) > 0.005 {
		t.Errorf("the second ended as %v %+v at %v", st, res, r.twin.Truth().Aperture)
	}
	slow := send(0.01, 0.02)
	must(t, slow.Cancel(r.ctx))
	if st, _ := ended(slow); st != ros.GoalCanceled || r.twin.Truth().Aperture < 0.03 {
		t.Errorf("cancelled, it ended as %v at %v", st, r.twin.Truth().Aperture)
	}
	if st, res := ended(send(0.2, 0.1)); st != ros.GoalAborted || res.Error == "" {
		t.Errorf("a width that it has not: %v %+v", st, res)
	}
	press := hand(ros.ActionOf[control_msgs.GripperCommand_Goal, control_msgs.GripperCommand_Result, control_msgs.GripperCommand_Feedback]("/franka_gripper/gripper_action"))
	g, err := press.Send(r.ctx, &control_msgs.GripperCommand_Goal{Command: control_msgs.GripperCommand{Position: 0.04}}, nil)
	must(t, err)
	var res control_msgs.GripperCommand_Result
	if st, err := g.Result(r.ctx, &res); err != nil || st != ros.GoalSucceeded || !res.ReachedGoal || math.Abs(res.Position-0.04) > 0.002 {
		t.Errorf("%v, %v, %+v", st, err, res)
	}
}

// The controller's process dies: what is its own is gone, the hand and the merged joints go on, and the arm stops.
func TestDeadController(t *testing.T) {
	r := fr3OnTheWire(t, Faults{})
	g, err := r.send(r.goal(1, 5))
	must(t, err)
	r.until("it moves", func(s *franka_msgs.FrankaRobotState) bool { return s.MeasuredJointState.Velocity[6] > 0.1 })
	merged := make(chan *sensor_msgs.JointState, 100)
	_, err = ros.Subscribe(r.node, "/joint_states", ros.SensorData(), func(m *sensor_msgs.JointState, _ ros.Info) {
		select {
		case merged <- m:
		default:
		}
	})
	must(t, err)
	r.face.Set(func(f *Faults) { f.DeadController = true })
	var res control_msgs.FollowJointTrajectory_Result
	if st, err := g.Result(r.ctx, &res); err == nil && st == ros.GoalSucceeded {
		t.Errorf("the goal of a dead controller succeeded")
	}
	gone := func() bool {
		graph, err := r.node.Graph(r.ctx)
		must(t, err)
		for _, x := range graph.Topics {
			if x.Name == "/franka/joint_states" && len(x.Publishers) > 0 {
				return false
			}
		}
		return !slices.ContainsFunc(graph.Services, func(n ros.NameType) bool { return n.Name == "/controller_manager/list_controllers" })
	}
	for !gone() {
		select {
		case <-r.twin.Clock().After(20 * time.Millisecond):
		case <-r.ctx.Done():
			t.Fatal("its topics and services stay")
		}
	}
	rest := time.After(500 * time.Millisecond)
	var at, stamps []float64
	for collecting := true; collecting; {
		select {
		case m := <-merged:
			at, stamps = append(at, m.Position[6]), append(stamps, float64(m.Header.Stamp.Sec)+1e-9*float64(m.Header.Stamp.Nanosec))
		case <-rest:
			collecting = false
		}
	}
	if n := len(at); n < 5 || at[n-1] != at[n-4] || stamps[n-1] <= stamps[n-4] {
		t.Errorf("the merged joints read %v at %v: want the last number with new stamps", at, stamps)
	}
	if v := r.twin.Body().State().QD[6]; math.Abs(v) > 0.01 {
		t.Errorf("the arm still moves at %v", v)
	}
	r.face.Set(func(f *Faults) { f.DeadController = false })
	r.mode(modeMove)
	again, err := r.send(r.goal(-0.1, 1))
	must(t, err)
	if st, _ := r.ends(again); st != ros.GoalSucceeded {
		t.Errorf("after its return a goal ended as %v", st)
	}
}

// Recovery in the order of the book, and the trap beside it: starting the controller clears a reflex that nobody has seen.
func TestActivatingClearsAReflex(t *testing.T) {
	r := fr3OnTheWire(t, Faults{LostPackets: true})
	_, err := r.send(r.goal(0.3, 2))
	must(t, err)
	r.mode(modeReflex)
	on := &controller_manager_msgs.SwitchController_Request{ActivateControllers: []string{"fr3_arm_controller"}}
	const name = "/controller_manager/switch_controller"
	if ask[controller_manager_msgs.SwitchController_Request, controller_manager_msgs.SwitchController_Response](r, name, on).Ok {
		t.Error("a controller started whose hardware is not configured")
	}
	up := ask[controller_manager_msgs.SetHardwareComponentState_Request, controller_manager_msgs.SetHardwareComponentState_Response](r, "/controller_manager/set_hardware_component_state",
		&controller_manager_msgs.SetHardwareComponentState_Request{Name: "FrankaHardwareInterface", TargetState: lifecycle_msgs.State{Label: "active"}})
	if !up.Ok || !ask[controller_manager_msgs.SwitchController_Request, controller_manager_msgs.SwitchController_Response](r, name, on).Ok {
		t.Error("hardware and controller do not start")
	}
	r.mode(modeMove)
}

// A reset of the world ends the goal, and the arm stays where the reset has put it.
func TestResetUnderTheController(t *testing.T) {
	r := fr3OnTheWire(t, Faults{})
	g, err := r.send(r.goal(1, 5))
	must(t, err)
	r.until("it moves", func(s *franka_msgs.FrankaRobotState) bool { return s.MeasuredJointState.Velocity[6] > 0.1 })
	must(t, r.twin.Reset(r.ctx, 2))
	if st, _ := r.ends(g); st != ros.GoalAborted {
		t.Errorf("the goal ended as %v", st)
	}
	was := r.q()
	<-r.twin.Clock().After(500 * time.Millisecond)
	for j, q := range r.q() {
		if math.Abs(q-was[j]) > 0.002 {
			t.Errorf("joint %d went from %v to %v after the reset", j+1, was[j], q)
		}
	}
	r.mode(modeMove)
}
