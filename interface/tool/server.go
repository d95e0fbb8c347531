package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/interface/tool/door"
	"viad/safety"
)

// Options of a Server. Stage, Painter and Clock are required.
type Options struct {
	Face    stage.Face
	Stage   Stage
	Painter Painter
	Episode Episode  // nil: end_episode only resets what is staged
	Seat    Seat     // nil: every driver may stage
	Record  Recorder // nil: nothing is kept
	Clock   robot.Clock
	Caps    stage.Caps
	Model   *robot.Model // for the joint ranges that descriptions publish
	// WristDepth is false when the wrist camera of the 2D face has no depth: show_approach_axis is then not
	// listed and hover on the wrist view gives no point.
	WristDepth bool
	Quality    int // of JPEG, 1 to 100; 0 is view's own
	Version    string
	Log        *slog.Logger
}

// Server is the tools of one face. Its methods may be called from any goroutine.
type Server struct {
	o     Options
	log   *slog.Logger
	mcp   *server.MCPServer
	defs  []*definition
	edits sync.Mutex // edits and the picture of each are one step
	runs  *runs
	own   *owners
}

// New builds the tool list and checks it.
func New(o Options) (*Server, error) {
	if o.Stage == nil || o.Painter == nil || o.Clock == nil {
		return nil, errors.New("tool: a stage, a painter and a clock are needed")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Caps == (stage.Caps{}) {
		o.Caps = stage.DefaultCaps()
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	o.Painter = newBounded(o.Painter)
	s := &Server{o: o, log: o.Log, runs: newRuns(), own: newOwners()}
	s.defs = s.definitions()
	s.mcp = server.NewMCPServer("viad", o.Version,
		server.WithToolCapabilities(false), server.WithPromptCapabilities(false),
		server.WithInstructions(instructions(o.Face)), server.WithHooks(s.hooks()), server.WithLogger(slog.New(quiet{o.Log.Handler()})))
	for _, d := range s.defs {
		t, err := d.listed()
		if err != nil {
			return nil, err
		}
		s.mcp.AddTool(t, s.handler(d))
	}
	s.addPrompt()
	return s, nil
}

// Close stops a motion that still runs on behalf of a client and waits for its end.
func (s *Server) Close() error {
	var err error
	if s.runs.shutdown() {
		ctx, cancel := context.WithTimeout(robot.By(context.Background(), "the end of the daemon"), stopTime)
		defer cancel()
		err = s.o.Stage.Stop(ctx)
	}
	s.runs.active.Wait()
	return err
}

// call is one call on its way.
type call struct {
	s         *Server
	def       *definition
	who       door.Principal
	args      *args
	raw       json.RawMessage
	at        time.Time // robot.Clock
	began     time.Time // wall
	requestID string    // JSON-RPC id with its type, and the session it belongs to
	session   string
	token     mcp.ProgressToken

	steps        float64   // progress notifications sent
	lastProgress time.Time // wall
	run          *run      // the execution that this call waits for
	tells        *run      // the lost result that this call's reply carries
}

// handler is what mcp-go calls. It never returns an error: everything a model can act on is a result.
func (s *Server) handler(d *definition) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c := &call{s: s, def: d, at: s.o.Clock.Now(), began: time.Now(), raw: req.Params.RawArguments}
		c.requestID = req.Header.Get(idHeader)
		if ss := server.ClientSessionFromContext(ctx); ss != nil {
			c.session = ss.SessionID()
		}
		if req.Params.Meta != nil {
			c.token = req.Params.Meta.ProgressToken
		}
		r := c.answer(ctx)
		s.finish(ctx, c, r)
		return r.result(), nil
	}
}

