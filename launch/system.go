package launch

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/control"
	"viad/drivers/robot"
	"viad/interface/operator"
	"viad/interface/record"
	"viad/interface/stage"
	"viad/interface/tool"
	"viad/interface/tool/door"
	"viad/interface/view"
	"viad/interface/web"
	"viad/perception"
	"viad/safety"
	"viad/sim"
)

// System is all rooms joined, for one launch file. New opens, Run lives, Close gives back.
type System struct {
	cfg    *Config
	sees   Sources
	limbs  Bodies
	log    *slog.Logger
	began  time.Time
	token  string // the development token; empty when the file lists tokens
	tokens []door.Token

	state    *stateDir
	door     *door.Door   // nil for stdio
	listener net.Listener // nil for stdio
	tls      *tls.Config  // nil without TLS
	pair     *pair        // what it shows; nil without TLS
	shown    certificate  // what clients were told of it at the start
	rig      *rig
	kin      *control.Kinematics
	guard    *safety.Guard
	seat     *safety.Seat
	fuser    *perception.Fuser
	rec      *record.Recorder
	watch    *watch
	planner  robot.Planner
	mover    robot.Robot // gate around recorder around guard around controller
	stage    *stage.Stage
	painter  *view.Painter
	episode  *episode
	tools    *tool.Server
	desk     *operator.Server
	replies  replies
}

// Options of a System.
type Options struct {
	Log     *slog.Logger
	Stdio   bool    // no network door: the tools are served on the process's own streams
	Sources Sources // nil leaves the sensors as they are
	Bodies  Bodies  // nil leaves the machine as it is
}

