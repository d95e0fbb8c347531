package tool_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/interface/tool"
	"viad/interface/tool/door"
	"viad/safety"
)

// rig is a whole daemon's agent side on a fake robot, behind its door.
type rig struct {
	w    *world
	p    *painter
	e    *episode
	r    *records
	st   *stage.Stage
	s    *tool.Server
	http *tool.HTTP
	url  string
}

var home = stage.Orbit{Target: r3.Vec{X: .45, Z: .1}, Distance: 1, Azimuth: geom.Rad(90), Elevation: geom.Rad(30)}

type setup struct {
	tool  func(*tool.Options)
	stage func(*stage.Options)
}

// newRig has the tokens "watch", "drive", "drive2" and "operate" of principals of those names.
func newRig(t testing.TB, face stage.Face, with ...setup) *rig {
	t.Helper()
	at := down
	if face == stage.Face2D {
		at = forward
	}
	r := &rig{w: newWorld(at), p: &painter{}, e: &episode{}, r: &records{}}
	so := stage.Options{Face: face, Kin: r.w, Clock: robot.WallClock{}, Planner: r.w, Mover: r.w, Checker: r.w, Scenes: r.w, Judge: r.w, Home: home}
	for _, w := range with {
		if w.stage != nil {
			w.stage(&so)
		}
	}
	r.st = stage.New(so)
	o := tool.Options{
		Face: face, Stage: r.st, Painter: r.p, Episode: r.e, Record: r.r, Clock: so.Clock, Model: &r.w.model,
		WristDepth: true, Seat: safety.NewSeat(so.Clock, 0, nil, nil),
	}
	for _, w := range with {
		if w.tool != nil {
			w.tool(&o)
		}
	}
	var err error
	if r.s, err = tool.New(o); err != nil {
		t.Fatal(err)
	}
	r.serve(t)
	return r
}

func tokens() []door.Token {
	var out []door.Token
	for name, role := range map[string]door.Role{"watch": door.Watcher, "drive": door.Driver, "drive2": door.Driver, "operate": door.Operator} {
		tok, err := door.NewToken(name, role, door.Hash(name))
		if err != nil {
			panic(err)
		}
		out = append(out, tok)
	}
	return out
}

func (r *rig) serve(t testing.TB) {
	r.http = r.s.HTTP()
	srv := httptest.NewServer(door.New(door.Options{Tokens: tokens()}).Guard(r.http))
	r.url = srv.URL + "/mcp"
	t.Cleanup(func() {
		if err := r.s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := r.http.Close(context.Background()); err != nil {
			t.Errorf("close sessions: %v", err)
		}
		srv.CloseClientConnections()
		srv.Close()
	})
}

// reply is a result as a client sees it.
type reply struct {
	bad    bool
	kinds  string // "t" and "i", in order
	texts  []string
	images [][]byte
	raw    *mcp.CallToolResult
}

func (r reply) text() string { return strings.Join(r.texts, "\n") }

// line is the rest of the line that begins with label.
func (r reply) line(t testing.TB, label string) string {
	t.Helper()
	for _, l := range strings.Split(r.text(), "\n") {
		if rest, ok := strings.CutPrefix(l, label+": "); ok {
			return rest
		}
	}
	t.Fatalf("no line %q in:\n%s", label, r.text())
	return ""
}

// json is the last text block.
func (r reply) json(t testing.TB, into any) {
	t.Helper()
	if len(r.texts) == 0 {
		t.Fatal("no text block")
	}
	d := json.NewDecoder(strings.NewReader(r.texts[len(r.texts)-1]))
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, r.texts[len(r.texts)-1])
	}
}

// agent is a connected mcp-go client.
type agent struct {
	t        testing.TB
	c        *client.Client
	progress chan mcp.JSONRPCNotification
}

func (r *rig) agent(t testing.TB, token string) *agent {
	t.Helper()
	c, err := client.NewStreamableHttpClient(r.url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, c: c, progress: make(chan mcp.JSONRPCNotification, 1000)}
	c.OnNotification(func(n mcp.JSONRPCNotification) { a.progress <- n })
	a.start()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close client: %v", err)
		}
	})
	return a
}