// answer checks who asks, what, and whether the seat is theirs; then runs the tool.
func (c *call) answer(ctx context.Context) (r *reply) {
	defer func() {
		if p := recover(); p != nil {
			c.s.log.Error("panic in a tool", "tool", c.def.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			r = &reply{bad: true, blocks: []block{{text: c.def.name + " failed: an internal fault, which is in the daemon's log. If the robot moves, call stop; otherwise look again and go on."}}}
		}
	}()
	who, ok := door.From(ctx)
	if !ok {
		return refusal(c.def, "no principal", "an unauthenticated call", "a known token", "Connect with a token of the launch file.")
	}
	c.who = who
	if c.def.access == edit || c.def.access == motion {
		if who.Role < door.Driver {
			return refusal(c.def, "role", who.Role.String(), "driver or operator", "With this token you may look, hover and stop.")
		}
	}
	a, bad := parseArgs(c.raw, c.def.params)
	switch {
	case bad == nil:
		c.args = a
	case c.def.access == halt: // whoever wants a stop gets one, whatever else they say
		defer func() { r = r.ignoring(bad) }()
	default:
		return refusal(c.def, bad.rule, bad.value, bad.limit, bad.next)
	}
	if seat := c.s.o.Seat; seat != nil {
		seat.Keep(who.Name)
	}
	if c.def.access == edit || c.def.access == motion {
		if seat := c.s.o.Seat; seat != nil {
			if refused := seat.Take(who.Name); refused != nil {
				return failure(c.def, refused)
			}
		}
	}
	old := c.renew(ctx)
	if c.def.access == edit {
		if c.s.o.Stage.Snapshot().Scene == nil {
			return failure(c.def, blind())
		}
		c.s.edits.Lock()
		defer c.s.edits.Unlock()
	}
	r, err := c.def.run(ctx, c)
	if err != nil {
		return failure(c.def, err)
	}
	if old != "" && r.shown != nil {
		r = r.before(old)
	}
	if c.def.access == observe || c.def.access == edit {
		r = c.s.withLost(c, r)
	}
	return r
}

// firstScene and nextScene bound, on the wall clock, how long a call waits for the sensors.
const (
	firstScene = 15 * time.Second
	nextScene  = 3 * time.Second
)

// renew waits for a scene when there is none yet, and, for a look, when the newest is old. It returns words
// for the result when the pictures stay old.
func (c *call) renew(ctx context.Context) (old string) {
	st := c.s.o.Stage
	wait := nextScene
	switch {
	case c.def.access == observe && st.Snapshot().Scene != nil:
		if !c.def.looks {
			return ""
		}
	case (c.def.access == observe || c.def.access == edit) && st.Snapshot().Scene == nil:
		wait = firstScene
		defer c.alive(ctx, c.def.name+": waiting for the first pictures")()
	default:
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := st.Refresh(ctx); err != nil {
		c.s.log.Warn("scene not renewed", "tool", c.def.name, "err", err)
		if sn := st.Snapshot(); sn.Scene != nil {
			return oneLine(fmt.Sprintf("The pictures are %s old and were not renewed: %v.", seconds(sn.Now.Sub(sn.Scene.At).Seconds()), err))
		}
	}
	return ""
}

// finish keeps and logs what came of a call.
func (s *Server) finish(ctx context.Context, c *call, r *reply) {
	took := time.Since(c.began)
	lost := ctx.Err() != nil
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		// Whoever left before there was a result has not got it, whatever the dead connection still swallowed.
		e.add(func(ok bool) { s.delivered(c, ok && !lost) })
	} else {
		s.delivered(c, !lost)
	}
	attrs := []any{"tool", c.def.name, "principal", c.who.Name, "role", c.who.Role.String(), "args", shown(string(c.raw)), "took_ms", took.Milliseconds(), "lost", lost}
	if r.bad {
		attrs = append(attrs, "refused", r.blocks[0].text)
	}
	level := slog.LevelDebug // the record has every call; the log is for what a person looks for in it
	if r.bad || lost || c.def.access == motion || c.def.access == halt {
		level = slog.LevelInfo
	}
	s.log.Log(ctx, level, "call", attrs...)
	if s.o.Record != nil {
		s.o.Record.Call(Record{
			At: c.at, Took: took, Principal: c.who.Name, Role: c.who.Role.String(), Tool: c.def.name, ID: c.requestID, Args: c.raw,
			Texts: r.texts(), Pictures: r.pictures(), Refused: r.bad, Shown: r.shown, Report: r.report, Lost: lost,
		})
	}
}

// look is the snapshot that this caller is shown. Only who holds the seat, or could take it now, pins it.
func (c *call) look() *stage.Snapshot {
	if c.drives() {
		return c.s.o.Stage.Show()
	}
	return c.s.o.Stage.Snapshot()
}

// pinned is what this caller's clicks resolve in.
func (c *call) pinned() *stage.Snapshot {
	if c.drives() {
		return c.s.o.Stage.Pinned()
	}
	return c.s.o.Stage.Snapshot()
}

func (c *call) drives() bool {
	if c.who.Role < door.Driver {
		return false
	}
	if c.s.o.Seat == nil {
		return true
	}
	h, _, _ := c.s.o.Seat.Holder()
	return h == "" || h == c.who.Name
}

// blind is the refusal when there is nothing to draw yet.
func blind() error {
	return &safety.Refused{
		Rule: "no picture yet", Value: "no fused scene", Limit: "a first picture from every camera",
		Next: "Wait a few seconds and call again; if it stays, the operator must look at the cameras.",
	}
}
