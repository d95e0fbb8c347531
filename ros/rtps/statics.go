package rtps

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// asked is how many participant indices of a static peer's host are asked, when the peer has no port. Both vendors take
// the lowest free one, and Cyclone stops at 9 by default, at 32 in newer ROS.
const asked = 33

// statics are the peers that the configuration names.
type statics struct {
	mu    sync.Mutex
	fixed []netip.AddrPort // port 0 is every index
	hosts []staticHost
}

type staticHost struct {
	name string
	port uint16
	ips  []netip.Addr
	told string // why it is not known, as it was logged
}

func parseStatics(c *Config) (*statics, error) {
	s := &statics{}
	for _, peer := range c.Peers {
		host, port := peer, uint16(0)
		if h, ps, ok := strings.Cut(peer, ":"); ok {
			n, err := strconv.ParseUint(ps, 10, 16)
			if err != nil || n == 0 {
				return nil, fmt.Errorf("peer %q: the port is not 1..65535 (IPv6 is not supported)", peer)
			}
			host, port = h, uint16(n)
		}
		switch a, err := netip.ParseAddr(host); {
		case host == "":
			return nil, fmt.Errorf("peer %q has no host", peer)
		case err == nil:
			s.fixed = append(s.fixed, netip.AddrPortFrom(a, port))
		default:
			s.hosts = append(s.hosts, staticHost{name: host, port: port})
		}
	}
	if c.Localhost {
		// Cyclone on the loopback alone has no multicast there.
		s.fixed = append(s.fixed, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0))
	}
	return s, nil
}

func (s *statics) names() bool { return len(s.hosts) > 0 }

// resolve looks the hosts' names up: at once, until it succeeds, and then every minute, as addresses change.
func (s *statics) resolve(log *slog.Logger, done <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
		}
		wait := time.Minute
		for i := range s.hosts {
			ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", s.hosts[i].name)
			if err != nil {
				wait = 5 * time.Second
				if told := &s.hosts[i].told; *told != err.Error() && ctx.Err() == nil {
					*told = err.Error()
					log.Warn("rtps: the name of a static peer is not known, and is looked up again and again: it is not told of us until then", "peer", s.hosts[i].name, "error", err)
				}
				continue
			}
			s.hosts[i].told = ""
			s.mu.Lock()
			s.hosts[i].ips = ips
			s.mu.Unlock()
		}
		timer.Reset(wait)
	}
}

// targets are the addresses to announce to.
func (s *statics) targets(p *Participant) []netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []netip.AddrPort
	add := func(a netip.Addr, port uint16) {
		if port != 0 {
			out = append(out, netip.AddrPortFrom(a, port))
			return
		}
		ours, _ := p.net.local(a)
		for i := range asked {
			if i != p.net.index() || !ours {
				out = append(out, netip.AddrPortFrom(a, uint16(basePort(p.cfg.Domain)+10+2*i)))
			}
		}
	}
	for _, a := range s.fixed {
		add(a.Addr(), a.Port())
	}
	for i := range s.hosts { // not a copy: what was told of them is the other goroutine's
		for _, a := range s.hosts[i].ips {
			add(a.Unmap(), s.hosts[i].port)
		}
	}
	return out
}
