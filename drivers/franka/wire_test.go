package franka

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
	"viad/ros"
	"viad/sim"
	"viad/sim/wire"
)

// twinned is a driver on the wire of a twin, which is written from what is known of the robot and not from the driver.
type twinned struct {
	*bench
	twin *sim.Twin
	wire *wire.Franka
}

func onTwin(t *testing.T, kind Kind, there, here ros.Node, f wire.Faults, change func(*Config)) *twinned {
	t.Helper()
	tw := must[*sim.Twin](t)(sim.NewTwin(sim.Options{Robot: string(kind), World: "tabletop", Seed: 1, Pace: sim.PaceReal, Light: true}))
	t.Cleanup(tw.Close)
	go func() {
		if err := tw.Run(context.Background()); err != nil && !errors.Is(err, sim.ErrOver) {
			t.Error(err)
		}
	}()
	text, err := os.ReadFile("../urdf/models/" + string(kind) + ".urdf")
	if err != nil {
		t.Fatal(err)
	}
	w := must[*wire.Franka](t)(wire.NewFranka(tw, there, string(text), f))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("wire: %v", err)
		}
		_ = w.Close()
	})
	c := Config{Robot: kind, Node: here, Log: logger(t)}
	if change != nil {
		change(&c)
	}
	r := must[*Robot](t)(Open(t.Context(), c))
	over := make(chan error, 1)
	live, end := context.WithCancel(context.Background())
	go func() { over <- r.Run(live) }()
	t.Cleanup(func() {
		end()
		if err := <-over; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = r.Close()
	})
	b := &twinned{bench: &bench{Robot: r, t: t, n: here}, twin: tw, wire: w}
	b.ready()
	return b
}

func fr3Twin(t *testing.T, f wire.Faults, change func(*Config)) *twinned {
	t.Helper()
	at := domain(t)
	return onTwin(t, FR3, node(t, "franka", at), node(t, "viad_franka", at), f, change)
}

func (b *twinned) subject() robottest.Subject {
	return robottest.Subject{
		Body: b, Clock: b.clock, Model: b.Model(), Machine: b.twin.Body().State,
		Sever: func() { _ = b.n.Close() },
	}
}

func TestTwinSuite(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute; the double's suite runs")
	}
	robottest.CheckBody(t, func(t *testing.T) robottest.Subject { return fr3Twin(t, wire.Faults{}, nil).subject() }, nil)
}

func TestTwinSuitePanda(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute; the double's suite runs")
	}
	addr, _ := core(t)
	robottest.CheckBody(t, func(t *testing.T) robottest.Subject {
		return onTwin(t, Panda, node1(t, addr, "/franka"), node1(t, addr, "/viad"), wire.Faults{}, nil).subject()
	}, nil)
}

// What the robot shows when it is well, and with its faults.
func TestTwinFaults(t *testing.T) {
	t.Run("well", func(t *testing.T) {
		b := fr3Twin(t, wire.Faults{}, nil)
		for _, f := range b.Facts() {
			t.Logf("%s: %s %s", f.Name, f.Value, f.Bad)
		}
		if err := b.Follow(t.Context(), b.swing(0.3, 2*time.Second)); err != nil {
			t.Error(err)
		}
	})
	t.Run("user stop in mid-motion", func(t *testing.T) {
		b := fr3Twin(t, wire.Faults{}, nil)
		done := b.follow(b.swing(0.4, 4*time.Second))
		b.moves()
		b.wire.Set(func(f *wire.Faults) { f.UserStop = true })
		b.refused(<-done, "user stop")
		b.says(robot.ModeRunstopped, "user stop", taskRecover)
		b.refused(b.Do(t.Context(), taskRecover), "user stop")
		b.wire.Set(func(f *wire.Faults) { f.UserStop = false })
		b.says(robot.ModeRunstopped, "user stop") // latched
		if err := b.Do(t.Context(), taskRecover); err != nil {
			t.Fatal(err)
		}
		b.ready()
	})
	t.Run("a joint that is not a number", func(t *testing.T) {
		b := fr3Twin(t, wire.Faults{}, nil)
		b.ready()
		b.wire.Set(func(f *wire.Faults) { f.NaNJoint = true })
		b.says(robot.ModeFaulted, "not whole", "is not a number")
		if f := b.Facts(); !slices.ContainsFunc(f, func(f robot.Fact) bool { return strings.Contains(f.Bad, "is not a number") }) {
			t.Errorf("no fact says so: %+v", f)
		}
		if err := b.Halt(t.Context(), robot.RungHold); err == nil || !strings.Contains(err.Error(), "is not a number") {
			t.Errorf("held at no number: %v", err)
		}
		b.wire.Set(func(f *wire.Faults) { f.NaNJoint = false })
		b.ready()
	})
	t.Run("not homed", func(t *testing.T) {
		b := fr3Twin(t, wire.Faults{Unhomed: true}, nil)
		b.refused(b.Grip(t.Context(), robot.JawTarget{}), taskHome)
		if err := b.Do(t.Context(), taskHome); err != nil {
			t.Fatal(err)
		}
		if err := b.Grip(t.Context(), robot.JawTarget{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("rival", func(t *testing.T) {
		b := fr3Twin(t, wire.Faults{}, nil)
		b.wire.Set(func(f *wire.Faults) { f.Rival = "teach" })
		b.says(robot.ModeFaulted, "teach has the arm's joints")
	})
	t.Run("stale hand", func(t *testing.T) {
		b := fr3Twin(t, wire.Faults{}, nil)
		b.wire.Set(func(f *wire.Faults) { f.StaleHand = true })
		b.refused(b.Grip(t.Context(), robot.JawTarget{}), "old value")
	})
	t.Run("succeeds early", func(t *testing.T) {
		b := fr3Twin(t, wire.Faults{SuccessEarly: true}, nil)
		tr := b.swing(0.3, 2*time.Second)
		began := b.clock.Now()
		if err := b.Follow(t.Context(), tr); err != nil {
			t.Logf("Follow: %v", err)
		} else if _, off := b.furthest(b.State().Q, tr.Points[len(tr.Points)-1].Q); off > arrivedTol || b.clock.Now().Sub(began) < 1500*time.Millisecond {
			t.Errorf("believed a success %v rad from the goal", off)
		}
	})
	t.Run("cancel ignored", func(t *testing.T) {
		b := fr3Twin(t, wire.Faults{IgnoreCancel: true}, nil)
		done := b.follow(b.swing(0.5, 4*time.Second))
		b.moves()
		for r := robot.RungZeroVelocity; r <= robot.RungHold; r++ {
			if err := b.Halt(t.Context(), r); err != nil {
				t.Logf("%v: %v", r, err)
			}
		}
		if err := <-done; !errors.Is(err, ErrHalted) {
			t.Errorf("Follow: %v", err)
		}
		if v := fastest(b.twin.Body().State().QD); v > restSpeed {
			t.Errorf("still moves at %v", v)
		}
		b.wire.Set(func(f *wire.Faults) { f.IgnoreCancel = false }) // its goals end with the test
	})
}
