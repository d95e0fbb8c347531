package record

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is an append-only file.
type File interface {
	io.WriteCloser
	Sync() error
}

// Files is the file system as the recorder uses it: a seam for tests that fill the disk.
type Files interface {
	MkdirAll(dir string) error
	Append(path string) (File, error)
	Write(path string, data []byte) error // whole, by a temporary file and a rename
	ReadDir(dir string) ([]fs.DirEntry, error)
	Size(dir string) (int64, error) // bytes of all files below dir
	RemoveAll(dir string) error
}

// Disk is the machine's own file system. Files are readable by their owner and group only.
type Disk struct{}

// MkdirAll makes a folder and its parents.
func (Disk) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o750) }

// Append opens a file for appending, making it when needed.
func (Disk) Append(path string) (File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
}

// Write replaces a file so that a reader sees the old or the new one, never half of either.
func (Disk) Write(path string, data []byte) error {
	tmp := path + ".part"
	if err := os.WriteFile(tmp, data, 0o640); err != nil {
		_ = os.Remove(tmp) // half a file; the error that matters is the first
		return err
	}
	return os.Rename(tmp, path)
}

// ReadDir lists a folder in name order.
func (Disk) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }

// RemoveAll removes a folder and what is in it.
func (Disk) RemoveAll(dir string) error { return os.RemoveAll(dir) }

// Size adds up the files below dir.
func (Disk) Size(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		sum += info.Size()
		return nil
	})
	return sum, err
}
