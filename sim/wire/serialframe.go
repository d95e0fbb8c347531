package wire

import "slices"

// A board's frame on its line: content and checksum, high byte first, without zeros among them, and a zero at the end.
const (
	frameEnd  = 0
	frameMost = 64 // bytes with the zero that a board's buffer holds
	chunkV0   = 32 // bytes of content in the older transport
	chunkV1   = 58
	rpcMost   = 1024
)

// checksum of a frame is Modbus's: from all ones, with the reversed polynomial.
func checksum(b []byte) uint16 {
	crc := uint16(0xffff)
	for _, c := range b {
		crc ^= uint16(c)
		for range 8 {
			odd := crc & 1
			crc >>= 1
			crc ^= 0xa001 * odd
		}
	}
	return crc
}

// frame puts content on the line.
func frame(content []byte) []byte {
	crc := checksum(content)
	plain := append(slices.Clone(content), byte(crc>>8), byte(crc))
	out := make([]byte, 0, len(plain)+3)
	for rest := plain; ; {
		n := slices.Index(rest, 0)
		last := n < 0
		if last {
			n = len(rest)
		}
		for n >= 254 { // a run as long as a count can say
			out = append(append(out, 255), rest[:254]...)
			rest, n = rest[254:], n-254
		}
		out = append(append(out, byte(n+1)), rest[:n]...)
		if last {
			return append(out, frameEnd)
		}
		rest = rest[n+1:]
	}
}

// unframe takes the content out of what came before a zero. One that is cut or wrong is no frame.
func unframe(line []byte) ([]byte, bool) {
	var plain []byte
	for len(line) > 0 {
		n := int(line[0])
		if n == 0 || n > len(line) {
			return nil, false
		}
		plain = append(plain, line[1:n]...)
		line = line[n:]
		if n < 255 && len(line) > 0 {
			plain = append(plain, 0)
		}
	}
	if len(plain) < 3 {
		return nil, false
	}
	content, crc := plain[:len(plain)-2], plain[len(plain)-2:]
	return content, checksum(content) == uint16(crc[0])<<8|uint16(crc[1])
}

// What the first byte of a frame says, in both transports.
const (
	v0Start, v0Started = 100, 101
	v0More, v0MoreHad  = 102, 103
	v0Last, v0LastHad  = 104, 105
	v0Get, v0GotMore   = 106, 107
	v0GotLast          = 108
	v1PushFirst        = 201
	v1PushOnly         = 202
	v1PushMore         = 203
	v1PushLast         = 204
	v1PushHad          = 205
	v1PullFirst        = 206
	v1PullMore         = 207
	v1PulledMore       = 208
	v1PulledLast       = 209
)

// mainboard is one end of a board's line: it puts requests together and cuts answers into frames. answer is called with a
// whole request and returns the whole reply; none is a request that it does not know.
type mainboard struct {
	answer func(request []byte) []byte
	raw    []byte // since the last zero
	in     []byte // of a request, so far
	out    []byte // of a reply, not yet asked for
}

// hear takes bytes of the line and returns what the board says to them. A frame with a wrong checksum gets no answer.
func (b *mainboard) hear(bytes []byte) []byte {
	var out []byte
	for _, c := range bytes {
		if c != frameEnd {
			if len(b.raw) < frameMost-1 { // what does not fit is lost
				b.raw = append(b.raw, c)
			}
			continue
		}
		content, ok := unframe(b.raw)
		b.raw = b.raw[:0]
		if !ok {
			continue
		}
		if reply := b.frame(content[0], content[1:]); reply != nil {
			out = append(out, frame(reply)...)
		}
	}
	return out
}

func (b *mainboard) frame(kind byte, content []byte) []byte {
	switch kind {
	case v0Start:
		b.in, b.out = nil, nil
		return []byte{v0Started}
	case v0More:
		b.gather(content)
		return []byte{v0MoreHad}
	case v0Last:
		b.gather(content)
		b.out = b.ask(b.in)
		return []byte{v0LastHad}
	case v0Get:
		return b.cut(chunkV0, v0GotMore, v0GotLast)
	case v1PushFirst, v1PushMore:
		if kind == v1PushFirst {
			b.in = nil
		}
		b.gather(content)
		return []byte{v1PushHad}
	case v1PushOnly, v1PushLast:
		if kind == v1PushOnly {
			b.in = nil
		}
		b.gather(content)
		return append([]byte{v1PushHad}, b.ask(b.in)...)
	case v1PullFirst:
		b.out = b.ask(content)
		return b.cut(chunkV1, v1PulledMore, v1PulledLast)
	case v1PullMore:
		return b.cut(chunkV1, v1PulledMore, v1PulledLast)
	}
	return nil
}

func (b *mainboard) ask(request []byte) []byte {
	if len(request) == 0 {
		return nil
	}
	return b.answer(request)
}

func (b *mainboard) gather(content []byte) {
	if len(b.in)+len(content) <= rpcMost {
		b.in = append(b.in, content...)
	}
}

func (b *mainboard) cut(most int, more, last byte) []byte {
	n := min(most, len(b.out))
	head := last
	if n < len(b.out) {
		head = more
	}
	piece := append([]byte{head}, b.out[:n]...)
	b.out = b.out[n:]
	return piece
}
