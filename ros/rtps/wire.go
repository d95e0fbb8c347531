package rtps

import (
	"encoding/binary"
	"time"
)

// Submessages, by id.
const (
	subPad           = 0x01
	subAckNack       = 0x06
	subHeartbeat     = 0x07
	subGap           = 0x08
	subInfoTime      = 0x09
	subInfoSource    = 0x0c
	subInfoDest      = 0x0e
	subNackFrag      = 0x12
	subHeartbeatFrag = 0x13
	subData          = 0x15
	subDataFrag      = 0x16
)

const (
	headerLen   = 20
	maxDatagram = 65507
	// Room for header, INFO_DST, INFO_TS, DATA_FRAG with inline QoS and a heartbeat, beside the piece of a sample.
	overhead = 256
)

// Flags of submessages; bit 0 is the byte order everywhere.
const (
	flagLittle  = 0x01
	flagFinal   = 0x02 // HEARTBEAT, ACKNACK: no answer is required
	flagInvalid = 0x02 // INFO_TS: no time follows
	flagInline  = 0x02 // DATA, DATA_FRAG: inline QoS
	flagPayload = 0x04 // DATA: a sample
	flagKey     = 0x08 // DATA: a key alone
	flagFragKey = 0x04 // DATA_FRAG: pieces of a key
)

// bitset256 is the body of a sequence number or fragment number set: bit i is base+i.
type bitset256 [8]uint32

func (s *bitset256) set(i int)      { s[i/32] |= 1 << (31 - i%32) }
func (s *bitset256) clear(i int)    { s[i/32] &^= 1 << (31 - i%32) }
func (s *bitset256) has(i int) bool { return s[i/32]&(1<<(31-i%32)) != 0 }

// span is one more than the highest bit set.
func (s *bitset256) span() int {
	for i := 255; i >= 0; i-- {
		if s[i/32] == 0 {
			i -= i % 32
			continue
		}
		if s.has(i) {
			return i + 1
		}
	}
	return 0
}

// message is a datagram in the making. It is written in little endian.
type message struct{ b []byte }

func (m *message) start(p GUIDPrefix) {
	m.b = append(m.b[:0], 'R', 'T', 'P', 'S', 2, 2, 0, 0)
	m.b = append(m.b, p[:]...)
}

func (m *message) u16(v uint16)      { m.b = binary.LittleEndian.AppendUint16(m.b, v) }
func (m *message) u32(v uint32)      { m.b = binary.LittleEndian.AppendUint32(m.b, v) }
func (m *message) entity(e EntityID) { m.b = append(m.b, e[:]...) }
func (m *message) seq(v int64)       { m.u32(uint32(v >> 32)); m.u32(uint32(v)) }

func (m *message) open(id, flags byte) int {
	m.b = append(m.b, id, flags|flagLittle, 0, 0)
	return len(m.b)
}

// shut writes the submessage's length. A length beyond 16 bits stays 0: to the end of the datagram, so it comes last.
func (m *message) shut(at int) {
	for (len(m.b)-at)%4 != 0 {
		m.b = append(m.b, 0)
	}
	if n := len(m.b) - at; n <= 0xffff {
		binary.LittleEndian.PutUint16(m.b[at-2:], uint16(n))
	}
}

func (m *message) dest(p GUIDPrefix) {
	at := m.open(subInfoDest, 0)
	m.b = append(m.b, p[:]...)
	m.shut(at)
}

func (m *message) stamp(t wireTime) {
	at := m.open(subInfoTime, 0)
	m.u32(t.sec)
	m.u32(t.frac)
	m.shut(at)
}

func (m *message) data(reader, writer EntityID, c *change) {
	flags := byte(flagPayload)
	if c.dispose {
		flags = flagKey
	}
	if c.inline() {
		flags |= flagInline
	}
	at := m.open(subData, flags)
	m.u16(0)
	m.u16(16)
	m.entity(reader)
	m.entity(writer)
	m.seq(c.seq)
	m.inlineQoS(c)
	m.b = append(m.b, c.payload...)
	m.shut(at)
}

// dataFrag writes one fragment, counted from 0, of size bytes but for the last.
func (m *message) dataFrag(reader, writer EntityID, c *change, frag, size int) {
	flags := byte(0)
	if c.inline() {
		flags |= flagInline
	}
	at := m.open(subDataFrag, flags)
	m.u16(0)
	m.u16(28)
	m.entity(reader)
	m.entity(writer)
	m.seq(c.seq)
	m.u32(uint32(frag + 1))
	m.u16(1)
	m.u16(uint16(size))
	m.u32(uint32(len(c.payload)))
	m.inlineQoS(c)
	m.b = append(m.b, c.payload[frag*size:min((frag+1)*size, len(c.payload))]...)
	m.shut(at)
}

