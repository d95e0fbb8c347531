package dds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/rtps"
)

// Node is a ros.Node. Nodes of one Domain do not hear each other's topics: they are one participant, which talks to
// others.
type Node struct {
	d               *Domain
	name, namespace string
	owns            bool // closing the node leaves the domain

	mu     sync.Mutex
	closed bool
	made   map[ros.Closer]struct{}
	ending chan struct{}
}

var _ ros.Node = (*Node)(nil)

// Name is the full name.
func (n *Node) Name() string { return fullName(n.namespace, n.name) }

// Wire is "dds".
func (n *Node) Wire() string { return "dds" }

// Domain is the participant that the node is of.
func (n *Node) Domain() *Domain { return n.d }

// Close closes all that the node made. It waits for functions that run, so that none of them may call it.
func (n *Node) Close() error {
	err := n.leave()
	if n.owns {
		err = errors.Join(err, n.d.Close())
	}
	return err
}

func (n *Node) leave() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	close(n.ending)
	made := n.made
	n.made = nil
	n.mu.Unlock()
	var errs []error
	for c := range made {
		errs = append(errs, c.Close())
	}
	n.d.forget(n)
	return errors.Join(errs...)
}

// keep takes care that c is closed with the node.
func (n *Node) keep(c ros.Closer) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errClosed
	}
	n.made[c] = struct{}{}
	return nil
}

func (n *Node) drop(c ros.Closer) {
	n.mu.Lock()
	delete(n.made, c)
	n.mu.Unlock()
}

// open says whether things can still be made.
func (n *Node) open() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errClosed
	}
	return nil
}

// newWriter makes a writer that the graph shows as this node's.
func (n *Node) newWriter(c rtps.WriterConfig) (*rtps.Writer, error) {
	if err := n.open(); err != nil {
		return nil, err
	}
	w, err := n.d.p.NewWriter(c)
	if err != nil {
		return nil, err
	}
	n.d.graph.endpoint(n, rtps.Endpoint{GUID: w.GUID(), Writer: true, Topic: c.Topic, Type: c.Type, QoS: c.QoS, UserData: c.UserData}, true)
	return w, nil
}

func (n *Node) newReader(c rtps.ReaderConfig, f func(*rtps.Sample)) (*rtps.Reader, error) {
	if err := n.open(); err != nil {
		return nil, err
	}
	r, err := n.d.p.NewReader(c, f)
	if err != nil {
		return nil, err
	}
	n.d.graph.endpoint(n, rtps.Endpoint{GUID: r.GUID(), Topic: c.Topic, Type: c.Type, QoS: c.QoS, UserData: c.UserData}, true)
	return r, nil
}

func (n *Node) closeWriter(w *rtps.Writer) error {
	if w == nil {
		return nil
	}
	n.d.graph.endpoint(n, rtps.Endpoint{GUID: w.GUID(), Writer: true}, false)
	return w.Close()
}

func (n *Node) closeReader(r *rtps.Reader) error {
	if r == nil {
		return nil
	}
	n.d.graph.endpoint(n, rtps.Endpoint{GUID: r.GUID()}, false)
	return r.Close()
}

// hash is what an endpoint says of its type: nothing towards Humble, which does not know it, and nothing while the
// distribution is not known, because others learn from it.
func (n *Node) hash(m msg.Message) []byte {
	h := m.TypeHash()
	if half, ok := m.(interface{ ServiceHash() string }); ok {
		h = half.ServiceHash() // both halves of a service announce the hash of the whole
	}
	if d := n.d.graph.distro(); h == "" || d == cdr.DistroUnknown || d == cdr.Humble {
		return nil
	}
	return []byte("typehash=" + h + ";")
}

// linkWatch tells one function how the link is.
type linkWatch struct {
	n     *Node
	unear func()
	wake  chan struct{}
	once  sync.Once
	done  chan struct{}

	mu    sync.Mutex
	queue []ros.Link
	peers map[rtps.GUIDPrefix]struct{}
}

// Links tells f whether any other participant is known.
func (n *Node) Links(f func(ros.Link)) (stop func()) {
	l := &linkWatch{n: n, wake: make(chan struct{}, 1), done: make(chan struct{}), peers: map[rtps.GUIDPrefix]struct{}{}}
	if n.keep(l) != nil {
		return func() {}
	}
	l.unear = n.d.hear(l.event)
	l.mu.Lock()
	for _, p := range n.d.p.Peers() {
		l.peers[p.Prefix] = struct{}{}
	}
	l.say()
	l.mu.Unlock()
	if !n.d.run.run(func(context.Context) { l.run(f) }) {
		_ = l.Close()
	}
	return func() { _ = l.Close() }
}

func (l *linkWatch) event(e rtps.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.peers) > 0
	switch e.Kind {
	case rtps.PeerFound:
		// The state was read before the first event came, which may tell of one that is gone again.
		if _, still := l.n.d.p.Peer(e.Peer.Prefix); still {
			l.peers[e.Peer.Prefix] = struct{}{}
		}
	case rtps.PeerLost:
		delete(l.peers, e.Peer.Prefix)
	default:
		return
	}
	if before != (len(l.peers) > 0) {
		l.say()
	}
}

// say queues the state. Holds mu.
func (l *linkWatch) say() {
	s := ros.Link{Up: len(l.peers) > 0, At: time.Now(), Why: "no other participant is seen in the domain"}
	if s.Up {
		s.Why = fmt.Sprintf("%d other participants are in the domain", len(l.peers))
	}
	l.queue = append(l.queue, s)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *linkWatch) run(f func(ros.Link)) {
	for {
		select {
		case <-l.done:
			return
		case <-l.wake:
		}
		l.mu.Lock()
		queue := l.queue
		l.queue = nil
		l.mu.Unlock()
		for _, s := range queue {
			select {
			case <-l.done:
				return
			default:
				f(s)
			}
		}
	}
}

// Close ends the watch; it may be called from its function.
func (l *linkWatch) Close() error {
	l.once.Do(func() {
		l.unear()
		close(l.done)
		l.n.drop(l)
	})
	return nil
}

// absence says in words why there is nobody at the other end.
func (n *Node) absence(topic, typ string, writer bool) string {
	peers := n.d.p.Peers()
	if len(peers) == 0 {
		return "no other participant is seen: check the domain id, that both are on one network, and that no firewall stops UDP multicast 239.255.0.1"
	}
	for _, e := range n.d.p.Endpoints() {
		if e.Topic != topic || e.Writer == writer {
			continue
		}
		if e.Type != typ {
			return fmt.Sprintf("it exists with the type %s, ours is %s", rosType(e.Type), rosType(typ))
		}
		for _, m := range n.d.p.Mismatches() {
			if m.Theirs == e.GUID {
				return "it exists, but: " + m.Why
			}
		}
		return "it exists, and has not answered yet"
	}
	return fmt.Sprintf("%d other participants are seen, and none of them has it", len(peers))
}
