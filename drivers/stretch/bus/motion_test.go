package bus

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// planned is a smooth trajectory of d to where the robot is plus by, and the base to where it is plus move.
func planned(r *Robot, d time.Duration, by []float64, move geom.SE2) robot.Trajectory {
	s := r.State()
	const n = 50
	var t robot.Trajectory
	for i := range n + 1 {
		x := float64(i) / n
		pos := x * x * x * (10 - 15*x + 6*x*x)
		vel := 30 * x * x * (1 - 2*x + x*x) / d.Seconds()
		p := robot.Point{T: time.Duration(x * float64(d)), Q: make([]float64, joints), QD: make([]float64, joints)}
		for j := range p.Q {
			p.Q[j] = s.Q[j]
			if by != nil {
				p.Q[j], p.QD[j] = s.Q[j]+pos*by[j], vel*by[j]
			}
		}
		p.Base = geom.SE2{X: s.Base.X + pos*move.X, Y: s.Base.Y + pos*move.Y, Yaw: s.Base.Yaw + pos*move.Yaw}
		p.BaseV = geom.SE2{X: vel * move.X, Y: vel * move.Y, Yaw: vel * move.Yaw}
		t.Points = append(t.Points, p)
	}
	return t
}

// follow runs a trajectory beside the test.
func follow(ctx context.Context, r *Robot, t robot.Trajectory) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.Follow(ctx, t) }()
	return done
}

// fails waits for the end of a motion that must not succeed, and looks for words in its error.
func fails(t *testing.T, done <-chan error, most time.Duration, words ...string) {
	t.Helper()
	began := time.Now()
	select {
	case err := <-done:
		if err == nil {
			t.Fatal("the motion ended well")
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q lacks %q", err, w)
			}
		}
		if d := time.Since(began); d > most+2*patience {
			t.Errorf("it took %v until the motion ended, at most %v are allowed", d, most+2*patience)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the motion does not end")
	}
}

// moving waits until the machine's joint or base moves.
func moving(t *testing.T, r *Robot, rig *rig, is func(robot.State) bool) {
	t.Helper()
	if !r.until(t.Context(), 5*time.Second, func() bool { return is(rig.machine()) }) {
		t.Fatal("the robot does not start to move")
	}
}

func lifts(s robot.State) bool { return math.Abs(s.QD[0]) > 0.05 }

// stands looks that everything stands within a time, and stays where it is.
func (r *rig) stands(t *testing.T, b *Robot, most time.Duration) {
	t.Helper()
	still := func() bool {
		s := r.machine()
		for _, v := range s.QD {
			if math.Abs(v) > 0.01 {
				return false
			}
		}
		return s.BaseV.Norm() < 0.005 && math.Abs(s.BaseV.Yaw) < 0.02
	}
	if !b.until(t.Context(), most, still) {
		t.Errorf("the machine still moves after %v: %v, base %v", most, r.machine().QD, r.machine().BaseV)
	}
}

// up is a plan that lifts by 0.4 m in four seconds: slow to end, easy to break.
func up(r *Robot) robot.Trajectory {
	return planned(r, 4*time.Second, []float64{0.4, 0, 0, 0, 0}, geom.SE2{})
}

// The base goes where it is sent: straight on, sideways and round, seen from beside the rig.
func TestBaseGoes(t *testing.T) {
	t.Parallel()
	for _, firmware := range []string{"hello-stepper2.v0.7.9p8", "Stepper.v0.7.5p7"} {
		t.Run(firmware, func(t *testing.T) { t.Parallel(); baseGoes(t, firmware) })
	}
}

func baseGoes(t *testing.T, firmware string) {
	rig := newRig(t)
	rig.change(func() {
		rig.firmware = firmware
		for _, m := range rig.motors {
			m.sync = firmware[0] == 'h'
		}
	})
	r := started(t, rig, Config{})
	ready(t, r)
	var path geom.SE2
	stop := make(chan struct{})
	gone := make(chan struct{})
	go func() { // a person who watches the base
		defer close(gone)
		last := time.Now()
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			now := time.Now()
			v, dt := rig.machine().BaseV, now.Sub(last).Seconds()
			last = now
			sin, cos := math.Sincos(path.Yaw)
			path = geom.SE2{X: path.X + (cos*v.X-sin*v.Y)*dt, Y: path.Y + (sin*v.X+cos*v.Y)*dt, Yaw: path.Yaw + v.Yaw*dt}
		}
	}()
	for _, move := range []geom.SE2{{X: 0.2, Y: 0.1}, {Yaw: 0.5}} {
		began := time.Now()
		if err := <-follow(t.Context(), r, planned(r, 2500*time.Millisecond, nil, move)); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 4500*time.Millisecond {
			t.Errorf("a plan of 2.5 s took %v", d)
		}
	}
	close(stop)
	<-gone
	s := r.State()
	near(t, "x by odometry", s.Base.X, 0.2, 0.006)
	near(t, "y by odometry", s.Base.Y, 0.1, 0.006)
	near(t, "yaw by odometry", s.Base.Yaw, 0.5, 0.01)
	near(t, "x seen", path.X, 0.2, 0.015)
	near(t, "y seen", path.Y, 0.1, 0.015)
	near(t, "yaw seen", path.Yaw, 0.5, 0.03)
	if !r.until(t.Context(), time.Second, func() bool { return r.axes[omni0].mode() == 2 }) {
		t.Error("the base is not held at the end")
	}
}

