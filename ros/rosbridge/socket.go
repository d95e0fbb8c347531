package rosbridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// errLost says that the socket went while something was on its way.
var errLost = errors.New("the connection was lost")

// socket is one of the two connections: it connects, keeps alive, and connects again.
type socket struct {
	n    *Node
	what string // "data" or "stop and cancel"

	mu      sync.Mutex
	out     chan *job     // to the writer of the present connection; nil while there is none
	lost    chan struct{} // closed when the present connection is over
	why     string        // why there is none
	changed chan struct{} // closed and made new at every change
	wanted  []*announcement
	kick    chan struct{} // the announcer has something to do
}

// job is a frame to be written.
type job struct {
	data []byte
	done chan error // buffered
}

func newSocket(n *Node, what string) *socket {
	return &socket{n: n, what: what, changed: make(chan struct{}), kick: make(chan struct{}, 1), why: "not connected yet"}
}

// state is the present connection, if there is one, and what is closed when that changes.
func (s *socket) state() (out chan *job, lost chan struct{}, why string, changed chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out, s.lost, s.why, s.changed
}

func (s *socket) set(out chan *job, lost chan struct{}, why string) {
	s.mu.Lock()
	s.out, s.lost, s.why = out, lost, why
	s.broadcast()
	s.mu.Unlock()
	s.n.linkChanged()
}

// broadcast wakes who waits for a change; s.mu is held.
func (s *socket) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// send hands a frame to the wire and waits until it is written. A frame whose sender has given up before its turn came is
// never sent. With wait it first waits for a connection.
func (s *socket) send(ctx context.Context, data []byte, wait bool) error {
	if len(data) > s.n.cfg.MaxOut {
		return fmt.Errorf("rosbridge: a frame of %d bytes is over the limit of %d (MaxOut; the server closes the connection at its own)",
			len(data), s.n.cfg.MaxOut)
	}
	if wait {
		if err := s.ready(ctx); err != nil {
			return err
		}
	}
	out, lost, why, _ := s.state()
	if out == nil {
		return &downError{s.n.cfg.URL, s.what, why}
	}
	return put(ctx, out, lost, data)
}

// ready waits for a connection.
func (s *socket) ready(ctx context.Context) error {
	for {
		out, _, why, changed := s.state()
		if out != nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w; %w", &downError{s.n.cfg.URL, s.what, why}, ctx.Err())
		case <-s.n.stopped:
			return errClosed
		}
	}
}

// put gives a frame to the writer and waits until it is written.
func put(ctx context.Context, out chan *job, lost chan struct{}, data []byte) error {
	j := &job{data: data, done: make(chan error, 1)}
	select {
	case out <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-lost:
		return errLost
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-lost:
		return errLost
	}
}

// downError says that there is no connection now.
type downError struct{ url, what, why string }

func (e *downError) Error() string {
	return fmt.Sprintf("rosbridge: the %s connection to %s is down (%s)", e.what, e.url, e.why)
}

// connect makes one connection.
func (s *socket) connect(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.n.cfg.HandshakeTimeout)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, s.n.cfg.URL, &websocket.DialOptions{HTTPClient: s.n.http, HTTPHeader: s.n.cfg.Header})
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // the handshake is over
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not answer as a rosbridge server: %w", s.n.cfg.URL, err)
	}
	conn.SetReadLimit(-1) // slurp has its own: a frame that is too large is left out, and the connection stays
	return conn, nil
}

