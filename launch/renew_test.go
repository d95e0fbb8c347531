package launch

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"viad/interface/tool/door"
)

// pages is a log that may be written while it is read.
type pages struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (p *pages) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *pages) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

func (p *pages) count(words string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Count(p.buf.String(), words)
}

// logTo is a structured log into p.
func logTo(p *pages) *slog.Logger { return slog.New(slog.NewTextHandler(p, nil)) }

// issue is a new certificate and its key for this machine, and its fingerprint.
func issue(t *testing.T, d time.Duration) (certPEM, keyPEM []byte, finger string) {
	t.Helper()
	certPEM, keyPEM, err := door.SelfSigned([]string{"127.0.0.1"}, time.Now().Add(-time.Hour), time.Now().Add(d))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := pem.Decode(certPEM)
	return certPEM, keyPEM, door.Fingerprint(b.Bytes)
}

// TestRenewedCertificate: a certificate that was renewed is shown to the next client, without a restart; what is
// broken, or half written, leaves the old one, and one line.
func TestRenewedCertificate(t *testing.T) {
	dir := t.TempDir()
	given := TLS{Cert: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "k.pem")}
	put := func(path string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, key, first := issue(t, time.Hour)
	put(given.Cert, cert)
	put(given.Key, key)
	log := &pages{}
	d := startWith(t, "twin-franka.yaml", func(c *Config) { c.Listen.TLS = given }, func(*System) {}, logTo(log))
	shown := func() string {
		t.Helper()
		c, err := tls.Dial("tcp", d.Addr(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // what it shows is what is asked
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return door.Fingerprint(c.ConnectionState().PeerCertificates[0].Raw)
	}
	want := func(when, finger string, broken, renewed int) {
		t.Helper()
		for range 3 { // also the clients after the first
			if got := shown(); got != finger {
				t.Errorf("%s: %s is shown, want %s", when, got, finger)
			}
		}
		out, err := d.viactl("status")
		if err != nil || !strings.Contains(out, finger) {
			t.Errorf("%s: the status shows another: %v\n%s", when, err, out)
		}
		if b, r := log.count("cannot be used, and the old one stays"), log.count("the certificate was read again"); b != broken || r != renewed {
			t.Errorf("%s: %d lines about broken ones and %d about renewed ones, want %d and %d", when, b, r, broken, renewed)
		}
	}
	want("at the start", first, 0, 0)
	a := connectWith(t, d.MCP(), d.Token(), trusting(t, d, true))
	cert, key, second := issue(t, 2*time.Hour)
	put(given.Cert, cert)
	want("with a new certificate and the old key", first, 1, 0)
	put(given.Key, key)
	want("with both", second, 1, 1)
	a.must("screenshot", nil) // on the connection of before

	put(given.Cert, []byte("rubbish"))
	want("broken", second, 2, 1)
	if err := os.Remove(given.Key); err != nil {
		t.Fatal(err)
	}
	want("away", second, 3, 1)
	cert, key, third := issue(t, 3*time.Hour)
	tmp := filepath.Join(dir, "new")
	for path, b := range map[string][]byte{given.Key: key, given.Cert: cert} { // as certbot and Kubernetes do
		put(tmp, b)
		if err := os.Rename(tmp, path); err != nil {
			t.Fatal(err)
		}
	}
	want("by a rename", third, 3, 2)
}
