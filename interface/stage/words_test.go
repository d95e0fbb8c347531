package stage

import (
	"testing"
	"time"
)

// A cap of half a second is not one of 0 s.
func TestSecondsArePlain(t *testing.T) {
	for d, want := range map[time.Duration]string{
		500 * time.Millisecond: "0.5 s", 30 * time.Second: "30 s", 601 * time.Second: "601 s", 1549 * time.Millisecond: "1.5 s", 0: "0 s",
	} {
		if got := seconds(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
