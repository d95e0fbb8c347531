package rtps

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// hub is a network without sockets, which loses, doubles and disorders datagrams as told, by a seed.
type hub struct {
	loss, twice, late float64 // shares of datagrams
	room              int     // bytes that one receiver's buffer holds; 0 is 4 MiB

	mu    sync.Mutex
	rng   *rand.Rand
	next  byte
	ports map[netip.Addr]*port
	lost  int
	sent  int
}

func newHub(seed uint64) *hub {
	return &hub{rng: rand.New(rand.NewPCG(seed, 1)), ports: map[netip.Addr]*port{}}
}

// port is a participant's place in a hub: a host of its own.
type port struct {
	h    *hub
	addr netip.Addr
	mu   sync.Mutex
	held int
	in   chan packet
	done chan struct{}
	wg   sync.WaitGroup
	dead bool // as after SIGKILL: nothing leaves any more
}

type packet struct {
	b    []byte
	from netip.AddrPort
}

func (h *hub) lose(share float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loss = share
}

func (h *hub) port() *port {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	p := &port{h: h, addr: netip.AddrFrom4([4]byte{10, 0, 0, h.next}), in: make(chan packet, 1<<16), done: make(chan struct{})}
	h.ports[p.addr] = p
	return p
}

func (h *hub) open(t testing.TB, c Config) (*Participant, *port) {
	t.Helper()
	pt := h.port()
	p, err := open(c, pt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, pt
}

func (p *port) send(b []byte, to netip.AddrPort) {
	h := p.h
	h.mu.Lock()
	d, from := h.ports[to.Addr()], p.addr
	h.sent++
	if d == nil || p.dead || h.rng.Float64() < h.loss {
		h.lost++
		h.mu.Unlock()
		return
	}
	n := 1
	if h.rng.Float64() < h.twice {
		n = 2
	}
	delay := time.Duration(0)
	if h.rng.Float64() < h.late {
		delay = time.Duration(h.rng.IntN(3000)) * time.Microsecond
	}
	h.mu.Unlock()
	for range n {
		pk := packet{append([]byte(nil), b...), netip.AddrPortFrom(from, 7411)}
		if delay > 0 {
			time.AfterFunc(delay, func() { d.arrive(pk) })
		} else {
			d.arrive(pk)
		}
	}
}

func (p *port) arrive(pk packet) {
	room := p.h.room
	if room == 0 {
		room = 4 << 20
	}
	p.mu.Lock()
	fits := p.held+len(pk.b) <= room
	if fits {
		p.held += len(pk.b)
	}
	p.mu.Unlock()
	if !fits {
		return
	}
	select {
	case p.in <- pk:
	default:
	}
}

func (p *port) multicast(b []byte) {
	p.h.mu.Lock()
	all := make([]netip.Addr, 0, len(p.h.ports))
	for a := range p.h.ports {
		if a != p.addr {
			all = append(all, a)
		}
	}
	p.h.mu.Unlock()
	for _, a := range all {
		p.send(b, netip.AddrPortFrom(a, 7400))
	}
}

func (p *port) locators() (meta, user []netip.AddrPort) {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	return []netip.AddrPort{netip.AddrPortFrom(p.addr, 7410)}, []netip.AddrPort{netip.AddrPortFrom(p.addr, 7411)}
}

func (p *port) local(a netip.Addr) (ours, linked bool) {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	return a == p.addr, true
}

func (p *port) rescan() bool { return false }
func (p *port) index() int   { return 0 }

func (p *port) nap(d time.Duration) { time.Sleep(d) }

func (p *port) listen(f func(b []byte, from netip.AddrPort) int) {
	p.wg.Go(func() {
		for {
			select {
			case pk := <-p.in:
				p.mu.Lock()
				p.held -= len(pk.b)
				p.mu.Unlock()
				f(pk.b, pk.from)
			case <-p.done:
				return
			}
		}
	})
}

func (p *port) close() {
	close(p.done)
	p.wg.Wait()
	p.h.mu.Lock()
	delete(p.h.ports, p.addr)
	p.h.mu.Unlock()
}

// kill makes the participant silent, as SIGKILL does.
func (p *port) kill() {
	p.h.mu.Lock()
	p.dead = true
	p.h.mu.Unlock()
}

// move gives it another address, as a new DHCP lease does.
func (p *port) move() {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	delete(p.h.ports, p.addr)
	p.h.next++
	p.addr = netip.AddrFrom4([4]byte{10, 0, 0, p.h.next})
	p.h.ports[p.addr] = p
}

func (p *port) sendTrain([]byte, int, netip.AddrPort) bool { return false }
