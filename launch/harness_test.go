package launch

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// daemon is a running system on a twin as fast as it can, with a port of its own.
type daemon struct {
	*System
	t   *testing.T
	ctx context.Context
	end func() error // once: stops it and returns Run's error
}

// testConfig is a shipped launch file with what a test needs changed.
func testConfig(t *testing.T, file string, change func(*Config)) *Config {
	t.Helper()
	c, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	c.StateDir = t.TempDir()
	c.Robot.Pace, c.Perception.Rate, c.Listen.Address = "fast", 0, "127.0.0.1:0"
	if change != nil {
		change(c)
	}
	return c
}

// start runs a launch file until the test ends; its robot must come to rest then.
func start(t *testing.T, file string, change func(*Config)) *daemon {
	t.Helper()
	s, err := New(t.Context(), testConfig(t, file, change), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done, ready := make(chan error, 1), make(chan struct{})
	go func() { done <- s.Run(ctx, func() error { close(ready); return nil }) }()
	ended := false
	d := &daemon{System: s, t: t, ctx: ctx}
	d.end = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		err := <-done
		if cerr := s.Close(); cerr != nil {
			t.Error(cerr)
		}
		return err
	}
	t.Cleanup(func() {
		if err := d.end(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		ended = true
		t.Fatal(err)
	}
	return d
}
