package rosbridge

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"viad/ros"
)

// links tells watchers how the connection stands, each in order.
type links struct {
	last     ros.Link
	watchers map[*watcher]struct{}
}

type watcher struct {
	mu      sync.Mutex
	waiting []ros.Link
	wake    chan struct{}
	done    chan struct{}
	once    sync.Once
}

const maxWaitingLinks = 64 // of one watcher; then the oldest is forgotten

func (w *watcher) tell(l ros.Link) {
	w.mu.Lock()
	if len(w.waiting) == maxWaitingLinks {
		w.waiting = w.waiting[1:]
	}
	w.waiting = append(w.waiting, l)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Links calls f with the present state and then at every change. The link is up while both connections are.
func (n *Node) Links(f func(ros.Link)) (stop func()) {
	w := &watcher{wake: make(chan struct{}, 1), done: make(chan struct{})}
	n.mu.Lock()
	if n.watches.watchers == nil {
		n.watches.watchers = map[*watcher]struct{}{}
	}
	n.watches.watchers[w] = struct{}{}
	n.mu.Unlock()
	w.tell(n.link())
	go func() {
		for {
			select {
			case <-w.wake:
			case <-w.done:
				return
			case <-n.stopped:
				return
			}
			w.mu.Lock()
			ls := w.waiting
			w.waiting = nil
			w.mu.Unlock()
			for _, l := range ls {
				f(l)
			}
		}
	}()
	return func() {
		w.once.Do(func() { close(w.done) })
		n.mu.Lock()
		delete(n.watches.watchers, w)
		n.mu.Unlock()
	}
}

func (n *Node) link() ros.Link {
	l := ros.Link{Up: true, Why: "connected to " + n.cfg.URL, At: time.Now()}
	for _, s := range []*socket{n.data, n.urgent} {
		if out, _, why, _ := s.state(); out == nil {
			l.Up, l.Why = false, (&downError{n.cfg.URL, s.what, why}).Error()
			break
		}
	}
	return l
}

func (n *Node) linkChanged() {
	l := n.link()
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.Up == n.watches.last.Up && l.Why == n.watches.last.Why {
		return
	}
	n.watches.last = l
	for w := range n.watches.watchers {
		w.tell(l)
	}
}

// storm logs each kind of news at most once a second, and how many were left out.
type storm struct {
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]*stormed
}

type stormed struct {
	at      time.Time
	skipped int
}

func (s *storm) warn(what string, args ...any) {
	s.mu.Lock()
	if s.last == nil {
		s.last = map[string]*stormed{}
	}
	kind := what
	if len(args) > 1 && args[0] == "topic" { // one that we subscribe to: a few
		kind += fmt.Sprint(args[1])
	}
	k := s.last[kind]
	if k == nil {
		k = &stormed{}
		s.last[kind] = k
	}
	if time.Since(k.at) < time.Second {
		k.skipped++
		s.mu.Unlock()
		return
	}
	if k.skipped > 0 {
		args = append(args, "left_out", k.skipped)
	}
	k.at, k.skipped = time.Now(), 0
	s.mu.Unlock()
	s.log.Warn(what, args...) //nolint:sloglint // the callers' messages are literals
}
