package kill

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"viad/interface/operator"
	"viad/interface/tool/door"
)

const token = "viad_test_0123456789012345678901234567890123456789"

// settings are what a shipped launch file is changed in, by its keys.
type settings [][2]string

// launchFile is a shipped launch file with other settings.
func launchFile(t *testing.T, shipped string, s settings) string {
	t.Helper()
	text, err := os.ReadFile("../" + shipped)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range s {
		key := regexp.MustCompile(`(?m)^( *)` + regexp.QuoteMeta(kv[0]) + `:.*$`)
		if n := len(key.FindAll(text, -1)); n != 1 {
			t.Fatalf("%s has %d lines with the key %s", shipped, n, kv[0])
		}
		text = key.ReplaceAll(text, []byte("${1}"+kv[0]+": "+kv[1]))
	}
	text = bytes.Replace(text, []byte(strings.Repeat("0", 64)), []byte(door.Hash(token)), 1)
	path := filepath.Join(t.TempDir(), "robot.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// log is what a process says, for when something fails.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *verbose {
		_, _ = os.Stderr.Write(p)
	}
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// process is this test binary as viad.
func process(t *testing.T, said io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(context.Background(), self, args...)
	c.Env, c.Stderr = append(os.Environ(), asViad+"=1"), said
	return c
}

// daemon is viad in a process of its own.
type daemon struct {
	cmd    *exec.Cmd
	log    *log
	state  string
	url    string
	rest   chan struct{} // closed when its stdout has ended
	client *mcpgo.Client

	released bool // a runstop, since it was armed last
}

// startDaemon returns when the daemon says how to connect.
func startDaemon(t *testing.T, file, state string) *daemon {
	t.Helper()
	d := &daemon{log: &log{}, state: state, rest: make(chan struct{})}
	d.cmd = process(t, d.log, "run", file, "--listen", "127.0.0.1:0", "--state-dir", state)
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(out)
	for in.Scan() {
		if f := strings.Fields(in.Text()); len(f) == 2 && f[0] == "agents" {
			d.url = f[1]
		}
		if strings.Contains(in.Text(), "default_tools_approval_mode") {
			break
		}
	}
	go func() {
		defer close(d.rest)
		_, _ = io.Copy(io.Discard, out) // until the process ends
	}()
	if d.url == "" {
		<-d.rest
		t.Fatalf("viad did not start: %v\n%s", d.cmd.Wait(), d.log)
	}
	return d
}

// gone gives back what a daemon that was killed leaves.
func (d *daemon) gone() {
	d.hangUp()
	<-d.rest
	_ = d.cmd.Wait() // it was killed
}

func (d *daemon) hangUp() {
	if d.client != nil {
		_ = d.client.Close()
		d.client = nil
	}
}

// ask is a request of the operator.
func (d *daemon) ask(ctx context.Context, op operator.Op) (operator.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return operator.Ask(ctx, filepath.Join(d.state, operator.SocketName), op)
}

// ready waits until the robot says so, and returns how long that took.
func (d *daemon) ready(t *testing.T, most time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		a, err := d.ask(t.Context(), operator.OpStatus)
		if err != nil {
			t.Fatal(err)
		}
		if a.Status.Mode == "ready" && a.Status.StateAge >= 0 && a.Status.StateAge < 0.2 {
			return time.Since(began)
		}
		if a.Status.Mode == "runstopped" && !d.released {
			d.release(t)
		}
		if time.Since(began) > most {
			t.Fatalf("not ready after %v: %s %s\n%s", most, a.Status.Mode, a.Status.Fault, d.log)
		}
		<-tick.C
	}
}

// release is what the operator does where the last rung of the stop ladder was the runstop: one port of many was gone, and
// nobody could measure that the robot stood.
func (d *daemon) release(t *testing.T) {
	t.Helper()
	d.released = true
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	h, err := d.ask(ctx, operator.OpDoctor)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range h.Health.Tasks {
		if task.Name != "release" {
			continue
		}
		if _, err := operator.Send(ctx, filepath.Join(d.state, operator.SocketName), operator.Request{Op: operator.OpDo, Name: task.Name}); err != nil {
			t.Fatal(err)
		}
	}
}

// arm is what the operator does who has looked at the robot; it says what was needed.
func (d *daemon) arm(t *testing.T) string {
	t.Helper()
	a, err := d.ask(t.Context(), operator.OpStatus)
	if err != nil {
		t.Fatal(err)
	}
	did := "still armed"
	if d.released {
		did, d.released = "runstop released, ", false
	}
	if a.Status.Latched != "" {
		did = strings.TrimPrefix(did, "still armed") + "cleared, "
		if _, err := d.ask(t.Context(), operator.OpClear); err != nil {
			t.Fatal(err)
		}
	}
	if !a.Status.Armed {
		did = strings.TrimPrefix(did, "still armed") + "armed"
		if _, err := d.ask(t.Context(), operator.OpArm); err != nil {
			t.Fatal(err)
		}
	}
	return did
}

// call calls a tool; texts only.
func (d *daemon) call(ctx context.Context, tool string, args any) (text string, refused bool, err error) {
	if d.client == nil {
		if err := d.dial(ctx); err != nil {
			return "", false, err
		}
	}
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, args
	res, err := d.client.CallTool(ctx, req)
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", tool, err)
	}
	var b strings.Builder
	for _, c := range res.Content {
		if c, ok := c.(mcp.TextContent); ok {
			b.WriteString(c.Text + "\n")
		}
	}
	return b.String(), res.IsError, nil
}

func (d *daemon) dial(ctx context.Context) error {
	c, err := mcpgo.NewStreamableHttpClient(d.url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	var req mcp.InitializeRequest
	req.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	req.Params.ClientInfo = mcp.Implementation{Name: "viad-kill", Version: "1"}
	if _, err := c.Initialize(ctx, req); err != nil {
		return err
	}
	d.client = c
	return nil
}
