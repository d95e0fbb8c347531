package launch

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"viad/interface/operator"
)

func (d *daemon) ask(op operator.Op) operator.Answer {
	d.t.Helper()
	return d.send(operator.Request{Op: op})
}

func (d *daemon) send(r operator.Request) operator.Answer {
	d.t.Helper()
	a, err := operator.Send(d.t.Context(), d.desk.Path(), r)
	if err != nil && !errors.Is(err, operator.ErrRefused) {
		d.t.Fatal(err)
	}
	return a
}

func TestNothingMovesUntilAnOperatorArms(t *testing.T) {
	d := start(t, "twin-franka.yaml", func(c *Config) { c.Robot.Arm = "operator" })
	a := connect(t, d.MCP(), d.Token())
	a.must("gripper_translate", map[string]any{"d_z": -0.05})
	a.refused("arm", "execute_waypoint", nil)
	if s := d.ask(operator.OpStatus).Status; s.Armed || s.Staged == "nothing" || s.Seat != "developer" || s.StateAge < 0 || s.SceneSeq == 0 {
		t.Errorf("%+v", s)
	}
	if a := d.ask(operator.OpArm); !a.OK || a.Note != "armed" {
		t.Errorf("%+v", a)
	}
	a.must("screenshot", nil)
	if text := a.must("execute_waypoint", nil); !strings.Contains(text, "reached") {
		t.Error(text)
	}
	if s := d.ask(operator.OpStatus).Status; !s.Armed || !strings.Contains(s.Last, "reached") {
		t.Errorf("%+v", s)
	}

	if a := d.ask(operator.OpEStop); !a.OK {
		t.Errorf("%+v", a)
	}
	a.must("gripper_translate", map[string]any{"d_z": 0.05})
	a.refused("e-stop", "execute_waypoint", nil)
	if s := d.ask(operator.OpStatus).Status; s.Armed || s.Latched == "" {
		t.Errorf("%+v", s)
	}
	if a := d.ask(operator.OpArm); a.OK || !strings.Contains(a.Error, "clear the latch") {
		t.Errorf("armed while latched: %+v", a)
	}
	if a := d.ask(operator.OpClear); !a.OK || !strings.Contains(a.Note, "e-stop") {
		t.Errorf("%+v", a)
	}
	if s := d.ask(operator.OpStatus).Status; s.Armed || s.Latched != "" {
		t.Errorf("cleared: %+v", s)
	}
	a.refused("arm", "execute_waypoint", nil)
	d.ask(operator.OpArm)
	a.must("screenshot", nil)
	a.must("execute_waypoint", nil)
	if a := d.ask(operator.OpDisarm); !a.OK {
		t.Errorf("%+v", a)
	}
	a.must("gripper_translate", map[string]any{"d_z": 0.05})
	a.refused("arm", "execute_waypoint", nil)
}

func TestAnEpisodeIsRecordedAndTheNextOneBegins(t *testing.T) {
	d := start(t, "twin-franka.yaml", nil)
	a := connect(t, d.MCP(), d.Token())
	first := d.rec.Status().Folder
	a.must("gripper_translate", map[string]any{"d_z": -0.05})
	a.must("execute_waypoint", nil)
	text := a.must("end_episode", nil)
	if first == "" || !strings.Contains(text, first) {
		t.Errorf("the reply does not name the folder %s: %s", first, text)
	}
	if err := d.rec.Flush(t.Context().Done()); err != nil {
		t.Fatal(err)
	}
	if next := d.rec.Status().Folder; next == first || !strings.HasSuffix(next, "episode-002") {
		t.Errorf("next episode in %s", next)
	}
	for file, want := range map[string][]string{
		"episode.json":    {`"verdict"`, `"ended"`, `"JointMargin"`, `"robot": "Franka FR3 (twin)"`},
		"calls.jsonl":     {`"tool":"gripper_translate"`, `"args":{"d_z":-0.05}`, `"principal":"developer"`, `"pictures":["pictures/0001-`},
		"decisions.jsonl": {`"kind":"go"`, `"clock":"2030-`, `"kind":"outcome"`, `"result":"reached"`, `"stop":"stopped, confirmed"`},
		"states.jsonl":    {`"mode":"moving"`},
		"index.md":        {"## 1. gripper_translate", "![pictures/", "**outcome**"},
	} {
		b, err := os.ReadFile(filepath.Join(first, file))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s lacks %s:\n%.2000s", file, w, b)
			}
		}
	}
}

