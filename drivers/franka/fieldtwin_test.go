package franka

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"viad/drivers/robot"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/trajectory_msgs"
	"viad/sim/wire"
)

// The same rows as in field_test.go, against the twin on the wire: what it does with them was written from what is known
// of the robot, by nobody who had this driver before him.

func (b *twinned) fault(f func(*wire.Faults)) { b.wire.Set(f) }

// stays looks whether the machine itself rests where it is, for a second.
func (b *twinned) stays(why string) {
	b.t.Helper()
	was := slices.Clone(b.twin.Truth().Q)
	<-b.clock.After(time.Second)
	if name, off := b.furthest(b.twin.Truth().Q, was); off > 0.002 {
		b.t.Errorf("%s: %s moved by %.4f rad", why, name, off)
	}
}

func TestField21TwinDiscontinuity(t *testing.T) {
	b := fr3Twin(t, wire.Faults{}, nil)
	// What this driver sends breaks none of the control box's rules, also when one goal replaces another.
	if err := b.Follow(t.Context(), b.swing(0.3, 2*time.Second)); err != nil {
		t.Fatal(err)
	}
	b.fault(func(f *wire.Faults) { f.LostPackets = true })
	b.refused(b.Follow(t.Context(), b.swing(-0.3, 2*time.Second)), "discontinuity", "network")
	b.fault(func(f *wire.Faults) { f.LostPackets = false })
	b.says(robot.ModeFaulted, "reflex", taskRecover)
	if err := b.Do(t.Context(), taskRecover); err != nil {
		t.Fatal(err)
	}
	b.ready()
	// Others' unsmoothed commands: points without speeds are followed in straight lines, which start with a jump.
	g := &control_msgs.FollowJointTrajectory_Goal{Trajectory: trajectory_msgs.JointTrajectory{JointNames: b.names.joints}}
	p := trajectory_msgs.JointTrajectoryPoint{Positions: slices.Clone(b.State().Q), TimeFromStart: wireDuration(1)}
	p.Positions[6] += 0.2
	g.Trajectory.Points = append(g.Trajectory.Points, p)
	if _, err := b.trajectory.Send(t.Context(), g, nil); err != nil {
		t.Fatal(err)
	}
	b.says(robot.ModeFaulted, "velocity discontinuity")
}

func TestField22TwinDeadController(t *testing.T) {
	b := fr3Twin(t, wire.Faults{}, nil)
	done := b.follow(b.swing(0.4, 4*time.Second))
	b.moves()
	b.fault(func(f *wire.Faults) { f.DeadController = true })
	err := <-done
	var c *Condition
	if !errors.As(err, &c) || c.Trouble != TroubleUnknown && c.Trouble != TroubleDead {
		t.Errorf("the motion ended with %v", err)
	}
	// The merged joints go on with old numbers and new stamps: they are not taken for the arm's.
	b.says(robot.ModeUnknown, "bring-up", "restart it by hand")
	b.fault(func(f *wire.Faults) { f.DeadController = false })
	b.ready()
	b.stays("after its controller came back the arm is not to move by itself")
	if err := b.Follow(t.Context(), b.swing(-0.1, time.Second)); err != nil {
		t.Error(err)
	}
}

func TestField23TwinSuccessRate(t *testing.T) {
	b := fr3Twin(t, wire.Faults{}, nil)
	b.fault(func(f *wire.Faults) { f.LossyNetwork = true })
	b.says(robot.ModeFaulted, "43 %", "real-time kernel", "network")
}

// Recover, fault, recover: one attempt, then it is a person's.
func TestField24TwinEndlessRecovery(t *testing.T) {
	if testing.Short() {
		t.Skip("eight seconds; the double's runs")
	}
	b := fr3Twin(t, wire.Faults{}, func(c *Config) { c.AutoRecover = true })
	b.fault(func(f *wire.Faults) { f.LossyNetwork = true })
	reflexes := func() int {
		_, _, s := b.snapshot()
		return len(s.reflexes)
	}
	b.eventually("it has recovered once and failed again", func() bool { return reflexes() == 2 })
	<-b.clock.After(3 * time.Second)
	if n := reflexes(); n != 2 {
		t.Errorf("%d reflexes: it went on recovering", n)
	}
	b.says(robot.ModeFaulted, "network", "task recover")
}

func TestField25TwinEarlyRecovery(t *testing.T) {
	b := fr3Twin(t, wire.Faults{EarlyRecovery: true}, nil)
	b.refused(b.Do(t.Context(), taskRecover), "nothing to recover from")
	b.fault(func(f *wire.Faults) { f.LostPackets = true })
	b.refused(b.Follow(t.Context(), b.swing(0.3, 2*time.Second)), "discontinuity")
	<-b.clock.After(1500 * time.Millisecond)
	b.says(robot.ModeFaulted, "reflex") // and nothing has cleared it
}

