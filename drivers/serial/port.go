package serial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/tarm/serial"
)

// Config says which port and how fast. Path should be one that names the device and not the order of plugging, as
// /dev/serial/by-id/... or /dev/hello-... do.
type Config struct {
	Path string
	Baud int // 0 is 115200; it means nothing to a USB modem
}

// backlog is how many bytes wait for a reader; more is a device that babbles, and the oldest go.
const backlog = 64 << 10

// Port is an open port. Read and Flush are for one goroutine at a time, Write for one; Close for any.
type Port struct {
	path string
	was  node
	lock *os.File
	raw  *serial.Port

	mu     sync.Mutex
	buf    []byte
	err    error         // why no more will come
	fresh  chan struct{} // capacity 1: bytes or an error are there
	closed chan struct{}
	once   sync.Once
	ended  chan struct{} // the reading goroutine has ended
	writes chan write
}

type write struct {
	b    []byte
	done chan error
}

// Open opens a port for this process alone. A port that another has is an *InUse.
func Open(c Config) (*Port, error) {
	lock, err := claim(c.Path)
	if err != nil {
		return nil, fmt.Errorf("serial: cannot open %s: %w", c.Path, err)
	}
	if c.Baud == 0 {
		c.Baud = 115200
	}
	// The shortest time-out there is: a tenth of a second, in which Close waits for the reader.
	raw, err := serial.OpenPort(&serial.Config{Name: c.Path, Baud: c.Baud, ReadTimeout: 100 * time.Millisecond})
	if err != nil {
		return nil, fmt.Errorf("serial: cannot open %s: %w", c.Path, errors.Join(err, lock.Close()))
	}
	was, err := nodeOf(c.Path)
	if err != nil {
		return nil, fmt.Errorf("serial: %w", errors.Join(&Unplugged{Path: c.Path, Err: err}, raw.Close(), lock.Close()))
	}
	p := &Port{
		path: c.Path, was: was, lock: lock, raw: raw,
		fresh: make(chan struct{}, 1), closed: make(chan struct{}), ended: make(chan struct{}), writes: make(chan write),
	}
	go p.pump()
	go p.drain()
	return p, nil
}

// Path is what was opened.
func (p *Port) Path() string { return p.path }

// pump reads for the life of the port.
func (p *Port) pump() {
	defer close(p.ended)
	b := make([]byte, 4096)
	for {
		n, err := p.raw.Read(b)
		select {
		case <-p.closed:
			return
		default:
		}
		switch {
		case n == 0 && errors.Is(err, io.EOF): // silence, or an unplug
			if now, e := nodeOf(p.path); e == nil && now == p.was {
				continue
			}
			err = &Unplugged{Path: p.path}
		case err != nil && !errors.Is(err, io.EOF):
			err = &Unplugged{Path: p.path, Err: err}
		default:
			err = nil
		}
		p.take(b[:n], err)
		if err != nil {
			return
		}
	}
}

func (p *Port) take(b []byte, err error) {
	p.mu.Lock()
	p.buf = append(p.buf, b...)
	if over := len(p.buf) - backlog; over > 0 {
		p.buf = append(p.buf[:0], p.buf[over:]...)
	}
	p.err = err
	p.mu.Unlock()
	select {
	case p.fresh <- struct{}{}:
	default:
	}
}

// Read waits until at least one byte is there and reads what is. When ctx ends first the error is ErrTimeout for a
// deadline, or the context's own.
func (p *Port) Read(ctx context.Context, b []byte) (int, error) {
	for {
		p.mu.Lock()
		n := copy(b, p.buf)
		p.buf = append(p.buf[:0], p.buf[n:]...)
		err := p.err
		p.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case err != nil:
			return 0, err
		}
		select {
		case <-p.fresh:
		case <-p.closed:
			return 0, ErrClosed
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return 0, ErrTimeout
			}
			return 0, ctx.Err()
		}
	}
}

// Flush drops what has come and was not read.
func (p *Port) Flush() {
	p.mu.Lock()
	p.buf = p.buf[:0]
	p.mu.Unlock()
}

// drain writes for the life of the port: a device that takes nothing holds this goroutine, not the caller.
func (p *Port) drain() {
	for {
		select {
		case <-p.closed:
			return
		case w := <-p.writes:
			n, err := p.raw.Write(w.b)
			if err == nil && n < len(w.b) {
				err = io.ErrShortWrite
			}
			if err != nil {
				err = &Unplugged{Path: p.path, Err: err}
			}
			w.done <- err
		}
	}
}

// Write hands b to the device. When ctx ends first the port has to be closed: how much went out is not known.
func (p *Port) Write(ctx context.Context, b []byte) error {
	w := write{b: append([]byte(nil), b...), done: make(chan error, 1)}
	select {
	case p.writes <- w:
	case <-p.closed:
		return ErrClosed
	case <-ctx.Done():
		return p.stuck(ctx)
	}
	select {
	case err := <-w.done:
		return err
	case <-p.closed:
		return ErrClosed
	case <-ctx.Done():
		return p.stuck(ctx)
	}
}

func (p *Port) stuck(ctx context.Context) error {
	return fmt.Errorf("serial: %s takes no bytes (%w): close it and open it again", p.path, ctx.Err())
}

// Close gives the port back and ends every wait on it.
func (p *Port) Close() error {
	var err error
	p.once.Do(func() {
		close(p.closed)
		<-p.ended // at most a tenth of a second
		err = errors.Join(p.raw.Close(), p.lock.Close())
	})
	return err
}
