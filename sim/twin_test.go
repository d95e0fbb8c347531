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
	"viad/sim/mj"
)

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
	err := halfway(t.Context(), t, tw, func() {
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
	err := halfway(t.Context(), t, tw, func() {
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
