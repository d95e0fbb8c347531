package stretch

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// The tests of this file are named after the rows of the table of what goes wrong in the field: docs/field-faults.md.

func (b *bench) fact(name string) robot.Fact {
	for _, f := range b.Facts() {
		if f.Name == name {
			return f
		}
	}
	return robot.Fact{}
}

// follow begins a motion and returns when it moves.
func (b *bench) follow(p robot.Trajectory) <-chan error {
	b.t.Helper()
	done := make(chan error, 1)
	go func() { done <- b.Follow(context.Background(), p) }()
	b.wait("moving", func(s robot.State) bool {
		select {
		case err := <-done:
			b.t.Fatalf("the motion ended before it began: %v", err)
		default:
		}
		v := math.Max(s.BaseV.Norm(), math.Abs(s.BaseV.Yaw))
		for _, q := range s.QD {
			v = math.Max(v, math.Abs(q))
		}
		return v > 0.02
	})
	return done
}

func (b *bench) ends(done <-chan error) error {
	b.t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		b.t.Fatal("it does not end")
		return nil
	}
}

// rests waits until the double, and not its readings, stands still, and says how long that took.
func (b *bench) rests(most time.Duration) {
	b.t.Helper()
	began := time.Now()
	still := func() bool {
		s := b.machine()
		for _, v := range s.QD {
			if math.Abs(v) > 0.005 {
				return false
			}
		}
		return s.BaseV.Norm() < 0.003 && math.Abs(s.BaseV.Yaw) < 0.005
	}
	if !b.until(context.Background(), most, func() bool { return still() }) {
		b.t.Fatalf("still moving after %v: %+v", time.Since(began), b.machine())
	}
}

// A cancel that is taken and ignored: the driver measures that the arm goes on, and stops it another way.
func TestField01CancelIgnored(t *testing.T) {
	t.Parallel()
	b := start(t, GenA, with(func(d *double) { d.f.ignoreCancel = true }))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	p := b.plan(4*time.Second, geom.SE2{}, 0.4)
	go func() { done <- b.Follow(ctx, p) }()
	b.wait("moving", func(s robot.State) bool { return math.Abs(s.QD[0]) > 0.1 })
	cancel()
	if err := b.ends(done); err == nil {
		t.Error("a motion that was ended says that it arrived")
	}
	b.rests(1500 * time.Millisecond)
	if n := get(b.d, func(d *double) int { return d.stops }); n == 0 {
		t.Error("the stop service was not asked for")
	}
}

// A stop that neither cancel nor the stop service brings about says so, so that the ladder goes on to the runstop.
func TestField01LadderGoesOn(t *testing.T) {
	t.Parallel()
	b := start(t, GenB, with(func(d *double) { d.f.ignoreCancel, d.f.stopDeaf = true, true }))
	done := b.follow(b.plan(4*time.Second, geom.SE2{}, 0.3))
	_ = b.Halt(context.Background(), robot.RungCancel)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	b.d.set(func(d *double) { d.j[0].v, d.j[0].target, d.j[0].acc = 0.1, 1, 0.001; clear(d.track) })
	if err := b.Halt(ctx, robot.RungHold); err == nil {
		t.Error("a hold that did nothing says that it held")
	}
	_ = b.ends(done)
	if err := b.Halt(context.Background(), robot.RungPower); err != nil {
		t.Error(err)
	}
	b.wait("runstopped", func(s robot.State) bool { return s.Mode == robot.ModeRunstopped })
}

// On a stop a loaded wrist is not let go: nothing cuts its torque below the last rung, and the arm stays where it was.
func TestField02WristStays(t *testing.T) {
	t.Parallel()
	b := start(t, GenA)
	done := b.follow(b.plan(3*time.Second, geom.SE2{}, 0, 0, 0, 0.8))
	if err := b.Halt(context.Background(), robot.RungHold); err != nil {
		t.Error(err)
	}
	if err := b.ends(done); !errors.Is(err, ErrHalted) {
		t.Errorf("the motion ends with %v", err)
	}
	b.rests(time.Second)
	if get(b.d, func(d *double) bool { return d.runstopped }) {
		t.Error("a hold engaged the runstop")
	}
}

