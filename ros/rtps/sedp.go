package rtps

import (
	"slices"
	"time"
)

// announceEndpoint writes the announcement of one of our endpoints, and gives its number.
func (p *Participant) announceEndpoint(by *Writer, g GUID, topic, typ string, q *QoS, userData []byte) int64 {
	l := newPlist()
	l.raw(pidEndpointGUID, g[:])
	pg := p.GUID()
	l.raw(pidParticipantGUID, pg[:])
	l.text(pidTopic, topic)
	l.text(pidType, typ)
	l.raw(pidProtocol, []byte{2, 2})
	l.raw(pidVendor, []byte{0, 0})
	l.raw(pidKeyHash, g[:])
	reliability, durability := uint32(1), uint32(0)
	if q.Reliable {
		reliability = 2
	}
	if q.TransientLocal {
		durability = 1
	}
	l.words(pidReliability, reliability, 0, 0x19999999) // blocks for at most 100 ms, which is the default
	l.words(pidDurability, durability)
	if q.KeepAll {
		l.words(pidHistory, 1, 0)
	} else {
		l.words(pidHistory, 0, uint32(max(q.Depth, 1)))
	}
	lease := durationToWire(q.Lease)
	l.words(pidLiveliness, 0, lease.sec, lease.frac)
	if q.Deadline > 0 {
		l.duration(pidDeadline, q.Deadline)
	}
	if q.Lifespan > 0 && by == p.pub {
		l.duration(pidLifespan, q.Lifespan)
	}
	if len(userData) > 0 {
		l.userData(userData)
	}
	// No locators: the participant's count, and follow when they change.
	by.mu.Lock()
	if by.closed {
		by.mu.Unlock()
		return 0
	}
	c := by.take(l.done())
	by.commit(c)
	return c.seq
}

// withdraw disposes of the announcement of one of our endpoints.
func (p *Participant) withdraw(by *Writer, seq int64, g GUID) {
	l := newPlist()
	l.raw(pidEndpointGUID, g[:])
	by.withdraw(seq, g, l.done())
}

// onSEDP hears of an endpoint of another, or of its end.
func (p *Participant) onSEDP(s *Sample, writer bool) {
	e, ok := parseSEDP(s.Payload)
	if s.gone && s.keyed {
		e.GUID, ok = s.key, true
	}
	if !ok || e.GUID.Prefix() != s.Writer.Prefix() { // nobody speaks for another
		p.count.malformed.Add(1)
		return
	}
	e.Writer = writer
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.peers[e.GUID.Prefix()]
	if q == nil || p.closed {
		return
	}
	old := q.endpoints[e.GUID]
	switch {
	case s.gone:
		if old != nil {
			p.dropEndpoint(q, old)
		}
	case e.Topic == "" || e.Type == "":
		p.count.malformed.Add(1)
	case old == nil && len(q.endpoints) >= p.limits.Endpoints, !p.affords(q, old, e):
		p.refuse(q.info.Prefix, "an endpoint")
	default:
		if old != nil && !old.same(e) {
			p.dropEndpoint(q, old)
		}
		p.learnEndpoint(q, e)
	}
}

// same says that nothing changed that matching depends on.
func (e *remote) same(o *remote) bool {
	return e.Topic == o.Topic && e.Type == o.Type && e.QoS == o.QoS && e.Writer == o.Writer &&
		e.exclusive == o.exclusive && e.xcdr1 == o.xcdr1 && slices.Equal(e.partitions, o.partitions)
}

func (p *Participant) learnEndpoint(q *peer, e *remote) {
	if old := q.endpoints[e.GUID]; old != nil {
		e.own = old.own
	} else {
		p.emit(Event{Kind: EndpointFound, Peer: p.view(q), Endpoint: e.Endpoint})
	}
	p.weigh(q, e.weight()-q.endpoints[e.GUID].weight())
	q.endpoints[e.GUID] = e
	if e.Writer {
		for _, r := range p.readers {
			p.matchReader(r, q, e)
		}
		return
	}
	for _, w := range p.writers {
		p.matchWriter(w, q, e)
	}
}

// dropEndpoint forgets an endpoint of another. The lock is held.
func (p *Participant) dropEndpoint(q *peer, e *remote) {
	p.weigh(q, -q.endpoints[e.GUID].weight())
	delete(q.endpoints, e.GUID)
	for _, w := range p.writers {
		if w.topic == e.Topic && w.unmatch(e.GUID) {
			p.emit(Event{Kind: Unmatched, Peer: p.view(q), Endpoint: e.Endpoint, Ours: w.GUID()})
		}
	}
	for _, r := range p.readers {
		if r.topic == e.Topic && r.unmatch(e.GUID) {
			p.emit(Event{Kind: Unmatched, Peer: p.view(q), Endpoint: e.Endpoint, Ours: r.GUID()})
		}
	}
	delete(p.sources, e.GUID)
	for k := range p.mismatches {
		if k[1] == e.GUID {
			delete(p.mismatches, k)
		}
	}
	p.emit(Event{Kind: EndpointLost, Peer: p.view(q), Endpoint: e.Endpoint})
}