func (a *axis) mode() uint8 {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	return uint8(a.status.Mode)
}

// The way is the plan's, not only its end: wherever the joints are, they are together near one instant of it.
func TestWayIsKept(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	p := planned(r, 3*time.Second, []float64{0.3, 0.15, 1.2, -0.8, 0.9}, geom.SE2{X: 0.15})
	done := follow(t.Context(), r, p)
	most := 0.0
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			if most > 1 {
				t.Errorf("the joints were up to %.2f times the plan's hull off its way", most)
			}
			t.Logf("off the way by at most %.2f of the hull", most)
			return
		case <-time.After(10 * time.Millisecond):
			most = math.Max(most, offWay(p, rig.machine().Q))
		}
	}
}

// offWay is how far joints are from the nearest instant of a plan, in hulls: 3 cm, 0.15 rad.
func offWay(p robot.Trajectory, q []float64) float64 {
	least := math.Inf(1)
	for d := time.Duration(0); d <= p.Duration(); d += 10 * time.Millisecond {
		most, at := 0.0, p.At(d)
		for i := range q {
			hull := 0.03
			if i > armAxis {
				hull = 0.15
			}
			most = math.Max(most, math.Abs(q[i]-at.Q[i])/hull)
		}
		least = math.Min(least, most)
	}
	return least
}

// A daemon that dies in the middle of a motion of everything: the robot stands within the dead-man's time, the base by its
// watchdog, and no joint goes further than a goal reaches.
func TestDeadman(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	done := follow(t.Context(), r, planned(r, 5*time.Second, []float64{0.5, 0.3, 2, 1.5, -1}, geom.SE2{X: 0.5}))
	moving(t, r, rig, func(s robot.State) bool { return s.BaseV.X > 0.15 && s.QD[0] > 0.1 && s.QD[2] > 0.4 })
	rig.change(func() { rig.severed = true })
	a := rig.machine()
	<-r.clock.After(r.Deadman())
	rig.stands(t, r, 0)
	b := rig.machine()
	for i := range a.Q { // 0.4 s at no more than 1.5 times its speed, and braking
		if d := math.Abs(b.Q[i] - a.Q[i]); d > 0.75*math.Abs(a.QD[i])+0.02 {
			t.Errorf("joint %d went on by %.3f from a speed of %.3f", i, d, a.QD[i])
		}
	}
	fails(t, done, 5*time.Second)
}

// Without the wheels' watchdog the base does not move, and the arm does.
func TestNoWatchdog(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	rig.change(func() { rig.motors[3].config = 6 })
	r := started(t, rig, Config{})
	ready(t, r)
	err := r.Follow(t.Context(), planned(r, time.Second, nil, geom.SE2{X: 0.05}))
	if err == nil || !strings.Contains(err.Error(), "omni-1") || !strings.Contains(err.Error(), "watchdog") {
		t.Errorf("%v", err)
	}
	if err := r.Follow(t.Context(), planned(r, time.Second, []float64{0.02, 0, 0, 0, 0}, geom.SE2{})); err != nil {
		t.Error(err)
	}
}

// A robot that is not homed does not move, and the words name the joint and the way.
func TestNotHomed(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*rig){
		"lift":              func(r *rig) { r.motors[0].diag = 0 },
		"arm":               func(r *rig) { r.motors[1].diag = 0 },
		"wrist_pitch_joint": func(r *rig) { r.servos[21].r[50] = 0 },
		"gripper":           func(r *rig) { r.servos[24].r[50] = 0 },
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); notHomed(t, name, spoil) })
	}
}

func notHomed(t *testing.T, name string, spoil func(*rig)) {
	rig := newRig(t)
	rig.change(func() { spoil(rig) })
	r := started(t, rig, Config{})
	if !r.until(t.Context(), 10*time.Second, func() bool { return strings.Contains(r.State().Fault, "not homed") }) {
		t.Fatalf("%s: %+v", name, r.State())
	}
	if f := r.State().Fault; !strings.Contains(f, name) || !strings.Contains(f, "stretch_robot_home") {
		t.Errorf("%s: %s", name, f)
	}
	if err := r.Halt(t.Context(), robot.RungHold); err != nil && name != "wrist_pitch_joint" { // it has no reading to be fresh
		t.Errorf("%s: hold: %v", name, err)
	}
	for _, task := range r.Tasks() {
		if task.Name == "home" {
			t.Error("homing is offered")
		}
	}
	if err := r.Do(t.Context(), "home"); err == nil {
		t.Error("it homed")
	}
}

