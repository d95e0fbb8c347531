package feetech

import (
	"context"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chain are servos at the far end of a line, which they know as bytes only: their packets are put together and taken apart
// here, by the rules of the protocol and not by the code under test.
type chain struct {
	servos map[byte]*[128]byte
	heard  int  // requests that were obeyed or answered
	fault  byte // in every answer
	lives  func(id byte, r *[128]byte)
}

func newChain(ids ...byte) *chain {
	c := &chain{servos: map[byte]*[128]byte{}}
	for _, id := range ids {
		r := &[128]byte{3: 9, 4: 3, 5: id, 40: 1, 41: 20, 46: 100, 62: 240, 63: 31}
		c.servos[id] = r
	}
	return c
}

func (c *chain) put(id, reg byte, b ...byte) { copy(c.servos[id][reg:], b) }

// serve is what the chain answers to bytes that came in one go. What is no whole packet is forgotten, as a servo does
// when the line falls silent.
func (c *chain) serve(b []byte) (answers [][]byte) {
	for len(b) >= 6 {
		if b[0] != 255 || b[1] != 255 || b[2] == 255 || b[3] < 2 || len(b) < int(b[3])+4 {
			b = b[1:]
			continue
		}
		end := int(b[3]) + 4
		sum := 0
		for _, v := range b[2:end] {
			sum += int(v)
		}
		if sum%256 != 255 {
			b = b[1:]
			continue
		}
		if a := c.obey(b[2], b[4], b[5:end-1]); a != nil {
			answers = append(answers, a)
		}
		b = b[end:]
	}
	return answers
}

func (c *chain) obey(id, instruction byte, p []byte) []byte {
	r := c.servos[id]
	switch {
	case instruction == 0x83 && id == 254 && len(p) >= 2:
		c.heard++
		for at := 2; at+1+int(p[1]) <= len(p); at += 1 + int(p[1]) {
			if r := c.servos[p[at]]; r != nil {
				copy(r[p[0]:], p[at+1:at+1+int(p[1])])
			}
		}
		return nil
	case r == nil:
		return nil
	}
	c.heard++
	switch {
	case instruction == 1:
		return c.answer(id, nil)
	case instruction == 2 && len(p) == 2 && int(p[0])+int(p[1]) <= len(r):
		if c.lives != nil {
			c.lives(id, r)
		}
		return c.answer(id, r[p[0]:p[0]+p[1]])
	case instruction == 3 && len(p) >= 1:
		copy(r[p[0]:], p[1:])
		return c.answer(id, nil)
	}
	return nil
}

func (c *chain) answer(id byte, data []byte) []byte {
	b := append([]byte{255, 255, id, byte(len(data) + 2), c.fault}, data...)
	sum := 0
	for _, v := range b[2:] {
		sum += int(v)
	}
	return append(b, byte(255-sum%256))
}

// memory is a line with a chain at its end and a fault in between. Nothing runs by itself: a write is answered, or not,
// before it returns.
type memory struct {
	chain  *chain
	mangle mangler
	in     []byte
	late   [][][]byte // answers that come when the next, the next but one, ... request goes out
	echo   bool
}

// mangler is what a line does to a packet: what arrives at once, and what arrives so many requests later.
type mangler func(packet []byte, toServo bool) (now [][]byte, later []held)

type held struct {
	packet []byte
	by     int // requests
}

func (m *memory) Flush() { m.in = nil }

func (m *memory) Write(_ context.Context, b []byte) error {
	if m.echo {
		m.in = append(m.in, b...)
	}
	if len(m.late) > 0 {
		for _, a := range m.late[0] {
			m.in = append(m.in, a...)
		}
		m.late = m.late[1:]
	}
	requests := [][]byte{b}
	if m.mangle != nil {
		requests, _ = m.mangle(b, true) // the bus is quiet while it waits: a request is never late
	}
	for _, r := range requests {
		for _, a := range m.chain.serve(r) {
			m.send(a)
		}
	}
	return nil
}

func (m *memory) send(answer []byte) {
	if m.mangle == nil {
		m.in = append(m.in, answer...)
		return
	}
	now, later := m.mangle(answer, false)
	for _, a := range now {
		m.in = append(m.in, a...)
	}
	for _, l := range later {
		for len(m.late) < l.by {
			m.late = append(m.late, nil)
		}
		m.late[l.by-1] = append(m.late[l.by-1], l.packet)
	}
}

func (m *memory) Read(ctx context.Context, b []byte) (int, error) {
	if len(m.in) == 0 {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	n := copy(b, m.in)
	m.in = m.in[n:]
	return n, nil
}

// drop loses what the list says: true is lost, and after its end nothing is.
func drop(lost ...bool) mangler {
	return func(p []byte, _ bool) ([][]byte, []held) {
		if len(lost) == 0 {
			return [][]byte{p}, nil
		}
		gone := lost[0]
		lost = lost[1:]
		if gone {
			return nil, nil
		}
		return [][]byte{p}, nil
	}
}

// bad loses, doubles, delays, cuts, flips and adds bytes, each to about one packet in twelve.
func bad(rng *rand.Rand) mangler {
	return func(p []byte, toServo bool) ([][]byte, []held) {
		p = append([]byte(nil), p...)
		switch rng.IntN(12) {
		case 0:
			return nil, nil
		case 1:
			if toServo { // an echo is a servo's affair; it would answer twice at once
				return [][]byte{p}, nil
			}
			return [][]byte{p}, []held{{p, 1 + rng.IntN(3)}}
		case 2:
			return nil, []held{{p, 1 + rng.IntN(5)}}
		case 3:
			return [][]byte{p[:rng.IntN(len(p))]}, nil
		case 4:
			p[rng.IntN(len(p))] ^= 1 << rng.IntN(8)
		case 5:
			for range 1 + rng.IntN(9) {
				p = append([]byte{byte(rng.Uint32() | 0xf0)}, p...)
			}
		case 6:
			p = append(p, p...)
		}
		return [][]byte{p}, nil
	}
}
