// Package dds is a ros.Node over DDS, the wire of ROS 2's two usual middlewares (rmw_cyclonedds and rmw_fastrtps), with
// no ROS installed. Topics work with both at once. Services and actions are matched to their answers in two incompatible
// ways; which one is told from who wrote the participant that serves, or that asks, and never guessed.
//
// A participant shows its nodes to others in a message whose layout changed after Humble under the same type name, and
// a wrong one makes programs of the others fail. So nothing is shown until the layout is known: from the message of a
// peer, from the type hashes that Iron and later announce, or from Config.Distro.
package dds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/rtps"
)

// Config is how a node takes part in a domain.
type Config struct {
	Node      string // "viad"
	Namespace string // "" is "/"

	Domain      int         // ROS_DOMAIN_ID
	Localhost   bool        // ROS_LOCALHOST_ONLY: this host alone
	Interfaces  []string    // names or addresses; none is all that are up
	Peers       []string    // ROS_STATIC_PEERS: hosts that multicast does not reach
	NoMulticast bool        // announce to Peers only
	Distro      cdr.Distro  // of the others; DistroUnknown is learnt from them
	Limits      rtps.Limits // of what strangers can make us keep
	Fragment    int         // largest piece of a sample in one datagram; 0 is the wire's default
	Log         *slog.Logger
	Wire        func(rtps.Datagram) bool // for tests: false drops the datagram
}

// Domain is one participant, which any number of nodes share.
type Domain struct {
	p     *rtps.Participant
	log   *slog.Logger
	graph *graph
	stop  func() // ends the watch of the participant
	run   scope  // functions that watch links

	mu     sync.Mutex
	closed bool
	nodes  []*Node
	news   chan struct{} // closed and made anew at each event
	ears   map[*ear]struct{}
}

// ear is told the events of discovery, in order, in the participant's goroutine; it must not block.
type ear struct{ f func(rtps.Event) }

// Join takes part in a domain.
func Join(c Config) (*Domain, error) {
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Domain{log: log, news: make(chan struct{}), ears: map[*ear]struct{}{}}
	p, err := rtps.Open(rtps.Config{
		Domain: c.Domain, Interfaces: c.Interfaces, Localhost: c.Localhost, Peers: c.Peers, NoMulticast: c.NoMulticast,
		Name: c.Node, UserData: []byte("enclave=/;" + mark), Limits: c.Limits, Fragment: c.Fragment, Wire: c.Wire, Log: log,
	})
	if err != nil {
		return nil, err
	}
	d.p = p
	d.graph, err = newGraph(p, c.Distro, log, d.changed)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	d.stop = p.Watch(d.event)
	return d, nil
}

// Open is Join and one node; closing the node leaves the domain.
func Open(c Config) (*Node, error) {
	d, err := Join(c)
	if err != nil {
		return nil, err
	}
	n, err := d.Node(c.Node, c.Namespace)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	n.owns = true
	return n, nil
}

// Node makes a node of the participant.
func (d *Domain) Node(name, namespace string) (*Node, error) {
	if namespace == "" {
		namespace = "/"
	}
	if err := checkName(fullName(namespace, name)); err != nil {
		return nil, err
	}
	n := &Node{d: d, name: name, namespace: namespace, made: map[ros.Closer]struct{}{}, ending: make(chan struct{})}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, errClosed
	}
	d.nodes = append(d.nodes, n)
	d.mu.Unlock()
	d.graph.add(namespace, name)
	return n, nil
}

// Close closes all nodes and leaves the domain.
func (d *Domain) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	nodes := slices.Clone(d.nodes)
	d.mu.Unlock()
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.leave())
	}
	d.stop()
	d.graph.stop()
	errs = append(errs, d.p.Close())
	if !d.run.end() {
		d.log.Warn("a function that watches the link goes on though all was closed")
	}
	return errors.Join(errs...)
}

var errClosed = errors.New("the node is closed")

func (d *Domain) forget(n *Node) {
	d.mu.Lock()
	d.nodes = slices.DeleteFunc(d.nodes, func(o *Node) bool { return o == n })
	d.mu.Unlock()
	d.graph.remove(n.namespace, n.name)
}

// event takes one change of discovery from the participant.
func (d *Domain) event(e rtps.Event) {
	d.graph.event(e)
	if e.Kind == rtps.Mismatched {
		d.log.Warn("an endpoint of ours and one of theirs will never talk", "topic", e.Mismatch.Topic, "policy", e.Mismatch.Policy, "why", e.Mismatch.Why)
	}
	d.mu.Lock()
	ears := make([]*ear, 0, len(d.ears))
	for o := range d.ears {
		ears = append(ears, o)
	}
	d.mu.Unlock()
	for _, o := range ears {
		o.f(e)
	}
	d.changed()
}

// changed wakes who waits for news.
func (d *Domain) changed() {
	d.mu.Lock()
	close(d.news)
	d.news = make(chan struct{})
	d.mu.Unlock()
}

// next is closed at the next event. Take it first, then look, then wait: nothing is missed.
func (d *Domain) next() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.news
}

// hear adds an ear.
func (d *Domain) hear(f func(rtps.Event)) (stop func()) {
	o := &ear{f}
	d.mu.Lock()
	d.ears[o] = struct{}{}
	d.mu.Unlock()
	return func() {
		d.mu.Lock()
		delete(d.ears, o)
		d.mu.Unlock()
	}
}

// Distro is the distribution of the graph as far as it is known.
func (d *Domain) Distro() cdr.Distro { return d.graph.distro() }

// WaitDistro waits until the distribution is known.
func (d *Domain) WaitDistro(ctx context.Context) (cdr.Distro, error) {
	for {
		next := d.next()
		if v := d.graph.distro(); v != cdr.DistroUnknown {
			return v, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return cdr.DistroUnknown, fmt.Errorf("no peer has shown which distribution of ROS 2 it is; name it in the settings: %w", ctx.Err())
		}
	}
}
