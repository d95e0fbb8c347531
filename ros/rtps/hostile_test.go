package rtps

import (
	"encoding/binary"
	"math"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// deaf is a carrier that sends nothing and hears nothing.
type deaf struct{}

func (deaf) send([]byte, netip.AddrPort) {}
func (deaf) multicast([]byte)            {}
func (deaf) locators() (meta, user []netip.AddrPort) {
	a := netip.MustParseAddr("10.0.0.1")
	return []netip.AddrPort{netip.AddrPortFrom(a, 7410)}, []netip.AddrPort{netip.AddrPortFrom(a, 7411)}
}
func (deaf) local(netip.Addr) (ours, linked bool)           { return false, true }
func (deaf) rescan() bool                                   { return false }
func (deaf) index() int                                     { return 0 }
func (deaf) listen(func(b []byte, from netip.AddrPort) int) {}
func (deaf) nap(d time.Duration)                            { time.Sleep(d) }
func (deaf) close()                                         {}

// stranger makes datagrams by hand.
type stranger struct {
	p      *Participant
	prefix GUIDPrefix
	from   netip.AddrPort
	seq    [2]int64 // of its announcements of writers and readers
	m      message
}

func newStranger(p *Participant, n int) *stranger {
	s := &stranger{p: p, prefix: GUIDPrefix{9, 9}}
	binary.BigEndian.PutUint32(s.prefix[4:], uint32(n+1))
	s.from = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}), 7410)
	return s
}

func (s *stranger) say(f func(m *message)) {
	s.m.start(s.prefix)
	f(&s.m)
	s.p.receive(s.m.b, s.from)
}

func (s *stranger) announce() {
	l := newPlist()
	g := s.prefix.GUID(entityParticipant)
	l.raw(pidParticipantGUID, g[:])
	l.words(pidBuiltinEndpoints, builtinSet)
	l.words(pidLease, 10, 0)
	l.locator(pidMetaUnicast, s.from)
	l.locator(pidDefaultUnicast, netip.AddrPortFrom(s.from.Addr(), s.from.Port()+1))
	s.say(func(m *message) { m.data(entitySPDPReader, entitySPDPWriter, &change{seq: 1, payload: l.done()}) })
}

// endpoint announces a reader or writer of topic rt/x.
func (s *stranger) endpoint(n int, writer bool) GUID {
	e := EntityID{byte(n >> 16), byte(n >> 8), byte(n), kindReader}
	to, by, k := entitySubReader, entitySubWriter, 1
	if writer {
		e[3] = kindWriter
		to, by, k = entityPubReader, entityPubWriter, 0
	}
	g := s.prefix.GUID(e)
	l := newPlist()
	l.raw(pidEndpointGUID, g[:])
	l.text(pidTopic, "rt/x")
	l.text(pidType, "T")
	l.words(pidReliability, 2, 0, 0)
	s.seq[k]++
	s.say(func(m *message) { m.data(to, by, &change{seq: s.seq[k], payload: l.done()}) })
	return g
}

