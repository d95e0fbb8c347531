package operator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a Desk whose arm may be refused and whose disarm hangs until it is released.
type desk struct {
	refuse  error
	hang    chan struct{}
	stopped chan struct{}
	who     string // of the last takeover, with the name asked for
}

func (d *desk) Status() Status {
	return Status{Name: "test", Robot: "none", Armed: true, StateAge: -1, Warnings: []string{"w"}}
}

func (d *desk) Stop(context.Context, string) (string, error) {
	close(d.stopped)
	return "stopped, confirmed", nil
}
func (d *desk) EStop(context.Context, string) (string, error) { return "latched", nil }
func (d *desk) Clear(context.Context, string) (string, error) { return "cleared", nil }
func (d *desk) Arm(context.Context, string) (string, error)   { return "armed", d.refuse }
func (d *desk) Free(context.Context, string) (string, error)  { return "free", nil }
func (d *desk) Health() Health {
	return Health{Facts: []Fact{{Name: "homed", Value: "no", Bad: "not homed: viactl do home"}}, Tasks: []Task{{Name: "home", What: "everything moves"}}}
}

func (d *desk) Do(_ context.Context, who, task string) (string, error) {
	return task + " for " + who, nil
}

func (d *desk) Disarm(context.Context, string) (string, error) {
	<-d.hang
	return "disarmed", nil
}

func (d *desk) TakeOver(_ context.Context, who, name string) (string, error) {
	d.who = who + " for " + name
	return "taken", nil
}

func start(t *testing.T, d *desk) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), SocketName)
	s, err := Listen(path, d)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return path
}

func newDesk() *desk { return &desk{hang: make(chan struct{}), stopped: make(chan struct{})} }

func TestOperations(t *testing.T) {
	d := newDesk()
	path := start(t, d)
	a, err := Ask(t.Context(), path, OpStatus)
	if err != nil || a.Status == nil || a.Status.Name != "test" || a.Status.StateAge != -1 || a.Status.Warnings[0] != "w" {
		t.Fatalf("%+v %v", a.Status, err)
	}
	if a, err := Ask(t.Context(), path, OpEStop); err != nil || a.Note != "latched" {
		t.Errorf("%+v %v", a, err)
	}
	d.refuse = errors.New("the e-stop is still pressed")
	if _, err := Ask(t.Context(), path, OpArm); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "still pressed") {
		t.Errorf("%v", err)
	}
	for op, note := range map[Op]string{OpClear: "cleared", OpFree: "free"} {
		if a, err := Ask(t.Context(), path, op); err != nil || a.Note != note {
			t.Errorf("%s: %+v %v", op, a, err)
		}
	}
	want := fmt.Sprintf("viactl (uid %d, pid %d) for alice", os.Getuid(), os.Getpid())
	if a, err := Send(t.Context(), path, Request{Op: OpTakeOver, Name: "alice"}); err != nil || a.Note != "taken" || d.who != want {
		t.Errorf("%+v %v: %q, want %q", a, err, d.who, want)
	}
	if _, err := Send(t.Context(), path, Request{Op: OpFree, Name: "alice"}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "takes no name") {
		t.Errorf("a name with free: %v", err)
	}
	if _, err := Ask(t.Context(), path, "dance"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "dance") {
		t.Errorf("%v", err)
	}
}

func TestSocketIsForItsOwnerAlone(t *testing.T) {
	info, err := os.Stat(start(t, newDesk()))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// A stop on the same connection as a call that hangs is done at once.
func TestStopWaitsForNothing(t *testing.T) {
	d := newDesk()
	c, err := net.Dial("unix", start(t, d))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("{\"v\":1,\"id\":1,\"op\":\"disarm\"}\n{\"v\":1,\"id\":2,\"op\":\"stop\"}\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.stopped:
	case <-time.After(5 * time.Second):
		t.Error("stop waited behind disarm")
	}
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, `"id":2`) {
		t.Errorf("%q %v", line, err)
	}
	close(d.hang)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, `"id":1`) {
		t.Errorf("%q %v", line, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestBadLinesAreAnsweredAndDoNothing(t *testing.T) {
	d := newDesk()
	c, err := net.Dial("unix", start(t, d))
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	for _, line := range []string{
		`stop`, `{"v":1,"id":1,"op":"stop","force":true}`, `{"v":2,"id":1,"op":"stop"}`, `{"id":1,"op":"stop"}`,
		`{"v":1,"id":1,"op":"STOP"}`, `{"v":1,"id":1}`, `[]`, `null`, `{"v":1,"id":1,"op":"stop"} {"v":1}`, `{"v":1,"id":-1,"op":"stop"}`,
	} {
		if _, err := c.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
		got, err := in.ReadString('\n')
		if err != nil || !strings.Contains(got, `"ok":false`) || !strings.Contains(got, `"error":"`) {
			t.Errorf("%s: %s %v", line, got, err)
		}
	}
	select {
	case <-d.stopped:
		t.Error("a bad line stopped the robot")
	default:
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestLeftoverSocketIsReplacedAndALiveOneIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), SocketName)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Listen(path, newDesk())
	if err != nil {
		t.Fatalf("a leftover: %v", err)
	}
	if _, err := Listen(path, newDesk()); err == nil || !strings.Contains(err.Error(), "another viad") {
		t.Errorf("a second daemon: %v", err)
	}
	if err := s.l.Close(); err != nil {
		t.Error(err)
	}
}

func TestAskGivesUp(t *testing.T) {
	d := newDesk()
	path := start(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, path, OpDisarm); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	close(d.hang)
	if _, err := Ask(t.Context(), filepath.Join(t.TempDir(), "none"), OpStop); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("no daemon: %v", err)
	}
}
