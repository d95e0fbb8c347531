package soak

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"viad/drivers/robot"
	"viad/sim"
)

// trouble is a way in which a machine fails.
type trouble string

// Readings that fail, from some moment of a motion on, or before it, until they are healed.
const (
	noState   trouble = "no state"
	halfState trouble = "half a state"
	oldState  trouble = "old state"
	holding   trouble = "frozen state"
	stampHeld trouble = "frozen stamps"
	notNumber trouble = "NaN"
	swapped   trouble = "joints in another order"
	noJaw     trouble = "no jaw"
)

// Motions that fail, once.
const (
	echoing  trouble = "echo"
	stalling trouble = "stall"
	late     trouble = "slow arrival"
	deaf     trouble = "cancel ignored"
	slowStop trouble = "slow stop"
	gone     trouble = "disconnect"
	hasty    trouble = "success at once"
	pressed  trouble = "runstop"
	reflex   trouble = "reflex"
)

var (
	unread  = []trouble{noState, halfState, oldState, holding, stampHeld, notNumber, swapped, noJaw} //nolint:gochecknoglobals // constants in all but name
	unmoved = []trouble{echoing, stalling, late, deaf, slowStop, gone, hasty, pressed, reflex}       //nolint:gochecknoglobals // constants in all but name
)

var errGone = errors.New("the link to the robot is down")

const (
	recovery  = 16 * time.Second       // after a reflex
	longHalt  = 700 * time.Millisecond // of a stop that takes long
	ownWatch  = 300 * time.Millisecond // a machine's own watchdog, once nobody reaches it
	farTooOld = 5 * time.Second
)

// limb is a machine that can be made to fail. What it does wrong is chosen before a motion and begins in it.
type limb struct {
	robot.Body
	clock robot.Clock
	seen  func(trouble)
	over  chan struct{} // closed when the daemon has ended

	mu    sync.Mutex
	next  trouble
	share float64 // of the next motion after which it begins; 0: at once
	now   trouble
	since time.Time // when it begins; it has when that is past
	told  bool
	held  *robot.State
	traj  robot.Trajectory // being followed by an echo
	begun time.Time
}

func troubles() []trouble { return slices.Concat(unread, unmoved) }

// fail makes the next motion fail, or the readings from now on.
func (l *limb) fail(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kinds := troubles()
	l.next, l.share = kinds[n%len(kinds)], 0.1+0.1*float64(n/len(kinds)%8)
	if slices.Contains(unread, l.next) && n/len(kinds)%4 == 0 {
		l.begin(l.next, l.clock.Now())
	}
}

func (l *limb) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.now = "", ""
}

// begin needs mu.
func (l *limb) begin(what trouble, at time.Time) {
	l.next, l.now, l.since, l.told, l.held = "", what, at, false, nil
}

// take is what goes wrong in a motion that begins now, and how far into it.
func (l *limb) take(tr robot.Trajectory) (trouble, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what := l.next
	if what == "" {
		return "", 0
	}
	now := l.clock.Now()
	after := time.Duration(l.share * float64(tr.Duration()))
	l.begin(what, now.Add(after))
	l.traj, l.begun = tr, now
	if slices.Contains(unmoved, what) {
		l.told = true
		l.seen(what)
	}
	return what, after
}

// active is the trouble that has begun; needs mu.
func (l *limb) active() trouble {
	if l.now == "" || l.clock.Now().Before(l.since) {
		return ""
	}
	if l.now == reflex && l.clock.Now().Sub(l.since) > recovery {
		l.now = ""
		return ""
	}
	if !l.told {
		l.told = true
		l.seen(l.now)
	}
	return l.now
}

func (l *limb) is(what trouble) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active() == what
}

// State is the machine's own, or what is left of it.
func (l *limb) State() robot.State {
	s := l.Body.State()
	l.mu.Lock()
	defer l.mu.Unlock()
	what := l.active()
	if what == "" {
		return s
	}
	if l.held == nil {
		was := s
		l.held = &was
	}
	switch what {
	case noState:
		return robot.State{}
	case halfState:
		s.Q, s.QD = s.Q[:len(s.Q)/2], s.QD[:len(s.QD)/2]
	case oldState:
		s.Received = s.Received.Add(-farTooOld)
	case holding, gone:
		s = *l.held
		s.Q, s.QD = slices.Clone(s.Q), slices.Clone(s.QD)
	case stampHeld:
		s.Stamp = l.held.Stamp
	case notNumber:
		s.Q[1] = math.NaN()
	case swapped:
		slices.Reverse(s.Q)
		slices.Reverse(s.QD)
	case noJaw:
		s.Jaw = robot.Jaw{}
	case echoing: // while it is followed: of a robot that stopped even this one knows where it is
		if s.Mode == robot.ModeMoving {
			p := l.traj.At(l.clock.Now().Sub(l.begun))
			s.Q, s.QD, s.Base, s.Received, s.Changed = p.Q, p.QD, p.Base, l.clock.Now(), l.clock.Now()
		}
	case reflex:
		s.Mode, s.Fault = robot.ModeFaulted, "reflex"
	}
	return s
}

