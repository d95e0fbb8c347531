package interop

import (
	"errors"
	"os"
	"testing"
	"time"
)

// TestBuild builds the peers when their sources are new. It has no other work than to say how long that takes.
func TestBuild(t *testing.T) {
	for _, v := range Vendors {
		t.Run(string(v), func(t *testing.T) {
			began := time.Now()
			_, err := Build(t.Context(), v)
			var missing *Missing
			if errors.As(err, &missing) && os.Getenv("VIAD_CI") == "" {
				t.Skip(missing)
			}
			must(t, err)
			t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
		})
	}
}
