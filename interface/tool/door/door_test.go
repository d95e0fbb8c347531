package door

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func tokens(t *testing.T) []Token {
	t.Helper()
	a, err := NewToken("ann", Driver, Hash("secret-a"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewToken("bob", Watcher, "sha256:"+Hash("secret-b"))
	if err != nil {
		t.Fatal(err)
	}
	return []Token{a, b}
}

func TestGuard(t *testing.T) {
	var log bytes.Buffer
	d := New(Options{
		Tokens: tokens(t), Hosts: []string{"robot.lab", "arm.lab:8443"}, Origins: []string{"https://console.lab"}, MaxBody: 100,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	var who Principal
	var got string
	h := d.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _ = From(r.Context())
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = string(b)
		w.WriteHeader(http.StatusTeapot)
	}))
	const in = http.StatusTeapot
	const cancelled = `{"method":"notifications/cancelled","params":{"requestId":7}}`
	failures := uint64(0)
	for _, c := range []struct {
		name    string
		host    string
		path    string
		headers string // "Name: value" by line
		body    string
		status  int
		who     string
	}{
		{"loopback", "127.0.0.1:8080", "/mcp", "Authorization: Bearer secret-a", "{}", in, "ann"},
		{"another name", "localhost", "/mcp", "Authorization: bearer secret-b", "{}", in, "bob"},
		{"IPv6", "[::1]:8080", "/mcp", "Authorization: Bearer secret-a", "{}", in, "ann"},
		{"listed host, any port", "ROBOT.lab:99", "/mcp", "Authorization: Bearer secret-a", "{}", in, "ann"},
		{"listed host and port", "arm.lab:8443", "/mcp", "Authorization: Bearer secret-a", "{}", in, "ann"},
		{"listed host, another port", "arm.lab:99", "/mcp", "Authorization: Bearer secret-a", "{}", 403, ""},
		{"rebound host", "evil.example", "/mcp", "Authorization: Bearer secret-a", "{}", 403, ""},
		{"no host", "", "/mcp", "Authorization: Bearer secret-a", "{}", 403, ""},
		{"own origin", "localhost:8080", "/mcp", "Authorization: Bearer secret-a\nOrigin: http://localhost:8080", "{}", in, "ann"},
		{"listed origin", "localhost:8080", "/mcp", "Authorization: Bearer secret-a\nOrigin: https://console.lab", "{}", in, "ann"},
		{"foreign origin", "localhost:8080", "/mcp", "Authorization: Bearer secret-a\nOrigin: https://evil.example", "{}", 403, ""},
		{"null origin", "localhost:8080", "/mcp", "Authorization: Bearer secret-a\nOrigin: null", "{}", 403, ""},
		{"no token", "localhost", "/mcp", "", "{}", 401, ""},
		{"wrong token", "localhost", "/mcp", "Authorization: Bearer secret-c", "{}", 401, ""},
		{"empty token", "localhost", "/mcp", "Authorization: Bearer ", "{}", 401, ""},
		{"hash as token", "localhost", "/mcp", "Authorization: Bearer " + Hash("secret-a"), "{}", 401, ""},
		{"basic", "localhost", "/mcp", "Authorization: Basic secret-a", "{}", 401, ""},
		{"well-known without token", "localhost", "/.well-known/oauth-protected-resource/mcp", "", "", 404, ""},
		{"largest body", "localhost", "/mcp", "Authorization: Bearer secret-a", strings.Repeat("x", 100), in, "ann"},
		{"too large a body", "localhost", "/mcp", "Authorization: Bearer secret-a", strings.Repeat("x", 101), 413, ""},
		{"foreign cancel", "localhost", "/mcp", "Authorization: Bearer secret-a\nMcp-Protocol-Version: 2026-07-28\nMcp-Method: notifications/cancelled", cancelled, 202, ""},
		{"that says it is a ping", "localhost", "/mcp", "Authorization: Bearer secret-a\nMcp-Protocol-Version: 2026-07-28\nMcp-Method: ping", cancelled, 202, ""},
		{"that says nothing", "localhost", "/mcp", "Authorization: Bearer secret-a\nMcp-Protocol-Version: 2026-07-28", cancelled, 202, ""},
		{"that spells it strangely", "localhost", "/mcp", "Authorization: Bearer secret-a\nMcp-Protocol-Version: 2026-07-28", `{"METHOD":"x","method":"notifications\/cancell\u0065d"}`, 202, ""},
		{"own cancel", "localhost", "/mcp", "Authorization: Bearer secret-a\nMcp-Protocol-Version: 2025-11-25\nMcp-Method: notifications/cancelled", cancelled, in, "ann"},
	} {
		who, got = Principal{}, ""
		r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body))
		r.Host = c.host
		for _, l := range strings.Split(c.headers, "\n") {
			if n, v, ok := strings.Cut(l, ": "); ok {
				r.Header.Set(n, v)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || who.Name != c.who || c.who != "" && got != c.body {
			t.Errorf("%s: status %d, who %q, body %q; want %d, %q", c.name, w.Code, who.Name, got, c.status, c.who)
		}
		if w.Code == 401 || w.Code == 403 {
			failures++
		}
		if w.Code >= 400 && w.Code != in {
			var e struct{ Error string }
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error == "" || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s: says %q", c.name, w.Body)
			}
		}
	}
	// The first is logged at once, the others within the same second are counted for the next line.
	if lines := strings.Count(log.String(), "request refused"); d.Failed() != failures || lines < 1 || lines > 3 {
		t.Errorf("%d failures counted, %d happened, log:\n%s", d.Failed(), failures, &log)
	}
	if strings.Contains(log.String(), "secret-") {
		t.Error("a token stands in the log")
	}
}

