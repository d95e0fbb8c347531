package ros1

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/protocommon"
	"github.com/bluenviron/goroslib/v2/pkg/prototcp"

	"viad/ros"
	"viad/ros/msg"
)

// emitter is a topic that this node publishes: ROS 1 knows one publisher of a topic per node, so its outlets share it.
type emitter struct {
	n     *Node
	topic string
	sign  signature

	mu      sync.Mutex
	outlets map[*outlet]struct{}
	subs    map[*subscriber]struct{}
	kept    []byte // the last message of a latched outlet
	changed chan struct{}
}

// subscriber is one connection that gets the topic.
type subscriber struct {
	c      *conn
	caller string
	queue  *queue
}

// outlet implements ros.Outlet.
type outlet struct {
	e    *emitter
	qos  ros.QoS
	once sync.Once
}

// Advertise implements ros.Node.
func (n *Node) Advertise(topic ros.Topic) (ros.Outlet, error) {
	p, _, err := n.types.of(topic.New())
	if err != nil {
		return nil, err
	}
	s, err := p.message()
	if err != nil {
		return nil, err
	}
	return n.advertise(topic.Name, s, topic.QoS)
}

func (n *Node) advertise(name string, s signature, qos ros.QoS) (*outlet, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	n.mu.Lock()
	if n.shut {
		n.mu.Unlock()
		return nil, errClosed
	}
	e, old := n.emitters[name]
	if !old {
		e = &emitter{
			n: n, topic: name, sign: s, outlets: make(map[*outlet]struct{}), subs: make(map[*subscriber]struct{}),
			changed: make(chan struct{}),
		}
		n.emitters[name] = e
	}
	if e.sign.md5 != s.md5 {
		n.mu.Unlock()
		return nil, fmt.Errorf("%s is published by this node as %s already, so not as %s", name, e.sign.name, s.name)
	}
	o := &outlet{e: e, qos: qos}
	e.mu.Lock()
	e.outlets[o] = struct{}{}
	e.mu.Unlock()
	n.mu.Unlock()
	if old {
		return o, nil
	}
	ctx, cancel := n.brief()
	defer cancel()
	if _, err := n.master(ctx).RegisterPublisher(name, s.name, n.uri()); err != nil {
		if refused(err) {
			return nil, fmt.Errorf("the ROS 1 master does not take %s: %w", name, joinClose(err, o))
		}
		n.unsettle() // the watcher does it when the master is back
	}
	return o, nil
}

func joinClose(err error, c ros.Closer) error {
	if e := c.Close(); e != nil {
		return fmt.Errorf("%w; %w", err, e)
	}
	return err
}

func (e *emitter) unregister(ctx context.Context) {
	if err := e.n.master(ctx).UnregisterPublisher(e.topic, e.n.uri()); err != nil {
		e.n.log.Debug("taking a topic back at the ROS 1 master", "topic", e.topic, "err", err)
	}
}

func (e *emitter) qos() (latch bool, depth int, all bool) {
	for o := range e.outlets {
		latch, all = latch || o.qos.Transient, all || o.qos.KeepAll
		depth = max(depth, o.qos.Depth)
	}
	if depth == 0 {
		depth = 10
	}
	return latch, depth, all
}

// serve answers a subscriber and feeds it until one of the two goes.
func (e *emitter) serve(c *conn, h protocommon.HeaderRaw) {
	if why := checks("the topic "+e.topic, e.sign, h); why != "" {
		e.n.refuse(c, h, why)
		return
	}
	ctx, cancel := e.n.scope()
	defer cancel()
	e.mu.Lock()
	latch, depth, all := e.qos()
	e.mu.Unlock()
	head := &prototcp.HeaderPublisher{Topic: e.topic, Type: e.sign.name, Md5sum: e.sign.md5, Callerid: e.n.name, MessageDefinition: e.sign.definition}
	if latch {
		head.Latching = 1
	}
	if err := c.writeHeader(head, e.n.config.Timeout); err != nil {
		return
	}
	if t, ok := c.Conn.(*net.TCPConn); ok && h["tcp_nodelay"] != "1" {
		_ = t.SetNoDelay(false) // as the subscriber asks
	}
	s := &subscriber{c: c, caller: h["callerid"], queue: newQueue(depth, all)}
	e.mu.Lock()
	if e.kept != nil {
		s.queue.push(packet{data: e.kept})
	}
	e.subs[s] = struct{}{}
	e.bell()
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.subs, s)
		e.bell()
		e.mu.Unlock()
		s.queue.close()
	}()

	e.n.wg.Go(func() { // a subscriber sends nothing: a read ends when it is gone
		defer cancel()
		var b [64]byte
		for {
			if _, err := c.Read(b[:]); err != nil {
				return
			}
		}
	})
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer c.Close() //nolint:errcheck // ends the reader
	for {
		f, ok := s.queue.pop(ctx)
		if !ok {
			return
		}
		if err := c.SetWriteDeadline(time.Now().Add(max(e.n.config.Timeout, 10*time.Second))); err != nil {
			return
		}
		if _, err := c.Write(f.data); err != nil {
			if ctx.Err() == nil {
				e.n.log.Debug("a ROS 1 subscriber is gone", "topic", e.topic, "from", s.caller, "err", err)
			}
			return
		}
	}
}

