package rosbridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"viad/ros"
	"viad/ros/msg"
)

// pending is a call that waits for its answer.
type pending struct {
	what   string
	socket *socket
	answer chan reply // buffered
}

type reply struct {
	f   frame
	err error
}

const maxPending = 1024 // calls and goals that wait at one time

// call sends a request and waits for the answer. args is JSON.
func (n *Node) call(ctx context.Context, s *socket, service string, args []byte) (frame, error) {
	p := &pending{what: "service " + service, socket: s, answer: make(chan reply, 1)}
	id := n.id("call")
	n.mu.Lock()
	switch {
	case n.closed:
		n.mu.Unlock()
		return frame{}, errClosed
	case len(n.pending) >= maxPending:
		n.mu.Unlock()
		return frame{}, fmt.Errorf("rosbridge: %d calls wait for answers already; %s was not called", maxPending, service)
	}
	n.pending[id] = p
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.pending, id)
		n.mu.Unlock()
	}()

	o := begin("call_service").text("id", id).text("service", service).raw("args", args)
	// Newer servers give up after 5 s, which is less than homing takes; the context is what counts.
	o = o.float("timeout", patience(ctx).Seconds())
	if err := s.send(ctx, o.end(), true); err != nil {
		if errors.Is(err, errLost) {
			return frame{}, &ros.Gone{What: p.what, Why: err.Error()}
		}
		return frame{}, err
	}
	select {
	case r := <-p.answer:
		return r.f, r.err
	case <-ctx.Done():
		return frame{}, fmt.Errorf("rosbridge: %s did not answer: %w", p.what, ctx.Err())
	}
}

// patience is how long the server is to wait: a little longer than we do, so that our own timer speaks first.
func patience(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Hour
	}
	return (time.Until(end) + time.Second).Round(time.Millisecond)
}

func (n *Node) answered(f *frame) {
	n.mu.Lock()
	p := n.pending[f.id]
	delete(n.pending, f.id)
	n.mu.Unlock()
	if p == nil {
		n.strays.Add(1)
		n.storm.warn("an answer came to a call that nobody waits for", "service", clip(f.service), "id", clip(f.id))
		return
	}
	p.answer <- reply{f: *f}
}

// caller is a client of a service.
type caller struct {
	n        *Node
	service  ros.Service
	response string
	typ      string
	socket   *socket
	urgent   bool
	known    atomic.Bool // the server was seen, and nothing has said otherwise
	closed   atomic.Bool
}

// Client makes a client of a service. One that Config.Urgent names is called at once on the second socket, without a look
// whether it is there.
func (n *Node) Client(service ros.Service) (ros.Caller, error) {
	if err := checkName("service", service.Name, service.Request, service.Response); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed
	}
	s := n.socketOf(service.Name)
	return &caller{
		n: n, service: service, socket: s, urgent: s == n.urgent,
		typ: serviceType(service.Request().TypeName()), response: service.Response().TypeName(),
	}, nil
}

// serviceType is the service's own type, of which the request's name is made.
func serviceType(request string) string { return strings.TrimSuffix(request, "_Request") }

func (c *caller) Ready(ctx context.Context) error {
	seen := false
	err := c.n.poll(ctx, func(ctx context.Context) (bool, error) {
		typ, err := c.n.serviceType(ctx, c.service.Name)
		if err != nil || typ == "" {
			return false, err
		}
		if !sameType(typ, c.typ) {
			return false, &ros.Absent{What: "service " + c.service.Name + " of type " + c.typ, Why: "it is there as " + typ}
		}
		seen = true
		return true, nil
	}, &ros.Absent{What: "service " + c.service.Name, Why: "rosapi does not list it: is its node running, and its name right?"})
	c.known.Store(seen)
	return err
}

// sameType compares as old servers write types: without the part in the middle.
func sameType(a, b string) bool {
	return shortType(a) == shortType(b)
}

func shortType(t string) string {
	for _, middle := range []string{"/srv/", "/msg/", "/action/"} {
		t = strings.Replace(t, middle, "/", 1)
	}
	return t
}

func (c *caller) Call(ctx context.Context, request, response msg.Message) error {
	if c.closed.Load() {
		return fmt.Errorf("rosbridge: the client of %s is closed", c.service.Name)
	}
	args, err := c.n.codec.encode(request, false)
	if err != nil {
		return err
	}
	for {
		if !c.urgent && !c.known.Load() {
			if err := c.Ready(ctx); err != nil {
				return err
			}
		}
		f, err := c.once(ctx, args)
		if err != nil {
			return err
		}
		if f.hasResult && !f.result {
			err := failed(c.service.Name, f.words)
			var absent *ros.Absent
			if errors.As(err, &absent) && !c.urgent && c.known.Swap(false) {
				continue // it was never asked: wait until it is there again
			}
			return c.explain(ctx, err)
		}
		return c.n.decode(payloadOr(f.msg), response)
	}
}

// explain looks whether a call failed because its server went away, which the server's words may not say.
func (c *caller) explain(ctx context.Context, err error) error {
	var f *Failed
	if c.urgent || !errors.As(err, &f) {
		return err
	}
	if typ, ask := c.n.serviceType(ctx, c.service.Name); ask == nil && typ == "" {
		c.known.Store(false)
		return &ros.Gone{What: f.What, Why: f.Words}
	}
	return err
}

