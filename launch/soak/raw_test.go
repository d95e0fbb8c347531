package soak

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
)

// raw is a request that no client makes. It must be answered, and by no fault of the server.
func (g *guest) raw(n int) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const post, get = http.MethodPost, http.MethodGet
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stop","arguments":{}}}`
	kinds := []struct {
		method, path, body, key, value string
		want                           int
	}{
		{post, "/mcp", call, "Authorization", "", 401},
		{post, "/mcp", call, "Authorization", "Bearer viad_guess", 401},
		{post, "/mcp", call, "Origin", "https://evil.example", 403},
		{post, "/mcp", call, "Host", "evil.example", 403},
		{post, "/mcp", call, "Mcp-Session-Id", "mcp-session-of-nobody", 404},
		{post, "/mcp", "{not json", "", "", 0},
		{post, "/mcp", "", "", "", 0},
		{post, "/mcp", "[]", "", "", 0},
		{post, "/mcp", strings.Repeat("[", 20000), "", "", 0},
		{post, "/mcp", `{"jsonrpc":"2.0","id":{},"method":"tools/call","params":7}`, "", "", 0},
		{post, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stop","arguments":{}},"method":"ping"}`, "", "", 0},
		{post, "/mcp", `{"pad":"` + strings.Repeat("x", 1<<20) + `"}`, "", "", 413},
		{http.MethodPut, "/mcp", call, "", "", 0},
		{http.MethodDelete, "/mcp", "", "Mcp-Session-Id", "mcp-session-of-nobody", 0},
		{get, "/.well-known/oauth-protected-resource", "", "", "", 404},
		{get, "/../../etc/passwd", "", "", "", 0},
		{get, "/api/live", "", "", "", 0},
	}
	k := kinds[n%len(kinds)]
	req, err := http.NewRequestWithContext(ctx, k.method, strings.TrimSuffix(g.h.sys.MCP(), "/mcp")+k.path, bytes.NewReader([]byte(k.body)))
	if err != nil {
		g.h.complain("raw %d: %v", n, err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+g.token)
	switch k.key {
	case "":
	case "Host":
		req.Host = k.value
	default:
		req.Header.Set(k.key, k.value)
	}
	res, err := g.wire.tr.RoundTrip(req)
	if err != nil {
		if k.want != 413 { // the server may hang up on what is too large before it was all sent
			g.h.complain("raw %s %s %.60s: %v", k.method, k.path, k.body, err)
		}
		return
	}
	_, err = io.Copy(io.Discard, res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		g.h.complain("raw %s %s %.60s: %v", k.method, k.path, k.body, err)
	}
	g.h.add("raw requests")
	if res.StatusCode >= 500 || k.want > 0 && res.StatusCode != k.want {
		g.h.complain("raw %s %s %.60s: status %d, want %d", k.method, k.path, k.body, res.StatusCode, k.want)
	}
}
