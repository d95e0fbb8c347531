package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// latchFile is where an e-stop outlives the daemon: as long as the file is there, every start comes up latched.
// It is a safety.Memory.
type latchFile struct {
	path  string
	write func(path string, b []byte) error // replaceFile, or what a test puts in its place
	most  time.Duration                     // how long a disk may take

	mu     sync.Mutex
	want   string
	writes sync.Mutex // held while the file is written
}

func newLatchFile(path string) *latchFile {
	return &latchFile{path: path, write: replaceFile, most: 3 * time.Second}
}

// kept is what stands in the file.
type kept struct {
	Format  int       `json:"format"`
	Latched string    `json:"latched"`
	Since   time.Time `json:"since"`
}

const (
	latchFormat = 1
	maxLatch    = 64 << 10
)

// load is why this start comes up latched; empty when the last daemon was not. A file that says nothing to be
// understood latches: why it is there is not known.
func (l *latchFile) load() string {
	k, err := l.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return fmt.Sprintf("whether the robot was latched before this start cannot be read from %s: %v", l.path, err)
	}
	return fmt.Sprintf("%s (since %s, before this start)", k.Latched, k.Since.Format(time.DateTime))
}

func (l *latchFile) read() (k kept, err error) {
	f, err := os.Open(l.path)
	if err != nil {
		return k, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxLatch+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return k, err
	}
	if len(b) > maxLatch {
		return k, fmt.Errorf("it is longer than %d bytes", maxLatch)
	}
	in := json.NewDecoder(bytes.NewReader(b))
	in.DisallowUnknownFields()
	if err := in.Decode(&k); err != nil {
		return k, fmt.Errorf("it is not whole: %w", err)
	}
	if k.Format != latchFormat || k.Latched == "" {
		return k, fmt.Errorf("it is of format %d, and %d is known here", k.Format, latchFormat)
	}
	return k, nil
}

// Keep writes why, or removes the file when there is nothing to keep. A disk that does not answer is left behind:
// whatever was asked for last is what it comes to.
func (l *latchFile) Keep(why string) error {
	l.mu.Lock()
	l.want = why
	l.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		l.writes.Lock()
		defer l.writes.Unlock()
		l.mu.Lock()
		why := l.want
		l.mu.Unlock()
		done <- l.put(why)
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(l.most):
		return fmt.Errorf("%s is not written after %v", l.path, l.most)
	}
}

func (l *latchFile) put(why string) error {
	if why == "" {
		return removeFile(l.path)
	}
	b, err := json.Marshal(kept{Format: latchFormat, Latched: why, Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	return l.write(l.path, append(b, '\n'))
}
