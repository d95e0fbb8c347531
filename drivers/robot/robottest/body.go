package robottest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// Period is how often a Body takes a reading.
const Period = 10 * time.Millisecond

// Faults are the ways in which a Body misbehaves; the zero value is a good robot. A time is counted from
// the start of a Follow, and zero means never.
type Faults struct {
	Lag         time.Duration // the arm trails its trajectory by this much
	Slow        float64       // takes this many times as long; 0 means 1
	BlockAfter  time.Duration // stops moving while Follow goes on, with encoder noise; the trajectory's own time
	FreezeAfter time.Duration // no new readings
	EchoAfter   time.Duration // readings stay fresh, values do not change
	NaNAfter    time.Duration // the first joint reads NaN
	PartAfter   time.Duration // joint positions are missing
	FaultAfter  time.Duration // goes into ModeFaulted and brakes
	StopAfter   time.Duration // somebody presses the runstop: ModeRunstopped and brakes
	LieAfter    time.Duration // brakes and returns nil from Follow, wherever it is
	Contact     float64       // newtons felt from ContactAfter on
	ContactFrom time.Duration
	Coast       time.Duration // time to brake; 0 means 50 ms
	DeafBelow   robot.Rung    // rungs below this one, and the end of Follow's ctx, are answered nil and ignored
	HangBelow   robot.Rung    // Halt at rungs below this one blocks until its ctx ends
	DeafAlways  bool          // no rung stops it
	FollowErr   error         // Follow refuses with this
	GripErr     error         // Grip refuses with this
	Object      float64       // width in metres of what is between the pads
	GripHangs   bool          // Grip never returns by itself
	JawStuck    bool          // the jaw does not move
}

// Body is a kinematic robot: measured joints are exactly the trajectory's, but for its Faults. It computes
// every reading from its clock when it is asked, so it needs no goroutine and is the same on every run.
type Body struct {
	model *robot.Model
	clock robot.Clock
	born  time.Time

	mu       sync.Mutex
	f        Faults
	rest     robot.Point // where it is when not moving
	since    time.Time   // since when
	run      *run        // nil at rest
	past     *run        // the run before, for readings that froze in it
	jaw      jaw
	mode     robot.Mode
	fault    string
	halts    []robot.Rung
	frozen   time.Time
	echoed   time.Time
	severed  time.Time     // when the link was cut; zero before
	cut      chan struct{} // closed then
	gripping bool
}

type run struct {
	traj   robot.Trajectory
	start  time.Time
	faults Faults
	halted time.Time // zero while it runs
	over   chan struct{}
}

type jaw struct {
	from, to float64
	start    time.Time
	open     bool
	held     bool
}

// Errors of a Follow or Grip that was ended from outside, or that may not begin.
var (
	ErrHalted = robot.ErrHalted
	ErrBusy   = errors.New("a motion is already running")
)

// NewBody is a robot at rest at joints q (nil: mid-range), base identity, jaw open.
func NewBody(m *robot.Model, c robot.Clock, q []float64) *Body {
	if q == nil {
		q = make([]float64, len(m.Joints))
		for i, j := range m.Joints {
			q[i] = (j.Min + j.Max) / 2
		}
	}
	return &Body{
		model: m, clock: c, born: c.Now().Truncate(Period), mode: robot.ModeReady, since: c.Now(),
		rest: robot.Point{Q: append([]float64(nil), q...), QD: make([]float64, len(q))},
		jaw:  jaw{from: m.Jaw.Max, to: m.Jaw.Max, start: c.Now(), open: true},
		cut:  make(chan struct{}),
	}
}

// Break sets how the body misbehaves from now on.
func (b *Body) Break(f Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.f = f
}

// Place puts the resting robot somewhere else at once, as if somebody had pushed it.
func (b *Body) Place(base geom.SE2, q []float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest.Base, b.rest.Q, b.since = base, append([]float64(nil), q...), b.clock.Now()
}

// SetMode makes the body say that it is in mode m, with words for a person.
func (b *Body) SetMode(m robot.Mode, fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mode, b.fault = m, fault
}

// Halts are the rungs that were asked for so far.
func (b *Body) Halts() []robot.Rung {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]robot.Rung(nil), b.halts...)
}