// New opens everything that a launch file asks for, the cheap and likely failures first, and starts nothing.
func New(ctx context.Context, c *Config, o Options) (*System, error) {
	s := &System{cfg: c, sees: o.Sources, limbs: o.Bodies, log: o.Log, began: time.Now()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	steps := []func(context.Context) error{s.openState, s.openTokens, s.openTLS, s.openDoor, s.openMachine, s.openRecord, s.openStage, s.openTools}
	if o.Stdio {
		steps = []func(context.Context) error{s.openState, s.openMachine, s.openRecord, s.openStage, s.openTools}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Close gives back what New opened. Run must have returned.
func (s *System) Close() error {
	var errs []error
	if s.rig != nil && s.rig.close != nil {
		s.rig.close()
	}
	if s.listener != nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.state != nil {
		errs = append(errs, s.state.Close())
	}
	return errors.Join(errs...)
}

func (s *System) openState(context.Context) (err error) {
	s.state, err = openStateDir(s.cfg.StateDir)
	return err
}

func (s *System) openTokens(context.Context) error {
	if s.cfg.Tokens.Generate {
		token, err := development(s.cfg.state("token"))
		if err != nil {
			return err
		}
		t, err := door.NewToken("developer", door.Operator, door.Hash(token))
		s.token, s.tokens = token, []door.Token{t}
		return err
	}
	for _, t := range s.cfg.Tokens.List {
		role, err := door.ParseRole(t.Role)
		if err != nil {
			return err
		}
		one, err := door.NewToken(t.Name, role, t.Hash)
		if err != nil {
			return err
		}
		s.tokens = append(s.tokens, one)
	}
	return nil
}

func (s *System) openDoor(ctx context.Context) (err error) {
	l := s.cfg.Listen
	s.door = door.New(door.Options{Tokens: s.tokens, Hosts: s.cfg.hosts(), Origins: l.Origins, MaxBody: int64(l.MaxBody), Log: s.log})
	s.listener, err = door.Listen(ctx, l.Address)
	return err
}

// openMachine joins body, controller, guard and eyes. The guard is the only robot that goes on from here.
func (s *System) openMachine(ctx context.Context) (err error) {
	c := s.cfg
	if s.rig, err = c.openRig(ctx, s.log); err != nil {
		return err
	}
	if s.sees != nil {
		s.rig.sources = s.sees(s.rig.sources)
	}
	if s.limbs != nil {
		s.rig.body = s.limbs(s.rig.body, s.rig.clock)
	}
	if s.kin, err = control.NewKinematics(c.description()); err != nil {
		return err
	}
	ctrl, err := control.New(control.Options{Body: s.rig.body, Kinematics: s.kin, Clock: s.rig.clock, Settings: c.Limits.settings()})
	if err != nil {
		return err
	}
	b := c.Perception.Bounds
	o := perception.Options{
		Sources: s.rig.sources, Kin: s.kin, Clock: s.rig.clock, State: s.rig.body.State, Log: s.log,
		RateHz: float64(c.Perception.Rate), Voxel: float64(c.Perception.Voxel),
		SelfMargin: float64(c.Perception.Self), BodyMargin: float64(c.Perception.Body), SourceTimeout: silent,
	}
	if b.X != nil {
		o.Bounds = r3.Box{
			Min: r3.Vec{X: float64(b.X[0]), Y: float64(b.Y[0]), Z: float64(b.Z[0])},
			Max: r3.Vec{X: float64(b.X[1]), Y: float64(b.Y[1]), Z: float64(b.Z[1])},
		}
	}
	if s.kin.Model().Mobile {
		o.Held = heldByStretch
	}
	if c.Robot.Pace != "fast" { // a ticker would keep a fast clock running
		o.StateHz = 50
	}
	if s.fuser, err = perception.NewFuser(o); err != nil {
		return err
	}
	latch := newLatchFile(c.state("latch.json"))
	s.guard, err = safety.NewGuard(safety.Options{
		Latched: latch.load(), Memory: latch,
		Robot: ctrl, Kin: s.kin, Clock: s.rig.clock, Scenes: s.fuser, Limits: c.Limits.safety(),
		AutoArm: c.Robot.Arm == "auto" && c.Robot.Driver == "twin", Log: s.log,
	})
	if err != nil {
		return err
	}
	s.planner = ctrl
	return nil
}

// silent is how long a camera or lidar may keep a picture waiting before the picture is made without it.
const silent = 2 * time.Second

// heldByStretch is the region of what Stretch holds: its fingers reach 10 cm ahead of the palm, and lidar
// blurs by several centimetres what hangs between them. Its beams are as far apart at arm's length as the gap.
var heldByStretch = perception.HeldBox{Back: 0.10, Ahead: 0.12, Side: 0.03, Thick: 0.08, Reach: 0.35, Gap: 0.03} //nolint:gochecknoglobals // a constant in all but name

// openRecord puts the recorder and its gate around the guard.
func (s *System) openRecord(context.Context) (err error) {
	c := s.cfg
	limits, err := json.Marshal(struct {
		Limits Limits
		Caps   Caps
	}{c.Limits, c.Caps})
	if err != nil {
		return err
	}
	s.rec, err = record.New(record.Options{
		Folder: c.recordFolder(), Quota: int64(c.Record.Quota), Clock: s.rig.clock, Log: s.log,
		Info: record.Info{Name: c.Name, Robot: c.robotName(), World: c.Robot.World, Seed: c.Robot.Seed, Face: c.Face, Version: Version(), Limits: limits},
	})
	if err != nil {
		return err
	}
	if err := s.state.holdRecord(c.recordFolder()); err != nil {
		return err
	}
	every := time.Duration(0)
	if c.Record.States > 0 {
		every = time.Duration(float64(time.Second) / float64(c.Record.States))
	}
	s.mover = gate{record.Robot{Robot: s.guard, Rec: s.rec, Clock: s.rig.clock, Every: every}, s.gated, s.log}
	return nil
}

func (s *System) openStage(context.Context) (err error) {
	c := s.cfg
	face := stage.Face3D
	if c.Face == "2d" {
		face = stage.Face2D
	}
	gone := stage.StopNow
	if c.OnClientGone == "finish" {
		gone = stage.Finish
	}
	s.stage = stage.New(stage.Options{
		Face: face, Caps: c.Caps.stage(c.Limits.Motion), Kin: s.kin, Clock: s.rig.clock, Planner: s.planner, Mover: s.mover,
		Checker: gateCheck{s.guard, s.gated}, Scenes: s.fuser, Home: c.View.orbit(), PreviewAge: c.Preview.Age.D(),
		MovedDist: float64(c.Preview.Moved), MovedTurn: float64(c.Preview.Turn), OnClientGone: gone, Log: s.log,
	})
	s.seat = safety.NewSeat(s.rig.clock, c.SeatSilence.D(), s.stage.NewDriver, s.log)
	shape, err := gripperShape(s.kin)
	if err != nil {
		return err
	}
	s.painter, err = view.NewPainter(view.Options{Kin: s.kin, Log: s.log, Voxel: float64(c.Perception.Voxel), Gripper: shape, Footprint: footprint(s.kin)})
	return err
}

func (s *System) openTools(context.Context) (err error) {
	c := s.cfg
	s.watch = &watch{rec: s.rec, clock: s.rig.clock, holder: func() string {
		name, _, _ := s.seat.Holder()
		return name
	}}
	s.episode = &episode{s: s, seed: c.Robot.Seed, n: 1}
	face := stage.Face3D
	if c.Face == "2d" {
		face = stage.Face2D
	}
	s.tools, err = tool.New(tool.Options{
		Face: face, Stage: s.stage, Painter: s.painter, Episode: s.episode, Seat: s.seat, Record: s.watch, Clock: s.rig.clock,
		Caps: c.Caps.stage(c.Limits.Motion), Model: s.kin.Model(), WristDepth: s.wristDepth(), Version: Version(), Log: s.log,
	})
	return err
}

func (s *System) wristDepth() bool {
	for _, src := range s.rig.sources {
		if in := src.Info(); in.Name == "wrist" {
			return in.HasDepth
		}
	}
	return false
}

// Addr is where the door listens; empty for stdio.
func (s *System) Addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Token is the development token; empty when the file lists tokens.
func (s *System) Token() string { return s.token }

// Twin is the physics behind the robot, for assertions of tests and for benchmarks; nil on a real robot.
func (s *System) Twin() *sim.Twin { return s.rig.twin }

// MCP is the agents' address.
func (s *System) MCP() string { return s.cfg.mcpURL(s.Addr()) }

// Run lives until ctx ends or a part fails. ready is called once, when the first scene is there and the
// door is open. At the end the robot is stopped first, and everything else after it.
func (s *System) Run(ctx context.Context, ready func() error) error {
	parts, err := s.base()
	if err != nil {
		return err
	}
	agents := s.tools.HTTP()
	handler, err := s.handler(agents)
	if err != nil {
		return err
	}
	parts = append(parts, part{"http", func(ctx context.Context) error {
		err := door.Serve(ctx, s.listener, handler, s.tls, s.log)
		end, cancel := withTimeout(ctx)
		defer cancel()
		return errors.Join(err, agents.Close(end))
	}}, part{"start", s.first(ready)}, part{"robot", s.stopAtEnd(ctx)})
	return supervise(ctx, parts...)
}

// RunStdio serves the tools on in and out until in ends or ctx does. Whoever holds the other end drives.
func (s *System) RunStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	parts, err := s.base()
	if err != nil {
		return err
	}
	who := door.Principal{Name: "stdio", Role: door.Driver}
	s.tokens = []door.Token{{Principal: who}} // for a take-over by name; no door compares its hash
	parts = append(parts, part{"start", s.first(func() error { return nil })}, part{"stdio", func(ctx context.Context) error {
		if err := s.tools.ServeStdio(ctx, who, in, out); err != nil {
			return err
		}
		return errDone
	}}, part{"robot", s.stopAtEnd(ctx)})
	return supervise(ctx, parts...)
}

// base is the parts that both ways of serving need, in the order in which they lean on each other.
func (s *System) base() ([]part, error) {
	var err error
	if s.desk, err = operator.Listen(s.cfg.state(operator.SocketName), desk{s}); err != nil {
		return nil, startError{err}
	}
	s.rec.Begin(1)
	if why := s.guard.Latched(); why != "" {
		s.rec.Decide(record.Decision{Kind: "latch", Text: "came up latched: " + why})
	}
	parts := []part{{"record", s.rec.Run}}
	if s.rig.run != nil {
		parts = append(parts, part{"robot driver", s.rig.run})
	}
	return append(parts, part{"perception", s.fuser.Run}, part{"operator socket", s.desk.Run}), nil
}

// first waits for the first scene, so that nobody is told to come in before there is something to see.
func (s *System) first(ready func() error) func(context.Context) error {
	return func(ctx context.Context) error {
		look, cancel := context.WithTimeout(ctx, firstScene)
		_, err := s.fuser.Refresh(look, time.Time{})
		for err != nil && s.cfg.Robot.real() && look.Err() == nil { // its driver is still getting to know the robot
			select {
			case <-look.Done():
			case <-time.After(200 * time.Millisecond):
				_, err = s.fuser.Refresh(look, time.Time{})
			}
		}
		cancel()
		if err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the daemon is stopping
			}
			return startError{fmt.Errorf("the sensors gave no first scene: %w", err)}
		}
		if err := ready(); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
}

// firstScene bounds the wait for the first scene.
const firstScene = 60 * time.Second

// stopAtEnd disarms, and thereby stops the robot, before any other part ends.
func (s *System) stopAtEnd(daemon context.Context) func(context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		err := inTime(ctx, func(ctx context.Context) error {
			return errors.Join(s.guard.Disarm(ctx, ended(daemon)), s.tools.Close())
		})
		if err != nil {
			s.log.Error("the robot's standstill was not confirmed at shutdown", "error", err)
			return fmt.Errorf("%s: %w", robot.StopNotConfirmed, err)
		}
		// What the agent asked for has ended; its reply may still be on the way.
		s.replies.wait(lastReplies)
		return nil
	}
}

