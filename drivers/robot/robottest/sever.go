package robottest

import (
	"errors"
	"time"

	"viad/drivers/robot"
)

// ErrSevered is what calls into a severed Body return.
var ErrSevered = errors.New("the link to the robot is lost")

// watchdog is how long the machine behind a severed Body goes on before it brakes by itself; the rest of Deadman is
// for braking.
const watchdog = 40 * time.Millisecond

// Sever cuts the link between this process and the machine for good: readings stop, calls fail, and the machine's own
// watchdog brakes what moves.
func (b *Body) Sever() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	b.settle(now)
	if b.severed.IsZero() {
		b.severed, b.frozen = now, now
		close(b.cut)
	}
}

// watch is the machine's watchdog. It needs mu, after settle.
func (b *Body) watch(now time.Time) {
	r := b.run
	if b.severed.IsZero() || r == nil || !r.halted.IsZero() || r.faults.DeafAlways || now.Sub(b.severed) < watchdog {
		return
	}
	r.halted = b.severed.Add(watchdog)
}

// Machine is where the machine really is and how fast it really moves, whatever its readings say.
func (b *Body) Machine() robot.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	b.watch(now)
	b.settle(now)
	p := b.at(now)
	return robot.State{
		Received: now, Stamp: now, Changed: now, Q: p.Q, QD: p.QD, HasBase: true, Base: p.Base, BaseV: p.BaseV,
		Jaw: b.jawAt(now), Mode: b.mode, Fault: b.fault,
	}
}