// Follow is the machine's own, or goes wrong.
func (l *limb) Follow(ctx context.Context, tr robot.Trajectory) error {
	what, after := l.take(tr)
	on := context.WithoutCancel(ctx)
	switch what {
	case late:
		return l.Body.Follow(ctx, stretched(tr, 1.15))
	case deaf:
		return l.Body.Follow(on, tr)
	case hasty:
		go func() { _ = l.Body.Follow(on, tr) }() // nobody asks any more how it ended; the twin's end ends it
		return nil
	case stalling:
		return l.interrupted(ctx, tr, after, func(cancel func()) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
	case gone:
		return l.interrupted(on, tr, after, func(cancel func()) error {
			go func() {
				l.pause(ownWatch)
				cancel()
			}()
			return errGone
		})
	case pressed, reflex:
		return l.interrupted(ctx, tr, after, func(cancel func()) error {
			defer cancel()
			rung := robot.RungPower
			if what == reflex {
				rung = robot.RungHold
			}
			return errors.Join(errors.New("aborted"), l.Body.Halt(on, rung))
		})
	}
	return l.Body.Follow(ctx, tr)
}

// interrupted follows until something happens after a while, which decides what is returned.
func (l *limb) interrupted(ctx context.Context, tr robot.Trajectory, after time.Duration, then func(cancel func()) error) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- l.Body.Follow(ctx, tr) }()
	tick := l.clock.Ticker(max(after, time.Millisecond))
	select {
	case err := <-done:
		tick.Stop()
		cancel()
		return err
	case <-tick.C():
	case <-l.over:
	}
	tick.Stop()
	return then(cancel)
}

// Grip is the machine's own, or goes wrong.
func (l *limb) Grip(ctx context.Context, to robot.JawTarget) error {
	switch what, _ := l.take(robot.Trajectory{}); what {
	case stalling:
		<-ctx.Done()
		return ctx.Err()
	case hasty:
		go func() { _ = l.Body.Grip(context.WithoutCancel(ctx), to) }() // as in Follow
		return nil
	}
	return l.Body.Grip(ctx, to)
}

// Halt is the machine's own, or not at once, or not at all.
func (l *limb) Halt(ctx context.Context, r robot.Rung) error {
	switch {
	case l.is(gone):
		return errGone
	case r < robot.RungHold && l.is(deaf):
		return nil
	case l.is(slowStop):
		l.pause(longHalt)
	}
	return l.Body.Halt(ctx, r)
}

func (l *limb) pause(d time.Duration) {
	tick := l.clock.Ticker(d)
	defer tick.Stop()
	select {
	case <-tick.C():
	case <-l.over:
	}
}

// stretched takes longer by a factor.
func stretched(tr robot.Trajectory, by float64) robot.Trajectory {
	out := robot.Trajectory{Points: slices.Clone(tr.Points)}
	for i := range out.Points {
		p := &out.Points[i]
		p.T = time.Duration(float64(p.T) * by)
		p.QD = slices.Clone(p.QD)
		for k := range p.QD {
			p.QD[k] /= by
		}
		p.BaseV.X, p.BaseV.Y, p.BaseV.Yaw = p.BaseV.X/by, p.BaseV.Y/by, p.BaseV.Yaw/by
	}
	return out
}

func TestReadingsFail(t *testing.T) {
	tw, err := sim.NewTwin(sim.Options{Robot: "fr3", World: "tabletop"})
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Close()
	seen := map[trouble]int{}
	l := &limb{Body: tw.Body(), clock: tw.Clock(), seen: func(what trouble) { seen[what]++ }}
	m, good := tw.Model(), tw.State()
	for i, what := range unread {
		l.fail(i)
		bad := l.State()
		switch what {
		case noState, halfState, notNumber, noJaw:
			if bad.Complete(&m) {
				t.Errorf("%s: %+v is complete", what, bad)
			}
		case oldState:
			if good.Received.Sub(bad.Received) != farTooOld {
				t.Errorf("%s: received %v, really %v", what, bad.Received, good.Received)
			}
		case swapped:
			if bad.Q[0] != good.Q[6] || bad.Q[6] != good.Q[0] {
				t.Errorf("%s: %v of %v", what, bad.Q, good.Q)
			}
		}
		l.heal()
		if s := l.State(); seen[what] != 1 || !s.Complete(&m) || s.Q[0] != good.Q[0] {
			t.Errorf("%s: seen %d times; healed it reads %+v", what, seen[what], s)
		}
	}
}
