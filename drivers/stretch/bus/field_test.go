package bus

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/serial"
)

// Field fault 9: nothing moves while the runstop is on; one that comes in the middle ends the motion by its cause; released
// by an operator, the old motion does not come back.
func TestField09Runstop(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	done := follow(t.Context(), r, up(r))
	moving(t, r, rig, lifts)
	rig.change(func() { rig.power.runstop, rig.power.cause = true, 1 })
	fails(t, done, time.Second, "runstop", "button was pressed", `task "release"`)
	rig.stands(t, r, time.Second)
	s := r.State()
	if s.Mode != robot.ModeRunstopped || !strings.Contains(s.Fault, "button was pressed") {
		t.Errorf("%s: %s", s.Mode, s.Fault)
	}
	if err := r.Follow(t.Context(), up(r)); err == nil || !strings.Contains(err.Error(), "runstop") {
		t.Errorf("a motion while the runstop is on: %v", err)
	}
	if err := r.Grip(t.Context(), robot.JawTarget{}); err == nil {
		t.Error("a grip while the runstop is on")
	}
	if err := r.Halt(t.Context(), robot.RungHold); err != nil {
		t.Errorf("a stop while the runstop is on: %v", err)
	}
	rig.change(func() {
		if rig.heard["trigger"] != 0 {
			t.Error("a trigger was sent that nobody asked for")
		}
	})
	before := rig.machine()
	if err := r.Do(t.Context(), "release"); err != nil {
		t.Fatal(err)
	}
	ready(t, r)
	<-r.clock.After(500 * time.Millisecond)
	near(t, "lift after the release", rig.machine().Q[0], before.Q[0], 0.002)
	if err := r.Follow(t.Context(), planned(r, time.Second, []float64{0.03, 0, 0, 0, 0}, geom.SE2{})); err != nil {
		t.Errorf("a motion after the release: %v", err)
	}
}

// The last rung engages the runstop, and says so only when it is seen.
func TestRungPower(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	done := follow(t.Context(), r, planned(r, 4*time.Second, []float64{0.3, 0, 1, 0, 0}, geom.SE2{X: 0.3}))
	moving(t, r, rig, lifts)
	if err := r.Halt(t.Context(), robot.RungPower); err != nil {
		t.Fatal(err)
	}
	fails(t, done, time.Second)
	rig.stands(t, r, 1500*time.Millisecond)
	rig.change(func() {
		if !rig.power.runstop {
			t.Error("the runstop is off")
		}
		rig.lines["hello-power-periph"].mute = true
	})
	if s := r.State(); !strings.Contains(s.Fault, "this daemon's own stop or e-stop engaged it") {
		t.Errorf("%s: %s", s.Mode, s.Fault)
	}
	rig.change(func() { rig.power.runstop = false })
}

// Field fault 11: a board or a servo that gives the same number for ever although it is asked to move.
func TestField11FrozenNumber(t *testing.T) {
	t.Parallel()
	for name, freeze := range map[string]func(*rig){
		"lift_joint":      func(r *rig) { r.motors[0].frozen, r.motors[0].froze = true, r.motors[0].pos },
		"wrist_yaw_joint": func(r *rig) { r.servos[20].stuck = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := newRig(t)
			r := started(t, rig, Config{})
			ready(t, r)
			done := follow(t.Context(), r, planned(r, 4*time.Second, []float64{0.4, 0, 2, 0, 0}, geom.SE2{}))
			moving(t, r, rig, lifts)
			rig.change(func() { freeze(rig) })
			fails(t, done, 4*time.Second, name, "asked to move")
			rig.stands(t, r, 1500*time.Millisecond)
		})
	}
}

// A wheel that is held.
func TestField11HeldWheel(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	rig.change(func() { rig.motors[2].stuck = true })
	fails(t, follow(t.Context(), r, planned(r, 4*time.Second, nil, geom.SE2{X: 0.4})), 6*time.Second, "omni-0", "same angle")
	rig.stands(t, r, 1500*time.Millisecond)
}

