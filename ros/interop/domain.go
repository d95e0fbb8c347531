package interop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// The domains that this package's tests and benchmarks share.
const firstDomain, lastDomain = 60, 99

// Domain takes a DDS domain that no other process on this machine which asks here uses. It is free again after release, or
// when the process ends.
func Domain() (domain int, release func(), err error) {
	for d := firstDomain; d <= lastDomain; d++ {
		name := filepath.Join(os.TempDir(), fmt.Sprintf("viad-dds-domain-%d.lock", d))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return 0, nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return d, func() { _ = f.Close() }, nil // which unlocks
		}
		_ = f.Close() // taken by another
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return 0, nil, fmt.Errorf("locking %s: %w", name, err)
		}
	}
	return 0, nil, fmt.Errorf("all DDS domains from %d to %d are taken: see %s", firstDomain, lastDomain, filepath.Join(os.TempDir(), "viad-dds-domain-*.lock"))
}
