package rtps

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// story collects events.
type story struct {
	mu   sync.Mutex
	told []Event
}

func (s *story) add(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, e)
}

func (s *story) kinds() (out []EventKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.told {
		out = append(out, e.Kind)
	}
	return out
}

func watch(t testing.TB, p *Participant) *story {
	t.Helper()
	s := &story{}
	stop := p.Watch(s.add)
	t.Cleanup(stop)
	return s
}

func write(ctx context.Context, t testing.TB, w *Writer, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := w.Write(ctx, payload(100, i), nil); err != nil {
			t.Fatal(err)
		}
	}
}

func ready(ctx context.Context, t testing.TB, w *Writer, n int) {
	t.Helper()
	if err := w.WaitSynced(ctx, n); err != nil {
		t.Fatal(err)
	}
}

func TestKilledPeerExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := soon(t), newHub(1)
		a, _ := h.open(t, Config{})
		b, port := h.open(t, Config{Lease: 5 * time.Second, Name: "b", UserData: []byte("enclave=/;")})
		s := watch(t, a)
		w := makeWriter(t, a, "rt/x", reliable)
		makeReader(t, b, "rt/x", reliable, func(*Sample) {})
		ready(ctx, t, w, 1)
		if q := a.Peers(); len(q) != 1 || q[0].Name != "b" || string(q[0].UserData) != "enclave=/;" || q[0].Lease != 5*time.Second {
			t.Fatalf("%+v", q)
		}
		port.kill()
		time.Sleep(4900 * time.Millisecond)
		if len(a.Peers()) != 1 {
			t.Error("the peer was dropped before its lease ended")
		}
		time.Sleep(3200 * time.Millisecond) // it may have announced itself just before
		synctest.Wait()
		if n, e := len(a.Peers()), len(a.Endpoints()); n != 0 || e != 0 || len(w.Matched()) != 0 {
			t.Errorf("%d peers, %d endpoints, %d matched", n, e, len(w.Matched()))
		}
		want := []EventKind{PeerFound, EndpointFound, Matched, Unmatched, EndpointLost, PeerLost}
		if got := s.kinds(); !slices.Equal(got, want) {
			t.Errorf("events %v, not %v", got, want)
		}
		if err := w.WaitAcked(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := soon(t), newHub(1)
		a, _ := h.open(t, Config{})
		b, _ := h.open(t, Config{})
		s := watch(t, a)
		w := makeWriter(t, a, "rt/x", reliable)
		r := makeReader(t, b, "rt/x", reliable, func(*Sample) {})
		ready(ctx, t, w, 1)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if len(w.Matched()) != 0 || len(a.Peers()) != 1 {
			t.Errorf("%d readers and %d peers after the reader was closed", len(w.Matched()), len(a.Peers()))
		}
		b.Close()
		b.Close()
		time.Sleep(100 * time.Millisecond)
		want := []EventKind{PeerFound, EndpointFound, Matched, Unmatched, EndpointLost, PeerLost}
		if got := s.kinds(); !slices.Equal(got, want) {
			t.Errorf("events %v, not %v", got, want)
		}
		if _, err := b.NewWriter(WriterConfig{Topic: "x", Type: "y"}); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// TestRestart has a peer killed and started again at the same address: the new one takes the old one's place at once.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := soon(t), newHub(1)
		a, _ := h.open(t, Config{})
		w := makeWriter(t, a, "rt/x", QoS{Reliable: true, Depth: 10})
		for life := range 3 {
			h.mu.Lock()
			h.next = 100
			h.mu.Unlock()
			b, port := h.open(t, Config{})
			s := newSink(100)
			makeReader(t, b, "rt/x", reliable, s.take)
			for len(w.Matched()) == 0 || w.Matched()[0].GUID.Prefix() != b.prefix {
				time.Sleep(time.Millisecond)
			}
			ready(ctx, t, w, 1)
			if len(a.Peers()) != 1 || a.Peers()[0].Prefix != b.prefix {
				t.Fatalf("life %d: peers %v", life, a.Peers())
			}
			write(ctx, t, w, 0, 5)
			inOrder(t, s.wait(ctx, t, 5), 5)
			port.kill()
			h.mu.Lock()
			delete(h.ports, port.addr)
			h.mu.Unlock()
		}
	})
}

func TestAddressChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := soon(t), newHub(1)
		a, _ := h.open(t, Config{})
		b, port := h.open(t, Config{Announce: time.Second})
		s := newSink(100)
		makeReader(t, b, "rt/x", reliable, s.take)
		w := makeWriter(t, a, "rt/x", reliable)
		ready(ctx, t, w, 1)
		write(ctx, t, w, 0, 3)
		s.wait(ctx, t, 3)
		port.move()
		write(ctx, t, w, 3, 6) // to where it was
		if err := w.WaitAcked(ctx); err != nil {
			t.Fatal(err)
		}
		inOrder(t, s.wait(ctx, t, 6), 6)
	})
}

func TestLateJoiner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := soon(t), newHub(1)
		a, _ := h.open(t, Config{})
		b, _ := h.open(t, Config{})
		latched := QoS{Reliable: true, TransientLocal: true, Depth: 3}
		w := makeWriter(t, a, "rt/x", latched)
		write(ctx, t, w, 0, 10)
		late, volatile := newSink(100), newSink(100)
		makeReader(t, b, "rt/x", latched, late.take)
		r := makeReader(t, b, "rt/x", QoS{Reliable: true, Depth: 3}, volatile.take)
		ready(ctx, t, w, 2)
		if got := late.wait(ctx, t, 3); !slices.Equal(got, []int{7, 8, 9}) {
			t.Errorf("the late joiner got %v", got)
		}
		write(ctx, t, w, 10, 11)
		if got := volatile.wait(ctx, t, 1); !slices.Equal(got, []int{10}) {
			t.Errorf("the volatile reader got %v", got)
		}
		if _, lost, _ := r.Stats(); lost != 0 {
			t.Errorf("%d counted as lost", lost)
		}
	})
}

// TestBackPressure has a reader that does not take anything: a keep-all writer waits when both sides are full.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := soon(t), newHub(1)
		a, _ := h.open(t, Config{Limits: Limits{Unacknowledged: 10000}})
		b, _ := h.open(t, Config{})
		s, gate := newSink(100), make(chan struct{})
		r, err := b.NewReader(ReaderConfig{Topic: "rt/x", Type: "T", QoS: reliable, Queue: 5}, func(m *Sample) { <-gate; s.take(m) })
		if err != nil {
			t.Fatal(err)
		}
		w := makeWriter(t, a, "rt/x", reliable)
		ready(ctx, t, w, 1)
		var n int
		for ; ; n++ {
			short, cancel := context.WithTimeout(ctx, time.Second)
			_, err := w.Write(short, payload(100, n), nil)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				break
			}
			if err != nil || n > 1000 {
				t.Fatal(n, err)
			}
		}
		if n < 100 || n > 110 { // 10,000 bytes of the writer's, and what the reader took
			t.Errorf("the writer waited after %d samples", n)
		}
		close(gate)
		write(ctx, t, w, n, n+50)
		inOrder(t, s.wait(ctx, t, n+50), n+50)
		if _, lost, dropped := r.Stats(); lost != 0 || dropped != 0 {
			t.Errorf("%d lost, %d dropped", lost, dropped)
		}
	})
}

func TestKeepLastDropsOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := soon(t), newHub(1)
		a, _ := h.open(t, Config{})
		b, _ := h.open(t, Config{})
		s, gate := newSink(100), make(chan struct{})
		r := makeReader(t, b, "rt/x", QoS{Reliable: true, Depth: 4}, func(m *Sample) { <-gate; s.take(m) })
		w := makeWriter(t, a, "rt/x", QoS{Reliable: true, Depth: 4})
		ready(ctx, t, w, 1)
		write(ctx, t, w, 0, 1)
		synctest.Wait() // it is with the function now
		write(ctx, t, w, 1, 10)
		if err := w.WaitAcked(ctx); err != nil {
			t.Fatal(err)
		}
		close(gate)
		if got := s.wait(ctx, t, 5); !slices.Equal(got, []int{0, 6, 7, 8, 9}) {
			t.Errorf("got %v", got)
		}
		if received, lost, dropped := r.Stats(); received != 10 || lost != 0 || dropped != 5 {
			t.Errorf("received %d, lost %d, dropped %d", received, lost, dropped)
		}
	})
}

