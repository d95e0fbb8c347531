package wire

import (
	"context"
	"math"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg/diagnostic_msgs"
	"viad/ros/msg/tf2_msgs"
)

// A runstop in the middle of a goal: generation A calls it a success, B aborts unless told otherwise. The wrist drops, the
// gripper holds, the mode says so and comes back.
func TestStretchRunstop(t *testing.T) {
	for _, lucky := range []bool{false, true} {
		all(t, StretchFaults{SuccessAfterRunstop: lucky}, func(t *testing.T, r *rig, gen Generation) {
			r.do("wrist_pitch_joint", 0) // level: gravity has a lever
			r.pass(time.Second)
			mode, at, jaw := r.word("mode"), r.joint("lift_joint"), r.twin.Truth().Aperture
			s, err := r.send([]string{"lift_joint"}, pt(0, at-0.3))
			must(t, err)
			r.until("motion", func() bool { return r.q["lift_joint"] < at-0.02 })
			r.runstop(true)
			if p := s.end(); gen == GenerationB && !lucky {
				p.want(t, ros.GoalAborted, codeInvalid)
			} else {
				p.want(t, ros.GoalSucceeded, 0)
			}
			r.until("the mode", func() bool { return r.words["mode"] == "runstopped" })
			if _, err := r.send([]string{"lift_joint"}, pt(0, at)); err == nil {
				t.Error("a goal was taken while runstopped")
			}
			r.pass(2 * time.Second)
			q := r.twin.Truth()
			if q.Q[0] < at-0.25 || q.Q[3] < 0.2 || !near(q.Aperture, jaw, 0.003) {
				t.Errorf("lift %v from %v, pitch %v, aperture %v from %v", q.Q[0], at, q.Q[3], q.Aperture, jaw)
			}
			r.runstop(false)
			r.until("the mode before", func() bool { return r.words["mode"] == mode })
			r.do("wrist_pitch_joint", 0).want(t, ros.GoalSucceeded, 0)
		})
	}
}

// Homing takes its time and a mode of its own; a runstop meanwhile loses it. State may cease in it.
func TestStretchHoming(t *testing.T) {
	r := onTheWire(t, GenerationA, StretchFaults{QuietTasks: true})
	from := r.twin.Clock().Now()
	done := make(chan bool, 1)
	go func() { ok, _ := r.call(r.ctx, "/home_the_robot"); done <- ok }()
	r.until("homing", func() bool { return r.words["mode"] == "homing" })
	before := r.heard()
	if ok := <-done; !ok {
		t.Error("homing failed")
	}
	if took := r.twin.Clock().Now().Sub(from); took < homeTime {
		t.Errorf("it took %v", took)
	}
	r.until("the mode before", func() bool { return r.words["mode"] == "navigation" })
	r.mu.Lock()
	if n := r.count - before; n > 15 { // 8 s are 266 of them
		t.Errorf("%d joint states came while it homed", n)
	}
	r.mu.Unlock()
	r.face.Set(func(f *StretchFaults) { f.QuietTasks = false })
	go func() { ok, _ := r.call(r.ctx, "/home_the_robot"); done <- ok }()
	r.until("homing", func() bool { return r.words["mode"] == "homing" })
	r.runstop(true)
	if ok := <-done; ok {
		t.Error("homing succeeded under the runstop")
	}
	r.until("not homed", func() bool { return !r.truth["is_homed"] })
	r.runstop(false)
	r.until("the mode before", func() bool { return r.words["mode"] == "navigation" })
	if _, err := r.send([]string{"lift_joint"}, pt(0, 0.5)); err == nil {
		t.Error("a goal was taken though homing was lost")
	}
}

