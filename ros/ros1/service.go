package ros1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/protocommon"
	"github.com/bluenviron/goroslib/v2/pkg/prototcp"

	"viad/ros"
	"viad/ros/msg"
)

// caller implements ros.Caller. Each call has a connection of its own: goroslib's client keeps one and sends the request
// again when it fails, so that a server might act twice.
type caller struct {
	n    *Node
	name string
	sign signature
	ends context.Context //nolint:containedctx // ends with Close
	stop context.CancelFunc
}

// serviceProbe asks a server who it is and no more.
type serviceProbe struct {
	Callerid, Md5sum, Service string
	Probe                     int
}

// Client implements ros.Node.
func (n *Node) Client(service ros.Service) (ros.Caller, error) {
	s, err := n.serviceSign(service)
	if err != nil {
		return nil, err
	}
	if n.isShut() {
		return nil, errClosed
	}
	ctx, stop := n.scope()
	return &caller{n: n, name: service.Name, sign: s, ends: ctx, stop: stop}, nil
}

func (n *Node) isShut() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shut
}

func (n *Node) serviceSign(service ros.Service) (signature, error) {
	if err := checkName(service.Name); err != nil {
		return signature{}, err
	}
	q, _, err := n.types.of(service.Request())
	if err != nil {
		return signature{}, err
	}
	a, _, err := n.types.of(service.Response())
	if err != nil {
		return signature{}, err
	}
	if q.whole != a.whole {
		return signature{}, fmt.Errorf("%s: the request is of %s and the response of %s", service.Name, rosName(q.whole), rosName(a.whole))
	}
	return q.service()
}

// Close implements ros.Caller.
func (c *caller) Close() error {
	c.stop()
	return nil
}

// Ready implements ros.Caller: the server answers a probe.
func (c *caller) Ready(ctx context.Context) error {
	s, err := c.open(ctx, &serviceProbe{Callerid: c.n.name, Md5sum: c.sign.md5, Service: c.name, Probe: 1})
	if err != nil {
		return err
	}
	return s.Close()
}

// open tries until a server answers, or refuses for good, or ctx ends.
func (c *caller) open(ctx context.Context, ours any) (*conn, error) {
	var last error
	for {
		s, err := c.try(ctx, ours)
		if err == nil {
			return s, nil
		}
		if last == nil || ctx.Err() == nil { // a try that was cut short says less than the one before
			last = err
		}
		var final *finalError
		if errors.As(err, &final) {
			return nil, fmt.Errorf("the service %s: %w", c.name, err)
		}
		select {
		case <-ctx.Done():
			return nil, &ros.Absent{What: "the service " + c.name, Why: last.Error() + " (" + ctx.Err().Error() + ")"}
		case <-c.ends.Done():
			return nil, fmt.Errorf("the client of %s is closed", c.name)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// finalError is one that waiting does not mend.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

func (c *caller) try(ctx context.Context, ours any) (*conn, error) {
	s, h, err := c.greeted(ctx, ours)
	if err != nil {
		return nil, err
	}
	if why := checks("the service "+c.name, c.sign, h); why != "" {
		_ = s.Close()
		return nil, &finalError{errors.New(why)}
	}
	return s, nil
}

// greeted connects and exchanges headers.
func (c *caller) greeted(ctx context.Context, ours any) (*conn, protocommon.HeaderRaw, error) {
	within, cancel := context.WithTimeout(ctx, c.n.config.Timeout)
	defer cancel()
	uri, err := c.n.master(within).LookupService(c.name)
	if err != nil {
		if refused(err) {
			return nil, nil, errors.New("the master knows no such service")
		}
		return nil, nil, fmt.Errorf("the master does not answer: %w", err)
	}
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return nil, nil, fmt.Errorf("the master gives the address %q", uri)
	}
	raw, err := (&net.Dialer{}).DialContext(within, "tcp", u.Host)
	if err != nil {
		return nil, nil, fmt.Errorf("the master names %s and nobody answers there: %w", uri, unreachable(err))
	}
	s := newConn(raw)
	stop := context.AfterFunc(within, func() { _ = s.Close() })
	h, err := c.n.shake(s, ours)
	if !stop() && err == nil {
		err = within.Err()
	}
	if err != nil {
		_ = s.Close()
		return nil, nil, err
	}
	return s, h, nil
}

// Call implements ros.Caller.
func (c *caller) Call(ctx context.Context, request, response msg.Message) error {
	f, err := frame(func(b []byte) ([]byte, error) { return c.n.types.encode(b, request) })
	if err != nil {
		return err
	}
	s, err := c.open(ctx, &prototcp.HeaderServiceClient{Callerid: c.n.name, Md5sum: c.sign.md5, Service: c.name})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // one call, one connection
	for _, end := range []context.Context{ctx, c.ends} {
		stop := context.AfterFunc(end, func() { _ = s.Close() })
		defer stop()
	}
	gone := func(err error) error {
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("the service %s was asked and has not answered (whether it acted is not known): %w", c.name, ctx.Err())
		case c.ends.Err() != nil:
			return fmt.Errorf("the client of %s was closed before the answer came (whether it acted is not known)", c.name)
		}
		return &ros.Gone{What: "the service " + c.name, Why: err.Error()}
	}
	if _, err := s.Write(f); err != nil {
		return gone(err)
	}
	var ok [1]byte
	if _, err := io.ReadFull(s.r, ok[:]); err != nil {
		return gone(err)
	}
	b, err := s.readFrame()
	if err != nil {
		return gone(err)
	}
	if ok[0] != 1 {
		return fmt.Errorf("the service %s answered with an error: %s", c.name, b)
	}
	return c.n.types.decode(b, response, true)
}

// kind asks a server for the name of its type.
func (c *caller) kind(ctx context.Context) (string, error) {
	s, h, err := c.greeted(ctx, &serviceProbe{Callerid: c.n.name, Md5sum: "*", Service: c.name, Probe: 1})
	if err != nil {
		return "", err
	}
	return h["type"], s.Close()
}
