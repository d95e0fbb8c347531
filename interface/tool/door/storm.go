package door

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// storm lets one line a second through, so that whoever knocks all day does not fill the disk.
type storm struct {
	mu     sync.Mutex
	logged time.Time // of the last line
	quiet  int       // since then, without a line of their own
}

// may reports whether there may be a line now, and how many had none since the last.
func (s *storm) may(now time.Time) (quiet int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.logged.IsZero() && now.Sub(s.logged) < time.Second {
		s.quiet++
		return 0, false
	}
	quiet, s.quiet, s.logged = s.quiet, 0, now
	return quiet, true
}

// serverLog takes the lines of net/http's server, which writes one for every broken TLS handshake.
type serverLog struct {
	log   *slog.Logger
	storm storm
}

func (l *serverLog) Write(b []byte) (int, error) {
	text := strings.TrimSpace(string(b))
	if strings.Contains(text, "panic serving") { // a fault of ours, never to be left out
		l.log.Error("http server", "said", text)
		return len(b), nil
	}
	if more, ok := l.storm.may(time.Now()); ok {
		l.log.Warn("http server", "said", text, "not_logged", more)
	}
	return len(b), nil
}
