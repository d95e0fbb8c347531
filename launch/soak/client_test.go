package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// reply is what came back from a tool.
type reply struct {
	refused bool
	texts   []string
	bytes   int // of texts and pictures
	blocks  int
}

func (r *reply) text() string {
	if len(r.texts) == 0 {
		return ""
	}
	return r.texts[0]
}

func (r *reply) add(text string) {
	r.texts = append(r.texts, text)
	r.bytes += len(text)
}

// caller is a real MCP client.
type caller interface {
	call(ctx context.Context, tool string, args json.RawMessage) (reply, error)
	close() error
}

// wire is one client's own connections, which can be cut like a killed process's.
type wire struct {
	token string
	tr    *http.Transport

	mu    sync.Mutex
	dead  bool
	conns []*net.TCPConn
}

var errDead = errors.New("this client is dead")

func newWire(token string) *wire {
	w := &wire{token: token}
	w.tr = &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return c, nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.dead {
			return nil, errors.Join(errDead, tcp.Close())
		}
		w.conns = append(w.conns, tcp)
		return tcp, nil
	}}
	return w
}

// RoundTrip adds the token.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	dead := w.dead
	w.mu.Unlock()
	if dead {
		return nil, errDead
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.tr.RoundTrip(r)
}

// kill resets every connection and lets none be made any more: nothing is said to the server.
func (w *wire) kill() {
	w.mu.Lock()
	w.dead = true
	for _, c := range w.conns {
		_ = c.SetLinger(0) // it may be closed already, and so may the next
		_ = c.Close()
	}
	w.conns = nil
	w.mu.Unlock()
	w.tr.CloseIdleConnections()
}

type mcpgoCaller struct{ c *mcpgo.Client }

func dialMCPGo(ctx context.Context, url string, w *wire) (caller, error) {
	c, err := mcpgo.NewStreamableHttpClient(url, transport.WithHTTPBasicClient(&http.Client{Transport: w}))
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	var req mcp.InitializeRequest
	req.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	req.Params.ClientInfo = mcp.Implementation{Name: "viad-soak", Version: "1"}
	if _, err := c.Initialize(ctx, req); err != nil {
		return nil, errors.Join(fmt.Errorf("initialize: %w", err), c.Close())
	}
	return &mcpgoCaller{c}, nil
}

func (m *mcpgoCaller) call(ctx context.Context, tool string, args json.RawMessage) (reply, error) {
	var req mcp.CallToolRequest
	req.Params.Name = tool
	if args != nil {
		req.Params.Arguments = args
	}
	res, err := m.c.CallTool(ctx, req)
	if err != nil {
		return reply{}, err
	}
	r := reply{refused: res.IsError, blocks: len(res.Content)}
	for _, c := range res.Content {
		switch c := c.(type) {
		case mcp.TextContent:
			r.add(c.Text)
		case mcp.ImageContent:
			r.bytes += len(c.Data)
		}
	}
	return r, nil
}

func (m *mcpgoCaller) close() error { return m.c.Close() }

// tools lists what there is, as a client sees it.
func (m *mcpgoCaller) tools(ctx context.Context) ([]toolInfo, error) {
	res, err := m.c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(res.Tools)
	if err != nil {
		return nil, err
	}
	var out []toolInfo
	return out, json.Unmarshal(b, &out)
}

type sdkCaller struct{ s *sdk.ClientSession }

func dialSDK(ctx context.Context, url string, w *wire) (caller, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: "viad-soak-sdk", Version: "1"}, nil)
	s, err := c.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: w}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		return nil, err
	}
	return &sdkCaller{s}, nil
}

func (c *sdkCaller) call(ctx context.Context, tool string, args json.RawMessage) (reply, error) {
	p := &sdk.CallToolParams{Name: tool}
	if args != nil {
		p.Arguments = args
	}
	res, err := c.s.CallTool(ctx, p)
	if err != nil {
		return reply{}, err
	}
	r := reply{refused: res.IsError, blocks: len(res.Content)}
	for _, c := range res.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			r.add(c.Text)
		case *sdk.ImageContent:
			r.bytes += len(c.Data) * 4 / 3
		}
	}
	return r, nil
}

func (c *sdkCaller) close() error { return c.s.Close() }
