package interop

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"viad/ros/rtps"

	"go.uber.org/goleak"
)

// long asks for the full lengths, of which the figures are in docs/interop.md.
var long = flag.Bool("long", false, "the full lengths: a minute at 30 Hz, ten restarts, more loss")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// budget is how long one test may take before what it waits for is said.
func budget(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// domain is a DDS domain for this test alone.
func domain(t *testing.T) int {
	t.Helper()
	d, release, err := Domain()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return d
}

// peer starts a peer, which ends with the test.
func peer(t *testing.T, s Setup) *Peer {
	t.Helper()
	before := sharedMemory(t)
	p, err := Start(t.Context(), s)
	var missing *Missing
	if errors.As(err, &missing) && os.Getenv("VIAD_CI") == "" {
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		for _, f := range p.Events("fault") {
			t.Errorf("the %s peer: %s", p.name, f.Why)
		}
		if t.Failed() {
			t.Logf("the %s peer said:\n%s", p.name, p.Story())
		}
		if s.Vendor == FastDDS {
			sweep(t, before)
		}
	})
	return p
}

// started is peer, and waits until its endpoints are there.
func started(ctx context.Context, t *testing.T, s Setup) *Peer {
	t.Helper()
	p := peer(t, s)
	event(ctx, t, p, "ready")
	return p
}

func event(ctx context.Context, t *testing.T, p *Peer, ev string) Event {
	t.Helper()
	e, err := p.Event(ctx, ev)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// sharedMemory is what Fast DDS has in /dev/shm.
func sharedMemory(t *testing.T) map[string]bool {
	t.Helper()
	files := map[string]bool{}
	for _, pattern := range []string{"/dev/shm/fastrtps_*", "/dev/shm/sem.fastrtps_*"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			files[n] = true
		}
	}
	return files
}

// sweep removes what a killed Fast DDS process left in /dev/shm since before. Other processes on Fast DDS' default
// transport would lose theirs too; the tests run at most one that has it at a time.
func sweep(t *testing.T, before map[string]bool) {
	t.Helper()
	for n := range sharedMemory(t) {
		if !before[n] {
			_ = os.Remove(n) // another may have done it
		}
	}
}

// participant is ours, on this host alone unless a change says otherwise.
func participant(t *testing.T, domain int, changes ...func(*rtps.Config)) Wire {
	t.Helper()
	c := rtps.Config{Domain: domain, Localhost: true, Name: "interop", UserData: []byte("enclave=/;")}
	for _, change := range changes {
		change(&c)
	}
	p, err := rtps.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, p.Close()) })
	return Wire{p}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// complete says whether a report has every sample once, whole, in order.
func complete(t *testing.T, what string, e Event, want int) {
	t.Helper()
	t.Logf("%s: %d of %d, latency p50 %.2f p99 %.2f max %.2f ms", what, e.N, want, e.P50, e.P99, e.Max)
	if e.N != want || e.Corrupt != 0 || e.Disorder != 0 || e.Twice != 0 {
		t.Errorf("%s: %d of %d samples came (%d to %d), %d corrupt, %d out of order, %d twice", what, e.N, want, e.First, e.Last, e.Corrupt, e.Disorder, e.Twice)
	}
}
