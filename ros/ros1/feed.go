package ros1

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/prototcp"

	"viad/ros"
	"viad/ros/msg"
)

// feed is a topic that this node reads: one connection to each publisher, shared by the node's subscriptions.
type feed struct {
	n     *Node
	topic string
	sign  signature

	mu      sync.Mutex
	over    bool
	subs    map[*subscription]struct{}
	sources map[string]*source
	changed chan struct{}
}

// source is one publisher of the topic. While the master lists it, a connection that is lost is tried again; one that
// lives on is kept even when the master, restarted, does not list it any more.
type source struct {
	f      *feed
	uri    string
	listed bool
	caller string // once connected
	since  time.Time
	last   string // why it is not connected
	cancel context.CancelFunc
}

// subscription implements ros.Subscription.
type subscription struct {
	f       *feed
	queue   *queue
	stop    context.CancelFunc
	once    sync.Once
	take    func(packet) // runs in the subscription's goroutine
	counter struct{ received, dropped, malformed atomic.Uint64 }
}

// Subscribe implements ros.Node.
func (n *Node) Subscribe(topic ros.Topic, f func(ros.Incoming)) (ros.Subscription, error) {
	p, _, err := n.types.of(topic.New())
	if err != nil {
		return nil, err
	}
	s, err := p.message()
	if err != nil {
		return nil, err
	}
	var sub *subscription
	return n.subscribe(topic.Name, s, topic.QoS, func(own *subscription) func(packet) {
		sub = own
		return func(p packet) { f(&incoming{n: n, s: sub, p: p}) }
	})
}

// subscribe starts a subscription; take makes what gets its packets.
func (n *Node) subscribe(name string, sign signature, qos ros.QoS, take func(*subscription) func(packet)) (*subscription, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	depth := qos.Depth
	if depth == 0 {
		depth = 10
	}
	ctx, stop := n.scope()
	s := &subscription{queue: newQueue(depth, qos.KeepAll), stop: stop}
	s.take = take(s)
	f, old, err := n.join(name, sign, s, ctx)
	if err != nil {
		stop()
		return nil, err
	}
	if old {
		return s, nil
	}
	within, cancel := n.brief()
	defer cancel()
	if err := n.registerFeed(within, f); err != nil {
		if refused(err) {
			return nil, fmt.Errorf("the ROS 1 master does not take %s: %w", name, joinClose(err, s))
		}
		n.unsettle() // the watcher does it when the master is back
	}
	return s, nil
}

func (n *Node) join(name string, sign signature, s *subscription, ctx context.Context) (f *feed, old bool, err error) { //nolint:revive // the context is the subscription's
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.shut {
		return nil, false, errClosed
	}
	f, old = n.feeds[name]
	if !old {
		f = &feed{n: n, topic: name, sign: sign, subs: make(map[*subscription]struct{}), sources: make(map[string]*source), changed: make(chan struct{})}
	} else if f.sign.md5 != sign.md5 {
		return nil, false, fmt.Errorf("%s is read by this node as %s already, so not as %s", name, f.sign.name, sign.name)
	}
	n.feeds[name] = f
	s.f = f
	f.mu.Lock()
	f.subs[s] = struct{}{}
	f.mu.Unlock()
	n.wg.Go(func() { s.run(ctx) })
	return f, old, nil
}

func (s *subscription) run(ctx context.Context) {
	for {
		p, ok := s.queue.pop(ctx)
		if !ok {
			return
		}
		s.take(p)
	}
}

// Publishers implements ros.Subscription.
func (s *subscription) Publishers() int { return len(s.f.callers()) }

// Stats implements ros.Subscription; ROS 1 does not say what was lost on the way.
func (s *subscription) Stats() ros.Stats {
	return ros.Stats{Received: s.counter.received.Load(), Dropped: s.counter.dropped.Load(), Malformed: s.counter.malformed.Load()}
}

// Close implements ros.Subscription. It does not wait for the function, so that the function may call it.
func (s *subscription) Close() error {
	s.once.Do(func() {
		s.stop()
		s.queue.close()
		f := s.f
		f.n.mu.Lock()
		f.mu.Lock()
		delete(f.subs, s)
		last := len(f.subs) == 0 && !f.n.shut && f.n.feeds[f.topic] == f
		if last {
			delete(f.n.feeds, f.topic)
			f.end()
		}
		f.mu.Unlock()
		f.n.mu.Unlock()
		if last {
			ctx, cancel := f.n.brief()
			defer cancel()
			f.unregister(ctx)
		}
	})
	return nil
}

// end stops the connections; f.mu is held.
func (f *feed) end() {
	f.over = true
	for _, s := range f.sources {
		s.cancel()
	}
}

func (f *feed) unregister(ctx context.Context) {
	if err := f.n.master(ctx).UnregisterSubscriber(f.topic, f.n.uri()); err != nil {
		f.n.log.Debug("taking a subscription back at the ROS 1 master", "topic", f.topic, "err", err)
	}
}

// maxPublishers bounds the connections of one topic: anybody may tell us of publishers.
const maxPublishers = 256

// update takes the publishers that the master lists.
func (f *feed) update(uris []string) {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.n.shut {
		return
	}
	for _, s := range f.sources {
		s.listed = false
	}
	left := 0
	for _, uri := range uris {
		if s, ok := f.sources[uri]; ok {
			s.listed = true
			continue
		}
		if len(f.sources) >= maxPublishers {
			left++
			continue
		}
		ctx, cancel := f.n.scope()
		s := &source{f: f, uri: uri, listed: true, cancel: cancel}
		f.sources[uri] = s
		f.n.wg.Go(func() { s.run(ctx) })
	}
	for _, s := range f.sources {
		if !s.listed && s.caller == "" {
			s.cancel()
		}
	}
	if left > 0 {
		f.n.log.Warn("a topic has more publishers than are listened to", "topic", f.topic, "limit", maxPublishers, "left out", left)
	}
}