// A wrist without torque, as the robot's own server leaves it, takes hold where it hangs, before it moves.
func TestTakesHold(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	rig.change(func() {
		s := rig.servos[21]
		s.r[40] = 0
		s.pos -= 400 // it hangs elsewhere than its old goal says
	})
	r := started(t, rig, Config{})
	ready(t, r)
	before := rig.machine()
	if err := r.Follow(t.Context(), planned(r, time.Second, []float64{0.02, 0, 0, 0, 0}, geom.SE2{})); err != nil {
		t.Fatal(err)
	}
	after := rig.machine()
	near(t, "pitch", after.Q[3], before.Q[3], 0.005)
	rig.change(func() {
		if rig.servos[21].r[40] != 1 {
			t.Error("its torque is off")
		}
	})
}

// A contact ends the motion by the name of what met it, and everything holds.
func TestContact(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	done := follow(t.Context(), r, up(r))
	moving(t, r, rig, lifts)
	rig.change(func() {
		rig.motors[0].mode, rig.motors[0].diag = 0, 1|512
		rig.motors[0].contacts++
		rig.motors[0].stuck = true
	})
	fails(t, done, time.Second, "lift", "met something")
}

// The jaw closes on something, holds it through a stop, and lets go.
func TestGripHolds(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	rig.change(func() { rig.object = 0.045 })
	r := started(t, rig, Config{})
	ready(t, r)
	if err := r.Grip(t.Context(), robot.JawTarget{}); err != nil {
		t.Fatal(err)
	}
	j := r.State().Jaw
	if !j.Holding || j.Open || math.Abs(j.Aperture-0.045) > 0.002 {
		t.Errorf("%+v", j)
	}
	if err := r.Halt(t.Context(), robot.RungHold); err != nil {
		t.Error(err)
	}
	rig.change(func() {
		if s := rig.servos[24]; s.opening(float64(s.signed(42))) > 0.01 {
			t.Errorf("after a stop the jaw's goal is %.3f m, it has let go", s.opening(float64(s.signed(42))))
		}
	})
	if err := r.Grip(t.Context(), robot.JawTarget{Open: true}); err != nil {
		t.Fatal(err)
	}
	if j := r.State().Jaw; j.Holding || !j.Open || j.Aperture < 0.077 {
		t.Errorf("%+v", j)
	}
}

// What is not this robot is refused in words.
func TestStrangers(t *testing.T) {
	t.Parallel()
	for words, c := range map[string]struct {
		tool  string
		spoil func(*rig)
	}{
		"speaks protocol p9":       {"", func(r *rig) { r.firmware = "hello-stepper2.v0.9.0p9" }},
		"no stepper board":         {"", func(r *rig) { r.firmware = "hello-pimu2.v0.9.0p8" }},
		"ports' names are mixed":   {"", func(r *rig) { r.motors[0].kind, r.motors[1].kind = 4, 5 }},
		"has the gripper pg4":      {"sg4", func(*rig) {}},
		"no gripper is found":      {"", func(r *rig) { r.servos[24].dead = true }},
		"battery is nearly empty":  {"", func(r *rig) { r.power.state = 256 }},
		"stands askew":             {"", func(r *rig) { r.power.state = 512 }},
		"reports a fault":          {"", func(r *rig) { r.motors[2].diag |= 32 }},
		"wrist_roll_joint is in m": {"", func(r *rig) { r.servos[22].r[33] = 2 }},
	} {
		t.Run(words, func(t *testing.T) { t.Parallel(); stranger(t, words, c.tool, c.spoil) })
	}
}

func stranger(t *testing.T, words, tool string, spoil func(*rig)) {
	rig := newRig(t)
	rig.change(func() { spoil(rig) })
	r := started(t, rig, Config{Tool: tool})
	if !r.until(t.Context(), 10*time.Second, func() bool { return strings.Contains(r.State().Fault, words) }) {
		t.Errorf("%s: %s", words, r.State().Fault)
	}
	if s := r.State(); s.Mode == robot.ModeReady {
		t.Errorf("%s: the robot is ready", words)
	}
	bad := false
	for _, f := range r.Facts() {
		bad = bad || strings.Contains(f.Bad, words)
	}
	if !bad {
		t.Errorf("%s: no fact says so", words)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{Tool: "claw"},
		{BaseSpeed: 0.3},
		{BaseSpeed: math.NaN()},
		{BaseTurn: -1},
		{Patience: 2 * time.Second},
		{Ports: Ports{Lift: "/dev/ttyACM0", Arm: "/dev/ttyACM0"}},
	} {
		if _, err := Open(t.Context(), c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
