package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/sim/model"
)

// Options choose a twin.
type Options struct {
	Robot string // fr3, panda or stretch4
	World string // tabletop or room
	Seed  uint64 // places what can be moved
	Pace  Pace   // "" is PaceFast
	// Light leaves shadows out of the pictures, which halves the time of a picture.
	Light bool
}

// Twin is a robot in a world. Run must be running for time to pass; every other method may be called
// from any goroutine at any time between NewTwin and Close.
type Twin struct {
	opts  Options
	mach  machine
	model robot.Model
	clk   *clock
	state atomic.Pointer[robot.State]
	stop  chan struct{} // closed by Close
	over  chan struct{} // closed when no more time will pass
	eyes  *eyes
	srcs  []sensor.Source
	link  link

	mu       sync.Mutex // guards what follows, the live physics among it
	p        *plant
	world    uint64 // counts resets
	servo    servo
	jaw      jawServo
	path     path
	began    int64 // clock time at which path began
	resting  bool  // path has ended
	goal     *goal
	grip     *gripGoal
	endings  []ending
	sense    sense
	runstop  bool
	monitor  *Monitor // nil: nobody watches
	governor Governor // nil: the twin's own controller drives
	fault    error
	ran      bool
	closed   bool
}

// Why a motion ended early or was not begun.
var (
	ErrHalted     = fmt.Errorf("twin: the motion was %w", robot.ErrHalted)
	ErrBusy       = errors.New("twin: a motion is running already")
	ErrRunstopped = errors.New("twin: the runstop is engaged; the operator must release it")
	ErrReset      = errors.New("twin: the world was reset")
	ErrOver       = errors.New("twin: the twin has been shut down")
)

// NewTwin builds a twin that stands still in its start posture.
func NewTwin(o Options) (*Twin, error) {
	if o.Pace == "" {
		o.Pace = PaceFast
	}
	if o.Pace != PaceFast && o.Pace != PaceReal {
		return nil, fmt.Errorf("twin: no pace %q; there are real and fast", o.Pace)
	}
	mach, err := machineFor(o.Robot)
	if err != nil {
		return nil, err
	}
	desc, err := mach.describe()
	if err != nil {
		return nil, err
	}
	p, err := build(&mach, o)
	if err != nil {
		return nil, err
	}
	base := epoch
	if o.Pace == PaceReal {
		base = wallNow().Round(0) // without the monotonic reading: this clock is not the wall's
	}
	t := &Twin{
		opts: o, mach: mach, model: desc, clk: newClock(o.Pace, base),
		stop: make(chan struct{}), over: make(chan struct{}),
	}
	t.link.lost = make(chan struct{})
	t.eyes = newEyes(t)
	t.adopt(p)
	t.srcs = t.newSources()
	return t, nil
}

