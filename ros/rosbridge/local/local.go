// Package local is a ROS graph in memory, for tests: nodes of one Graph talk to each other as the contract of ros.Node
// says, messages pass as CDR, and an action also has its status topic and its cancel service.
package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
)

var errClosed = errors.New("local: the node is closed")

// Graph is what the nodes share.
type Graph struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and made new at every change
	nodes    map[*Node]struct{}
	outlets  map[*outlet]struct{}
	subs     map[*subscription]struct{}
	services map[string]*service
	actions  map[string]*action
}

// NewGraph is an empty graph.
func NewGraph() *Graph {
	return &Graph{
		changed: make(chan struct{}), nodes: map[*Node]struct{}{}, outlets: map[*outlet]struct{}{}, subs: map[*subscription]struct{}{},
		services: map[string]*service{}, actions: map[string]*action{},
	}
}

// change wakes who waits; g.mu is held.
func (g *Graph) change() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// until waits until ok, which is called with g.mu held.
func (g *Graph) until(ctx context.Context, n *Node, ok func() bool) error {
	for {
		g.mu.Lock()
		done, changed := ok(), g.changed
		g.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-n.done:
			return errClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Node is one node of a Graph.
type Node struct {
	g       *Graph
	name    string
	done    chan struct{}
	wg      sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	closers []ros.Closer
}

// Node makes a node.
func (g *Graph) Node(name string) *Node {
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	n := &Node{g: g, name: name, done: make(chan struct{})}
	g.mu.Lock()
	g.nodes[n] = struct{}{}
	g.change()
	g.mu.Unlock()
	return n
}

// Name is the full name.
func (n *Node) Name() string { return n.name }

// Wire is "local".
func (n *Node) Wire() string { return "local" }

// Close ends what the node made, and waits for it.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	closers := n.closers
	n.mu.Unlock()
	close(n.done)
	for _, c := range closers {
		if err := c.Close(); err != nil {
			return err
		}
	}
	n.g.mu.Lock()
	delete(n.g.nodes, n)
	n.g.change()
	n.g.mu.Unlock()
	n.wg.Wait()
	return nil
}

// keep has c closed with the node.
func (n *Node) keep(c ros.Closer) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errClosed
	}
	n.closers = append(n.closers, c)
	return nil
}

func bytesOf(m msg.Message) ([]byte, error) {
	w := cdr.NewWriter(nil, cdr.Jazzy)
	m.MarshalCDR(w)
	if err := w.Err(); err != nil {
		return nil, err
	}
	return slices.Clone(w.Bytes()), nil
}

func read(b []byte, m msg.Message) error {
	r := cdr.NewReader(b, cdr.Jazzy)
	m.UnmarshalCDR(r)
	return r.Err()
}

func through(from, to msg.Message) error {
	b, err := bytesOf(from)
	if err != nil {
		return err
	}
	return read(b, to)
}

// Links says once that all is well.
func (n *Node) Links(f func(ros.Link)) (stop func()) {
	f(ros.Link{Up: true, Why: "in memory", At: time.Now()})
	return func() {}
}

