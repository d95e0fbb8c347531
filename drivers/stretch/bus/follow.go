package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"viad/drivers/geom"
	"viad/drivers/hello"
	"viad/drivers/robot"
	"viad/drivers/stretch/course"
)

// How a plan is followed.
const (
	lead      = 400 * time.Millisecond // how far ahead on the plan a goal reaches
	delay     = 60 * time.Millisecond  // from a reading to what a command made of it does
	endSpeed  = 300 * time.Millisecond // in which what is left at the end is done
	failsMost = 2                      // steps in a row that did not go out
	slowSlide = 0.01                   // m/s, the least that is asked for
	slowTurn  = 0.1                    // rad/s
	gain      = 3.0                    // per second, of what is off the plan
)

// run is one motion.
type run struct {
	course.Course
	r       *Robot
	stepAt  time.Time // of the last step
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
	case m.Moves:
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
	m := &run{Course: course.New(t, model, tickTime, func(int) time.Duration { return lead }), r: r}
	if m.Moves {
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
	m.Begin(r.clock.Now())
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
		if err := m.Advance(v.measured(), now); err != nil {
			return err
		}
		if err := m.frozen(&v, now); err != nil {
			return err
		}
		if err := m.step(ctx, &v, now); err != nil {
			return err
		}
		if done, err := m.Over(v.measured(), now); done {
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
