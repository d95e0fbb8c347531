package sim

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
func halfway(ctx context.Context, t *testing.T, tw *Twin, f func()) error {
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
			err := halfway(t.Context(), t, tw, func() {
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
	err := halfway(ctx, t, tw, func() { from = tw.State(); cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Follow ended with %v", err)
	}
	rests(t, tw, from, 300*time.Millisecond)
}

func TestSecondMotionIsBusy(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop"})
	err := halfway(t.Context(), t, tw, func() {
		if err := tw.Follow(t.Context(), reach(tw.State(), nil, zero, time.Second)); !errors.Is(err, ErrBusy) {
			t.Errorf("second Follow: %v", err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