func (m *message) inlineQoS(c *change) {
	if !c.inline() {
		return
	}
	if c.related {
		for _, id := range [...]uint16{pidRelatedEprosima, pidRelated} {
			m.u16(id)
			m.u16(24)
			m.b = append(m.b, c.identity.Writer[:]...)
			m.seq(c.identity.Seq)
		}
	}
	if c.dispose {
		m.u16(pidKeyHash)
		m.u16(16)
		m.b = append(m.b, c.key[:]...)
		m.u16(pidStatusInfo)
		m.u16(4)
		m.b = append(m.b, 0, 0, 0, statusDisposed|statusUnregistered)
	}
	m.u16(pidSentinel)
	m.u16(0)
}

func (m *message) heartbeat(reader, writer EntityID, first, last int64, count uint32, final bool) {
	flags := byte(0)
	if final {
		flags = flagFinal
	}
	at := m.open(subHeartbeat, flags)
	m.entity(reader)
	m.entity(writer)
	m.seq(first)
	m.seq(last)
	m.u32(count)
	m.shut(at)
}

func (m *message) bits(s *bitset256) {
	n := s.span()
	m.u32(uint32(n))
	for i := range (n + 31) / 32 {
		m.u32(s[i])
	}
}

func (m *message) ackNack(reader, writer EntityID, base int64, missing *bitset256, count uint32, final bool) {
	flags := byte(0)
	if final {
		flags = flagFinal
	}
	at := m.open(subAckNack, flags)
	m.entity(reader)
	m.entity(writer)
	m.seq(base)
	m.bits(missing)
	m.u32(count)
	m.shut(at)
}

// gap says that [start, base) and the set bits from base are not to come.
func (m *message) gap(reader, writer EntityID, start, base int64, set *bitset256) {
	at := m.open(subGap, 0)
	m.entity(reader)
	m.entity(writer)
	m.seq(start)
	m.seq(base)
	m.bits(set)
	m.shut(at)
}

// nackFrag asks for fragments, counted from 1: base+i for each bit.
func (m *message) nackFrag(reader, writer EntityID, seq int64, base uint32, missing *bitset256, count uint32) {
	at := m.open(subNackFrag, 0)
	m.entity(reader)
	m.entity(writer)
	m.seq(seq)
	m.u32(base)
	m.bits(missing)
	m.u32(count)
	m.shut(at)
}

// wireTime is a time as RTPS writes it: seconds, and 2^-32 seconds.
type wireTime struct{ sec, frac uint32 }

func toWire(t time.Time) wireTime {
	return wireTime{uint32(t.Unix()), uint32(uint64(t.Nanosecond()) << 32 / 1e9)}
}

func (t wireTime) time() time.Time {
	if t == (wireTime{}) || t.sec == 0xffffffff {
		return time.Time{}
	}
	return time.Unix(int64(t.sec), int64((uint64(t.frac)*1e9+1<<31)>>32))
}

// order is the byte order of what is read: true is little endian.
type order bool

func (o order) u16(b []byte) uint16 {
	if o {
		return binary.LittleEndian.Uint16(b)
	}
	return binary.BigEndian.Uint16(b)
}

func (o order) u32(b []byte) uint32 {
	if o {
		return binary.LittleEndian.Uint32(b)
	}
	return binary.BigEndian.Uint32(b)
}

func (o order) seq(b []byte) int64 {
	return int64(uint64(o.u32(b))<<32 | uint64(o.u32(b[4:])))
}

// set reads a set's number of bits and the bits; n is how many bytes they took, 0 when they are malformed.
func (o order) set(b []byte, s *bitset256) (n int) {
	if len(b) < 4 {
		return 0
	}
	bits := o.u32(b)
	if bits > 256 {
		return 0
	}
	words := int(bits+31) / 32
	if len(b) < 4+4*words {
		return 0
	}
	*s = bitset256{}
	for i := range words {
		s[i] = o.u32(b[4+4*i:])
	}
	if rest := bits % 32; rest != 0 {
		s[words-1] &= ^uint32(0) << (32 - rest)
	}
	return 4 + 4*words
}
