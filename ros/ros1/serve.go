package ros1

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/protocommon"
	"github.com/bluenviron/goroslib/v2/pkg/prototcp"

	"viad/ros"
	"viad/ros/msg"
)

// server answers a service.
type server struct {
	n    *Node
	name string
	sign signature
	ask  func() msg.Message
	f    func(context.Context, msg.Message) (msg.Message, error)
	open func() (context.Context, context.CancelFunc) // a context that ends with the server
	stop context.CancelFunc
	once sync.Once
}

// Serve implements ros.Node.
func (n *Node) Serve(service ros.Service, f func(ctx context.Context, request msg.Message) (msg.Message, error)) (ros.Closer, error) {
	sign, err := n.serviceSign(service)
	if err != nil {
		return nil, err
	}
	ctx, stop := n.scope()
	s := &server{
		n: n, name: service.Name, sign: sign, ask: service.Request, f: f, stop: stop,
		open: func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
	}
	n.mu.Lock()
	_, twice := n.servers[s.name]
	shut := n.shut
	if !twice && !shut {
		n.servers[s.name] = s
	}
	n.mu.Unlock()
	if shut {
		stop()
		return nil, errClosed
	}
	if twice {
		stop()
		return nil, fmt.Errorf("this node serves %s already", s.name)
	}
	within, cancel := n.brief()
	defer cancel()
	if err := n.master(within).RegisterService(s.name, n.tcpURI(), n.uri()); err != nil {
		if refused(err) {
			return nil, fmt.Errorf("the ROS 1 master does not take %s: %w", s.name, joinClose(err, s))
		}
		n.unsettle() // the watcher does it when the master is back
	}
	return s, nil
}

// Close implements ros.Closer.
func (s *server) Close() error {
	s.once.Do(func() {
		s.stop()
		s.n.mu.Lock()
		tell := !s.n.shut
		if tell && s.n.servers[s.name] == s {
			delete(s.n.servers, s.name)
		}
		s.n.mu.Unlock()
		if tell {
			ctx, cancel := s.n.brief()
			defer cancel()
			s.unregister(ctx)
		}
	})
	return nil
}

func (s *server) unregister(ctx context.Context) {
	if err := s.n.master(ctx).UnregisterService(s.name, s.n.tcpURI()); err != nil {
		s.n.log.Debug("taking a service back at the ROS 1 master", "service", s.name, "err", err)
	}
}

// serve answers one client, until it is content or gone. The clients are answered beside each other.
func (s *server) serve(c *conn, h protocommon.HeaderRaw) {
	if why := checks("the service "+s.name, s.sign, h); why != "" {
		s.n.refuse(c, h, why)
		return
	}
	ctx, cancel := s.open()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	err := c.writeHeader(&prototcp.HeaderServiceProvider{
		Callerid: s.n.name, Md5sum: s.sign.md5, RequestType: s.sign.name + "Request", ResponseType: s.sign.name + "Response", Type: s.sign.name,
	}, s.n.config.Timeout)
	for err == nil && h["probe"] != "1" {
		var b []byte
		if b, err = c.readFrame(); err != nil {
			return
		}
		if err = s.respond(ctx, c, b); err == nil && h["persistent"] != "1" {
			return
		}
	}
}

// respond writes the answer to one request: 1 and the response, or 0 and a sentence.
func (s *server) respond(ctx context.Context, c *conn, b []byte) error {
	answer, err := s.work(ctx, b)
	if ctx.Err() != nil { // to its clients the server is gone
		return ctx.Err()
	}
	if err == nil {
		answer = append([]byte{1}, answer...)
	} else {
		s.n.log.Warn("a ROS 1 service request failed", "service", s.name, "err", err)
		why, fail := frame(func(b []byte) ([]byte, error) { return append(b, err.Error()...), nil })
		if fail != nil {
			return fail
		}
		answer = append([]byte{0}, why...)
	}
	if err := c.SetWriteDeadline(time.Now().Add(max(s.n.config.Timeout, 10*time.Second))); err != nil {
		return err
	}
	_, err = c.Write(answer)
	return err
}

func (s *server) work(ctx context.Context, b []byte) ([]byte, error) {
	q := s.ask()
	if err := s.n.types.decode(b, q, true); err != nil {
		return nil, err
	}
	a, err := s.f(ctx, q)
	if err != nil {
		return nil, err
	}
	return frame(func(b []byte) ([]byte, error) { return s.n.types.encode(b, a) })
}
