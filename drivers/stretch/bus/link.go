package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"viad/drivers/hello"
	"viad/drivers/serial"
)

// device is what is at the other end of a port. Its methods run on the link's goroutine, one at a time.
type device interface {
	// greet asks everything that has to be known, of a port that was just opened.
	greet(ctx context.Context, p *serial.Port) error
	// look takes one reading.
	look(ctx context.Context) error
	// lost forgets the device.
	lost()
}

// link keeps one port open, and tells when it is not.
type link struct {
	r    *Robot
	name string // "the lift's board"
	path string
	baud int
	dev  device

	// Under the Robot's mu.
	up    bool
	why   string // why it is not up; empty before the first attempt
	opens int    // sessions that were up
}

// run opens the port again and again until ctx ends.
func (l *link) run(ctx context.Context) {
	wait := againLeast
	for {
		began := l.r.clock.Now()
		err := l.session(ctx)
		if ctx.Err() != nil {
			l.fall("this daemon has closed it")
			return
		}
		l.fall(l.words(err))
		if l.r.clock.Now().Sub(began) > 2*againMost { // it had been well
			wait = againLeast
		}
		select {
		case <-l.r.clock.After(wait):
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, againMost)
	}
}

// session is one life of the port: it ends with what broke it.
func (l *link) session(ctx context.Context) (err error) {
	p, err := serial.Open(serial.Config{Path: l.path, Baud: l.baud})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := l.dev.greet(ctx, p); err != nil {
		return err
	}
	tick := l.r.clock.Ticker(pollEvery)
	defer tick.Stop()
	for good := l.r.clock.Now(); ; {
		err := l.dev.look(ctx)
		now := l.r.clock.Now()
		var gone *serial.Unplugged
		switch {
		case err == nil:
			good = now
			l.rise()
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &gone), errors.Is(err, serial.ErrClosed), errors.Is(err, hello.ErrRestarted), now.Sub(good) > silentAfter:
			return err
		}
		select {
		case <-tick.C():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *link) rise() {
	l.r.mu.Lock()
	was := l.up
	l.up, l.why = true, ""
	if !was {
		l.opens++
	}
	l.r.mu.Unlock()
	if !was {
		l.r.log.Info("a port is open and its device answers", "device", l.name, "path", l.path)
	}
}

// fall forgets the device and ends what runs.
func (l *link) fall(why string) {
	l.r.mu.Lock()
	was, news := l.up, l.up || l.why != why
	l.up, l.why = false, why
	l.dev.lost()
	l.r.mu.Unlock()
	if news {
		l.r.log.Warn("a port is not usable", "device", l.name, "why", why)
	}
	if was {
		l.r.interrupt(errors.New(why))
	}
}

// words are those for a person.
func (l *link) words(err error) string {
	var used *serial.InUse
	switch {
	case errors.As(err, &used):
		return fmt.Sprintf("%s cannot be had: %v", l.name, used)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Sprintf("%s is not there: no %s; switch the robot on, look at the cable, and whether the robot's udev rules are installed", l.name, l.path)
	case errors.Is(err, os.ErrPermission):
		return fmt.Sprintf("%s cannot be opened: this daemon's user may not use %s; add the user to the port's group (dialout)", l.name, l.path)
	}
	if errors.Is(err, hello.ErrProtocol) {
		return fmt.Sprintf("%s is refused: %v", l.name, err)
	}
	return fmt.Sprintf("%s is lost: %v", l.name, err)
}

// measured is when something was measured, in the robot's time.
type measured struct {
	at    time.Time // when it came; zero: never
	moved time.Time // when its number last changed
}

// stampAge watches how late a board's answers come, by the board's own clock: an answer that lay on the line is as old as
// that.
type stampAge struct {
	began time.Time     // of the first answer: later ones are counted from it, so that a set wall clock is no delay
	least time.Duration // host minus board, the least that was seen
	at    time.Time     // when that was
	known bool
}

// drift is how far two clocks may go apart: a thousandth is more than any quartz.
const drift = 1000

// late is by how much an answer is later than the least.
func (s *stampAge) late(now time.Time, stamp time.Duration) time.Duration {
	if !s.known {
		s.began = now
	}
	d := now.Sub(s.began) - stamp
	if s.known {
		s.least += now.Sub(s.at) / drift
		s.at = now
	}
	if !s.known || d < s.least {
		s.least, s.at, s.known = d, now, true
	}
	return d - s.least
}
