package stretch

import (
	"context"
	"strings"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// Without a guard the base of a driver that repeats velocities for ever is not moved; with one the base stops when the
// client is gone in the middle of a motion.
func TestGuard(t *testing.T) {
	t.Parallel()
	b := start(t, GenB, func(c *Config, _ *double) { c.BaseUnguarded = false })
	p := b.plan(6*time.Second, geom.SE2{X: 0.8, Yaw: 0.5})
	if err := b.Follow(t.Context(), p); err == nil || !strings.Contains(err.Error(), "guard") {
		t.Fatalf("unguarded, the base ends with %v", err)
	}
	arm := b.plan(time.Second, geom.SE2{}, 0.03)
	if err := b.Follow(t.Context(), arm); err != nil {
		t.Fatalf("the arm alone: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	g := node(t, "viad_guard", b.domain)
	go func() { done <- Guard(ctx, Config{Node: g, Log: logger(t)}) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Guard: %v", err)
		}
	}()
	b.wait("guarded", func(robot.State) bool { return b.fact("base guard").Value == "heard" })
	short := b.plan(2*time.Second, geom.SE2{X: 0.1, Y: -0.05, Yaw: 0.2})
	if err := b.Follow(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	b.arrived(short)
	moving := b.follow(b.plan(6*time.Second, geom.SE2{X: 0.8, Yaw: 0.5}))
	b.until(t.Context(), 1500*time.Millisecond, func() bool { return false })
	_ = b.n.Close() // the client is gone with all that it might still say
	if err := b.ends(moving); err == nil {
		t.Error("a motion without a wire ends well")
	}
	b.rests(b.Deadman())
	if v := b.machine().BaseV.Norm(); v > 0.003 {
		t.Errorf("the base goes on with %v m/s", v)
	}
}

// A guard that dies while the base moves ends the motion: nobody would stop the base if the daemon died next.
func TestGuardDiesFirst(t *testing.T) {
	t.Parallel()
	b := start(t, GenB, func(c *Config, _ *double) { c.BaseUnguarded = false })
	ctx, cancel := context.WithCancel(context.Background())
	g, done := node(t, "viad_guard", b.domain), make(chan error, 1)
	go func() { done <- Guard(ctx, Config{Node: g, Log: logger(t)}) }()
	b.wait("guarded", func(robot.State) bool { return b.fact("base guard").Value == "heard" })
	moving := b.follow(b.plan(8*time.Second, geom.SE2{X: 0.8}))
	b.wait("on its way", func(s robot.State) bool { return s.BaseV.Norm() > 0.05 })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Guard: %v", err)
	}
	if err := b.ends(moving); err == nil || !strings.Contains(err.Error(), "guard") {
		t.Errorf("it ends with %v", err)
	}
	b.rests(2 * time.Second)
	if x := b.machine().Base.X; x > 0.6 {
		t.Errorf("the base went on to %.2f m", x)
	}
}

// A firmware that has its own watchdog stops the base without one.
func TestDeadmanBase(t *testing.T) {
	t.Parallel()
	b := start(t, GenAPrime)
	moving := b.follow(b.plan(8*time.Second, geom.SE2{X: 1.5, Y: 0.3, Yaw: 0.5}, 0.3, 0.2))
	b.wait("at full speed", func(s robot.State) bool { return s.BaseV.Norm() > 0.22 })
	_ = b.n.Close()
	b.rests(b.Deadman())
	_ = b.ends(moving)
}