func TestOneLineASecondAboutRefusals(t *testing.T) {
	var d storm
	now := time.Now()
	for i, want := range []struct {
		at    time.Duration
		ok    bool
		quiet int
	}{{0, true, 0}, {time.Millisecond, false, 0}, {999 * time.Millisecond, false, 0}, {time.Second, true, 2}, {3 * time.Second, true, 0}} {
		if quiet, ok := d.may(now.Add(want.at)); ok != want.ok || quiet != want.quiet {
			t.Errorf("refusal %d: %v %d, want %v %d", i, ok, quiet, want.ok, want.quiet)
		}
	}
}

func TestChunkedBodiesAreBoundedToo(t *testing.T) {
	d := New(Options{Tokens: tokens(t), MaxBody: 1000})
	srv := httptest.NewServer(d.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("let in") })))
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, io.MultiReader(strings.NewReader(strings.Repeat("x", 5000)))) // no length
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret-a")
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", res.StatusCode)
	}
	srv.Client().CloseIdleConnections()
}

func TestTokensAndRoles(t *testing.T) {
	for _, bad := range []string{"", "abc", strings.Repeat("g", 64), strings.Repeat("a", 63), strings.Repeat("a", 66)} {
		if _, err := NewToken("x", Driver, bad); err == nil || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("hash %q: %v", bad, err)
		}
	}
	for _, r := range []Role{Watcher, Driver, Operator} {
		if got, err := ParseRole(r.String()); err != nil || got != r {
			t.Errorf("%v: %v %v", r, got, err)
		}
	}
	for _, s := range []string{"", "nobody", "root", "Driver"} {
		if r, err := ParseRole(s); err == nil || r != Nobody {
			t.Errorf("role %q: %v %v", s, r, err)
		}
	}
	if _, ok := From(t.Context()); ok {
		t.Error("a bare context has a principal")
	}
}

func TestListenerNoticesDeadLinks(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Listen(t.Context(), l.Addr().String()); err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("a port in use: %v", err)
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	raw, err := s.(*slotted).NetConn().(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[int]int{unix.TCP_USER_TIMEOUT: 6000, unix.TCP_KEEPIDLE: 3, unix.TCP_KEEPINTVL: 1, unix.TCP_KEEPCNT: 3} {
		if err := raw.Control(func(fd uintptr) {
			if got, err := syscall.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name); err != nil || got != want {
				t.Errorf("TCP option %d of an accepted connection is %d (%v), want %d", name, got, err, want)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestServeEndsRequestsBeforeItWaits: a request that only ends with its context does not hold up the end.
func TestServeEndsRequestsBeforeItWaits(t *testing.T) {
	for _, secure := range []bool{false, true} {
		var conf *tls.Config
		client := &http.Client{Transport: &http.Transport{}}
		scheme := "http://"
		if secure {
			donor := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
			conf = &tls.Config{Certificates: donor.TLS.Certificates, MinVersion: tls.VersionTLS12}
			client = donor.Client()
			defer donor.Close()
			scheme = "https://"
		}
		ctx, cancel := context.WithCancel(t.Context())
		l, err := Listen(ctx, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		inside := make(chan struct{})
		served := make(chan error, 1)
		go func() {
			served <- Serve(ctx, l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(inside)
				<-r.Context().Done()
			}), conf, nil)
		}()
		got := make(chan struct{})
		go func() {
			defer close(got)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+l.Addr().String(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			if res, err := client.Do(req); err == nil {
				res.Body.Close()
			}
		}()
		<-inside
		start := time.Now()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("the end took %v", d)
		}
		<-got
		client.CloseIdleConnections()
	}
}
