package bus

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// The boards' side of the bytes, in the tests' own codec.

func crcOf(b []byte) uint16 {
	crc := ^uint16(0)
	for _, x := range b {
		for i := range 8 {
			odd := crc&1 != uint16(x>>i&1)
			if crc >>= 1; odd {
				crc ^= 0xa001
			}
		}
	}
	return crc
}

func framed(content ...byte) []byte {
	raw := binary.BigEndian.AppendUint16(bytes.Clone(content), crcOf(content))
	var out []byte
	for part := range bytes.SplitSeq(raw, []byte{0}) {
		out = append(append(out, byte(len(part)+1)), part...)
	}
	return append(out, 0)
}

func unframed(wire []byte) []byte {
	var parts [][]byte
	for len(wire) > 0 {
		n := int(wire[0])
		if n == 0 || n > len(wire) {
			return nil
		}
		parts = append(parts, wire[1:n])
		wire = wire[n:]
	}
	raw := bytes.Join(parts, []byte{0})
	if n := len(raw) - 2; n >= 1 && crcOf(raw[:n]) == binary.BigEndian.Uint16(raw[n:]) {
		return raw[:n]
	}
	return nil
}

// boards remember what is between frames, for each line.
type boardState struct{ in, request, reply []byte }

func (r *rig) board(l *line, b []byte) {
	st := boardOf(l)
	st.in = append(st.in, b...)
	for {
		i := bytes.IndexByte(st.in, 0)
		if i < 0 {
			return
		}
		c := unframed(st.in[:i])
		st.in = st.in[i+1:]
		if c == nil {
			continue
		}
		st.frame(r, l, c)
	}
}

func (st *boardState) frame(r *rig, l *line, c []byte) {
	take := func() { st.reply = r.asked(l.name, st.request); st.request = nil }
	switch c[0] {
	case 100:
		st.request = nil
		l.say(framed(101))
	case 102:
		st.request = append(st.request, c[1:]...)
		l.say(framed(103))
	case 104:
		st.request = append(st.request, c[1:]...)
		take()
		l.say(framed(105))
	case 106:
		st.block(l, 32, 107, 108)
	case 202:
		st.request = bytes.Clone(c[1:])
		take()
		st.block(l, 58, 205, 205)
	case 206:
		st.request = bytes.Clone(c[1:])
		take()
		st.block(l, 58, 208, 209)
	case 207:
		st.block(l, 58, 208, 209)
	}
}

func (st *boardState) block(l *line, most int, more, last byte) {
	n := min(most, len(st.reply))
	part := st.reply[:n]
	if st.reply = st.reply[n:]; len(st.reply) == 0 {
		more = last
	}
	l.say(framed(append([]byte{more}, part...)...))
}

// asked is a whole request to a board, and its reply.
func (r *rig) asked(name string, q []byte) []byte {
	i := slices.Index(portNames(), name)
	reply := []byte{q[0] + 1}
	if i == 5 {
		return append(reply, r.powerAsked(q)...)
	}
	m := r.motors[i]
	switch q[0] {
	case 1:
		r.heard[name]++
		f := func(at int) float64 {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(q[at:])))
		}
		c := [4]float64{float64(q[1]), f(2), f(6), f(10)}
		if m.sync && q[1] != 0 {
			m.waiting = &c
		} else {
			m.obey(c, time.Now())
		}
		return append(reply, 7, 0)
	case 3:
		diag := m.diag
		if m.sync {
			diag |= 16384
		}
		if m.waiting != nil {
			diag |= 2048
		}
		if m.runstop {
			diag |= 2
		}
		pos := m.pos
		if m.frozen {
			pos = m.froze
		}
		pos -= m.zero
		born := r.born
		if !m.booted.IsZero() {
			born = m.booted
		}
		return append(reply, packed(m.mode, float32(0), pos, float32(m.vel), float32(0), diag, uint64(time.Since(born).Microseconds()), float32(0), m.contacts, float32(0), uint16(0), float32(2300), float32(1000))...)
	case 13:
		return append(append(reply, make([]byte, 80)...), m.config, 0, 0, 0, 0, 0, 0, 0, 0)
	case 17:
		info := make([]byte, 51)
		copy(info, "hello-stepper2.6")
		copy(info[20:], r.firmware)
		info[50] = m.kind
		return append(reply, info...)
	}
	r.heard[name+" other"]++
	return reply
}

func (r *rig) powerAsked(q []byte) []byte {
	p := &r.power
	switch q[0] {
	case 3:
		state := p.state
		if p.runstop {
			state |= 16
		}
		return packed(make([]float32, 17), float32(29), float32(2), float32(40), state, uint64(time.Since(r.born).Microseconds()), uint16(0), float32(0), float32(0), uint8(0), float32(-2),
			p.soc, uint8(99), uint16(3), make([]float32, 6), uint8(1), p.cause, uint16(900))
	case 5:
		bits := binary.LittleEndian.Uint32(q[1:])
		r.heard["trigger"]++
		if bits&256 != 0 {
			p.runstop, p.cause = true, 2
		}
		if bits&2 != 0 {
			p.runstop, p.cause = false, 0
		}
		return q[1:5]
	case 7:
		info := make([]byte, 50)
		copy(info, "hello-pimu2.1")
		copy(info[20:], "hello-pimu2.v0.9.4p11")
		return info
	case 9:
		now := time.Now()
		r.syncs = append(r.syncs, now)
		for _, m := range r.motors {
			if m.waiting != nil {
				m.obey(*m.waiting, now)
			}
		}
		return []byte{1, 0}
	}
	return nil
}

func boardOf(l *line) *boardState { return &l.state }
