package feetech

import "bytes"

// Instructions of the protocol that are used here.
const (
	instructionPing      = 0x01
	instructionRead      = 0x02
	instructionWrite     = 0x03
	instructionSyncWrite = 0x83
)

// broadcast is the id that every servo obeys and none answers.
const broadcast = 0xfe

// maxParams bounds what a packet may carry: the whole register table of a servo is shorter, and a LEN that a disturbance
// made large must not make the reader wait for bytes that never come.
const maxParams = 96

// Packet is one packet of either direction.
type Packet struct {
	ID     byte
	Code   byte // instruction of a request, fault bits of an answer
	Params []byte
}

// Encode is the packet as it goes over the wire.
func Encode(p Packet) []byte {
	b := make([]byte, 0, 6+len(p.Params))
	b = append(b, 0xff, 0xff, p.ID, byte(len(p.Params)+2), p.Code)
	b = append(b, p.Params...)
	return append(b, checksum(b[2:]))
}

// checksum is that of everything from ID to the last parameter.
func checksum(b []byte) byte {
	var sum byte
	for _, v := range b {
		sum += v
	}
	return ^sum
}

// Decoder finds packets in a stream of bytes. Bytes that belong to none are skipped one at a time, so that a packet behind
// a disturbed one is found too. The zero Decoder is ready.
type Decoder struct {
	buf     []byte
	badSums uint64
	resyncs uint64
	lost    bool // in a run of skipped bytes that is counted already
}

// Feed takes what came.
func (d *Decoder) Feed(b []byte) { d.buf = append(d.buf, b...) }

// Reset forgets what came and was no packet yet.
func (d *Decoder) Reset() { d.buf, d.lost = d.buf[:0], false }

// Next is the next whole packet, if one is there. Its parameters are a copy.
func (d *Decoder) Next() (Packet, bool) {
	for {
		d.seek()
		if len(d.buf) < 4 {
			return Packet{}, false
		}
		end := 4 + int(d.buf[3])
		if id, n := d.buf[2], int(d.buf[3])-2; id > broadcast || n < 0 || n > maxParams {
			d.skip(1)
			continue
		}
		if len(d.buf) < end {
			return Packet{}, false
		}
		if checksum(d.buf[2:end-1]) != d.buf[end-1] {
			d.badSums++
			d.skip(1)
			continue
		}
		p := Packet{ID: d.buf[2], Code: d.buf[4], Params: bytes.Clone(d.buf[5 : end-1])}
		d.buf = append(d.buf[:0], d.buf[end:]...)
		d.lost = false
		return p, true
	}
}

// seek drops what cannot begin a packet.
func (d *Decoder) seek() {
	at := bytes.Index(d.buf, []byte{0xff, 0xff})
	switch {
	case at >= 0:
		d.skip(at)
	case len(d.buf) > 0 && d.buf[len(d.buf)-1] == 0xff:
		d.skip(len(d.buf) - 1)
	default:
		d.skip(len(d.buf))
	}
}

func (d *Decoder) skip(n int) {
	if n == 0 {
		return
	}
	d.buf = append(d.buf[:0], d.buf[n:]...)
	if !d.lost {
		d.resyncs++
	}
	d.lost = true
}
