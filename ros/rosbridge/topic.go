package rosbridge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"viad/ros"
	"viad/ros/msg"
)

// feed is one topic as it comes: rosbridge has one subscription of a client for a topic, however many we have.
type feed struct {
	topic, typ string
	id         string
	socket     *socket
	wish       Encoding
	transient  bool
	depth      int // the greatest of the subscriptions; 0 is everything

	// Below, the node's mutex holds.
	subs    []*subscription
	ann     *announcement
	enc     Encoding
	got     bool // since it was subscribed last
	last    time.Time
	patient time.Duration // how long silence is borne now
	asking  bool
}

// Subscribe asks for a topic.
func (n *Node) Subscribe(topic ros.Topic, f func(ros.Incoming)) (ros.Subscription, error) {
	if err := checkName("topic", topic.Name, topic.New); err != nil {
		return nil, err
	}
	depth := topic.QoS.Depth
	if depth <= 0 {
		depth = ros.Default().Depth
	}
	if topic.QoS.KeepAll {
		depth = maxKeep
	}
	typ := topic.New().TypeName()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed
	}
	fd := n.feeds[topic.Name]
	if fd != nil && fd.typ != typ {
		return nil, fmt.Errorf("rosbridge: %s is subscribed as %s already, not as %s", topic.Name, fd.typ, typ)
	}
	if fd == nil {
		topic.QoS.Depth = depth
		wish := n.cfg.Encodings[topic.Name]
		if typ == statusType {
			wish = JSON // this package reads it too
		}
		fd = n.newFeed(topic.Name, typ, topic.QoS, wish)
	} else if depth > fd.depth {
		fd.depth = depth
		fd.socket.repeat(fd.ann, n.subscribeFrame(fd))
	}
	return n.addSubscription(fd, depth, f), nil
}

// newFeed subscribes on the wire; the node's mutex is held.
func (n *Node) newFeed(topic, typ string, qos ros.QoS, wish Encoding) *feed {
	fd := &feed{
		topic: topic, typ: typ, id: n.id("sub"), socket: n.data, wish: wish, enc: wish,
		transient: qos.Transient, depth: qos.Depth, last: time.Now(), patient: n.cfg.Silent,
	}
	if wish == Auto {
		fd.enc = JSON
		if bulky(typ) {
			fd.enc = CBORRaw
		}
	}
	n.feeds[topic] = fd
	fd.ann = fd.socket.want(n.subscribeFrame(fd), begin("unsubscribe").text("id", fd.id).text("topic", topic).end())
	return fd
}

// addSubscription is called with the node's mutex held.
func (n *Node) addSubscription(fd *feed, depth int, f func(ros.Incoming)) *subscription {
	s := &subscription{n: n, feed: fd, f: f, depth: depth, wake: make(chan struct{}, 1), done: make(chan struct{})}
	fd.subs = append(slices.Clone(fd.subs), s)
	n.wg.Go(s.run)
	return s
}

// What a subscription holds at most for its function, whatever depth it asked for: what comes beyond pushes out the
// oldest, which is counted.
const (
	maxKeep    = 4096     // messages
	maxWaiting = 64 << 20 // bytes
)

// subscribeFrame says every setting: what is left out differs between versions, and may be an endless queue.
func (n *Node) subscribeFrame(fd *feed) []byte {
	o := begin("subscribe").text("id", fd.id).text("topic", fd.topic).text("type", fd.typ).
		int("throttle_rate", n.cfg.Throttle[fd.topic].Milliseconds()).
		int("queue_length", int64(fd.depth))
	if n.cfg.FragmentSize > 0 {
		o = o.int("fragment_size", int64(n.cfg.FragmentSize))
	}
	return o.text("compression", fd.enc.String()).end()
}

// incoming hands a message to the subscriptions of its topic.
func (n *Node) incoming(f *frame) {
	now := time.Now()
	n.mu.Lock()
	fd := n.feeds[f.topic]
	if fd == nil {
		n.mu.Unlock()
		n.strays.Add(1)
		return
	}
	fd.got, fd.last, fd.patient = true, now, n.cfg.Silent
	subs := fd.subs
	n.mu.Unlock()
	for _, s := range subs {
		s.push(&incoming{s: s, p: f.msg, info: ros.Info{Received: now}})
	}
}

// watchFeeds looks after topics that stay silent: the server chose the QoS of its subscriber from the publishers that
// were there then, and may not hear those that came later; or it serves other clients in another encoding.
func (n *Node) watchFeeds(ctx context.Context) {
	for sleep(ctx, n.cfg.Silent/2) {
		if out, _, _, _ := n.data.state(); out == nil {
			continue
		}
		var ask []*feed
		n.mu.Lock()
		for _, fd := range n.feeds {
			// A latched topic says its word once.
			if !fd.asking && time.Since(fd.last) >= fd.patient && (!fd.transient || !fd.got) {
				fd.asking = true
				ask = append(ask, fd)
			}
		}
		n.mu.Unlock()
		for _, fd := range ask {
			n.revive(ctx, fd)
		}
	}
}

const maxPatience = 32 * time.Second

func (n *Node) revive(ctx context.Context, fd *feed) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	nodes, err := n.publishers(ctx, fd.topic)
	cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	fd.asking = false
	if n.feeds[fd.topic] != fd || time.Since(fd.last) < fd.patient {
		return
	}
	fd.last = time.Now()
	fd.patient = min(2*fd.patient, max(maxPatience, n.cfg.Silent))
	if err != nil || len(nodes) == 0 {
		return
	}
	if fd.wish == Auto && !fd.got {
		fd.enc = map[Encoding]Encoding{JSON: CBORRaw, CBORRaw: JSON}[fd.enc]
	}
	fd.got = false
	n.storm.warn("a topic is published and nothing comes: subscribing to it again", "topic", fd.topic, "publishers", nodes, "encoding", fd.enc)
	fd.socket.repeat(fd.ann, n.subscribeFrame(fd))
}