func TestField26TwinRecoveryIsSlow(t *testing.T) {
	b := fr3Twin(t, wire.Faults{Recovery: 3 * time.Second}, nil)
	b.fault(func(f *wire.Faults) { f.UserStop = true })
	b.says(robot.ModeRunstopped, "user stop")
	b.fault(func(f *wire.Faults) { f.UserStop = false })
	began := b.clock.Now()
	if err := b.Do(t.Context(), taskRecover); err != nil {
		t.Fatal(err)
	}
	if d := b.clock.Now().Sub(began); d < 3*time.Second {
		t.Errorf("recovered after %v, before the robot had", d)
	}
	b.ready()
}

// A user stop was released: mode and flags look healthy, and the robot does not move.
func TestField26TwinHealthyAfterUserStop(t *testing.T) {
	b := fr3Twin(t, wire.Faults{HealthyStop: true}, nil)
	b.fault(func(f *wire.Faults) { f.UserStop = true })
	b.says(robot.ModeRunstopped, "user stop")
	b.fault(func(f *wire.Faults) { f.UserStop = false })
	b.says(robot.ModeFaulted, "looks healthy and does not move", taskRecover, "bring-up")
	b.refused(b.Follow(t.Context(), b.swing(0.1, time.Second)), "idle")
	if err := b.Do(t.Context(), taskRecover); err != nil {
		t.Fatal(err)
	}
	b.ready()
	if err := b.Follow(t.Context(), b.swing(0.1, time.Second)); err != nil {
		t.Error(err)
	}
}

func TestField26TwinReflexToldLate(t *testing.T) {
	b := fr3Twin(t, wire.Faults{LateReflex: true, LostPackets: true}, nil)
	err := b.Follow(t.Context(), b.swing(0.3, 2*time.Second))
	if err == nil {
		t.Error("a motion that the robot gave up counts as followed")
	}
	b.says(robot.ModeFaulted, "reflex", "discontinuity")
}

// Flags read clean while the reflex is latched, and three reflexes within a minute lock recovery out.
func TestField27TwinReflexes(t *testing.T) {
	b := fr3Twin(t, wire.Faults{LostPackets: true}, nil)
	for i := range lockOut {
		b.refused(b.Follow(t.Context(), b.swing(0.2, 2*time.Second)), "reflex")
		b.eventually("the flags are clean", func() bool {
			_, _, s := b.snapshot()
			return s.mode == modeReflex && len(s.current) == 0 && len(s.last) == 1
		})
		err := b.Do(t.Context(), taskRecover)
		if i == lockOut-1 {
			b.refused(err, "3 reflexes within a minute")
		} else if err != nil {
			t.Fatal(err)
		} else {
			b.ready()
		}
	}
}

func TestField28TwinNoReplay(t *testing.T) {
	b := fr3Twin(t, wire.Faults{LostPackets: true}, nil)
	b.refused(b.Follow(t.Context(), b.swing(0.4, 3*time.Second)), "reflex")
	b.fault(func(f *wire.Faults) { f.LostPackets = false })
	b.says(robot.ModeFaulted, "reflex", taskRecover)
	if err := b.Do(t.Context(), taskRecover); err != nil {
		t.Fatal(err)
	}
	b.ready()
	b.stays("after a recovery the motion is not to go on")
}

func TestField29TwinNotStarted(t *testing.T) {
	b := fr3Twin(t, wire.Faults{}, nil)
	b.fault(func(f *wire.Faults) { f.NotStarted = true })
	b.says(robot.ModeFaulted, "says that it is active", "did not start")
	b.refused(b.Follow(t.Context(), b.swing(0.1, time.Second)), "idle")
}

func TestField30TwinModes(t *testing.T) {
	b := fr3Twin(t, wire.Faults{}, nil)
	b.fault(func(f *wire.Faults) { f.Guiding = true })
	b.says(robot.ModeFaulted, "guides the arm by hand")
	b.fault(func(f *wire.Faults) { f.Guiding, f.Locked = false, true })
	b.says(robot.ModeFaulted, "brakes", "FCI")
	b.fault(func(f *wire.Faults) { f.Locked = false })
	b.says(robot.ModeFaulted, "the robot is idle", taskActivate)
	if err := b.Do(t.Context(), taskActivate); err != nil {
		t.Fatal(err)
	}
	b.ready()
}