// payloadOr is what was sent, or an empty message where the server left it out because it has no fields.
func payloadOr(p payload) payload {
	if len(p.raw) == 0 {
		p.raw = []byte("{}")
	}
	return p
}

// once calls, and keeps an eye on whether the server is still there: old versions of rosbridge wait for ever.
func (c *caller) once(ctx context.Context, args []byte) (frame, error) {
	if c.urgent {
		return c.n.call(ctx, c.socket, c.service.Name, args)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		gone := c.n.untilGone(ctx, func(ctx context.Context) (bool, error) {
			typ, err := c.n.serviceType(ctx, c.service.Name)
			return typ != "", err
		})
		if gone {
			cancel(&ros.Gone{What: "service " + c.service.Name, Why: "the robot no longer lists it"})
		}
	})
	f, err := c.n.call(ctx, c.socket, c.service.Name, args)
	cause := context.Cause(ctx)
	cancel(nil)
	wg.Wait()
	var gone *ros.Gone
	if err != nil && errors.As(cause, &gone) {
		c.known.Store(false)
		return f, gone
	}
	return f, err
}

func (c *caller) Close() error { c.closed.Store(true); return nil }

// failed is what the words of a server mean.
func failed(service, words string) error {
	if strings.Contains(words, "does not exist") || strings.Contains(words, "InvalidService") {
		return &ros.Absent{What: "service " + service, Why: "rosbridge says: " + words}
	}
	return &Failed{What: "service " + service, Words: words}
}

// Failed says that the server could not do what it was asked; its words may be Python's.
type Failed struct{ What, Words string }

func (e *Failed) Error() string {
	if e.Words == "" {
		return fmt.Sprintf("rosbridge: %s failed; the server gives no reason", e.What)
	}
	return fmt.Sprintf("rosbridge: %s failed: %.500s", e.What, e.Words)
}

// server answers a service.
type server struct {
	n       *Node
	service ros.Service
	f       func(context.Context, msg.Message) (msg.Message, error)
	socket  *socket
	ann     *announcement
	busy    chan struct{} // as many as run at one time
	done    chan struct{}
	once    sync.Once
}

const maxServing = 64 // requests of one service at one time

// Serve answers a service through the rosbridge server, which waits for our answer without end in old versions.
func (n *Node) Serve(service ros.Service, f func(context.Context, msg.Message) (msg.Message, error)) (ros.Closer, error) {
	if err := checkName("service", service.Name, service.Request, service.Response); err != nil {
		return nil, err
	}
	s := &server{n: n, service: service, f: f, socket: n.socketOf(service.Name), busy: make(chan struct{}, maxServing), done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed
	}
	if n.serving[service.Name] != nil {
		return nil, fmt.Errorf("rosbridge: this node serves %s already", service.Name)
	}
	n.serving[service.Name] = s
	do := begin("advertise_service").text("service", service.Name).text("type", serviceType(service.Request().TypeName())).end()
	s.ann = s.socket.want(do, begin("unadvertise_service").text("service", service.Name).end())
	return s, nil
}

func (s *server) Close() error {
	s.once.Do(func() {
		close(s.done)
		s.n.mu.Lock()
		if s.n.serving[s.service.Name] == s {
			delete(s.n.serving, s.service.Name)
		}
		s.n.mu.Unlock()
		s.socket.drop(s.ann)
	})
	return nil
}

// requested runs in the reader; ctx ends with the connection, whose end makes an answer useless.
func (n *Node) requested(_ context.Context, sock *socket, f *frame) {
	n.mu.Lock()
	s := n.serving[f.service]
	n.mu.Unlock()
	if s == nil {
		n.strays.Add(1)
		n.storm.warn("a request came for a service that is not served here", "service", clip(f.service))
		return
	}
	select {
	case s.busy <- struct{}{}:
	default:
		n.storm.warn("a request was dropped: as many run as may", "service", clip(f.service), "running", maxServing)
		return
	}
	id, p := f.id, f.msg
	go n.spawn(func(ctx context.Context) {
		defer func() { <-s.busy }()
		s.answer(ctx, sock, id, p)
	})
}

func (s *server) answer(ctx context.Context, sock *socket, id string, p payload) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	o := begin("service_response").text("id", id).text("service", s.service.Name)
	body, err := s.serve(ctx, p)
	if err != nil {
		s.n.cfg.Log.Error("a service failed", "service", s.service.Name, "why", err)
		// Words instead of values: an old server then answers nobody, a new one hands the words on. An empty answer would be
		// taken for a real one.
		o = o.text("values", err.Error()).bool("result", false)
	} else {
		o = o.raw("values", body).bool("result", true)
	}
	if err := sock.send(ctx, o.end(), false); err != nil && ctx.Err() == nil {
		s.n.storm.warn("an answer could not be sent", "service", s.service.Name, "why", err)
	}
}

func (s *server) serve(ctx context.Context, p payload) ([]byte, error) {
	request := s.service.Request()
	if err := s.n.decode(payloadOr(p), request); err != nil {
		return nil, err
	}
	response, err := s.f(ctx, request)
	if err != nil {
		return nil, err
	}
	return s.n.codec.encode(response, false)
}