// Deadman is the watchdog and the time to brake.
func (b *Body) Deadman() time.Duration { return 100 * time.Millisecond }

// pathTime is the trajectory's own time at t, its rate, and whether the run is at its end.
func (r *run) pathTime(t time.Time) (pt time.Duration, rate float64, done bool) {
	f := r.faults
	slow := f.Slow
	if slow <= 0 {
		slow = 1
	}
	at := func(t time.Time) float64 {
		p := (t.Sub(r.start) - f.Lag).Seconds() / slow
		if f.BlockAfter > 0 {
			p = math.Min(p, f.BlockAfter.Seconds())
		}
		return math.Max(0, math.Min(p, r.traj.Duration().Seconds()))
	}
	p, rate := at(t), 1/slow
	if f.BlockAfter > 0 && p >= f.BlockAfter.Seconds() || p == 0 {
		rate = 0
	}
	if r.halted.IsZero() || t.Before(r.halted) {
		done = p >= r.traj.Duration().Seconds()
	} else { // brake along the path
		coast := f.Coast.Seconds()
		if coast <= 0 {
			coast = 0.05
		}
		p = at(r.halted)
		if f.BlockAfter > 0 && p >= f.BlockAfter.Seconds() {
			rate = 0
		}
		x := math.Min(t.Sub(r.halted).Seconds(), coast)
		p += rate * (x - x*x/2/coast)
		rate *= 1 - x/coast
		done = x >= coast
	}
	if p >= r.traj.Duration().Seconds() {
		p, rate = r.traj.Duration().Seconds(), 0
	}
	return time.Duration(p * 1e9), rate, done
}

// settle takes note of what has happened by now: planned faults, the end of the run.
func (b *Body) settle(now time.Time) {
	r := b.run
	if r == nil {
		return
	}
	past := func(d time.Duration) bool { return d > 0 && now.Sub(r.start) >= d }
	brake := func(d time.Duration) {
		if r.halted.IsZero() {
			r.halted = r.start.Add(d)
		}
	}
	f := r.faults
	if past(f.FreezeAfter) && b.frozen.IsZero() {
		b.frozen = r.start.Add(f.FreezeAfter)
	}
	if past(f.EchoAfter) && b.echoed.IsZero() {
		b.echoed = r.start.Add(f.EchoAfter)
	}
	if past(f.FaultAfter) {
		b.mode, b.fault = robot.ModeFaulted, "joint velocity violation (reflex)"
		brake(f.FaultAfter)
	}
	if past(f.StopAfter) {
		b.mode, b.fault = robot.ModeRunstopped, "runstop pressed"
		brake(f.StopAfter)
	}
	if past(f.LieAfter) {
		brake(f.LieAfter)
	}
	if pt, _, done := r.pathTime(now); done {
		p := r.traj.At(pt)
		for i := range p.QD {
			p.QD[i] = 0
		}
		p.BaseV = geom.SE2{}
		b.rest, b.since, b.run, b.past = p, now, nil, r
		close(r.over)
	}
}

// at is the true configuration at t.
func (b *Body) at(t time.Time) robot.Point {
	r := b.run
	if r == nil && b.past != nil && t.Before(b.since) {
		r = b.past
	}
	if r == nil || t.Before(r.start) {
		p := b.rest
		p.Q, p.QD = append([]float64(nil), p.Q...), append([]float64(nil), p.QD...)
		return p
	}
	pt, rate, _ := r.pathTime(t)
	p := r.traj.At(pt)
	for i := range p.QD {
		p.QD[i] *= rate
	}
	p.BaseV = geom.SE2{X: p.BaseV.X * rate, Y: p.BaseV.Y * rate, Yaw: p.BaseV.Yaw * rate}
	if f := r.faults; f.BlockAfter > 0 && pt >= f.BlockAfter {
		p.Q[0] += 1e-7 * float64(t.Sub(b.born)/Period%2)
	}
	return p
}

