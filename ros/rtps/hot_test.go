package rtps

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// TestNoAllocations writes and reads small samples, whole and in pieces: nothing is allocated once the buffers are there.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, size := range []int{48, 1000, 200000} {
		for _, q := range []QoS{{Reliable: true, Depth: 10}, {Depth: 10}} {
			d := domain(t)
			a, b := openAt(t, Config{Domain: d, Announce: time.Hour}), openAt(t, Config{Domain: d, Announce: time.Hour})
			got := make(chan int64, 1)
			makeReader(t, b, "rt/x", q, func(s *Sample) { got <- s.Seq })
			w := makeWriter(t, a, "rt/x", q)
			ctx := soon(t)
			ready(ctx, t, w, 1)
			data := payload(size, 0)
			one := func() {
				if _, err := w.Write(context.Background(), data, nil); err != nil {
					t.Fatal(err)
				}
				select {
				case <-got:
				case <-ctx.Done():
					t.Fatal("nothing came")
				}
			}
			for heard := false; !heard; { // a best effort writer cannot know whether the reader knows it
				if _, err := w.Write(ctx, data, nil); err != nil {
					t.Fatal(err)
				}
				select {
				case <-got:
					heard = true
				case <-time.After(100 * time.Millisecond):
				}
			}
			for range 200 {
				one()
			}
			if n := testing.AllocsPerRun(500, one); n > 0 {
				t.Errorf("%d bytes, %+v: %v allocations for each", size, q, n)
			}
			a.Close()
			b.Close()
		}
	}
}

func BenchmarkPair(b *testing.B) {
	for _, c := range [][2]int{{48, 0}, {1 << 20, 0}, {1 << 20, 1344}} {
		size := c[0]
		b.Run(fmt.Sprintf("%d in %d", size, c[1]), func(b *testing.B) {
			d := domain(b)
			x, y := openAt(b, Config{Domain: d, Fragment: c[1]}), openAt(b, Config{Domain: d})
			start := processTime()
			defer func() { b.ReportMetric(float64(processTime()-start)/float64(b.N)/1e3, "cpu-us/op") }()
			got := make(chan int64, 1)
			q := QoS{Reliable: true, Depth: 10}
			makeReader(b, y, "rt/x", q, func(s *Sample) { got <- s.Seq })
			w := makeWriter(b, x, "rt/x", q)
			ready(soon(b), b, w, 1)
			data := payload(size, 0)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Write(context.Background(), data, nil); err != nil {
					b.Fatal(err)
				}
				<-got
			}
		})
	}
}
