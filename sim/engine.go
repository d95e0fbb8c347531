package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"viad/sim/mj"
)

// slice is how many time steps pass between two published states.
const slice = 2

// Run makes time pass until ctx ends or the twin is closed. It may be called once.
func (t *Twin) Run(ctx context.Context) error {
	t.mu.Lock()
	if t.ran || t.closed {
		defer t.mu.Unlock()
		if t.closed {
			return ErrOver
		}
		return errors.New("twin: Run was called twice")
	}
	t.ran = true
	t.mu.Unlock()
	t.run(ctx)
	return nil
}

func (t *Twin) run(ctx context.Context) {
	defer close(t.over)
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.endMotion(ErrOver)
	}()
	if t.clk.fast {
		t.runFast(ctx)
	} else {
		t.runReal(ctx)
	}
}

// napper waits on the wall clock, for a nudge, or for the end.
type napper struct {
	t     *Twin
	end   <-chan struct{}
	timer *time.Timer
}

func (t *Twin) newNapper(ctx context.Context) *napper {
	n := &napper{t: t, end: ctx.Done(), timer: time.NewTimer(0)}
	<-n.timer.C
	return n
}

// nap returns false at the end. A negative d waits for a nudge only.
func (n *napper) nap(d time.Duration) bool {
	var c <-chan time.Time
	if d >= 0 {
		n.timer.Reset(d)
		defer n.timer.Stop()
		c = n.timer.C
	}
	select {
	case <-n.end:
		return false
	case <-n.t.stop:
		return false
	case <-n.t.clk.wake:
	case <-c:
	}
	return true
}

func (n *napper) over() bool {
	select {
	case <-n.end:
		return true
	case <-n.t.stop:
		return true
	default:
		return false
	}
}

// runFast advances while somebody waits and nothing delivered is unread.
func (t *Twin) runFast(ctx context.Context) {
	const first, longest, idle = 20 * time.Microsecond, time.Millisecond, 20 * time.Millisecond
	const stroll = 4 * time.Millisecond // a slice at the wall's pace
	// Every few milliseconds the goroutine yields of its own accord. One that never does is, in the middle of
	// a call into C, taken for hung after 10 ms by Go's scheduler, whose watch then costs a tenth of the time.
	const breath = 16
	n := t.newNapper(ctx)
	pause := first
	for i := 0; !n.over(); i++ {
		if i%breath == 0 {
			runtime.Gosched()
		}
		if t.clk.held() {
			if !n.nap(pause) {
				return
			}
			pause = min(2*pause, longest)
			continue
		}
		pause = first
		at, wanted, waived := t.clk.next()
		switch {
		case t.busy() || wanted && !t.clk.lazy(at):
			t.advance(at)
		case wanted:
			t.advance(at)
			n.nap(stroll)
		case waived: // its reader may come back without a nudge
			n.nap(idle)
		default:
			n.nap(-1)
		}
	}
}

// runReal keeps physics at wall time; a machine that is too slow gets a clock that is too slow.
func (t *Twin) runReal(ctx context.Context) {
	const period, slip = 4 * time.Millisecond, 100 * time.Millisecond
	n := t.newNapper(ctx)
	wall, phys := wallNow(), t.clk.now.Load()
	for !n.over() {
		due := phys + int64(wallSince(wall))
		now := t.clk.now.Load()
		if due-now > int64(slip) {
			wall, phys = wallNow(), now
			continue
		}
		if now+int64(period) <= due {
			t.advance(now + int64(period))
			continue
		}
		n.nap(time.Duration(now + int64(period) - due))
	}
}

// busy says whether the robot is moving: time passes until it has come to rest.
func (t *Twin) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fault == nil && (t.goal != nil || t.grip != nil || !t.resting)
}

// advance steps physics up to one slice, not past the first step at or after the given time, publishes
// the state and then wakes who waited, so that he sees the state of that time.
func (t *Twin) advance(until int64) {
	t.mu.Lock()
	now := t.clk.now.Load()
	for range slice {
		t.stepOnce(now)
		now += t.p.dt
		if now >= until || len(t.endings) > 0 {
			break
		}
	}
	t.clk.now.Store(now)
	t.publish()
	t.tell()
	t.mu.Unlock()
	t.clk.fire()
}

// stepOnce is one time step from now.
func (t *Twin) stepOnce(now int64) {
	if t.fault != nil {
		return // time goes on, the machine does not
	}
	t.starve(now)
	if t.path.at(float64(now+t.p.dt-t.began)*1e-9, t.servo.ref) {
		if r, ok := t.path.(ramp); ok {
			t.servo.hold(t.p, r.load)
			t.path = stand{}
		}
		t.resting = true
		if t.goal != nil {
			t.finish(t.goal.done, nil)
			t.goal = nil
		}
	}
	if err := t.p.step(&t.servo, &t.jaw); err != nil {
		t.breakdown(err)
		return
	}
	t.feel(now + t.p.dt)
	if t.monitor != nil {
		t.monitor.step(now + t.p.dt)
	}
	if t.grip != nil {
		t.grip.watch(t)
	}
}

// ending is a motion that ended, to be told once the state of that moment is published.
type ending struct {
	done chan<- error // capacity 1
	err  error
}

func (t *Twin) finish(done chan<- error, err error) { t.endings = append(t.endings, ending{done, err}) }

func (t *Twin) tell() {
	for _, e := range t.endings {
		e.done <- e.err
	}
	t.endings = t.endings[:0]
}

// breakdown turns a physics error into a fault of the machine.
func (t *Twin) breakdown(err error) {
	t.fault = fmt.Errorf("twin: physics stopped: %w", err)
	if w := mj.Warnings(); w != "" {
		t.fault = fmt.Errorf("%w (%.200s)", t.fault, w)
	}
	t.endMotion(t.fault)
}
