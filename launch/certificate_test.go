package launch

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"

	"viad/interface/tool/door"
)

func leaf(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOwnCertificateIsMadeOnceAndForItsNames(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2030, 5, 1, 0, 0, 0, 0, time.UTC)
	cert, key := filepath.Join(dir, "c"), filepath.Join(dir, "k")
	var news bytes.Buffer
	log := slog.New(slog.NewTextHandler(&news, nil))
	made := func(now time.Time, says string, names ...string) *x509.Certificate {
		t.Helper()
		news.Reset()
		if err := ownCertificate(cert, key, names, now, log); err != nil {
			t.Fatal(err)
		}
		if got := news.String(); says == "" && got != "" || !strings.Contains(got, says) {
			t.Errorf("want news of %q, got %q", says, got)
		}
		for _, f := range []string{cert, key} {
			if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", f, info.Mode(), err)
			}
		}
		return leaf(t, cert)
	}
	a := made(now, "there was none", "robot.lab", "192.168.1.20", "::1")
	for _, n := range []string{"robot.lab", "ROBOT.lab", "192.168.1.20", "::1"} {
		if err := a.VerifyHostname(n); err != nil {
			t.Error(err)
		}
	}
	if err := a.VerifyHostname("evil.example"); err == nil {
		t.Error("the certificate is for evil.example")
	}
	if a.IsCA || a.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Error("who trusts the certificate would trust others made with its key")
	}
	if years := a.NotAfter.Sub(now).Hours() / 24 / 365; years < 9.9 {
		t.Errorf("good for %.1f years", years)
	}
	if b := made(now.AddDate(9, 0, 0), "", "robot.lab", "::1"); !b.Equal(a) {
		t.Error("a second start makes another certificate")
	}
	b := made(now, "not for arm.lab", "robot.lab", "arm.lab")
	if b.Equal(a) {
		t.Error("a new name needs a new certificate")
	}
	if c := made(now.AddDate(10, 0, -20), "ends", "robot.lab"); c.NotAfter.Before(now.AddDate(19, 0, 0)) {
		t.Errorf("not renewed before its end: until %v", c.NotAfter)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if err := ownCertificate(cert, key, []string{"x"}, now, log); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a certificate without its key: %v", err)
	}
	if err := os.WriteFile(key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ownCertificate(cert, key, []string{"x"}, now, log); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a broken key: %v", err)
	}
}

// A robot whose clock has lost its time makes a certificate that is good today.
func TestOwnCertificateOfARobotThatLivesIn1970(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c"), filepath.Join(dir, "k")
	if err := ownCertificate(cert, key, []string{"robot.lab"}, time.Unix(0, 0), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	c := leaf(t, cert)
	if c.NotBefore.After(time.Now()) || c.NotAfter.Before(certBegin.AddDate(10, 0, -1)) {
		t.Errorf("good from %v until %v", c.NotBefore, c.NotAfter)
	}
}

// trusting is an HTTP client that knows the daemon's certificate, as one that was given the file.
func trusting(t *testing.T, d *daemon, h2 bool) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	b, err := os.ReadFile(d.shown.path)
	if err != nil || !pool.AppendCertsFromPEM(b) {
		t.Fatal("no certificate", err)
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: h2}
	if !h2 {
		tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// overTLS is a daemon with a certificate of its own.
func overTLS(t *testing.T, change func(*Config)) *daemon {
	t.Helper()
	return start(t, "twin-franka.yaml", func(c *Config) {
		c.Listen.TLS = TLS{Generate: true}
		c.Listen.Hosts = []string{"robot.lab.example"}
		if change != nil {
			change(c)
		}
	})
}

func connectWith(t *testing.T, url, token string, hc *http.Client) *agent {
	t.Helper()
	c, err := mcpgo.NewStreamableHttpClient(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}), transport.WithHTTPBasicClient(hc))
	if err != nil {
		t.Fatal(err)
	}
	return hello(t, c)
}