func TestIdentityAndLifespan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := soon(t), newHub(1)
		a, _ := h.open(t, Config{})
		b, _ := h.open(t, Config{})
		got := make(chan *Sample, 10)
		makeReader(t, b, "rt/x", reliable, func(s *Sample) { s.Keep(); got <- s })
		w := makeWriter(t, a, "rt/x", reliable)
		ready(ctx, t, w, 1)
		related := &SampleIdentity{Writer: b.GUID(), Seq: SeqUnknown}
		for _, n := range []int{100, 5000} { // whole and in pieces
			before := time.Now()
			seq, err := w.Write(ctx, payload(n, n), related)
			if err != nil {
				t.Fatal(err)
			}
			s := <-got
			if s.Related == nil || *s.Related != *related || s.Seq != seq || s.Writer != w.GUID() {
				t.Errorf("%+v", s)
			}
			if !bytes.Equal(s.Payload, payload(n, n)) || s.Source.Sub(before).Abs() > time.Microsecond {
				t.Errorf("payload or source time %v", s.Source.Sub(before))
			}
		}
		// What is kept for late joiners dies after its lifespan.
		old := makeWriter(t, a, "rt/old", QoS{Reliable: true, TransientLocal: true, Depth: 10, Lifespan: time.Second})
		write(ctx, t, old, 0, 3)
		time.Sleep(1500 * time.Millisecond)
		write(ctx, t, old, 3, 4)
		s := newSink(100)
		makeReader(t, b, "rt/old", QoS{Reliable: true, TransientLocal: true, Depth: 10}, s.take)
		if got := s.wait(ctx, t, 1); !slices.Equal(got, []int{3}) {
			t.Errorf("got %v", got)
		}
	})
}

// TestBestEffort loses pieces of large samples: what arrives is whole, in order, and what does not is counted.
func TestBestEffort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := soon(t), newHub(1)
		a, _ := h.open(t, Config{})
		b, _ := h.open(t, Config{})
		s := newSink(100000)
		r := makeReader(t, b, "rt/x", QoS{Depth: 100}, s.take)
		w := makeWriter(t, a, "rt/x", QoS{Depth: 100})
		ready(ctx, t, w, 1)
		time.Sleep(time.Second)
		h.lose(0.005)
		for i := range 100 {
			if _, err := w.Write(ctx, payload(100000, i), nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		got := s.wait(ctx, t, 1)
		received, lost, _ := r.Stats()
		if len(got) < 40 || len(got) > 99 || !slices.IsSorted(got) {
			t.Errorf("%d of 100 came: %v", len(got), got)
		}
		if gap := got[len(got)-1] + 1 - len(got) - got[0]; received != uint64(len(got)) || lost != uint64(gap) {
			t.Errorf("received %d, lost %d of %d", received, lost, gap)
		}
	})
}

func TestMismatch(t *testing.T) {
	for _, c := range []struct {
		name         string
		writer, want QoS
		typ, why     string
	}{
		{"reliability", QoS{}, QoS{Reliable: true}, "T", "best effort"},
		{"durability", QoS{Reliable: true}, QoS{Reliable: true, TransientLocal: true}, "T", "volatile"},
		{"deadline", QoS{Deadline: 2 * time.Second}, QoS{Deadline: time.Second}, "T", "2s"},
		{"liveliness", QoS{}, QoS{Lease: time.Second}, "T", "eternity"},
		{"type", QoS{}, QoS{}, "U", "U"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHub(1)
				a, _ := h.open(t, Config{})
				b, _ := h.open(t, Config{})
				w := makeWriter(t, a, "rt/x", c.writer)
				r, err := b.NewReader(ReaderConfig{Topic: "rt/x", Type: c.typ, QoS: c.want}, func(*Sample) {})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				for _, p := range []*Participant{a, b} {
					m := p.Mismatches()
					if len(m) != 1 || m[0].Policy != c.name || m[0].Topic != "rt/x" || !strings.Contains(m[0].Why, c.why) {
						t.Fatalf("%+v", m)
					}
				}
				if m := a.Mismatches()[0]; m.Ours != w.GUID() || m.Theirs != r.GUID() {
					t.Errorf("%+v", m)
				}
				if len(w.Matched()) != 0 {
					t.Error("matched all the same")
				}
				s := watch(t, a)
				synctest.Wait()
				if k := s.kinds(); !slices.Contains(k, Mismatched) {
					t.Errorf("a new watcher is told %v", k)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if m := a.Mismatches(); len(m) != 0 {
					t.Errorf("after the reader was closed: %+v", m)
				}
			})
		})
	}
}
