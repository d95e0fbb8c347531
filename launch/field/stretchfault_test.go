package field

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/stretch"
	"viad/sim/wire"
)

func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it lives in the wall's time; the driver's own double tries the row")
	}
}

// down is the lift, a third of a metre in four seconds.
func (r *rig) down() robot.Trajectory { return r.plan(4*time.Second, geom.SE2{}, -0.3) }

// Row 1: the arm goes on after a cancel. What it goes on to is half a second away at most, and the ladder ends it.
func TestField01TwinCancelIgnored(t *testing.T) {
	long(t)
	every(t, wire.StretchFaults{IgnoreCancel: true}, func(t *testing.T, r *rig) {
		r.ready()
		done := r.follow(r.down())
		r.moves(0, 0.05)
		at := r.twin.Truth().Q
		for rung := robot.RungZeroVelocity; rung <= robot.RungHold; rung++ {
			if err := r.d.Halt(t.Context(), rung); err != nil {
				t.Logf("%v: %v", rung, err)
			}
		}
		if err := r.ends(done); !errors.Is(err, stretch.ErrHalted) {
			t.Errorf("Follow: %v", err)
		}
		r.rests()
		now := r.twin.Truth().Q
		if d := math.Abs(now[0] - at[0]); d > 0.1 {
			t.Errorf("the lift went on by %.3f m", d)
		}
		for j := 1; j < len(now); j++ { // row 2: the wrist is where it was
			if d := math.Abs(now[j] - at[j]); d > near()[j] {
				t.Errorf("joint %d went by %.4f when the motion was halted", j, d)
			}
		}
		r.stays(time.Second)
	})
}

// Row 9: the runstop in mid-goal, which the robot's driver calls a success.
func TestField09TwinRunstop(t *testing.T) {
	long(t)
	every(t, wire.StretchFaults{SuccessAfterRunstop: true}, func(t *testing.T, r *rig) {
		r.ready()
		p := r.down()
		done := r.follow(p)
		r.moves(0, 0.05)
		r.face.Runstop(true)
		r.cut(r.ends(done), "runstop")
		r.says(robot.ModeRunstopped, "release")
		r.rests()
		stopped := r.twin.Truth()
		if stopped.Q[0]-p.Points[len(p.Points)-1].Q[0] < 0.1 {
			t.Errorf("the lift went on to %.3f", stopped.Q[0])
		}
		r.refuses(r.down, "runstop")
		r.refused(r.d.Do(t.Context(), "home"), "runstop")
		r.stays(500 * time.Millisecond)
		if err := r.d.Do(t.Context(), "release"); err != nil {
			t.Fatal(err)
		}
		r.ready()
		r.stays(time.Second) // nothing is taken up again
		r.goes(func() robot.Trajectory { return r.plan(2*time.Second, geom.SE2{}, 0.05) })
	})
}

// The driver of generation A whose stages add up all the same: the goals' own feedback says where the arm is. The arm
// does not move wrongly, and is read rightly from then on.
func TestTwinFourStages(t *testing.T) {
	long(t)
	r := start(t, wire.GenerationA, wire.StretchFaults{}).ready()
	r.goes(func() robot.Trajectory { return r.plan(2*time.Second, geom.SE2{}, 0, 0.25-r.d.State().Q[1]) })
	r.face.Set(func(f *wire.StretchFaults) { f.FourStages = true })
	r.until("it misreads", func() bool { return r.d.State().Q[1] > 0.3 })
	r.ready() // the leap of the switch is over
	before := r.twin.Truth()
	r.refuses(func() robot.Trajectory { return r.plan(2*time.Second, geom.SE2{}, 0, -0.1) }, "arm_joint", "plan anew")
	r.rests()
	if d := math.Abs(r.twin.Truth().Q[1] - before.Q[1]); d > 0.012 {
		t.Errorf("the arm moved by %.4f", d)
	}
	r.until("it reads rightly", func() bool { return math.Abs(r.d.State().Q[1]-r.twin.Truth().Q[1]) < 0.004 })
	r.goes(func() robot.Trajectory { return r.plan(2*time.Second, geom.SE2{}, 0, -0.1) })
}

