package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"viad/interface/tool/door"
)

// idHeader carries the JSON-RPC id from mcp-go's hook to the handler, which is not given it. Whatever a
// client sends under this name is overwritten.
const idHeader = "X-Viad-Request-Id"

func (s *Server) hooks() *server.Hooks {
	h := &server.Hooks{}
	h.AddBeforeCallTool(func(_ context.Context, id any, req *mcp.CallToolRequest) {
		req.Header = req.Header.Clone()
		if req.Header == nil {
			req.Header = http.Header{}
		}
		text, err := json.Marshal(id) // 7 and "7" are two
		if err != nil {
			text = fmt.Appendf(nil, "%v", id)
		}
		req.Header.Set(idHeader, string(text))
	})
	h.AddAfterInitialize(func(ctx context.Context, _ any, req *mcp.InitializeRequest, res *mcp.InitializeResult) {
		s.connected(ctx, req.Params.ClientInfo, res.ProtocolVersion)
	})
	h.AddAfterDiscover(func(ctx context.Context, _ any, _ *mcp.DiscoverRequest, _ *mcp.DiscoverResult) {
		s.connected(ctx, mcp.Implementation{}, "2026-07-28")
	})
	h.AddOnRegisterSession(func(ctx context.Context, ss server.ClientSession) {
		if p, ok := door.From(ctx); ok {
			s.own.set(ss.SessionID(), p.Name)
		}
	})
	h.AddOnUnregisterSession(func(_ context.Context, ss server.ClientSession) {
		s.own.drop(ss.SessionID())
		for _, r := range s.runs.ofSession(ss.SessionID()) {
			s.hangup(r)
		}
	})
	return h
}

func (s *Server) connected(ctx context.Context, who mcp.Implementation, version string) {
	p, ok := door.From(ctx)
	if !ok {
		return
	}
	s.runs.forget(p.Name)
	s.log.Info("client connected", "principal", p.Name, "role", p.Role.String(), "client", shown(who.Name), "client_version", shown(who.Version), "protocol", version)
}

// owners says whose each session is, so that nobody uses another's.
type owners struct {
	mu sync.Mutex
	of map[string]string
}

func newOwners() *owners { return &owners{of: make(map[string]string)} }

func (o *owners) set(session, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if session != "" {
		o.of[session] = name
	}
}

func (o *owners) drop(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.of, session)
}

// has reports whether a session is open and belongs to name.
func (o *owners) has(session, name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	of, ok := o.of[session]
	return ok && of == name
}

// notify sends one notification to the client of ctx. mcp-go takes its parameters as a map.
func (s *Server) notify(ctx context.Context, n mcp.ProgressNotification) error {
	b, err := json.Marshal(n.Params)
	if err != nil {
		return err
	}
	var params mcp.Params
	if err := json.Unmarshal(b, &params); err != nil {
		return err
	}
	return s.mcp.SendNotificationToClient(ctx, n.Method, params)
}

// alwaysLoad keeps a tool out of clients' deferred loading.
func alwaysLoad() mcp.Params {
	return mcp.Params{"anthropic/alwaysLoad": true, "anthropic/searchHint": "emergency stop halt robot"}
}
