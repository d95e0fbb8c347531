package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"viad/drivers/robot"
)

// goal is a trajectory being followed.
type goal struct {
	done chan error
	feed *timer
}

// Follow runs a trajectory on the robot's own controller. It refuses, before anything moves, one that is
// malformed, longer than Deadman, faster than the machine, out of the joint ranges, not ending at rest, or
// starting more than 0.05 rad or 1 cm from the measured state. It returns at the trajectory's last point;
// the robot then holds that point. When ctx ends it brakes, holds and returns the context's error.
func (t *Twin) Follow(ctx context.Context, tr robot.Trajectory) error {
	g, err := t.startGoal(ctx, tr)
	if err != nil {
		return err
	}
	return t.standBy(ctx, g.feed, g.done, func() {
		if t.goal == g {
			t.goal = nil
			t.brake(1)
			t.publish()
		}
	})
}

// ready says whether a motion may begin. The caller holds mu.
func (t *Twin) ready(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case t.closed:
		return ErrOver
	case t.isCut():
		return ErrCut
	case t.fault != nil:
		return t.fault
	case t.runstop:
		return ErrRunstopped
	case t.governor != nil:
		return ErrGoverned
	}
	return nil
}

func (t *Twin) startGoal(ctx context.Context, tr robot.Trajectory) (*goal, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	if t.goal != nil {
		return nil, ErrBusy
	}
	measured := make([]float64, len(t.p.axes))
	for i := range t.p.axes {
		var v float64
		measured[i], v = t.p.axes[i].x(t.p.d.Qpos(), t.p.d.Qvel())
		if math.Abs(v) > startSpeed {
			return nil, fmt.Errorf("twin: %s still moves at %.3f per second; wait for standstill", t.p.axes[i].spec.name, v)
		}
	}
	s, err := newSpline(&t.model, t.p.axes, tr, measured)
	if err != nil {
		return nil, err
	}
	for i, r := range t.servo.ref {
		s.offset = append(s.offset, r.x-s.knots[0].x[i])
	}
	t.goal = &goal{done: make(chan error, 1), feed: t.feeder()}
	t.path, t.began, t.resting = s, t.clk.now.Load(), false
	t.publish()
	t.clk.nudge()
	return t.goal, nil
}

// brake replaces the path by a stop from the measured state. hard above 1 stops that much harder.
func (t *Twin) brake(hard float64) {
	r := ramp{t: 0.04 / hard, load: slices.Clone(t.servo.integral)}
	for i := range t.p.axes {
		a := &t.p.axes[i]
		x, v := a.x(t.p.d.Qpos(), t.p.d.Qvel())
		r.from = append(r.from, refPoint{x: x, v: v})
		r.t = math.Max(r.t, math.Abs(v)/(a.spec.brake*hard))
	}
	t.path, t.began, t.resting = r, t.clk.now.Load(), false
	t.clk.nudge()
}

// endMotion ends a running Follow and Grip with err; the robot brakes and holds. The caller holds mu.
func (t *Twin) endMotion(err error) {
	if t.goal != nil {
		t.finish(t.goal.done, err)
		t.goal = nil
	}
	if t.grip != nil {
		t.finish(t.grip.done, err)
		t.grip = nil
		t.jaw.freeze(t.p)
	}
	t.publish()
	t.tell()
}

// Halt ends Follow and Grip with ErrHalted and holds at the measured pose. All rungs brake; RungPower
// brakes hardest and engages the runstop, which only Release or Reset clears. What the jaw holds it keeps.
func (t *Twin) Halt(_ context.Context, r robot.Rung) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return ErrOver
	case t.isCut():
		return ErrCut
	case t.fault != nil:
		t.endMotion(t.fault)
		return nil // it stands already
	}
	hard := 1.0
	if r == robot.RungPower {
		hard = 3
		t.runstop = true
	}
	t.halt(hard, fmt.Errorf("%w (%v)", ErrHalted, r))
	return nil
}

// halt brakes and ends what is running with err. The caller holds mu.
func (t *Twin) halt(hard float64, err error) {
	if t.fault == nil && t.governor == nil {
		t.brake(hard)
	}
	t.endMotion(err)
}

// gripGoal is a jaw motion being watched.
type gripGoal struct {
	open  bool
	steps int // since the start
	limit int // steps after which it is given up
	done  chan error
	feed  *timer
}

// Grip opens or closes the jaw with a limited force and returns when it is at rest, at its end or on
// something. A closed jaw goes on pressing.
func (t *Twin) Grip(ctx context.Context, to robot.JawTarget) error {
	g, err := t.startGrip(ctx, to)
	if err != nil {
		return err
	}
	return t.standBy(ctx, g.feed, g.done, func() {
		if t.grip == g {
			t.grip = nil
			t.jaw.freeze(t.p)
			t.publish()
		}
	})
}

func (t *Twin) startGrip(ctx context.Context, to robot.JawTarget) (*gripGoal, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	if t.grip != nil {
		return nil, ErrBusy
	}
	t.jaw.target = -jawPress
	if to.Open {
		t.jaw.target = t.mach.jaw.max
	}
	t.jaw.ref, _ = t.p.jaw.x(t.p.d.Qpos(), t.p.d.Qvel())
	t.jaw.still = 0
	most := time.Duration(t.mach.jaw.max/t.mach.jaw.speed*float64(time.Second)) + 3*time.Second
	t.grip = &gripGoal{open: to.Open, limit: int(int64(most) / t.p.dt), done: make(chan error, 1), feed: t.feeder()}
	t.publish()
	t.clk.nudge()
	return t.grip, nil
}

// watch ends the grip when the jaw came to rest. The caller holds mu.
func (g *gripGoal) watch(t *Twin) {
	g.steps++
	dt := float64(t.p.dt) * 1e-9
	if g.steps > g.limit {
		t.grip = nil
		t.jaw.freeze(t.p)
		t.finish(g.done, fmt.Errorf("twin: the jaw did not come to rest"))
		return
	}
	if float64(g.steps)*dt < jawMoveMin || float64(t.jaw.still)*dt < jawSettle {
		return
	}
	t.grip = nil
	x, _ := t.p.jaw.x(t.p.d.Qpos(), t.p.d.Qvel())
	if g.open && x > t.mach.jaw.max-0.005 {
		t.sense.open = true
	}
	if !g.open && x < t.mach.jaw.max-0.001 {
		t.sense.open = false
	}
	t.finish(g.done, nil)
}

// freeze keeps the jaw where it is; one that presses on something keeps pressing.
func (j *jawServo) freeze(p *plant) {
	x, _ := p.jaw.x(p.d.Qpos(), p.d.Qvel())
	if j.target < 0 && j.still > 0 {
		return
	}
	j.target, j.ref = x, x
}
