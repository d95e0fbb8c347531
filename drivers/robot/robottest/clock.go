// Package robottest is what tests of rooms above the contract run on: a clock in virtual time, a
// kinematic Body that does as it is told, or misbehaves as it is told, and a suite that every Body passes.
package robottest

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"viad/drivers/robot"
)

// Epoch is where every Clock starts.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Clock is virtual time under the twin's rule: it runs as fast as it can while somebody waits on it, stands
// still while nobody does, and never passes a tick that has not been received. A reader that holds a
// ticker and does not read it stops time, here as on the twin: such a test hangs, and should.
//
// After's channel is buffered: an abandoned After holds nobody up.
//
// A goroutine that computes while others wait sees time pass, as on a fast twin. Where a test can run in a
// bubble (testing/synctest, no sockets), robot.WallClock is the better virtual time: there nothing passes
// while anybody computes.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	waits  []*wait
	wake   chan struct{}
	quit   chan struct{}
	done   chan struct{}
	manual bool
}

type wait struct {
	due    time.Time
	period time.Duration // 0 for After
	ch     chan time.Time
	stop   chan struct{}
	once   sync.Once
}

// NewClock starts a Clock that runs until the test ends.
func NewClock(tb testing.TB) *Clock {
	c := newClock()
	go c.run()
	tb.Cleanup(c.Close)
	return c
}

// NewManualClock is a clock that moves only by Advance. Its tickers drop ticks that nobody reads.
func NewManualClock() *Clock {
	c := newClock()
	c.manual = true
	close(c.done)
	return c
}

func newClock() *Clock {
	return &Clock{now: epoch, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
}

// Close stops time for good.
func (c *Clock) Close() {
	c.mu.Lock()
	select {
	case <-c.quit:
	default:
		close(c.quit)
	}
	c.mu.Unlock()
	<-c.done
}

// Now is the virtual time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Since is the virtual time since the clock was made.
func (c *Clock) Since() time.Duration { return c.Now().Sub(epoch) }

// After delivers once, d later.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	return c.add(&wait{ch: make(chan time.Time, 1), stop: make(chan struct{})}, d).ch
}

// Ticker delivers every d until stopped.
func (c *Clock) Ticker(d time.Duration) robot.Ticker {
	size := 0
	if c.manual {
		size = 1
	}
	return ticker{c, c.add(&wait{period: max(d, 1), ch: make(chan time.Time, size), stop: make(chan struct{})}, d)}
}

func (c *Clock) add(w *wait, d time.Duration) *wait {
	c.mu.Lock()
	w.due = c.now.Add(max(d, 0))
	c.waits = append(c.waits, w)
	c.mu.Unlock()
	c.poke()
	return w
}

func (c *Clock) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

type ticker struct {
	c *Clock
	w *wait
}

func (t ticker) C() <-chan time.Time { return t.w.ch }

func (t ticker) Stop() {
	t.c.mu.Lock()
	t.c.remove(t.w)
	t.c.mu.Unlock()
	t.w.once.Do(func() { close(t.w.stop) })
}

func (c *Clock) remove(w *wait) {
	for i, x := range c.waits {
		if x == w {
			c.waits = append(c.waits[:i], c.waits[i+1:]...)
			return
		}
	}
}

// next moves time to the earliest wait that is due by limit and takes it out, or renews it. Waits due at
// the same instant come in the order in which they were made or renewed.
func (c *Clock) next(limit time.Time) (*wait, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first *wait
	for _, w := range c.waits {
		if !w.due.After(limit) && (first == nil || w.due.Before(first.due)) {
			first = w
		}
	}
	if first == nil {
		return nil, time.Time{}
	}
	if first.due.After(c.now) {
		c.now = first.due
	}
	c.remove(first)
	at := first.due
	if first.period > 0 {
		first.due = at.Add(first.period)
		c.waits = append(c.waits, first)
	}
	return first, at
}

func (c *Clock) run() {
	defer close(c.done)
	forever := epoch.Add(1 << 62)
	for {
		select {
		case <-c.quit:
			return
		default:
		}
		before := c.Now()
		w, at := c.next(forever)
		if w == nil {
			select {
			case <-c.wake:
			case <-c.quit:
				return
			}
			continue
		}
		breathe(at.Sub(before))
		select {
		case w.ch <- at:
		case <-w.stop:
		case <-c.quit:
			return
		}
	}
}

// speed is how many times real time the clock runs at most: goroutines that have just been started or woken
// need some microseconds to get to their own waiting.
const speed = 25

func breathe(d time.Duration) {
	for end := time.Now().Add(min(d, time.Second) / speed); time.Now().Before(end); {
		runtime.Gosched()
	}
}

// Advance moves a manual clock by d and delivers what falls due on the way.
func (c *Clock) Advance(d time.Duration) {
	end := c.Now().Add(d)
	for {
		w, at := c.next(end)
		if w == nil {
			break
		}
		select {
		case w.ch <- at:
		default:
		}
	}
	c.mu.Lock()
	c.now = end
	c.mu.Unlock()
}