func build(mach *machine, o Options) (*plant, error) {
	meta, err := model.Build(model.Spec{Robot: o.Robot, World: o.World, Seed: o.Seed})
	if err != nil {
		return nil, err
	}
	p, err := newPlant(mach, meta)
	if err != nil {
		return nil, err
	}
	if err := p.settle(mach); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// settle lets everything come to rest before the first state is published.
func (p *plant) settle(mach *machine) error {
	s, j := newServo(p), newJaw(p, mach)
	for range 150 {
		if err := p.step(&s, &j); err != nil {
			return err
		}
	}
	clear(p.sawMax)
	p.d.SetTime(0)
	return nil
}

func newJaw(p *plant, mach *machine) jawServo {
	x, _ := p.jaw.x(p.d.Qpos(), p.d.Qvel())
	return jawServo{target: x, ref: x, speed: mach.jaw.speed}
}

// adopt makes p the live physics. The caller holds mu or is alone.
func (t *Twin) adopt(p *plant) {
	t.p = p
	t.world++
	t.servo, t.jaw = newServo(p), newJaw(p, &t.mach)
	x, _ := p.jaw.x(p.d.Qpos(), p.d.Qvel())
	t.jaw.target = p.meta.Jaw.Home
	t.sense = sense{seq: t.sense.seq, open: x > t.mach.jaw.max/2, seed: t.opts.Seed}
	t.path, t.began, t.resting = stand{}, t.clk.now.Load(), true
	if t.governor != nil {
		t.yield()
	}
	t.publish()
}

// Body is the twin as a machine to be commanded.
func (t *Twin) Body() robot.Body { return t }

// Model describes the joints in the order of State.Q.
func (t *Twin) Model() robot.Model { return t.model }

// Clock is the twin's physics time.
func (t *Twin) Clock() robot.Clock { return t.clk }

// Sources are the robot's cameras and lidars. They stay the same over resets.
func (t *Twin) Sources() []sensor.Source { return t.srcs }

// State is the newest reading that came through the link; it never blocks.
func (t *Twin) State() robot.State {
	if last := t.link.last.Load(); last != nil {
		return copied(last)
	}
	return copied(t.state.Load())
}

// Reset puts the robot into its start posture in a world placed anew by seed. The clock goes on; a running
// motion ends with ErrReset; a runstop and a fault are cleared.
func (t *Twin) Reset(ctx context.Context, seed uint64) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return ErrOver
	}
	o := t.opts
	o.Seed = seed
	if t.goal != nil || t.grip != nil {
		t.halt(1, ErrReset) // building takes a while
	}
	t.mu.Unlock()
	p, err := build(&t.mach, o)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || ctx.Err() != nil {
		p.close()
		return errors.Join(ctx.Err(), map[bool]error{true: ErrOver}[t.closed])
	}
	t.endMotion(ErrReset)
	t.p.close()
	t.opts.Seed, t.runstop, t.fault = seed, false, nil
	t.adopt(p)
	return nil
}

// Release lets the robot move again after RungPower. Only an operator may ask for it.
func (t *Twin) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runstop = false
	t.publish()
}

// Fork is a copy of the robot and its world as they are now, with a fast clock of its own that starts at
// this twin's time: for rehearsing a motion. It runs until ctx ends or it is closed, and has no sources.
func (t *Twin) Fork(ctx context.Context) (*Twin, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrOver
	}
	p, err := attach(&t.mach, t.p.meta, t.p.shape.retain())
	if err != nil {
		t.p.shape.release()
		return nil, err
	}
	if err := t.p.d.CopyTo(p.d); err != nil {
		p.close()
		return nil, err
	}
	f := &Twin{
		opts: t.opts, mach: t.mach, model: t.model, clk: newClock(PaceFast, t.clk.base), p: p, world: 1,
		servo: t.servo.clone(), jaw: t.jaw, sense: t.sense, runstop: t.runstop, fault: t.fault,
		stop: make(chan struct{}), over: make(chan struct{}),
	}
	f.clk.now.Store(t.clk.now.Load())
	f.link.lost = make(chan struct{})
	f.eyes = newEyes(f)
	f.path, f.began, f.resting = t.path, t.began, t.resting
	f.servo.off, f.jaw.off = nil, false // nobody governs the copy
	if !t.resting {
		f.brake(1)
	}
	f.publish()
	f.ran = true
	go f.run(ctx)
	return f, nil
}

// Close ends Run and frees the physics. Motions and frames that wait end with ErrOver.
func (t *Twin) Close() {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	t.closed = true
	ran := t.ran
	close(t.stop)
	t.mu.Unlock()
	if ran {
		<-t.over
	} else {
		close(t.over)
	}
	t.eyes.close()
	for _, s := range t.srcs {
		s.(interface{ close() }).close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endMotion(ErrOver)
	t.p.close()
}

// Deadman is the longest that the robot goes on moving after nobody commands it any more: the machine's watchdog and
// the longest brake. A motion whose context has ended brakes at once, and a goal that nobody ends ends by itself: none
// is longer than 45 s.
func (t *Twin) Deadman() time.Duration { return time.Second }
