package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"viad/drivers/geom"
	"viad/drivers/hello"
	"viad/drivers/serial"
)

// axis is one stepper board. What is not the device's own is under the Robot's mu.
type axis struct {
	r     *Robot
	place int
	units axisUnits

	board  *hello.Stepper // nil: not there
	info   hello.Info
	flash  hello.Config
	status hello.StepperStatus
	seen   measured
	late   stampAge
	waits  time.Time // since when it has been waiting for the motor sync; zero: it does not
}

func (a *axis) greet(ctx context.Context, p *serial.Port) error {
	b, err := hello.OpenStepper(ctx, p)
	if err != nil {
		return err
	}
	i := b.Info()
	if i.Motor != hello.MotorUnsaid && i.Motor != a.units.motor {
		return fmt.Errorf("the board says that it drives another motor (number %d instead of %d): the ports' names are mixed up, look at the udev rules", i.Motor, a.units.motor)
	}
	c, err := b.FlashConfig(ctx)
	if err != nil {
		return err
	}
	s, err := b.Status(ctx)
	if err != nil {
		return err
	}
	if a.units.metre != 0 && s.Diag.Has(hello.DiagHomed) { // without its zero they would be somewhere else
		if err := b.Limits(ctx, a.units.lo/a.units.metre, a.units.hi/a.units.metre); err != nil {
			return err
		}
	}
	now := a.r.clock.Now()
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	a.board, a.info, a.flash, a.status, a.late = b, i, c, s, stampAge{}
	a.waits, a.seen = time.Time{}, measured{now, now}
	if a.place >= omni0 { // another zero than before
		a.r.odometry.begun = false
	}
	return nil
}

func (a *axis) look(ctx context.Context) error {
	s, err := a.board.Status(ctx)
	if errors.Is(err, hello.ErrStale) { // at once: which of the two it is
		s, err = a.board.Status(ctx)
	}
	if errors.Is(err, hello.ErrRestarted) {
		return errors.Join(err, a.disown(ctx))
	}
	if err != nil {
		return err
	}
	now := a.r.clock.Now()
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	now = now.Add(-a.late.late(now, s.Stamp)) // when it was measured
	if s.Pos != a.status.Pos {
		a.seen.moved = now
	}
	if s.Pos != a.status.Pos || s.Vel != a.status.Vel {
		a.r.changed = now
	}
	if !s.Diag.Has(hello.DiagWaiting) {
		a.waits = time.Time{}
	} else if a.waits.IsZero() {
		a.waits = now
	}
	a.seen.at, a.status = now, s
	a.r.seq++
	if a.place >= omni0 {
		a.r.odometry.take(a.place-omni0, s.Pos, s.Vel, now)
	}
	a.r.watchStrange(now)
	return nil
}

func (a *axis) lost() { a.board = nil }

// disown keeps goals and stops in numbers of before from a board that was started anew, and takes back what it may have
// been sent since: safety is what it starts in, and waits for no motor sync.
func (a *axis) disown(ctx context.Context) error {
	b := a.board
	a.r.mu.Lock()
	a.board = nil
	a.r.mu.Unlock()
	safe := func() error {
		within, cancel := a.r.within(ctx, sendTime)
		defer cancel()
		return b.Command(within, hello.Command{Mode: hello.ModeSafety})
	}
	err := safe()
	within, cancel := a.r.within(ctx, haltTime)
	defer cancel()
	if e := a.r.take(within); e != nil { // who has commands under way
		return errors.Join(err, e)
	}
	defer a.r.give()
	return safe()
}

// odometry sums up the wheels' turns. It is under the Robot's mu.
type odometry struct {
	begun bool
	last  [3]float64 // motor positions that are summed up so far
	now   [3]float64
	speed [3]float64
	times [3]time.Time // when each was read
	fresh [3]bool      // read since the last step
	base  geom.SE2
	twist geom.SE2
	at    time.Time // the oldest of the three in base; zero: never
}

// take adds one wheel's reading, and makes a step when all three are new.
func (o *odometry) take(wheel int, pos, vel float64, at time.Time) {
	o.now[wheel], o.speed[wheel], o.times[wheel], o.fresh[wheel] = pos, vel, at, true
	if !o.fresh[0] || !o.fresh[1] || !o.fresh[2] {
		return
	}
	o.fresh = [3]bool{}
	if o.begun {
		var step [3]float64
		for i := range step {
			step[i] = o.now[i] - o.last[i]
		}
		o.base = advance(o.base, step)
	}
	o.begun, o.last, o.twist, o.at = true, o.now, twist(o.speed), at
	for _, t := range o.times {
		if t.Before(o.at) {
			o.at = t
		}
	}
}

// power is the power board.
type power struct {
	r      *Robot
	board  *hello.Power // nil: not there
	info   hello.Info
	status hello.PowerStatus
	at     time.Time // when it came; zero: never
	late   stampAge
	ours   bool // the runstop that is on is of this daemon's own stop
}

func (p *power) greet(ctx context.Context, port *serial.Port) error {
	b, err := hello.OpenPower(ctx, port)
	if err != nil {
		return err
	}
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.board, p.info, p.late = b, b.Info(), stampAge{}
	return nil
}

func (p *power) look(ctx context.Context) error {
	s, err := p.board.Status(ctx)
	if err != nil {
		return err
	}
	now := p.r.clock.Now()
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	if p.status.Runstopped() && !s.Runstopped() {
		p.ours = false
	}
	p.status, p.at = s, now.Add(-p.late.late(now, s.Stamp))
	return nil
}

func (p *power) lost() { p.board = nil }

// runstopped says that the runstop is on, by the power board or by a stepper that heard it first. It needs mu.
func (r *Robot) runstopped() bool {
	if r.power.board != nil && r.power.status.Runstopped() {
		return true
	}
	for i := range r.axes {
		if a := &r.axes[i]; a.board != nil && a.status.Diag.Has(hello.DiagRunstop) {
			return true
		}
	}
	return false
}

// runstopWords name the cause. It needs mu.
func (r *Robot) runstopWords() string {
	cause := "no cause given yet"
	if r.power.board != nil && r.power.status.Runstopped() {
		if cause = r.power.status.Cause.String(); r.power.ours && r.power.status.Cause == hello.CauseProgram {
			cause = "this daemon's own stop or e-stop engaged it"
		}
	}
	return fmt.Sprintf("the runstop is engaged (%s); look why, make the robot safe, then an operator releases it with the task %q or the button on the robot", cause, taskRelease)
}
