package feetech

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The bytes of the wire, both ways. The first three are worked out in the reference of the robot; the sums of the others
// were done by hand, the last one's in decimal: 254+32+131+42+6 + 4*(8+232+3) + 1+2+3+4 = 1447 = 5*256+167, 255-167 = 88.
func TestVectors(t *testing.T) {
	for _, v := range []struct {
		name, wire string
		p          Packet
	}{
		{"ping 20", "FF FF 14 02 01 E8", Packet{20, 1, nil}},
		{"read position of 20", "FF FF 14 04 02 38 02 AB", Packet{20, 2, []byte{56, 2}}},
		{"torque off 21", "FF FF 15 04 03 28 00 BB", Packet{21, 3, []byte{40, 0}}},
		{"answer of 20 to a ping", "FF FF 14 02 00 E9", Packet{20, 0, nil}},
		{"position 2048 of 20, overload", "FF FF 14 04 20 00 08 BF", Packet{20, 32, []byte{0, 8}}},
		{"parameters that look like a header", "FF FF 16 05 02 FF FF 14 D0", Packet{22, 2, []byte{255, 255, 20}}},
		{
			"four to 2048 at 1000 ticks/s",
			"FF FF FE 20 83 2A 06 01 00 08 00 00 E8 03 02 00 08 00 00 E8 03 03 00 08 00 00 E8 03 04 00 08 00 00 E8 03 58",
			Packet{254, 131, []byte{42, 6, 1, 0, 8, 0, 0, 232, 3, 2, 0, 8, 0, 0, 232, 3, 3, 0, 8, 0, 0, 232, 3, 4, 0, 8, 0, 0, 232, 3}},
		},
	} {
		t.Run(v.name, func(t *testing.T) {
			wire := unhex(t, v.wire)
			if got := Encode(v.p); !bytes.Equal(got, wire) {
				t.Errorf("encoded % X", got)
			}
			var d Decoder
			for i, b := range wire { // one byte at a time: nothing before the last
				d.Feed([]byte{b})
				p, ok := d.Next()
				if ok != (i == len(wire)-1) {
					t.Fatalf("after %d bytes: %v", i+1, ok)
				}
				if ok && (p.ID != v.p.ID || p.Code != v.p.Code || !bytes.Equal(p.Params, v.p.Params)) {
					t.Errorf("decoded %+v", p)
				}
			}
			if d.badSums != 0 || d.resyncs != 0 {
				t.Errorf("%+v", d)
			}
		})
	}
}

// Whatever stands before a packet, it is found; and what is none is never taken for one.
func TestResync(t *testing.T) {
	whole := "FF FF 14 04 00 00 08 DF"
	for _, v := range []struct {
		name, wire    string
		badSums, runs uint64
	}{
		{"nothing", whole, 0, 0},
		{"noise", "00 13 37" + whole, 0, 1},
		{"one more FF", "FF" + whole, 0, 1},
		{"many FF", "FF FF FF FF FF" + whole, 0, 1},
		{"a packet that broke off", "FF FF 14 04 00" + whole, 1, 1},
		{"an id that nobody has", "FF FF FF 02 00" + whole, 0, 1},
		{"too short a length", "FF FF 14 01 EA" + whole, 0, 1},
		{"too long a length", "FF FF 14 FF 00 00 08 DF" + whole, 0, 1},
		{"a flipped bit", "FF FF 14 04 00 00 09 DF" + whole, 1, 1},
		{"two runs", "01" + "FF FF 14 02 00 E9" + "02" + whole, 0, 2},
	} {
		t.Run(v.name, func(t *testing.T) {
			var d Decoder
			d.Feed(unhex(t, v.wire))
			var last Packet
			for p, ok := d.Next(); ok; p, ok = d.Next() {
				last = p
			}
			if last.ID != 20 || !bytes.Equal(last.Params, []byte{0, 8}) {
				t.Errorf("got %+v", last)
			}
			if d.badSums != v.badSums || d.resyncs != v.runs {
				t.Errorf("%d bad sums, %d runs of skipped bytes", d.badSums, d.resyncs)
			}
		})
	}
}

// FuzzDecoder: nothing that comes in panics or grows without end; every packet that comes out stood in what came in, in
// order, with its sum; and how the bytes were cut into pieces makes no difference.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte("\xff\xff\x14\x04\x00\x00\x08\xdf\xff\xff\x15\x02\x00\xe8"), 3)
	f.Add([]byte("\xff\xff\xff\xff\xff\x02\x00\xff\xff\x60"), 1)
	f.Add(bytes.Repeat([]byte{0xff, 0xff, 0x14, 0x62}, 60), 7)
	f.Fuzz(func(t *testing.T, in []byte, piece int) {
		piece = max(1, min(piece, 64))
		var whole, pieces Decoder
		whole.Feed(in)
		var want, got []Packet
		for p, ok := whole.Next(); ok; p, ok = whole.Next() {
			want = append(want, p)
		}
		for c := range slices.Chunk(in, piece) {
			pieces.Feed(c)
			for p, ok := pieces.Next(); ok; p, ok = pieces.Next() {
				got = append(got, p)
			}
			if len(pieces.buf) > maxParams+6+len(c) {
				t.Fatalf("%d bytes wait", len(pieces.buf))
			}
		}
		if !slices.EqualFunc(want, got, func(a, b Packet) bool { return bytes.Equal(Encode(a), Encode(b)) }) {
			t.Errorf("whole %+v, in pieces of %d %+v", want, piece, got)
		}
		rest := in
		for _, p := range want {
			at := bytes.Index(rest, Encode(p))
			if at < 0 {
				t.Fatalf("%+v did not come in", p)
			}
			rest = rest[at+6+len(p.Params):]
		}
	})
}