// A disk that fills up stops the recording, not the robot; or the robot too, when the file says so.
func TestAFullDisk(t *testing.T) {
	for _, when := range []string{"go_on", "refuse_motion"} {
		t.Run(when, func(t *testing.T) {
			dir := t.TempDir()
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1200k"); err != nil {
				t.Skipf("no tmpfs can be mounted here: %v", err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(dir, 0); err != nil {
					t.Error(err)
				}
			})
			d := start(t, "twin-franka.yaml", func(c *Config) { c.Record.Folder, c.Record.WhenFull = dir, when })
			t.Cleanup(func() {
				if err := d.end(); err != nil {
					t.Error(err)
				}
			})
			a := connect(t, d.MCP(), d.Token())
			for range 20 {
				a.must("screenshot", nil)
			}
			if err := d.rec.Flush(t.Context().Done()); err != nil {
				t.Fatal(err)
			}
			if w := d.ask(operator.OpStatus).Status.Warnings; len(w) != 1 || !strings.Contains(w[0], "is full") {
				t.Errorf("warnings %q", w)
			}
			a.must("gripper_translate", map[string]any{"d_z": -0.05})
			if when == "go_on" {
				a.must("execute_waypoint", nil)
			} else {
				a.refused("is full", "execute_waypoint", nil)
			}
		})
	}
}

func TestRolesOfListedTokens(t *testing.T) {
	tokens := map[string]string{}
	d := start(t, "twin-franka.yaml", func(c *Config) {
		c.Tokens = Tokens{}
		for _, role := range []string{"watcher", "driver", "operator"} {
			token, hash, err := NewToken()
			if err != nil {
				t.Fatal(err)
			}
			tokens[role] = token
			c.Tokens.List = append(c.Tokens.List, Token{Name: "the " + role, Role: role, Hash: hash})
		}
	})
	if d.Token() != "" {
		t.Error("a development token beside listed ones")
	}
	if _, err := os.Stat(d.cfg.state("token")); err == nil {
		t.Error("a token file beside listed tokens")
	}
	w := connect(t, d.MCP(), tokens["watcher"])
	w.must("screenshot", nil)
	w.refused("role", "gripper_translate", map[string]any{"d_z": -0.05})
	w.must("stop", nil)
	a := connect(t, d.MCP(), tokens["driver"])
	a.must("gripper_translate", map[string]any{"d_z": -0.05})
	connect(t, d.MCP(), tokens["operator"]).refused("driv", "gripper_translate", map[string]any{"d_z": -0.05})
	r, err := http.Post(d.MCP(), "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Body.Close(); err != nil || r.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v %v", r.StatusCode, err)
	}
}

func TestTheDoorSpeaksOnlyToThoseItKnows(t *testing.T) {
	d := start(t, "twin-franka.yaml", nil)
	base := strings.TrimSuffix(d.MCP(), "/mcp")
	for _, c := range []struct {
		method, path, host, origin string
		status                     int
	}{
		{"GET", "/.well-known/oauth-protected-resource", "", "", 404},
		{"GET", "/", "evil.example", "", 403},
		{"GET", "/", "", "https://evil.example", 403},
		{"GET", "/", "", "", 401},
		{"GET", "/page.js", "", "", 200},
		{"GET", "/etc/passwd", "", "", 404},
		{"GET", "/api/feed", "", "", 401},
		{"POST", "/api/stop", "", "", 401},
		{"POST", "/mcp", "", "", 401},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, base+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		r, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != c.status {
			t.Errorf("%+v: %d", c, r.StatusCode)
		}
		if strings.HasPrefix(c.path, "/.well-known") && !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: %s", c.path, r.Header.Get("Content-Type"))
		}
		if err := r.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestStatusIsJSONThatHoldsNumbersOnly(t *testing.T) {
	d := start(t, "twin-stretch4.yaml", nil)
	if b, err := json.Marshal(d.status()); err != nil || !strings.Contains(string(b), `"face":"2d"`) {
		t.Errorf("%s %v", b, err)
	}
}