// Field faults 12 and 44: the error register decides. One servo's fault stops the whole robot, by its name; nothing is
// restarted by itself.
func TestField12And44ServoFault(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	done := follow(t.Context(), r, planned(r, 4*time.Second, []float64{0.4, 0, 1, 0, 0}, geom.SE2{X: 0.3}))
	moving(t, r, rig, lifts)
	rig.change(func() { rig.servos[21].r[65] = 32 })
	fails(t, done, time.Second, "wrist_pitch_joint", "overload", "operator")
	rig.stands(t, r, 1500*time.Millisecond)
	if s := r.State(); s.Mode != robot.ModeFaulted || !strings.Contains(s.Fault, "overload") {
		t.Errorf("%s: %s", s.Mode, s.Fault)
	}
	if err := r.Follow(t.Context(), up(r)); err == nil {
		t.Error("it moves with a servo at fault")
	}
	rig.change(func() { rig.servos[21].r[65] = 0 })
	ready(t, r)
}

// Field fault 44: one servo dies. The others do not go on without it.
func TestField44DeadServo(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	done := follow(t.Context(), r, planned(r, 4*time.Second, []float64{0.4, 0, 1, 1, 0}, geom.SE2{}))
	moving(t, r, rig, lifts)
	rig.change(func() { rig.servos[22].dead = true })
	fails(t, done, 2*time.Second, "wrist_roll_joint")
	rig.stands(t, r, 1500*time.Millisecond)
}

// Field fault 13: the ports are given back, and can be had again at once; the robot is where it was.
func TestField13OpenAgain(t *testing.T) {
	rig := newRig(t)
	for range 2 {
		t.Run("again", func(t *testing.T) {
			r := started(t, rig, Config{})
			ready(t, r)
			if err := r.Follow(t.Context(), planned(r, time.Second, []float64{0.02, 0, 0, 0, 0}, geom.SE2{})); err != nil {
				t.Error(err)
			}
		})
	}
	near(t, "lift", rig.machine().Q[0], 0.64, 0.006)
}

// Closing in the middle of a motion leaves nothing that moves.
func TestField13CloseInMotion(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	done := follow(t.Context(), r, planned(r, 5*time.Second, []float64{0.4, 0, 1, 0, 0}, geom.SE2{X: 0.4}))
	moving(t, r, rig, func(s robot.State) bool { return lifts(s) && s.BaseV.X > 0.05 })
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	fails(t, done, 2*time.Second, "closes the robot's ports")
	rig.stands(t, r, time.Second)
}

// Field fault 14: syncs are never closer than the board stands, whatever is asked at once; a motor that waits for a sync
// that does not come ends the motion.
func TestField14SyncRate(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	for range 2 {
		done := follow(t.Context(), r, planned(r, 3*time.Second, []float64{0.2, 0, 0, 0, 0}, geom.SE2{X: 0.1}))
		moving(t, r, rig, lifts)
		for _, rung := range []robot.Rung{robot.RungZeroVelocity, robot.RungHold, robot.RungCancel, robot.RungHold} {
			go func() { _ = r.Halt(context.WithoutCancel(t.Context()), rung) }()
		}
		fails(t, done, 2*time.Second, "halted")
		rig.stands(t, r, 2*time.Second) // what still moves would be taken for the next motion
	}
	<-r.clock.After(time.Second)
	rig.change(func() {
		if len(rig.syncs) < 10 {
			t.Fatalf("only %d syncs", len(rig.syncs))
		}
		for i := range rig.syncs[1:] {
			if d := rig.syncs[i+1].Sub(rig.syncs[i]); d < 40*time.Millisecond { // 50, as they arrive
				t.Errorf("two syncs within %v", d)
			}
		}
	})
	done := follow(t.Context(), r, up(r))
	moving(t, r, rig, lifts)
	rig.change(func() { rig.lines["hello-power-periph"].mute = true })
	fails(t, done, 2*time.Second)
}

