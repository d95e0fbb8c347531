package launch

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	sessions    = "2025-11-25" // MCP with sessions
	sessionless = "2026-07-28" // and without
)

// slowly is a robot in real time whose long way takes about ten seconds.
func slowly(c *Config) {
	realTime(c)
	c.Limits.SpeedScale = 0.12
}

func (d *daemon) errand() errand {
	e := errand{URL: d.MCP(), Token: d.Token(), Protocol: sessions}
	if d.cfg.Listen.TLS.on() {
		e.Cert = d.shown.path
	}
	return e
}

// The client dies in mid-motion: within a second the robot stands still.
func TestKilledClient(t *testing.T) {
	for _, c := range []struct {
		name     string
		tls, h1  bool
		progress bool
		protocol string
		long     bool // not in the short form
	}{
		{name: "HTTP/1.1", protocol: sessions},
		{name: "HTTP/1.1 without sessions", progress: true, protocol: sessionless, long: true},
		{name: "HTTP/1.1 over TLS", tls: true, h1: true, protocol: sessions, long: true},
		{name: "HTTP/2 over TLS", tls: true, progress: true, protocol: sessionless},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("in the long form")
			}
			d := start(t, "twin-franka.yaml", func(f *Config) { slowly(f); f.Listen.TLS.Generate = c.tls })
			e := d.errand()
			e.H1, e.Progress, e.Protocol = c.h1, c.progress, c.protocol
			r := send(t, e)
			k := d.trackMoving()
			killed := time.Now()
			if err := r.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			d.untilRest(10 * time.Second)
			k.stopTimes(t, "SIGKILL", killed, time.Second)
			next, err := d.errand().client()
			if err != nil {
				t.Fatal(err)
			}
			d.told(hello(t, next), "stopped_short; stopped, confirmed")
		})
	}
}

// untilRest returns when no motion is under way any more.
func (d *daemon) untilRest(most time.Duration) {
	d.t.Helper()
	for end := time.Now().Add(most); d.guard.Status().Moving; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Errorf("it still moves after %v", most)
			return
		}
	}
	time.Sleep(200 * time.Millisecond) // that a robot which goes on is seen
}

// told checks what the next client is told of the motion, once its result is there with its pictures.
func (d *daemon) told(a *agent, result string) {
	d.t.Helper()
	text := a.must("screenshot", nil)
	for end := time.Now().Add(10 * time.Second); !strings.Contains(text, "whose reply was not delivered") && time.Now().Before(end); {
		text = a.must("screenshot", nil)
	}
	if !strings.Contains(text, "whose reply was not delivered") || !strings.Contains(text, result) {
		d.t.Errorf("the next client is not told of a lost reply with %q: %s", result, text)
	}
}

// The request is given up, or its session is ended, while the client lives on.
func TestAbandonedRequest(t *testing.T) {
	for _, c := range []struct {
		name     string
		protocol string
		tls      bool
		abandon  func(t *testing.T, d *daemon, session string, cancel context.CancelFunc)
	}{
		{"aborted", sessions, false, abort},
		{"aborted, without sessions", sessionless, false, abort},
		{"aborted, HTTP/2 over TLS", sessionless, true, abort},
		{"DELETE of the session", sessions, false, func(t *testing.T, d *daemon, session string, _ context.CancelFunc) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, d.MCP(), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+d.Token())
			req.Header.Set("Mcp-Session-Id", session)
			r, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if r.Body.Close(); r.StatusCode != http.StatusOK {
				t.Fatalf("DELETE: %d", r.StatusCode)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := start(t, "twin-franka.yaml", func(f *Config) { slowly(f); f.Listen.TLS.Generate = c.tls })
			e := d.errand()
			e.Protocol, e.Progress = c.protocol, true
			cl, err := e.client()
			if err != nil {
				t.Fatal(err)
			}
			a := hello(t, cl)
			far(a)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			gone := make(chan error, 1)
			go func() {
				_, err := cl.CallTool(ctx, e.execute())
				gone <- err
			}()
			k := d.trackMoving()
			left := time.Now()
			c.abandon(t, d, cl.GetTransport().GetSessionId(), cancel)
			d.untilRest(10 * time.Second)
			k.stopTimes(t, c.name, left, time.Second)
			cancel()
			if err := <-gone; err == nil && strings.HasPrefix(c.name, "aborted") {
				t.Error("the request that was given up was answered")
			}
		})
	}
}

func abort(_ *testing.T, _ *daemon, _ string, cancel context.CancelFunc) { cancel() }

