package launch

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"go.uber.org/goleak"

	"viad/drivers/robot"
)

// asViad makes this test binary the daemon itself, for tests that need a process of its own.
const asViad = "VIAD_TEST_AS_VIAD"

func TestMain(m *testing.M) {
	if os.Getenv(asViad) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if os.Getenv(asClient) != "" {
		os.Exit(runClient())
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, dir := range built {
			_ = os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}

// daemon is a running system on a twin as fast as it can, with a port of its own.
type daemon struct {
	*System
	t   *testing.T
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
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs a launch file until the test ends; its robot must come to rest then.
func start(t *testing.T, file string, change func(*Config)) *daemon {
	t.Helper()
	return startWith(t, file, change, func(*System) {}, nil)
}

// startWith is start with something put in before it runs, and a log.
func startWith(t *testing.T, file string, change func(*Config), before func(*System), log *slog.Logger) *daemon {
	t.Helper()
	s, err := New(t.Context(), testConfig(t, file, change), Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	before(s)
	ctx, cancel := context.WithCancel(context.Background())
	done, ready := make(chan error, 1), make(chan struct{})
	go func() { done <- s.Run(ctx, func() error { close(ready); return nil }) }()
	ended := false
	d := &daemon{System: s, t: t}
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

// agent is a real MCP client of a daemon.
type agent struct {
	t *testing.T
	c *mcpgo.Client
}

// connect opens a client over HTTP.
func connect(t *testing.T, url, token string) *agent {
	t.Helper()
	c, err := mcpgo.NewStreamableHttpClient(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		t.Fatal(err)
	}
	return hello(t, c)
}

func hello(t *testing.T, c *mcpgo.Client) *agent {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() }) // a test may have closed it, or its server
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var req mcp.InitializeRequest
	req.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	req.Params.ClientInfo = mcp.Implementation{Name: "launch-test", Version: "1"}
	if _, err := c.Initialize(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return &agent{t, c}
}

// call returns the texts of a tool's result, its pictures and whether it was an error.
func (a *agent) call(tool string, args map[string]any) (text string, pictures int, refused bool) {
	a.t.Helper()
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, args
	res, err := a.c.CallTool(a.t.Context(), req)
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	var b strings.Builder
	for _, c := range res.Content {
		switch c := c.(type) {
		case mcp.TextContent:
			b.WriteString(c.Text + "\n")
		case mcp.ImageContent:
			pictures++
		}
	}
	return b.String(), pictures, res.IsError
}

// must is call for what may not be refused.
func (a *agent) must(tool string, args map[string]any) string {
	a.t.Helper()
	text, _, refused := a.call(tool, args)
	if refused {
		a.t.Fatalf("%s %v: %s", tool, args, text)
	}
	return text
}

// refused is call for what must be refused in these words.
func (a *agent) refused(words, tool string, args map[string]any) {
	a.t.Helper()
	text, pictures, refused := a.call(tool, args)
	if !refused || pictures > 0 || !strings.Contains(text, words) {
		a.t.Errorf("%s %v: want a refusal that says %q, got %t with %d pictures: %s", tool, args, words, refused, pictures, text)
	}
}

// tools are the names of the tools.
func (a *agent) tools() []string {
	a.t.Helper()
	res, err := a.c.ListTools(a.t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		a.t.Fatal(err)
	}
	var names []string
	for _, t := range res.Tools {
		names = append(names, t.Name)
	}
	return names
}

// far stages a motion of the arm that takes some seconds.
func far(a *agent) {
	a.t.Helper()
	for range 3 {
		a.must("gripper_translate", map[string]any{"d_x": 0.08, "d_y": -0.1})
	}
}

// untilMoving returns when the robot moves.
func (d *daemon) untilMoving() {
	d.t.Helper()
	tick := d.rig.clock.Ticker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); d.guard.State().Mode != robot.ModeMoving || d.speed() < 0.05; <-tick.C() {
		if time.Now().After(end) {
			d.t.Fatal("the robot does not begin to move")
		}
	}
}

// speed is the largest of the joints' speeds and the base's, per second.
func (d *daemon) speed() float64 {
	s := d.guard.State()
	v := max(s.BaseV.Norm(), math.Abs(s.BaseV.Yaw))
	for _, x := range s.QD {
		v = max(v, math.Abs(x))
	}
	return v
}

// browser is a person's browser with the page open.
type browser struct {
	t    *testing.T
	base string
	c    *http.Client
}

// page opens the page with a token.
func (d *daemon) page(token string) *browser {
	return openPage(d.t, strings.TrimSuffix(d.MCP(), "/mcp"), token, nil)
}

func openPage(t *testing.T, base, token string, tr http.RoundTripper) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t, base, &http.Client{Jar: jar, Transport: tr}}
	r, err := b.c.Get(base + "/?token=" + token)
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != http.StatusOK {
		t.Fatalf("the page: %d", r.StatusCode)
	}
	return b
}

// said is what a switch of the page answers.
type said struct {
	OK          bool
	Note, Error string
	status      int
}

// act presses a switch as the page's script does.
func (b *browser) act(what string) said {
	b.t.Helper()
	return b.post(what, http.Header{"Origin": {b.base}, "X-Viad-Page": {"1"}, "Sec-Fetch-Site": {"same-origin"}})
}

func (b *browser) post(what string, h http.Header) said {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+"/api/"+what, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header = h
	r, err := b.c.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Body.Close()
	s := said{status: r.StatusCode}
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		b.t.Fatal(err)
	}
	return s
}
