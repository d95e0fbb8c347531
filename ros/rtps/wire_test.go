package rtps

import (
	"encoding/hex"
	"slices"
	"testing"
	"time"
)

// TestWire has the bytes of each submessage as the specification draws them (DDSI-RTPS 2.5, section 9.4.5), by hand.
func TestWire(t *testing.T) {
	reader, writer := EntityID{0, 0, 1, 4}, EntityID{0, 0, 2, 3}
	for _, c := range []struct {
		name string
		make func(m *message)
		want string
	}{
		{
			"heartbeat", func(m *message) { m.heartbeat(reader, writer, 1, 1<<32+2, 3, true) },
			"07031c00" + "00000104" + "00000203" + "0000000001000000" + "0100000002000000" + "03000000",
		},
		{
			"acknack", func(m *message) { m.ackNack(reader, writer, 5, &bitset256{1<<31 | 1<<29}, 7, false) },
			"06011c00" + "00000104" + "00000203" + "0000000005000000" + "03000000" + "000000a0" + "07000000",
		},
		{
			"acknack of all", func(m *message) { m.ackNack(reader, writer, 5, &bitset256{}, 7, true) },
			"06031800" + "00000104" + "00000203" + "0000000005000000" + "00000000" + "07000000",
		},
		{
			"gap", func(m *message) { m.gap(reader, writer, 2, 4, &bitset256{}) },
			"08011c00" + "00000104" + "00000203" + "0000000002000000" + "0000000004000000" + "00000000",
		},
		{
			"nackfrag", func(m *message) { m.nackFrag(reader, writer, 2, 9, &bitset256{0, 1 << 31}, 1) },
			"12012400" + "00000104" + "00000203" + "0000000002000000" + "09000000" + "21000000" + "00000000" + "00000080" + "01000000",
		},
		{
			"data", func(m *message) { m.data(reader, writer, &change{seq: 1, payload: []byte{0, 1, 0, 0, 9}}) },
			"15051c00" + "00001000" + "00000104" + "00000203" + "0000000001000000" + "00010000" + "09000000",
		},
		{
			"datafrag", func(m *message) { m.dataFrag(reader, writer, &change{seq: 1, payload: make([]byte, 10)}, 1, 8) },
			"16012400" + "00001c00" + "00000104" + "00000203" + "0000000001000000" + "02000000" + "01000800" + "0a000000" + "00000000",
		},
		{"time", func(m *message) { m.stamp(wireTime{1, 1 << 31}) }, "09010800" + "01000000" + "00000080"},
		{"related", func(m *message) {
			m.data(reader, writer, &change{seq: 1, payload: []byte{0, 1, 0, 0}, related: true, identity: SampleIdentity{GUID{15: 7}, SeqUnknown}})
		}, "15075400" + "00001000" + "00000104" + "00000203" + "0000000001000000" +
			"0f801800" + "00000000000000000000000000000007" + "ffffffff00000000" +
			"83001800" + "00000000000000000000000000000007" + "ffffffff00000000" + "01000000" + "00010000"},
	} {
		var m message
		c.make(&m)
		if got := hex.EncodeToString(m.b); got != c.want {
			t.Errorf("%s\n%s, not\n%s", c.name, got, c.want)
		}
	}
}

// TestBigEndian reads a heartbeat and a parameter list of a machine with the other byte order.
func TestBigEndian(t *testing.T) {
	p, err := open(Config{}, deaf{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b := []byte("RTPS\x02\x02\x01\x0f\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05")
	list := []byte{
		0, 2, 0, 0,
		0, pidMetaUnicast, 0, 24, 0, 0, 0, 1, 0, 0, 0x1c, 0xf2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 9,
		0, pidVendor, 0, 4, 1, 0x0f, 0, 0, 0, pidEntityName, 0, 8, 0, 0, 0, 3, 'h', 'i', 0, 0, 0, pidSentinel, 0, 0,
	}
	b = append(b, subData, flagPayload, 0, byte(20+len(list)), 0, 0, 0, 16)
	b = append(append(b, entitySPDPReader[:]...), entitySPDPWriter[:]...)
	b = append(append(b, 0, 0, 0, 0, 0, 0, 0, 1), list...)
	p.receive(b, newStranger(p, 1).from)
	q := p.Peers()
	if len(q) != 1 || q[0].Name != "hi" || q[0].Vendor != VendorFastDDS || q[0].Addrs[0].String() != "10.0.0.9:7410" || q[0].Lease != 100*time.Second {
		t.Fatalf("%+v", q)
	}
}

func TestTimes(t *testing.T) {
	for _, d := range []time.Duration{1, time.Microsecond, 999999999, time.Second, 5*time.Hour + 1} {
		at := time.Unix(1700000000, 0).Add(d)
		if got := toWire(at).time(); got.Sub(at).Abs() > 1 {
			t.Errorf("%v became %v", at, got)
		}
		w := durationToWire(d)
		var m message
		m.u32(w.sec)
		m.u32(w.frac)
		if got, ok := wireToDuration(true, m.b); !ok || (got-d).Abs() > 1 {
			t.Errorf("%v became %v", d, got)
		}
	}
	if durationToWire(0) != forever {
		t.Error("0 is not infinite")
	}
}

func TestHistory(t *testing.T) {
	var h history
	for seq := int64(1); seq <= 100; seq++ {
		h.push(&change{seq: seq, payload: make([]byte, 3)})
		if h.n > 40 {
			h.pop()
		}
	}
	for _, seq := range []int64{70, 61, 100, 80, 80} {
		h.remove(seq)
	}
	var got []int64
	for seq := int64(0); seq <= 101; seq++ {
		if c := h.find(seq); c != nil {
			got = append(got, c.seq)
		}
	}
	if len(got) != h.n || h.bytes != 3*h.n || slices.Contains(got, 70) || got[0] != 62 || got[len(got)-1] != 99 {
		t.Errorf("%v", got)
	}
	if a, b, c := h.next(1, -1), h.next(70, -1), h.next(100, -1); a != 62 || b != 71 || c != -1 {
		t.Errorf("%d %d %d", a, b, c)
	}
}
