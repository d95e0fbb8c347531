package launch

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"viad/interface/tool/door"
)

// pair is the door's certificate and key, read anew when their files change: certificates are renewed while robots
// run for months. A new pair that cannot be used leaves the old one in place.
type pair struct {
	cert, key string
	own       bool // made here
	log       *slog.Logger

	mu    sync.Mutex
	now   *tls.Certificate
	files [2]stamp // what was looked at last, whether or not it could be used
}

// stamp tells one content of a file from another.
type stamp struct {
	ino  uint64
	size int64
	at   time.Time
}

func stampOf(path string) (s stamp) {
	if info, err := os.Stat(path); err == nil {
		s.size, s.at = info.Size(), info.ModTime()
		if sys, ok := info.Sys().(*syscall.Stat_t); ok {
			s.ino = sys.Ino
		}
	}
	return s
}

func (p *pair) stamps() [2]stamp { return [2]stamp{stampOf(p.cert), stampOf(p.key)} }

// open reads the files for the first time.
func (p *pair) open() error {
	p.files = p.stamps() // before the reading: what is written during it is read again
	c, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return fmt.Errorf("the certificate of listen.tls cannot be used: %w", err)
	}
	p.now = &c
	p.warn()
	return nil
}

// warn says what is wrong with a pair that works.
func (p *pair) warn() {
	if info, err := os.Stat(p.key); err == nil && info.Mode().Perm()&0o077 != 0 {
		p.log.Warn("others on this machine may read the certificate's key: chmod 600", "file", p.key, "mode", info.Mode().Perm().String())
	}
	if end := p.now.Leaf.NotAfter; time.Now().After(end) {
		p.log.Warn("the certificate has ended, and clients will refuse it", "file", p.cert, "ended", end)
	}
}

// current is the pair as its files are now.
func (p *pair) current() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	files := p.stamps()
	if files == p.files {
		return p.now
	}
	p.files = files
	c, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		p.log.Warn("the new certificate cannot be used, and the old one stays until its files change again", "file", p.cert, "error", err)
		return p.now
	}
	was, is := door.Fingerprint(p.now.Certificate[0]), door.Fingerprint(c.Certificate[0])
	p.now = &c
	p.log.Info("the certificate was read again", "file", p.cert, "fingerprint", is, "before", was, "ends", c.Leaf.NotAfter)
	p.warn()
	return p.now
}

// shown is what clients are told of it.
func (p *pair) shown() certificate {
	return certificate{path: p.cert, finger: door.Fingerprint(p.current().Certificate[0]), own: p.own}
}

// config is the door's TLS.
func (p *pair) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.current(), nil },
	}
}
