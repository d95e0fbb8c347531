package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"viad/drivers/geom"
	"viad/drivers/hello"
	"viad/drivers/robot"
)

// How a plan is followed.
const (
	lead      = 400 * time.Millisecond // how far ahead on the plan a goal reaches
	delay     = 60 * time.Millisecond  // from a reading to what a command made of it does
	waitMost  = 4 * time.Second        // that the plan waits in one piece for whoever is behind
	endMost   = 3 * time.Second        // after the plan's end
	endSpeed  = 300 * time.Millisecond // in which what is left at the end is done
	failsMost = 2                      // steps in a row that did not go out
	restTurn  = 0.01                   // rad/s that count as rest
	restSlide = 0.003                  // m/s
	slowSlide = 0.01                   // m/s, the least that is asked for
	slowTurn  = 0.1                    // rad/s
	gain      = 3.0                    // per second, of what is off the plan
)

// hull is how far something may be off the plan before the plan waits for it; fine and good are what has arrived: fine is
// tried for, good is enough.
type hull struct{ behind, fine, good float64 }

func hullOf(joint int) hull {
	if joint <= armAxis {
		return hull{0.03, 0.001, 0.003}
	}
	return hull{0.15, 0.004, 0.01}
}

// baseHull is the same of the base, metres and radians.
func baseHull() (slide, turn hull) { return hull{0.04, 0.0015, 0.006}, hull{0.08, 0.003, 0.01} }

// run is one motion.
type run struct {
	r     *Robot
	t     robot.Trajectory
	model *robot.Model
	moves bool // the base is part of it

	s       time.Duration // the plan's own time
	last    time.Time     // of the last tick
	waited  time.Duration // in one piece
	endedAt time.Time     // when the plan's time was over
	calmAt  time.Time     // since when everything is at rest
	stepAt  time.Time     // of the last step
	steps   int
	fails   int             // steps in a row that did not go out
	goals   [joints]float64 // what was asked of each joint last
	speeds  [joints]float64
	asked   [joints]time.Time
	final   [joints]bool     // the newest goal is the plan's end
	rolling [3]time.Time     // since when each wheel is asked to turn; zero: it is not
	modes   [axes]hello.Mode // that were commanded
	commAt  [axes]time.Time  // when the mode was commanded first
	contact [axes]uint32     // contacts before
}

// Follow leads the robot along the trajectory to its end.
func (r *Robot) Follow(ctx context.Context, t robot.Trajectory) error {
	m, err := r.admit(t)
	if err != nil {
		return err
	}
	ctx, done, err := r.begin(ctx, "a motion")
	if err != nil {
		return err
	}
	defer done()
	if err := r.wrist.takeHold(ctx, yawServo, pitchServo, rollServo); err != nil {
		return refused(err)
	}
	err = m.lead(ctx)
	switch {
	case errors.Is(err, ErrHalted): // Halt does that itself
	case err != nil:
		stopped := r.rest(ctx)
		err = errors.Join(r.named(ctx, err), stopped)
	case m.moves:
		err = r.standBase(ctx)
	}
	return err
}

// errRunstop is replaced by words that name the cause.
var errRunstop = errors.New("the runstop is engaged")

// named waits for the runstop's cause, which the power board tells later than the steppers tell the runstop.
func (r *Robot) named(ctx context.Context, err error) error {
	if !errors.Is(err, errRunstop) {
		return err
	}
	r.until(context.WithoutCancel(ctx), haltTime/2, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.power.board == nil || r.power.status.Runstopped()
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.New(r.runstopWords())
}

// rest brakes with a time of its own: what ended the motion may have ended its context.
func (r *Robot) rest(ctx context.Context) error {
	ctx, cancel := r.within(context.WithoutCancel(ctx), haltTime)
	defer cancel()
	return r.brake(ctx)
}

// standBase holds the base where it came to rest.
func (r *Robot) standBase(ctx context.Context) error {
	if err := r.take(ctx); err != nil {
		return err
	}
	defer r.give()
	err := errors.Join(r.order(ctx, r.roll(geom.SE2{})), r.order(ctx, holdWheels()))
	if err != nil && ctx.Err() == nil { // as a step of the motion, it may go wrong once
		err = r.order(ctx, holdWheels())
	}
	return err
}

func refused(err error) error { return fmt.Errorf("refused: %w", err) }

// admit checks everything that can be checked before anything moves.
func (r *Robot) admit(t robot.Trajectory) (*run, error) {
	r.mu.Lock()
	busy, doing := r.running != nil, r.doing
	r.mu.Unlock()
	if busy {
		return nil, fmt.Errorf("%w: %s", ErrBusy, doing)
	}
	s := r.State()
	if s.Mode != robot.ModeReady {
		return nil, fmt.Errorf("refused: the robot is %s: %s", s.Mode, s.Fault)
	}
	if d, most := r.clock.Now().Sub(s.Received), staleStart+r.config.Patience; d > most {
		return nil, fmt.Errorf("refused: the oldest part of the newest reading is %v old, limit %v", d.Round(time.Millisecond), most)
	}
	model := r.Model()
	if err := t.Check(model, s); err != nil {
		return nil, refused(err)
	}
	if i, past := s.Implausible(model); i >= 0 {
		return nil, fmt.Errorf("refused: %s is read %.3f past its limit: home the robot with its own tool", model.Joints[i].Name, past)
	}
	if d := t.Duration(); d > robot.LongestGoal {
		return nil, fmt.Errorf("refused: the trajectory takes %v, limit %v", d, robot.LongestGoal)
	}
	m := &run{r: r, t: t, model: model}
	for _, p := range t.Points {
		gap := p.Base.Mul(t.Points[0].Base.Inv())
		m.moves = m.moves || gap.Norm() > 1e-4 || math.Abs(geom.WrapAngle(p.Base.Yaw-t.Points[0].Base.Yaw)) > 1e-4
	}
	if m.moves {
		if err := r.guarded(); err != nil {
			return nil, refused(err)
		}
	}
	return m, nil
}

// guarded says whether wheels would stop without this daemon.
func (r *Robot) guarded() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := omni0; i < axes; i++ {
		if a := &r.axes[i]; !a.flash.Has(hello.ConfigWatchdog) {
			return fmt.Errorf("the %s has its velocity watchdog off, so that the base would drive on for ever if this daemon died: move without the base, or have the robot's own tool set the board's gains and write them to its flash", a.units.name)
		}
	}
	return nil
}