// "Succeeded" is no evidence: with goals that end at once the joints decide.
func TestField03SucceededTooSoon(t *testing.T) {
	t.Parallel()
	b := start(t, GenA, with(func(d *double) { d.f.lie = true }))
	err := b.Follow(context.Background(), b.plan(time.Second, geom.SE2{}, 0.2))
	if err == nil || !strings.Contains(err.Error(), "lift_joint") {
		t.Errorf("an arm that did not move ends with %v", err)
	}
}

// A goal that times out though the joint is there ends nothing, and a joint that is there is not made a goal.
func TestField03TimesOutThere(t *testing.T) {
	t.Parallel()
	b := start(t, GenA)
	if err := b.Follow(context.Background(), b.plan(500*time.Millisecond, geom.SE2{})); err != nil {
		t.Errorf("a motion of no length: %v", err)
	}
	if n := get(b.d, func(d *double) int { return len(d.goals) }); n != 0 {
		t.Errorf("%d goals for a motion of no length", n)
	}
	p := b.plan(time.Second, geom.SE2{}, 0, 0, 0.3)
	if err := b.Follow(context.Background(), p); err != nil {
		t.Error(err)
	}
	b.arrived(p)
	for _, g := range get(b.d, func(d *double) []string {
		var names []string
		for _, g := range d.goals {
			names = append(names, g.Trajectory.JointNames...)
		}
		return names
	}) {
		if g != "wrist_yaw_joint" {
			t.Errorf("%s was a goal and has no way to go", g)
		}
	}
}

// The gripper's own end test misses: the aperture decides, and it is tried once more when nothing moved.
func TestField04Grip(t *testing.T) {
	t.Parallel()
	generations(t, func(t *testing.T, g Generation) {
		for _, tool := range []string{toolPG4, toolSG4} {
			t.Run(tool, func(t *testing.T) {
				b := start(t, g, with(func(d *double) { d.tool = toolNames[tool] }))
				for _, open := range []bool{false, true} {
					if err := b.Grip(context.Background(), robot.JawTarget{Open: open}); err != nil {
						t.Fatalf("open %v: %v", open, err)
					}
					want := 0.0
					if open {
						want = b.Model().Jaw.Max
					}
					if a := get(b.d, func(d *double) float64 { return d.jaw.q }); math.Abs(a-want) > 0.003 {
						t.Errorf("open %v: the jaw is at %v, want %v", open, a, want)
					}
				}
				b.d.set(func(d *double) { d.object = 0.03 })
				if err := b.Grip(context.Background(), robot.JawTarget{}); err != nil {
					t.Fatal(err)
				}
				if j := b.State().Jaw; !j.Holding || math.Abs(j.Aperture-0.03) > 0.002 || j.Open {
					t.Errorf("closed on 30 mm the jaw is %+v", j)
				}
			})
		}
	})
}

// A jaw that does not move at all is asked twice, and then it is said.
func TestField04JawStuck(t *testing.T) {
	t.Parallel()
	b := start(t, GenA, with(func(d *double) { d.jaw.stuck = true }))
	if err := b.Grip(context.Background(), robot.JawTarget{}); err == nil || !strings.Contains(err.Error(), "did not move") {
		t.Errorf("a stuck jaw ends with %v", err)
	}
	if n := get(b.d, func(d *double) int { return len(d.goals) }); n != 2 {
		t.Errorf("it was asked %d times, want 2", n)
	}
}

