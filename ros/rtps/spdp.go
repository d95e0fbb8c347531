package rtps

import (
	"net/netip"
	"slices"
	"time"
)

// The endpoints of discovery that we have, as PID_BUILTIN_ENDPOINT_SET counts them: participant announcer and detector,
// publications' and subscriptions' announcers and detectors, participant messages' writer and reader.
const builtinSet = 0x3f | 1<<10 | 1<<11

const quickAnnounces = 8 // at the start, a fifth of a second apart: datagrams get lost

// announcement is the datagram that tells of us, for everybody or for one.
func (p *Participant) announcement(to *GUIDPrefix) []byte {
	l := newPlist()
	l.raw(pidProtocol, []byte{2, 2})
	l.raw(pidVendor, []byte{0, 0})
	g := p.GUID()
	l.raw(pidParticipantGUID, g[:])
	l.words(pidBuiltinEndpoints, builtinSet)
	l.duration(pidLease, p.cfg.Lease)
	l.words(pidDomain, uint32(p.cfg.Domain))
	meta, user := p.net.locators()
	for _, a := range meta[:min(len(meta), mostLocators)] {
		l.locator(pidMetaUnicast, a)
	}
	for _, a := range user[:min(len(user), mostLocators)] {
		l.locator(pidDefaultUnicast, a)
	}
	// No multicast locators: without, both vendors send to us alone, which is what a switch and a Wi-Fi do well.
	if p.cfg.Name != "" {
		l.text(pidEntityName, p.cfg.Name)
	}
	if len(p.cfg.UserData) > 0 {
		l.userData(p.cfg.UserData)
	}
	return p.discoveryDatagram(to, &change{payload: l.done()})
}

func (p *Participant) discoveryDatagram(to *GUIDPrefix, c *change) []byte {
	p.mu.Lock()
	p.spdpSeq++
	c.seq = p.spdpSeq
	p.mu.Unlock()
	var m message
	m.start(p.prefix)
	if to != nil {
		m.dest(*to)
	}
	m.stamp(toWire(time.Now()))
	m.data(entitySPDPReader, entitySPDPWriter, c)
	return m.b
}

// tickAnnounce tells everybody of us when it is time.
func (p *Participant) tickAnnounce(now int64) (next int64) {
	if now < p.announceAt {
		return p.announceAt
	}
	p.announced++
	wait := p.cfg.Announce
	if p.announced <= quickAnnounces {
		wait = min(wait, time.Second/5)
	}
	p.announceAt = now + int64(wait)
	if p.announced%8 == 0 && p.net.rescan() {
		p.log.Info("rtps: the network interfaces changed")
	}
	if !p.leaving.Load() {
		p.broadcast(p.announcement(nil))
	}
	return p.announceAt
}

func (p *Participant) broadcast(b []byte) {
	if !p.cfg.NoMulticast && p.wire(b) {
		p.net.multicast(b)
	}
	for _, a := range p.static.targets(p) {
		p.send(b, a)
	}
	for _, a := range p.metaAddrs() {
		p.send(b, a) // multicast may not reach it: Wi-Fi, or a peer that knows us by address alone
	}
}

func (p *Participant) wire(b []byte) bool {
	return p.cfg.Wire == nil || p.cfg.Wire(Datagram{Out: true, Addr: netip.AddrPortFrom(multicastGroup, uint16(basePort(p.cfg.Domain))), Data: b})
}

func (p *Participant) metaAddrs() []netip.AddrPort {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make([]netip.AddrPort, 0, len(p.peers))
	for _, q := range p.peers {
		if a := q.meta.load(); a.IsValid() {
			out = append(out, a)
		}
	}
	return out
}

// departedFor is how long the announcements of a participant that said goodbye are not believed.
const departedFor = 2 * time.Second

// mostLocators bounds the addresses of one participant or endpoint.
const mostLocators = 16

// spdpData is what a participant tells of itself.
type spdpData struct {
	info       Peer
	meta, user []netip.AddrPort
	builtin    uint32
	domain     int
}

