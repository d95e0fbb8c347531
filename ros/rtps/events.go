package rtps

import (
	"slices"
	"sync"
)

// mostEvents bounds how many changes wait for one watcher; more are dropped, oldest first.
const mostEvents = 1 << 16

type watcher struct {
	f      func(Event)
	wake   chan struct{}
	mu     sync.Mutex
	closed bool
	queue  []Event
}

// Watch calls f, in one goroutine and in order, with what is known of others now and with each change from now on. stop
// ends that; a call that is under way may still be running when stop returns.
func (p *Participant) Watch(f func(Event)) (stop func()) {
	w := &watcher{f: f, wake: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return func() {}
	}
	for _, q := range p.peers {
		v := p.view(q)
		w.add(Event{Kind: PeerFound, Peer: v})
		for _, e := range q.endpoints {
			w.add(Event{Kind: EndpointFound, Peer: v, Endpoint: e.Endpoint})
			for _, ours := range p.matchedWith(e) {
				w.add(Event{Kind: Matched, Peer: v, Endpoint: e.Endpoint, Ours: ours})
			}
			for k, m := range p.mismatches {
				if k[1] == e.GUID {
					w.add(Event{Kind: Mismatched, Peer: v, Endpoint: e.Endpoint, Ours: k[0], Mismatch: m})
				}
			}
		}
	}
	p.watchers = append(p.watchers, w)
	p.wg.Go(w.run)
	return func() {
		p.mu.Lock()
		p.watchers = slices.DeleteFunc(p.watchers, func(o *watcher) bool { return o == w })
		p.mu.Unlock()
		w.shut()
	}
}

func (p *Participant) matchedWith(e *remote) (ours []GUID) {
	for _, r := range p.sources[e.GUID] {
		ours = append(ours, r.GUID())
	}
	for _, w := range p.writers {
		if w.topic == e.Topic && w.has(e.GUID) {
			ours = append(ours, w.GUID())
		}
	}
	return ours
}

func (w *Writer) has(g GUID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byGUID[g] != nil
}

// emit tells all watchers. The participant's lock is held, which keeps the order.
func (p *Participant) emit(e Event) {
	for _, w := range p.watchers {
		w.add(e)
	}
}

func (w *watcher) add(e Event) {
	w.mu.Lock()
	if len(w.queue) >= mostEvents {
		w.queue = w.queue[1:]
	}
	w.queue = append(w.queue, e)
	w.mu.Unlock()
	w.poke()
}

func (w *watcher) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) shut() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.poke()
}

func (w *watcher) run() {
	for range w.wake {
		for {
			w.mu.Lock()
			if w.closed {
				w.mu.Unlock()
				return
			}
			if len(w.queue) == 0 {
				w.mu.Unlock()
				break
			}
			e := w.queue[0]
			w.queue = w.queue[1:]
			w.mu.Unlock()
			w.f(e)
		}
	}
}