// Field fault 16: a port that somebody else has is named with its owner, and nothing is taken or killed.
func TestField16PortInUse(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	other, err := serial.Open(serial.Config{Path: filepath.Join(rig.dir, "hello-motor-arm")})
	if err != nil {
		t.Fatal(err)
	}
	r := started(t, rig, Config{})
	ok := r.until(t.Context(), 10*time.Second, func() bool {
		s := r.State()
		return s.Mode == robot.ModeFaulted && strings.Contains(s.Fault, "belongs to") && strings.Contains(s.Fault, "bus.test (process")
	})
	if !ok {
		t.Errorf("%+v", r.State())
	}
	if err := r.Follow(t.Context(), robot.Trajectory{}); err == nil || !strings.Contains(err.Error(), "hello-motor-arm") {
		t.Errorf("%v", err)
	}
	if err := other.Write(t.Context(), []byte{0}); err != nil {
		t.Errorf("the other one has lost the port: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	ready(t, r) // and it comes by itself once the port is free
}

// Field fault 19: the wrist's bus falls silent in the middle of a motion: everything else holds, the words name it, and when
// it is back, torque and faults are read before anything moves.
func TestField19BusDrops(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	done := follow(t.Context(), r, planned(r, 4*time.Second, []float64{0.4, 0, 1, 0, 0}, geom.SE2{X: 0.3}))
	moving(t, r, rig, lifts)
	rig.change(func() { rig.lines["hello-feetech-wrist"].mute = true })
	fails(t, done, 2*time.Second, "wrist")
	rig.stands(t, r, 1500*time.Millisecond)
	if !r.until(t.Context(), 5*time.Second, func() bool { return strings.Contains(r.State().Fault, "servo bus of the wrist is lost") }) {
		t.Errorf("%+v", r.State())
	}
	rig.change(func() { // it lost its power meanwhile: limp, and not homed
		rig.lines["hello-feetech-wrist"].mute = false
		rig.servos[20].r[40], rig.servos[20].r[50] = 0, 0
	})
	if !r.until(t.Context(), 15*time.Second, func() bool { return strings.Contains(r.State().Fault, "wrist_yaw_joint is not homed") }) {
		t.Errorf("%+v", r.State())
	}
	rig.change(func() {
		rig.servos[20].r[50] = 1
		if rig.servos[20].r[40] != 0 {
			t.Error("a servo that came back was switched on by itself")
		}
	})
	ready(t, r)
	if err := r.Follow(t.Context(), planned(r, time.Second, []float64{0, 0, 0.1, 0, 0}, geom.SE2{})); err != nil {
		t.Error(err)
	}
}

// Field fault 20: a lift that is pushed by hand while the runstop is on is no runaway. Without a runstop it is told.
func TestField20PushedByHand(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	rig.change(func() { rig.power.runstop, rig.power.cause = true, 1 })
	if !r.until(t.Context(), 3*time.Second, func() bool { return r.State().Mode == robot.ModeRunstopped }) {
		t.Fatalf("%+v", r.State())
	}
	rig.change(func() { rig.motors[0].push = 1.4 / 0.0175 }) // faster than what the robot's own body calls a runaway
	<-r.clock.After(400 * time.Millisecond)
	rig.change(func() { rig.motors[0].push = -0.4 / 0.0175 })
	for range 40 {
		<-r.clock.After(20 * time.Millisecond)
		if s := r.State(); s.Mode != robot.ModeRunstopped || !strings.Contains(s.Fault, "button was pressed") {
			t.Fatalf("%s: %s", s.Mode, s.Fault)
		}
		for _, f := range r.Facts() {
			if f.Name == "at rest" {
				t.Fatalf("%+v", f)
			}
		}
	}
	rig.change(func() { rig.motors[0].push = 0 })
	if err := r.Do(t.Context(), "release"); err != nil {
		t.Fatal(err)
	}
	<-r.clock.After(ownAfter)
	rig.change(func() { rig.motors[0].push = -0.05 / 0.0175 })
	if !r.until(t.Context(), 3*time.Second, func() bool { return strings.Contains(r.State().Fault, "nothing was asked of it") }) {
		t.Errorf("%+v", r.State())
	}
	rig.change(func() { rig.motors[0].push = 0 })
	ready(t, r)
}

// Field fault 43: lines that drop, double, flip and delay bytes. A motion over them goes where it should or ends in words;
// no joint is ever far from where the plan wants it.
func TestField43BadLines(t *testing.T) {
	t.Parallel()
	for _, one := range []int{25, 400} { // one of so many answers is spoiled
		if testing.Short() && one > 25 {
			break
		}
		rig := newRig(t)
		r := started(t, rig, Config{})
		ready(t, r)
		rng := rand.New(rand.NewPCG(7, uint64(one)))
		spoil := func(b []byte) []byte {
			if rng.IntN(one) > 0 {
				return b
			}
			b = append([]byte(nil), b...)
			i := rng.IntN(len(b))
			switch rng.IntN(4) {
			case 0:
				return append(b[:i], b[i+1:]...)
			case 1:
				return append(b[:i+1], b[i:]...)
			case 2:
				b[i] ^= 1 << rng.IntN(8)
				return b
			}
			return append(b, b...)
		}
		rig.change(func() {
			for _, l := range rig.lines {
				l.mangle = spoil
			}
		})
		p := planned(r, 2500*time.Millisecond, []float64{0.2, 0.1, 0.8, -0.5, 0.6}, geom.SE2{X: 0.1})
		done := follow(t.Context(), r, p)
		end := p.Points[len(p.Points)-1].Q
		for over := false; !over; {
			select {
			case err := <-done:
				t.Logf("one of %d: %v", one, err)
				over = true
			case <-time.After(10 * time.Millisecond):
			}
			for i, q := range rig.machine().Q {
				from, to := p.Points[0].Q[i], end[i]
				slack := 0.03
				if i > armAxis {
					slack = 0.1
				}
				if q < math.Min(from, to)-slack || q > math.Max(from, to)+slack {
					t.Fatalf("joint %d is at %.3f, its way is from %.3f to %.3f", i, q, from, to)
				}
			}
		}
		rig.stands(t, r, 2*time.Second)
	}
}

// Field fault 45: a cable comes out in the middle of a motion. It ends by the port's name, the rest holds, nothing moves
// until the board is back and asked everything anew; then it works.
func TestField45Unplug(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		port, says string
	}{
		{"hello-motor-lift", "board of lift"},
		{"hello-motor-omni-1", "omni-1"},
		{"hello-power-periph", "power board"},
		{"hello-feetech-wrist", "wrist"},
	} {
		t.Run(c.port, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && c.port != "hello-motor-lift" && c.port != "hello-feetech-wrist" {
				t.Skip("the long form unplugs this one too")
			}
			rig := newRig(t)
			r := started(t, rig, Config{})
			ready(t, r)
			done := follow(t.Context(), r, planned(r, 4*time.Second, []float64{0.3, 0.1, 1, 0, 0}, geom.SE2{X: 0.2}))
			moving(t, r, rig, lifts)
			var asked int
			rig.change(func() { asked = rig.heard[c.port+" other"] })
			rig.unplug(c.port)
			fails(t, done, time.Second, c.says)
			rig.stands(t, r, r.Deadman()+time.Second)
			if s := r.State(); s.Mode != robot.ModeFaulted || !strings.Contains(s.Fault, c.says) {
				t.Errorf("%s: %s", s.Mode, s.Fault)
			}
			if err := r.Follow(t.Context(), up(r)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("a motion without %s: %v", c.port, err)
			}
			rig.plug(c.port)
			ready(t, r)
			rig.change(func() {
				if c.port == "hello-motor-lift" && rig.heard[c.port+" other"] != asked+1 {
					t.Error("the board's limits were not set again")
				}
			})
			if err := r.Follow(t.Context(), planned(r, time.Second, []float64{0.02, 0, 0, 0, 0}, geom.SE2{X: 0.02})); err != nil {
				t.Errorf("after it was plugged in again: %v", err)
			}
		})
	}
}

// Field fault 43: answers that come whole and late are as old as they are, by the board's own clock: nothing moves on them.
func TestField43LateAnswers(t *testing.T) {
	t.Parallel()
	const late = staleStart + patience + 100*time.Millisecond // older than may move
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	rig.change(func() {
		l := rig.lines["hello-motor-lift"]
		l.mangle = func(b []byte) []byte {
			b = append([]byte(nil), b...)
			time.AfterFunc(late, func() { _, _ = l.tty.Write(b) })
			return nil
		}
	})
	<-r.clock.After(2*late + 200*time.Millisecond)
	for range 50 {
		<-r.clock.After(10 * time.Millisecond)
		if age := r.clock.Now().Sub(r.State().Received); age < late-20*time.Millisecond {
			t.Fatalf("a reading that came %v late is said to be %v old", late, age)
		}
	}
	if err := r.Follow(t.Context(), up(r)); err == nil || !strings.Contains(err.Error(), "lift") && !strings.Contains(err.Error(), "old") {
		t.Errorf("it moves on late answers: %v", err)
	}
	rig.change(func() { rig.lines["hello-motor-lift"].mangle = nil })
	ready(t, r)
}
