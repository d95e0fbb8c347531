package door

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestConnectionsLeaveFilesForTheRest: where a process may open few files, half of them stay for robot and record.
func TestConnectionsLeaveFilesForTheRest(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}()
	for files, want := range map[uint64]int{200: 100, was.Max: int(min(maxConnections, was.Max/2))} {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		if got := connections(); got != want {
			t.Errorf("of %d files: %d connections, want %d", files, got, want)
		}
	}
}

// shop is a served listener of so many connections; /wait answers when the test says so.
type shop struct {
	addr string
	tls  *tls.Config // a client's; nil in clear
	log  *words
	let  chan struct{}
	in   chan struct{} // gets one for every request that waits
}

type words struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *words) count(s string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.buf.String(), s)
}

func openShop(t *testing.T, most int, secure bool) *shop {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := l.(*bounded); most > 0 && ok {
		b.most = most
	}
	s := &shop{addr: l.Addr().String(), log: &words{}, let: make(chan struct{}), in: make(chan struct{}, 100)}
	m := http.NewServeMux()
	m.HandleFunc("/wait", func(http.ResponseWriter, *http.Request) { s.in <- struct{}{}; <-s.let })
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	var conf *tls.Config
	if secure {
		certPEM, keyPEM, err := SelfSigned([]string{"127.0.0.1"}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(pair.Leaf)
		conf, s.tls = &tls.Config{Certificates: []tls.Certificate{pair}}, &tls.Config{RootCAs: roots}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, m, conf, slog.New(slog.NewTextHandler(s.log, nil))) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Log(err) // connections that a test left open
		}
	})
	return s
}

// hold opens a connection and says something on it; the rest is up to the test.
func (s *shop) hold(t *testing.T, say string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the door may have closed it
	if _, err := io.WriteString(c, say); err != nil {
		t.Fatal(err)
	}
	return c
}

// comes is a new client that wants an answer at once.
func (s *shop) comes(t *testing.T, who string) {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: s.tls}
	defer tr.CloseIdleConnections()
	scheme := "http://"
	if s.tls != nil {
		scheme = "https://"
	}
	began := time.Now()
	r, err := (&http.Client{Transport: tr, Timeout: 5 * time.Second}).Get(scheme + s.addr)
	if err != nil {
		t.Errorf("%s: %v", who, err)
		return
	}
	if r.Body.Close(); r.StatusCode != http.StatusOK {
		t.Errorf("%s: %d", who, r.StatusCode)
	}
	if took := time.Since(began); took > 3*time.Second { // without its place it would be until a silent one's ten seconds are over
		t.Errorf("%s waited %v", who, took)
	}
}

// gone reports whether the door has closed a connection.
func gone(t *testing.T, c net.Conn) bool {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// Whoever only holds connections keeps nobody out, however they are held, and nobody who is being answered goes.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	for name, c := range map[string]struct {
		say    string
		secure bool
	}{
		"that say nothing":               {"", false},
		"that say nothing, TLS":          {"", true},
		"that never end their request":   {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", false},
		"that asked once":                {"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", false},
		"that end their handshake never": {"\x16\x03\x01", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, 0, c.secure)
			var held []net.Conn
			for range connections() {
				held = append(held, s.hold(t, c.say))
			}
			for i := range 20 {
				s.comes(t, fmt.Sprintf("client %d", i))
			}
			if c.say == "" && !gone(t, held[0]) {
				t.Error("the oldest stays")
			}
			if last := held[len(held)-1]; c.say == "" {
				if err := last.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				if _, err := last.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "timeout") {
					t.Errorf("the youngest of them had to go: %v", err)
				}
			}
			if s.log.count("connections are full") == 0 {
				t.Error("the log does not say that it is full")
			}
		})
	}
}

// Those who are being answered stay; when all are, a newcomer is closed without a word, and comes in once one ends.
func TestNobodyWhoIsAnsweredGoes(t *testing.T) {
	s := openShop(t, 8, false)
	var asked []net.Conn
	for range 8 {
		asked = append(asked, s.hold(t, "GET /wait HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
		<-s.in
	}
	if late := s.hold(t, ""); !gone(t, late) {
		t.Error("a ninth is served")
	}
	close(s.let)
	for i, c := range asked {
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || !strings.Contains(line, "200 OK") {
			t.Errorf("client %d got %q, %v", i, line, err)
		}
	}
	s.comes(t, "a client after them")
}

// A request that is answered without its body holds no place until that comes.
func TestBodyThatNeverComes(t *testing.T) {
	s := openShop(t, 8, false)
	for range 8 {
		s.hold(t, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n")
	}
	for end := time.Now().Add(8 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		r, err := http.Get("http://" + s.addr)
		if err == nil {
			_ = r.Body.Close()
			http.DefaultClient.CloseIdleConnections()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the door stays shut: %v", err)
		}
	}
}
