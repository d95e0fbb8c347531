package safety

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"viad/drivers/robot"
)

// DefaultSilence frees a seat whose driver has not called for so long.
const DefaultSilence = 10 * time.Minute

// Seat is the place of the one driver, known by the principal's name. It is freed by its driver, by silence, or
// by an operator's take-over. All methods are safe for concurrent use.
type Seat struct {
	clock   robot.Clock
	silence time.Duration
	log     *slog.Logger
	fresh   func()

	mu     sync.Mutex
	holder string // empty: free
	former string // who had it last; empty: nobody yet
	since  time.Time
	last   time.Time
}

// NewSeat makes a free seat; a silence of 0 takes DefaultSilence. fresh is called, before anything of the new driver
// is let through, whenever the seat goes to somebody else than had it last: what that one staged is not theirs.
// It must not wait for anything, nor call the seat; nil does nothing.
func NewSeat(c robot.Clock, silence time.Duration, fresh func(), log *slog.Logger) *Seat {
	if silence <= 0 {
		silence = DefaultSilence
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if fresh == nil {
		fresh = func() {}
	}
	return &Seat{clock: c, silence: silence, fresh: fresh, log: log}
}

// give seats name; it needs mu.
func (s *Seat) give(name string, now time.Time) {
	if name != s.former {
		s.fresh()
	}
	s.holder, s.former, s.since, s.last = name, name, now, now
}

// current is the holder, after silence has been counted; it needs mu.
func (s *Seat) current(now time.Time) string {
	if s.holder != "" && now.Sub(s.last) >= s.silence {
		s.log.Warn("seat freed by silence", slog.String("holder", s.holder), slog.Duration("silence", now.Sub(s.last)))
		s.holder = ""
	}
	return s.holder
}

// Take gives name the seat if it is free, and keeps it if name has it; otherwise it refuses.
func (s *Seat) Take(name string) *Refused {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	switch h := s.current(now); h {
	case "":
		s.give(name, now)
		s.log.Info("seat taken", slog.String("holder", name))
	case name:
	default:
		quiet := now.Sub(s.last)
		s.log.Warn("seat refused", slog.String("name", name), slog.String("holder", h), slog.Duration("quiet", quiet), slog.Duration("limit", s.silence))
		return &Refused{
			Rule: RuleSeat, Value: fmt.Sprintf("%q is driving, last call %.0f s ago", h, quiet.Seconds()), Limit: "one driver",
			Next: fmt.Sprintf("watch, or wait: the seat is freed by end_episode, by %.0f s of silence or by an operator", s.silence.Seconds()),
		}
	}
	s.last = now
	return nil
}

// Keep counts a call of name against silence; it reports whether name has the seat.
func (s *Seat) Keep(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if name == "" || s.current(now) != name {
		return false
	}
	s.last = now
	return true
}

// Free gives the seat back; it reports whether name had it.
func (s *Seat) Free(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || s.current(s.clock.Now()) != name {
		return false
	}
	s.holder = ""
	s.log.Info("seat freed", slog.String("holder", name))
	return true
}

// TakeOver gives the seat to operator, whoever has it, and returns who had it.
func (s *Seat) TakeOver(operator string) (from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	from = s.current(now)
	attrs := append([]any{slog.String("operator", operator)}, s.past(from, now)...)
	s.give(operator, now)
	s.log.Warn("seat taken over", attrs...)
	return from
}

// Release is an operator's word that the seat is free, whoever has it; it returns who had it.
func (s *Seat) Release(operator string) (from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	from = s.current(now)
	s.holder = ""
	s.log.Warn("seat released", append([]any{slog.String("operator", operator)}, s.past(from, now)...)...)
	return from
}

// past is who had the seat and for how long; it needs mu.
func (s *Seat) past(from string, now time.Time) []any {
	if from == "" {
		return []any{slog.String("from", "")}
	}
	return []any{slog.String("from", from), slog.Duration("held", now.Sub(s.since)), slog.Duration("quiet", now.Sub(s.last))}
}

// Holder is who has the seat, since when, and when they last called; an empty name means that it is free.
func (s *Seat) Holder() (name string, since, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current(s.clock.Now()), s.since, s.last
}