func TestStretchStows(t *testing.T) {
	r := onTheWire(t, GenerationA, StretchFaults{})
	r.do("arm_joint", 0.1)
	if ok, err := r.call(r.ctx, "/stow_the_robot"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for i, want := range []float64{0.15, 0, 3.14, 0, 0} {
		if q := r.twin.Truth().Q[i]; !near(q, want, 0.02) {
			t.Errorf("joint %d is at %v, not %v", i, q, want)
		}
	}
}

// stop_the_robot halts in every generation; B's callers are not answered, unless that was mended.
func TestStretchStopService(t *testing.T) {
	all(t, StretchFaults{}, func(t *testing.T, r *rig, gen Generation) {
		at := r.joint("lift_joint")
		s, err := r.send([]string{"lift_joint"}, pt(0, at-0.3))
		must(t, err)
		r.until("motion", func() bool { return r.q["lift_joint"] < at-0.02 })
		ctx, give := context.WithCancel(r.ctx)
		defer give()
		done := make(chan error, 1)
		go func() { _, err := r.call(ctx, "/stop_the_robot"); done <- err }()
		s.end().want(t, ros.GoalAborted, -6)
		if gen == GenerationB {
			r.pass(2 * time.Second)
			select {
			case err := <-done:
				t.Fatalf("it was answered: %v", err)
			default:
			}
			give()
		}
		if err := <-done; (err != nil) != (gen == GenerationB) {
			t.Errorf("%v", err)
		}
		r.pass(time.Second)
		if q := r.joint("lift_joint"); q < at-0.2 {
			t.Errorf("the lift went on to %v", q)
		}
		r.face.Set(func(f *StretchFaults) { f.StopAnswers = true })
		if ok, err := r.call(r.ctx, "/stop_the_robot"); !ok || err != nil {
			t.Error(ok, err)
		}
	})
}

// Topics go on while services take requests and never answer.
func TestStretchDeadServices(t *testing.T) {
	r := onTheWire(t, GenerationA, StretchFaults{DeadServices: true})
	ctx, give := context.WithCancel(r.ctx)
	done := make(chan error, 1)
	go func() { _, err := r.call(ctx, "/stop_the_robot"); done <- err }()
	r.pass(5 * time.Second)
	select {
	case err := <-done:
		t.Fatalf("it was answered: %v", err)
	default:
	}
	give()
	if <-done == nil {
		t.Error("no error")
	}
}

// Frozen joint states have new stamps and old values; silent ones cease. The odometry goes on in both.
func TestStretchJointStatesGoBad(t *testing.T) {
	r := onTheWire(t, GenerationA, StretchFaults{})
	r.face.Set(func(f *StretchFaults) { f.FrozenJoints = true })
	r.pass(200 * time.Millisecond)
	at, stamp := r.joint("lift_joint"), r.twin.Clock().Now()
	r.do("lift_joint", at-0.2).want(t, ros.GoalSucceeded, 0)
	r.until("new stamps", func() bool { return r.at.Sub(stamp) > time.Second })
	if q := r.twin.Truth().Q[0]; r.joint("lift_joint") != at || !near(q, at-0.2, 0.01) {
		t.Errorf("shown at %v, is at %v", r.joint("lift_joint"), q)
	}
	r.face.Set(func(f *StretchFaults) { f.FrozenJoints, f.SilentJoints = false, true })
	r.pass(200 * time.Millisecond)
	r.mu.Lock()
	n := r.count
	r.mu.Unlock()
	r.pass(time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count != n {
		t.Errorf("%d joint states came", r.count-n)
	}
}

// Another client has the body server: goals are taken, nothing moves, nothing is said.
func TestStretchOtherHolder(t *testing.T) {
	r := onTheWire(t, GenerationA, StretchFaults{Holder: "teleop_laptop"})
	said := make(chan string, 100)
	_, err := ros.Subscribe(r.node, "/server_lease_holder", ros.SensorData(), func(m *diagnostic_msgs.DiagnosticStatus, _ ros.Info) {
		select {
		case said <- m.Values[0].Value:
		default:
		}
	})
	must(t, err)
	at := r.joint("lift_joint")
	r.do("lift_joint", at-0.1).want(t, ros.GoalAborted, -4)
	if q := r.joint("lift_joint"); !near(q, at, 0.002) {
		t.Errorf("the lift went to %v", q)
	}
	select {
	case who := <-said:
		if who != "teleop_laptop" {
			t.Errorf("the holder is %q", who)
		}
	case <-r.ctx.Done():
		t.Error("nobody says who")
	}
}

// A gamepad has it: neither goals nor velocities are taken.
func TestStretchTeleop(t *testing.T) {
	all(t, StretchFaults{Mode: "teleop"}, func(t *testing.T, r *rig, _ Generation) {
		if _, err := r.send([]string{"lift_joint"}, pt(0, 0.5)); err == nil {
			t.Error("a goal was taken")
		}
		r.twist(0.2, 0, 0)
		r.pass(time.Second)
		if x, _, _ := r.base(); math.Abs(x) > 0.002 {
			t.Errorf("the base went to %v", x)
		}
	})
}

// What a client finds: state for late comers, parameters, diagnostics, odometry as a transform where it is asked for.
func TestStretchFace(t *testing.T) {
	has := map[Generation]string{GenerationA: "action_timeout", GenerationAPrime: "joint_velocity.lift", GenerationB: "joint_limit.lift_joint.upper"}
	all(t, StretchFaults{}, func(t *testing.T, r *rig, gen Generation) {
		if r.word("tool") != toolParallel || r.word("robot_description") != "<robot/>" {
			t.Errorf("%s, %s", r.word("tool"), r.word("robot_description"))
		}
		c, err := ros.NewParamClient(r.node, "/stretch_driver")
		must(t, err)
		defer func() { _ = c.Close() }()
		if _, err := c.Get(r.ctx, "mode", has[gen]); err != nil {
			t.Error(err)
		}
		diag, tf := make(chan int, 1), make(chan string, 1)
		_, err = ros.Subscribe(r.node, "/joint_states_diagnostics", ros.SensorData(), func(m *diagnostic_msgs.DiagnosticArray, _ ros.Info) {
			select {
			case diag <- len(m.Status):
			default:
			}
		})
		must(t, err)
		_, err = ros.Subscribe(r.node, "/tf", ros.SensorData(), func(m *tf2_msgs.TFMessage, _ ros.Info) {
			select {
			case tf <- m.Transforms[0].Header.FrameId + " " + m.Transforms[0].ChildFrameId:
			default:
			}
		})
		must(t, err)
		must(t, c.Set(r.ctx, ros.P("broadcast_odom_tf", true)))
		select {
		case n := <-diag:
			if n != 5 {
				t.Errorf("diagnostics of %d joints", n)
			}
		case <-r.ctx.Done():
			t.Fatal("no diagnostics")
		}
		select {
		case s := <-tf:
			if s != "wheel_odom base_footprint" {
				t.Error(s)
			}
		case <-r.ctx.Done():
			t.Fatal("no tf")
		}
		r.do("lift_joint", r.joint("lift_joint")-0.1).want(t, ros.GoalSucceeded, 0)
		must(t, r.twin.Reset(r.ctx, 2)) // the boards begin anew where the twin is now
		r.pass(time.Second)
		if v := r.twin.Truth().MaxSpeed; v["lift_joint"] > 0.02 || v["base_x"] > 0.02 {
			t.Errorf("it moves after a reset: %v", v)
		}
	})
}
