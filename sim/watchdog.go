package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"viad/drivers/robot"
)

// The machine's own watchdog, on the physics clock: who follows or grips feeds it, as the packets of a network would,
// and a machine that is not fed brakes. hunger and the longest brake fit into Deadman.
const (
	feedEvery = 50 * time.Millisecond
	hunger    = 300 * time.Millisecond
)

var (
	// ErrUnfed ends a motion that nobody stands behind any more.
	ErrUnfed = fmt.Errorf("twin: the watchdog was not fed for %v; the robot has braked", hunger)
	// ErrCut is what calls into a twin return whose link was cut.
	ErrCut = errors.New("twin: the link to the robot is cut")
)

// link is what the daemon's side of the twin reaches the machine's side through.
type link struct {
	fed  atomic.Int64 // clock time of the last feeding
	once sync.Once
	lost chan struct{} // closed when the link is cut
	last atomic.Pointer[robot.State]
}

// Cut cuts the link between the daemon and the machine for good, as if the daemon had died: readings stop, calls
// return ErrCut, and the machine is left to its watchdog.
func (t *Twin) Cut() {
	t.link.once.Do(func() {
		t.link.last.Store(t.state.Load())
		close(t.link.lost)
	})
}

func (t *Twin) isCut() bool { return t.link.last.Load() != nil }

// Machine is the machine's own reading, also when the link is cut.
func (t *Twin) Machine() robot.State { return copied(t.state.Load()) }

func copied(p *robot.State) robot.State {
	s := *p
	s.Q, s.QD = slices.Clone(s.Q), slices.Clone(s.QD)
	return s
}

// starve brakes a machine that moves and was not fed. The caller holds mu.
func (t *Twin) starve(now int64) {
	if (t.goal != nil || t.grip != nil) && now-t.link.fed.Load() > int64(hunger) {
		t.halt(1, ErrUnfed)
	}
}

// feeder is the first meal of a motion and what the others come by. The caller holds mu.
func (t *Twin) feeder() *timer {
	t.link.fed.Store(t.clk.now.Load())
	return t.clk.pulse(feedEvery)
}

// standBy waits for the end of a motion and feeds the watchdog meanwhile. When whoever waits goes first, leave ends
// the motion, under mu; a machine whose link was cut is on its own.
func (t *Twin) standBy(ctx context.Context, tick *timer, done <-chan error, leave func()) error {
	defer tick.Stop()
	var err error
	for err == nil {
		select {
		case ended := <-done:
			return ended
		case <-t.link.lost:
			return ErrCut
		case <-ctx.Done():
			err = ctx.Err()
		case <-t.over:
			err = ErrOver
		case <-tick.C():
			t.link.fed.Store(t.clk.now.Load())
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	leave()
	return err
}
