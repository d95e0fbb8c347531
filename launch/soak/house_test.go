package soak

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/interface/operator"
	"viad/launch"
	"viad/sim"
)

// house is a running daemon, its monitor and its clients.
type house struct {
	sys    *launch.System
	mon    *sim.Monitor
	log    *ledger
	eyes   []*eye
	limb   *limb
	turn   sync.Mutex // of those who wait for theirs
	desk   sync.Mutex // so that the monitor hears in what order the daemon was told
	socket string
	guests []*guest

	mu        sync.Mutex
	counts    map[string]int
	bad       []string
	badN      int
	abandoned time.Time // when a client last gave up an execute
}

// guest is a client.
type guest struct {
	h      *house
	name   string
	role   role
	token  string
	dial   func(context.Context, string, *wire) (caller, error)
	wire   *wire
	c      caller
	gaveUp bool // a call over this connection
	steps  []step
}

// start runs the daemon of a shipped launch file on a twin as fast as it goes, for tokens of its own.
func start(t *testing.T, file string, n int) *house {
	t.Helper()
	c, err := launch.Read("../" + file)
	if err != nil {
		t.Fatal(err)
	}
	c.StateDir = t.TempDir()
	c.Robot.Pace, c.Perception.Rate, c.Listen.Address = "fast", 0, "127.0.0.1:0"
	c.Record.Quota = 64 << 20 // so that it is used up
	c.Tokens = launch.Tokens{}
	h := &house{log: &ledger{lines: map[string]int{}}, counts: map[string]int{}, socket: filepath.Join(c.StateDir, operator.SocketName)}
	for i := range *clients {
		g := &guest{h: h, role: [...]role{driver, driver, watcher, person}[i%4], name: fmt.Sprintf("%s%d", [...]string{"ann", "bob", "wim", "opa"}[i%4], i/4)}
		g.dial = [...]func(context.Context, string, *wire) (caller, error){dialMCPGo, dialSDK, dialMCPGo, dialSDK}[i%4]
		var hash string
		if g.token, hash, err = launch.NewToken(); err != nil {
			t.Fatal(err)
		}
		c.Tokens.List = append(c.Tokens.List, launch.Token{Name: g.name, Role: [...]string{"driver", "watcher", "operator"}[g.role], Hash: hash})
		h.guests = append(h.guests, g)
	}
	h.run(t, c)
	h.mon = h.sys.Twin().Watch(rules(c))
	for i, g := range h.guests {
		g.connect(t.Context())
		if g.c == nil {
			t.Fatalf("%s did not get in: %v", g.name, h.bad)
		}
		if i > 0 {
			continue
		}
		tools, err := g.c.(*mcpgoCaller).tools(t.Context())
		if err != nil || len(tools) < 14 {
			t.Fatalf("%d tools, %v", len(tools), err)
		}
		for k, other := range h.guests {
			other.steps = script(*seed, k, other.role, tools, n/len(h.guests))
		}
		// What is made once is made before anything is measured.
		for _, s := range script(*seed, -1, driver, tools, 60) {
			if s.kind == doCall && s.tool != "end_episode" {
				g.do(s)
			}
		}
		clear(h.counts)
	}
	return h
}

func (h *house) run(t *testing.T, c *launch.Config) {
	t.Helper()
	s, err := launch.New(t.Context(), c, launch.Options{Log: slog.New(h.log), Sources: func(in []sensor.Source) []sensor.Source {
		var out []sensor.Source
		for _, src := range in {
			e := &eye{Source: src}
			h.eyes = append(h.eyes, e)
			out = append(out, e)
		}
		return out
	}, Bodies: func(b robot.Body, c robot.Clock) robot.Body {
		h.limb = &limb{Body: b, clock: c, seen: func(what trouble) { h.add("machine: " + string(what)) }, over: make(chan struct{})}
		return h.limb
	}})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := s.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	h.sys = s
	t.Cleanup(func() {
		for _, g := range h.guests {
			g.leave()
		}
		err := stop()
		close(h.limb.over)
		if err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
}

// rules are the launch file's limits, with what a servo may be off by. The guard allows plans a quarter above the
// planned speed, and so does the monitor.
func rules(c *launch.Config) sim.Rules {
	l, b := &c.Limits, c.Limits.ToolBox
	return sim.Rules{
		Box: &r3.Box{
			Min: r3.Vec{X: float64(b.X[0]), Y: float64(b.Y[0]), Z: float64(b.Z[0])},
			Max: r3.Vec{X: float64(b.X[1]), Y: float64(b.Y[1]), Z: float64(b.Z[1])},
		}, BoxSlack: 0.005, JointSlack: 0.005, JointSpeed: 1.05,
		ToolSpeed: float64(l.ToolSpeed), ToolTurn: float64(l.ToolTurn), BaseSpeed: float64(l.BaseSpeed), BaseTurn: float64(l.BaseTurn), SpeedSlack: 0.3,
		Still: 0.03, Drift: 0.01,
	}
}

// phase lets every client do its next steps, and waits.
func (h *house) phase(phase int) {
	var wg sync.WaitGroup
	for _, g := range h.guests {
		wg.Go(func() {
			for _, s := range g.steps[phase*len(g.steps)/phases : (phase+1)*len(g.steps)/phases] {
				g.do(s)
			}
		})
	}
	wg.Wait()
}

// quiet waits until nothing that was given up is still being done.
func (h *house) quiet(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		a, err := operator.Ask(t.Context(), h.socket, operator.OpStatus)
		if err == nil && !a.Status.Moving && time.Since(h.last()) > settled {
			return
		}
		<-tick.C
	}
	h.complain("the robot was still moving 20 s after the last call")
}

// rest closes the connections that nobody uses and waits until both ends are gone.
func (h *house) rest() {
	for _, g := range h.guests {
		if g.wire != nil {
			g.wire.tr.CloseIdleConnections()
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	same, last := 0, 0
	for range 200 {
		<-tick.C
		n := runtime.NumGoroutine()
		if same++; n != last {
			same, last = 0, n
		}
		if same == 10 {
			return
		}
	}
}

// settled is how long a request that was given up may still be on its way into the daemon.
const settled = 2 * time.Second

func (h *house) last() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.abandoned
}

func (h *house) abandon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.abandoned = time.Now()
}

func (h *house) add(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what]++
}

