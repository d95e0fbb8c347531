package rtps

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// carrier takes datagrams to others. The participant's only one is network; tests have others, without sockets.
type carrier interface {
	send(b []byte, to netip.AddrPort)
	sendTrain(b []byte, size int, to netip.AddrPort) (ok bool) // many datagrams of one size; false if it cannot
	multicast(b []byte)                                        // to whoever listens on each interface
	locators() (meta, user []netip.AddrPort)                   // where we want discovery and samples
	local(a netip.Addr) (ours, linked bool)                    // a is an address of this host; is on a link of ours
	rescan() bool                                              // looks at the interfaces again; true when the locators changed
	index() int                                                // participant index that the ports were made from
	listen(f func(b []byte, from netip.AddrPort) (ahead int))  // see readAll; returns at once
	nap(d time.Duration)                                       // sleeps, for pacing
	close()
}

var multicastGroup = netip.AddrFrom4([4]byte{239, 255, 0, 1})

// lastIndex is the highest participant index tried for our own ports.
const lastIndex = 119

func basePort(domain int) int { return 7400 + 250*domain }

// socketBuffer is asked for; the system's limit (net.core.rmem_max) may give less to a process without privileges.
const socketBuffer = 8 << 20

// network is a participant's sockets: discovery and samples on every address of this host, and the multicast group.
type network struct {
	domain, idx int
	localhost   bool
	names       []string // interfaces asked for; none is all
	group       bool     // multicast wanted
	meta, user  *net.UDPConn
	hear        *net.UDPConn // the multicast group; nil without
	out         *rawSender   // by user
	wg          sync.WaitGroup

	mu     sync.Mutex
	ifaces []iface
	joined map[int]bool // interfaces whose group we are in, by index
	speak  map[int]speaker
	denied string // what the group could not be joined or spoken to for, when last looked
	log    *slog.Logger
}

// speaker sends to the group by one interface, from an address of its own.
type speaker struct {
	conn *net.UDPConn
	from netip.Addr
}

type iface struct {
	index  int
	name   string
	prefix []netip.Prefix // its addresses, with the length of the network's part
}

func openNetwork(c *Config) (*network, error) {
	n := &network{
		domain: c.Domain, localhost: c.Localhost, names: c.Interfaces, group: !c.NoMulticast,
		joined: map[int]bool{}, speak: map[int]speaker{}, log: c.Log,
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if err := n.bind(); err != nil {
		return nil, err
	}
	if n.group {
		hear, err := listenUDP(fmt.Sprintf("%v:%d", multicastGroup, basePort(n.domain)), true)
		if err != nil {
			n.close()
			return nil, fmt.Errorf("listen to participants' multicast %v:%d: %w", multicastGroup, basePort(n.domain), err)
		}
		n.hear = hear
	}
	var err error
	if n.ifaces, err = n.interfaces(); err != nil {
		n.close()
		return nil, fmt.Errorf("which network interfaces there are cannot be told: %w", err)
	}
	if len(n.ifaces) == 0 && len(n.names) > 0 {
		n.close()
		return nil, fmt.Errorf("no network interface that is up has a name or IPv4 address of %q", n.names)
	}
	if err := n.regroup(); errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		n.close()
		return nil, fmt.Errorf("too many files are open, so that nobody could be told of us: raise the limit (ulimit -n): %w", err)
	}
	return n, nil
}

// bind takes the ports of the first participant index that is free on this host.
func (n *network) bind() error {
	host := "0.0.0.0" // and never an interface's own: a peer on this host may send to 127.0.0.1 in its place
	if n.localhost {
		host = "127.0.0.1"
	}
	base := basePort(n.domain)
	for n.idx = 0; n.idx <= lastIndex; n.idx++ {
		meta, err := listenUDP(fmt.Sprintf("%s:%d", host, base+10+2*n.idx), false)
		if err == nil {
			var user *net.UDPConn
			if user, err = listenUDP(fmt.Sprintf("%s:%d", host, base+11+2*n.idx), false); err == nil {
				n.meta, n.user = meta, user
				n.out, err = newRawSender(user)
				return err
			}
			err = errors.Join(err, meta.Close())
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("listen for domain %d: %w", n.domain, err)
		}
	}
	return fmt.Errorf("domain %d has %d participants on this host and no port left: end some, or take another domain", n.domain, lastIndex+1)
}

func listenUDP(addr string, shared bool) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) { err = socketOptions(fd, shared) }); cerr != nil {
			return cerr
		}
		return err
	}}
	pc, err := lc.ListenPacket(context.Background(), "udp4", addr)
	if err != nil {
		return nil, err
	}
	return pc.(*net.UDPConn), nil
}

