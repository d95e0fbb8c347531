package main

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"viad/interface/operator"
)

type desk struct{ refuse error }

func (d desk) Status() operator.Status {
	return operator.Status{
		Name: "lab", Robot: "Franka FR3", Mode: "faulted", Fault: "reflex", Latched: "e-stop: viactl", StateAge: 0.012, SceneAge: -1,
		Staged: "nothing", Warnings: []string{"recording stopped: the disk is full"},
	}
}
func (d desk) Stop(context.Context, string) (string, error)   { return "stopped, confirmed", nil }
func (d desk) EStop(context.Context, string) (string, error)  { return "latched", nil }
func (d desk) Clear(context.Context, string) (string, error)  { return "cleared", nil }
func (d desk) Arm(context.Context, string) (string, error)    { return "armed", d.refuse }
func (d desk) Disarm(context.Context, string) (string, error) { return "disarmed", nil }
func (d desk) Free(context.Context, string) (string, error)   { return "free", nil }

func (d desk) Health() operator.Health {
	h := operator.Health{Facts: []operator.Fact{{Name: "homed", Value: "yes"}}, Tasks: []operator.Task{{Name: "home", What: "every joint moves"}}}
	if d.refuse != nil {
		h.Facts[0] = operator.Fact{Name: "homed", Value: "no", Bad: "not homed: viactl do home"}
	}
	return h
}

func (d desk) Do(_ context.Context, _, task string) (string, error) { return task + ": done", nil }

func (d desk) TakeOver(_ context.Context, _, name string) (string, error) {
	return "for " + name, nil
}

func serve(t *testing.T, d operator.Desk) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), operator.SocketName)
	s, err := operator.Listen(path, d)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return path
}

func TestCommands(t *testing.T) {
	fine := serve(t, desk{})
	stubborn := serve(t, desk{refuse: errors.New("the e-stop is still pressed")})
	for _, c := range []struct {
		args          string
		code          int
		out, complain string
	}{
		{"stop --socket " + fine, exitOK, "stopped, confirmed\n", ""},
		{"--socket " + fine + " stop", exitOK, "stopped, confirmed\n", ""},
		{"estop --socket " + fine, exitOK, "latched\n", ""},
		{"arm --socket " + fine, exitOK, "armed\n", ""},
		{"disarm --socket " + fine, exitOK, "disarmed\n", ""},
		{"clear --socket " + fine, exitOK, "cleared\n", ""},
		{"takeover --socket " + fine, exitOK, "for \n", ""},
		{"takeover alice --socket " + fine, exitOK, "for alice\n", ""},
		{"takeover --socket " + fine + " alice", exitOK, "for alice\n", ""},
		{"free --socket " + fine, exitOK, "free\n", ""},
		{"do home --socket " + fine, exitOK, "home: done\n", ""},
		{"do --socket " + fine, exitRefused, "", "needs a task"},
		{"doctor --socket " + fine, exitOK, "ok    homed  yes\nviactl do home           every joint moves\n", ""},
		{"takeover alice bob --socket " + fine, exitUsage, "", "viactl estop"},
		{"arm --socket " + stubborn, exitRefused, "", "still pressed"},
		{"stop --socket /nowhere", exitSilent, "", "does not answer at /nowhere"},
		{"", exitUsage, "", "viactl estop"},
		{"dance", exitUsage, "", "viactl estop"},
		{"dance", exitUsage, "", `cannot do "dance"`},
		{"stop now --socket " + fine, exitUsage, "", "viactl estop"},
		{"stop --force", exitUsage, "", "force"},
	} {
		var out, complaints strings.Builder
		code := run(strings.Fields(c.args), &out, &complaints)
		if code != c.code || out.String() != c.out || !strings.Contains(complaints.String(), c.complain) {
			t.Errorf("viactl %s: code %d, out %q, complaints %q; want %d, %q, %q", c.args, code, out.String(), complaints.String(), c.code, c.out, c.complain)
		}
	}
}

// The worst news comes first.
func TestStatusBeginsWithTheWorst(t *testing.T) {
	var out, complaints strings.Builder
	if code := run([]string{"status", "--socket", serve(t, desk{})}, &out, &complaints); code != exitOK {
		t.Fatal(code, complaints.String())
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"WARNING   recording stopped", "LATCHED   e-stop", "FAULT     reflex", "motion    latched: look at the robot", "robot     Franka FR3, faulted, joint reading 12ms old"} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q, want %q...", i, lines[i], want)
		}
	}
}

func TestNoDaemon(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("VIAD_SOCKET", "")
	var out, complaints strings.Builder
	if code := run([]string{"status"}, &out, &complaints); code != exitSilent || !strings.Contains(complaints.String(), "no running viad") {
		t.Errorf("%d %q", code, complaints.String())
	}
}

// TestADaemonThatCannotAnswer: whoever wants a stop is told what else stops the robot.
func TestADaemonThatCannotAnswer(t *testing.T) {
	frozen := filepath.Join(t.TempDir(), "frozen.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: frozen, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it takes connections and says nothing
	dead := filepath.Join(t.TempDir(), "dead.sock")
	d, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	d.SetUnlinkOnClose(false)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		says []string
	}{
		{"stop --wait 50ms --socket " + frozen, []string{"in the time given", "frozen or overloaded", "its own e-stop"}},
		{"estop --socket " + dead, []string{"no viad listens there", "its own e-stop"}},
		{"stop --socket /nowhere", []string{"no such socket", "its own e-stop"}},
		{"status --socket /nowhere", []string{"viad prints its own"}},
	} {
		var out, complaints strings.Builder
		if code := run(strings.Fields(c.args), &out, &complaints); code != exitSilent || out.String() != "" || strings.Count(complaints.String(), "\n") != 1 {
			t.Errorf("viactl %s: code %d, %q, %q", c.args, code, out.String(), complaints.String())
		}
		for _, w := range c.says {
			if !strings.Contains(complaints.String(), w) {
				t.Errorf("viactl %s: %q does not say %q", c.args, complaints.String(), w)
			}
		}
		if strings.Contains(complaints.String(), "deadline") || strings.Contains(complaints.String(), "dial ") {
			t.Errorf("viactl %s: Go's words: %q", c.args, complaints.String())
		}
	}
}
