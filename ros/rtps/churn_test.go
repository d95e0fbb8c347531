package rtps

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// world is participants that come, go, die, move, and make and close endpoints at random.
type world struct {
	t       *testing.T
	h       *hub
	rng     *rand.Rand
	members []*member
}

type member struct {
	p       *Participant
	port    *port
	writers map[string]*Writer
	readers map[string]*Reader
	wrong   atomic.Int64 // samples out of order
}

func (w *world) join() {
	p, port := w.h.open(w.t, Config{Announce: time.Second, Lease: 5 * time.Second})
	w.members = append(w.members, &member{p: p, port: port, writers: map[string]*Writer{}, readers: map[string]*Reader{}})
}

func (w *world) leave(i int, kill bool) {
	m := w.members[i]
	w.members = append(w.members[:i], w.members[i+1:]...)
	if kill {
		m.port.kill()
	}
	m.p.Close()
}

func (m *member) toggleWriter(t *testing.T, topic string) {
	if w := m.writers[topic]; w != nil {
		delete(m.writers, topic)
		w.Close()
		return
	}
	m.writers[topic] = makeWriter(t, m.p, topic, reliable)
}

func (m *member) toggleReader(t *testing.T, topic string) {
	if r := m.readers[topic]; r != nil {
		delete(m.readers, topic)
		r.Close()
		return
	}
	last := map[GUID]uint32{}
	m.readers[topic] = makeReader(t, m.p, topic, QoS{Reliable: true, Depth: 1000}, func(s *Sample) {
		n := binary.LittleEndian.Uint32(s.Payload[4:])
		if n <= last[s.Writer] {
			m.wrong.Add(1)
		}
		last[s.Writer] = n
	})
}

func (w *world) step(n int) {
	topic := fmt.Sprintf("rt/%d", w.rng.IntN(3))
	i := w.rng.IntN(len(w.members))
	m := w.members[i]
	switch w.rng.IntN(12) {
	case 0:
		if len(w.members) < 5 {
			w.join()
		}
	case 1:
		if len(w.members) > 2 {
			w.leave(i, w.rng.IntN(2) == 0)
		}
	case 2:
		m.port.move()
	case 3, 4:
		m.toggleWriter(w.t, topic)
	case 5, 6:
		m.toggleReader(w.t, topic)
	default:
		for _, wr := range m.writers {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_, _ = wr.Write(ctx, payload(100+w.rng.IntN(20000), n+1), nil)
			cancel()
		}
	}
}

// TestChurn ends with exactly the matches that there should be, and every sample in order.
func TestChurn(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, h: newHub(seed), rng: rand.New(rand.NewPCG(seed, 7))}
				w.h.loss, w.h.twice, w.h.late = 0.05, 0.02, 0.1
				for range 3 {
					w.join()
				}
				for n := range 600 {
					w.step(n)
					time.Sleep(time.Duration(w.rng.IntN(300)) * time.Millisecond)
				}
				w.h.lose(0)
				time.Sleep(30 * time.Second) // leases end, the lost is said again
				synctest.Wait()
				w.check()
			})
		})
	}
}

func (w *world) check() {
	for _, m := range w.members {
		if n := m.wrong.Load(); n > 0 {
			w.t.Errorf("%d samples came out of order or twice", n)
		}
		if n := len(m.p.Peers()); n != len(w.members)-1 {
			w.t.Errorf("%d peers are known of %d", n, len(w.members)-1)
		}
		for topic, wr := range m.writers {
			want := 0
			for _, o := range w.members {
				if o != m && o.readers[topic] != nil {
					want++
				}
			}
			if got := len(wr.Matched()); got != want {
				w.t.Errorf("a writer of %s has %d readers, not %d", topic, got, want)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			if err := wr.WaitAcked(ctx); err != nil {
				w.t.Error(err)
			}
			cancel()
		}
		if n := m.p.Stats().Reassembly; n != 0 {
			w.t.Errorf("%d bytes are in reassembly", n)
		}
	}
}
