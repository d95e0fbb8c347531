package rtps

import "net/netip"

// receiver is what one goroutine keeps while it reads a datagram.
type receiver struct {
	p       *Participant
	from    netip.AddrPort
	src     GUIDPrefix
	forUs   bool
	stamp   wireTime
	out     message // answers are made here
	ahead   int     // bytes of a sample that are soon to come
	matched [1]*Reader
}

// receive reads one datagram from a socket. Its bytes are the caller's again afterwards. It says how many bytes of the same
// sample are soon to come.
func (p *Participant) receive(b []byte, from netip.AddrPort) (ahead int) {
	p.count.in.Add(1)
	p.count.inBytes.Add(uint64(len(b)))
	if p.cfg.Wire != nil && !p.cfg.Wire(Datagram{Addr: from, Data: b}) {
		return 0
	}
	x := p.receivers.Get().(*receiver)
	x.from, x.stamp, x.forUs, x.ahead = from, wireTime{}, true, 0
	if !x.datagram(b) {
		p.count.malformed.Add(1)
	}
	ahead = x.ahead
	p.receivers.Put(x)
	return ahead
}

// datagram reads the submessages of a datagram, as far as they can be read.
func (x *receiver) datagram(b []byte) bool {
	if len(b) < headerLen || string(b[:4]) != "RTPS" || b[4] != 2 {
		return false
	}
	x.src = GUIDPrefix(b[8:20])
	if x.src == x.p.prefix {
		return true // our own multicast
	}
	x.p.signOfLife(x.src)
	for b = b[headerLen:]; len(b) >= 4; {
		id, flags := b[0], b[1]
		o := order(flags&flagLittle != 0)
		n := int(o.u16(b[2:]))
		b = b[4:]
		if n == 0 && id != subPad && id != subInfoTime {
			n = len(b) // to the end
		}
		if n > len(b) {
			return false
		}
		if !x.submessage(id, flags, o, b[:n]) {
			return false
		}
		b = b[n:]
	}
	return len(b) == 0
}

func (x *receiver) submessage(id, flags byte, o order, s []byte) bool {
	switch id {
	case subInfoTime:
		x.stamp = wireTime{}
		if flags&flagInvalid == 0 {
			if len(s) < 8 {
				return false
			}
			x.stamp = wireTime{o.u32(s), o.u32(s[4:])}
		}
		return true
	case subInfoSource:
		if len(s) < 20 {
			return false
		}
		x.src = GUIDPrefix(s[8:20])
		return true
	case subInfoDest:
		if len(s) < 12 {
			return false
		}
		d := GUIDPrefix(s[:12])
		x.forUs = d == x.p.prefix || d == GUIDPrefix{}
		return true
	}
	if !x.forUs || x.src == x.p.prefix {
		return true
	}
	switch id {
	case subData:
		return x.data(flags, o, s)
	case subDataFrag:
		return x.dataFrag(flags, o, s)
	case subHeartbeat:
		return x.heartbeat(flags, o, s)
	case subHeartbeatFrag:
		return x.heartbeatFrag(o, s)
	case subGap:
		return x.gap(o, s)
	case subAckNack:
		return x.ackNack(o, s)
	case subNackFrag:
		return x.nackFrag(o, s)
	}
	return true // some other submessage: none of ours
}

func (p *Participant) signOfLife(prefix GUIDPrefix) {
	p.mu.RLock()
	q := p.peers[prefix]
	p.mu.RUnlock()
	if q != nil {
		q.seen.Store(p.now())
	}
}

// readersFor are the readers that a submessage is for: the one it names, or all that are matched with its writer.
func (x *receiver) readersFor(reader EntityID, writer GUID) []*Reader {
	p := x.p
	p.mu.RLock()
	defer p.mu.RUnlock()
	if reader != (EntityID{}) {
		if x.matched[0] = p.readers[reader]; x.matched[0] == nil {
			return nil
		}
		return x.matched[:]
	}
	return p.sources[writer] // is replaced when it changes, and never written
}

func (x *receiver) writerFor(id EntityID) *Writer {
	x.p.mu.RLock()
	defer x.p.mu.RUnlock()
	return x.p.writers[id]
}

// incoming is a sample, or a piece of one, as it lies in the datagram.
type incoming struct {
	writer  GUID
	seq     int64
	body    []byte
	stamp   wireTime
	related bool
	ident   SampleIdentity
	gone    bool // disposed of or unregistered
	keyed   bool
	key     GUID

	first uint32 // fragment's number, from 1
	size  int    // of a fragment
	total int    // of the sample
}