// Row 11 and the design's "a fresh stamp is not fresh data": joint states that repeat themselves.
func TestField11TwinFrozenJoints(t *testing.T) {
	long(t)
	every(t, wire.StretchFaults{}, func(t *testing.T, r *rig) {
		r.ready()
		done := r.follow(r.down())
		r.moves(0, 0.08)
		at := r.twin.Truth().Q[0]
		r.face.Set(func(f *wire.StretchFaults) { f.FrozenJoints = true })
		r.cut(r.ends(done), "lift_joint")
		r.rests()
		if d := math.Abs(r.twin.Truth().Q[0] - at); d > 0.12 {
			t.Errorf("the lift went on by %.3f m", d)
		}
		// The next motion begins where the readings say that it is, which the goal's feedback denies.
		r.ready()
		before := r.twin.Truth()
		if math.Abs(r.d.State().Q[0]-before.Q[0]) > 0.01 {
			r.refuses(func() robot.Trajectory { return r.plan(2*time.Second, geom.SE2{}, 0.05) }, "lift_joint", "old or wrong")
			r.rests()
			if d := math.Abs(r.twin.Truth().Q[0] - before.Q[0]); d > 0.015 {
				t.Errorf("a motion from an old reading moved the lift by %.3f m", d)
			}
		}
		before = r.twin.Truth()
		r.face.Set(func(f *wire.StretchFaults) { f.FrozenJoints = false })
		r.until("true readings", func() bool { return math.Abs(r.d.State().Q[0]-before.Q[0]) < 0.003 })
		r.ready()
		r.goes(func() robot.Trajectory { return r.plan(2*time.Second, geom.SE2{}, 0.05) })
	})
}

// Row 35 in its worst form: joint states cease in mid-motion.
func TestField35TwinSilentJoints(t *testing.T) {
	long(t)
	every(t, wire.StretchFaults{}, func(t *testing.T, r *rig) {
		r.ready()
		again := r.down()
		done := r.follow(r.plan(4*time.Second, geom.SE2{X: 0.3}, -0.3))
		r.moves(0, 0.08)
		at := r.twin.Truth()
		r.face.Set(func(f *wire.StretchFaults) { f.SilentJoints = true })
		r.cut(r.ends(done), "no complete reading")
		r.rests()
		now := r.twin.Truth()
		if d := math.Abs(now.Q[0] - at.Q[0]); d > 0.12 {
			t.Errorf("the lift went on by %.3f m", d)
		}
		if d := math.Hypot(now.Base.X-at.Base.X, now.Base.Y-at.Base.Y); d > 0.12 {
			t.Errorf("the base went on by %.3f m", d)
		}
		r.says(robot.ModeFaulted, "joint")
		r.refuses(func() robot.Trajectory { return again }, "refused")
		r.stays(500 * time.Millisecond)
		r.face.Set(func(f *wire.StretchFaults) { f.SilentJoints = false })
		r.ready()
		r.stays(500 * time.Millisecond)
	})
}

// Row 7: state topics cease while it homes.
func TestField07TwinQuietTasks(t *testing.T) {
	long(t)
	r := start(t, wire.GenerationA, wire.StretchFaults{QuietTasks: true, Unhomed: true})
	r.says(robot.ModeFaulted, "not homed", "home")
	r.refuses(r.down, "not homed")
	r.stays(300 * time.Millisecond)
	done := make(chan error, 1)
	go func() { done <- r.d.Do(context.Background(), "home") }()
	r.until("it homes", func() bool { return r.d.State().Fault != "" && r.d.State().Mode == robot.ModeMoving })
	r.pass(2 * time.Second)
	if s := r.d.State(); s.Mode != robot.ModeMoving {
		t.Errorf("while it homes and says nothing the robot is %v: %s", s.Mode, s.Fault)
	}
	if err := r.d.Follow(t.Context(), r.down()); err == nil {
		t.Error("a motion began while it homes")
	}
	if err := r.ends(done); err != nil {
		t.Fatal(err)
	}
	r.ready()
	r.goes(func() robot.Trajectory { return r.plan(2*time.Second, geom.SE2{}, 0.05) })
}