// What the announcements of endpoints may take, of one participant and of all: an ordinary one has 500 bytes, a hostile one
// fills every field that has no bound in ROS.
const (
	mostWeight    = 4 << 20
	mostWeightAll = 64 << 20
)

// weight is about how many bytes the endpoint takes.
func (e *remote) weight() int {
	if e == nil {
		return 0
	}
	n := 256 + len(e.Topic) + len(e.Type) + len(e.UserData) + 32*len(e.locators)
	for _, x := range e.partitions {
		n += 16 + len(x)
	}
	return n
}

// affords says whether there is room for an endpoint in the place of old, which may be nil.
func (p *Participant) affords(q *peer, old, e *remote) bool {
	more := e.weight() - old.weight()
	return more <= 0 || q.weight+more <= mostWeight && p.weight+more <= mostWeightAll
}

func (p *Participant) weigh(q *peer, more int) {
	q.weight += more
	p.weight += more
}

// refuse notes that somebody is not taken in, and says so at most once a minute. The lock is held.
func (p *Participant) refuse(who GUIDPrefix, what string) {
	p.count.refused.Add(1)
	if now := p.now(); now >= p.refuseAt {
		p.refuseAt = now + int64(time.Minute)
		p.log.Warn("rtps: the domain is more crowded than this participant may know of, and somebody is left out", "what", what, "of", who,
			"peers", len(p.peers), "limit", p.limits.Peers, "endpoints of one", p.limits.Endpoints)
	}
}

// parseSEDP reads an endpoint's announcement, with the specification's defaults for what it does not say.
func parseSEDP(body []byte) (*remote, bool) {
	e := &remote{xcdr1: true, Endpoint: Endpoint{QoS: QoS{Depth: 1}}}
	reliable := -1
	ok := walkPayload(body, func(o order, id uint16, v []byte) {
		if id == pidReliability && len(v) >= 4 {
			reliable = int(o.u32(v))
		}
		e.parameter(o, id, v)
	})
	if e.GUID == (GUID{}) {
		return e, false
	}
	kind := e.GUID[15] & 0x0f
	e.QoS.Reliable = reliable >= 2 || reliable < 0 && (kind == 2 || kind == 3) // a writer's default; a reader's is not
	return e, ok
}

func (e *remote) parameter(o order, id uint16, v []byte) {
	duration := func(d *time.Duration, v []byte) {
		if t, ok := wireToDuration(o, v); ok {
			*d = t
		}
	}
	switch id {
	case pidEndpointGUID, pidKeyHash:
		if len(v) >= 16 && (id == pidEndpointGUID || e.GUID == GUID{}) {
			e.GUID = GUID(v[:16])
		}
	case pidTopic:
		e.Topic = readText(o, v)
	case pidType:
		e.Type = readText(o, v)
	case pidDurability:
		e.QoS.TransientLocal = len(v) >= 4 && o.u32(v) >= 1 && o.u32(v) <= 3
	case pidHistory:
		if len(v) >= 8 {
			e.QoS.KeepAll = o.u32(v) == 1
			e.QoS.Depth = int(min(o.u32(v[4:]), 1<<30))
		}
	case pidDeadline:
		duration(&e.QoS.Deadline, v)
	case pidLifespan:
		duration(&e.QoS.Lifespan, v)
	case pidLiveliness:
		if len(v) >= 12 {
			duration(&e.QoS.Lease, v[4:])
		}
	case pidUserData:
		e.UserData = readOctets(o, v)
	case pidOwnership:
		e.exclusive = len(v) >= 4 && o.u32(v) == 1
	case pidPartition:
		e.partitions = readPartitions(o, v)
	case pidRepresentation:
		e.xcdr1 = readRepresentations(o, v)
	case pidUnicast:
		if a, ok := readLocator(o, v); ok && len(e.locators) < mostLocators {
			e.locators = append(e.locators, a)
		}
	}
}

// readPartitions takes at most 16.
func readPartitions(o order, v []byte) (out []string) {
	if len(v) < 4 {
		return nil
	}
	n := o.u32(v)
	v = v[4:]
	for range min(n, 16) {
		if len(v) < 4 {
			return out
		}
		size := o.u32(v)
		if uint64(size) > uint64(len(v)-4) {
			return out
		}
		out = append(out, readText(o, v))
		v = v[4:][min((uint64(size)+3)&^3, uint64(len(v)-4)):]
	}
	return out
}

// readRepresentations says whether XCDR1, number 0, is among those listed; an empty list is XCDR1.
func readRepresentations(o order, v []byte) bool {
	if len(v) < 4 {
		return true
	}
	n := o.u32(v)
	for i := range min(n, 16) {
		at := 4 + 2*int(i)
		if at+2 > len(v) {
			break
		}
		if o.u16(v[at:]) == 0 {
			return true
		}
	}
	return n == 0
}
