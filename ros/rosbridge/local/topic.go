package local

import (
	"context"
	"slices"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/msg"
)

type outlet struct {
	n     *Node
	topic ros.Topic
	kept  [][]byte
	once  sync.Once
}

// Advertise makes a publisher.
func (n *Node) Advertise(t ros.Topic) (ros.Outlet, error) {
	o := &outlet{n: n, topic: t}
	if err := n.keep(o); err != nil {
		return nil, err
	}
	n.g.mu.Lock()
	defer n.g.mu.Unlock()
	n.g.outlets[o] = struct{}{}
	n.g.change()
	return o, nil
}

// fits says whether a subscription hears a publisher.
func fits(o *outlet, s *subscription) bool {
	return o.topic.Name == s.topic.Name && (o.topic.QoS.Reliable || !s.topic.QoS.Reliable) && (o.topic.QoS.Transient || !s.topic.QoS.Transient)
}

// matched is called with the graph's mutex held.
func (o *outlet) matched() (out []*subscription) {
	for s := range o.n.g.subs {
		if fits(o, s) {
			out = append(out, s)
		}
	}
	return out
}

func (o *outlet) Publish(_ context.Context, m msg.Message) error {
	b, err := bytesOf(m)
	if err != nil {
		return err
	}
	o.n.g.mu.Lock()
	defer o.n.g.mu.Unlock()
	if _, ok := o.n.g.outlets[o]; !ok {
		return errClosed
	}
	if o.topic.QoS.Transient {
		o.kept = append(o.kept, b)
		o.kept = o.kept[max(0, len(o.kept)-max(1, o.topic.QoS.Depth)):]
	}
	for _, s := range o.matched() {
		s.push(b)
	}
	return nil
}

func (o *outlet) Ready(ctx context.Context, n int) error {
	return o.n.g.until(ctx, o.n, func() bool { return len(o.matched()) >= n })
}

func (o *outlet) Subscribers() int {
	o.n.g.mu.Lock()
	defer o.n.g.mu.Unlock()
	return len(o.matched())
}

func (o *outlet) Close() error {
	o.once.Do(func() {
		o.n.g.mu.Lock()
		defer o.n.g.mu.Unlock()
		delete(o.n.g.outlets, o)
		o.n.g.change()
	})
	return nil
}

type subscription struct {
	n     *Node
	topic ros.Topic
	f     func(ros.Incoming)
	wake  chan struct{}
	done  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	waiting []*incoming
	stats   ros.Stats
}

type incoming struct {
	s  *subscription
	b  []byte
	at time.Time
}

func (i *incoming) Info() ros.Info { return ros.Info{Received: i.at} }

func (i *incoming) Decode(m msg.Message) error { return read(i.b, m) }

// Subscribe calls f with each message.
func (n *Node) Subscribe(t ros.Topic, f func(ros.Incoming)) (ros.Subscription, error) {
	s := &subscription{n: n, topic: t, f: f, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if err := n.keep(s); err != nil {
		return nil, err
	}
	n.wg.Go(s.run)
	n.g.mu.Lock()
	defer n.g.mu.Unlock()
	n.g.subs[s] = struct{}{}
	n.g.change()
	for o := range n.g.outlets {
		if t.QoS.Transient && fits(o, s) {
			for _, b := range o.kept[max(0, len(o.kept)-max(1, t.QoS.Depth)):] {
				s.push(b)
			}
		}
	}
	return s, nil
}

func (s *subscription) push(b []byte) {
	s.mu.Lock()
	s.stats.Received++
	depth := s.topic.QoS.Depth
	if depth <= 0 {
		depth = 10
	}
	if len(s.waiting) >= depth && !s.topic.QoS.KeepAll {
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.stats.Dropped++
	}
	s.waiting = append(s.waiting, &incoming{s, b, time.Now()})
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *subscription) run() {
	for {
		select {
		case <-s.wake:
		case <-s.done:
			return
		}
		for {
			s.mu.Lock()
			if len(s.waiting) == 0 {
				s.mu.Unlock()
				break
			}
			in := s.waiting[0]
			s.waiting = slices.Delete(s.waiting, 0, 1)
			s.mu.Unlock()
			select {
			case <-s.done:
				return
			default:
				s.f(in)
			}
		}
	}
}

func (s *subscription) Publishers() int {
	s.n.g.mu.Lock()
	defer s.n.g.mu.Unlock()
	count := 0
	for o := range s.n.g.outlets {
		if fits(o, s) {
			count++
		}
	}
	return count
}

func (s *subscription) Stats() ros.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

func (s *subscription) Close() error {
	s.once.Do(func() {
		close(s.done)
		s.n.g.mu.Lock()
		defer s.n.g.mu.Unlock()
		delete(s.n.g.subs, s)
		s.n.g.change()
	})
	return nil
}