// alone is a participant with a reliable reader and writer of rt/x, and a stranger that is matched with both.
func alone(t *testing.T, c Config, f func(*Sample)) (p *Participant, r *Reader, w *Writer, s *stranger, theirWriter, theirReader GUID) {
	t.Helper()
	p, err := open(c, deaf{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	r = makeReader(t, p, "rt/x", reliable, f)
	w = makeWriter(t, p, "rt/x", reliable)
	s = newStranger(p, 0)
	s.announce()
	theirWriter, theirReader = s.endpoint(1, true), s.endpoint(2, false)
	synctest.Wait()
	if len(r.Matched()) != 1 || len(w.Matched()) != 1 {
		t.Fatalf("%d and %d are matched", len(r.Matched()), len(w.Matched()))
	}
	return p, r, w, s, theirWriter, theirReader
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// quickly fails if f takes long: a loop over what a stranger's numbers span would never end.
func quickly(t *testing.T, what string, f func()) {
	t.Helper()
	start := processTime()
	f()
	if d := processTime() - start; d > 5*time.Second {
		t.Errorf("%s took %v", what, d)
	}
}

func TestHugeRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, w, s, tw, tr := alone(t, Config{}, func(*Sample) {})
		we, re := tw.Entity(), tr.Entity()
		all := bitset256{}
		for i := range all {
			all[i] = math.MaxUint32
		}
		quickly(t, "a heartbeat of 2^60", func() {
			s.say(func(m *message) { m.heartbeat(EntityID{}, we, 1, 1<<60, 1, false) })
			s.say(func(m *message) { m.heartbeat(EntityID{}, we, 1<<59, 1<<60, 2, false) })
			s.say(func(m *message) { m.heartbeat(EntityID{}, we, 1<<61, 1<<62, 3, false) })
			s.say(func(m *message) { m.heartbeat(EntityID{}, we, math.MinInt64, math.MaxInt64, 4, false) })
		})
		quickly(t, "a gap of 2^60", func() {
			s.say(func(m *message) { m.gap(EntityID{}, we, 1, 1<<60, &all) })
			s.say(func(m *message) { m.gap(EntityID{}, we, 1<<61+5, 1<<62, &all) })
			s.say(func(m *message) { m.gap(EntityID{}, we, 1<<62, math.MaxInt64, &all) })
		})
		quickly(t, "acknowledgements of what was never written", func() {
			for i, base := range []int64{0, 1, 1 << 60, math.MaxInt64, math.MinInt64} {
				s.say(func(m *message) { m.ackNack(re, w.id, base, &all, uint32(i+1), false) })
				s.say(func(m *message) { m.nackFrag(re, w.id, base, math.MaxUint32, &all, uint32(i+1)) })
				s.say(func(m *message) { m.nackFrag(re, w.id, base, 0, &all, uint32(i+1)) })
			}
		})
		for seq := int64(1); seq < 1<<62; seq *= 2 {
			s.say(func(m *message) { m.data(r.id, we, &change{seq: seq, payload: payload(100, 1)}) })
		}
		// A writer of ours goes on, whatever was acknowledged.
		write(t.Context(), t, w, 0, 5)
		time.Sleep(10 * time.Second)
		if st := p.Stats(); st.Reassembly > 1<<20 {
			t.Errorf("%+v", st)
		}
	})
}

// TestEndlessFragments begins samples without end, of absurd sizes, and never finishes one.
func TestEndlessFragments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget = 8 << 20
		p, _, _, s, tw, _ := alone(t, Config{Limits: Limits{Reassembly: budget, Sample: 4 << 20}}, func(*Sample) {})
		before := heap()
		frag := func(seq int64, total uint32, size uint16, first uint32, body int) {
			s.say(func(m *message) {
				at := m.open(subDataFrag, 0)
				m.u16(0)
				m.u16(28)
				m.entity(EntityID{})
				m.entity(tw.Entity())
				m.seq(seq)
				m.u32(first)
				m.u16(1)
				m.u16(size)
				m.u32(total)
				m.b = append(m.b, make([]byte, body)...)
				m.shut(at)
			})
		}
		for i := range int64(2000) {
			frag(i+1, 4<<20, 1000, uint32(i%4000+1), 1000)
			frag(i+1, 1<<20, 1, 1, 1)
			frag(i+1, math.MaxUint32, 65535, 1, 1000)
			frag(i+1, 4<<20, 1000, math.MaxUint32, 1000)
			frag(i+1, 1000, 0, 1, 1000)
			frag(i+1, 0, 1000, 1, 1000)
		}
		st := p.Stats()
		if st.Reassembly > budget || st.OverBudget == 0 || st.Malformed == 0 {
			t.Errorf("%+v", st)
		}
		if grown := int64(heap()) - int64(before); grown > 2*budget {
			t.Errorf("%d bytes are kept", grown)
		}
		time.Sleep(15 * time.Second) // its lease ends
		synctest.Wait()
		if st := p.Stats(); st.Reassembly != 0 || len(p.Peers()) != 0 {
			t.Errorf("after its lease: %+v, %d peers", st, len(p.Peers()))
		}
	})
}