// inline reads inline QoS; n is how long it is, -1 when malformed.
func (in *incoming) inline(o order, b []byte) (n int) {
	for range 256 {
		if n+4 > len(b) {
			return -1
		}
		id, size := o.u16(b[n:]), int(o.u16(b[n+2:]))
		n += 4
		if id == pidSentinel {
			return n
		}
		if n+size > len(b) {
			return -1
		}
		v := b[n : n+size]
		n += size
		switch {
		case (id == pidRelated || id == pidRelatedEprosima) && size >= 24:
			in.related = true
			in.ident = SampleIdentity{GUID(v[:16]), o.seq(v[16:])}
		case id == pidStatusInfo && size >= 4:
			in.gone = v[3]&(statusDisposed|statusUnregistered) != 0
		case id == pidKeyHash && size >= 16:
			in.keyed, in.key = true, GUID(v[:16])
		}
	}
	return -1
}

// body reads what DATA and DATA_FRAG have in common.
func (x *receiver) body(in *incoming, flags byte, o order, s []byte, fixed int) (reader EntityID, ok bool) {
	if len(s) < fixed {
		return reader, false
	}
	reader = EntityID(s[4:8])
	in.writer = x.src.GUID(EntityID(s[8:12]))
	in.seq = o.seq(s[12:])
	in.stamp = x.stamp
	at := 4 + int(o.u16(s[2:]))
	if at < fixed || at > len(s) || in.seq < 1 {
		return reader, false
	}
	if flags&flagInline != 0 {
		n := in.inline(o, s[at:])
		if n < 0 {
			return reader, false
		}
		at += n
	}
	in.body = s[at:]
	return reader, true
}

func (x *receiver) data(flags byte, o order, s []byte) bool {
	var in incoming
	reader, ok := x.body(&in, flags, o, s, 20)
	if !ok {
		return false
	}
	in.total = len(in.body)
	if in.writer.Entity() == entitySPDPWriter {
		x.p.onSPDP(x.src, in.body, in.gone, x.from)
		return true
	}
	if flags&(flagPayload|flagKey) == 0 {
		in.body, in.total = nil, 0
	}
	for _, r := range x.readersFor(reader, in.writer) {
		r.onData(&in, x)
	}
	return true
}

func (x *receiver) dataFrag(flags byte, o order, s []byte) bool {
	var in incoming
	reader, ok := x.body(&in, flags, o, s, 32)
	if !ok {
		return false
	}
	in.first = o.u32(s[20:])
	in.size = int(o.u16(s[26:]))
	total := o.u32(s[28:])
	if in.first == 0 || in.size == 0 || total == 0 || int64(total) > int64(x.p.limits.Sample) {
		return false
	}
	in.total = int(total)
	for _, r := range x.readersFor(reader, in.writer) {
		r.onFragment(&in, x)
	}
	return true
}

func (x *receiver) heartbeat(flags byte, o order, s []byte) bool {
	if len(s) < 28 {
		return false
	}
	writer := x.src.GUID(EntityID(s[4:8]))
	first, last, count := o.seq(s[8:]), o.seq(s[16:]), o.u32(s[24:])
	if first < 0 || last < first-1 || last > lastSeq {
		return false
	}
	for _, r := range x.readersFor(EntityID(s[:4]), writer) {
		if r.onHeartbeat(writer, first, last, count, flags&flagFinal != 0, x) {
			x.p.reborn(x.src)
			break
		}
	}
	return true
}

func (x *receiver) heartbeatFrag(o order, s []byte) bool {
	if len(s) < 24 {
		return false
	}
	writer := x.src.GUID(EntityID(s[4:8]))
	for _, r := range x.readersFor(EntityID(s[:4]), writer) {
		r.onHeartbeatFrag(writer, o.seq(s[8:]), o.u32(s[16:]), x)
	}
	return true
}

// lastSeq is the highest sequence number believed: sums with small numbers do not overflow.
const lastSeq = 1 << 62

func (x *receiver) gap(o order, s []byte) bool {
	var set bitset256
	if len(s) < 28 || o.set(s[24:], &set) == 0 {
		return false
	}
	writer := x.src.GUID(EntityID(s[4:8]))
	start, base := o.seq(s[8:]), o.seq(s[16:])
	if start < 1 || base < start || base > lastSeq {
		return false
	}
	for _, r := range x.readersFor(EntityID(s[:4]), writer) {
		r.onGap(writer, start, base, &set, x)
	}
	return true
}

func (x *receiver) ackNack(o order, s []byte) bool {
	var set bitset256
	if len(s) < 24 {
		return false
	}
	n := o.set(s[16:], &set)
	if n == 0 || len(s) < 20+n {
		return false
	}
	if w := x.writerFor(EntityID(s[4:8])); w != nil {
		w.onAckNack(x.src.GUID(EntityID(s[:4])), o.seq(s[8:]), &set, o.u32(s[16+n:]))
	}
	return true
}

func (x *receiver) nackFrag(o order, s []byte) bool {
	var set bitset256
	if len(s) < 28 || o.set(s[20:], &set) == 0 {
		return false
	}
	if w := x.writerFor(EntityID(s[4:8])); w != nil {
		w.onNackFrag(x.src.GUID(EntityID(s[:4])), o.seq(s[8:]), o.u32(s[16:]), &set)
	}
	return true
}
