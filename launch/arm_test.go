package launch

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"viad/drivers/robot"
	"viad/interface/operator"
)

// A real robot comes up disarmed, and so does a twin that is told to behave like one: after every start.
func TestDisarmedAfterARestart(t *testing.T) {
	dir := t.TempDir()
	change := func(c *Config) { c.Robot.Arm, c.StateDir = "operator", dir }
	d := start(t, "twin-franka.yaml", change)
	if a := d.ask(operator.OpArm); !a.OK {
		t.Fatalf("%+v", a)
	}
	a := connect(t, d.MCP(), d.Token())
	a.must("gripper_translate", map[string]any{"d_z": -0.05})
	a.must("execute_waypoint", nil)
	if err := d.end(); err != nil {
		t.Fatal(err)
	}
	d = start(t, "twin-franka.yaml", change)
	if s := d.ask(operator.OpStatus).Status; s.Armed {
		t.Errorf("armed after a restart: %+v", s)
	}
	a = connect(t, d.MCP(), d.Token())
	a.must("gripper_translate", map[string]any{"d_z": -0.05})
	a.refused("not armed", "execute_waypoint", nil)
}

// Only an operator arms and clears: not a tool, not the page of a driver or a watcher, not an operator's bearer
// token, not another site's page in the operator's browser; in clear and behind TLS.
func TestOnlyAnOperatorArms(t *testing.T) {
	for name, tls := range map[string]TLS{"in clear": {}, "TLS": {Generate: true}} {
		t.Run(name, func(t *testing.T) {
			change, tokens := people(t, "driver ann", "operator olga", "watcher will")
			d := start(t, "twin-franka.yaml", func(c *Config) {
				change(c)
				c.Robot.Arm, c.Listen.TLS = "operator", tls
				c.Listen.Origins = []string{"https://console.lab.example"}
			})
			var tr http.RoundTripper
			hc := http.DefaultClient
			if tls.on() {
				hc = trusting(t, d, true)
				tr = hc.Transport
			}
			base := strings.TrimSuffix(d.MCP(), "/mcp")
			armed := func() bool { return d.guard.Status().Armed }
			for _, who := range []string{"driver ann", "watcher will"} {
				p := openPage(t, base, tokens[who], tr)
				for _, what := range []string{"arm", "clear", "disarm", "takeover", "free"} {
					if a := p.act(what); a.status != http.StatusForbidden || !strings.Contains(a.Error, "for operators") {
						t.Errorf("%s, %s: %+v", who, what, a)
					}
				}
				if a := p.act("stop"); !a.OK || a.Note != "stopped, confirmed" {
					t.Errorf("%s may not stop: %+v", who, a)
				}
			}
			olga := openPage(t, base, tokens["operator olga"], tr)
			own := http.Header{"Origin": {base}, "X-Viad-Page": {"1"}}
			for why, change := range map[string]func(http.Header){
				"another site":                     func(h http.Header) { h.Set("Origin", "https://evil.example") },
				"a sandboxed frame":                func(h http.Header) { h.Set("Origin", "null") },
				"no origin":                        func(h http.Header) { h.Del("Origin") },
				"a page that may call the tools":   func(h http.Header) { h.Set("Origin", "https://console.lab.example") },
				"a form, which can set no header":  func(h http.Header) { h.Del("X-Viad-Page") },
				"a browser that says what it is":   func(h http.Header) { h.Set("Sec-Fetch-Site", "cross-site") },
				"the same host, another port":      func(h http.Header) { h.Set("Origin", strings.SplitN(base, ":", 2)[0]+"://127.0.0.1:1") },
				"a page in clear of the same name": func(h http.Header) { h.Set("Origin", "gopher"+base[strings.Index(base, ":"):]) },
			} {
				h := own.Clone()
				change(h)
				if a := olga.post("arm", h); a.status != http.StatusForbidden || armed() {
					t.Errorf("%s: %+v, armed %t", why, a, armed())
				}
			}
			if tls.on() { // what a man in the middle of a page in clear would send
				h := own.Clone()
				h.Set("Origin", "http"+strings.TrimPrefix(base, "https"))
				if a := olga.post("arm", h); a.status != http.StatusForbidden {
					t.Errorf("a page in clear: %+v", a)
				}
			}
			bare := &browser{t, base, &http.Client{Transport: tr}}
			h := own.Clone()
			h.Set("Authorization", "Bearer "+tokens["operator olga"])
			if a := bare.post("arm", h); a.status != http.StatusUnauthorized {
				t.Errorf("a bearer token arms: %+v", a)
			}
			ann := connectWith(t, d.MCP(), tokens["operator olga"], hc)
			for _, n := range ann.tools() {
				if strings.Contains(n, "arm") || slices.Contains([]string{"clear", "takeover", "free", "estop"}, n) {
					t.Errorf("there is a tool %s", n)
				}
			}
			if armed() {
				t.Fatal("armed")
			}

			if a := olga.act("arm"); !a.OK || !armed() || d.guard.Status().ArmedBy != "operator olga" {
				t.Errorf("olga: %+v, armed by %q", a, d.guard.Status().ArmedBy)
			}
			will := openPage(t, base, tokens["watcher will"], tr)
			if a := will.act("estop"); !a.OK || armed() || !strings.Contains(d.guard.Latched(), "watcher will") {
				t.Errorf("an e-stop of a watcher: %+v, latched %q", a, d.guard.Latched())
			}
			if a := will.act("clear"); a.status != http.StatusForbidden || d.guard.Latched() == "" {
				t.Errorf("cleared by a watcher: %+v", a)
			}
			if a := olga.act("arm"); a.OK || armed() || !strings.Contains(a.Error, "clear the latch") {
				t.Errorf("armed while latched: %+v", a)
			}
			if a := olga.act("clear"); !a.OK || armed() || d.guard.Latched() != "" {
				t.Errorf("%+v", a)
			}
			if a := olga.act("arm"); !a.OK || !armed() {
				t.Errorf("%+v", a)
			}
		})
	}
}

// lame is a machine that says that it may not move.
type lame struct{ robot.Body }

func (l lame) State() robot.State {
	s := l.Body.State()
	s.Mode, s.Fault = robot.ModeFaulted, "servo 21 reports overload"
	return s
}

// Arming allows motion; it does not hide that the robot may not move all the same.
func TestArmSaysWhatStandsInTheWay(t *testing.T) {
	cfg := testConfig(t, "twin-franka.yaml", func(c *Config) { c.Robot.Arm = "operator" })
	s, err := New(t.Context(), cfg, Options{Bodies: func(b robot.Body, _ robot.Clock) robot.Body { return lame{b} }})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := s.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	a, err := operator.Ask(t.Context(), filepath.Join(cfg.StateDir, operator.SocketName), operator.OpArm)
	if err != nil || a.Note != "armed, but it may not move: it is faulted: servo 21 reports overload" {
		t.Errorf("%+v, %v", a, err)
	}
}