// Row 6: topics go on and no service answers. A hold that is not answered is a goal of where the arm is.
func TestField06TwinDeadServices(t *testing.T) {
	long(t)
	every(t, wire.StretchFaults{}, func(t *testing.T, r *rig) {
		r.ready()
		done := r.follow(r.down())
		r.moves(0, 0.05)
		r.face.Set(func(f *wire.StretchFaults) { f.DeadServices = true })
		at, began := r.twin.Truth().Q[0], time.Now()
		if err := r.d.Halt(t.Context(), robot.RungHold); err != nil { // the measured speed decides, not the answer
			t.Log(err)
		}
		if d := time.Since(began); d > 1600*time.Millisecond {
			t.Errorf("the hold took %v", d)
		}
		if err := r.ends(done); !errors.Is(err, stretch.ErrHalted) {
			t.Errorf("Follow: %v", err)
		}
		r.rests()
		if d := math.Abs(r.twin.Truth().Q[0] - at); d > 0.12 {
			t.Errorf("the lift went on by %.3f m", d)
		}
		r.refused(r.d.Halt(t.Context(), robot.RungPower), "press the button")
		r.face.Set(func(f *wire.StretchFaults) { f.DeadServices = false })
	})
}

// A driver that repeats the last velocity for ever: the end of every motion is told, and seen.
func TestTwinForever(t *testing.T) {
	long(t)
	for _, gen := range []wire.Generation{wire.GenerationA, wire.GenerationB} {
		t.Run(string(gen), func(t *testing.T) {
			r := start(t, gen, wire.StretchFaults{Forever: true}).ready()
			p := r.goes(func() robot.Trajectory { return r.plan(4*time.Second, geom.SE2{X: 0.25, Y: -0.15, Yaw: 0.3}) })
			r.stays(time.Second)
			done := r.follow(r.plan(4*time.Second, geom.SE2{X: -0.3}))
			r.until("the base moves", func() bool { return r.twin.Truth().Base.X < p.Points[len(p.Points)-1].Base.X-0.05 })
			at := r.twin.Truth().Base
			if err := r.d.Halt(t.Context(), robot.RungZeroVelocity); err != nil {
				t.Errorf("zero velocity: %v", err)
			}
			if err := r.ends(done); !errors.Is(err, stretch.ErrHalted) {
				t.Errorf("Follow: %v", err)
			}
			r.rests()
			if now := r.twin.Truth().Base; at.X-now.X > 0.1 {
				t.Errorf("the base went on by %.3f m", at.X-now.X)
			}
			r.stays(time.Second)
		})
	}
}

