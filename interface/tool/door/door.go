package door

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultMaxBody is the largest request body in bytes. The MCP library parses a body several times, so a
// large one costs far more than its size.
const DefaultMaxBody = 1 << 20

// bodyTime is how long a client may take to send its body.
const bodyTime = 30 * time.Second

// Options of a Door.
type Options struct {
	Tokens  []Token
	Hosts   []string // allowed Host headers beside loopback names, with or without a port
	Origins []string // allowed Origin headers beside one that equals the Host
	MaxBody int64    // bytes; 0 is DefaultMaxBody
	Log     *slog.Logger
}

// Door checks requests before they reach what it guards.
type Door struct {
	o      Options
	failed atomic.Uint64
	storm  storm
}

// New is a door for o.
func New(o Options) *Door {
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Door{o: o}
}

// Failed is how many requests were turned away for their host, origin or token.
func (d *Door) Failed() uint64 { return d.failed.Load() }

// Guard lets next see only requests with an allowed Host and Origin, a known token and a body of bounded
// size. The principal is in the request's context, and the body is already read.
func (d *Door) Guard(next http.Handler) http.Handler {
	return d.Public(d.authorize(d.body(next)))
}

// Public checks Host and Origin only, and answers discovery probes: for what needs no token, like a page.
func (d *Door) Public(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.hostAllowed(r.Host) {
			d.refuse(w, r, http.StatusForbidden, "host", fmt.Sprintf("host %q is not one of this daemon's names; add it to the launch file", r.Host))
			return
		}
		if o := r.Header.Get("Origin"); o != "" && !d.originAllowed(o, r) {
			d.refuse(w, r, http.StatusForbidden, "origin", fmt.Sprintf("origin %q is not allowed; add it to the launch file", o))
			return
		}
		if r.URL.Path == "/.well-known" || strings.HasPrefix(r.URL.Path, "/.well-known/") {
			say(w, http.StatusNotFound, "there is no authorization server here: send the token as Authorization: Bearer")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (d *Door) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		p, ok := Principal{}, false
		if strings.EqualFold(scheme, "Bearer") && token != "" {
			p, ok = Lookup(d.o.Tokens, strings.TrimSpace(token))
		}
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer realm="viad"`)
			d.refuse(w, r, http.StatusUnauthorized, "token", "no known token: send Authorization: Bearer with a token of the launch file")
			return
		}
		next.ServeHTTP(w, r.WithContext(With(r.Context(), p)))
	})
}

func (d *Door) body(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			b, status := d.read(w, r)
			if status != 0 {
				say(w, status, fmt.Sprintf("the request body was not read: at most %d bytes within %v are allowed", d.o.MaxBody, bodyTime))
				return
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
			if foreignCancel(r, b) {
				w.WriteHeader(http.StatusAccepted)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// read takes the whole body, or says with which status it was given up.
func (d *Door) read(w http.ResponseWriter, r *http.Request) ([]byte, int) {
	if r.ContentLength > d.o.MaxBody {
		w.Header().Set("Connection", "close")
		return nil, http.StatusRequestEntityTooLarge
	}
	rc := http.NewResponseController(w)
	// Writers that know no deadline, as tests have, just wait for the body.
	limited := rc.SetReadDeadline(time.Now().Add(bodyTime)) == nil
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, d.o.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, http.StatusRequestTimeout
	}
	if limited {
		if err := rc.SetReadDeadline(time.Time{}); err != nil {
			return nil, http.StatusRequestTimeout
		}
	}
	return b, 0
}

// foreignCancel reports a posted cancellation of protocol 2026-07-28. That protocol has no session, so the
// request id in it would name another client's call just as well; its clients cancel by closing the request. The
// body says what it is, for the header that should is believed by nobody behind this door.
func foreignCancel(r *http.Request, body []byte) bool {
	if r.Header.Get("Mcp-Protocol-Version") < "2026-07-28" {
		return false
	}
	var m struct {
		Method string `json:"method"`
	}
	return json.Unmarshal(body, &m) == nil && m.Method == "notifications/cancelled"
}

func (d *Door) hostAllowed(host string) bool {
	name := hostname(host)
	if name == "localhost" {
		return true
	}
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() {
		return true
	}
	for _, h := range d.o.Hosts {
		if strings.EqualFold(h, host) || strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

func (d *Door) originAllowed(origin string, r *http.Request) bool {
	if sameOrigin(origin, r) {
		return true
	}
	for _, o := range d.o.Origins {
		if strings.EqualFold(o, origin) {
			return true
		}
	}
	return false
}

// sameOrigin reports whether an Origin header names the server that the request came to. A page that came in
// clear is not one that came over TLS, whatever it calls itself.
func sameOrigin(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "https" || u.Scheme == "http" && r.TLS == nil)
}

func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

func (d *Door) refuse(w http.ResponseWriter, r *http.Request, status int, why, sentence string) {
	d.Note(r, why)
	say(w, status, sentence)
}

// Note counts a request that was turned away, and logs it unless there was such a line within the second. It is
// for handlers behind Public that check a token themselves.
func (d *Door) Note(r *http.Request, why string) {
	n := d.failed.Add(1)
	if more, ok := d.storm.may(time.Now()); ok {
		d.o.Log.Warn("request refused", "why", why, "remote", r.RemoteAddr, "host", r.Host, "origin", r.Header.Get("Origin"),
			"method", r.Method, "path", r.URL.Path, "failed", n, "not_logged", more)
	}
}

// say answers with one sentence in JSON.
func say(w http.ResponseWriter, status int, sentence string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// This fails when the client is gone, and then nobody is left to be told.
	_ = json.NewEncoder(w).Encode(struct {
		Error string `json:"error"`
	}{sentence})
}
