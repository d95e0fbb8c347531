package wire

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// device is one port: a pseudo-terminal behind a name in the directory. Unplugged, it has neither.
type device struct {
	name string
	link string
	hear func([]byte) []byte // what the robot says to bytes
	bad  *weather            // of its line

	mu     sync.Mutex
	master *os.File // nil: unplugged
	closed bool
	wait   sync.WaitGroup // the goroutines of its pseudo-terminals
}

// plug makes a new pseudo-terminal, in raw mode, and its name.
func (d *device) plug() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.master != nil || d.closed {
		return nil
	}
	master, path, err := newTerminal()
	if err != nil {
		return fmt.Errorf("wire: no pseudo-terminal for %s: %w", d.name, err)
	}
	if err := errors.Join(gone(os.Remove(d.link)), os.Symlink(path, d.link)); err != nil {
		return errors.Join(fmt.Errorf("wire: %s cannot be named in its directory: %w", d.name, err), master.Close())
	}
	d.master = master
	d.bad.clear()
	d.wait.Go(func() { d.serve(master) })
	return nil
}

// unplug takes the name away and hangs up on whoever has the port open.
func (d *device) unplug() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.master == nil {
		return nil
	}
	err := errors.Join(gone(os.Remove(d.link)), d.master.Close())
	d.master = nil
	return err
}

// shut unplugs it for good, and waits for its goroutine.
func (d *device) shut() error {
	err := d.unplug()
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.wait.Wait()
	return err
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// serve answers until the port is unplugged.
func (d *device) serve(master *os.File) {
	raw, err := master.SyscallConn()
	if err != nil {
		return
	}
	b := make([]byte, 4096)
	for {
		n, err := listen(raw, b)
		if err != nil {
			return
		}
		late, said := d.bad.out(d.hear(d.bad.in(b[:n])))
		if late > 0 {
			<-time.After(late)
		}
		if _, err := master.Write(said); err != nil && !errors.Is(err, syscall.EIO) {
			return
		}
	}
}

// listen reads. While nobody has the other end open a read fails at once, and what comes when somebody opens it and
// writes is waited for as if there were only silence.
func listen(raw syscall.RawConn, b []byte) (n int, err error) {
	outer := raw.Read(func(fd uintptr) bool {
		n, err = unix.Read(int(fd), b)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EIO) && !errors.Is(err, unix.EINTR)
	})
	return n, errors.Join(outer, err)
}

// newTerminal opens a pseudo-terminal without keeping its other end open, so that nobody seems to have the port.
func newTerminal() (master *os.File, path string, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	var t *unix.Termios
	if err == nil {
		t, err = unix.IoctlGetTermios(fd, unix.TCGETS) // those of the other end
	}
	if err == nil {
		t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
		t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8 | unix.CREAD | unix.CLOCAL
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		err = unix.IoctlSetTermios(fd, unix.TCSETS, t)
	}
	if err != nil {
		return nil, "", errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "/dev/ptmx"), filepath.Join("/dev/pts", fmt.Sprint(n)), nil
}
