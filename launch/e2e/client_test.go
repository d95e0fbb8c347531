package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// reply is a tool result as an agent's harness shows it: texts and pictures in order.
type reply struct {
	refused  bool
	texts    []string
	pictures [][]byte
	labels   []string // "head", "wrist", "nav_map" of the 2D face, in the order of pictures
}

func (r reply) text() string { return strings.Join(r.texts, "\n") }

// picture returns the picture under a label, or the only one when label is empty.
func (r reply) picture(label string) []byte {
	for i, l := range r.labels {
		if l == label {
			return r.pictures[i]
		}
	}
	return nil
}

func (r *reply) addText(s string) {
	if l, ok := strings.CutPrefix(s, "view: "); ok {
		r.labels = append(r.labels, strings.TrimSpace(l))
		return
	}
	r.texts = append(r.texts, s)
}

func (r *reply) addPicture(data []byte) {
	r.pictures = append(r.pictures, data)
	if len(r.labels) < len(r.pictures) {
		r.labels = append(r.labels, "")
	}
}

// caller is a real MCP client.
type caller interface {
	call(ctx context.Context, tool string, args any) (reply, error)
	close() error
}

// mcpgoCaller is mcp-go's client, over HTTP or stdio.
type mcpgoCaller struct{ c *mcpgo.Client }

func dialMCPGo(ctx context.Context, url, token string) (caller, error) {
	c, err := mcpgo.NewStreamableHttpClient(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		return nil, err
	}
	return startMCPGo(ctx, c)
}

func dialStdio(ctx context.Context, command string, args ...string) (caller, error) {
	c, err := mcpgo.NewStdioMCPClient(command, os.Environ(), args...)
	if err != nil {
		return nil, err
	}
	return startMCPGo(ctx, c)
}

func startMCPGo(ctx context.Context, c *mcpgo.Client) (caller, error) {
	if err := c.Start(ctx); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	var req mcp.InitializeRequest
	req.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	req.Params.ClientInfo = mcp.Implementation{Name: "viad-e2e", Version: "1"}
	if _, err := c.Initialize(ctx, req); err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	return &mcpgoCaller{c}, nil
}

func (m *mcpgoCaller) call(ctx context.Context, tool string, args any) (reply, error) {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, args
	res, err := m.c.CallTool(ctx, req)
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", tool, err)
	}
	r := reply{refused: res.IsError}
	for _, c := range res.Content {
		switch c := c.(type) {
		case mcp.TextContent:
			r.addText(c.Text)
		case mcp.ImageContent:
			data, err := base64.StdEncoding.DecodeString(c.Data)
			if err != nil {
				return r, fmt.Errorf("%s: picture: %w", tool, err)
			}
			r.addPicture(data)
		}
	}
	return r, nil
}

func (m *mcpgoCaller) close() error { return m.c.Close() }

// sdkCaller is the official go-sdk's client, over HTTP.
type sdkCaller struct{ s *sdk.ClientSession }

type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

func dialSDK(ctx context.Context, url, token string) (caller, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: "viad-e2e-sdk", Version: "1"}, nil)
	s, err := c.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		return nil, err
	}
	return &sdkCaller{s}, nil
}

func (c *sdkCaller) call(ctx context.Context, tool string, args any) (reply, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return reply{}, err
	}
	res, err := c.s.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(raw)})
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", tool, err)
	}
	r := reply{refused: res.IsError}
	for _, c := range res.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			r.addText(c.Text)
		case *sdk.ImageContent:
			r.addPicture(c.Data)
		}
	}
	return r, nil
}

func (c *sdkCaller) close() error { return c.s.Close() }