func TestTheToolsOverTLS(t *testing.T) {
	d := overTLS(t, nil)
	if !strings.HasPrefix(d.MCP(), "https://127.0.0.1:") {
		t.Fatal(d.MCP())
	}
	if out, err := d.viactl("status"); err != nil || !strings.Contains(out, d.shown.finger+", "+d.shown.path) {
		t.Errorf("the status does not show the certificate: %v\n%s", err, out)
	}
	for proto, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		hc := trusting(t, d, h2)
		r, err := hc.Get(strings.TrimSuffix(d.MCP(), "mcp") + "page.css")
		if err != nil {
			t.Fatal(err)
		}
		if r.Body.Close(); r.Proto != proto || r.StatusCode != http.StatusOK {
			t.Errorf("spoken: %s, status %d, want %s", r.Proto, r.StatusCode, proto)
		}
		if got := door.Fingerprint(r.TLS.PeerCertificates[0].Raw); got != d.shown.finger {
			t.Errorf("%s: shown %s, printed %s", proto, got, d.shown.finger)
		}
		a := connectWith(t, d.MCP(), d.Token(), hc)
		if text, pictures, refused := a.call("screenshot", nil); refused || pictures != 1 {
			t.Error(text)
		}
		a.must("gripper_translate", map[string]any{"d_z": -0.03})
		if text := a.must("execute_waypoint", nil); !strings.Contains(text, "reached") {
			t.Error(text)
		}
	}
	if _, err := http.Get(d.MCP()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a client that was not given the certificate: %v", err)
	}
	old := trusting(t, d, false)
	old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS11
	if _, err := old.Get(d.MCP()); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	plain, err := http.Get("http" + strings.TrimPrefix(d.MCP(), "https"))
	if err != nil {
		t.Fatal(err)
	}
	if plain.Body.Close(); plain.StatusCode != http.StatusBadRequest {
		t.Errorf("in clear: %d", plain.StatusCode)
	}
}

// The lines that a start prints let other programs in, with the libraries that agents stand on.
func TestPrintedLinesForTLSWork(t *testing.T) {
	d := overTLS(t, nil)
	var b strings.Builder
	if err := d.cfg.banner(&b, d.Addr(), d.Token(), "x", d.shown); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{d.shown.finger, d.shown.path, "NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE", "--transport http viad https://"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the start does not print %s:\n%s", want, b.String())
		}
	}
	dir := t.TempDir()
	sh := func(script string) (string, error) {
		c := exec.CommandContext(t.Context(), "sh", "-c", script)
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	lines := regexp.MustCompile(`(?m)^  (openssl .*)$`).FindAllStringSubmatch(b.String(), -1)
	if len(lines) != 2 {
		t.Fatalf("%q", lines)
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("no openssl here")
	}
	if out, err := sh(lines[0][1]); err != nil {
		t.Fatal(out, err)
	}
	if out, err := sh(lines[1][1]); err != nil || !strings.Contains(out, d.shown.finger) {
		t.Errorf("%v: %s", err, out)
	}
	page := strings.TrimSuffix(d.MCP(), "mcp") + "page.css"
	for tool, script := range map[string]string{
		"curl": "curl -sS -o out --cacert viad.pem " + page,
		"node": "NODE_EXTRA_CA_CERTS=viad.pem node -e 'fetch(\"" + page + "\").then(r => { if (r.status !== 200) throw r.status })'",
	} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("no %s here", tool)
			continue
		}
		if out, err := sh(script); err != nil {
			t.Errorf("%s: %v: %s", tool, err, out)
		}
		bare := strings.NewReplacer("--cacert viad.pem", "", "NODE_EXTRA_CA_CERTS=viad.pem", "").Replace(script)
		if out, err := sh(bare); err == nil || !strings.Contains(strings.ToLower(out), "cert") {
			t.Errorf("%s comes in without the certificate: %s", tool, out)
		}
	}
}

// Files that the operator names are used, and bad ones stop the start.
func TestGivenCertificate(t *testing.T) {
	dir := t.TempDir()
	certPEM, keyPEM, err := door.SelfSigned([]string{"127.0.0.1"}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	given := TLS{Cert: filepath.Join(dir, "c.pem"), Key: filepath.Join(dir, "k.pem")}
	for path, b := range map[string][]byte{given.Cert: certPEM, given.Key: keyPEM} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := start(t, "twin-franka.yaml", func(c *Config) { c.Listen.TLS = given })
	if r, err := trusting(t, d, true).Get(strings.TrimSuffix(d.MCP(), "mcp") + "page.css"); err != nil || r.StatusCode != http.StatusOK {
		t.Error(r, err)
	} else {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	if _, err := os.Stat(d.cfg.state("tls-key.pem")); err == nil {
		t.Error("a certificate was made though one was given")
	}
	given.Key = given.Cert
	if _, err := New(context.Background(), testConfig(t, "twin-franka.yaml", func(c *Config) { c.Listen.TLS = given }), Options{}); err == nil ||
		!strings.Contains(err.Error(), "listen.tls") {
		t.Errorf("a key that is none: %v", err)
	}
}
