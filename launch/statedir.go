package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// stateDir is the daemon's own folder, held by one daemon at a time.
type stateDir struct {
	path   string
	lock   *os.File
	record *os.File // lock of the record folder
}

// openStateDir makes the folder and takes its lock, which ends with the process however that ends.
func openStateDir(path string) (*stateDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("the state folder %s cannot be made: %w; name another in state_dir", path, err)
	}
	f, err := hold(filepath.Join(path, "lock"))
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("another viad uses the state folder %s: stop it first, or name another in state_dir", path)
	}
	if err != nil {
		return nil, fmt.Errorf("the state folder %s cannot be written: %w; name another in state_dir", path, err)
	}
	return &stateDir{path: path, lock: f}, nil
}

// holdRecord takes the record folder for this daemon alone: another one would count its episodes as old ones and
// remove the running one to keep the quota.
func (s *stateDir) holdRecord(path string) error {
	f, err := hold(filepath.Join(path, ".lock"))
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("another viad records into %s: name another folder in record.folder", path)
	}
	if err != nil {
		return fmt.Errorf("the record folder %s cannot be written: %w; name another in record.folder", path, err)
	}
	s.record = f
	return nil
}

// hold locks a file, for as long as it is open.
func hold(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close gives the folder free.
func (s *stateDir) Close() error {
	err := s.lock.Close()
	if s.record != nil {
		err = errors.Join(err, s.record.Close())
	}
	return err
}

// replaceFile writes a file that only its owner reads, whole or not at all; it is on the disk when this returns.
func replaceFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // born 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// removeFile takes a file away, if it is there, for good.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir brings the names in a folder to the disk.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
