package launch

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"viad/interface/operator"
)

// Whoever drives is told who stopped the robot, wherever the stop came from; the record and the log know as well.
func TestAStopNamesWhoAskedForIt(t *testing.T) {
	change, tokens := people(t, "driver ann", "watcher will", "operator olga")
	for name, c := range map[string]struct {
		stop func(t *testing.T, d *daemon)
		says string
	}{
		"the stop tool":     {func(t *testing.T, d *daemon) { connect(t, d.MCP(), tokens["watcher will"]).must("stop", nil) }, "stopped by the stop tool of watcher will"},
		"the page":          {func(_ *testing.T, d *daemon) { d.page(tokens["watcher will"]).act("stop") }, "stopped by watcher will on the page"},
		"the page's e-stop": {func(_ *testing.T, d *daemon) { d.page(tokens["watcher will"]).act("estop") }, "stopped by the e-stop of watcher will on the page"},
		"viactl stop":       {func(_ *testing.T, d *daemon) { d.ask(operator.OpStop) }, "stopped by viactl (uid "},
		"viactl disarm":     {func(_ *testing.T, d *daemon) { d.ask(operator.OpDisarm) }, "stopped by viactl (uid "},
		"viactl takeover":   {func(_ *testing.T, d *daemon) { d.ask(operator.OpTakeOver) }, "stopped by the take-over by viactl (uid "},
	} {
		t.Run(name, func(t *testing.T) {
			log := &pages{}
			d := startWith(t, "twin-franka.yaml", func(f *Config) { change(f); slowly(f) }, func(*System) {}, logTo(log))
			a := connect(t, d.MCP(), tokens["driver ann"])
			far(a)
			told := make(chan string, 1)
			go func() {
				text, _, _ := a.call("execute_waypoint", nil)
				told <- text
			}()
			d.untilMoving()
			c.stop(t, d)
			if text := <-told; !strings.Contains(text, c.says) {
				t.Errorf("want %q, the driver is told: %s", c.says, text)
			}
			if log.count(strings.TrimPrefix(c.says, "stopped by ")) == 0 {
				t.Errorf("the log does not say %q", c.says)
			}
		})
	}
}

// A signal that ends the daemon is named too.
func TestASignalIsNamed(t *testing.T) {
	p := launchProcess(t, "twin-franka.yaml")
	a := connect(t, p.url, p.token)
	far(a)
	told := make(chan string, 1)
	go func() {
		text, _, _ := a.call("execute_waypoint", nil)
		told <- text
	}()
	p.untilMoving(t)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if text := <-told; !strings.Contains(text, "stopped by the end of the daemon (terminated signal received)") {
		t.Errorf("the driver is told: %s", text)
	}
	<-p.rest
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Who drives and lets go of the request is told, by the next look, what ended the motion and what the robot does now.
func TestALetGoRequestIsNamed(t *testing.T) {
	change, tokens := people(t, "driver ann")
	d := startWith(t, "twin-franka.yaml", func(f *Config) { change(f); slowly(f); f.OnClientGone = "stop" }, func(*System) {}, nil)
	a := connect(t, d.MCP(), tokens["driver ann"])
	far(a)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var req mcp.CallToolRequest
		req.Params.Name = "execute_waypoint"
		if res, err := a.c.CallTool(ctx, req); err == nil { // it ends with ctx
			t.Errorf("it was answered: %v", res.Content)
		}
	}()
	d.untilMoving()
	cancel()
	<-done
	b := connect(t, d.MCP(), tokens["driver ann"])
	const says = "stopped because the request that carried the motion ended: driver ann has gone or cancelled it; the robot holds where it stopped"
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		text := b.must("screenshot", nil)
		if strings.Contains(text, says) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("want %q, the driver is told: %s", says, text)
		}
	}
}
