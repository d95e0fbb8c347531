package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
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
	switch r.Method {
	case http.MethodPost:
	case http.MethodDelete:
		if !h.ours(r) {
			h.refuse(w, http.StatusNotFound, "the session is not open, or of another token: initialize again")
			return
		}
	default:
		w.Header().Set("Allow", "POST, DELETE")
		h.refuse(w, http.StatusMethodNotAllowed, r.Method+" is not taken here: POST a JSON-RPC message, DELETE ends a session")
		return
	}
	if r.Method == http.MethodPost && !h.takes(w, r) {
		return
	}
	end := &ending{}
	out := &watched{ResponseWriter: w, end: end, rc: http.NewResponseController(w)}
	defer end.settle()
	defer out.deadline(time.Time{})
	h.h.ServeHTTP(out, r.WithContext(context.WithValue(r.Context(), endingKey{}, end)))
}

// takes reads a posted message and reports whether the library may have it; otherwise it has answered.
func (h *HTTP) takes(w http.ResponseWriter, r *http.Request) bool {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		h.refuse(w, http.StatusBadRequest, "the request body could not be read: send it again")
		return false
	}
	b = quoteOdd(b)
	e, bad := h.s.open(b)
	if bad != nil {
		h.s.log.Warn("message refused", "why", bad.why)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(bad.status)
		h.gone(bad.write(w))
		return false
	}
	if e.method != "" && e.method != "initialize" && !e.modern && !modernHeader(r) {
		if r.Header.Get(server.HeaderKeySessionID) == "" {
			h.refuse(w, http.StatusBadRequest, "no session: send initialize first, and then its "+server.HeaderKeySessionID+" with every request")
			return false
		}
		if !h.ours(r) {
			h.refuse(w, http.StatusNotFound, "the session is not open, or of another token: initialize again")
			return false
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	return true
}

// modernHeader reports a request of a protocol without sessions.
func modernHeader(r *http.Request) bool {
	return r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28"
}

// ours reports whether the session of a request is open and of the principal who asks.
func (h *HTTP) ours(r *http.Request) bool {
	p, _ := door.From(r.Context())
	return h.s.own.has(r.Header.Get(server.HeaderKeySessionID), p.Name)
}

// refuse answers with one sentence in JSON.
func (h *HTTP) refuse(w http.ResponseWriter, status int, sentence string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	h.gone(json.NewEncoder(w).Encode(struct {
		Error string `json:"error"`
	}{sentence}))
}

// gone notes that a refusal did not reach who is gone.
func (h *HTTP) gone(err error) {
	if err != nil {
		h.s.log.Debug("refusal not sent", "err", err)
	}
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
