package serial

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is a pseudo-terminal: the device's end, and the path that a port opens.
func line(t *testing.T) (device *os.File, path string) {
	t.Helper()
	device, tty, err := pty.Open()
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	path = tty.Name()
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = device.Close() })
	return device, path
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestBothWays(t *testing.T) {
	device, path := line(t)
	p, err := Open(Config{Path: path, Baud: 1000000})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Write(within(t, 5*time.Second), []byte{0xff, 0xff, 0x14}); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	if n, err := device.Read(b); err != nil || string(b[:n]) != "\xff\xff\x14" {
		t.Errorf("the device read %x, %v", b[:n], err)
	}
	if _, err := device.Write([]byte{1, 0, 2, 0x0a, 0x0d}); err != nil { // as they are: no line discipline
		t.Fatal(err)
	}
	var got []byte
	for ctx := within(t, 5*time.Second); len(got) < 5; {
		n, err := p.Read(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b[:n]...)
	}
	if string(got) != "\x01\x00\x02\x0a\x0d" {
		t.Errorf("%x", got)
	}
}

// Silence is a time-out of whoever waits, as short as he likes, and the port goes on.
func TestSilence(t *testing.T) {
	device, path := line(t)
	p, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b := make([]byte, 4)
	if _, err := p.Read(within(t, 12*time.Millisecond), b); !errors.Is(err, ErrTimeout) {
		t.Errorf("%v", err)
	}
	if _, err := device.Write([]byte{7}); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Read(within(t, 5*time.Second), b); err != nil || n != 1 || b[0] != 7 {
		t.Errorf("%d %v %v", n, b[0], err)
	}
}

func TestUnplug(t *testing.T) {
	device, path := line(t)
	p, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := device.Close(); err != nil {
		t.Fatal(err)
	}
	var gone *Unplugged
	if _, err := p.Read(within(t, 5*time.Second), make([]byte, 4)); !errors.As(err, &gone) || gone.Path != path {
		t.Errorf("%v", err)
	}
}

func TestOneOwner(t *testing.T) {
	_, path := line(t)
	p, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	var used *InUse
	if _, err := Open(Config{Path: path}); !errors.As(err, &used) || !strings.Contains(err.Error(), "process") {
		t.Errorf("%v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// Close ends whoever waits.
func TestClose(t *testing.T) {
	_, path := line(t)
	p, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := p.Read(context.Background(), make([]byte, 4))
		done <- err
	}()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if err := p.Write(t.Context(), []byte{1}); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}
