package cdr

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf16"
)

// headerLen is the length of the encapsulation header.
const headerLen = 4

// Writer appends one payload to a buffer. The zero Writer must be Reset first. A Writer that is Reset with a buffer large
// enough allocates nothing.
type Writer struct {
	buf    []byte
	start  int // where the header is
	origin int // the byte behind the header: alignment counts from here
	distro Distro
	err    error
}

// NewWriter is a Writer behind what buf holds already, which may be nil.
func NewWriter(buf []byte, d Distro) *Writer {
	w := new(Writer)
	w.Reset(buf, d)
	return w
}

// Reset starts a new payload at the end of buf and forgets the last one. Give it w.Bytes()[:0] to use a buffer again.
func (w *Writer) Reset(buf []byte, d Distro) {
	w.start = len(buf)
	w.buf = buf
	w.buf = append(w.buf, 0, 1, 0, 0)
	w.origin = len(w.buf)
	w.distro = d
	w.err = nil
}

// Bytes is the buffer that Reset got with the payload appended, header first; nil after an error. It is w's until the
// next Reset.
func (w *Writer) Bytes() []byte {
	if w.err != nil {
		return nil
	}
	return w.buf
}

// Len is the length of the payload so far, header included.
func (w *Writer) Len() int { return len(w.buf) - w.start }

// Err is the first error, a *Error.
func (w *Writer) Err() error { return w.err }

// Distro is the distribution that is written for.
func (w *Writer) Distro() Distro { return w.distro }

// Fail makes the writer fail, unless it has failed already.
func (w *Writer) Fail(field, why string) {
	if w.err == nil {
		w.err = &Error{Offset: w.Len(), Field: field, Why: why}
	}
}

// DistroUnknown fails because the layout of typ depends on the distribution, which is not known.
func (w *Writer) DistroUnknown(typ string) { w.Fail("", layoutDiffers(typ)) }

// Absent fails when a field that the distribution does not have is to be written with a value.
func (w *Writer) Absent(field string, set bool) {
	if set {
		w.Fail(field, fmt.Sprintf("ROS 2 %s has no such field: leave it empty", w.distro))
	}
}

func (w *Writer) align(n int) {
	for pad := -(len(w.buf) - w.origin) & (n - 1); pad > 0; pad-- {
		w.buf = append(w.buf, 0)
	}
}

// extend makes room for n elements of the size and returns it.
func (w *Writer) extend(n, size int) []byte {
	w.align(size)
	at, n := len(w.buf), n*size
	if cap(w.buf)-at >= n {
		w.buf = w.buf[:at+n]
	} else {
		w.buf = append(w.buf, make([]byte, n)...)
	}
	return w.buf[at : at+n]
}

// Empty writes a structure without fields: one zero byte.
func (w *Writer) Empty() { w.buf = append(w.buf, 0) }

// Bool writes a boolean.
func (w *Writer) Bool(v bool) {
	var b byte
	if v {
		b = 1
	}
	w.buf = append(w.buf, b)
}

// Uint8 writes a byte.
func (w *Writer) Uint8(v uint8) { w.buf = append(w.buf, v) }

// Int8 writes a signed byte.
func (w *Writer) Int8(v int8) { w.buf = append(w.buf, byte(v)) }

// Uint16 writes two bytes.
func (w *Writer) Uint16(v uint16) {
	w.align(2)
	w.buf = binary.LittleEndian.AppendUint16(w.buf, v)
}

// Int16 writes two bytes.
func (w *Writer) Int16(v int16) { w.Uint16(uint16(v)) }

// Uint32 writes four bytes.
func (w *Writer) Uint32(v uint32) {
	w.align(4)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, v)
}

// Int32 writes four bytes.
func (w *Writer) Int32(v int32) { w.Uint32(uint32(v)) }

// Uint64 writes eight bytes.
func (w *Writer) Uint64(v uint64) {
	w.align(8)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, v)
}

// Int64 writes eight bytes.
func (w *Writer) Int64(v int64) { w.Uint64(uint64(v)) }

// Float32 writes four bytes.
func (w *Writer) Float32(v float32) { w.Uint32(math.Float32bits(v)) }

// Float64 writes eight bytes.
func (w *Writer) Float64(v float64) { w.Uint64(math.Float64bits(v)) }

// String writes a string; bound is the most bytes it may have, 0 for any.
func (w *Writer) String(s string, bound int, field string) {
	if bound > 0 && len(s) > bound {
		w.Fail(field, fmt.Sprintf("a string of %d bytes; at most %d are allowed", len(s), bound))
		return
	}
	if uint64(len(s)) >= math.MaxUint32 {
		w.Fail(field, fmt.Sprintf("a string of %d bytes does not fit a payload", len(s)))
		return
	}
	w.Uint32(uint32(len(s)) + 1)
	w.buf = append(w.buf, s...)
	w.buf = append(w.buf, 0)
}

// WString writes a wide string as both common RMWs do: a count of UTF-16 units and four bytes for each, no NUL.
func (w *Writer) WString(s string, bound int, field string) {
	units := utf16.Encode([]rune(s))
	if !w.Count(len(units), bound, field) {
		return
	}
	for _, u := range units {
		w.Uint32(uint32(u))
	}
}

// Count writes the number of elements of a sequence; bound is the most it may have, 0 for any. False says that it failed.
func (w *Writer) Count(n, bound int, field string) bool {
	if bound > 0 && n > bound {
		w.Fail(field, fmt.Sprintf("%d elements; at most %d are allowed", n, bound))
		return false
	}
	if uint64(n) > math.MaxUint32 {
		w.Fail(field, fmt.Sprintf("%d elements do not fit a payload", n))
		return false
	}
	w.Uint32(uint32(n))
	return true
}