func parseSPDP(body []byte) (d spdpData, ok bool) {
	d.domain = -1
	d.builtin = 0x3f
	d.info.Lease = 100 * time.Second // the specification's, where it says none
	ok = walkPayload(body, func(o order, id uint16, v []byte) {
		switch id {
		case pidMetaUnicast, pidDefaultUnicast:
			list := &d.meta
			if id == pidDefaultUnicast {
				list = &d.user
			}
			if a, ok := readLocator(o, v); ok && len(*list) < mostLocators && !slices.Contains(*list, a) {
				*list = append(*list, a)
			}
		case pidLease:
			if t, ok := wireToDuration(o, v); ok {
				d.info.Lease = t
			}
		case pidVendor:
			copy(d.info.Vendor[:], v)
		case pidUserData:
			d.info.UserData = readOctets(o, v)
		case pidEntityName:
			d.info.Name = readText(o, v)
		case pidBuiltinEndpoints:
			if len(v) >= 4 {
				d.builtin = o.u32(v)
			}
		case pidDomain:
			if len(v) >= 4 {
				d.domain = int(o.u32(v))
			}
		}
	})
	return d, ok && len(d.meta) > 0
}

// onSPDP hears a participant's announcement, or its goodbye.
func (p *Participant) onSPDP(prefix GUIDPrefix, body []byte, gone bool, from netip.AddrPort) {
	if gone {
		p.mu.Lock()
		p.departed[p.departures%len(p.departed)] = departure{prefix, p.now()}
		p.departures++
		if q := p.peers[prefix]; q != nil {
			p.dropPeer(q)
		}
		p.mu.Unlock()
		return
	}
	d, ok := parseSPDP(body)
	if !ok {
		p.count.malformed.Add(1)
		return
	}
	if d.domain >= 0 && d.domain != p.cfg.Domain {
		return
	}
	if len(d.user) == 0 {
		d.user = d.meta
	}
	d.info.Prefix = prefix
	d.info.Addrs = d.user
	d.info.Lease = min(max(d.info.Lease, 0), 24*time.Hour)
	p.mu.Lock()
	q, found := p.learnPeer(&d, from)
	p.mu.Unlock()
	if found && !p.leaving.Load() {
		p.send(p.announcement(&prefix), q.meta.load()) // at once: its own next announcement may be 30 s away
	}
}

// learnPeer notes what a participant tells. The lock is held.
func (p *Participant) learnPeer(d *spdpData, from netip.AddrPort) (q *peer, found bool) {
	if p.closed {
		return nil, false
	}
	now := p.now()
	for i := range p.departed {
		if g := &p.departed[i]; g.at != 0 && g.prefix == d.info.Prefix && now-g.at < int64(departedFor) {
			return nil, false
		}
	}
	q = p.peers[d.info.Prefix]
	if q != nil {
		q.seen.Store(now)
		q.info = d.info
		p.settle(q, d, from)
		return q, false
	}
	for _, old := range p.peers {
		if slices.Equal(old.locators, d.meta) { // two processes cannot have the same ports: the old one is dead
			p.dropPeer(old)
		}
	}
	if len(p.peers) >= p.limits.Peers {
		p.refuse(d.info.Prefix, "a participant")
		return nil, false
	}
	q = &peer{info: d.info, meta: &dest{}, user: &dest{}, endpoints: map[GUID]*remote{}, builtin: d.builtin}
	q.seen.Store(now)
	p.settle(q, d, from)
	p.peers[d.info.Prefix] = q
	p.emit(Event{Kind: PeerFound, Peer: p.view(q)})
	p.matchBuiltin(q)
	q.greetAt = now + int64(greetAgain)
	p.alarm.by(q.greetAt)
	return q, true
}

func (p *Participant) settle(q *peer, d *spdpData, from netip.AddrPort) {
	q.locators = d.meta
	q.meta.choose(p, d.meta, from.Addr())
	q.user.choose(p, d.user, from.Addr())
}

