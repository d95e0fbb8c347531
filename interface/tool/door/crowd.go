package door

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// bounded is a listener with so many connections at most. When there is no room, the newcomer gets the place of
// the oldest connection that has not asked for anything yet, else of the one that has been idle longest; only when
// all are being answered is it closed itself. So whoever just holds connections keeps nobody out.
type bounded struct {
	net.Listener
	most int

	mu     sync.Mutex
	conns  map[*slotted]struct{}
	pushed int // how many were closed for others, or turned away, since they were last counted
}

// Accept gives every newcomer a place for which there is one.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		s := &slotted{Conn: c, in: b, since: time.Now()}
		ok, out := b.seat(s)
		if out != nil {
			_ = out.Conn.Close() // nothing was being answered on it
		}
		if ok {
			return s, nil
		}
		_ = c.Close() // nothing was said on it
	}
}

// seat gives s a place, and says whose place it was, if anybody's.
func (b *bounded) seat(s *slotted) (ok bool, out *slotted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.conns) >= b.most {
		b.pushed++
		for c := range b.conns {
			if c.state != http.StateActive && (out == nil || c.before(out)) {
				out = c
			}
		}
		if out == nil {
			return false, nil
		}
		delete(b.conns, out)
	}
	b.conns[s] = struct{}{}
	return true, out
}

// crowd is how many had to go since the last call.
func (b *bounded) crowd() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.pushed
	b.pushed = 0
	return n
}

// slotted is a connection that gives its place free.
type slotted struct {
	net.Conn
	in *bounded

	state http.ConnState // of in.mu, as since
	since time.Time
}

// before reports whether s has to go before o: who never asked before who did, the older before the younger.
func (s *slotted) before(o *slotted) bool {
	if (s.state == http.StateNew) != (o.state == http.StateNew) {
		return s.state == http.StateNew
	}
	return s.since.Before(o.since)
}

// is notes what the server does on the connection.
func (s *slotted) is(state http.ConnState) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if state != http.StateNew { // the age of one that has not asked is that since it came
		s.state, s.since = state, time.Now()
	}
}

// Close ends the connection.
func (s *slotted) Close() error {
	s.in.mu.Lock()
	delete(s.in.conns, s)
	s.in.mu.Unlock()
	return s.Conn.Close()
}

// CloseWrite lets net/http end a connection so that its last words arrive.
func (s *slotted) CloseWrite() error {
	if c, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// NetConn is the connection below.
func (s *slotted) NetConn() net.Conn { return s.Conn }

// places is a server's ConnState that tells the places what their connections are about, and the log, once a
// second, that there were too few.
func places(news *slog.Logger) func(net.Conn, http.ConnState) {
	var s storm
	return func(c net.Conn, state http.ConnState) {
		if over, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
			if _, own := c.(*slotted); !own {
				c = over.NetConn()
			}
		}
		p, ok := c.(*slotted)
		if !ok {
			return
		}
		p.is(state)
		if state != http.StateNew {
			return
		}
		if n := p.in.crowd(); n > 0 {
			if _, ok := s.may(time.Now()); ok {
				news.Warn("connections are full: the oldest idle ones are closed for new ones", "most", p.in.most, "closed", n, "remote", p.RemoteAddr().String())
			}
		}
	}
}

// unread is how long a request that was answered may still send what nobody wants to read.
const unread = time.Second

// curt bounds how long the server waits, once h has answered, for a body that h did not read: a client that never
// sends it would hold its place for ever.
func curt(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unread)) // a connection that is gone has none
		}
	})
}
