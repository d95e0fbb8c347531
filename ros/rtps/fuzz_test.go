package rtps

import (
	"testing"
	"testing/synctest"
	"time"
)

// FuzzDatagram gives a participant datagrams of a stranger that it knows and whose endpoints it is matched with. It must
// neither panic nor keep more than its limits.
func FuzzDatagram(f *testing.F) {
	s := stranger{prefix: newStranger(nil, 0).prefix}
	writer, reader := EntityID{0, 0, 1, kindWriter}, EntityID{0, 0, 2, kindReader}
	ours := EntityID{0, 0, 2, kindWriter}
	seed := func(g func(m *message)) {
		s.m.start(s.prefix)
		g(&s.m)
		f.Add(append([]byte(nil), s.m.b...))
	}
	c := &change{seq: 1, payload: payload(100, 1), related: true, identity: SampleIdentity{Seq: SeqUnknown}}
	big := &change{seq: 2, payload: payload(3000, 1)}
	seed(func(m *message) {
		m.dest(GUIDPrefix{})
		m.stamp(toWire(time.Now()))
		m.data(EntityID{}, writer, c)
		m.heartbeat(EntityID{}, writer, 1, 5, 1, false)
	})
	seed(func(m *message) {
		m.dataFrag(EntityID{}, writer, big, 0, 1000)
		m.dataFrag(EntityID{}, writer, big, 2, 1000)
	})
	seed(func(m *message) { m.gap(EntityID{}, writer, 1, 3, &bitset256{1 << 31, 5}) })
	seed(func(m *message) { m.ackNack(reader, ours, 1, &bitset256{7 << 29}, 1, false) })
	seed(func(m *message) { m.nackFrag(reader, ours, 1, 1, &bitset256{7 << 29}, 1) })
	seed(func(m *message) {
		m.data(EntityID{}, writer, &change{seq: 3, dispose: true, payload: []byte{0, 3, 0, 0, 1, 0, 0, 0}})
	})
	for _, l := range []*plist{announcementSeed(s.prefix), endpointSeed(s.prefix)} {
		b := l.done()
		seed(func(m *message) { m.data(entitySPDPReader, entitySPDPWriter, &change{seq: 1, payload: b}) })
		seed(func(m *message) { m.data(entityPubReader, entityPubWriter, &change{seq: 5, payload: b}) })
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) { fuzzDatagram(t, b) })
	})
}

func fuzzDatagram(t *testing.T, b []byte) {
	p, err := open(Config{Limits: Limits{Peers: 4, Endpoints: 8, Sample: 1 << 16, Reassembly: 1 << 18, Unacknowledged: 1 << 18}}, deaf{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	makeReader(t, p, "rt/x", reliable, func(*Sample) {})
	w := makeWriter(t, p, "rt/x", reliable)
	write(t.Context(), t, w, 0, 2)
	s := newStranger(p, 0)
	s.announce()
	s.endpoint(1, true)
	s.endpoint(2, false)
	for range 2 {
		p.receive(append([]byte(nil), b...), s.from)
	}
	time.Sleep(3 * time.Second)
	if n := p.Stats().Reassembly; n < 0 || n > 4<<18 {
		t.Errorf("%d bytes", n)
	}
}

func announcementSeed(prefix GUIDPrefix) *plist {
	l := newPlist()
	g := prefix.GUID(entityParticipant)
	l.raw(pidParticipantGUID, g[:])
	l.words(pidLease, 10, 0)
	l.text(pidEntityName, "name")
	l.userData([]byte("enclave=/;"))
	l.words(pidBuiltinEndpoints, builtinSet)
	l.raw(pidMetaUnicast, []byte{1, 0, 0, 0, 0xf2, 0x1c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2})
	return l
}

func endpointSeed(prefix GUIDPrefix) *plist {
	l := newPlist()
	g := prefix.GUID(EntityID{0, 0, 3, kindWriter})
	l.raw(pidEndpointGUID, g[:])
	l.text(pidTopic, "rt/x")
	l.text(pidType, "T")
	l.words(pidReliability, 2, 0, 0)
	l.words(pidDurability, 1)
	l.words(pidHistory, 0, 10)
	l.words(pidLiveliness, 0, 1, 0)
	l.words(pidDeadline, 1, 0)
	l.words(pidPartition, 1, 2, 'a')
	l.words(pidRepresentation, 1, 0)
	return l
}

// FuzzParameterList reads any bytes as an announcement of a participant and of an endpoint.
func FuzzParameterList(f *testing.F) {
	f.Add(announcementSeed(GUIDPrefix{1}).done())
	f.Add(endpointSeed(GUIDPrefix{1}).done())
	f.Add([]byte{0, 2, 0, 0, 0, pidTopic, 0, 8, 0, 0, 0, 4, 'a', 'b', 'c', 0, 0, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		d, ok := parseSPDP(b)
		if ok && (len(d.meta) == 0 || len(d.meta) > mostLocators || len(d.info.Name) > longestText) {
			t.Errorf("%+v", d)
		}
		e, ok := parseSEDP(b)
		if ok && (e.GUID == GUID{} || len(e.Topic) > longestText || len(e.UserData) > 4096 || len(e.partitions) > 16) {
			t.Errorf("%+v", e)
		}
	})
}

// FuzzSet reads any bytes as a set, and writes what it read.
func FuzzSet(f *testing.F) {
	f.Add([]byte{5, 0, 0, 0, 0, 0, 0, 0xf8}, true)
	f.Add([]byte{0, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8}, false)
	f.Fuzz(func(t *testing.T, b []byte, little bool) {
		var s, again bitset256
		n := order(little).set(b, &s)
		if n == 0 {
			return
		}
		var m message
		m.bits(&s)
		if k := order(true).set(m.b, &again); k != len(m.b) || again != s {
			t.Errorf("%v became %v", s, again)
		}
	})
}
