package franka

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"viad/drivers/robot"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/control_msgs"
)

// The tests of this file are named after the rows of the table of what goes wrong in the field: docs/field-faults.md.

// with sets what the double does from the start.
func with(f func(*double)) option { return func(_ *Config, d *double) { f(d) } }

func (b *bench) fact(name string) robot.Fact {
	for _, f := range b.Facts() {
		if f.Name == name {
			return f
		}
	}
	return robot.Fact{}
}

func goals(d *double) int { return get(d, func(d *double) int { return d.goals }) }

// Unsmoothed commands and lost packets look the same to the arm: what is sent is smooth, and the words name the network.
func TestField21DiscontinuityReflex(t *testing.T) {
	b := start(t)
	tr := b.swing(0.4, 2500*time.Millisecond)
	for i := range tr.Points { // the plan begins 0.03 rad beside the arm
		tr.Points[i].Q[3] += 0.03
	}
	if err := b.Follow(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	g := get(b.d, func(d *double) *control_msgs.FollowJointTrajectory_Goal { return d.lastGoal })
	if len(g.PathTolerance) != 7 || len(g.GoalTolerance) != 7 || g.GoalTimeTolerance == (builtin_interfaces.Duration{}) {
		t.Errorf("tolerances are not set: %v, %v, %v", g.PathTolerance, g.GoalTolerance, g.GoalTimeTolerance)
	}
	was := time.Duration(0)
	for i, p := range g.Trajectory.Points {
		at := time.Duration(p.TimeFromStart.Sec)*time.Second + time.Duration(p.TimeFromStart.Nanosec)
		if at <= was || len(p.Positions) != 7 || len(p.Velocities) != 7 || len(p.Accelerations) != 7 {
			t.Errorf("point %d at %v after %v: %v", i, at, was, p)
		}
		was = at
	}
	if last := g.Trajectory.Points[len(g.Trajectory.Points)-1]; fastest(last.Velocities) != 0 {
		t.Errorf("the last point moves: %v", last.Velocities)
	}
	if a := get(b.d, func(d *double) float64 { return d.aMost }); a > 4 {
		t.Errorf("accelerations up to %.2f rad/s^2, limit 10, want below 4", a)
	}
	if _, c := ofMode(&status{mode: modeReflex, rate: 0.8, last: []string{"joint_motion_generator_velocity_discontinuity"}}, true); c.Trouble != TroubleCommunication || !strings.Contains(c.Error(), "80 % of the commands arrived") {
		t.Errorf("a discontinuity is worded %q", c)
	}
}

// The controller's process dies: the motion ends with "not known", the fault says what to restart, and when it is back
// nothing moves by itself.
func TestField22DeadControllerNode(t *testing.T) {
	at := domain(t)
	there := node(t, "franka_double", at)
	b := beginOn(t, there, node(t, "viad_franka", at), FR3)
	b.ready()
	done := b.follow(b.swing(0.3, 5*time.Second))
	b.moves()
	_ = there.Close()
	err := <-done
	var c *Condition
	if !errors.As(err, &c) || c.Trouble != TroubleUnknown && c.Trouble != TroubleDead {
		t.Errorf("the motion ended with %v", err)
	}
	b.says(robot.ModeUnknown, "bring-up", "restart it by hand")
	back := newDouble(t, node(t, "franka_double", at), FR3, nil)
	b.ready()
	if n := goals(back); n != 0 {
		t.Errorf("%d goals were sent to the new controller by themselves", n)
	}
}

func TestField23SuccessRate(t *testing.T) {
	b := start(t, with(func(d *double) { d.rate = 0.93 }))
	if f := b.fact(factRate); f.Bad != "" || !strings.Contains(f.Value, "below 0.95") {
		t.Errorf("the fact is %+v", f)
	}
	b.d.set(func(d *double) { d.rate = 0.43 })
	b.says(robot.ModeFaulted, "43 %", "real-time kernel")
	b.d.set(func(d *double) { d.rate = 1 })
	b.ready()
}

// One automatic attempt at most, and only where the operator allows it.
func TestField24EndlessRecovery(t *testing.T) {
	b := start(t, func(c *Config, _ *double) { c.AutoRecover = true })
	b.d.reflex(modeReflex, "communication_constraints_violation")
	b.eventually("it recovered once", func() bool { return get(b.d, func(d *double) int { return d.recovers }) == 1 })
	b.ready()
	b.d.reflex(modeReflex, "communication_constraints_violation")
	b.says(robot.ModeFaulted, "network", "task recover")
	<-b.clock.After(2500 * time.Millisecond)
	if n := get(b.d, func(d *double) int { return d.recovers }); n != 1 {
		t.Errorf("%d recoveries", n)
	}
	if err := b.Do(t.Context(), taskRecover); err != nil {
		t.Fatal(err)
	}
	b.d.reflex(modeReflex, "cartesian_reflex") // contact: never by itself
	b.says(robot.ModeFaulted, "reflex")
	<-b.clock.After(1500 * time.Millisecond)
	if n := get(b.d, func(d *double) int { return d.recovers }); n != 2 {
		t.Errorf("%d recoveries, want the one of the operator more", n)
	}
}

func TestField25RecoveryWithoutFault(t *testing.T) {
	b := start(t)
	b.refused(b.Do(t.Context(), taskRecover), "nothing to recover from", "move")
	if n := get(b.d, func(d *double) int { return d.recovers }); n != 0 {
		t.Errorf("%d recoveries were sent", n)
	}
	// A request that is not answered is withdrawn.
	b.d.set(func(d *double) { d.f.slowRecovery = time.Hour })
	b.d.reflex(modeReflex, "cartesian_reflex")
	b.says(robot.ModeFaulted, "reflex")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := b.Do(ctx, taskRecover); err == nil {
		t.Error("a recovery that is not answered succeeded")
	}
	b.d.set(func(d *double) { d.f.slowRecovery = 0 })
	if err := b.Do(t.Context(), taskRecover); err != nil {
		t.Errorf("the next recovery: %v", err)
	}
	b.ready()
}

// After a user stop the state looks healthy and the robot does not move until recovery, which takes its time.
func TestField26RecoveryIsSlow(t *testing.T) {
	b := start(t, with(func(d *double) { d.f.slowRecovery = 1500 * time.Millisecond }))
	b.d.reflex(modeUserStop)
	b.says(robot.ModeRunstopped, "user stop", "task recover")
	if err := b.Follow(t.Context(), b.swing(0.1, time.Second)); err == nil {
		t.Error("a stopped robot followed")
	}
	began, was := b.clock.Now(), goals(b.d)
	if err := b.Do(t.Context(), taskRecover); err != nil {
		t.Fatal(err)
	}
	if d := b.clock.Now().Sub(began); d < 1500*time.Millisecond {
		t.Errorf("recovered after %v, before the robot had", d)
	}
	if hw := get(b.d, func(d *double) []string { return d.hardware }); !slices.Equal(hw, []string{"FrankaHardwareInterface active"}) {
		t.Errorf("hardware: %v", hw)
	}
	if sw := get(b.d, func(d *double) []string { return d.switches }); !slices.Equal(sw, []string{"on fr3_arm_controller"}) {
		t.Errorf("switches: %v", sw)
	}
	if n := goals(b.d) - was; n != 1 {
		t.Errorf("verified by %d motions of no length, want 1", n)
	}
	b.ready()
}

// current_errors reads clean while the reflex is latched: robot_mode counts. Three within a minute lock recovery out.
func TestField27ReflexWithCleanFlags(t *testing.T) {
	b := start(t)
	for i := range lockOut {
		b.d.reflex(modeReflex) // no flags at all
		b.says(robot.ModeFaulted, "reflex")
		err := b.Do(t.Context(), taskRecover)
		if i < lockOut-1 {
			if err != nil {
				t.Fatal(err)
			}
			b.ready()
			continue
		}
		b.refused(err, "3 reflexes within a minute", "reason")
	}
}

func TestField28RecoveryDoesNotReplay(t *testing.T) {
	b := start(t)
	done := b.follow(b.swing(0.4, 4*time.Second))
	b.moves()
	b.d.reflex(modeReflex, "cartesian_reflex")
	b.refused(<-done, "reflex", "cartesian reflex", "plan it anew")
	b.says(robot.ModeFaulted, "reflex")
	at, n := b.d.truth(), goals(b.d)
	if err := b.Do(t.Context(), taskRecover); err != nil {
		t.Fatal(err)
	}
	b.ready()
	<-b.clock.After(time.Second)
	if _, off := b.furthest(b.d.truth().Q, at.Q); off > 1e-3 || goals(b.d) != n+1 {
		t.Errorf("after the recovery the arm moved by %v, with %d goals", off, goals(b.d)-n)
	}
}

func TestField29RunningButNotStarted(t *testing.T) {
	b := begin(t, with(func(d *double) { d.mode = modeIdle }))
	b.says(robot.ModeFaulted, "says that it is active", "did not start")
	if err := b.Follow(t.Context(), robot.Trajectory{}); err == nil || !strings.Contains(err.Error(), "idle") {
		t.Errorf("Follow: %v", err)
	}
}

func TestField30NotPossibleInThisMode(t *testing.T) {
	for mode, want := range map[uint8]struct {
		m     robot.Mode
		words []string
	}{
		modeOther:      {robot.ModeFaulted, []string{"brakes", "FCI", "Desk"}},
		modeIdle:       {robot.ModeFaulted, []string{"idle", "activate"}},
		modeGuiding:    {robot.ModeFaulted, []string{"guiding", "let go"}},
		modeReflex:     {robot.ModeFaulted, []string{"reflex", "recover"}},
		modeUserStop:   {robot.ModeRunstopped, []string{"user stop", "release", "recover"}},
		modeRecovering: {robot.ModeFaulted, []string{"recovers", "wait"}},
		99:             {robot.ModeFaulted, []string{"99", "Desk"}},
	} {
		m, c := ofMode(&status{mode: mode}, false)
		if c == nil || m != want.m {
			t.Errorf("mode %d is %v, %v", mode, m, c)
			continue
		}
		for _, w := range want.words {
			if !strings.Contains(c.Error(), w) {
				t.Errorf("mode %d: %q does not say %q", mode, c, w)
			}
		}
	}
	if m, c := ofMode(&status{mode: modeMove}, true); m != robot.ModeReady || c != nil {
		t.Errorf("move is %v, %v", m, c)
	}
}

func TestField31HandNotHomed(t *testing.T) {
	b := start(t, with(func(d *double) { d.homed = false }))
	if f := b.fact(factHomed); !strings.Contains(f.Value, taskHome) {
		t.Errorf("the fact is %+v", f)
	}
	b.refused(b.Grip(t.Context(), robot.JawTarget{Open: true}), "homed", taskHome)
	if err := b.Do(t.Context(), taskHome); err != nil {
		t.Fatal(err)
	}
	if err := b.Grip(t.Context(), robot.JawTarget{}); err != nil {
		t.Fatal(err)
	}
	if j := b.State().Jaw; j.Aperture > 1e-3 || j.Open || j.Holding {
		t.Errorf("the jaw is %+v", j)
	}
}

func TestField32GraspWindow(t *testing.T) {
	b := start(t, with(func(d *double) { d.object = 0.045 }))
	if err := b.Grip(t.Context(), robot.JawTarget{}); err != nil {
		t.Fatal(err)
	}
	g := get(b.d, func(d *double) float64 { return d.graspGot.Epsilon.Outer })
	if j := b.State().Jaw; !j.Holding || j.Open || math.Abs(j.Aperture-0.045) > 1e-3 || g < 0.08 {
		t.Errorf("the jaw is %+v, epsilon %v", j, g)
	}
	n := get(b.d, func(d *double) int { return d.moves })
	if err := b.Grip(t.Context(), robot.JawTarget{}); err != nil {
		t.Fatal(err)
	}
	if m := get(b.d, func(d *double) int { return d.moves }); m != n {
		t.Errorf("%d commands to a hand that holds something", m-n)
	}
	if err := b.Grip(t.Context(), robot.JawTarget{Open: true}); err != nil {
		t.Fatal(err)
	}
	if j := b.State().Jaw; j.Holding || !j.Open {
		t.Errorf("opened, the jaw is %+v", j)
	}
}

// The hand's call blocks on an obstacle for minutes and ignores a cancel: it is stopped after a time of our own.
func TestField33HandStuck(t *testing.T) {
	b := start(t, with(func(d *double) { d.object, d.f.handHangs = 0.05, true }))
	began := b.clock.Now()
	b.refused(b.Grip(t.Context(), robot.JawTarget{}), "did not end", "stopped")
	if d := b.clock.Now().Sub(began); d > 5*time.Second || get(b.d, func(d *double) int { return d.stops }) != 1 {
		t.Errorf("took %v and %d stops", d, b.d.stops)
	}
	b.ready()
}

// The hand's word may be wrong either way: its width decides.
func TestField34HandsWord(t *testing.T) {
	b := start(t, with(func(d *double) { d.f.handError = true }))
	for _, open := range []bool{false, true} {
		if err := b.Grip(t.Context(), robot.JawTarget{Open: open}); err != nil {
			t.Errorf("open %v: the hand moved and said failure: %v", open, err)
		}
	}
	b.d.set(func(d *double) { d.f = faults{staleHand: true} })
	b.refused(b.Grip(t.Context(), robot.JawTarget{}), "still reads", "old value")
	if j := b.State().Jaw; j.Holding {
		t.Errorf("a stale width is taken for an object: %+v", j)
	}
}

// Clocks that differ are told, and change nothing: no goal has a stamp.
func TestField37ClockSkew(t *testing.T) {
	b := start(t, with(func(d *double) { d.f.skew = -10 * time.Second }))
	if f := b.fact(factClock); f.Bad != "" || !strings.Contains(f.Value, "10000") && !strings.Contains(f.Value, "1000") || !strings.Contains(f.Value, "chrony") {
		t.Errorf("the fact is %+v", f)
	}
	if err := b.Follow(t.Context(), b.swing(0.1, time.Second)); err != nil {
		t.Error(err)
	}
	if get(b.d, func(d *double) bool { return d.stamped }) {
		t.Error("a goal had a stamp")
	}
}

// A controller that ignores cancel: the next rung stops it.
func TestField39CancelIgnored(t *testing.T) {
	b := start(t, with(func(d *double) { d.f.ignoreCancel = true }))
	done := b.follow(b.swing(0.6, 4*time.Second))
	b.moves()
	<-b.clock.After(time.Second)
	if err := b.Halt(t.Context(), robot.RungCancel); err != nil {
		t.Logf("cancel: %v", err)
	}
	if v := fastest(b.d.truth().QD); v < 0.05 {
		t.Fatalf("the double obeyed a cancel (%v rad/s): nothing is shown", v)
	}
	if err := b.Halt(t.Context(), robot.RungHold); err != nil {
		t.Error(err)
	}
	if v := fastest(b.d.truth().QD); v > restSpeed {
		t.Errorf("still moves at %v rad/s", v)
	}
	if err := <-done; !errors.Is(err, ErrHalted) {
		t.Errorf("Follow: %v", err)
	}
}
