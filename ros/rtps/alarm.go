package rtps

import (
	"math"
	"sync/atomic"
	"time"
)

// alarm is when the participant's one timer goroutine must next look around. Asking for a later time than it already
// has costs an atomic load, so that hot paths may ask for every sample.
type alarm struct {
	at   atomic.Int64
	poke chan struct{}
}

// shortest is the least time between two rounds of the timer goroutine.
const shortest = 2 * time.Millisecond

// by asks for a round at t or before; t is of Participant.now.
func (a *alarm) by(t int64) {
	for {
		cur := a.at.Load()
		if cur <= t {
			return
		}
		if a.at.CompareAndSwap(cur, t) {
			select {
			case a.poke <- struct{}{}:
			default:
			}
			return
		}
	}
}

// run calls round, which gives when it wants to be called again, until done.
func (a *alarm) run(now func() int64, round func(now int64) (next int64), done <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
			a.at.Store(math.MaxInt64)
			a.by(max(round(now()), now()+int64(shortest)))
		case <-a.poke:
		}
		timer.Reset(time.Duration(max(a.at.Load()-now(), 0)))
	}
}
