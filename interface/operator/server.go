package operator

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxClients bounds how many connections are served at once; a further one waits.
const maxClients = 256

// idleTime is how long a connection may say nothing. With it, connections that were forgotten can not keep out
// somebody who has come to stop the robot.
const idleTime = 10 * time.Second

// retryTime is the pause after a connection could not be taken, as when the process has no file left.
const retryTime = 50 * time.Millisecond

// writeTime bounds how long a client that does not read can hold a connection.
const writeTime = 5 * time.Second

// Server is the daemon's side.
type Server struct {
	desk Desk
	l    *net.UnixListener
	path string
}

// Listen opens the socket at path with permissions 0600. A socket that nobody answers is a leftover and
// is replaced; one that answers belongs to a running daemon and is left alone.
func Listen(path string, desk Desk) (*Server, error) {
	if answers(path) {
		return nil, fmt.Errorf("another viad answers at %s: stop it first, or give this one a state_dir of its own", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot replace the old operator socket: %w", err)
	}
	// The file is born with the permissions of the umask, so it is opened to nobody else even for a moment.
	old := syscall.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("cannot open the operator socket: %w", err)
	}
	return &Server{desk: desk, l: l, path: path}, nil
}

// answers reports whether somebody serves a socket; a daemon that was killed leaves one that nobody does.
func answers(path string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return false
	}
	_ = c.Close() // nothing was sent on it
	return true
}

// Path is where the socket is.
func (s *Server) Path() string { return s.path }

// Run serves until ctx ends, then closes the socket and waits for the connections.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer wg.Wait()
	defer cancel()
	unhook := context.AfterFunc(ctx, func() { _ = s.l.Close() }) // the accept below sees it
	defer unhook()
	slots := make(chan struct{}, maxClients)
	for {
		c, err := s.l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil // the listener was closed on purpose
			}
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("operator socket: %w", err)
			}
			// Of all doors this one must not shut because there are too many files open.
			select {
			case <-time.After(retryTime):
				continue
			case <-ctx.Done():
				return nil
			}
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			s.serve(ctx, c)
		})
	}
}

// serve answers one connection. Requests run beside each other, so that a stop never waits for a status,
// and a stop is finished even when the one who asked has hung up.
func (s *Server) serve(ctx context.Context, c *net.UnixConn) {
	defer func() { _ = c.Close() }() // the other end has gone, or has all its answers
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() { _ = c.CloseRead() }()
	var mu sync.Mutex
	send := func(a Answer) {
		line, err := json.Marshal(a)
		if err != nil {
			line = []byte(`{"v":1,"ok":false,"error":"the answer cannot be written as JSON"}`)
		}
		mu.Lock()
		defer mu.Unlock()
		if c.SetWriteDeadline(time.Now().Add(writeTime)) == nil {
			_, _ = c.Write(append(line, '\n')) // a client that has gone is found by the reader
		}
	}
	who := peer(c)
	in := bufio.NewScanner(c)
	in.Buffer(make([]byte, 4096), maxLine)
	for c.SetReadDeadline(time.Now().Add(idleTime)) == nil && in.Scan() {
		r, err := parse(in.Bytes())
		if err != nil {
			send(Answer{V: Version, ID: r.ID, Error: err.Error()})
			continue
		}
		wg.Go(func() { send(do(context.WithoutCancel(ctx), s.desk, who, r)) })
	}
}

// peer is who is at the other end, as the kernel knows it.
func peer(c *net.UnixConn) string {
	const name = "viactl"
	raw, err := c.SyscallConn()
	if err != nil {
		return name
	}
	var cred *syscall.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); cerr != nil || err != nil {
		return name
	}
	return fmt.Sprintf("%s (uid %d, pid %d)", name, cred.Uid, cred.Pid)
}

// parse reads one request; unknown keys are refused, for a misspelt one may have meant stop.
func parse(line []byte) (Request, error) {
	var r Request
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("not a request: %w; write one like {\"v\":%d,\"id\":1,\"op\":\"stop\"}", err, Version)
	}
	if d.More() {
		return r, errors.New("not a request: one JSON object per line")
	}
	return r, nil
}
