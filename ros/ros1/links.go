package ros1

import (
	"sync"
	"time"

	"viad/ros"
)

// links tells watchers of the connection to the master, each in its own goroutine and in order.
type links struct {
	mu       sync.Mutex
	now      ros.Link
	watchers map[*watcher]struct{}
	wg       sync.WaitGroup
}

type watcher struct {
	mu      sync.Mutex
	waiting []ros.Link
	wake    chan struct{}
	stop    chan struct{}
	once    sync.Once
}

func newLinks() *links {
	return &links{now: ros.Link{Why: "not connected yet", At: time.Now()}, watchers: make(map[*watcher]struct{})}
}

// set takes a state; one that is up again for the same reason is no news.
func (l *links) set(up bool, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now.Up == up && l.now.Why == why {
		return
	}
	l.now = ros.Link{Up: up, Why: why, At: time.Now()}
	for w := range l.watchers {
		w.add(l.now)
	}
}

func (l *links) state() ros.Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *links) watch(f func(ros.Link)) (stop func()) {
	w := &watcher{wake: make(chan struct{}, 1), stop: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	w.add(l.now)
	l.watchers[w] = struct{}{}
	l.wg.Go(func() { w.run(f) })
	return func() {
		l.mu.Lock()
		delete(l.watchers, w)
		l.mu.Unlock()
		w.once.Do(func() { close(w.stop) })
	}
}

func (l *links) close() {
	l.set(false, "the node is closed")
	l.mu.Lock()
	for w := range l.watchers {
		w.once.Do(func() { close(w.stop) })
		delete(l.watchers, w)
	}
	l.mu.Unlock()
	l.wg.Wait()
}

func (w *watcher) add(k ros.Link) {
	w.mu.Lock()
	w.waiting = append(w.waiting, k)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) run(f func(ros.Link)) {
	for {
		select {
		case <-w.wake:
		case <-w.stop:
			w.drain(f) // what was true before the end is still told
			return
		}
		w.drain(f)
	}
}

func (w *watcher) drain(f func(ros.Link)) {
	for {
		w.mu.Lock()
		if len(w.waiting) == 0 {
			w.mu.Unlock()
			return
		}
		k := w.waiting[0]
		w.waiting = w.waiting[1:]
		w.mu.Unlock()
		f(k)
	}
}