func (n *Node) closeFeeds() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.feeds)
}

// subscription hands messages to one function, in order.
type subscription struct {
	n     *Node
	feed  *feed
	f     func(ros.Incoming)
	depth int
	wake  chan struct{}
	done  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	waiting []*incoming
	bytes   int // of what waits

	received, dropped, malformed atomic.Uint64
}

func (s *subscription) push(in *incoming) {
	s.received.Add(1)
	s.mu.Lock()
	for len(s.waiting) > 0 && (len(s.waiting) >= s.depth || s.bytes+len(in.p.raw) > maxWaiting) {
		s.shift()
		s.dropped.Add(1)
	}
	s.waiting = append(s.waiting, in)
	s.bytes += len(in.p.raw)
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
		case <-s.n.stopped:
			return
		}
		for in := s.pop(); in != nil; in = s.pop() {
			s.f(in)
		}
	}
}

func (s *subscription) pop() *incoming {
	select {
	case <-s.done:
		return nil
	case <-s.n.stopped:
		return nil
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return nil
	}
	return s.shift()
}

// shift takes the oldest; s.mu is held.
func (s *subscription) shift() *incoming {
	in := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	s.bytes -= len(in.p.raw)
	return in
}

// Publishers is -1: this wire does not say.
func (s *subscription) Publishers() int { return -1 }

func (s *subscription) Stats() ros.Stats {
	return ros.Stats{Received: s.received.Load(), Dropped: s.dropped.Load(), Malformed: s.malformed.Load()}
}

func (s *subscription) Close() error {
	s.once.Do(func() {
		close(s.done)
		n := s.n
		n.mu.Lock()
		defer n.mu.Unlock()
		fd := s.feed
		// A new list: incoming walks the old one without the mutex.
		fd.subs = slices.DeleteFunc(slices.Clone(fd.subs), func(o *subscription) bool { return o == s })
		if len(fd.subs) == 0 && n.feeds[fd.topic] == fd {
			delete(n.feeds, fd.topic)
			fd.socket.drop(fd.ann)
		}
	})
	return nil
}

// incoming is one message that came.
type incoming struct {
	s    *subscription
	p    payload
	info ros.Info
	bad  bool
}

func (in *incoming) Info() ros.Info { return in.info }

func (in *incoming) Decode(m msg.Message) error {
	err := in.s.n.decode(in.p, m)
	if err != nil && !in.bad {
		in.bad = true
		in.s.malformed.Add(1)
		in.s.n.storm.warn("a message was malformed and not handed on", "topic", in.s.feed.topic, "why", err)
	}
	return err
}

// outlet publishes one topic.
type outlet struct {
	n      *Node
	topic  string
	typ    string
	latch  bool
	socket *socket
	ann    *announcement
	closed atomic.Bool
}

// Advertise says that we publish a topic. The server's publisher is reliable and keeps what was published for a second,
// whatever is asked; Transient asks it to keep the last message for ever.
func (n *Node) Advertise(topic ros.Topic) (ros.Outlet, error) {
	if err := checkName("topic", topic.Name, topic.New); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed
	}
	o := &outlet{n: n, topic: topic.Name, typ: topic.New().TypeName(), latch: topic.QoS.Transient, socket: n.socketOf(topic.Name)}
	depth := topic.QoS.Depth
	if depth <= 0 || !topic.QoS.Reliable {
		depth = 1 // what a command says now is all that counts
	}
	id := n.id("pub")
	do := begin("advertise").text("id", id).text("topic", o.topic).text("type", o.typ).
		bool("latch", o.latch).int("queue_size", int64(depth)).end()
	o.ann = o.socket.want(do, begin("unadvertise").text("id", id).text("topic", o.topic).end())
	return o, nil
}

// Publish sends a message and waits until it is written to the socket. A zero stamp of the header is left out: the
// server fills in the robot's clock.
func (o *outlet) Publish(ctx context.Context, m msg.Message) error {
	if o.closed.Load() {
		return fmt.Errorf("rosbridge: the publisher of %s is closed", o.topic)
	}
	if m.TypeName() != o.typ {
		return fmt.Errorf("rosbridge: %s is advertised as %s, and a %s was given", o.topic, o.typ, m.TypeName())
	}
	b, err := o.n.codec.encode(m, true)
	if err != nil {
		return err
	}
	if err := o.socket.announced(ctx, o.ann); err != nil {
		return err
	}
	return o.socket.send(ctx, begin("publish").text("topic", o.topic).raw("msg", b).end(), false)
}

// Ready waits until the server knows of n nodes that subscribe, where it has rosapi; that each of them is matched this
// wire cannot tell.
func (o *outlet) Ready(ctx context.Context, n int) error {
	if err := o.socket.announced(ctx, o.ann); err != nil {
		return err
	}
	return o.n.poll(ctx, func(ctx context.Context) (bool, error) {
		nodes, err := o.n.subscribers(ctx, o.topic)
		if err != nil {
			return false, err
		}
		return len(nodes) >= n, nil
	}, &ros.Absent{What: fmt.Sprintf("%d subscribers of %s", n, o.topic), Why: "rosapi lists fewer nodes that subscribe; look with ros2 topic info -v"})
}

// Subscribers is -1: this wire does not say.
func (o *outlet) Subscribers() int { return -1 }

func (o *outlet) Close() error {
	if !o.closed.Swap(true) {
		o.socket.drop(o.ann)
	}
	return nil
}
