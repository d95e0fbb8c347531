package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// stateDir is the daemon's own folder, held by one daemon at a time.
type stateDir struct {
	path string
	lock *os.File
}

// openStateDir makes the folder and takes its lock, which ends with the process however that ends.
func openStateDir(path string) (*stateDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("the state folder %s cannot be made: %w; name another in state_dir", path, err)
	}
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the state folder %s cannot be written: %w; name another in state_dir", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("another viad uses the state folder %s: stop it first, or name another in state_dir", path)
		}
		return nil, errors.Join(err, f.Close())
	}
	return &stateDir{path, f}, nil
}

// Close gives the folder free.
func (s *stateDir) Close() error { return s.lock.Close() }
