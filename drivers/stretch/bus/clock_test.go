package bus

import (
	"testing"
	"time"
	"unsafe"
)

// set is now as it is read after somebody has set the wall clock forward by whole seconds: its monotonic reading goes on.
// It relies on how time.Time is laid out and skips when it is not so.
func set(t *testing.T, now time.Time, forward int64) time.Time {
	t.Helper()
	was := now
	*(*uint64)(unsafe.Pointer(&now)) += uint64(forward) << 30 //nolint:gosec // there is no other way to such a time
	if now.Unix()-was.Unix() != forward || now.Sub(was) != 0 {
		t.Skip("time.Time is laid out otherwise")
	}
	return now
}

// A wall clock that is set, as at the first answer of a time server after boot, makes no reading late.
func TestWallClockIsSet(t *testing.T) {
	for _, forward := range []int64{3600, -3600} {
		var s stampAge
		began := time.Now()
		for i := range 100 {
			d := time.Duration(i) * 20 * time.Millisecond
			now := began.Add(d)
			if i >= 50 {
				now = set(t, now, forward)
			}
			if late := s.late(now, 7*time.Second+d); late > time.Millisecond {
				t.Fatalf("answer %d is %v late after the clock was set by %d s", i, late, forward)
			}
		}
		if late := s.late(began.Add(3*time.Second), 9*time.Second); late < 900*time.Millisecond {
			t.Errorf("an answer of a second ago is %v late", late)
		}
	}
}