func TestCrowds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, w, s, _, _ := alone(t, Config{Limits: Limits{Peers: 100, Endpoints: 1000}}, func(*Sample) {})
		before := heap()
		quickly(t, "ten thousand endpoints of one participant", func() {
			for i := range 10000 {
				s.endpoint(10+i, i%2 == 0)
				if i%100 == 0 {
					synctest.Wait()
				}
			}
			synctest.Wait()
		})
		if n, m := len(p.Endpoints()), len(r.Matched())+len(w.Matched()); n != 1000 || m != 1000 {
			t.Errorf("%d endpoints, %d matched", n, m)
		}
		quickly(t, "a thousand participants", func() {
			for i := range 1000 {
				newStranger(p, 1+i).announce()
			}
		})
		if n := len(p.Peers()); n != 100 {
			t.Errorf("%d peers", n)
		}
		if st := p.Stats(); st.Refused < 9000+900 {
			t.Errorf("%+v", st)
		}
		if grown := int64(heap()) - int64(before); grown > 32<<20 {
			t.Errorf("%d bytes are kept", grown)
		}
		quickly(t, "the goodbyes", func() {
			time.Sleep(time.Minute)
			synctest.Wait()
		})
		if n, m := len(p.Peers()), len(p.Endpoints()); n != 0 || m != 0 {
			t.Errorf("%d peers and %d endpoints are left", n, m)
		}
	})
}

// TestHeavyAnnouncements fills every field of announcements as far as it goes.
func TestHeavyAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := open(Config{}, deaf{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		long := strings.Repeat("x", 1000)
		var parts plist
		parts.u32(16)
		for range 16 {
			parts.u32(uint32(len(long)))
			parts.b = append(parts.b, long...)
		}
		before := heap()
		for i := range 20 {
			s := newStranger(p, i)
			s.announce()
			for n := range 1000 {
				g := s.prefix.GUID(EntityID{byte(n >> 8), byte(n), 0, kindWriter})
				l := newPlist()
				l.raw(pidEndpointGUID, g[:])
				l.text(pidTopic, long)
				l.text(pidType, long)
				l.raw(pidPartition, parts.b)
				l.userData(make([]byte, 4096))
				s.seq[0]++
				s.say(func(m *message) { m.data(entityPubReader, entityPubWriter, &change{seq: s.seq[0], payload: l.done()}) })
				if n%100 == 0 {
					synctest.Wait()
				}
			}
		}
		synctest.Wait()
		if grown := int64(heap()) - int64(before); grown > 100<<20 {
			t.Errorf("%d MB are kept", grown>>20)
		}
		if n := len(p.Endpoints()); n < 1000 || p.Stats().Refused == 0 {
			t.Errorf("%d endpoints, %+v", n, p.Stats())
		}
		time.Sleep(time.Minute) // the leases end
		synctest.Wait()
		if len(p.Peers()) != 0 || p.weight != 0 {
			t.Errorf("%d peers, and %d bytes that nobody has", len(p.Peers()), p.weight)
		}
		// Who is ordinary finds room.
		s := newStranger(p, 100)
		s.announce()
		s.endpoint(1, true)
		synctest.Wait()
		if n := len(p.Endpoints()); n != 1 {
			t.Errorf("%d endpoints", n)
		}
	})
}

// TestImpostor announces an endpoint in another's name, and says goodbye for it.
func TestImpostor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, _, s, tw, _ := alone(t, Config{}, func(*Sample) {})
		other := newStranger(p, 1)
		other.announce()
		l := newPlist()
		l.raw(pidEndpointGUID, tw[:])
		other.say(func(m *message) {
			m.data(entityPubReader, entityPubWriter, &change{seq: 1, dispose: true, key: tw, payload: l.done()})
		})
		synctest.Wait()
		if len(r.Matched()) != 1 || len(p.Peers()) != 2 {
			t.Errorf("%d matched, %d peers", len(r.Matched()), len(p.Peers()))
		}
		_ = s
	})
}

// TestPreemptiveAckIsNoSync is how Cyclone asks for a first heartbeat, which may not have arrived: see Writer.sync.
func TestPreemptiveAckIsNoSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, w, s, _, tr := alone(t, Config{}, func(*Sample) {})
		ack := func(base int64, count uint32) {
			s.say(func(m *message) { m.ackNack(tr.Entity(), w.id, base, &bitset256{}, count, false) })
		}
		ack(1, 1)
		if w.Synced(tr) {
			t.Error("synced by an acknowledgement that answers nothing")
		}
		ack(1, 1)
		if w.Synced(tr) {
			t.Error("synced by a copy of it")
		}
		ack(1, 2)
		if !w.Synced(tr) {
			t.Error("not synced by an answer")
		}
	})
}

func (deaf) sendTrain([]byte, int, netip.AddrPort) bool { return false }