// Graph tells of everything.
func (n *Node) Graph(context.Context) (ros.Graph, error) {
	g := n.g
	g.mu.Lock()
	defer g.mu.Unlock()
	var out ros.Graph
	for x := range g.nodes {
		out.Nodes = append(out.Nodes, x.name)
	}
	slices.Sort(out.Nodes)
	topics := map[string]*ros.TopicInfo{}
	at := func(t ros.Topic) *ros.TopicInfo {
		if topics[t.Name] == nil {
			topics[t.Name] = &ros.TopicInfo{NameType: ros.NameType{Name: t.Name, Type: t.New().TypeName()}}
		}
		return topics[t.Name]
	}
	for o := range g.outlets {
		t := at(o.topic)
		t.Publishers = append(t.Publishers, ros.EndpointInfo{Node: o.n.name, QoS: o.topic.QoS})
	}
	for s := range g.subs {
		t := at(s.topic)
		t.Subscribers = append(t.Subscribers, ros.EndpointInfo{Node: s.n.name, QoS: s.topic.QoS})
	}
	for _, t := range topics {
		out.Topics = append(out.Topics, *t)
	}
	slices.SortFunc(out.Topics, func(a, b ros.TopicInfo) int { return strings.Compare(a.Name, b.Name) })
	for name, s := range g.services {
		if s.listed {
			out.Services = append(out.Services, ros.NameType{Name: name, Type: strings.TrimSuffix(s.s.Request().TypeName(), "_Request")})
		}
	}
	for name, a := range g.actions {
		out.Actions = append(out.Actions, ros.NameType{Name: name, Type: strings.TrimSuffix(a.a.Goal().TypeName(), "_Goal")})
	}
	byName := func(a, b ros.NameType) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(out.Services, byName)
	slices.SortFunc(out.Actions, byName)
	return out, nil
}

// service is a server.
type service struct {
	n      *Node
	s      ros.Service
	f      func(context.Context, msg.Message) (msg.Message, error)
	listed bool
	gone   chan struct{}
	once   sync.Once
}

// Serve answers a service.
func (n *Node) Serve(s ros.Service, f func(context.Context, msg.Message) (msg.Message, error)) (ros.Closer, error) {
	return n.serve(s, f, true)
}

func (n *Node) serve(s ros.Service, f func(context.Context, msg.Message) (msg.Message, error), listed bool) (ros.Closer, error) {
	x := &service{n: n, s: s, f: f, listed: listed, gone: make(chan struct{})}
	n.g.mu.Lock()
	if n.g.services[s.Name] != nil {
		n.g.mu.Unlock()
		return nil, fmt.Errorf("local: %s is served", s.Name)
	}
	n.g.services[s.Name] = x
	n.g.change()
	n.g.mu.Unlock()
	return x, n.keep(x)
}

func (s *service) Close() error {
	s.once.Do(func() {
		close(s.gone)
		s.n.g.mu.Lock()
		defer s.n.g.mu.Unlock()
		if s.n.g.services[s.s.Name] == s {
			delete(s.n.g.services, s.s.Name)
			s.n.g.change()
		}
	})
	return nil
}

type caller struct {
	n *Node
	s ros.Service
}

// Client makes a client of a service.
func (n *Node) Client(s ros.Service) (ros.Caller, error) { return &caller{n, s}, n.keep(nothing{}) }

type nothing struct{}

func (nothing) Close() error { return nil }

func (c *caller) Close() error { return nil }

func (c *caller) server() *service { return c.n.g.services[c.s.Name] }

func (c *caller) Ready(ctx context.Context) error {
	if err := c.n.g.until(ctx, c.n, func() bool { return c.server() != nil }); err != nil {
		return &ros.Absent{What: "service " + c.s.Name, Why: err.Error()}
	}
	return nil
}

func (c *caller) Call(ctx context.Context, request, response msg.Message) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	c.n.g.mu.Lock()
	s := c.server()
	c.n.g.mu.Unlock()
	if s == nil {
		return &ros.Absent{What: "service " + c.s.Name}
	}
	q := s.s.Request()
	if err := through(request, q); err != nil {
		return err
	}
	type reply struct {
		m   msg.Message
		err error
	}
	done := make(chan reply, 1)
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := make(chan struct{})
	go func() {
		defer cancel()
		select {
		case <-s.gone:
		case <-s.n.done:
		case <-stop:
		}
	}()
	go func() {
		defer close(stop)
		m, err := s.f(run, q)
		done <- reply{m, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return r.err
		}
		return through(r.m, response)
	case <-s.gone:
		return &ros.Gone{What: "service " + c.s.Name, Why: "its server was closed"}
	case <-c.n.done:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