// ended says why the daemon ends: the signal, when it was one.
func ended(daemon context.Context) string {
	const end = "the end of the daemon"
	switch cause := context.Cause(daemon); {
	case cause == nil:
		return end + " (a part of it failed or was done)"
	case errors.Is(cause, context.Canceled) && cause.Error() == context.Canceled.Error():
		return end
	default:
		return end + " (" + cause.Error() + ")"
	}
}

// lastReplies is how long replies may take once the robot stands still.
const lastReplies = 5 * time.Second

// handler is the door with both rooms behind it.
func (s *System) handler(agents http.Handler) (http.Handler, error) {
	c := s.cfg
	d := s.door
	m := http.NewServeMux()
	m.Handle("/mcp", d.Guard(s.replies.count(agents)))
	if !c.Page.Enabled {
		m.Handle("/", d.Public(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the page is switched off (page.enabled in the launch file): agents go to /mcp", http.StatusNotFound)
		})))
		return m, nil
	}
	p, err := web.New(web.Options{
		Room: room{desk{s}}, Every: time.Duration(float64(time.Second) / float64(c.Page.Rate)), Secure: c.Listen.TLS.on(), Log: s.log,
		Lookup: func(token string) (web.Person, bool) {
			who, ok := door.Lookup(s.tokens, token)
			return web.Person{Name: who.Name, Role: who.Role.String(), Operator: who.Role >= door.Operator}, ok
		},
		Failed: func(r *http.Request) { d.Note(r, "token") },
	})
	if err != nil {
		return nil, err
	}
	m.Handle("/", d.Public(p.Handler()))
	return m, nil
}