// rescan looks which interfaces there are, joins the group on new ones, and forgets those that went. What failed is tried
// again.
func (n *network) rescan() bool {
	now, err := n.interfaces()
	if err != nil {
		n.log.Warn("rtps: which network interfaces there are cannot be told, those of before are taken", "error", err)
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	changed := !slices.EqualFunc(now, n.ifaces, func(a, b iface) bool {
		return a.index == b.index && slices.Equal(a.prefix, b.prefix)
	})
	n.ifaces = now
	_ = n.regroup() // it has been logged
	return changed
}

// regroup makes the sockets of the group fit the interfaces. An interface whose address changed needs a new one: what is
// sent from an address that is no more goes nowhere.
func (n *network) regroup() error {
	if n.hear == nil {
		return nil
	}
	for i, s := range n.speak {
		at := slices.IndexFunc(n.ifaces, func(f iface) bool { return f.index == i })
		if at < 0 {
			delete(n.joined, i)
		}
		if at < 0 || !slices.ContainsFunc(n.ifaces[at].prefix, func(p netip.Prefix) bool { return p.Addr() == s.from }) {
			_ = s.conn.Close() // nothing more goes that way
			delete(n.speak, i)
		}
	}
	var errs []error
	for _, f := range n.ifaces {
		if !n.joined[f.index] {
			err := joinGroup(n.hear, f.index)
			n.joined[f.index] = err == nil || errors.Is(err, syscall.EADDRINUSE) // we were in it before
			if !n.joined[f.index] {
				errs = append(errs, fmt.Errorf("hear by %s: %w", f.name, err))
			}
		}
		if _, ok := n.speak[f.index]; !ok {
			from := f.prefix[0].Addr()
			c, err := speakGroup(f.index, from)
			if err != nil {
				errs = append(errs, fmt.Errorf("speak by %s: %w", f.name, err))
				continue
			}
			n.speak[f.index] = speaker{c, from}
		}
	}
	err := errors.Join(errs...)
	words := ""
	if err != nil {
		words = err.Error()
	}
	if words != n.denied && words != "" {
		n.log.Warn("rtps: multicast fails on an interface: participants there are found only as static peers", "error", err)
	}
	n.denied = words
	return err
}

// interfaces are those that are up, have an IPv4 address, and were asked for. The loopback is one only when alone.
func (n *network) interfaces() ([]iface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var out, loop []iface
	for _, f := range all {
		if f.Flags&net.FlagUp == 0 {
			continue
		}
		i := iface{index: f.Index, name: f.Name}
		if i.prefix, err = ipv4(&f); errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			return nil, err // any other error is an interface that has just gone
		}
		switch {
		case len(i.prefix) == 0:
		case f.Flags&net.FlagLoopback != 0:
			loop = append(loop, i)
		case !n.localhost && n.wanted(&i):
			out = append(out, i)
		}
	}
	if len(out) == 0 && (n.localhost || len(n.names) == 0 || slices.ContainsFunc(loop, func(f iface) bool { return n.wanted(&f) })) {
		return loop, nil
	}
	return out, nil
}

// wanted also narrows the interface to the addresses asked for.
func (n *network) wanted(f *iface) bool {
	if len(n.names) == 0 || slices.Contains(n.names, f.name) {
		return true
	}
	var only []netip.Prefix
	for _, p := range f.prefix {
		if slices.Contains(n.names, p.Addr().String()) {
			only = append(only, p)
		}
	}
	if len(only) > 0 {
		f.prefix = only
	}
	return len(only) > 0
}

func ipv4(f *net.Interface) ([]netip.Prefix, error) {
	addrs, err := f.Addrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Prefix
	for _, a := range addrs {
		ipn, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if ip, ok := netip.AddrFromSlice(ipn.IP.To4()); ok {
			ones, _ := ipn.Mask.Size()
			out = append(out, netip.PrefixFrom(ip, ones))
		}
	}
	return out, nil
}

func (n *network) locators() (meta, user []netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	base := basePort(n.domain) + 2*n.idx
	for _, f := range n.ifaces {
		for _, p := range f.prefix {
			meta = append(meta, netip.AddrPortFrom(p.Addr(), uint16(base+10)))
			user = append(user, netip.AddrPortFrom(p.Addr(), uint16(base+11)))
		}
	}
	return meta, user
}

func (n *network) local(a netip.Addr) (ours, linked bool) {
	if a.IsLoopback() {
		return true, true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.ifaces {
		for _, p := range f.prefix {
			ours = ours || p.Addr() == a
			linked = linked || p.Contains(a)
		}
	}
	return ours, linked
}

func (n *network) index() int { return n.idx }

// send does not tell of failures: UDP may lose anything anyway, and what matters is asked for again.
func (n *network) send(b []byte, to netip.AddrPort) {
	n.out.send(b, to)
}

func (n *network) sendTrain(b []byte, size int, to netip.AddrPort) bool {
	return n.out.sendTrain(b, size, to)
}

func (n *network) multicast(b []byte) {
	to := netip.AddrPortFrom(multicastGroup, uint16(basePort(n.domain)))
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.speak {
		_, _ = s.conn.WriteToUDPAddrPort(b, to) // as send
	}
}

func (n *network) listen(f func(b []byte, from netip.AddrPort) (ahead int)) {
	for _, c := range []*net.UDPConn{n.meta, n.user, n.hear} {
		if c == nil {
			continue
		}
		n.wg.Go(func() { readAll(c, f) })
	}
}

// nap is the system's sleep: Go's is no finer than a millisecond when nothing else runs, and a picture takes no longer.
func (n *network) nap(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // cut short is fine
}

func (n *network) close() {
	for _, c := range []*net.UDPConn{n.meta, n.user, n.hear} {
		if c != nil {
			_ = c.Close() // nothing to be lost
		}
	}
	n.mu.Lock()
	for _, s := range n.speak {
		_ = s.conn.Close() // nothing to be lost
	}
	clear(n.speak)
	n.mu.Unlock()
	n.wg.Wait()
}
