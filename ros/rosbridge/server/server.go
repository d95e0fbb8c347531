package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"viad/ros"
	"viad/ros/msg"
)

// Server serves any number of clients.
type Server struct {
	o Options

	mu      sync.Mutex
	goals   map[string]*goal // one table for all clients, keyed by their ids
	clients map[*client]struct{}
	first   map[string]first // how a topic was first subscribed
	wg      sync.WaitGroup
	run     chan struct{} // closed by Close
	closed  bool
}

type first struct {
	raw   bool
	users int
}

// NewServer is a server that waits for connections: it is an http.Handler.
func NewServer(o Options) (*Server, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	return &Server{o: o, goals: map[string]*goal{}, clients: map[*client]struct{}{}, first: map[string]first{}, run: make(chan struct{})}, nil
}

// Serve takes connections from l until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if s.o.TLS != nil {
		l = tls.NewListener(l, s.o.TLS)
	}
	h := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() {
		_ = h.Close() // Serve says what is wrong
		s.Close()
	})
	defer stop()
	err := h.Serve(l)
	s.Close()
	if errors.Is(err, http.ErrServerClosed) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("rosbridge server: %w", err)
}

// Close ends all connections and waits for what they did.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.run)
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// ServeHTTP makes a websocket of a request. It checks no origin, as rosbridge_suite does not: bind it to localhost.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		http.Error(w, "closing", http.StatusServiceUnavailable)
		return
	}
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	conn.SetReadLimit(int64(s.o.MaxIn))
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	c := newClient(s, conn, cancel)
	s.mu.Lock()
	s.clients[c] = struct{}{}
	s.mu.Unlock()
	go func() {
		select {
		case <-s.run:
			cancel()
		case <-ctx.Done():
		}
	}()
	c.serve(ctx)
	s.mu.Lock()
	delete(s.clients, c)
	s.mu.Unlock()
}

// Kick cuts every connection without a word, as a crash does.
func (s *Server) Kick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		_ = c.conn.CloseNow() // it is cut
		c.cancel()
	}
}

// make is an empty message of a type.
func (s *Server) make(typ string) (func() msg.Message, error) {
	if _, ok := s.o.Types(typ); !ok {
		return nil, fmt.Errorf("unable to import %s", typ)
	}
	return func() msg.Message { m, _ := s.o.Types(typ); return m }, nil
}

// full writes an old "pkg/Type" in full.
func full(typ, middle string) string {
	if strings.Count(typ, "/") == 1 {
		pkg, name, _ := strings.Cut(typ, "/")
		return pkg + "/" + middle + "/" + name
	}
	return typ
}

// client is one connection.
type client struct {
	s      *Server
	conn   *websocket.Conn
	cancel context.CancelFunc
	out    chan frame
	wg     sync.WaitGroup

	running atomic.Int64 // calls and goals

	mu        sync.Mutex
	subs      map[string]*topicSub
	outlets   map[string]*advert
	callers   map[string][]*oneCaller
	served    map[string]ros.Closer
	waiting   map[string]chan op // requests to services that this client serves
	acting    map[string]ros.Closer
	actGoals  map[string]*actGoal
	counter   int
	fragments int
}

type frame struct {
	data   []byte
	binary bool
}

func newClient(s *Server, conn *websocket.Conn, cancel context.CancelFunc) *client {
	return &client{
		s: s, conn: conn, cancel: cancel, out: make(chan frame),
		subs: map[string]*topicSub{}, outlets: map[string]*advert{}, callers: map[string][]*oneCaller{},
		served: map[string]ros.Closer{}, waiting: map[string]chan op{}, acting: map[string]ros.Closer{}, actGoals: map[string]*actGoal{},
	}
}

func (c *client) serve(ctx context.Context) {
	c.wg.Go(func() { c.write(ctx) })
	for {
		typ, b, err := c.conn.Read(ctx)
		if err != nil {
			break
		}
		if typ != websocket.MessageText {
			continue // rosbridge_suite reads text only, unless it speaks BSON
		}
		c.incoming(ctx, b)
	}
	c.cancel()
	_ = c.conn.CloseNow() // it is over
	c.finish()
	c.wg.Wait()
}

func (c *client) write(ctx context.Context) {
	for {
		select {
		case f := <-c.out:
			typ := websocket.MessageText
			if f.binary {
				typ = websocket.MessageBinary
			}
			if c.conn.Write(ctx, typ, f.data) != nil {
				c.cancel()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// send waits for the writer: a slow client slows what feeds it, which drops by its own queue.
func (c *client) send(ctx context.Context, data []byte, binary bool) {
	select {
	case c.out <- frame{data, binary}:
	case <-ctx.Done():
	}
}

// finish ends what the client asked for.
func (c *client) finish() {
	c.mu.Lock()
	subs, outlets, callers, served, acting := c.subs, c.outlets, c.callers, c.served, c.acting
	c.subs, c.outlets, c.callers, c.served, c.acting = nil, nil, nil, nil, nil
	for _, g := range c.actGoals {
		g.lose()
	}
	c.mu.Unlock()
	for _, t := range subs {
		t.close(c.s)
	}
	for _, a := range outlets {
		shut(a.outlet)
	}
	for _, x := range callers {
		for _, y := range x {
			shut(y)
		}
	}
	for _, x := range served {
		shut(x)
	}
	for _, x := range acting {
		shut(x)
	}
	if c.s.o.GoalsOutliveSocket {
		return
	}
	c.s.mu.Lock()
	var mine []*goal
	for _, g := range c.s.goals {
		if g.c == c {
			mine = append(mine, g)
		}
	}
	c.s.mu.Unlock()
	for _, g := range mine {
		g.cancelNow()
	}
}

func shut(x interface{ Close() error }) {
	_ = x.Close() // nobody is there to be told
}
