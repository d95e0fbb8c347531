package cdr

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf16"
)

// Reader reads one payload. The zero Reader must be Reset first.
type Reader struct {
	data   []byte // behind the header
	pos    int
	big    bool
	borrow bool
	distro Distro
	err    error
}

// NewReader is a Reader of a payload that begins with its header.
func NewReader(payload []byte, d Distro) *Reader {
	r := new(Reader)
	r.Reset(payload, d)
	return r
}

// Reset begins to read another payload. Whether r borrows stays.
func (r *Reader) Reset(payload []byte, d Distro) {
	*r = Reader{borrow: r.borrow, distro: d}
	if len(payload) < headerLen {
		r.err = &Error{Offset: 0, Why: fmt.Sprintf("a payload of %d bytes has no header", len(payload))}
		return
	}
	if payload[0] != 0 || payload[1] > 1 {
		r.err = &Error{Offset: 0, Why: fmt.Sprintf("encoding %02x%02x is not plain XCDR1 (0000 big, 0001 little endian)", payload[0], payload[1])}
		return
	}
	r.big = payload[1] == 0
	r.data = payload[headerLen:]
}

// Borrow says whether sequences of bytes become parts of the payload instead of copies: a big image is then not copied
// at all. Such a message is good as long as the payload is, and must not be decoded into again without Borrow, because
// that would write into the payload; set its []byte fields to nil first.
func (r *Reader) Borrow(on bool) { r.borrow = on }

// Err is the first error, a *Error.
func (r *Reader) Err() error { return r.err }

// Distro is the distribution that the payload comes from.
func (r *Reader) Distro() Distro { return r.distro }

// Remaining is how many bytes are left; up to three can be padding. It is 0 after an error.
func (r *Reader) Remaining() int { return len(r.data) - r.pos }

// Rest is what is left; nil after an error.
func (r *Reader) Rest() []byte { return r.data[r.pos:] }

// End says that nothing but padding is left, or that there was an error. Messages ask it before a field that older
// releases do not have; it can tell only at the end of a payload, so that such a field is not looked for in a message
// within another.
func (r *Reader) End() bool { return (r.pos+3)&^3 >= len(r.data) }

// EndOfEmpty is End for a message that had no fields at all in older releases: one zero byte, and padding.
func (r *Reader) EndOfEmpty() bool { return r.Remaining() <= 4 }

// Fail makes the reader fail, unless it has failed already.
func (r *Reader) Fail(field, why string) {
	if r.err == nil {
		r.err = &Error{Offset: headerLen + r.pos, Field: field, Why: why}
	}
	r.data, r.pos = nil, 0
}

// DistroUnknown fails because the layout of typ depends on the distribution, which is not known.
func (r *Reader) DistroUnknown(typ string) { r.Fail("", layoutDiffers(typ)) }

func (r *Reader) short(want int) {
	r.Fail("", fmt.Sprintf("%d bytes wanted, %d are left", want, len(r.data)-r.pos))
}

// next is the bytes of a primitive of that size; nil when there are not as many.
func (r *Reader) next(size int) []byte {
	at := (r.pos + size - 1) &^ (size - 1)
	if at+size > len(r.data) {
		r.short(size)
		return nil
	}
	r.pos = at + size
	return r.data[at:r.pos]
}

// Empty reads a structure without fields: one byte, if there is one.
func (r *Reader) Empty() {
	if r.pos < len(r.data) {
		r.pos++
	}
}

// Uint8 reads a byte.
func (r *Reader) Uint8() uint8 {
	if r.pos >= len(r.data) {
		r.short(1)
		return 0
	}
	v := r.data[r.pos]
	r.pos++
	return v
}

// Int8 reads a signed byte.
func (r *Reader) Int8() int8 { return int8(r.Uint8()) }

// Bool reads a boolean; all but zero is true.
func (r *Reader) Bool() bool { return r.Uint8() != 0 }

// Uint16 reads two bytes.
func (r *Reader) Uint16() uint16 {
	b := r.next(2)
	if b == nil {
		return 0
	}
	if r.big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

// Int16 reads two bytes.
func (r *Reader) Int16() int16 { return int16(r.Uint16()) }

// Uint32 reads four bytes.
func (r *Reader) Uint32() uint32 {
	b := r.next(4)
	if b == nil {
		return 0
	}
	if r.big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

// Int32 reads four bytes.
func (r *Reader) Int32() int32 { return int32(r.Uint32()) }

// Uint64 reads eight bytes.
func (r *Reader) Uint64() uint64 {
	b := r.next(8)
	if b == nil {
		return 0
	}
	if r.big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// Int64 reads eight bytes.
func (r *Reader) Int64() int64 { return int64(r.Uint64()) }

// Float32 reads four bytes.
func (r *Reader) Float32() float32 { return math.Float32frombits(r.Uint32()) }

// Float64 reads eight bytes.
func (r *Reader) Float64() float64 { return math.Float64frombits(r.Uint64()) }

// Count reads the number of elements of a sequence: at most bound, unless that is 0, and not more than fit into what is
// left when each takes at least size bytes. It is 0 after an error.
func (r *Reader) Count(size, bound int, field string) int {
	n := uint64(r.Uint32())
	if r.err != nil {
		return 0
	}
	if bound > 0 && n > uint64(bound) {
		r.Fail(field, fmt.Sprintf("%d elements announced; at most %d are allowed", n, bound))
		return 0
	}
	if left := uint64(len(r.data) - r.pos); n*uint64(size) > left {
		r.Fail(field, fmt.Sprintf("%d elements announced, of %d bytes or more each; %d bytes are left", n, size, left))
		return 0
	}
	return int(n)
}

// String reads a string of at most bound bytes, 0 for any; old is returned when it is the same, so that nothing is
// allocated for what does not change.
func (r *Reader) String(old string, bound int, field string) string {
	n := r.Count(1, 0, field)
	if n == 0 {
		return "" // a length of 0, without the NUL, is what some writers send for ""
	}
	b := r.data[r.pos : r.pos+n]
	if b[n-1] != 0 {
		r.Fail(field, fmt.Sprintf("a string of %d bytes does not end in NUL", n))
		return ""
	}
	b = b[:n-1]
	if bound > 0 && len(b) > bound {
		r.Fail(field, fmt.Sprintf("a string of %d bytes; at most %d are allowed", len(b), bound))
		return ""
	}
	r.pos += n
	if string(b) == old {
		return old
	}
	return string(b)
}

// WString reads a wide string as both common RMWs write it: a count of UTF-16 units and four bytes for each, no NUL.
func (r *Reader) WString(old string, bound int, field string) string {
	n := r.Count(4, bound, field)
	units := make([]uint16, n)
	for i := range units {
		units[i] = uint16(r.Uint32())
	}
	if s := string(utf16.Decode(units)); s != old {
		return s
	}
	return old
}
