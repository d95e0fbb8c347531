package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"viad/interface/tool/door"
)

// sessionTTL is how long an MCP session that nobody uses is kept.
const sessionTTL = 10 * time.Minute

// HTTP is the streamable HTTP endpoint. It expects to stand behind a door.Door, which has put the principal
// into the request's context and read the body.
type HTTP struct {
	s *Server
	h *server.StreamableHTTPServer
}

// HTTP makes the endpoint; Close ends its sessions.
func (s *Server) HTTP() *HTTP {
	return &HTTP{s: s, h: server.NewStreamableHTTPServer(s.mcp,
		server.WithStateful(true), server.WithSessionIdleTTL(sessionTTL), server.WithDisableStreaming(true),
		server.WithDisableLocalhostProtection(true), // the door checks the Host, with names of its own
		server.WithStreamableHTTPLogger(s.log))}
}

// Close ends the sessions.
func (h *HTTP) Close(ctx context.Context) error { return h.h.Shutdown(ctx) }

// ServeHTTP answers one request and then settles whether its reply was delivered.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, _ := door.From(r.Context())
	if id := r.Header.Get(server.HeaderKeySessionID); id != "" && h.s.own.foreign(id, p.Name) {
		http.Error(w, "unknown session: initialize again", http.StatusNotFound)
		return
	}
	if r.Method == http.MethodPost {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "the request body could not be read", http.StatusBadRequest)
			return
		}
		b = quoteHuge(b)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	}
	end := &ending{}
	out := &watched{ResponseWriter: w, end: end, rc: http.NewResponseController(w)}
	defer end.settle()
	defer out.deadline(time.Time{})
	h.h.ServeHTTP(out, r.WithContext(context.WithValue(r.Context(), endingKey{}, end)))
}

// ending collects what is to be done once it is known whether the result of a request went out. A client may
// close its request as soon as it has the result, so the request's context says nothing about that; what was
// written after the result was ready does. The library writes nothing when the client was gone before.
type ending struct {
	mu     sync.Mutex
	after  []func(ok bool)
	sent   bool // something was written after the result was ready
	failed bool
}

type endingKey struct{}

func (e *ending) add(f func(ok bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.after = append(e.after, f)
}

func (e *ending) wrote(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = e.sent || len(e.after) > 0
	e.failed = e.failed || err != nil
}

func (e *ending) settle() {
	e.mu.Lock()
	after, ok := e.after, e.sent && !e.failed
	e.after = nil
	e.mu.Unlock()
	for _, f := range after {
		f(ok)
	}
}

// writeTime is how long a client may leave what was sent to it unread.
const writeTime = 30 * time.Second

// watched tells an ending what was written, and gives up on clients that do not read.
type watched struct {
	http.ResponseWriter
	end *ending
	rc  *http.ResponseController
}

// deadline bounds writes from now on. Writers that know no deadline, as tests have, wait for ever.
func (w *watched) deadline(t time.Time) {
	if err := w.rc.SetWriteDeadline(t); err != nil && !errors.Is(err, http.ErrNotSupported) {
		w.end.wrote(err)
	}
}

func (w *watched) Write(b []byte) (int, error) {
	w.deadline(time.Now().Add(writeTime))
	n, err := w.ResponseWriter.Write(b)
	w.end.wrote(err)
	return n, err
}

// Flush sends what is buffered.
func (w *watched) Flush() {
	if err := w.rc.Flush(); err != nil {
		w.end.wrote(err)
	}
}

// Unwrap gives the writer below to http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ServeStdio speaks MCP over in and out until in ends or ctx does. Every call is made as who. Nothing else
// may write to out.
func (s *Server) ServeStdio(ctx context.Context, who door.Principal, in io.Reader, out io.Writer) error {
	// A client that dies closes the pipe; the next write must be an error that is handled, not the end of the
	// process before the robot is stopped.
	signal.Ignore(syscall.SIGPIPE)
	sv := server.NewStdioServer(s.mcp)
	for _, opt := range []server.StdioOption{
		server.WithErrorLogger(slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)),
		server.WithWorkerPoolSize(100), // with the library's five, stop waits behind other calls
		server.WithStdioContextFunc(func(ctx context.Context) context.Context { return door.With(ctx, who) }),
	} {
		opt(sv)
	}
	if err := sv.Listen(ctx, newLines(in), out); err != nil && ctx.Err() == nil {
		return fmt.Errorf("stdio: %w", err)
	}
	return nil
}
