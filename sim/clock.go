package sim

import (
	"sync"
	"sync/atomic"
	"time"

	"viad/drivers/robot"
)

// Pace says how a twin's clock relates to the wall's.
type Pace string

// The paces.
const (
	PaceReal Pace = "real" // paced to wall time, for people; slower when the machine cannot keep up
	// PaceFast advances only while somebody waits on the clock, as fast as the machine allows, and
	// never past a tick that has not been received. With nobody waiting it stands still at no cost.
	PaceFast Pace = "fast"
)

// epoch is where every fast clock starts, so that equal runs give equal times.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// How long, in wall time, a fast clock waits for a tick to be received before it goes on without.
// A ticker's reader may be at work (a picture takes long under the race detector); an After that
// stays unread has mostly been left behind by a select, and its value is kept anyway.
const (
	tickPatience  = 2 * time.Second
	afterPatience = 50 * time.Millisecond
)

// clock is the physics clock. The engine advances it; anybody reads it and waits on it.
type clock struct {
	fast bool
	now  atomic.Int64  // nanoseconds since base
	base time.Time     // instant of 0
	wake chan struct{} // tells the engine that there is something new
	stir atomic.Int64  // wall time of the last nudge, nanoseconds

	mu     sync.Mutex
	timers []*timer
}

// timer is one After, Ticker or hold.
type timer struct {
	c      *clock
	ch     chan time.Time // capacity 1
	at     int64          // nanoseconds on the clock
	period int64          // 0: fires once
	hold   bool           // the clock waits until stop, not only until receipt
	quiet  bool           // makes no time pass: it only wants to be read while others do
	sent   time.Time      // wall time of the last delivery, zero when received
	waived bool           // unread for too long: the clock no longer waits for it until it is read again
}

func newClock(p Pace, base time.Time) *clock {
	return &clock{fast: p == PaceFast, base: base, wake: make(chan struct{}, 1)}
}

// Now is the physics time.
func (c *clock) Now() time.Time { return c.base.Add(time.Duration(c.now.Load())) }

// After delivers once, d of physics time later.
func (c *clock) After(d time.Duration) <-chan time.Time {
	return c.add(&timer{at: c.now.Load() + int64(d)}).ch
}

// Ticker delivers every d of physics time.
func (c *clock) Ticker(d time.Duration) robot.Ticker {
	if d <= 0 {
		d = time.Nanosecond
	}
	return c.add(&timer{at: c.now.Load() + int64(d), period: int64(d)})
}

// pulse is a Ticker that makes no time pass.
func (c *clock) pulse(d time.Duration) *timer {
	return c.add(&timer{at: c.now.Load() + int64(d), period: int64(d), quiet: true})
}

// holdAt returns a timer that fires at t and keeps a fast clock there until it is stopped.
func (c *clock) holdAt(t time.Time) *timer {
	return c.add(&timer{at: int64(t.Sub(c.base)), hold: true})
}

func (c *clock) add(t *timer) *timer {
	t.c, t.ch = c, make(chan time.Time, 1)
	if t.period == 0 && t.at <= c.now.Load() {
		t.ch <- c.Now() // due already: it need not wait for the engine
		if !t.hold {
			return t
		}
		t.sent = wallNow()
	}
	c.mu.Lock()
	c.timers = append(c.timers, t)
	c.mu.Unlock()
	c.nudge()
	return t
}

// C is the channel of ticks.
func (t *timer) C() <-chan time.Time { return t.ch }

// Stop ends the ticker; the clock no longer waits for it.
func (t *timer) Stop() {
	t.c.remove(t)
	t.c.nudge()
}

func (c *clock) remove(t *timer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, x := range c.timers {
		if x == t {
			c.timers = append(c.timers[:i], c.timers[i+1:]...)
			return
		}
	}
}

func (c *clock) nudge() {
	c.stir.Store(wallNow().UnixNano())
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next says whether anybody waits, the earliest time that somebody waits for, and whether there are tickers
// that nobody reads: those do not make time pass.
func (c *clock) next() (at int64, wanted, waived bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at = 1 << 62
	for _, t := range c.timers {
		if t.quiet {
			continue
		}
		at = min(at, t.at)
		wanted = wanted || !t.waived
		waived = waived || t.waived
	}
	return at, wanted, waived
}

// A fast clock that only a distant deadline drives goes at the wall's pace for a while after the last thing
// that anybody asked of it: whoever asked is probably computing, and his deadlines should not run sixteen
// times as fast as he does.
const (
	distant = time.Second
	musing  = 250 * time.Millisecond // wall time
)

func (c *clock) lazy(at int64) bool {
	return at-c.now.Load() > int64(distant) && wallNow().UnixNano()-c.stir.Load() < int64(musing)
}

// fire delivers what is due.
func (c *clock) fire() {
	now, stamp := c.now.Load(), c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := c.timers[:0]
	for _, t := range c.timers {
		if t.at > now {
			keep = append(keep, t)
			continue
		}
		select {
		case t.ch <- stamp:
			t.sent, t.waived = wallNow(), false
		default: // the last tick is still unread: this one is dropped, as time.Ticker does
		}
		switch {
		case t.period > 0:
			t.at += (now - t.at + t.period) / t.period * t.period
			keep = append(keep, t)
		case t.hold || c.fast:
			t.at = 1 << 62
			keep = append(keep, t)
		}
	}
	clear(c.timers[len(keep):])
	c.timers = keep
}

// held says whether a fast clock must stand still because something delivered was not received, and
// drops one-shot timers that were.
func (c *clock) held() bool {
	if !c.fast {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	held := false
	keep := c.timers[:0]
	for _, t := range c.timers {
		unread := len(t.ch) > 0
		switch {
		case t.hold:
			held = held || !t.sent.IsZero()
		case t.sent.IsZero():
		case !unread:
			t.sent, t.waived = time.Time{}, false
			if t.period == 0 {
				continue
			}
		case t.period == 0 && wallSince(t.sent) > afterPatience:
			continue // its value stays in the channel
		case t.waived:
		case t.period > 0 && wallSince(t.sent) > tickPatience:
			t.waived = true
		default:
			held = true
		}
		keep = append(keep, t)
	}
	clear(c.timers[len(keep):])
	c.timers = keep
	return held
}

// The wall clock paces a real twin and bounds the wait for an abandoned tick; it measures nothing else.
func wallNow() time.Time                  { return time.Now() }
func wallSince(t time.Time) time.Duration { return time.Since(t) }