// A driver that repeats the last velocity for ever, and a daemon that dies: the guard in another process stops the base.
func TestTwinGuard(t *testing.T) {
	long(t)
	r := start(t, wire.GenerationB, wire.StretchFaults{}, func(c *stretch.Config) { c.BaseUnguarded = false }).ready()
	r.refuses(func() robot.Trajectory { return r.plan(4*time.Second, geom.SE2{X: 0.3}) }, "guard")
	r.stays(300 * time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	node := r.open("viad_guard")
	wait.Go(func() {
		if err := stretch.Guard(ctx, stretch.Config{Node: node}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wait.Wait() })
	r.until("the guard is heard", func() bool {
		for _, f := range r.d.Facts() {
			if f.Name == "base guard" {
				return f.Value == "heard"
			}
		}
		return false
	})
	done := r.follow(r.plan(4*time.Second, geom.SE2{X: 0.3}))
	r.until("the base moves", func() bool { return r.twin.Truth().Base.X > 0.05 })
	_ = r.ours.Close()
	r.pass(r.d.Deadman())
	r.stays(time.Second)
	if x := r.twin.Truth().Base.X; x > 0.27 {
		t.Errorf("the base went on to %.3f m", x)
	}
	if err := r.ends(done); err == nil {
		t.Error("the motion of a dead link returned nil")
	}
}

// Row 17: a robot that is not homed moves only when an operator lets it home.
func TestField17TwinUnhomed(t *testing.T) {
	long(t)
	every(t, wire.StretchFaults{Unhomed: true}, func(t *testing.T, r *rig) {
		r.says(robot.ModeFaulted, "not homed")
		r.refuses(r.down, "not homed")
		r.refused(r.d.Grip(t.Context(), robot.JawTarget{}), "not homed")
		r.stays(500 * time.Millisecond)
		if err := r.d.Do(t.Context(), "home"); err != nil {
			t.Fatal(err)
		}
		r.ready()
	})
}

// Row 10: somebody drives by hand; nothing is taken from them.
func TestField10TwinTeleop(t *testing.T) {
	long(t)
	every(t, wire.StretchFaults{Mode: "teleop"}, func(t *testing.T, r *rig) {
		r.says(robot.ModeFaulted, "teleop", "by hand")
		r.refuses(r.down, "teleop")
		r.refused(r.d.Do(t.Context(), "home"), "teleop")
		r.stays(500 * time.Millisecond)
		r.says(robot.ModeFaulted, "teleop")
	})
}

// Row 16: another client holds the robot's body server, and commands are dropped without a word.
func TestField16TwinOtherHolder(t *testing.T) {
	long(t)
	every(t, wire.StretchFaults{}, func(t *testing.T, r *rig) {
		r.ready()
		done := r.follow(r.down())
		r.moves(0, 0.03)
		r.face.Set(func(f *wire.StretchFaults) { f.Holder = "somebody_else" })
		if err := r.ends(done); err == nil {
			t.Error("a motion that was not carried out returned nil")
		}
		r.says(robot.ModeFaulted, "somebody_else holds")
		r.rests()
		r.refuses(r.down, "somebody_else")
		r.stays(500 * time.Millisecond)
		r.face.Set(func(f *wire.StretchFaults) { f.Holder = "" })
		r.ready()
	})
}

// The compliant gripper, whose goals are percent, a half angle or a whole one: the aperture that is asked for is the one
// that comes, and the one that is read.
func TestTwinCompliantGripper(t *testing.T) {
	long(t)
	every(t, wire.StretchFaults{Tool: "eoa_wrist_dw4_tool_sg4"}, func(t *testing.T, r *rig) {
		r.ready()
		for _, open := range []bool{false, true, false} {
			if err := r.d.Grip(t.Context(), robot.JawTarget{Open: open}); err != nil {
				t.Fatalf("open %v: %v", open, err)
			}
			r.pass(300 * time.Millisecond)
			a, j := r.twin.Truth().Aperture, r.d.State().Jaw
			if want := map[bool]float64{true: 0.08}[open]; math.Abs(a-want) > 0.004 { // the twin's hand opens no further
				t.Errorf("open %v: the aperture is truly %.4f", open, a)
			}
			if math.Abs(a-j.Aperture) > 0.003 || j.Open != open || j.Holding {
				t.Errorf("open %v: it reads %+v, and is truly at %.4f", open, j, a)
			}
		}
	})
}

// A driver of generation A that takes goals in mode position alone: learnt, and told where it cannot be helped.
func TestField05TwinPositionOnly(t *testing.T) {
	long(t)
	r := start(t, wire.GenerationA, wire.StretchFaults{PositionOnly: true}).ready()
	r.refuses(func() robot.Trajectory { return r.plan(3*time.Second, geom.SE2{X: 0.1}, 0.05) }, "move the base alone")
	r.rests()
	r.goes(func() robot.Trajectory { return r.plan(2*time.Second, geom.SE2{}, 0.05, 0.05, 0.3) })
}
