package sim

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/sim/mj"
)

var zero geom.SE2

func TestFollowIsAccurate(t *testing.T) {
	for _, c := range []struct {
		robot, world string
		dq           []float64
		base         geom.SE2
		d            time.Duration
	}{
		{"fr3", "tabletop", []float64{0.4, 0.3, -0.3, 0.3, 0.4, 0.3, -0.5}, zero, time.Second},
		{"panda", "tabletop", []float64{-0.8, 0.5, 0.5, -0.3, -0.6, 0.8, 1}, zero, 2 * time.Second},
		{"stretch4", "room", []float64{-0.3, 0.2, 0.8, -0.4, 0.5}, geom.SE2{X: 0.3, Y: -0.2, Yaw: 0.7}, 4 * time.Second},
	} {
		t.Run(c.robot, func(t *testing.T) {
			tw := start(t, Options{Robot: c.robot, World: c.world, Seed: 1})
			m := tw.Model()
			s := tw.State()
			if !s.Complete(&m) || s.Mode != robot.ModeReady {
				t.Fatalf("start state %+v", s)
			}
			tr := reach(s, c.dq, c.base, c.d)
			lag := make(chan float64)
			watch := tw.Clock().Ticker(20 * time.Millisecond)
			stop := make(chan struct{})
			go func() {
				worst := 0.0
				for {
					select {
					case <-watch.C():
						now := tw.State()
						tw.mu.Lock()
						began, on := tw.clk.base.Add(time.Duration(tw.began)), tw.goal != nil
						tw.mu.Unlock()
						if !on {
							continue
						}
						u := math.Max(0, math.Min(1, float64(now.Received.Sub(began))/float64(c.d)))
						w := u * u * u * (10 - 15*u + 6*u*u)
						for i, q := range now.Q {
							worst = math.Max(worst, math.Abs(q-s.Q[i]-w*c.dq[i]))
						}
					case <-stop:
						lag <- worst
						return
					}
				}
			}()
			if err := tw.Follow(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			took := tw.Clock().Now().Sub(s.Received)
			close(stop)
			if worst := <-lag; worst > 0.008 {
				t.Errorf("lags by up to %.4f while moving", worst)
			}
			watch.Stop()
			if took < c.d || took > c.d+50*time.Millisecond {
				t.Errorf("took %v for %v", took, c.d)
			}
			after(t, tw, 300*time.Millisecond)
			e := tw.State()
			for i, q := range tw.Truth().Q {
				if d := math.Abs(q - s.Q[i] - c.dq[i]); d > 3e-4 {
					t.Errorf("%s settles %.6f off", m.Joints[i].Name, d)
				}
				if math.Abs(e.Q[i]-q) > 2e-5 {
					t.Errorf("%s is measured %.6f off", m.Joints[i].Name, e.Q[i]-q)
				}
			}
			if d := (geom.SE2{X: e.Base.X - c.base.X, Y: e.Base.Y - c.base.Y, Yaw: e.Base.Yaw - c.base.Yaw}); d.Norm() > 5e-4 || math.Abs(d.Yaw) > 1e-3 {
				t.Errorf("base settles %+v off", d)
			}
			if e.Mode != robot.ModeReady {
				t.Errorf("mode %v at the end", e.Mode)
			}
		})
	}
}

func TestFollowRefusesBeforeAnythingMoves(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop"})
	s := tw.State()
	good := func() robot.Trajectory { return reach(s, []float64{0.1}, zero, time.Second) }
	for name, spoil := range map[string]func(*robot.Trajectory){
		"two points":     func(tr *robot.Trajectory) { tr.Points = nil },
		"positions":      func(tr *robot.Trajectory) { tr.Points[3].Q = tr.Points[3].Q[:6] },
		"speeds":         func(tr *robot.Trajectory) { tr.Points[3].QD = nil },
		"not at 0":       func(tr *robot.Trajectory) { tr.Points[0].T = 1 },
		"begins":         func(tr *robot.Trajectory) { tr.Points[0].QD[1] = 0.05 },
		"not later":      func(tr *robot.Trajectory) { tr.Points[5].T = tr.Points[4].T },
		"finite":         func(tr *robot.Trajectory) { tr.Points[7].Q[2] = math.NaN() },
		"finite number":  func(tr *robot.Trajectory) { tr.Points[7].QD[2] = math.Inf(1) },
		"starts":         func(tr *robot.Trajectory) { tr.Points[0].Q[1] += 0.06 },
		"outside":        func(tr *robot.Trajectory) { *tr = reach(s, []float64{0, 0, 0, 2.3}, zero, 10*time.Second) },
		"per second":     func(tr *robot.Trajectory) { *tr = reach(s, []float64{2}, zero, time.Second) },
		"at rest":        func(tr *robot.Trajectory) { tr.Points[40].QD[0] = 0.5 },
		"longer":         func(tr *robot.Trajectory) { *tr = reach(s, nil, zero, time.Minute) },
		"base is fixed":  func(tr *robot.Trajectory) { tr.Points[9].Base.X = 0.1 },
		"machine can do": func(tr *robot.Trajectory) { tr.Points[20].QD[3] = 40 },
	} {
		tr := good()
		spoil(&tr)
		if err := tw.Follow(t.Context(), tr); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := tw.State(); now.Seq != s.Seq || !tw.Clock().Now().Equal(s.Received) {
		t.Errorf("refusals moved the state from %d to %d", s.Seq, now.Seq)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tw.Follow(ctx, good()); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}

// halfway runs f when a motion of 4 s is in its middle, with time standing still, and returns Follow's error.
func halfway(t *testing.T, tw *Twin, ctx context.Context, f func()) error {
	t.Helper()
	done := make(chan error, 1)
	mid := tw.clk.holdAt(tw.Clock().Now().Add(2 * time.Second))
	go func() { done <- tw.Follow(ctx, reach(tw.State(), []float64{1, 0.2}, zero, 4*time.Second)) }()
	<-mid.C()
	if v := tw.State().QD[0]; v < 0.3 {
		t.Fatalf("joint 1 moves at %v in the middle", v)
	}
	f()
	mid.Stop()
	return <-done
}

// rests checks that the robot comes to a stop close to where it was.
func rests(t *testing.T, tw *Twin, from robot.State, within time.Duration) {
	t.Helper()
	after(t, tw, within)
	s := tw.State()
	for i, v := range s.QD {
		if math.Abs(v) > 0.002 {
			t.Errorf("joint %d still moves at %.4f after %v", i+1, v, within)
		}
	}
	if d := s.Q[0] - from.Q[0]; d < 0 || d > 0.05 {
		t.Errorf("joint 1 went on by %.4f rad while stopping", d)
	}
	held := s.Q[0]
	after(t, tw, time.Second)
	if d := math.Abs(tw.State().Q[0] - held); d > 1e-3 {
		t.Errorf("joint 1 drifts by %.5f rad while holding", d)
	}
}

func TestHaltRunsBesideFollow(t *testing.T) {
	for _, r := range []robot.Rung{robot.RungZeroVelocity, robot.RungCancel, robot.RungHold, robot.RungPower} {
		t.Run(r.String(), func(t *testing.T) {
			tw := start(t, Options{Robot: "fr3", World: "tabletop"})
			var from robot.State
			err := halfway(t, tw, t.Context(), func() {
				from = tw.State()
				if err := tw.Halt(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
			if !errors.Is(err, ErrHalted) {
				t.Errorf("Follow ended with %v", err)
			}
			rests(t, tw, from, 300*time.Millisecond)
			next := tw.Follow(t.Context(), reach(tw.State(), []float64{0.1}, zero, time.Second))
			if r != robot.RungPower {
				if next != nil {
					t.Errorf("a motion after %v: %v", r, next)
				}
				return
			}
			if !errors.Is(next, ErrRunstopped) || tw.State().Mode != robot.ModeRunstopped {
				t.Errorf("after the runstop: %v, mode %v", next, tw.State().Mode)
			}
			if err := tw.Grip(t.Context(), robot.JawTarget{}); !errors.Is(err, ErrRunstopped) {
				t.Errorf("Grip after the runstop: %v", err)
			}
			tw.Release()
			if err := tw.Follow(t.Context(), reach(tw.State(), []float64{0.1}, zero, time.Second)); err != nil {
				t.Errorf("after release: %v", err)
			}
		})
	}
}

func TestFollowHoldsWhenItsContextEnds(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop"})
	ctx, cancel := context.WithCancel(t.Context())
	var from robot.State
	err := halfway(t, tw, ctx, func() { from = tw.State(); cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Follow ended with %v", err)
	}
	rests(t, tw, from, 300*time.Millisecond)
}

func TestSecondMotionIsBusy(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop"})
	err := halfway(t, tw, t.Context(), func() {
		if err := tw.Follow(t.Context(), reach(tw.State(), nil, zero, time.Second)); !errors.Is(err, ErrBusy) {
			t.Errorf("second Follow: %v", err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPickPhysically(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop", Seed: 3})
	cube := tw.Truth().Objects["red_cube"]
	yaw := math.Atan2(cube.X().Y, cube.X().X)
	grasp := down(cube.P, yaw)
	above := grasp
	above.P.Z += 0.15
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(moveTool(t, tw, above, 3*time.Second))
	must(moveTool(t, tw, grasp, 2*time.Second))
	after(t, tw, 300*time.Millisecond)
	if d := tw.Truth().Tool.Dist(grasp); d > 0.001 {
		t.Errorf("tool settles %.2f mm off", 1000*d)
	}
	if a := tw.Truth().Tool.Angle(grasp); a > geom.Rad(0.2) {
		t.Errorf("tool settles %.3f degrees off", geom.Deg(a))
	}
	must(tw.Grip(t.Context(), robot.JawTarget{}))
	s := tw.State()
	if !s.Jaw.Holding || s.Jaw.Open || math.Abs(s.Jaw.Aperture-0.045) > 0.0015 {
		t.Fatalf("jaw on a 45 mm cube: %+v", s.Jaw)
	}
	before := tw.Truth()
	inHand := before.Tool.Inv().Mul(before.Objects["red_cube"])
	above.P.Z += 0.1
	must(moveTool(t, tw, above, 3*time.Second))
	after(t, tw, 500*time.Millisecond)
	now := tw.Truth()
	if got := now.Tool.Inv().Mul(now.Objects["red_cube"]); got.Dist(inHand) > 0.002 || got.Angle(inHand) > 0.02 {
		t.Errorf("the cube slipped %.2f mm and %.3f rad in the hand", 1000*got.Dist(inHand), got.Angle(inHand))
	}
	if d := now.Tool.Dist(above); d > 0.001 {
		t.Errorf("the loaded tool settles %.2f mm off", 1000*d)
	}
	must(tw.Grip(t.Context(), robot.JawTarget{Open: true}))
	if j := tw.State().Jaw; j.Holding || !j.Open || j.Aperture < 0.078 {
		t.Errorf("opened jaw: %+v", j)
	}
	after(t, tw, time.Second)
	if z := tw.Truth().Objects["red_cube"].P.Z; z > 0.1 {
		t.Errorf("the released cube is at z = %.3f", z)
	}
	must(tw.Grip(t.Context(), robot.JawTarget{}))
	if j := tw.State().Jaw; j.Holding || j.Open || j.Aperture > 0.001 {
		t.Errorf("jaw closed on nothing: %+v", j)
	}
}

func TestContactIsFelt(t *testing.T) {
	for _, c := range []struct {
		robot string
		press func(tw *Twin) error
	}{
		{"fr3", func(tw *Twin) error { // 1 cm into the table, beside everything
			tw.placeAway(t)
			if err := moveTool(t, tw, down(r3.Vec{X: 0.45, Z: 0.10}, 0), 3*time.Second); err != nil {
				return err
			}
			if q := tw.State().Contact; q > 2 {
				t.Errorf("%.1f N felt in free air", q)
			}
			return moveTool(t, tw, down(r3.Vec{X: 0.45, Z: -0.002}, 0), 3*time.Second)
		}},
		{"stretch4", func(tw *Twin) error { // out over the table, then down on it
			tw.placeAway(t)
			if err := tw.Follow(t.Context(), reach(tw.State(), []float64{0, 0.4}, zero, 3*time.Second)); err != nil {
				return err
			}
			if q := tw.State().Contact; q > 2 {
				t.Errorf("%.1f N felt in free air", q)
			}
			low := tw.p.odom.Point(r3.Vec{}).Z - tw.Truth().Tool.P.Z - 0.002 // the table's top is the world's zero
			return tw.Follow(t.Context(), reach(tw.State(), []float64{low}, zero, 4*time.Second))
		}},
	} {
		t.Run(c.robot, func(t *testing.T) {
			tw := start(t, Options{Robot: c.robot, World: "tabletop", Seed: 2})
			if err := c.press(tw); err != nil {
				t.Fatal(err)
			}
			if f := tw.State().Contact; f < 5 || f > 300 {
				t.Errorf("%.1f N felt when pressing on the table", f)
			}
		})
	}
}

func TestStretchPicksPhysically(t *testing.T) {
	tw := start(t, Options{Robot: "stretch4", World: "tabletop", Seed: 3})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tw.placeAway(t)
	tw.place(t, "red_cube", r3.Vec{X: 0.187, Y: -0.05, Z: 0.0225})
	cube := tw.Truth().Objects["red_cube"]
	must(tw.Follow(t.Context(), reach(tw.State(), []float64{0.05, 0, 0, 1}, zero, 2*time.Second)))
	side := geom.SE2{Y: cube.P.Y - tw.Truth().Tool.P.Y}
	must(tw.Follow(t.Context(), reach(tw.State(), nil, side, 3*time.Second)))
	at := tw.Truth().Tool
	at.P = r3.Add(cube.P, r3.Scale(-0.12, at.X()))
	must(moveTool(t, tw, at, 4*time.Second))
	at.P = cube.P
	must(moveTool(t, tw, at, 3*time.Second))
	after(t, tw, 500*time.Millisecond)
	if d := tw.Truth().Tool.Dist(at); d > 0.0015 {
		t.Errorf("tool settles %.2f mm off", 1000*d)
	}
	must(tw.Grip(t.Context(), robot.JawTarget{}))
	if j := tw.State().Jaw; !j.Holding || math.Abs(j.Aperture-0.045) > 0.002 {
		t.Fatalf("jaw on a 45 mm cube: %+v", j)
	}
	before := tw.Truth()
	inHand := before.Tool.Inv().Mul(before.Objects["red_cube"])
	must(tw.Follow(t.Context(), reach(tw.State(), []float64{0.2}, geom.SE2{Yaw: 0.4}, 4*time.Second)))
	after(t, tw, 500*time.Millisecond)
	now := tw.Truth()
	if got := now.Tool.Inv().Mul(now.Objects["red_cube"]); got.Dist(inHand) > 0.002 || got.Angle(inHand) > 0.03 {
		t.Errorf("the cube slipped %.2f mm and %.3f rad in the gripper", 1000*got.Dist(inHand), got.Angle(inHand))
	}
	if z := now.Objects["red_cube"].P.Z - cube.P.Z; z < 0.15 {
		t.Errorf("the cube was lifted by %.3f m", z)
	}
	must(tw.Grip(t.Context(), robot.JawTarget{Open: true}))
	after(t, tw, time.Second)
	if z := tw.Truth().Objects["red_cube"].P.Z - cube.P.Z; z > 0.05 {
		t.Errorf("the released cube is still %.3f m up", z)
	}
}

// place puts a loose object somewhere, unturned (world frame).
func (t *Twin) place(tb testing.TB, name string, p r3.Vec) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, j := range t.p.free {
		info := t.p.m.JointInfo(j)
		if t.p.m.Name(mj.Body, info.Body) == name {
			copy(t.p.d.Qpos()[info.Qpos:], []float64{p.X, p.Y, p.Z, 1, 0, 0, 0})
		}
	}
	if err := t.p.d.Forward(); err != nil {
		tb.Fatal(err)
	}
}

// placeAway moves every loose object out of the way.
func (t *Twin) placeAway(tb testing.TB) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, j := range t.p.free {
		q := t.p.d.Qpos()[t.p.m.JointInfo(j).Qpos:]
		q[0], q[1] = 0.75, -0.3+0.12*float64(i)
	}
	if err := t.p.d.Forward(); err != nil {
		tb.Fatal(err)
	}
}

func TestEqualCommandsGiveEqualStates(t *testing.T) {
	run := func(fork bool) (Truth, robot.State) {
		tw := start(t, Options{Robot: "fr3", World: "tabletop", Seed: 5})
		if err := tw.Follow(t.Context(), reach(tw.State(), []float64{0.5, 0.3, 0, 0.2, 0, 0.4}, zero, 2*time.Second)); err != nil {
			t.Fatal(err)
		}
		if fork {
			f, err := tw.Fork(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(f.Close)
			tw = f
		}
		if err := tw.Grip(t.Context(), robot.JawTarget{}); err != nil {
			t.Fatal(err)
		}
		if err := tw.Follow(t.Context(), reach(tw.State(), []float64{-0.5, 0.2}, zero, 2*time.Second)); err != nil {
			t.Fatal(err)
		}
		return tw.Truth(), tw.State()
	}
	a, sa := run(false)
	for _, fork := range []bool{false, true} {
		b, sb := run(fork)
		for n, v := range a.Joints {
			if v != b.Joints[n] {
				t.Errorf("fork %v: joint %s: %v and %v", fork, n, v, b.Joints[n])
			}
		}
		for n, v := range a.Objects {
			if v != b.Objects[n] {
				t.Errorf("fork %v: object %s: %v and %v", fork, n, v, b.Objects[n])
			}
		}
		if a.Tool != b.Tool || !a.Time.Equal(b.Time) || sa.Contact != sb.Contact && !fork {
			t.Errorf("fork %v: tool %v and %v, time %v and %v, contact %v and %v", fork, a.Tool, b.Tool, a.Time, b.Time, sa.Contact, sb.Contact)
		}
	}
}

func TestForkLeavesTheTwinAlone(t *testing.T) {
	tw := start(t, Options{Robot: "stretch4", World: "room", Seed: 5})
	before := tw.Truth()
	f, err := tw.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Follow(t.Context(), reach(f.State(), []float64{-0.2}, geom.SE2{X: 0.2}, 2*time.Second)); err != nil {
		t.Fatal(err)
	}
	now := tw.Truth()
	if now.Base != before.Base || now.Q[0] != before.Q[0] || !now.Time.Equal(before.Time) {
		t.Errorf("the twin moved with its fork: %+v", now.Base)
	}
	if b := f.Truth().Base; math.Abs(b.X-0.2) > 1e-3 {
		t.Errorf("the fork's base is at %+v", b)
	}
	f.Close()
	if err := tw.Follow(t.Context(), reach(tw.State(), nil, zero, 100*time.Millisecond)); err != nil {
		t.Errorf("the twin after its fork was closed: %v", err)
	}
}

func TestResetPlacesTheWorldAnew(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop", Seed: 1})
	first, srcs := tw.Truth(), tw.Sources()
	var seq uint64
	err := halfway(t, tw, t.Context(), func() {
		seq = tw.State().Seq
		if err := tw.Reset(t.Context(), 2); err != nil {
			t.Error(err)
		}
	})
	if !errors.Is(err, ErrReset) {
		t.Errorf("Follow over a reset ended with %v", err)
	}
	s, second := tw.State(), tw.Truth()
	if s.Seq <= seq || second.Time.Before(first.Time) || s.Mode != robot.ModeReady {
		t.Errorf("after reset: seq %d, time %v, mode %v", s.Seq, second.Time, s.Mode)
	}
	if second.Objects["red_cube"] == first.Objects["red_cube"] {
		t.Error("the world is placed as before")
	}
	for i, q := range second.Q {
		if math.Abs(q-first.Q[i]) > 1e-6 {
			t.Errorf("joint %d is not at home", i+1)
		}
	}
	for i, src := range tw.Sources() {
		if src != srcs[i] {
			t.Error("a source lost its identity")
		}
	}
	if err := tw.Reset(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if again := tw.Truth(); again.Objects["red_cube"] != first.Objects["red_cube"] {
		t.Errorf("seed 1 again: %v, first time %v", again.Objects["red_cube"], first.Objects["red_cube"])
	}
}

func TestBadPhysicsIsAFault(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop"})
	err := halfway(t, tw, t.Context(), func() {
		tw.mu.Lock()
		tw.p.d.Qvel()[3] = math.NaN()
		tw.mu.Unlock()
	})
	var badState *mj.BadStateError
	if !errors.As(err, &badState) {
		t.Errorf("Follow ended with %v", err)
	}
	if s := tw.State(); s.Mode != robot.ModeFaulted || s.Fault == "" {
		t.Errorf("mode %v, fault %q", s.Mode, s.Fault)
	}
	now := tw.Clock().Now()
	after(t, tw, 50*time.Millisecond) // time goes on, or nobody could wait for anything
	if !tw.Clock().Now().After(now) {
		t.Error("the clock stopped")
	}
	if err := tw.Follow(t.Context(), reach(tw.State(), nil, zero, time.Second)); !errors.As(err, &badState) {
		t.Errorf("Follow in a fault: %v", err)
	}
	if err := tw.Reset(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := tw.Follow(t.Context(), reach(tw.State(), []float64{0.1}, zero, time.Second)); err != nil {
		t.Errorf("after reset: %v", err)
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []Options{{Robot: "r2d2", World: "room"}, {Robot: "fr3", World: "moon"}, {Robot: "fr3", World: "room", Pace: "slow"}} {
		if tw, err := NewTwin(o); err == nil {
			tw.Close()
			t.Errorf("%+v made a twin", o)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
	}
	tw, err := NewTwin(Options{Robot: "fr3", World: "tabletop"})
	if err != nil {
		t.Fatal(err)
	}
	tw.Close() // never run
	tw.Close()
	if err := tw.Run(context.Background()); err == nil {
		t.Error("Run after Close")
	}
}
