package rtps

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSameGUIDAgain kills a participant and starts it again, by another program's memory and with the GUID of the first, as
// a microcontroller does when its power comes back. Within seconds both sides get everything again.
func TestSameGUIDAgain(t *testing.T) {
	for name, before := range map[string]int{"it had said much": 500, "it had said little": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, h := soon(t), newHub(3)
				again := Config{prefix: GUIDPrefix{1, 2, 3}}
				var log lines
				a, _ := h.open(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
				latched, loose := QoS{Reliable: true, TransientLocal: true, Depth: 1}, QoS{Depth: 10}
				state, sensor := newSink(100), newSink(100)
				makeReader(t, a, "rt/state", reliable, state.take)
				makeReader(t, a, "rt/sensor", loose, sensor.take)
				command := makeWriter(t, a, "rt/command", latched)
				write(ctx, t, command, 7, 8)

				live := func(from, to int) (*port, *sink) {
					b, place := h.open(t, again)
					words := newSink(100)
					makeReader(t, b, "rt/command", latched, words.take)
					w, l := makeWriter(t, b, "rt/state", reliable), makeWriter(t, b, "rt/sensor", loose)
					ready(ctx, t, w, 1)
					ready(ctx, t, l, 1)
					write(ctx, t, w, from, to)
					for i := from; i < to; i++ {
						write(ctx, t, l, i, i+1)
						time.Sleep(time.Second / 100)
					}
					return place, words
				}
				place, words := live(0, before)
				words.wait(ctx, t, 1)
				state.wait(ctx, t, before)
				sensor.wait(ctx, t, before)
				place.kill()
				time.Sleep(2 * time.Second)
				start := time.Now()
				_, words = live(1000, 1300)
				if got := words.wait(ctx, t, 1); got[0] != 7 {
					t.Errorf("the new one gets %v", got)
				}
				got := state.wait(ctx, t, before+300)
				for i, n := range got[before:] {
					if n != 1000+i {
						t.Fatalf("after %d samples %d came", i, n)
					}
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				got = sensor.wait(ctx, t, before+1)
				if late := got[len(got)-1]; late != 1299 {
					t.Errorf("of what is best effort the last is %d", late)
				}
				if !strings.Contains(log.String(), "started anew") && before > 2 {
					t.Error("nobody was told")
				}
			})
		})
	}
}

// TestForgottenByOneSide cuts the network for so long that one side gives up the other, and the other does not notice.
func TestForgottenByOneSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := soon(t), newHub(5)
		a, _ := h.open(t, Config{Lease: time.Minute})
		b, _ := h.open(t, Config{Lease: 5 * time.Second})
		latched := QoS{Reliable: true, TransientLocal: true, Depth: 2}
		state, words, chart := newSink(100), newSink(100), newSink(100)
		makeReader(t, a, "rt/state", reliable, state.take)
		makeReader(t, a, "rt/map", latched, chart.take)
		makeReader(t, b, "rt/words", reliable, words.take)
		ws, wm, ww := makeWriter(t, b, "rt/state", reliable), makeWriter(t, b, "rt/map", latched), makeWriter(t, a, "rt/words", reliable)
		for _, w := range []*Writer{ws, wm, ww} {
			ready(ctx, t, w, 1)
		}
		write(ctx, t, ws, 0, 10)
		write(ctx, t, wm, 0, 10)
		write(ctx, t, ww, 0, 10)
		state.wait(ctx, t, 10)
		h.lose(1)
		time.Sleep(9 * time.Second)
		if len(a.Peers()) != 0 || len(b.Peers()) != 1 {
			t.Fatalf("%d and %d peers", len(a.Peers()), len(b.Peers()))
		}
		before := len(chart.wait(ctx, t, 2))
		h.lose(0)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := chart.wait(ctx, t, before+2)[before:]; got[0] != 8 || got[1] != 9 {
			t.Errorf("of what is kept %v came", got)
		}
		write(ctx, t, ws, 10, 20)
		write(ctx, t, ww, 10, 20)
		inOrder(t, state.wait(ctx, t, 20), 20)
		inOrder(t, words.wait(ctx, t, 20), 20)
		if err := ws.WaitAcked(ctx); err != nil {
			t.Error(err)
		}
		if err := ww.WaitAcked(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestDisorderIsNoRebirth holds back and repeats datagrams of a participant that lives.
func TestDisorderIsNoRebirth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := soon(t), newHub(4)
		h.loss, h.twice, h.late = 0.05, 0.5, 0.5
		a, _ := h.open(t, Config{})
		b, _ := h.open(t, Config{})
		s, got := watch(t, a), newSink(100)
		makeReader(t, a, "rt/x", reliable, got.take)
		w := makeWriter(t, b, "rt/x", reliable)
		ready(ctx, t, w, 1)
		for i := range 1000 {
			write(ctx, t, w, i, i+1)
			time.Sleep(5 * time.Millisecond)
		}
		inOrder(t, got.wait(ctx, t, 1000), 1000)
		for _, k := range s.kinds() {
			if k == PeerLost || k == Unmatched {
				t.Errorf("event %v", k)
			}
		}
	})
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
