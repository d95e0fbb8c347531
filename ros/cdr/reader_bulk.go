package cdr

import (
	"encoding/binary"
	"math"
)

// The methods in the plural fill an array; those that end in Seq read a count first and use the old slice again when it is
// large enough.

// Resize is s with n elements. What it holds already stays, so that the elements' own slices and strings can be used
// again; the caller overwrites every element.
func Resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	grown := make([]T, n)
	copy(grown, s[:cap(s)])
	return grown
}

// Uint8s fills an array.
func (r *Reader) Uint8s(s []uint8) { copy(s, r.bulk(len(s), 1)) }

// Uint8Seq reads a sequence of bytes: a copy in old's memory when that is large enough, or a part of the payload when the
// reader borrows.
func (r *Reader) Uint8Seq(old []uint8, bound int, field string) []uint8 {
	n := r.Count(1, bound, field)
	b := r.bulk(n, 1)
	if r.borrow {
		return b[:len(b):len(b)]
	}
	return append(old[:0], b...)
}

// Int8s fills an array.
func (r *Reader) Int8s(s []int8) {
	for i, v := range r.bulk(len(s), 1) {
		s[i] = int8(v)
	}
}

// Int8Seq reads a sequence.
func (r *Reader) Int8Seq(old []int8, bound int, field string) []int8 {
	s := Resize(old, r.Count(1, bound, field))
	r.Int8s(s)
	return s
}

// Bools fills an array.
func (r *Reader) Bools(s []bool) {
	for i, v := range r.bulk(len(s), 1) {
		s[i] = v != 0
	}
}

// BoolSeq reads a sequence.
func (r *Reader) BoolSeq(old []bool, bound int, field string) []bool {
	s := Resize(old, r.Count(1, bound, field))
	r.Bools(s)
	return s
}

// Strings fills an array of strings; bound is that of each.
func (r *Reader) Strings(s []string, bound int, field string) {
	for i := range s {
		if r.err != nil {
			return
		}
		s[i] = r.String(s[i], bound, field)
	}
}

// StringSeq reads a sequence of strings; bound is that of the sequence, each that of a string.
func (r *Reader) StringSeq(old []string, bound, each int, field string) []string {
	s := Resize(old, r.Count(4, bound, field))
	r.Strings(s, each, field)
	return s
}

// WStrings fills an array of wide strings.
func (r *Reader) WStrings(s []string, bound int, field string) {
	for i := range s {
		if r.err != nil {
			return
		}
		s[i] = r.WString(s[i], bound, field)
	}
}

// WStringSeq reads a sequence of wide strings.
func (r *Reader) WStringSeq(old []string, bound, each int, field string) []string {
	s := Resize(old, r.Count(4, bound, field))
	r.WStrings(s, each, field)
	return s
}

// bulk is the bytes of n elements of the size; nil when there are none, or not as many.
func (r *Reader) bulk(n, size int) []byte {
	if n == 0 {
		return nil
	}
	at := (r.pos + size - 1) &^ (size - 1)
	if at > len(r.data) || n > (len(r.data)-at)/size {
		r.short(n * size)
		return nil
	}
	r.pos = at + n*size
	return r.data[at:r.pos]
}

func read16[T int16 | uint16](r *Reader, s []T) {
	b := r.bulk(len(s), 2)
	if r.big {
		for i := range len(b) / 2 {
			s[i] = T(binary.BigEndian.Uint16(b[2*i:]))
		}
		return
	}
	for i := range len(b) / 2 {
		s[i] = T(binary.LittleEndian.Uint16(b[2*i:]))
	}
}

func read32[T int32 | uint32](r *Reader, s []T) {
	b := r.bulk(len(s), 4)
	if r.big {
		for i := range len(b) / 4 {
			s[i] = T(binary.BigEndian.Uint32(b[4*i:]))
		}
		return
	}
	for i := range len(b) / 4 {
		s[i] = T(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

func read64[T int64 | uint64](r *Reader, s []T) {
	b := r.bulk(len(s), 8)
	if r.big {
		for i := range len(b) / 8 {
			s[i] = T(binary.BigEndian.Uint64(b[8*i:]))
		}
		return
	}
	for i := range len(b) / 8 {
		s[i] = T(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

// Float32s fills an array.
func (r *Reader) Float32s(s []float32) {
	b := r.bulk(len(s), 4)
	if r.big {
		for i := range len(b) / 4 {
			s[i] = math.Float32frombits(binary.BigEndian.Uint32(b[4*i:]))
		}
		return
	}
	for i := range len(b) / 4 {
		s[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// Float64s fills an array.
func (r *Reader) Float64s(s []float64) {
	b := r.bulk(len(s), 8)
	if r.big {
		for i := range len(b) / 8 {
			s[i] = math.Float64frombits(binary.BigEndian.Uint64(b[8*i:]))
		}
		return
	}
	for i := range len(b) / 8 {
		s[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

// Int16s fills an array.
func (r *Reader) Int16s(s []int16) { read16(r, s) }

// Int16Seq reads a sequence.
func (r *Reader) Int16Seq(old []int16, bound int, field string) []int16 {
	s := Resize(old, r.Count(2, bound, field))
	r.Int16s(s)
	return s
}

// Uint16s fills an array.
func (r *Reader) Uint16s(s []uint16) { read16(r, s) }

// Uint16Seq reads a sequence.
func (r *Reader) Uint16Seq(old []uint16, bound int, field string) []uint16 {
	s := Resize(old, r.Count(2, bound, field))
	r.Uint16s(s)
	return s
}

// Int32s fills an array.
func (r *Reader) Int32s(s []int32) { read32(r, s) }

// Int32Seq reads a sequence.
func (r *Reader) Int32Seq(old []int32, bound int, field string) []int32 {
	s := Resize(old, r.Count(4, bound, field))
	r.Int32s(s)
	return s
}

// Uint32s fills an array.
func (r *Reader) Uint32s(s []uint32) { read32(r, s) }

// Uint32Seq reads a sequence.
func (r *Reader) Uint32Seq(old []uint32, bound int, field string) []uint32 {
	s := Resize(old, r.Count(4, bound, field))
	r.Uint32s(s)
	return s
}

// Int64s fills an array.
func (r *Reader) Int64s(s []int64) { read64(r, s) }

// Int64Seq reads a sequence.
func (r *Reader) Int64Seq(old []int64, bound int, field string) []int64 {
	s := Resize(old, r.Count(8, bound, field))
	r.Int64s(s)
	return s
}

// Uint64s fills an array.
func (r *Reader) Uint64s(s []uint64) { read64(r, s) }

// Uint64Seq reads a sequence.
func (r *Reader) Uint64Seq(old []uint64, bound int, field string) []uint64 {
	s := Resize(old, r.Count(8, bound, field))
	r.Uint64s(s)
	return s
}

// Float32Seq reads a sequence.
func (r *Reader) Float32Seq(old []float32, bound int, field string) []float32 {
	s := Resize(old, r.Count(4, bound, field))
	r.Float32s(s)
	return s
}

// Float64Seq reads a sequence.
func (r *Reader) Float64Seq(old []float64, bound int, field string) []float64 {
	s := Resize(old, r.Count(8, bound, field))
	r.Float64s(s)
	return s
}