// lead goes through the plan.
func (m *run) lead(ctx context.Context) error {
	r := m.r
	tick := r.clock.Ticker(tickTime)
	defer tick.Stop()
	m.last = r.clock.Now()
	m.note()
	for {
		now := r.clock.Now()
		v := r.snapshot()
		if err := r.healthy(&v, now); err != nil {
			return err
		}
		if err := m.obeyed(now); err != nil {
			return err
		}
		if err := m.advance(&v, now); err != nil {
			return err
		}
		if err := m.frozen(&v, now); err != nil {
			return err
		}
		if err := m.step(ctx, &v, now); err != nil {
			return err
		}
		if done, err := m.over(&v, now); done {
			return err
		}
		select {
		case <-ctx.Done():
			return ended(ctx)
		case <-tick.C():
		}
	}
}

// healthy says why a motion may not go on.
func (r *Robot) healthy(v *view, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.links {
		if !l.up {
			return errors.New(l.why)
		}
	}
	if r.runstopped() {
		return errRunstop
	}
	if bad := r.bad(now); bad != "" {
		return errors.New(bad)
	}
	if d, most := now.Sub(v.oldest()), staleGoing+r.config.Patience; d > most {
		return fmt.Errorf("the oldest part of the newest reading is %v old, limit %v: look at the cables of the base", d.Round(time.Millisecond), most)
	}
	return nil
}

// advance lets the plan's time go on, unless something is behind.
func (m *run) advance(v *view, now time.Time) error {
	dt := min(now.Sub(m.last), 3*tickTime)
	m.last = now
	end := m.t.Duration()
	if m.s >= end {
		return nil
	}
	who := m.behind(v)
	if who == "" {
		m.waited = 0
		if m.s = min(m.s+dt, end); m.s == end {
			m.endedAt = now
		}
		return nil
	}
	if m.waited += dt; m.waited > waitMost {
		return fmt.Errorf("%s does not follow: it has been behind the plan for %v; look what holds it", who, waitMost)
	}
	return nil
}

// behind names what is further from the plan than what it was told to do ahead of it.
func (m *run) behind(v *view) string {
	at, ahead := m.t.At(m.s), m.t.At(m.s+lead)
	for i, j := range m.model.Joints {
		lo, hi := math.Min(at.Q[i], ahead.Q[i]), math.Max(at.Q[i], ahead.Q[i])
		h := hullOf(i).behind
		if v.q[i] < lo-h || v.q[i] > hi+h {
			return j.Name
		}
	}
	if m.moves {
		slide, turn := baseHull()
		if e := baseError(at.Base, v.base); e.Norm() > slide.behind || math.Abs(e.Yaw) > turn.behind {
			return "the base"
		}
	}
	return ""
}

// baseError is where to is, seen from the base at from.
func baseError(to, from geom.SE2) geom.SE2 {
	e := from.Inv().Mul(to)
	return geom.SE2{X: e.X, Y: e.Y, Yaw: geom.WrapAngle(to.Yaw - from.Yaw)}
}

// over says whether the motion has ended, by measurement alone.
func (m *run) over(v *view, now time.Time) (bool, error) {
	if m.endedAt.IsZero() {
		return false, nil
	}
	read := v.oldest() // rest is in readings that are new, not in the time that passes without any
	if v.fast(restTurn, restSlide) {
		m.calmAt = time.Time{}
	} else if m.calmAt.IsZero() {
		m.calmAt = read
	}
	calm := !m.calmAt.IsZero() && read.Sub(m.calmAt) >= 5*tickTime
	who, _ := m.off(v, func(h hull) float64 { return h.fine })
	if calm && who == "" {
		return true, nil
	}
	if now.Sub(m.endedAt) < endMost {
		return false, nil
	}
	who, by := m.off(v, func(h hull) float64 { return h.good })
	switch {
	case who == "" && calm:
		return true, nil
	case who == "":
		return true, fmt.Errorf("the robot still moves %v after the end of the plan", endMost)
	}
	return true, fmt.Errorf("the plan is over and %s is measured %s from its end; look what holds it", who, by)
}

// off names what is further than that from the end.
func (m *run) off(v *view, of func(hull) float64) (who, by string) {
	end := m.t.Points[len(m.t.Points)-1]
	for i, j := range m.model.Joints {
		if d := math.Abs(end.Q[i] - v.q[i]); d > of(hullOf(i)) {
			return j.Name, amount(d, j.Prismatic)
		}
	}
	if m.moves {
		slide, turn := baseHull()
		e := baseError(end.Base, v.base)
		if e.Norm() > of(slide) {
			return "the base", amount(e.Norm(), true)
		}
		if math.Abs(e.Yaw) > of(turn) {
			return "the base", amount(math.Abs(e.Yaw), false)
		}
	}
	return "", ""
}

func amount(d float64, metres bool) string {
	if metres {
		return fmt.Sprintf("%.1f mm", d*1e3)
	}
	return fmt.Sprintf("%.3f rad", d)
}