// Where the launch file says finish, the motion ends where it was to end, and the next client is told.
func TestKilledClientOfARobotThatFinishes(t *testing.T) {
	d := start(t, "twin-franka.yaml", func(f *Config) { realTime(f); f.OnClientGone = "finish" })
	r := send(t, d.errand())
	k := d.trackMoving()
	killed := time.Now()
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.untilRest(30 * time.Second)
	if wall, _, moved := k.rest(killed); !moved || wall < 500*time.Millisecond {
		t.Errorf("it moved before: %t, and for another %v", moved, wall)
	}
	cl, err := d.errand().client()
	if err != nil {
		t.Fatal(err)
	}
	d.told(hello(t, cl), "reached; stopped, confirmed")
}

// A frozen client cannot be told from one that thinks: the cap of the launch file ends the motion.
func TestFrozenClient(t *testing.T) {
	if testing.Short() {
		t.Skip("in the long form")
	}
	const limit = 5 * time.Second
	d := start(t, "twin-franka.yaml", func(f *Config) { slowly(f); f.Limits.Motion = Duration(limit) })
	e := d.errand()
	e.Progress = true
	asked := time.Now()
	r := send(t, e)
	k := d.trackMoving()
	if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	frozen := time.Now()
	d.untilRest(20 * time.Second)
	wall, _, moved := k.rest(frozen)
	if since := frozen.Add(wall).Sub(asked); !moved || since < limit-time.Second || since > limit+4*time.Second {
		t.Errorf("moved: %t; it stood still %v after the call, the cap is %v", moved, since, limit)
	}
	t.Logf("frozen for %v when it stood still", wall.Round(time.Millisecond))
	if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if text := r.says(t, "told:"); !strings.Contains(text, "stopped, confirmed") || strings.Contains(text, ": reached") {
		t.Errorf("when it wakes it is told: %s", text)
	}
}

// wire is two machines on one cable: this one, and a client's in a network namespace.
type wire struct{ here, there, ns string }

var wires atomic.Int32

// newWire lays the cable, where the machine allows that.
func newWire(t *testing.T) *wire {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	id := fmt.Sprintf("%d%c", os.Getpid()%100000, 'a'+wires.Add(1)%26) // links go some time after their names
	w := &wire{here: "10.213.77.1", there: "10.213.77.2", ns: "viad" + id}
	a, b := "viada"+id, "viadb"+id
	ip := func(args ...string) error {
		out, err := exec.CommandContext(context.Background(), "ip", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	if err := ip("netns", "add", w.ns); err != nil {
		t.Skipf("no network namespace can be had here: %v", err)
	}
	t.Cleanup(func() {
		if err := ip("link", "del", a); err != nil { // its other end goes with it
			t.Error(err)
		}
		if err := ip("netns", "del", w.ns); err != nil {
			t.Error(err)
		}
	})
	for _, args := range [][]string{
		{"link", "add", a, "type", "veth", "peer", "name", b},
		{"link", "set", b, "netns", w.ns},
		{"addr", "add", w.here + "/30", "dev", a},
		{"link", "set", a, "up"},
		{"-n", w.ns, "addr", "add", w.there + "/30", "dev", b},
		{"-n", w.ns, "link", "set", b, "up"},
	} {
		if err := ip(args...); err != nil {
			t.Skipf("no virtual cable can be had here: %v", err)
		}
	}
	return w
}

// cut lets nothing of the client's machine come through any more: no data, no acknowledgement, no FIN, no RST. The
// daemon's side of the cable stays up.
func (w *wire) cut(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "ip", "-n", w.ns, "route", "add", "blackhole", w.here+"/32").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// The network fails without a word in mid-motion: within eight seconds the robot stands still.
func TestSilentNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("in the long form")
	}
	for _, c := range []struct {
		name     string
		h1       bool
		progress bool
		protocol string
	}{
		{"HTTP/2, nothing on the way", false, false, sessions},
		{"HTTP/2, progress on the way", false, true, sessionless},
		{"HTTP/1.1, progress on the way", true, true, sessions},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			change, tokens := people(t, "driver ann")
			d := start(t, "twin-franka.yaml", func(f *Config) {
				slowly(f)
				change(f)
				f.Listen.Address, f.Listen.TLS.Generate = w.here+":0", true
			})
			e := d.errand()
			e.Token, e.H1, e.Progress, e.Protocol = tokens["driver ann"], c.h1, c.progress, c.protocol
			send(t, e, "ip", "netns", "exec", w.ns)
			k := d.trackMoving()
			w.cut(t)
			cut := time.Now()
			d.untilRest(20 * time.Second)
			wall, _, _ := k.rest(cut)
			k.stopTimes(t, "cable cut", cut, 8*time.Second)
			if wall < time.Second {
				t.Errorf("noticed after %v: was it the cut?", wall)
			}
		})
	}
}