// The base was driven by velocities in a mode that leaves the server refusing everything: the mode is read, set and
// verified before each motion.
func TestField05WrongMode(t *testing.T) {
	t.Parallel()
	b := start(t, GenA, with(func(d *double) { d.mode = modeVelocity }))
	p := b.plan(1500*time.Millisecond, geom.SE2{}, 0.05)
	if err := b.Follow(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	b.arrived(p)
	b = start(t, GenB) // every joint is left in velocity mode there
	p = b.plan(1500*time.Millisecond, geom.SE2{}, 0.05, 0, 0.2)
	if err := b.Follow(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	b.arrived(p)
	for _, j := range b.Model().Joints {
		if m := get(b.d, func(d *double) string { return d.jointModes["joint_mode."+j.Name] }); m != modePosition {
			t.Errorf("%s is in mode %q", j.Name, m)
		}
	}
	if v, _ := b.d.params.Get("trajectory_server.mode"); v.Value.StringValue != timePriority {
		t.Errorf("the trajectory server is in mode %q", v.Value.StringValue)
	}
	b = start(t, GenA, with(func(d *double) { d.f.positionOnly = true }))
	p = b.plan(1500*time.Millisecond, geom.SE2{}, 0.05)
	if err := b.Follow(context.Background(), p); err != nil {
		t.Fatalf("a driver that takes goals in mode position alone: %v", err)
	}
	b.arrived(p)
}

// Topics alive and services dead is a fault of its own.
func TestField06ServicesDead(t *testing.T) {
	t.Parallel()
	b := begin(t, GenA, with(func(d *double) { d.f.deafParams = true }))
	b.blocked("services are not")
}

// The robot's state rests while it homes: that is no loss, and no leave to move; it has an end.
func TestField07HomingIsQuiet(t *testing.T) {
	t.Parallel()
	b := start(t, GenA, with(func(d *double) { d.homed, d.f.homeTime = true, 2500*time.Millisecond }))
	done := make(chan error, 1)
	go func() { done <- b.Do(context.Background(), "home") }()
	b.wait("homing", func(s robot.State) bool { return strings.Contains(s.Fault, modeHoming) && s.Mode != robot.ModeReady })
	b.d.set(func(d *double) { d.f.silent = true })
	if b.until(context.Background(), 1500*time.Millisecond, func() bool { return !b.isKnown() }) {
		t.Error("a quiet robot that homes counts as lost")
	}
	if err := b.Follow(context.Background(), b.plan(time.Second, geom.SE2{}, 0.02)); err == nil {
		t.Error("it follows while it homes")
	}
	b.d.set(func(d *double) { d.f.silent = false })
	if err := b.ends(done); err != nil {
		t.Error(err)
	}
	b.wait("ready", func(s robot.State) bool { return s.Mode == robot.ModeReady })
	b.mu.Lock()
	b.status.mode.v, b.status.mode.at = modeHoming, time.Now().Add(-homingMost-time.Second)
	mode, fault := b.mode(time.Now())
	b.status.mode.v = modeNavigation
	b.mu.Unlock()
	if mode != robot.ModeFaulted || !strings.Contains(fault, "more than 1m30s") {
		t.Errorf("after 90 s of homing: %v, %q", mode, fault)
	}
}

// Nothing that is sent has a stamp, whatever the clocks say.
func TestField08NoStamps(t *testing.T) {
	t.Parallel()
	b := start(t, GenB, with(func(d *double) { d.f.skew = -3 * time.Second }))
	if err := b.Follow(context.Background(), b.plan(time.Second, geom.SE2{}, 0.03)); err != nil {
		t.Fatal(err)
	}
	for _, g := range get(b.d, func(d *double) []int32 {
		var s []int32
		for _, g := range d.goals {
			s = append(s, g.Trajectory.Header.Stamp.Sec)
		}
		return s
	}) {
		if g != 0 {
			t.Errorf("a goal has the stamp %d", g)
		}
	}
}

// A runstop in the middle of a motion ends it with words, though the robot's driver may say that it succeeded.
func TestField09RunstopMidGoal(t *testing.T) {
	t.Parallel()
	generations(t, func(t *testing.T, g Generation) {
		b := start(t, g)
		done := b.follow(b.plan(4*time.Second, geom.SE2{X: 0.3}, 0.3))
		b.d.set(func(d *double) { d.setRunstop(true) })
		if err := b.ends(done); err == nil || !strings.Contains(err.Error(), "runstop") {
			t.Errorf("it ends with %v", err)
		}
		b.blocked("runstop")
		if s := b.State(); s.Mode != robot.ModeRunstopped {
			t.Errorf("the mode is %v", s.Mode)
		}
		if err := b.Do(context.Background(), "home"); err == nil {
			t.Error("it homes under runstop")
		}
		if err := b.Do(context.Background(), "release"); err != nil {
			t.Error(err)
		}
		b.wait("ready", func(s robot.State) bool { return s.Mode == robot.ModeReady })
	})
}

// A runstop while it homes leaves ends that are none: it must home again.
func TestField09RunstopWhileHoming(t *testing.T) {
	t.Parallel()
	b := start(t, GenA, with(func(d *double) { d.f.homeTime = time.Second }))
	done := make(chan error, 1)
	go func() { done <- b.Do(context.Background(), "home") }()
	b.wait("homing", func(s robot.State) bool { return strings.Contains(s.Fault, modeHoming) })
	b.d.set(func(d *double) { d.setRunstop(true) })
	b.wait("runstopped", func(s robot.State) bool { return s.Mode == robot.ModeRunstopped })
	if err := b.ends(done); err == nil {
		t.Error("homing under runstop succeeds")
	}
	if err := b.Do(context.Background(), "release"); err != nil {
		t.Fatal(err)
	}
	b.blocked("home again")
	if err := b.Do(context.Background(), "home"); err != nil {
		t.Fatal(err)
	}
	b.wait("ready", func(s robot.State) bool { return s.Mode == robot.ModeReady })
}

// A runstop that is pressed and released by hand while the robot homes is not forgotten because the driver says success.
func TestField09RunstopWhileHomingReleased(t *testing.T) {
	t.Parallel()
	b := start(t, GenA, with(func(d *double) { d.f.homeTime = 2 * time.Second }))
	done := make(chan error, 1)
	go func() { done <- b.Do(context.Background(), "home") }()
	b.wait("homing", func(s robot.State) bool { return strings.Contains(s.Fault, modeHoming) })
	b.d.set(func(d *double) { d.setRunstop(true) })
	b.wait("runstopped", func(s robot.State) bool { return s.Mode == robot.ModeRunstopped })
	b.d.set(func(d *double) { d.setRunstop(false) })
	if err := b.ends(done); err == nil || !strings.Contains(err.Error(), "home again") {
		t.Errorf("homing with a runstop in it ends with %v", err)
	}
	b.blocked("home again")
	b.d.set(func(d *double) { d.f.homeTime = 200 * time.Millisecond })
	if err := b.Do(context.Background(), "home"); err != nil {
		t.Fatal(err)
	}
	b.wait("ready", func(s robot.State) bool { return s.Mode == robot.ModeReady })
}

// A robot that somebody drives by hand is left to them.
func TestField10Gamepad(t *testing.T) {
	t.Parallel()
	b := begin(t, GenA, with(func(d *double) { d.mode = modeTeleop }))
	b.blocked("somebody drives it by hand")
	if m := get(b.d, func(d *double) string { return d.mode }); m != modeTeleop {
		t.Errorf("the mode was taken away: %s", m)
	}
	if err := b.Do(context.Background(), "home"); err == nil {
		t.Error("it homes under somebody's hands")
	}
}

// A joint whose servo was lost is missing, or reads the same for ever: neither is followed.
func TestField11LostServo(t *testing.T) {
	t.Parallel()
	b := start(t, GenA)
	b.d.set(func(d *double) { d.f.partial = true })
	b.wait("without joints", func(s robot.State) bool { return s.Q == nil && s.Mode == robot.ModeFaulted })
	b.d.set(func(d *double) { d.f.partial = false })
	b.wait("ready", func(s robot.State) bool { return s.Mode == robot.ModeReady })
	b.d.set(func(d *double) { d.f.nan = true })
	b.wait("without joints", func(s robot.State) bool { return s.Q == nil })
	b.d.set(func(d *double) { d.f.nan = false })
	b.wait("ready", func(s robot.State) bool { return s.Mode == robot.ModeReady })
	b.d.set(func(d *double) { d.j[2].stuck = true })
	err := b.Follow(context.Background(), b.plan(2*time.Second, geom.SE2{}, 0.1, 0, 0.8))
	if err == nil || !strings.Contains(err.Error(), "wrist_yaw_joint reads") {
		t.Errorf("a joint that keeps its number ends with %v", err)
	}
}

// The port, or the body server, is somebody else's: that one is named, and nothing is taken from it.
func TestField16LeaseHolder(t *testing.T) {
	t.Parallel()
	b := begin(t, GenA, with(func(d *double) { d.holder = "jupyter_notebook" }))
	b.blocked("jupyter_notebook holds the robot's body server")
}

// Homing is a task for an operator, and an unhomed robot does not move.
func TestField17HomingByOperator(t *testing.T) {
	t.Parallel()
	b := begin(t, GenA, with(func(d *double) { d.homed = false }))
	b.blocked("not homed")
	if err := b.Do(context.Background(), "home"); err != nil {
		t.Fatal(err)
	}
	b.wait("ready", func(s robot.State) bool { return s.Mode == robot.ModeReady })
	if err := b.Do(context.Background(), "stow"); err != nil {
		t.Error(err)
	}
	if err := b.Do(context.Background(), "dance"); err == nil {
		t.Error("it dances")
	}
}

// Commands do not wait behind a slow link: readings that stop end a motion.
func TestField18OldReadings(t *testing.T) {
	t.Parallel()
	b := start(t, GenA)
	done := b.follow(b.plan(4*time.Second, geom.SE2{X: 0.3}, 0.3))
	b.d.set(func(d *double) { d.f.silent = true })
	if err := b.ends(done); err == nil || !strings.Contains(err.Error(), "ms") {
		t.Errorf("it ends with %v", err)
	}
	b.rests(2 * time.Second)
}

// A lift that is pushed by hand under runstop is no runaway and no other program.
func TestField20PushedUnderRunstop(t *testing.T) {
	t.Parallel()
	b := start(t, GenA)
	b.d.set(func(d *double) { d.setRunstop(true) })
	b.wait("runstopped", func(s robot.State) bool { return s.Mode == robot.ModeRunstopped })
	b.until(context.Background(), ownAfter/2, func() bool {
		b.d.set(func(d *double) { d.j[0].q += 0.002; d.j[0].v = 0.1; d.j[0].target = d.j[0].q })
		return false
	})
	if f := b.fact("commander"); f.Bad != "" {
		t.Errorf("it is taken for another program: %q", f.Bad)
	}
	b.d.set(func(d *double) { d.setRunstop(false) })
	b.wait("ready", func(s robot.State) bool { return s.Mode == robot.ModeReady })
}

// A topic that exists and says nothing is named, with its publisher's QoS.
func TestField35SilentTopic(t *testing.T) {
	t.Parallel()
	b := begin(t, GenA, with(func(d *double) { d.f.silent = true }))
	b.blocked("/joint_states has a publisher (reliable true, transient local false) and nothing comes")
}

// Clocks that differ are said, and bar nothing, since nothing that is sent has a stamp.
func TestField38ClockSkew(t *testing.T) {
	t.Parallel()
	b := start(t, GenA, with(func(d *double) { d.f.skew = -300 * time.Millisecond }))
	b.wait("with an offset", func(robot.State) bool { return strings.Contains(b.fact("clock offset").Value, "chrony") })
	if s := b.State(); s.Mode != robot.ModeReady {
		t.Errorf("it is %v: %s", s.Mode, s.Fault)
	}
}

// Names visible and no data: the age of the readings decides, not the link; and when they are back the robot is looked
// at anew.
func TestField42SilentLink(t *testing.T) {
	t.Parallel()
	b := start(t, GenA)
	b.d.set(func(d *double) { d.f.silent = true })
	b.blocked("")
	if !b.until(context.Background(), patience, func() bool { return !b.isKnown() }) {
		t.Error("a silent robot still counts as known")
	}
	b.d.set(func(d *double) { d.f.silent = false; d.homed = false })
	b.blocked("not homed") // it is another robot, for all we know
	b.d.set(func(d *double) { d.homed = true })
	b.wait("ready", func(s robot.State) bool { return s.Mode == robot.ModeReady })
}
