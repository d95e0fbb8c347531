package franka

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"viad/drivers/control"
	"viad/drivers/robot"
	"viad/drivers/urdf"
	"viad/ros/msg/sensor_msgs"
)

// A controller that blends each new goal from the measured joints, with an arm that trails it: the motion stays smooth
// and comes to its end.
func TestTrailingArm(t *testing.T) {
	b := start(t, with(func(d *double) { d.f.springy = true }))
	tr := b.swing(0.8, 3*time.Second)
	began := b.clock.Now()
	if err := b.Follow(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	took, a := b.clock.Now().Sub(began), get(b.d, func(d *double) float64 { return d.aMost })
	t.Logf("took %v, accelerations up to %.2f rad/s^2", took, a)
	if _, off := b.furthest(b.d.truth().Q, tr.Points[len(tr.Points)-1].Q); off > 0.005 || took > 3500*time.Millisecond {
		t.Errorf("%v from the goal after %v", off, took)
	}
	if a > 10 {
		t.Errorf("accelerations up to %.2f rad/s^2, limit 10", a)
	}
}

// "Succeeded" after a moment, far from the goal: the joints decide.
func TestSucceededIsNoEvidence(t *testing.T) {
	b := start(t, with(func(d *double) { d.f.lieAfter = 300 * time.Millisecond }))
	err := b.Follow(t.Context(), b.swing(0.3, 400*time.Millisecond*3))
	b.refused(err, "rad from its goal")
}

func TestPathTolerance(t *testing.T) {
	b := start(t, with(func(d *double) { d.f.blockAfter = 800 * time.Millisecond }))
	err := b.Follow(t.Context(), b.swing(0.8, 3*time.Second))
	b.refused(err, "stopped the arm short", "path 0.10 rad", "fr3_joint")
	var c *Condition
	if !errors.As(err, &c) || c.Trouble != TroubleShort {
		t.Errorf("the error is %T %v", err, err)
	}
}

func TestStateByName(t *testing.T) {
	b := start(t, with(func(d *double) { d.f.shuffle = true }))
	for i, q := range b.State().Q {
		if math.Abs(q-ready[i]) > 1e-9 {
			t.Errorf("joint %d reads %v, is %v", i+1, q, ready[i])
		}
	}
	for name, f := range map[string]faults{"NaN": {nan: true}, "partial": {partial: true}} {
		b.d.set(func(d *double) { d.f = f })
		b.eventually(name+" is missing", func() bool { return b.State().Q == nil })
	}
	b.d.set(func(d *double) { d.f = faults{} })
	b.ready()
	was := b.State()
	<-b.clock.After(100 * time.Millisecond)
	if s := b.State(); s.Changed != was.Changed || !s.Received.After(was.Received) {
		t.Error("an arm that rests has changed values, or none came")
	}
	b.d.set(func(d *double) { d.force = 12.5 })
	b.eventually("the contact is felt", func() bool { return b.State().Contact == 12.5 })
}

func TestPickIgnoresOthers(t *testing.T) {
	if _, _, ours, _ := pick(&sensor_msgs.JointState{Name: []string{"fr3_finger_joint1"}, Position: []float64{1}}, []string{"fr3_joint1"}); ours {
		t.Error("a message of the fingers is taken for the arm's")
	}
	if q, _, ours, _ := pick(&sensor_msgs.JointState{Name: []string{"a"}, Position: []float64{1}}, []string{"a"}); q != nil || !ours {
		t.Errorf("without speeds the reading is %v, %v", q, ours)
	}
}

// Nothing is taken by force: another controller, one that is not active, and an arm that moves are said.
func TestStartUp(t *testing.T) {
	t.Run("another controller", func(t *testing.T) {
		b := begin(t, with(func(d *double) { d.active, d.rivals = false, []string{"gravity_compensation"} }))
		b.says(robot.ModeFaulted, "gravity_compensation", "nothing is taken by force")
		b.refused(b.Do(t.Context(), taskActivate), "gravity_compensation", "stop it first")
		b.d.set(func(d *double) { d.rivals = nil })
		if err := b.Do(t.Context(), taskActivate); err != nil {
			t.Error(err)
		}
		b.ready()
	})
	t.Run("moves already", func(t *testing.T) {
		b := begin(t, with(func(d *double) {
			d.began = time.Now()
			d.knots = []knot{{0, ready, make([]float64, 7), make([]float64, 7)}}
			there := append([]float64(nil), ready...)
			there[0] += 1.2
			d.knots = append(d.knots, knot{6, there, make([]float64, 7), make([]float64, 7)})
		}))
		b.eventually("it is said", func() bool { return strings.Contains(b.State().Fault, "not by our command") })
		b.ready() // when it rests
	})
	t.Run("published and silent", func(t *testing.T) {
		b := begin(t, with(func(d *double) { d.f.noState = true }))
		b.says(robot.ModeUnknown, "robot_state has 1 publishers and nothing came", "QoS")
	})
	t.Run("nobody there", func(t *testing.T) {
		r := must[*Robot](t)(Open(t.Context(), Config{Node: node(t, "viad_franka", domain(t)), Robot: FR3}))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		b := &bench{Robot: r, t: t}
		b.says(robot.ModeUnknown, "nobody publishes /franka/joint_states", "bring-up")
		for rung := robot.RungZeroVelocity; rung <= robot.RungPower; rung++ {
			if err := b.Halt(t.Context(), rung); err == nil {
				t.Errorf("%v of nobody was heard", rung)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("another robot", func(t *testing.T) {
		b := begin(t, with(func(d *double) {
			d.describe(`<robot name="fr3"><joint name="fr3_joint1"><limit lower="-1" upper="1" velocity="1"/></joint></robot>`)
		}))
		b.says(robot.ModeFaulted, "does not fit FR3", "-1.0000 to 1.0000")
	})
}

func TestDescriptionFits(t *testing.T) {
	text, err := os.ReadFile("../urdf/models/fr3.urdf")
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, with(func(d *double) { d.describe(string(text)) }))
	b.eventually("the model is known", func() bool { return strings.Contains(b.fact(factModel).Value, "as the robot's description") })
}

func TestPowerOffAndActivate(t *testing.T) {
	b := start(t)
	done := b.follow(b.swing(0.4, 4*time.Second))
	b.moves()
	if err := b.Halt(t.Context(), robot.RungPower); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("Follow of a robot that was switched off returned nil")
	}
	b.says(robot.ModeFaulted, "idle", taskActivate)
	if err := b.Do(t.Context(), taskActivate); err != nil {
		t.Fatal(err)
	}
	b.ready()
}

// A controller that does not answer is given up after a time of our own.
func TestNobodyAccepts(t *testing.T) {
	b := start(t, with(func(d *double) { d.f.deaf = true }))
	began := b.clock.Now()
	b.refused(b.Follow(t.Context(), b.swing(0.1, time.Second)), "did not accept")
	if d := b.clock.Now().Sub(began); d > 2*time.Second {
		t.Errorf("took %v", d)
	}
	b.d.set(func(d *double) { d.f.deaf = false })
}

// FR3's speed limit shrinks towards the ends of a joint: computed by hand at q2 = 1.7, sqrt(5.17 (1.7918 - 1.7)) - 0.2 =
// 0.4889 rad/s.
func TestPositionDependentSpeed(t *testing.T) {
	if v := fr3Envelope(1).most(1.7, 1, 2.62); math.Abs(v-0.4889) > 1e-4 {
		t.Errorf("limit %v, want 0.4889", v)
	}
	if v := fr3Envelope(1).most(1.7, -1, 2.62); v != 2.62 {
		t.Errorf("limit away from the end %v", v)
	}
	q2 := append([]float64(nil), ready...)
	q2[1] = 1.1
	m, err := Model(FR3)
	if err != nil {
		t.Fatal(err)
	}
	r := &Robot{model: m, config: Config{Robot: FR3}}
	b := &bench{Robot: r}
	r.joints = reading{q: q2, qd: make([]float64, 7)}
	r.clock = robot.WallClock{}
	for _, c := range []struct {
		d  time.Duration
		ok bool
	}{{time.Second, false}, {5 * time.Second, true}} {
		tr := b.swing(0, c.d)
		for i := range tr.Points {
			x := float64(i) / float64(len(tr.Points)-1)
			tr.Points[i].Q[1] = 1.1 + 0.65*x*x*x*(10-15*x+6*x*x)
			tr.Points[i].QD[1] = 0.65 * 30 * x * x * (1 - 2*x + x*x) / c.d.Seconds()
		}
		switch err := r.admit(newPath(tr, q2, m)); {
		case c.ok && err != nil:
			t.Errorf("in %v: %v", c.d, err)
		case !c.ok && (err == nil || !strings.Contains(err.Error(), "fr3_joint2") || !strings.Contains(err.Error(), "limit")):
			t.Errorf("in %v: %v", c.d, err)
		}
	}
}

// The driver's model is the one that plans are made for.
func TestModelAgreesWithControl(t *testing.T) {
	for k, d := range map[Kind]control.Description{FR3: control.FR3(), Panda: control.Panda()} {
		kin, err := control.NewKinematics(d)
		if err != nil {
			t.Fatal(err)
		}
		own, err := Model(k)
		if err != nil {
			t.Fatal(err)
		}
		for i, j := range kin.Model().Joints {
			if o := own.Joints[i]; o != j {
				t.Errorf("%s: %+v here, %+v there", k, o, j)
			}
		}
		if own.Jaw != kin.Model().Jaw || own.Name != kin.Model().Name {
			t.Errorf("%s: %+v %q, there %+v %q", k, own.Jaw, own.Name, kin.Model().Jaw, kin.Model().Name)
		}
		for i, j := range d.Joints {
			if e := j.Envelope; e != nil && (envelope{e.O, e.C, e.Lo, e.Hi}) != fr3Envelope(i) {
				t.Errorf("%s: envelopes %v and %v", j.Name, *e, fr3Envelope(i))
			}
		}
	}
	if _, err := urdf.Load("fr3"); err != nil {
		t.Error(err)
	}
}

// A profile's time is the integral of its rate, whatever it begins with, and pieces follow each other without a step.
func TestProfile(t *testing.T) {
	for _, f := range []profile{
		{s0: 1, rate: 1, cruise: 0.4, brake: 0.3},
		{rate: 0.2, ramp: 0.2, cruise: 0.4, brake: 0.5},
		{rate: 0, ramp: 0.2, cruise: 0.4, brake: 0.1},
		{s0: 2, rate: 0.6, cruise: 0.05, brake: 0.2},
	} {
		sum, end := f.s0, f.cruise+f.brake
		const n = 200000
		for i := range n {
			_, r, _ := f.at((float64(i) + 0.5) * end / n)
			sum += r * end / n
		}
		s, r, _ := f.at(end)
		if math.Abs(s-sum) > 1e-6 || r != 0 {
			t.Errorf("%+v: ends at %v with rate %v, the integral is %v", f, s, r, sum)
		}
		for i := range 100 {
			tau := end * float64(i) / 100
			_, a, c := f.at(tau)
			_, b, _ := f.at(tau + 1e-6)
			if math.Abs((b-a)/1e-6-c) > 1e-2 {
				t.Errorf("%+v at %v: the rate changes by %v, said is %v", f, tau, (b-a)/1e-6, c)
			}
		}
	}
}

// A daemon that was held up goes on from where its last goal has braked to, and comes to the end.
func TestHeldUp(t *testing.T) {
	m, err := Model(FR3)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Robot: &Robot{model: m, clock: robot.WallClock{}, joints: reading{q: ready, qd: make([]float64, 7)}}}
	p := newPath(b.swing(0.5, 3*time.Second), ready, m)
	for _, held := range []time.Duration{renew, 350 * time.Millisecond, 450 * time.Millisecond, 600 * time.Millisecond, 2 * time.Second} {
		now, pieces := time.Unix(1000, 0), 0
		var last piece
		for !last.final {
			next := p.next(last, now, m)
			if !last.sent.IsZero() {
				s, rate, _ := last.at(now.Sub(last.sent).Seconds())
				if s0, r0, _ := next.at(0); math.Abs(s0-s) > 1e-9 || math.Abs(r0-rate) > 1e-3 {
					t.Fatalf("held for %v: goes on at %v with rate %v from %v with rate %v", held, s0, r0, s, rate)
				}
			}
			at, points := p.points(next)
			for i := range at {
				for j, spec := range m.Joints {
					if math.Abs(points[i].a[j]) > spec.Acc {
						t.Errorf("held for %v: acceleration %v at %v", held, points[i].a[j], at[i])
					}
				}
			}
			if d := time.Duration(next.end * 1e9); d > b.Deadman()-transport {
				t.Errorf("a goal of %v, Deadman %v", d, b.Deadman())
			}
			if pieces++; pieces > 100 {
				t.Fatalf("held for %v: never ends", held)
			}
			last, now = next, now.Add(held)
		}
		at, points := p.points(last)
		if q := points[len(at)-1].q; math.Abs(q[0]-ready[0]-0.5) > 1e-9 {
			t.Errorf("held for %v: ends at %v", held, q)
		}
	}
}

// From a goal of the tool to the measured outcome, with the controller that plans for every body.
func TestWithControl(t *testing.T) {
	b := start(t)
	kin, err := control.NewKinematics(control.FR3())
	if err != nil {
		t.Fatal(err)
	}
	c := must[*control.Controller](t)(control.New(control.Options{Body: b, Kinematics: kin, Clock: b.clock, Settings: control.DefaultSettings()}))
	s := c.State()
	goal := kin.Tool(s.Base, s.Q)
	goal.P.Z -= 0.08
	plan, err := c.Plan(s, robot.Waypoint{Kind: robot.KindPoseJaw, Tool: goal})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Go(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	if out.Result != robot.ResultReached || out.Stop != robot.StopConfirmed || out.JawTo.Open {
		t.Errorf("the outcome is %v, %v: %s; jaw %+v", out.Result, out.Stop, out.Why, out.JawTo)
	}
	plan = must[robot.Plan](t)(c.Plan(c.State(), robot.Waypoint{Kind: robot.KindPose, Tool: kin.Tool(s.Base, s.Q)}))
	done := make(chan robot.Outcome, 1)
	go func() {
		o, _ := c.Go(context.Background(), plan)
		done <- o
	}()
	b.moves()
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if o := <-done; o.Result != robot.ResultStoppedShort || o.Stop != robot.StopConfirmed {
		t.Errorf("stopped, the outcome is %v, %v: %s", o.Result, o.Stop, o.Why)
	}
}

func TestNames(t *testing.T) {
	n := node(t, "viad_franka", domain(t))
	c := Config{Node: n, Robot: FR3, Namespace: "/left/", Prefix: "left_fr3", Controller: "left_arm_controller"}
	if err := c.fill(); err != nil {
		t.Fatal(err)
	}
	got := c.names()
	for _, w := range [][2]string{
		{got.joints[6], "left_fr3_joint7"},
		{got.fingers[1], "left_fr3_finger_joint2"},
		{got.measured, "/left/franka/joint_states"},
		{got.trajectory, "/left/left_arm_controller/follow_joint_trajectory"},
		{got.state, "/left/franka_robot_state_broadcaster/robot_state"},
		{got.stop, "/left/franka_gripper/stop"},
		{got.hardware, "/left/controller_manager/set_hardware_component_state"},
	} {
		if w[0] != w[1] {
			t.Errorf("%s, want %s", w[0], w[1])
		}
	}
	for name, bad := range map[string]Config{
		"no node": {Robot: FR3}, "no robot": {Node: n}, "namespace": {Node: n, Robot: FR3, Namespace: "left"},
		"force": {Node: n, Robot: FR3, GripForce: 100}, "not a number": {Node: n, Robot: Panda, PathTolerance: math.NaN()},
	} {
		if _, err := Open(t.Context(), bad); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

func FuzzDescription(f *testing.F) {
	text, err := os.ReadFile("../urdf/models/fr3.urdf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`<robot name="a"><joint name="fr3_joint1"><origin xyz="1 2" rpy="nan inf 0"/><limit lower="-9" upper="9" velocity="9"/></joint></robot>`)
	m, err := Model(FR3)
	if err != nil {
		f.Fatal(err)
	}
	c := Config{Robot: FR3, Prefix: "fr3"}
	r := &Robot{model: m, config: c, names: c.names()}
	f.Fuzz(func(t *testing.T, s string) {
		if l, err := parseLive(s); err == nil {
			if r.compare(l) == nil && len(l.Joints) < 9 {
				t.Errorf("%d joints fit", len(l.Joints))
			}
		}
	})
}

// clientEnv makes this test binary the daemon that is killed; it is its DDS domain.
const clientEnv = "VIAD_FRANKA_CLIENT"

// The daemon is killed, or stopped, in the middle of a fast motion: the arm stands within Deadman, on its path.
func TestDeadman(t *testing.T) {
	if os.Getenv(clientEnv) != "" {
		b := &bench{t: t}
		at := must[int](t)(strconv.Atoi(os.Getenv(clientEnv)))
		r := must[*Robot](t)(Open(t.Context(), Config{Node: node(t, "viad_franka", at), Robot: FR3}))
		b.Robot = r
		go func() { _ = r.Run(context.Background()) }()
		b.ready()
		_ = r.Follow(t.Context(), b.swing(1.4, 4*time.Second)) // 0.66 rad/s in its middle
		t.Fatal("survived its own motion")
	}
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(sig.String(), func(t *testing.T) {
			at := domain(t)
			d := newDouble(t, node(t, "franka_double", at), FR3, nil)
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestDeadman$")
			cmd.Env = append(os.Environ(), clientEnv+"="+strconv.Itoa(at))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			clock := robot.WallClock{}
			for i := 0; fastest(d.truth().QD) < 0.6; i++ {
				if i > 1500 {
					t.Fatal("the arm does not get fast")
				}
				<-clock.After(10 * time.Millisecond)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			cut := clock.Now()
			for fastest(d.truth().QD) > 1e-6 {
				if clock.Now().Sub(cut) > 5*time.Second {
					t.Fatal("the arm goes on")
				}
				<-clock.After(2 * time.Millisecond)
			}
			took, bound := clock.Now().Sub(cut), (&Robot{}).Deadman()
			t.Logf("stands %v after %v, bound %v", took, sig, bound)
			if took > bound {
				t.Errorf("stands %v after the daemon was gone, Deadman says %v", took, bound)
			}
			q := d.truth().Q
			for i := range q { // all joints make the same step: on the path they stay together
				if math.Abs((q[i]-ready[i])-(q[0]-ready[0])) > 5e-3 {
					t.Errorf("joint %d left the path: %v, joint 1 %v", i+1, q[i]-ready[i], q[0]-ready[0])
				}
			}
			if sig != syscall.SIGSTOP {
				return
			}
			if err := cmd.Process.Signal(syscall.SIGCONT); err != nil { // awake again, it does not go on
				t.Fatal(err)
			}
			<-clock.After(1500 * time.Millisecond)
			for i, now := range d.truth().Q {
				if math.Abs(now-q[i]) > 2e-3 {
					t.Errorf("awake again, the daemon moved joint %d by %v", i+1, now-q[i])
				}
			}
		})
	}
}

// The readings stop in the middle of a motion: the arm brakes, and nothing goes on when they are back.
func TestSilenceInMotion(t *testing.T) {
	b := start(t)
	done := b.follow(b.swing(0.5, 4*time.Second))
	b.moves()
	b.d.set(func(d *double) { d.f.silent = true })
	b.refused(<-done, "no complete joint reading", "250ms")
	b.eventually("the arm rests", func() bool { return fastest(b.d.truth().QD) == 0 })
	b.says(robot.ModeUnknown, "bring-up")
	at := b.d.truth().Q
	b.d.set(func(d *double) { d.f.silent = false })
	b.ready()
	if _, off := b.furthest(b.d.truth().Q, at); off > 1e-3 {
		t.Errorf("the arm moved on by %v", off)
	}
}

// Somebody else cancels: the motion ends with words that say so.
func TestCancelledByOthers(t *testing.T) {
	b := start(t)
	done := b.follow(b.swing(0.5, 4*time.Second))
	b.moves()
	if err := b.trajectory.CancelAll(t.Context()); err != nil { // as any client could
		t.Fatal(err)
	}
	b.refused(<-done, "cancelled", "not by this driver")
	b.ready()
}