// bell wakes who waits for a change of the subscribers; e.mu is held.
func (e *emitter) bell() {
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *emitter) peers() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]string, 0, len(e.subs))
	for s := range e.subs {
		out = append(out, s.caller)
	}
	return out
}

// wait until ok says so of the callers that are connected.
func (e *emitter) wait(ctx context.Context, ok func(callers []string) bool) error {
	for {
		e.mu.Lock()
		changed := e.changed
		e.mu.Unlock()
		if ok(e.peers()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Publish implements ros.Outlet. The message is written into its bytes before Publish returns, once for all subscribers.
func (o *outlet) Publish(ctx context.Context, m msg.Message) error {
	p, _, err := o.e.n.types.of(m)
	if err != nil {
		return err
	}
	if rosName(p.whole) != o.e.sign.name {
		return fmt.Errorf("%s is %s, a %s cannot be published on it", o.e.topic, o.e.sign.name, rosName(p.whole))
	}
	f, err := frame(func(b []byte) ([]byte, error) { return o.e.n.types.encode(b, m) })
	if err != nil {
		return err
	}
	return o.send(ctx, f)
}

func (o *outlet) send(ctx context.Context, f []byte) error {
	if o.e.n.isShut() {
		return errClosed
	}
	o.e.mu.Lock()
	if _, ok := o.e.outlets[o]; !ok {
		o.e.mu.Unlock()
		return fmt.Errorf("the publisher of %s is closed", o.e.topic)
	}
	if o.qos.Transient {
		o.e.kept = f
	}
	subs := make([]*subscriber, 0, len(o.e.subs))
	for s := range o.e.subs {
		subs = append(subs, s)
	}
	if !o.qos.KeepAll {
		for _, s := range subs { // under the lock: the order is the same for every subscriber
			s.queue.push(packet{data: f})
		}
		o.e.mu.Unlock()
		return nil
	}
	o.e.mu.Unlock()
	for _, s := range subs {
		if err := s.queue.pushAll(ctx, packet{data: f}); err != nil {
			return err
		}
	}
	return nil
}

// Ready implements ros.Outlet.
func (o *outlet) Ready(ctx context.Context, n int) error {
	err := o.e.wait(ctx, func(callers []string) bool { return len(callers) >= n })
	if err != nil {
		return fmt.Errorf("%d of %d subscribers of %s: %w", o.Subscribers(), n, o.e.topic, err)
	}
	return nil
}

// Subscribers implements ros.Outlet.
func (o *outlet) Subscribers() int { return len(o.e.peers()) }

// Close implements ros.Outlet. What was published before is still given some time to be sent.
func (o *outlet) Close() error {
	o.once.Do(func() {
		e := o.e
		e.drain()
		e.n.mu.Lock()
		e.mu.Lock()
		delete(e.outlets, o)
		if latch, _, _ := e.qos(); !latch {
			e.kept = nil
		}
		last := len(e.outlets) == 0 && e.n.emitters[e.topic] == e
		if last && !e.n.shut {
			delete(e.n.emitters, e.topic)
		}
		for s := range e.subs {
			if last {
				s.queue.close()
			}
		}
		last = last && !e.n.shut
		e.mu.Unlock()
		e.n.mu.Unlock()
		if last {
			ctx, cancel := e.n.brief()
			defer cancel()
			e.unregister(ctx)
		}
	})
	return nil
}

// drain waits half a second at most until what is queued has gone out.
func (e *emitter) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	e.mu.Lock()
	subs := make([]*subscriber, 0, len(e.subs))
	for s := range e.subs {
		subs = append(subs, s)
	}
	e.mu.Unlock()
	for _, s := range subs {
		s.queue.empty(ctx)
	}
}
