package interop

import (
	"fmt"
	"testing"
	"time"
)

// TestContest runs a short round of the benchmark, whose ratios are no test: both get all.
func TestContest(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first=%v", first), func(t *testing.T) {
			peer(t, Setup{Vendor: FastDDS, Mode: "graph"}) // skips where it cannot be built
			d := domain(t)
			ours, theirs, err := Contest{Side: participant(t, d), Domain: d, Rate: 30, Count: 30, First: first}.Run(budget(t, 30*time.Second))
			must(t, err)
			complete(t, "ours", ours, 30)
			complete(t, "theirs", theirs, 30)
			t.Logf("CPU per picture: ours %.2f ms, theirs %.2f ms", ours.CPU/30*1e3, theirs.CPU/30*1e3)
		})
	}
}
