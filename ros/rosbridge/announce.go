package rosbridge

import (
	"context"
	"slices"
)

// announcement is what the server must know for as long as a connection lasts: that we advertise, subscribe or serve. It
// is said again on every new connection, before anything else is sent there.
type announcement struct {
	do, undo []byte
	sentOn   chan struct{} // the connection that has heard do, by its lost channel
	again    bool          // undo and do once more
	dropped  bool          // undo, and forget
}

// want has an announcement made and kept.
func (s *socket) want(do, undo []byte) *announcement {
	a := &announcement{do: do, undo: undo}
	s.mu.Lock()
	s.wanted = append(s.wanted, a)
	s.mu.Unlock()
	s.poke()
	return a
}

// drop takes it back.
func (s *socket) drop(a *announcement) {
	s.mu.Lock()
	a.dropped = true
	s.mu.Unlock()
	s.poke()
}

// repeat takes it back and makes it again, perhaps in other words.
func (s *socket) repeat(a *announcement, do []byte) {
	s.mu.Lock()
	a.do, a.again = do, true
	s.mu.Unlock()
	s.poke()
}

func (s *socket) poke() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// announced waits until the present connection has heard a.
func (s *socket) announced(ctx context.Context, a *announcement) error {
	for {
		s.mu.Lock()
		ok, why, changed := s.out != nil && a.sentOn == s.lost, s.why, s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-s.n.stopped:
			return errClosed
		case <-ctx.Done():
			if why == "" {
				return ctx.Err()
			}
			return &downError{s.n.cfg.URL, s.what, why}
		}
	}
}

// announce says on one connection what is wanted; when all has been said for the first time the connection is up.
func (s *socket) announce(ctx context.Context, out chan *job, lost chan struct{}) {
	up := false
	for {
		a, data, undo := s.next(lost)
		if a == nil {
			if !up {
				up = true
				s.set(out, lost, "")
			}
			select {
			case <-s.kick:
				continue
			case <-ctx.Done():
				return
			}
		}
		if put(ctx, out, lost, data) != nil {
			return // the session is over, and says why
		}
		s.said(a, undo, lost)
	}
}

// next is what is to be said next on a connection, and whether it takes something back.
func (s *socket) next(lost chan struct{}) (a *announcement, data []byte, undo bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = slices.DeleteFunc(s.wanted, func(a *announcement) bool { return a.dropped && a.sentOn != lost })
	for _, a := range s.wanted {
		heard := a.sentOn == lost
		switch {
		case heard && (a.dropped || a.again):
			return a, a.undo, true
		case !heard:
			a.again = false
			return a, a.do, false
		}
	}
	return nil, nil, false
}

func (s *socket) said(a *announcement, undo bool, lost chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.sentOn = lost
	if undo {
		a.sentOn, a.again = nil, false
	}
	s.broadcast()
}
