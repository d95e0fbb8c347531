package rtps

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestDiscovery finds each other over the loopback interface, by multicast and by static peers, with no network needed.
func TestDiscovery(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b Config
	}{
		{"multicast", Config{Interfaces: []string{"lo"}}, Config{Interfaces: []string{"lo"}}},
		{"one peer", Config{Interfaces: []string{"127.0.0.1"}, NoMulticast: true, Peers: []string{"127.0.0.1"}}, Config{Interfaces: []string{"lo"}, NoMulticast: true}},
		{"by name", Config{Interfaces: []string{"lo"}, NoMulticast: true, Peers: []string{"localhost"}}, Config{Interfaces: []string{"lo"}, NoMulticast: true}},
		{"this host alone", Config{Localhost: true, NoMulticast: true}, Config{Localhost: true, NoMulticast: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := soon(t)
			c.a.Domain = domain(t)
			c.b.Domain = c.a.Domain
			a, err := Open(c.a)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			b, err := Open(c.b)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			s := newSink(100)
			makeReader(t, b, "rt/x", reliable, s.take)
			w := makeWriter(t, a, "rt/x", reliable)
			ready(ctx, t, w, 1)
			write(ctx, t, w, 0, 3)
			inOrder(t, s.wait(ctx, t, 3), 3)
			start := time.Now()
			if err := a.Close(); err != nil || time.Since(start) > 2*time.Second {
				t.Errorf("closed after %v: %v", time.Since(start), err)
			}
		})
	}
}

// TestUnknownPeerIsTold has a static peer whose name nobody knows.
func TestUnknownPeerIsTold(t *testing.T) {
	ctx := soon(t)
	var log lines
	p, err := Open(Config{Domain: domain(t), Interfaces: []string{"lo"}, NoMulticast: true, Peers: []string{"nobody.invalid"}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for !strings.Contains(log.String(), "peer=nobody.invalid") {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the log has %q", log.String())
		}
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Domain: 233}, "233"},
		{Config{Domain: 39, Interfaces: []string{"nosuch0"}}, "nosuch0"},
		{Config{Domain: 39, Localhost: true, Peers: []string{"robot:0"}}, "robot:0"},
		{Config{Domain: 39, Localhost: true, Peers: []string{""}}, "no host"},
	} {
		p, err := Open(c.config)
		if err == nil {
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

// hosted is a carrier with interfaces of its own.
type hosted struct {
	deaf
	ours, links []string
}

func (h hosted) local(a netip.Addr) (ours, linked bool) {
	for _, o := range h.ours {
		ours = ours || a == netip.MustParseAddr(o)
	}
	for _, l := range h.links {
		linked = linked || netip.MustParsePrefix(l).Contains(a)
	}
	return ours || a.IsLoopback(), linked
}

func TestChooseAddress(t *testing.T) {
	ours := hosted{ours: []string{"192.168.1.2", "172.17.0.1"}, links: []string{"192.168.1.0/24", "172.17.0.0/16"}}
	for _, c := range []struct {
		name, from string
		addrs      []string
		localhost  bool
		want       string
		near       bool
	}{
		{"another host, several links", "192.168.1.9", []string{"10.8.0.5", "192.168.1.9"}, false, "192.168.1.9", false},
		{"its container bridge is not ours", "192.168.1.9", []string{"172.17.0.1", "192.168.1.9"}, false, "192.168.1.9", false},
		{"heard by a way that it does not announce", "10.9.9.9", []string{"10.8.0.5", "192.168.1.9"}, false, "192.168.1.9", false},
		{"a bridge as ours, and heard by another way", "10.9.9.9", []string{"172.17.0.1", "10.8.0.5"}, false, "10.8.0.5", false},
		{"no link of ours", "10.9.9.9", []string{"10.8.0.5"}, false, "10.8.0.5", false},
		{"another host's loopback", "192.168.1.9", []string{"127.0.0.1", "192.168.1.9"}, false, "192.168.1.9", false},
		{"only another host's loopback", "192.168.1.9", []string{"127.0.0.1"}, false, "", false},
		{"this host", "192.168.1.2", []string{"192.168.1.2", "172.17.0.1"}, false, "192.168.1.2", true},
		{"this host by loopback", "127.0.0.1", []string{"192.168.1.2", "127.0.0.1"}, false, "127.0.0.1", true},
		{"alone", "192.168.1.9", []string{"192.168.1.9"}, true, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := open(Config{}, ours)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			p.cfg.Localhost = c.localhost
			var d dest
			addrs := make([]netip.AddrPort, 0, len(c.addrs))
			for _, a := range c.addrs {
				addrs = append(addrs, netip.AddrPortFrom(netip.MustParseAddr(a), 7411))
			}
			d.choose(p, addrs, netip.MustParseAddr(c.from))
			got := ""
			if a := d.load(); a.IsValid() {
				got = a.Addr().String()
			}
			if got != c.want || d.near.Load() != c.near {
				t.Errorf("chose %q, near %v", got, d.near.Load())
			}
		})
	}
}
