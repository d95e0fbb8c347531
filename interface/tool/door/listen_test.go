package door

import (
	"syscall"
	"testing"
)

// TestConnectionsLeaveFilesForTheRest: where a process may open few files, half of them stay for robot and record.
func TestConnectionsLeaveFilesForTheRest(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}()
	for files, want := range map[uint64]int{200: 100, was.Max: int(min(maxConnections, was.Max/2))} {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		if got := connections(); got != want {
			t.Errorf("of %d files: %d connections, want %d", files, got, want)
		}
	}
}
