package launch

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// asClient makes this test binary an agent in a process of its own, which can be killed, frozen and cut off.
const asClient = "VIAD_TEST_AS_CLIENT"

// errand is what such an agent is told, as JSON in its environment.
type errand struct {
	URL, Token string
	Cert       string // PEM file to trust; empty: none
	H1         bool   // not HTTP/2
	Protocol   string // of MCP
	Progress   bool   // ask for progress notifications
}

// client is an MCP client for the errand.
func (e errand) client() (*mcpgo.Client, error) {
	tr := &http.Transport{}
	if e.Cert != "" {
		b, err := os.ReadFile(e.Cert)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(b)
		tr.TLSClientConfig, tr.ForceAttemptHTTP2 = &tls.Config{RootCAs: pool}, !e.H1
		if e.H1 {
			tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
	}
	wire, err := transport.NewStreamableHTTP(e.URL, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + e.Token}),
		transport.WithHTTPBasicClient(&http.Client{Transport: tr}))
	if err != nil {
		return nil, err
	}
	return mcpgo.NewClient(wire, mcpgo.WithProtocolVersion(e.Protocol)), nil
}

// execute is the call that moves the robot.
func (e errand) execute() mcp.CallToolRequest {
	var req mcp.CallToolRequest
	req.Params.Name = "execute_waypoint"
	if e.Progress {
		req.Params.Meta = &mcp.Meta{ProgressToken: "p"}
	}
	return req
}

// runClient does the errand: it stages a long way, says so, executes it and says what it was told.
func runClient() int {
	var e errand
	if err := json.Unmarshal([]byte(os.Getenv(asClient)), &e); err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	err := func() error {
		ctx := context.Background()
		c, err := e.client()
		if err != nil {
			return err
		}
		if err := c.Start(ctx); err != nil {
			return err
		}
		var in mcp.InitializeRequest
		in.Params.ProtocolVersion, in.Params.ClientInfo = e.Protocol, mcp.Implementation{Name: "client-process", Version: "1"}
		if _, err := c.Initialize(ctx, in); err != nil {
			return err
		}
		for range 4 {
			var req mcp.CallToolRequest
			req.Params.Name, req.Params.Arguments = "gripper_translate", map[string]any{"d_x": 0.05, "d_y": -0.1}
			res, err := c.CallTool(ctx, req)
			if err != nil {
				return fmt.Errorf("gripper_translate: %w", err)
			}
			if res.IsError {
				return fmt.Errorf("gripper_translate refused: %v", res)
			}
		}
		fmt.Println("executing")
		res, err := c.CallTool(ctx, e.execute())
		if err != nil {
			return err
		}
		for _, b := range res.Content {
			if t, ok := b.(mcp.TextContent); ok {
				fmt.Println("told:", strings.ReplaceAll(t.Text, "\n", " | "))
			}
		}
		return nil
	}()
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	return 0
}

// remote is an agent in a process of its own.
type remote struct {
	cmd   *exec.Cmd
	lines chan string // what it says; closed at its end
}

// send starts an agent; before is put before its command line, as "ip netns exec NAME".
func send(t *testing.T, e errand, before ...string) *remote {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	what, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	args := append(before, self)
	r := &remote{cmd: exec.CommandContext(t.Context(), args[0], args[1:]...), lines: make(chan string, 100)}
	r.cmd.Env = append(os.Environ(), asClient+"="+string(what))
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		in := bufio.NewScanner(out)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			r.lines <- in.Text()
		}
		close(r.lines)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it may have ended
		for range r.lines {
		}
		_ = r.cmd.Wait() // killed, as was meant
	})
	r.says(t, "executing")
	return r
}

// says waits for a line that begins so.
func (r *remote) says(t *testing.T, begin string) string {
	t.Helper()
	late := time.After(60 * time.Second)
	for {
		select {
		case l, ok := <-r.lines:
			switch {
			case !ok:
				t.Fatalf("the client ended and did not say %q", begin)
			case strings.HasPrefix(l, begin):
				return l
			case strings.HasPrefix(l, "failed"):
				t.Fatalf("the client %s", l)
			}
		case <-late:
			t.Fatalf("the client does not say %q", begin)
		}
	}
}