// matchBuiltin joins our endpoints of discovery with the other's.
func (p *Participant) matchBuiltin(q *peer) {
	prefix := q.info.Prefix
	pair := func(w *Writer, reader EntityID, writerBit, readerBit int) {
		qos := QoS{Reliable: true, TransientLocal: true}
		if q.builtin&(1<<readerBit) != 0 {
			g := prefix.GUID(readerOf(w.id))
			w.match(&remote{Endpoint: Endpoint{GUID: g, QoS: qos}}, q.meta)
		}
		if q.builtin&(1<<writerBit) != 0 {
			g := prefix.GUID(writerOf(reader))
			r := p.readers[reader]
			r.match(q, &remote{Endpoint: Endpoint{GUID: g, Writer: true, QoS: qos}}, q.meta)
			p.link(g, r)
		}
	}
	pair(p.pub, entityPubReader, 2, 3)
	pair(p.sub, entitySubReader, 4, 5)
	pair(p.live, entityLiveReader, 10, 11)
}

// Answers to a newcomer: they get lost as anything does, and then it would not know us until our next announcement.
const (
	greetAgain = 100 * time.Millisecond // after the first; the time doubles
	mostGreets = 6
)

// tickGreet announces us again to each newcomer that has not shown that it knows us.
func (p *Participant) tickGreet(now int64) (next int64) {
	next = never
	type greeting struct {
		prefix GUIDPrefix
		to     netip.AddrPort
	}
	var again []greeting
	p.mu.Lock()
	for _, q := range p.peers {
		switch {
		case q.greetAt == 0:
		case q.greeted >= mostGreets || p.pub.Synced(q.info.Prefix.GUID(entityPubReader)):
			q.greetAt = 0
		case now < q.greetAt:
			next = min(next, q.greetAt)
		default:
			q.greeted++
			q.greetAt = now + int64(greetAgain)<<q.greeted
			next = min(next, q.greetAt)
			again = append(again, greeting{q.info.Prefix, q.meta.load()})
		}
	}
	p.mu.Unlock()
	for _, g := range again {
		if !p.leaving.Load() {
			p.send(p.announcement(&g.prefix), g.to)
		}
	}
	return next
}

// tickLeases drops participants that gave no sign of life for as long as they said they would.
func (p *Participant) tickLeases(now int64) (next int64) {
	next = never
	var dead []*peer
	p.mu.RLock()
	for _, q := range p.peers {
		if q.info.Lease <= 0 {
			continue
		}
		if end := q.seen.Load() + int64(q.info.Lease); end <= now {
			dead = append(dead, q)
		} else {
			next = min(next, end)
		}
	}
	p.mu.RUnlock()
	if len(dead) == 0 {
		return next
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range dead {
		if p.peers[q.info.Prefix] == q && q.seen.Load()+int64(q.info.Lease) <= now {
			p.dropPeer(q)
		}
	}
	return next
}

// tickAssert tells that we live, by participant message, as often as the shortest lease of ours asks.
func (p *Participant) tickAssert(now int64) (next int64) {
	if now < p.assertAt {
		return p.assertAt
	}
	lease := p.cfg.Lease
	p.mu.RLock()
	for _, w := range p.writers {
		if w.qos.Lease > 0 {
			lease = min(lease, w.qos.Lease)
		}
	}
	p.mu.RUnlock()
	p.assertAt = now + max(int64(lease/3), int64(20*time.Millisecond))
	b := append([]byte{0, 1, 0, 0}, p.prefix[:]...)
	b = append(b, 0, 0, 0, 1) // automatic liveliness
	b = append(b, 1, 0, 0, 0, 0, 0, 0, 0)
	p.live.mu.Lock()
	if p.live.closed {
		p.live.mu.Unlock()
		return never
	}
	p.live.commit(p.live.take(b))
	return p.assertAt
}

// goodbye disposes of us with everybody, each endpoint and then the participant. Nobody is waited for.
func (p *Participant) goodbye() {
	p.mu.RLock()
	writers, readers := values(p.writers), values(p.readers)
	p.mu.RUnlock()
	for _, w := range writers {
		if w.announcedAs > 0 {
			p.withdraw(p.pub, w.announcedAs, w.GUID())
		}
	}
	for _, r := range readers {
		if r.announcedAs > 0 {
			p.withdraw(p.sub, r.announcedAs, r.GUID())
		}
	}
	l := newPlist()
	g := p.GUID()
	l.raw(pidParticipantGUID, g[:])
	p.broadcast(p.discoveryDatagram(nil, &change{dispose: true, key: g, payload: l.done()}))
}