// run keeps the socket connected until ctx ends. conn is the first connection.
func (s *socket) run(ctx context.Context, conn *websocket.Conn) {
	pause := s.n.cfg.RetryMin
	for ctx.Err() == nil {
		if conn == nil {
			c, err := s.connect(ctx)
			if err != nil {
				s.set(nil, nil, err.Error())
				if !sleep(ctx, pause) {
					return
				}
				pause = min(2*pause, s.n.cfg.RetryMax)
				continue
			}
			conn = c
		}
		began := time.Now()
		err := s.session(ctx, conn)
		conn = nil
		s.set(nil, nil, err.Error())
		if time.Since(began) > s.n.cfg.RetryMax { // a server that takes us and drops us at once is not hurried
			pause = s.n.cfg.RetryMin
		}
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, s.n.cfg.RetryMax)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// session reads one connection until it is over, and says why.
func (s *socket) session(ctx context.Context, conn *websocket.Conn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	out, lost := make(chan *job), make(chan struct{})
	heard := new(atomic.Int64)
	heard.Store(time.Now().UnixNano())
	wg.Go(func() { s.write(ctx, conn, out, cancel) })
	wg.Go(func() { s.ping(ctx, conn, heard) })
	wg.Go(func() { s.watch(ctx, heard, cancel) })
	wg.Go(func() { s.announce(ctx, out, lost) })

	err := s.read(ctx, conn, heard)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	cancel(err)
	close(lost)
	_ = conn.CloseNow() // it is over either way
	s.n.lostConnection(s, err)
	wg.Wait()
	return err
}

func (s *socket) write(ctx context.Context, conn *websocket.Conn, out chan *job, fail context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-out:
			wctx, cancel := context.WithTimeout(ctx, s.n.cfg.WriteTimeout)
			err := conn.Write(wctx, websocket.MessageText, j.data)
			cancel()
			if err != nil {
				err = fmt.Errorf("a frame of %d bytes could not be written: %w", len(j.data), err)
				fail(err)
			}
			j.done <- err
		}
	}
}

// ping asks for a sign of life. It does not judge: a pong may wait behind a large picture, so watch counts any byte.
func (s *socket) ping(ctx context.Context, conn *websocket.Conn, heard *atomic.Int64) {
	for sleep(ctx, s.n.cfg.PingEvery) {
		if conn.Ping(ctx) == nil {
			heard.Store(time.Now().UnixNano())
		}
	}
}

func (s *socket) watch(ctx context.Context, heard *atomic.Int64, fail context.CancelCauseFunc) {
	bound := s.n.cfg.PingEvery + s.n.cfg.PingTimeout
	for {
		quiet := time.Since(time.Unix(0, heard.Load()))
		if quiet >= bound {
			fail(fmt.Errorf("nothing came for %v, not even an answer to a ping: the other side or the way to it is dead", quiet.Round(time.Millisecond)))
			return
		}
		if !sleep(ctx, bound-quiet) {
			return
		}
	}
}

func (s *socket) read(ctx context.Context, conn *websocket.Conn, heard *atomic.Int64) error {
	var frags assembler
	frags.maxBytes = s.n.cfg.MaxIn
	size := 512
	for {
		typ, r, err := conn.Reader(ctx)
		if err != nil {
			return err
		}
		b, err := slurp(r, size, s.n.cfg.MaxIn, heard)
		if errors.Is(err, errTooLarge) {
			s.n.strays.Add(1)
			s.n.storm.warn("a frame was dropped: it is larger than MaxIn", "limit", s.n.cfg.MaxIn)
			continue
		}
		if err != nil {
			return err
		}
		size = min(max(len(b)+512, 512), 4<<20)
		s.n.handle(ctx, s, b, typ == websocket.MessageBinary, &frags)
	}
}

var errTooLarge = errors.New("a frame is too large")

// slurp reads a frame into memory of its own; hint is what the last one needed. What is beyond the limit is read and
// forgotten.
func slurp(r io.Reader, hint, limit int, heard *atomic.Int64) ([]byte, error) {
	b := make([]byte, 0, hint)
	tooLarge := false
	for {
		got, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+got]
		if got > 0 {
			heard.Store(time.Now().UnixNano())
		}
		if len(b) > limit {
			tooLarge, b = true, b[:0]
		}
		if errors.Is(err, io.EOF) {
			if tooLarge {
				return nil, errTooLarge
			}
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if tooLarge {
			b = b[:0]
		} else if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}