func (h *house) count(what string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts[what]
}

func (h *house) complain(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.badN++
	if len(h.bad) < 20 {
		h.bad = append(h.bad, fmt.Sprintf("%.600s", fmt.Sprintf(format, args...)))
	}
}

func (h *house) complaints() ([]string, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bad, h.badN
}

func (h *house) report() string {
	var out []string
	h.mu.Lock()
	for k, n := range h.counts {
		out = append(out, fmt.Sprintf("%s %d", k, n))
	}
	h.mu.Unlock()
	sort.Strings(out)
	var lines []string
	h.log.mu.Lock()
	for k, n := range h.log.lines {
		lines = append(lines, fmt.Sprintf("%s: %d", k, n))
	}
	h.log.mu.Unlock()
	sort.Strings(lines)
	return fmt.Sprintf("%s\n%d physics steps watched, %d violations\nlogged: %s",
		strings.Join(out, ", "), h.mon.Steps(), len(h.mon.Violations()), strings.Join(lines, "; "))
}

// patience is how long any call may take on a busy machine before it counts as hung.
const patience = 2 * time.Minute

func (g *guest) connect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	g.wire, g.gaveUp = newWire(g.token), false
	c, err := g.dial(ctx, g.h.sys.MCP(), g.wire)
	if err != nil {
		g.h.complain("%s cannot connect: %v", g.name, err)
		return
	}
	g.c = c
}

// leave ends the client; one whose connections were cut cannot say so, and that is no error.
func (g *guest) leave() {
	if g.c != nil {
		_ = g.c.close()
		g.c = nil
	}
	if g.wire != nil {
		g.wire.kill()
	}
}

func (g *guest) do(s step) {
	if s.kind == doTurn {
		g.h.turn.Lock()
		defer g.h.turn.Unlock()
		for _, one := range s.own {
			g.do(one)
		}
		return
	}
	g.h.add("sent")
	if g.c == nil {
		g.connect(context.Background())
		if g.c == nil {
			return
		}
	}
	switch s.kind {
	case doCall, doAbort, doKill:
		g.call(s)
	case doDelete:
		g.h.add("sessions ended")
		g.leave()
		g.connect(context.Background())
	case doRaw:
		g.raw(s.n)
	case doOp:
		g.operate(s.op)
	case doRunstop:
		g.h.add("runstops pressed")
		// Whoever presses it does not wait for the daemon. The twin is not over yet, so this cannot fail.
		_ = g.h.sys.Twin().Body().Halt(context.Background(), robot.RungPower)
	case doFault:
		g.h.add("sensor faults")
		g.h.eyes[s.n%len(g.h.eyes)].fault.Store(int32(1 + s.n/7%(kinds-1)))
	case doBreak:
		g.h.limb.fail(s.n)
	case doHeal:
		g.h.limb.heal()
		for _, e := range g.h.eyes {
			e.fault.Store(fine)
		}
	}
}

var refusal = regexp.MustCompile(`^(refused|failed): .+[.!?]\)?$`) // what was ignored is said in brackets