// State is the newest reading. It takes one lock for some microseconds and waits for nothing.
func (b *Body) State() robot.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	b.watch(now)
	b.settle(now)
	rx := now.Truncate(Period)
	if !b.frozen.IsZero() && rx.After(b.frozen) {
		rx = b.frozen
	}
	seen := rx
	if !b.echoed.IsZero() && seen.After(b.echoed) {
		seen = b.echoed
	}
	p := b.at(seen)
	s := robot.State{
		Seq: uint64(rx.Sub(b.born)/Period) + 1, Received: rx, Stamp: rx, Changed: seen,
		Q: p.Q, QD: p.QD, HasBase: true, Base: p.Base, Mode: b.mode, Fault: b.fault,
		Jaw: b.jawAt(seen),
	}
	c, sn := math.Cos(p.Base.Yaw), math.Sin(p.Base.Yaw)
	s.BaseV = geom.SE2{X: c*p.BaseV.X + sn*p.BaseV.Y, Y: -sn*p.BaseV.X + c*p.BaseV.Y, Yaw: p.BaseV.Yaw}
	if b.run == nil {
		if b.since.Before(s.Changed) {
			s.Changed = b.since
		}
		return s
	}
	if s.Mode == robot.ModeReady {
		s.Mode = robot.ModeMoving
	}
	f, el := b.run.faults, rx.Sub(b.run.start)
	if f.ContactFrom > 0 && el >= f.ContactFrom {
		s.Contact = f.Contact
	}
	if f.NaNAfter > 0 && el >= f.NaNAfter {
		s.Q[0] = math.NaN()
	}
	if f.PartAfter > 0 && el >= f.PartAfter {
		s.Q, s.QD = nil, nil
	}
	return s
}

// Follow runs the trajectory.
func (b *Body) Follow(ctx context.Context, t robot.Trajectory) error {
	s := b.State()
	b.mu.Lock()
	if err := b.mayMove(); err != nil {
		b.mu.Unlock()
		return err
	}
	if err := t.Check(b.model, s); err != nil {
		b.mu.Unlock()
		return fmt.Errorf("refused: %w", err)
	}
	if b.f.FollowErr != nil {
		defer b.mu.Unlock()
		return b.f.FollowErr
	}
	r := &run{traj: t, start: b.clock.Now(), faults: b.f, over: make(chan struct{})}
	b.run = r
	b.mu.Unlock()
	return b.wait(ctx, r)
}

func (b *Body) mayMove() error {
	if !b.severed.IsZero() {
		return ErrSevered
	}
	if b.run != nil || b.gripping {
		return ErrBusy
	}
	if b.mode != robot.ModeReady {
		return fmt.Errorf("refused: the robot is %s: %s", b.mode, b.fault)
	}
	return nil
}

func (b *Body) wait(ctx context.Context, r *run) error {
	tick := b.clock.Ticker(Period / 2)
	defer tick.Stop()
	over := false
	for !over {
		select {
		case <-r.over:
			over = true
		case <-b.cut:
			return ErrSevered
		case <-tick.C():
			b.State() // lets what is due happen
		case <-ctx.Done():
			if r.faults.DeafBelow > robot.RungZeroVelocity || r.faults.DeafAlways {
				return ctx.Err()
			}
			b.brake()
			ctx = context.WithoutCancel(ctx)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.mode == robot.ModeFaulted || b.mode == robot.ModeRunstopped:
		return fmt.Errorf("aborted: %s", b.fault)
	case r.halted.IsZero(), r.faults.LieAfter > 0 && !r.halted.Before(r.start.Add(r.faults.LieAfter)):
		return nil
	}
	return ErrHalted
}

func (b *Body) brake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	b.settle(now)
	if b.run != nil && b.run.halted.IsZero() {
		b.run.halted = now
	}
	b.haltJaw(now)
}

// Halt stops the arm and the jaw.
func (b *Body) Halt(ctx context.Context, rung robot.Rung) error {
	b.mu.Lock()
	b.halts = append(b.halts, rung)
	f, severed := b.f, !b.severed.IsZero()
	if b.run != nil {
		f = b.run.faults
	}
	b.mu.Unlock()
	if severed {
		return ErrSevered
	}
	if rung < f.HangBelow {
		<-ctx.Done()
		return ctx.Err()
	}
	if rung < f.DeafBelow || f.DeafAlways {
		return nil
	}
	b.brake()
	if rung == robot.RungPower {
		b.SetMode(robot.ModeRunstopped, "runstop engaged by the stop ladder")
	}
	return nil
}
