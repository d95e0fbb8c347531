package launch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"viad/interface/tool/door"
)

// TLS is a certificate and its key, or the wish for one of the daemon's own. One of both is needed when the
// address is not a loopback one.
type TLS struct {
	Cert     string `yaml:"cert"`
	Key      string `yaml:"key"`
	Generate bool   `yaml:"generate"`
}

// on reports whether the door speaks TLS.
func (t TLS) on() bool { return t.Generate || t.Cert != "" }

// The daemon's own certificate is good for ten years: robots outlive the people who set them up, and nothing
// renews it but a start. It is renewed a month before its end. It begins on a fixed day, because a robot
// without a battery for its clock lives in 1970 until it finds the network.
const (
	certYears  = 10
	certMargin = 30 * 24 * time.Hour
)

var certBegin = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant in all but name

func (c *Config) checkTLS(host string) error {
	t := c.Listen.TLS
	switch {
	case t.Generate && (t.Cert != "" || t.Key != ""):
		return c.complain("listen.tls", "names a certificate and asks for one to be made: choose one of them")
	case (t.Cert != "") != (t.Key != ""):
		return c.complain("listen.tls", "needs both cert and key")
	case !t.on() && !loopback(host):
		return c.complain("listen.address", "%s is not a loopback address, and a token must not cross a network in clear: "+
			"set listen.tls.generate: true, or listen.tls.cert and listen.tls.key, or listen on 127.0.0.1", pick(host == "", "every address", host))
	}
	return nil
}

// checkNames refuses names that no client can call.
func (c *Config) checkNames(host string) error {
	for i, h := range c.Listen.Hosts {
		name := hostOnly(h)
		if name == "" || strings.ContainsAny(h, "/@ *") || strings.Contains(name, ":") && net.ParseIP(name) == nil {
			return c.complain(fmt.Sprintf("listen.hosts[%d]", i), "%q must be a name or an address as clients call this machine, for example robot.lab.example or 192.168.1.20", h)
		}
	}
	for i, o := range c.Listen.Origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != o {
			return c.complain(fmt.Sprintf("listen.origins[%d]", i), "%q must be scheme and host of a page, for example https://lab.example", o)
		}
	}
	if unspecified(host) && len(c.Listen.Hosts) == 0 {
		return c.complain("listen.hosts", "must say how clients call this machine when it listens on every address, for example [robot.lab.example, 192.168.1.20]; "+
			"requests by other names are refused")
	}
	return nil
}

func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// hostOnly is a Host header without its port.
func hostOnly(h string) string {
	if name, _, err := net.SplitHostPort(h); err == nil {
		return name
	}
	return strings.Trim(h, "[]")
}

// hosts are the names by which clients may call: those of the file, and the address itself.
func (c *Config) hosts() []string {
	out := slices.Clone(c.Listen.Hosts)
	if host, _, err := net.SplitHostPort(c.Listen.Address); err == nil && !unspecified(host) {
		out = append(out, host)
	}
	return out
}

// names are those that the daemon's own certificate is for.
func (c *Config) names() []string {
	var out []string
	for _, h := range append(c.hosts(), "localhost", "127.0.0.1", "::1") {
		if n := strings.ToLower(hostOnly(h)); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// openTLS loads what the door shows of itself; nothing without TLS.
func (s *System) openTLS(context.Context) error {
	t := s.cfg.Listen.TLS
	if !t.on() {
		return nil
	}
	cert, key := t.Cert, t.Key
	if t.Generate {
		cert, key = s.cfg.state("tls-cert.pem"), s.cfg.state("tls-key.pem")
		if err := ownCertificate(cert, key, s.cfg.names(), time.Now(), s.log); err != nil {
			return err
		}
	}
	s.pair = &pair{cert: cert, key: key, own: t.Generate, log: s.log}
	if err := s.pair.open(); err != nil {
		return err
	}
	s.shown, s.tls = s.pair.shown(), s.pair.config()
	return nil
}

// certificate is what clients are told of the door's.
type certificate struct {
	path, finger string
	own          bool // made here: clients know it from nowhere else
}

// ownCertificate makes the two files, unless they are there and still good for the names. Both are for the
// daemon's user alone.
func ownCertificate(cert, key string, names []string, now time.Time, log *slog.Logger) error {
	_, cerr := os.Stat(cert)
	_, kerr := os.Stat(key)
	why := "there was none"
	switch {
	case errors.Is(cerr, fs.ErrNotExist) && errors.Is(kerr, fs.ErrNotExist):
	case cerr != nil || kerr != nil:
		return fmt.Errorf("of the daemon's own certificate only one of %s and %s can be read: remove it, and new ones are made (%w)",
			cert, key, errors.Join(cerr, kerr))
	default:
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("the daemon's own certificate is broken: remove %s and %s, and new ones are made (%w)", cert, key, err)
		}
		if why = stale(pair.Leaf, names, now); why == "" {
			return nil
		}
	}
	end := now
	if end.Before(certBegin) {
		end = certBegin
	}
	certPEM, keyPEM, err := door.SelfSigned(names, certBegin, end.AddDate(certYears, 0, 0))
	if err != nil {
		return err
	}
	// The key first: a certificate without its key would be found broken at the next start.
	if err := errors.Join(replaceFile(key, keyPEM), replaceFile(cert, certPEM)); err != nil {
		return fmt.Errorf("cannot keep the daemon's own certificate: %w", err)
	}
	log.Warn("a new certificate was made; every client must be given it", "why", why, "file", cert, "names", names)
	return nil
}

// stale says why a certificate must be made anew; empty when it is good.
func stale(c *x509.Certificate, names []string, now time.Time) string {
	if now.Add(certMargin).After(c.NotAfter) {
		return "the old one ends " + c.NotAfter.Format(time.DateOnly)
	}
	for _, n := range names {
		if err := c.VerifyHostname(n); err != nil {
			return "the old one is not for " + n
		}
	}
	return ""
}
