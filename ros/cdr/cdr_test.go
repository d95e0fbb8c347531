package cdr_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"viad/ros/cdr"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Each vector is laid out by hand from the rules: header, then every primitive aligned to its size from byte 4 on.
func TestLayout(t *testing.T) {
	for _, c := range []struct {
		name, want string
		write      func(*cdr.Writer)
	}{
		{"nothing", "00010000", func(*cdr.Writer) {}},
		{"empty structure", "00010000 00", func(w *cdr.Writer) { w.Empty() }},
		{"alignment", "00010000 01 00 0302 07060504 0f0e0d0c0b0a0908", func(w *cdr.Writer) {
			w.Uint8(1)
			w.Uint16(0x0203)
			w.Uint32(0x04050607)
			w.Uint64(0x08090a0b0c0d0e0f)
		}},
		{"eight behind one", "00010000 01 00000000000000 000000000000f03f", func(w *cdr.Writer) {
			w.Bool(true)
			w.Float64(1)
		}},
		{"string", "00010000 03000000 616200 00 ffffffff", func(w *cdr.Writer) {
			w.String("ab", 0, "")
			w.Int32(-1)
		}},
		{"empty string", "00010000 01000000 00", func(w *cdr.Writer) { w.String("", 0, "") }},
		{"sequence", "00010000 02000000 00000000 000000000000f03f 0000000000000040", func(w *cdr.Writer) {
			w.Float64Seq([]float64{1, 2}, 0, "")
		}},
		{"an empty sequence of eights pads nothing", "00010000 00000000 05000000", func(w *cdr.Writer) {
			w.Float64Seq(nil, 0, "")
			w.Uint32(5)
		}},
		{"array", "00010000 ff 00 0100 0200", func(w *cdr.Writer) {
			w.Int8(-1)
			w.Int16s([]int16{1, 2})
		}},
		{"floats", "00010000 0000803f 00000040 00000000 0000c07f", func(w *cdr.Writer) {
			w.Float32s([]float32{1, 2, 0, math.Float32frombits(0x7fc00000)})
		}},
		{"wide string", "00010000 03000000 41000000 3dd80000 00de0000", func(w *cdr.Writer) { w.WString("A😀", 0, "") }},
	} {
		w := cdr.NewWriter(nil, cdr.DistroUnknown)
		c.write(w)
		if err := w.Err(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if want := unhex(t, c.want); !bytes.Equal(w.Bytes(), want) {
			t.Errorf("%s\n got %x\nwant %x", c.name, w.Bytes(), want)
		}
	}
}

// A payload behind other bytes is aligned as if it stood alone.
func TestAppendsBehindWhatIsThere(t *testing.T) {
	w := cdr.NewWriter([]byte("xyz"), cdr.Humble)
	w.Uint8(1)
	w.Uint64(2)
	if want := "78797a 00010000 0100000000000000 0200000000000000"; !bytes.Equal(w.Bytes(), unhex(t, want)) {
		t.Errorf("got %x", w.Bytes())
	}
	if w.Len() != 20 || w.Distro() != cdr.Humble {
		t.Errorf("length %d, distro %v", w.Len(), w.Distro())
	}
}

func TestReadsBothByteOrders(t *testing.T) {
	for _, c := range []string{
		"00010000 01 00 0302 07060504 0f0e0d0c0b0a0908 02000000 0000803f 000000c0 03000000 616200",
		"00000000 01 00 0203 04050607 08090a0b0c0d0e0f 00000002 3f800000 c0000000 00000003 616200",
	} {
		r := cdr.NewReader(unhex(t, c), cdr.Jazzy)
		if a, b, d, e := r.Uint8(), r.Uint16(), r.Uint32(), r.Uint64(); a != 1 || b != 0x0203 || d != 0x04050607 || e != 0x08090a0b0c0d0e0f {
			t.Errorf("%s: %x %x %x %x", c[:8], a, b, d, e)
		}
		if f := r.Float32Seq(nil, 0, ""); len(f) != 2 || f[0] != 1 || f[1] != -2 {
			t.Errorf("%s: %v", c[:8], f)
		}
		if s := r.String("", 0, ""); s != "ab" || r.Err() != nil || r.Remaining() != 0 {
			t.Errorf("%s: %q %v", c[:8], s, r.Err())
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		name, payload, why string
		offset             int
		read               func(*cdr.Reader)
	}{
		{"no header", "0001", "has no header", 0, func(*cdr.Reader) {}},
		{"parameter list", "00030000 00", "not plain XCDR1", 0, func(*cdr.Reader) {}},
		{"XCDR2", "00070000 00", "not plain XCDR1", 0, func(*cdr.Reader) {}},
		{"short", "00010000 010203", "4 bytes wanted, 3 are left", 4, func(r *cdr.Reader) { r.Uint32() }},
		{"short behind padding", "00010000 01000000 02", "8 bytes wanted", 5, func(r *cdr.Reader) { r.Uint8(); r.Uint64() }},
		{"string too long", "00010000 ffffffff 61", "4294967295 elements announced", 8, func(r *cdr.Reader) { r.String("", 0, "X.s") }},
		{"string without NUL", "00010000 02000000 6162", "does not end in NUL", 8, func(r *cdr.Reader) { r.String("", 0, "X.s") }},
		{"string over its bound", "00010000 03000000 616200", "at most 1 are allowed", 8, func(r *cdr.Reader) { r.String("", 1, "X.s") }},
		{"sequence too long", "00010000 00000040 00", "1073741824 elements announced", 8, func(r *cdr.Reader) { r.Float64Seq(nil, 0, "X.d") }},
		{"sequence over its bound", "00010000 02000000 0102", "at most 1 are allowed", 8, func(r *cdr.Reader) { r.Uint8Seq(nil, 1, "X.d") }},
		{"padding eats the room", "00010000 01000000 0000000000000000", "8 bytes wanted", 8, func(r *cdr.Reader) { r.Float64Seq(nil, 0, "") }},
	} {
		r := cdr.NewReader(unhex(t, c.payload), cdr.Humble)
		c.read(r)
		var e *cdr.Error
		if !errors.As(r.Err(), &e) || !strings.Contains(e.Why, c.why) || e.Offset != c.offset {
			t.Errorf("%s: %v; want %q at byte %d", c.name, r.Err(), c.why, c.offset)
			continue
		}
		// The first error stays, and nothing more is read.
		first := r.Err()
		if r.Uint8() != 0 || r.String("old", 0, "") != "" || r.Remaining() != 0 || !r.End() || !errors.Is(r.Err(), first) {
			t.Errorf("%s: it reads on after an error", c.name)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	w := cdr.NewWriter(nil, cdr.Iron)
	w.String("abc", 2, "X.name")
	w.Uint8Seq([]byte{1, 2}, 1, "X.data")
	if err := w.Err(); err == nil || !strings.Contains(err.Error(), "X.name") || !strings.Contains(err.Error(), "at most 2") {
		t.Errorf("got %v", err)
	}
	if w.Bytes() != nil {
		t.Error("a payload is given out after an error")
	}
	w.Reset(nil, cdr.Iron)
	w.Absent("X.start", false)
	if w.Err() != nil {
		t.Errorf("after Reset: %v", w.Err())
	}
	w.Absent("X.start", true)
	if err := w.Err(); err == nil || !strings.Contains(err.Error(), "iron has no such field") {
		t.Errorf("got %v", err)
	}
}

func TestTolerates(t *testing.T) {
	r := cdr.NewReader(unhex(t, "00010000 00000000 07000000"), cdr.Humble)
	if s := r.String("old", 0, ""); s != "" || r.Uint32() != 7 || r.Err() != nil {
		t.Errorf("a string of length 0 is empty: %q %v", s, r.Err())
	}
	r.Reset(unhex(t, "00010000 01 000000"), cdr.Humble)
	if !r.Bool() || !r.End() || r.Remaining() != 3 {
		t.Errorf("three bytes of padding are the end; %d remain", r.Remaining())
	}
	r.Reset(unhex(t, "00010000 01 00000000"), cdr.Humble)
	if !r.Bool() || r.End() {
		t.Error("four bytes behind the padding are not the end")
	}
	r.Reset(unhex(t, "00010000"), cdr.Humble)
	if r.Empty(); r.Err() != nil {
		t.Errorf("an empty structure without its byte: %v", r.Err())
	}
}

func TestBorrowAndReuse(t *testing.T) {
	payload := unhex(t, "00010000 03000000 010203")
	old := make([]byte, 0, 8)
	r := cdr.NewReader(payload, cdr.Humble)
	got := r.Uint8Seq(old, 0, "")
	if &got[:1][0] != &old[:1][0] || !bytes.Equal(got, []byte{1, 2, 3}) {
		t.Errorf("the old memory is not used: %v", got)
	}
	r.Borrow(true)
	r.Reset(payload, cdr.Humble)
	got = r.Uint8Seq(nil, 0, "")
	if &got[0] != &payload[8] || cap(got) != 3 {
		t.Errorf("not the payload's own bytes, or room to write behind them (%d)", cap(got))
	}
	s := cdr.Resize([]string{"a", "b", "c"}[:1], 3)
	if s[1] != "b" || s[2] != "c" {
		t.Errorf("what was there is gone: %q", s)
	}
	if s = cdr.Resize(s, 5); s[0] != "a" || s[2] != "c" || len(s) != 5 {
		t.Errorf("what was there is gone: %q", s)
	}
}

func TestAllocatesNothing(t *testing.T) {
	w, r := new(cdr.Writer), new(cdr.Reader)
	buf := make([]byte, 0, 256)
	floats, name := []float64{1, 2, 3}, "shoulder"
	if n := testing.AllocsPerRun(100, func() {
		w.Reset(buf, cdr.Humble)
		w.String(name, 0, "")
		w.Float64Seq(floats, 0, "")
		r.Reset(w.Bytes(), cdr.Humble)
		name = r.String(name, 0, "")
		floats = r.Float64Seq(floats, 0, "")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestDistro(t *testing.T) {
	for name, want := range map[string]cdr.Distro{"humble": cdr.Humble, "iron": cdr.Iron, "jazzy": cdr.Jazzy, "rolling": cdr.Jazzy, "": cdr.DistroUnknown} {
		if d, ok := cdr.ParseDistro(name); !ok || d != want {
			t.Errorf("%q is %v", name, d)
		}
	}
	if _, ok := cdr.ParseDistro("foxy"); ok {
		t.Error("foxy is accepted")
	}
	if cdr.Humble.String() != "humble" || cdr.DistroUnknown.String() != "unknown" {
		t.Error("names")
	}
}
