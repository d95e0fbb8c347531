package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"viad/launch"
)

// daemon is one running viad and an agent's client that is connected to it over loopback HTTP.
type daemon struct {
	sys   *launch.System
	c     *mcpgo.Client
	stop  func() error
	state string
}

// start runs the daemon of a launch file, changed by set, in a state folder of its own.
func start(ctx context.Context, file string, sees launch.Sources, set func(*launch.Config)) (*daemon, error) {
	c, err := launch.Read(filepath.Join("launch", file))
	if err != nil {
		return nil, err
	}
	d := &daemon{}
	if d.state, err = os.MkdirTemp("", "viad-bench-"); err != nil {
		return nil, err
	}
	c.StateDir, c.Listen.Address = d.state, "127.0.0.1:0"
	if set != nil {
		set(c)
	}
	if d.sys, err = launch.New(ctx, c, launch.Options{Sources: sees}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.state))
	}
	if d.stop, err = d.sys.Start(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.state))
	}
	if err := d.dial(ctx); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *daemon) dial(ctx context.Context) (err error) {
	d.c, err = mcpgo.NewStreamableHttpClient(d.sys.MCP(), transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + d.sys.Token()}))
	if err != nil {
		return err
	}
	if err := d.c.Start(ctx); err != nil {
		return err
	}
	var req mcp.InitializeRequest
	req.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	req.Params.ClientInfo = mcp.Implementation{Name: "viad-bench", Version: "1"}
	_, err = d.c.Initialize(ctx, req)
	return err
}

// close ends client and daemon and removes what they kept.
func (d *daemon) close() error {
	var errs []error
	if d.c != nil {
		errs = append(errs, d.c.Close())
	}
	errs = append(errs, d.stop(), os.RemoveAll(d.state))
	return errors.Join(errs...)
}

// reply is a result as an agent's harness has it: words, and the picture's bytes.
type reply struct {
	text string
	jpeg []byte
}

// call is one tool call from the request to the decoded picture. A refusal is an error.
func (d *daemon) call(ctx context.Context, tool string, args any) (reply, error) {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, args
	res, err := d.c.CallTool(ctx, req)
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", tool, err)
	}
	var r reply
	for _, c := range res.Content {
		switch c := c.(type) {
		case mcp.TextContent:
			r.text += c.Text + "\n"
		case mcp.ImageContent:
			if r.jpeg, err = base64.StdEncoding.DecodeString(c.Data); err != nil {
				return r, fmt.Errorf("%s: picture: %w", tool, err)
			}
		}
	}
	if res.IsError {
		return r, fmt.Errorf("%s", strings.TrimSpace(r.text))
	}
	return r, nil
}

// none is the argument object of a tool that takes none.
type none struct{}

// shift is the arguments of gripper_translate.
type shift struct {
	X float64 `json:"d_x"`
	Y float64 `json:"d_y"`
	Z float64 `json:"d_z"`
}

// seconds reads a time such as "0.96 s" from behind a label in a result's words.
func seconds(text, label string) (float64, error) {
	_, rest, ok := strings.Cut(text, label)
	var s float64
	if ok {
		_, err := fmt.Sscanf(strings.TrimSpace(rest), "%f s", &s)
		ok = err == nil
	}
	if !ok {
		return 0, fmt.Errorf("the result has no %q with seconds: %.300q", label, text)
	}
	return s, nil
}
