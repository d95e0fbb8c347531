package rtps

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func makeWriter(t testing.TB, p *Participant, topic string, q QoS) *Writer {
	t.Helper()
	w, err := p.NewWriter(WriterConfig{Topic: topic, Type: "T", QoS: q})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func makeReader(t testing.TB, p *Participant, topic string, q QoS, f func(*Sample)) *Reader {
	t.Helper()
	r, err := p.NewReader(ReaderConfig{Topic: topic, Type: "T", QoS: q}, f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func inOrder(t testing.TB, got []int, n int) {
	t.Helper()
	for i, v := range got {
		if v != i {
			t.Fatalf("sample %d came in place of %d", v, i)
		}
	}
	if len(got) != n {
		t.Fatalf("%d samples came, not %d", len(got), n)
	}
}

// TestLoss is in virtual time: what waits for a repair costs none.
func TestLoss(t *testing.T) {
	for _, loss := range []float64{0, 0.01, 0.05, 0.20} {
		for _, c := range []struct{ size, n, fragment int }{{200, 400, 0}, {5000, 100, 0}, {1 << 20, 12, 0}, {1 << 20, 12, 60000}} {
			for _, keepAll := range []bool{true, false} {
				t.Run(fmt.Sprintf("%v/%d in %d/all=%v", loss, c.size, c.fragment, keepAll), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { lossy(t, loss, c.size, c.n, c.fragment, keepAll) })
				})
			}
		}
	}
}

func lossy(t *testing.T, loss float64, size, n, fragment int, keepAll bool) {
	ctx := soon(t)
	h := newHub(uint64(size) + uint64(loss*1000))
	h.loss, h.twice, h.late = loss, loss, loss
	a, _ := h.open(t, Config{Fragment: fragment})
	b, _ := h.open(t, Config{Fragment: fragment})
	s := newSink(size)
	q := QoS{Reliable: true, KeepAll: keepAll, Depth: n}
	makeReader(t, b, "rt/x", q, s.take)
	w := makeWriter(t, a, "rt/x", q)
	if err := w.WaitSynced(ctx, 1); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i := range n {
		if _, err := w.Write(ctx, payload(size, i), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if err := w.WaitAcked(ctx); err != nil {
		t.Fatal(err)
	}
	inOrder(t, s.wait(ctx, t, n), n)
	took := time.Since(start)
	synctest.Wait()
	samples, pieces := w.Resent()
	h.mu.Lock()
	defer h.mu.Unlock()
	t.Logf("%v in virtual time, %d of %d datagrams lost, resent %d samples and %d pieces", took, h.lost, h.sent, samples, pieces)
	if st := b.Stats(); st.Reassembly != 0 || st.Malformed != 0 || st.OverBudget != 0 {
		t.Errorf("%+v", st)
	}
}

// TestFirstSampleAfterSync is the cause of the one sample in sixty, again and again: whether the first sample that is
// written after WaitSynced arrives, whatever was lost before.
func TestFirstSampleAfterSync(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			ctx := soon(t)
			h := newHub(seed)
			h.loss = 0.2
			a, _ := h.open(t, Config{})
			b, _ := h.open(t, Config{})
			s := newSink(0)
			makeReader(t, b, "rt/x", reliable, s.take)
			w := makeWriter(t, a, "rt/x", reliable)
			if err := w.WaitSynced(ctx, 1); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(ctx, payload(100, 0), nil); err != nil {
				t.Fatal(err)
			}
			inOrder(t, s.wait(ctx, t, 1), 1)
		})
	}
}

// TestLossOverSockets drops datagrams with Config.Wire, on both sides.
func TestLossOverSockets(t *testing.T) {
	d, ctx := domain(t), soon(t)
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(1, 2))
	drop := func(Datagram) bool {
		mu.Lock()
		defer mu.Unlock()
		return rng.Float64() >= 0.05
	}
	a, b := openAt(t, Config{Domain: d, Wire: drop}), openAt(t, Config{Domain: d})
	s := newSink(1 << 20)
	makeReader(t, b, "rt/x", reliable, s.take)
	w := makeWriter(t, a, "rt/x", reliable)
	if err := w.WaitSynced(ctx, 1); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := w.Write(ctx, payload(1<<20, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WaitAcked(ctx); err != nil {
		t.Fatal(err)
	}
	inOrder(t, s.wait(ctx, t, 20), 20)
}
