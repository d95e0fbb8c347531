package rtps

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// peer is another participant.
type peer struct {
	info       Peer         // but for Seen; under the participant's lock
	seen       atomic.Int64 // last sign of life
	meta, user *dest        // where its discovery and its samples go
	locators   []netip.AddrPort
	builtin    uint32
	endpoints  map[GUID]*remote
	weight     int          // of them, see remote.weight
	reassembly atomic.Int64 // bytes of its unfinished samples
	greeted    int          // announcements sent to it alone since it was found
	greetAt    int64        // when the next is due; 0 when it is known to know us
}

// remote is another participant's endpoint.
type remote struct {
	Endpoint
	exclusive  bool
	partitions []string
	xcdr1      bool // it speaks the representation that we do
	locators   []netip.AddrPort
	own        *dest
}

// dest is where datagrams for somebody go. The address changes when its owner announces another.
type dest struct {
	addr atomic.Pointer[netip.AddrPort]
	near atomic.Bool // on this host
}

func (d *dest) load() netip.AddrPort {
	if a := d.addr.Load(); a != nil {
		return *a
	}
	return netip.AddrPort{}
}

// Largest pieces of a sample: what fits the usual MTU, and what fits one datagram, for the loopback.
const (
	fragmentFar  = 1344
	fragmentNear = 60000
)

func (d *dest) fragment(c *Config) int {
	switch {
	case c.Fragment > 0:
		return c.Fragment
	case d.near.Load():
		return fragmentNear
	}
	return fragmentFar
}

// choose takes the one of somebody's addresses that is best reached: the loopback if it is on this host, then an address
// of this host, then the one that it spoke from, then one on a link of ours, then any.
func (d *dest) choose(p *Participant, addrs []netip.AddrPort, from netip.Addr) {
	here, _ := p.net.local(from)
	best, score := netip.AddrPort{}, 0
	near := false
	for _, a := range addrs {
		ours, linked := p.net.local(a.Addr())
		s := 1
		switch {
		case ours && !here, p.cfg.Localhost && !ours:
			continue // another host's loopback, or a bridge that has the same address on each
		case a.Addr().IsLoopback():
			s = 5
		case here && ours:
			s = 4
		case a.Addr() == from:
			s = 3
		case linked:
			s = 2
		}
		if s > score {
			best, score, near = a, s, here && ours
		}
	}
	if score == 0 {
		d.addr.Store(nil)
		return
	}
	if cur := d.addr.Load(); cur == nil || *cur != best {
		d.addr.Store(&best)
	}
	d.near.Store(near)
}

func (p *Participant) view(q *peer) Peer {
	v := q.info
	v.Addrs = slices.Clone(v.Addrs)
	v.Seen = p.born.Add(time.Duration(q.seen.Load()))
	return v
}

// Peers are the other participants that are known.
func (p *Participant) Peers() []Peer {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make([]Peer, 0, len(p.peers))
	for _, q := range p.peers {
		out = append(out, p.view(q))
	}
	return out
}

// Peer is one other participant.
func (p *Participant) Peer(prefix GUIDPrefix) (Peer, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	q := p.peers[prefix]
	if q == nil {
		return Peer{}, false
	}
	return p.view(q), true
}

// Endpoints are the readers and writers of all other participants.
func (p *Participant) Endpoints() []Endpoint {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var out []Endpoint
	for _, q := range p.peers {
		for _, e := range q.endpoints {
			out = append(out, e.Endpoint)
		}
	}
	return out
}

// dropPeer forgets a participant and all that it has. The lock is held.
func (p *Participant) dropPeer(q *peer) {
	prefix := q.info.Prefix
	delete(p.peers, prefix)
	for _, e := range q.endpoints {
		p.dropEndpoint(q, e)
	}
	for _, w := range []*Writer{p.pub, p.sub, p.live} {
		w.unmatch(prefix.GUID(readerOf(w.id)))
	}
	for _, id := range []EntityID{entityPubReader, entitySubReader, entityLiveReader} {
		g := prefix.GUID(writerOf(id))
		p.readers[id].unmatch(g)
		delete(p.sources, g)
	}
	p.emit(Event{Kind: PeerLost, Peer: p.view(q)})
}

func readerOf(w EntityID) EntityID { w[3] = 0xc7; return w }
func writerOf(r EntityID) EntityID { r[3] = 0xc2; return r }