func (a *agent) start() *mcp.InitializeResult {
	a.t.Helper()
	if err := a.c.Start(context.Background()); err != nil {
		a.t.Fatal(err)
	}
	var req mcp.InitializeRequest
	req.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	req.Params.ClientInfo = mcp.Implementation{Name: "test", Version: "1"}
	res, err := a.c.Initialize(context.Background(), req)
	if err != nil {
		a.t.Fatal(err)
	}
	return res
}

// try calls a tool with arguments in JSON.
func (a *agent) try(ctx context.Context, name, args string) (reply, error) {
	var req mcp.CallToolRequest
	req.Params.Name = name
	req.Params.Arguments = json.RawMessage(args)
	req.Params.Meta = &mcp.Meta{ProgressToken: name}
	res, err := a.c.CallTool(ctx, req)
	if err != nil {
		return reply{}, err
	}
	return read(res)
}

func read(res *mcp.CallToolResult) (reply, error) {
	r := reply{bad: res.IsError, raw: res}
	for _, c := range res.Content {
		switch c := c.(type) {
		case mcp.TextContent:
			r.kinds += "t"
			r.texts = append(r.texts, c.Text)
		case mcp.ImageContent:
			b, err := base64.StdEncoding.DecodeString(c.Data)
			if err != nil || c.MIMEType != "image/jpeg" || !bytes.HasPrefix(b, []byte{0xff, 0xd8}) {
				return r, fmt.Errorf("picture of type %s, %d bytes: %w", c.MIMEType, len(b), err)
			}
			r.kinds += "i"
			r.images = append(r.images, b)
		default:
			return r, fmt.Errorf("unexpected content %T", c)
		}
	}
	if res.StructuredContent != nil {
		return r, errors.New("structuredContent was sent")
	}
	return r, nil
}

// do is a call that must be answered, well or as a refusal.
func (a *agent) do(name, args string) reply {
	a.t.Helper()
	r, err := a.try(context.Background(), name, args)
	if err != nil {
		a.t.Fatalf("%s %s: %v", name, args, err)
	}
	return r
}

// good is a call that must succeed.
func (a *agent) good(name, args string) reply {
	a.t.Helper()
	r := a.do(name, args)
	if r.bad {
		a.t.Fatalf("%s %s: %s", name, args, r.text())
	}
	return r
}

// refused is a call that must be refused in one line, in text only.
func (a *agent) refused(name, args string, has ...string) reply {
	a.t.Helper()
	r := a.do(name, args)
	if !r.bad || r.kinds != "t" || strings.Contains(r.text(), "\n") || !strings.HasPrefix(r.text(), name+" refused: ") {
		a.t.Fatalf("%s %s: want a refusal of one line, got error=%v %q:\n%s", name, args, r.bad, r.kinds, r.text())
	}
	for _, h := range has {
		if !strings.Contains(r.text(), h) {
			a.t.Errorf("%s %s: %q does not name %q", name, args, r.text(), h)
		}
	}
	return r
}

// post sends one JSON-RPC message of protocol 2025-11-25 as it is and returns status, session and body.
func (r *rig) post(ctx context.Context, t testing.TB, token, session, body string) (int, string, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr, Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		return 0, "", err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, "", err.Error()
	}
	return res.StatusCode, res.Header.Get("Mcp-Session-Id"), string(b)
}

// session opens a session by hand.
func (r *rig) session(t testing.TB, token string) string {
	t.Helper()
	status, id, body := r.post(context.Background(), t, token, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	if status != 200 || id == "" {
		t.Fatalf("initialize: %d %s", status, body)
	}
	return id
}

func toolCall(id, name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args)
}

// parseWire reads the result of a tools/call from a response body, JSON or an event stream.
func parseWire(body string) (reply, error) {
	if i := strings.LastIndex(body, "data: "); i >= 0 {
		body = body[i+len("data: "):]
	}
	var msg struct {
		Result *json.RawMessage `json:"result"`
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal([]byte(body), &msg); err != nil {
		return reply{}, err
	}
	if msg.Result == nil {
		return reply{}, fmt.Errorf("no result: %+v", msg.Error)
	}
	res, err := mcp.ParseCallToolResult(msg.Result)
	if err != nil {
		return reply{}, err
	}
	return read(res)
}

func refusedRule(rule string) *safety.Refused {
	return &safety.Refused{Rule: rule, Value: "it", Limit: "not it", Next: "ask the operator"}
}
