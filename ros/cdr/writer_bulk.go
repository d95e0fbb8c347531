package cdr

import (
	"encoding/binary"
	"math"
)

// The methods in the plural write the elements of an array; those that end in Seq write a count first. A sequence without
// elements is its count alone, with no padding to where an element would have been.

// Uint8s writes the elements of an array.
func (w *Writer) Uint8s(s []uint8) { w.buf = append(w.buf, s...) }

// Uint8Seq writes a sequence.
func (w *Writer) Uint8Seq(s []uint8, bound int, field string) {
	if w.Count(len(s), bound, field) {
		w.Uint8s(s)
	}
}

// Int8s writes the elements of an array.
func (w *Writer) Int8s(s []int8) {
	b := w.extend(len(s), 1)
	for i := range s {
		b[i] = byte(s[i])
	}
}

// Int8Seq writes a sequence.
func (w *Writer) Int8Seq(s []int8, bound int, field string) {
	if w.Count(len(s), bound, field) {
		w.Int8s(s)
	}
}

// Bools writes the elements of an array.
func (w *Writer) Bools(s []bool) {
	for _, v := range s {
		w.Bool(v)
	}
}

// BoolSeq writes a sequence.
func (w *Writer) BoolSeq(s []bool, bound int, field string) {
	if w.Count(len(s), bound, field) {
		w.Bools(s)
	}
}

// Strings writes the elements of an array; bound is that of each string.
func (w *Writer) Strings(s []string, bound int, field string) {
	for _, v := range s {
		w.String(v, bound, field)
	}
}

// StringSeq writes a sequence of strings; bound is that of the sequence, each that of a string.
func (w *Writer) StringSeq(s []string, bound, each int, field string) {
	if w.Count(len(s), bound, field) {
		w.Strings(s, each, field)
	}
}

// WStrings writes the elements of an array of wide strings.
func (w *Writer) WStrings(s []string, bound int, field string) {
	for _, v := range s {
		w.WString(v, bound, field)
	}
}

// WStringSeq writes a sequence of wide strings.
func (w *Writer) WStringSeq(s []string, bound, each int, field string) {
	if w.Count(len(s), bound, field) {
		w.WStrings(s, each, field)
	}
}

func write16[T int16 | uint16](w *Writer, s []T) {
	if len(s) == 0 {
		return
	}
	b := w.extend(len(s), 2)
	for i, v := range s {
		binary.LittleEndian.PutUint16(b[2*i:], uint16(v))
	}
}

func write32[T int32 | uint32](w *Writer, s []T) {
	if len(s) == 0 {
		return
	}
	b := w.extend(len(s), 4)
	for i, v := range s {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	}
}

func write64[T int64 | uint64](w *Writer, s []T) {
	if len(s) == 0 {
		return
	}
	b := w.extend(len(s), 8)
	for i, v := range s {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(v))
	}
}

// Float32s writes the elements of an array.
func (w *Writer) Float32s(s []float32) {
	if len(s) == 0 {
		return
	}
	b := w.extend(len(s), 4)
	for i, v := range s {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
}

// Float64s writes the elements of an array.
func (w *Writer) Float64s(s []float64) {
	if len(s) == 0 {
		return
	}
	b := w.extend(len(s), 8)
	for i, v := range s {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
	}
}

// Int16s writes the elements of an array.
func (w *Writer) Int16s(s []int16) { write16(w, s) }

// Int16Seq writes a sequence.
func (w *Writer) Int16Seq(s []int16, bound int, field string) {
	if w.Count(len(s), bound, field) {
		w.Int16s(s)
	}
}

// Uint16s writes the elements of an array.
func (w *Writer) Uint16s(s []uint16) { write16(w, s) }

// Uint16Seq writes a sequence.
func (w *Writer) Uint16Seq(s []uint16, bound int, field string) {
	if w.Count(len(s), bound, field) {
		w.Uint16s(s)
	}
}

// Int32s writes the elements of an array.
func (w *Writer) Int32s(s []int32) { write32(w, s) }

// Int32Seq writes a sequence.
func (w *Writer) Int32Seq(s []int32, bound int, field string) {
	if w.Count(len(s), bound, field) {
		w.Int32s(s)
	}
}

// Uint32s writes the elements of an array.
func (w *Writer) Uint32s(s []uint32) { write32(w, s) }

// Uint32Seq writes a sequence.
func (w *Writer) Uint32Seq(s []uint32, bound int, field string) {
	if w.Count(len(s), bound, field) {
		w.Uint32s(s)
	}
}

// Int64s writes the elements of an array.
func (w *Writer) Int64s(s []int64) { write64(w, s) }

// Int64Seq writes a sequence.
func (w *Writer) Int64Seq(s []int64, bound int, field string) {
	if w.Count(len(s), bound, field) {
		w.Int64s(s)
	}
}

// Uint64s writes the elements of an array.
func (w *Writer) Uint64s(s []uint64) { write64(w, s) }

// Uint64Seq writes a sequence.
func (w *Writer) Uint64Seq(s []uint64, bound int, field string) {
	if w.Count(len(s), bound, field) {
		w.Uint64s(s)
	}
}

// Float32Seq writes a sequence.
func (w *Writer) Float32Seq(s []float32, bound int, field string) {
	if w.Count(len(s), bound, field) {
		w.Float32s(s)
	}
}

// Float64Seq writes a sequence.
func (w *Writer) Float64Seq(s []float64, bound int, field string) {
	if w.Count(len(s), bound, field) {
		w.Float64s(s)
	}
}
