package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"viad/drivers/feetech"
	"viad/drivers/robot"
)

// How a grip is judged, by the measured aperture.
const (
	jawNear  = 0.002 // m: that near it has arrived
	jawMost  = 6 * time.Second
	jawCalm  = 400 * time.Millisecond  // at rest, it is on something or blocked
	jawStart = 1500 * time.Millisecond // in which it must have begun to move: a servo that presses has its goal to take back first
	jawThere = 160 * time.Millisecond  // at rest, where it was sent
)

// Grip opens or closes the jaw and waits until it is at rest: there, on something, or blocked. It keeps pressing on what it
// closed on.
func (r *Robot) Grip(ctx context.Context, target robot.JawTarget) error {
	s := r.State()
	switch {
	case s.Mode == robot.ModeMoving:
		return ErrBusy
	case s.Mode != robot.ModeReady:
		return fmt.Errorf("refused: the robot is %s: %s", s.Mode, s.Fault)
	case !s.Jaw.Known:
		return errors.New("refused: the gripper is not measured: look at its servo")
	}
	ctx, done, err := r.begin(ctx, "a grip")
	if err != nil {
		return err
	}
	defer done()
	if err := r.wrist.takeHold(ctx, gripServo); err != nil {
		return refused(err)
	}
	r.setGripping(true)
	defer r.setGripping(false)
	spec := r.Model().Jaw
	want := spec.Min
	if target.Open {
		want = spec.Max
	}
	g := &grip{r: r, from: s.Jaw.Aperture, want: want, speed: spec.Speed}
	if err := g.lead(ctx); err != nil {
		if !errors.Is(err, ErrHalted) {
			stopped := r.rest(ctx)
			err = errors.Join(r.named(ctx, err), stopped)
		}
		return err
	}
	r.mu.Lock()
	r.jawOpen = &target.Open
	r.mu.Unlock()
	return nil
}

func (r *Robot) setGripping(on bool) {
	r.mu.Lock()
	r.gripping = on
	r.mu.Unlock()
}

// grip is one opening or closing: its goals run ahead of it by no more than those of a motion.
type grip struct {
	r          *Robot
	from, want float64 // m
	speed      float64 // m/s

	began, stepAt, calm time.Time
	asked               float64
	moved               bool
	fails               int
}

func (g *grip) lead(ctx context.Context) error {
	r := g.r
	tick := r.clock.Ticker(tickTime)
	defer tick.Stop()
	g.began, g.calm, g.asked = r.clock.Now(), r.clock.Now(), math.NaN()
	for {
		now := r.clock.Now()
		v := r.snapshot()
		if err := r.healthy(&v, now); err != nil {
			return err
		}
		if err := g.step(ctx, now); err != nil {
			return err
		}
		if done, err := g.over(&v, now); done {
			return err
		}
		select {
		case <-ctx.Done():
			return ended(ctx)
		case <-tick.C():
		}
	}
}

// step sends the next goal when it is due.
func (g *grip) step(ctx context.Context, now time.Time) error {
	way := g.speed * (now.Sub(g.began) + lead).Seconds()
	goal := g.from + math.Copysign(math.Min(way, math.Abs(g.want-g.from)), g.want-g.from)
	if goal == g.asked || now.Sub(g.stepAt) < stepEvery {
		return nil
	}
	g.stepAt = now
	j := g.r.wrist.grip
	slope := math.Abs(j.angle(goal+1e-4)-j.angle(goal-1e-4)) / 2e-4
	rad := math.Min(math.Max(j.angle(goal), j.joint.Min), j.joint.Max)
	err := g.r.take(ctx)
	if err == nil {
		err = g.r.wrist.goals(ctx, map[int]feetech.Goal{gripServo: {Position: rad, Speed: math.Min(g.speed*slope, gripSpeed), Accel: gripAccel}})
		g.r.give()
	}
	switch {
	case err == nil:
		g.asked, g.fails = goal, 0
		return nil
	case ctx.Err() != nil:
		return ended(ctx)
	}
	if g.fails++; g.fails >= failsMost {
		return err
	}
	return nil
}

// over says how it came to rest, by readings and their own times.
func (g *grip) over(v *view, now time.Time) (bool, error) {
	j := v.jaw
	g.moved = g.moved || math.Abs(j.Aperture-g.from) > jawNear
	if math.Abs(j.Speed) > jawRest {
		g.calm = v.jawAt
	}
	switch rest := v.jawAt.Sub(g.calm); {
	case g.asked == g.want && math.Abs(j.Aperture-g.want) <= jawNear && rest >= jawThere,
		g.moved && rest >= jawCalm && now.Sub(g.began) > lead:
		return true, nil
	case !g.moved && now.Sub(g.began) > jawStart && rest >= jawStart && g.asked == g.want || now.Sub(g.began) > jawMost:
		if g.moved {
			return true, fmt.Errorf("the jaw is not at rest after %v", jawMost)
		}
		return true, errors.New("the jaw did not move: look at the gripper, and whether something holds it")
	}
	return false, nil
}