// call makes a call, or begins one and gives it up.
func (g *guest) call(s step) {
	h := g.h
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch s.kind {
	case doAbort:
		defer time.AfterFunc(s.wait, cancel).Stop()
	case doKill:
		defer time.AfterFunc(s.wait, g.wire.kill).Stop()
	}
	mark := h.mon.Mark()
	if s.tool == "execute_waypoint" {
		h.mon.Allow()
	}
	r, err := g.c.call(ctx, s.tool, s.args)
	switch {
	case err != nil:
		g.failed(s, ctx.Err(), err)
	case r.refused:
		h.add("refused")
		if s.tool == "execute_waypoint" && !s.bad {
			h.add("execute " + firstWords(r.text()))
		}
		g.refused(s, &r)
	default:
		h.add("answered")
		g.answered(s, &r, mark)
	}
	if s.kind == doKill {
		h.add("clients killed")
		g.wire.kill()
		g.leave()
		g.connect(context.Background())
	}
}

// failed is a call without a result: rightly so when it was given up, or when it was not one.
func (g *guest) failed(s step, over, err error) {
	h, gaveUp := g.h, g.gaveUp
	g.gaveUp = g.gaveUp || s.kind == doAbort
	switch {
	case s.kind != doCall:
		h.add("given up")
		if s.tool == "execute_waypoint" {
			h.mon.Allow() // it may still come in
			h.abandon()
		}
	case over != nil:
		h.complain("%s: %s %.100s did not come back within %v", g.name, s.tool, s.args, patience)
	case s.odd:
		h.add("protocol errors")
	case gaveUp && strings.Contains(err.Error(), context.Canceled.Error()):
		// go-sdk's client at times takes its whole connection for cancelled when one call was, also some calls
		// later. No server can say this, and the call's own context lives.
		h.add("clients that broke by giving up")
		g.leave()
	default:
		h.complain("%s: %s %.100s: %v", g.name, s.tool, s.args, err)
		g.leave()
	}
}

var rule = regexp.MustCompile(`(?:refused|failed): [^,.:;]*`)

// firstWords is the rule that a refusal names.
func firstWords(text string) string { return rule.FindString(text) }

// refused must be one sentence that begins with the tool's name.
func (g *guest) refused(s step, r *reply) {
	text := r.text()
	told := text
	if strings.HasPrefix(text, "repeated: ") { // a stored answer says first that it is one
		_, told, _ = strings.Cut(text, "judged anew. ")
	}
	rest, ok := strings.CutPrefix(told, s.tool+" ")
	if s.tool == "stop" && strings.HasPrefix(text, "stop: ") {
		rest, ok = "failed: "+text, true
		g.h.add("stops not confirmed")
	}
	if !ok || r.blocks != 1 || strings.Contains(text, "\n") || len(text) > 1500 || !refusal.MatchString(rest) {
		g.h.complain("%s: %s %.100s was refused in these words (%d blocks): %q", g.name, s.tool, s.args, r.blocks, text)
	}
}

func (g *guest) answered(s step, r *reply, mark uint64) {
	h := g.h
	if s.bad {
		h.complain("%s: %s %.200s should be refused, and was not: %.100s", g.name, s.tool, s.args, r.text())
	}
	if r.blocks == 0 || r.bytes > 1<<20 {
		h.complain("%s: %s: %d blocks of %d bytes", g.name, s.tool, r.blocks, r.bytes)
	}
	text := strings.Join(r.texts, "\n")
	switch {
	case s.tool == "execute_waypoint" && strings.Contains(text, `"outcome"`), s.tool == "execute_waypoint" && strings.Contains(text, "executed waypoint"):
		h.add("moved")
	case s.tool == "stop":
		if !strings.HasPrefix(r.text(), "stop: stopped, confirmed") {
			h.complain("%s: stop was answered with %.200s", g.name, text)
		}
		h.stopped(mark)
	case s.tool == "end_episode":
		h.add("episodes")
	}
}

// stopped tells the monitor of a confirmed stop, unless an execute that was given up may be on its way still.
func (h *house) stopped(mark uint64) {
	if time.Since(h.last()) > settled {
		h.mon.MarkStopped(mark)
		h.add("stops watched")
	}
}

// operate speaks to the operator's socket, and tells the monitor what was said.
func (g *guest) operate(op operator.Op) {
	h := g.h
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h.desk.Lock()
	defer h.desk.Unlock()
	mark := h.mon.Mark()
	if op == operator.OpArm {
		h.mon.SetArmed(true)
	}
	_, err := operator.Ask(ctx, h.socket, op)
	h.add("operator " + string(op))
	if err != nil {
		if !errors.Is(err, operator.ErrRefused) {
			h.complain("operator's %s: %v", op, err)
		}
		h.add("operator refused")
		return
	}
	switch op {
	case operator.OpStop, operator.OpTakeOver:
		h.stopped(mark)
	case operator.OpEStop, operator.OpDisarm:
		h.mon.SetArmed(false)
	}
}