func (f *feed) bell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// callers are the nodes that are connected.
func (f *feed) callers() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, s := range f.sources {
		if s.caller != "" {
			out = append(out, s.caller)
		}
	}
	return out
}

// since is when the newest connection to a caller was made.
func (f *feed) since(caller string) (t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sources {
		if s.caller == caller && s.since.After(t) {
			t = s.since
		}
	}
	return t
}

func (f *feed) uris() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for uri, s := range f.sources {
		if s.caller != "" {
			out = append(out, uri)
		}
	}
	return out
}

// troubles are sentences about publishers that are listed and not connected.
func (f *feed) troubles() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for uri, s := range f.sources {
		if s.caller == "" && s.last != "" {
			out = append(out, fmt.Sprintf("%s: the publisher at %s gives nothing: %s", f.topic, uri, s.last))
		}
	}
	return out
}

// changes is closed at the next change of the publishers.
func (f *feed) changes() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// run keeps the connection until nobody wants it.
func (s *source) run(ctx context.Context) {
	defer s.cancel()
	pause := 100 * time.Millisecond
	for {
		began := time.Now()
		err := s.read(ctx)
		s.f.mu.Lock()
		s.caller = ""
		again := s.listed && !s.f.over && ctx.Err() == nil
		fresh := err != nil && s.last != err.Error()
		if err != nil {
			s.last = err.Error()
		}
		if !again && s.f.sources[s.uri] == s {
			delete(s.f.sources, s.uri)
		}
		s.f.bell()
		s.f.mu.Unlock()
		if !again {
			return
		}
		if fresh {
			s.f.n.log.Warn("a ROS 1 publisher gives nothing", "topic", s.f.topic, "at", s.uri, "err", err)
		}
		if time.Since(began) > 5*time.Second {
			pause = 100 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, 2*time.Second)
	}
}

func (s *source) read(ctx context.Context) error {
	c, err := s.connect(ctx)
	if err != nil {
		return unreachable(err)
	}
	defer c.Close() //nolint:errcheck // nothing more is read
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	f := s.f
	for seq := int64(1); ; seq++ {
		b, err := c.readFrame()
		if err != nil {
			return fmt.Errorf("the connection ended: %w", err)
		}
		p := packet{data: b, from: s.caller, seq: seq, received: time.Now()}
		f.mu.Lock()
		subs := make([]*subscription, 0, len(f.subs))
		for sub := range f.subs {
			subs = append(subs, sub)
		}
		p.shared = len(subs) > 1
		f.mu.Unlock()
		for _, sub := range subs {
			sub.counter.received.Add(1)
			if sub.queue.all {
				if err := sub.queue.pushAll(ctx, p); err != nil {
					return err
				}
				continue
			}
			sub.counter.dropped.Add(uint64(sub.queue.push(p)))
		}
	}
}

// connect asks the publisher where it speaks, connects there and exchanges headers.
func (s *source) connect(ctx context.Context) (*conn, error) {
	f := s.f
	within, cancel := context.WithTimeout(ctx, f.n.config.Timeout)
	defer cancel()
	peer, err := f.n.peer(within, s.uri)
	if err != nil {
		return nil, err
	}
	proto, err := peer.RequestTopic(f.topic, [][]any{{"TCPROS"}})
	if err != nil {
		return nil, fmt.Errorf("asking for the topic: %w", err)
	}
	host, port, ok := endpoint(proto)
	if !ok {
		return nil, fmt.Errorf("it offers %v and not TCPROS", proto)
	}
	raw, err := (&net.Dialer{}).DialContext(within, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	c := newConn(raw)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	h, err := f.n.shake(c, &prototcp.HeaderSubscriber{
		Callerid: f.n.name, Topic: f.topic, Type: f.sign.name, Md5sum: f.sign.md5, MessageDefinition: f.sign.definition, TcpNodelay: 1,
	})
	if err == nil {
		if why := checks("the topic "+f.topic, f.sign, h); why != "" {
			err = errors.New(why)
		}
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.caller = h["callerid"]; s.caller == "" {
		s.caller = s.uri
	}
	s.since, s.last = time.Now(), ""
	f.bell()
	return c, nil
}

func endpoint(proto []any) (host string, port int, ok bool) {
	if len(proto) < 3 || proto[0] != "TCPROS" {
		return "", 0, false
	}
	host, a := proto[1].(string)
	port, b := proto[2].(int)
	return host, port, a && b
}

// incoming implements ros.Incoming.
type incoming struct {
	n    *Node
	s    *subscription
	p    packet
	read bool
}

// Info implements ros.Incoming. ROS 1 messages carry no time of sending but the one in their own header.
func (i *incoming) Info() ros.Info {
	return ros.Info{Received: i.p.received, Seq: i.p.seq, Publisher: i.p.from}
}

// Decode implements ros.Incoming: a []byte field points into what was received when nobody else reads the same message.
func (i *incoming) Decode(m msg.Message) error {
	err := i.n.types.decode(i.p.data, m, !i.p.shared && !i.read)
	i.read = true
	if err != nil {
		i.s.counter.malformed.Add(1)
		return err
	}
	return nil
}
