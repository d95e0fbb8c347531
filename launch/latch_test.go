package launch

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"viad/interface/operator"
)

// ask is one question at the socket of a daemon in a process of its own.
func (p *process) ask(t *testing.T, op operator.Op) operator.Answer {
	t.Helper()
	a, err := operator.Ask(t.Context(), filepath.Join(p.state, socketName), op)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// kill is kill -9.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.rest
	_ = p.cmd.Wait() // says that it was killed
}

// An e-stop that was answered holds, also when the daemon is killed the moment after and started again, and though
// the file of this twin arms it by itself; until an operator clears it, and that holds as well.
func TestEStopOutlivesTheDaemon(t *testing.T) {
	p := launchProcess(t, "twin-franka.yaml")
	if a := p.ask(t, operator.OpEStop); !a.OK {
		t.Fatalf("%+v", a)
	}
	p.kill(t)
	for range 2 { // no start wears it off
		p = launchIn(t, "twin-franka.yaml", p.state, nil)
		s := p.ask(t, operator.OpStatus).Status
		if s.Armed || !strings.Contains(s.Latched, "e-stop: ") || !strings.HasSuffix(s.Latched, ", before this start)") {
			t.Errorf("after a restart: armed %t, latched %q", s.Armed, s.Latched)
		}
		a := connect(t, p.url, p.token)
		a.must("gripper_translate", map[string]any{"d_z": -0.05})
		a.refused("before this start", "execute_waypoint", nil)
		if _, err := operator.Ask(t.Context(), filepath.Join(p.state, socketName), operator.OpArm); err == nil || !strings.Contains(err.Error(), "clear the latch") {
			t.Errorf("armed over the latch: %v", err)
		}
		p.kill(t)
	}
	p = launchIn(t, "twin-franka.yaml", p.state, nil)
	for _, op := range []operator.Op{operator.OpClear, operator.OpArm} {
		if a := p.ask(t, op); !a.OK {
			t.Fatalf("%s: %+v", op, a)
		}
	}
	p.kill(t)
	p = launchIn(t, "twin-franka.yaml", p.state, nil)
	if s := p.ask(t, operator.OpStatus).Status; !s.Armed || s.Latched != "" {
		t.Errorf("after clear and a restart: armed %t, latched %q", s.Armed, s.Latched)
	}
	a := connect(t, p.url, p.token)
	a.must("gripper_translate", map[string]any{"d_z": -0.05})
	a.must("execute_waypoint", nil)
	p.kill(t)
}

// A file that cannot be understood latches, whatever is wrong with it, and says so; an operator's clear removes it.
func TestALatchFileThatCannotBeReadLatches(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"empty":          func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"half":           func(p string) error { return os.WriteFile(p, []byte(`{"format":1,"latched":"e-st`), 0o600) },
		"rubbish":        func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte{0, 255}, 1<<17), 0o600) },
		"of tomorrow":    func(p string) error { return os.WriteFile(p, []byte(`{"format":2,"latched":"x"}`), 0o600) },
		"without a word": func(p string) error { return os.WriteFile(p, []byte(`{"format":1}`), 0o600) },
		"a folder":       func(p string) error { return os.Mkdir(p, 0o700) },
		"a loop":         func(p string) error { return os.Symlink(p, p) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "latch.json")
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			d := start(t, "twin-franka.yaml", func(c *Config) { c.StateDir = dir })
			if s := d.ask(operator.OpStatus).Status; s.Armed || !strings.Contains(s.Latched, "cannot be read from "+path) {
				t.Errorf("armed %t, latched %q", s.Armed, s.Latched)
			}
			a := connect(t, d.MCP(), d.Token())
			a.must("gripper_translate", map[string]any{"d_z": -0.05})
			a.refused("cannot be read from", "execute_waypoint", nil)
			if a := d.ask(operator.OpClear); !a.OK {
				t.Errorf("%+v", a)
			}
			if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("after clear: %v", err)
			}
		})
	}
}

// A disk that fails or hangs is told to whoever looks at the status, and holds nobody up for long.
func TestALatchThatCannotBeKept(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for words, write := range map[string]func(string, []byte) error{
		"no space":           func(string, []byte) error { return errors.New("no space") },
		"not written after ": func(string, []byte) error { <-hang; return nil },
	} {
		l := newLatchFile(filepath.Join(t.TempDir(), "latch.json"))
		l.write, l.most = write, 50*time.Millisecond
		if err := l.Keep("e-stop: x"); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("want %q, got %v", words, err)
		}
	}
	d := start(t, "twin-franka.yaml", nil)
	if err := os.Mkdir(filepath.Join(d.cfg.StateDir, "latch.json"), 0o700); err != nil { // a rename cannot replace it
		t.Fatal(err)
	}
	d.ask(operator.OpEStop)
	if s := d.ask(operator.OpStatus).Status; s.Latched == "" || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "would not know that it is latched") {
		t.Errorf("latched %q, warnings %q", s.Latched, s.Warnings)
	}
}

// Who starts a daemon that comes up latched reads it, and what to do.
func TestLatchedLine(t *testing.T) {
	var b strings.Builder
	if err := latchedLine(&b, "e-stop: x", "/run/x.sock"); err != nil || !strings.Contains(b.String(), "LATCHED: e-stop: x") ||
		!strings.Contains(b.String(), "bin/viactl --socket /run/x.sock clear") {
		t.Errorf("%v: %s", err, b.String())
	}
	b.Reset()
	if err := latchedLine(&b, "", "/run/x.sock"); err != nil || b.Len() > 0 {
		t.Errorf("%v: %s", err, b.String())
	}
}