// An activation would clear a reflex without a look: the driver does not ask for it.
func TestField30TwinActivateInReflex(t *testing.T) {
	b := fr3Twin(t, wire.Faults{LostPackets: true}, nil)
	b.refused(b.Follow(t.Context(), b.swing(0.2, 2*time.Second)), "reflex")
	b.says(robot.ModeFaulted, "reflex")
	b.refused(b.Do(t.Context(), taskActivate), "reflex", taskRecover)
	b.says(robot.ModeFaulted, "reflex")
}

func TestField33TwinHandStuck(t *testing.T) {
	b := fr3Twin(t, wire.Faults{StuckHand: true}, nil)
	began := b.clock.Now()
	b.refused(b.Grip(t.Context(), robot.JawTarget{}), "did not end", "stopped")
	if d := b.clock.Now().Sub(began); d > 8*time.Second {
		t.Errorf("it took %v", d)
	}
	b.fault(func(f *wire.Faults) { f.StuckHand = false })
	if err := b.Grip(t.Context(), robot.JawTarget{Open: true}); err != nil { // its stop has freed the hand
		t.Error(err)
	}
}

func TestField34TwinHandNotConnected(t *testing.T) {
	b := fr3Twin(t, wire.Faults{HandLost: true}, nil)
	for _, open := range []bool{false, true} {
		if err := b.Grip(t.Context(), robot.JawTarget{Open: open}); err != nil {
			t.Errorf("open %v: the hand moved and said failure: %v", open, err)
		}
		if a := b.twin.Truth().Aperture; (a > 0.07) != open {
			t.Errorf("open %v: the fingers are %.4f m apart", open, a)
		}
	}
}

func TestField37TwinClock(t *testing.T) {
	b := fr3Twin(t, wire.Faults{SlowClock: true}, nil)
	if f := b.fact(factClock); f.Bad != "" || !strings.Contains(f.Value, "chrony") {
		t.Errorf("the fact is %+v", f)
	}
	if err := b.Follow(t.Context(), b.swing(0.1, time.Second)); err != nil {
		t.Error(err)
	}
}

// A reflex of contact, by the thresholds of collisions: the hand is driven onto the table.
func TestField27TwinContact(t *testing.T) {
	b := fr3Twin(t, wire.Faults{}, nil)
	tr := b.swing(0, 5*time.Second)
	for i := range tr.Points { // the shoulder leans ahead and down, the elbow and the wrist open
		x := float64(i) / float64(len(tr.Points)-1)
		for j, by := range map[int]float64{1: 1.6, 3: 0.3, 5: 0.6} {
			tr.Points[i].Q[j] += by * x * x * x * (10 - 15*x + 6*x*x)
			tr.Points[i].QD[j] = by * 30 * x * x * (1 - 2*x + x*x) / 5
		}
	}
	err := b.Follow(t.Context(), tr)
	b.refused(err, "reflex")
	b.says(robot.ModeFaulted, "reflex", taskRecover)
	if !strings.Contains(b.State().Fault, "cartesian reflex") && !strings.Contains(b.State().Fault, "joint reflex") {
		t.Errorf("the fault is %q", b.State().Fault)
	}
}

// The Panda on ROS 1: its controllers run on through a reflex, its hand's stop is an action, its recovery brings all back.
func TestField27TwinPanda(t *testing.T) {
	if testing.Short() {
		t.Skip("ten seconds; the double's runs")
	}
	addr, _ := core(t)
	b := onTwin(t, Panda, node1(t, addr, "/franka"), node1(t, addr, "/viad"), wire.Faults{LostPackets: true}, nil)
	b.refused(b.Follow(t.Context(), b.swing(0.2, 2*time.Second)), "reflex", "discontinuity")
	b.fault(func(f *wire.Faults) { f.LostPackets = false })
	b.says(robot.ModeFaulted, "reflex", taskRecover)
	if err := b.Do(t.Context(), taskRecover); err != nil {
		t.Fatal(err)
	}
	b.ready()
	b.stays("after a recovery")
	if err := b.Follow(t.Context(), b.swing(0.2, time.Second)); err != nil {
		t.Error(err)
	}
	b.fault(func(f *wire.Faults) { f.StuckHand = true })
	b.refused(b.Grip(t.Context(), robot.JawTarget{}), "did not end", "stopped")
	b.fault(func(f *wire.Faults) { f.StuckHand = false })
	done := b.follow(b.swing(-0.4, 4*time.Second))
	b.moves()
	b.fault(func(f *wire.Faults) { f.DeadController = true })
	if err := <-done; err == nil {
		t.Error("a motion of a dead controller was followed")
	}
	b.says(robot.ModeUnknown, "restart it by hand")
	b.fault(func(f *wire.Faults) { f.DeadController = false })
	b.ready()
}
