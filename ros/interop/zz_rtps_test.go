package interop

import (
	"os"
	"runtime/pprof"
	"testing"
	"time"
)

func TestZZContest(t *testing.T) {
	for _, rate := range []float64{100} {
		for i := range 2 {
			d := domain(t)
			c := Contest{Side: participant(t, d), Domain: d, Rate: rate, Count: int(rate * 6), First: i == 0}
			if os.Getenv("PROF") != "" && rate == 100 && i == 0 {
				f, _ := os.Create(os.Getenv("PROF"))
				c.Begin = func() { pprof.StartCPUProfile(f) }
				c.End = func() { pprof.StopCPUProfile() }
			}
			ours, theirs, err := c.Run(budget(t, 60*time.Second))
			if err != nil {
				t.Error(err)
				continue
			}
			t.Logf("rate %v first %v: ours n=%d cpu %.2f p50 %.2f p99 %.2f; theirs n=%d cpu %.2f p50 %.2f p99 %.2f", rate, i == 0, ours.N, ours.CPU, ours.P50, ours.P99, theirs.N, theirs.CPU, theirs.P50, theirs.P99)
		}
	}
}
