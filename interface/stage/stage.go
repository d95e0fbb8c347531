package stage

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/perception"
	"viad/safety"
)

// ClientGone says what happens to a motion whose request ends early.
type ClientGone int

// The operator's choices.
const (
	Finish  ClientGone = iota // go on, under the cap
	StopNow                   // stop at once
)

// Options configures a Stage. Zero durations, lengths and angles take the defaults named beside them.
type Options struct {
	Face    Face
	Caps    Caps // zero takes DefaultCaps
	Kin     robot.Kinematics
	Clock   robot.Clock
	Planner robot.Planner
	Mover   Mover
	Checker Checker
	Scenes  Scenes
	Judge   Judge // nil when there is no task
	Home    Orbit // the 3D face's initial view

	PreviewAge   time.Duration // 10 min: a preview older than this is dead
	MovedDist    float64       // 5 mm: the robot has moved since it was shown
	MovedTurn    float64       // 0.5 deg
	SceneNoise   float64       // 10 mm: a clearance that changed by less is noise
	SceneAge     time.Duration // 500 ms: Refresh waits for a newer scene only past this age
	SameDist     float64       // 3 mm: a target this near the real gripper asks for no motion
	SameTurn     float64       // 1 deg
	OnClientGone ClientGone
	Log          *slog.Logger // nil discards
}

func (o *Options) fill() {
	if o.Caps == (Caps{}) {
		o.Caps = DefaultCaps()
	}
	or(&o.PreviewAge, 10*time.Minute)
	or(&o.MovedDist, 0.005)
	or(&o.MovedTurn, geom.Rad(0.5))
	or(&o.SceneNoise, 0.010)
	or(&o.SceneAge, 500*time.Millisecond)
	or(&o.SameDist, 0.003)
	or(&o.SameTurn, geom.Rad(1))
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func or[T comparable](p *T, d T) {
	var z T
	if *p == z {
		*p = d
	}
}

// staged is what the agent has asked for so far. Its zero value asks for nothing: on either face the target
// then rests on the real gripper.
type staged struct {
	set        bool // 3D: the target has left the real gripper
	mode       Mode // 2D
	pose       geom.Pose
	open       bool
	jaw        bool // 3D: the jaw was asked for, and has not been brought there
	teleported bool
	delta      geom.SE2 // 2D: base motion on the real axes
}

// live is the robot at one instant.
type live struct {
	state robot.State
	real  Gripper
	ok    bool // the state is complete
}

type activity int

const (
	idle activity = iota
	moving
	ending
)

// Stage is the staged target of one robot. All methods are safe for concurrent use. Errors of edits and of
// Execute are *safety.Refused, and a refused call has changed nothing.
type Stage struct {
	o     Options
	log   *slog.Logger
	model *robot.Model

	// work serialises whatever plans: edits, the start and the end of an execute. It is never held while the
	// robot moves, and is taken before mu.
	work sync.Mutex
	// mu guards the fields below, briefly: reading a snapshot never waits for a plan.
	mu        sync.Mutex
	staged    staged
	rev       uint64 // counts changes of staged
	driver    uint64 // counts drivers
	verdict   verdict
	stale     bool // the verdict is known to be out of date
	orbit     Orbit
	pinned    *Snapshot
	seen      seen
	activity  activity
	last      *Report
	delivered bool
	ranRev    uint64 // rev of the last execute
	shows     int    // since the last execute
	looked    bool   // the seat has looked again since the last execute
	episode   int
	finished  bool
}

// New makes a stage with nothing staged.
func New(o Options) *Stage {
	o.fill()
	return &Stage{o: o, log: o.Log, model: o.Kin.Model(), orbit: o.Home, ranRev: ^uint64(0)}
}

func (s *Stage) live() live {
	l := live{state: s.o.Mover.State()}
	if l.state.Complete(s.model) {
		l.ok = true
		l.real = Gripper{Pose: s.o.Kin.Tool(l.state.Base, l.state.Q), Open: l.state.Jaw.Open}
	}
	return l
}

// target is where the staged gripper is now. A pose stays fixed in odometry when the base is nudged; a base
// motion stays relative to the base.
func (s *Stage) target(w staged, l live) Gripper {
	switch {
	case s.o.Face == Face3D && w.set:
		return Gripper{Pose: w.pose, Open: w.open}
	case w.mode == ModePose:
		return Gripper{Pose: w.pose, Open: l.real.Open}
	case w.mode == ModeNav:
		return Gripper{Pose: onBase(l.state.Base, w.delta, l.real.Pose), Open: l.real.Open}
	case w.mode == ModeGripper:
		return Gripper{Pose: l.real.Pose, Open: w.open}
	}
	return l.real
}

// Snapshot is everything as it is now, with the newest scene. It pins nothing and never waits for a motion.
func (s *Stage) Snapshot() *Snapshot {
	l, sc, ready := s.live(), s.o.Scenes.Scene(), s.o.Checker.Ready()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot(l, sc, ready)
}

// snapshot needs mu.
func (s *Stage) snapshot(l live, sc *perception.Scene, ready *safety.Refused) *Snapshot {
	sn := &Snapshot{
		Face: s.o.Face, Scene: sc, State: l.state, HasReal: l.ok, Real: l.real, Aperture: l.state.Jaw.Aperture,
		Target: s.target(s.staged, l), Mode: s.staged.mode, Teleported: s.staged.teleported, BaseDelta: s.staged.delta,
		Check: s.verdict.check, Orbit: s.orbit, Moving: s.activity == moving,
		JawStaged: s.staged.mode == ModeGripper || s.staged.set && s.jawMoves(s.staged, l), JawBetween: l.ok && s.between(l.state.Jaw),
		Last: s.last, LastShown: s.delivered, JustRan: s.last != nil && s.ranRev == s.rev, Episode: s.episode, Finished: s.finished, Now: s.o.Clock.Now(),
	}
	if !sn.Check.Staged {
		sn.Check = Check{Reach: "The target is on the real gripper: nothing staged.", Refused: s.nothing(l)}
	}
	if ready != nil && ready.Rule != safety.RuleBusy && ready.Rule != safety.RuleStopping {
		sn.Barred = ready
	}
	if r := s.busy(); r != nil {
		sn.Check.Refused = r
	} else if sn.Check.Refused == nil {
		sn.Check.Refused = ready
	}
	return sn
}

// busy says why neither edits nor motions are taken now; needs mu.
func (s *Stage) busy() *safety.Refused {
	switch {
	case s.activity == moving:
		return refuse(RuleMotionRunning, "", "", "Wait for it to end, or call stop.")
	case s.activity == ending:
		return refuse(RuleEnding, "", "", "Wait for end_episode to return.")
	case s.finished:
		return refuse(RuleFinished, "the task has succeeded", "", "Call end_episode.")
	}
	return nil
}

// nothing is the refusal of an execute with nothing to run, naming the last outcome; needs mu.
func (s *Stage) nothing(l live) *safety.Refused {
	last := "no waypoint has run in this episode"
	if s.last != nil {
		last = "the last waypoint: " + s.last.Summary()
	}
	if s.o.Face == Face3D {
		t := s.target(s.staged, l).Pose
		return refuse(RuleNothingToDo, fmt.Sprintf("target %s and %s from the real gripper, same jaw; %s",
			meters.of(t.Dist(l.real.Pose)), degrees.of(t.Angle(l.real.Pose)), last),
			fmt.Sprintf("more than %s or %s away, or another jaw state", meters.of(s.o.SameDist), degrees.of(s.o.SameTurn)),
			"Move the target or toggle its jaw first.")
	}
	return refuse(RuleNothingStaged, last, "", "Stage a pose, base or jaw edit first.")
}

// Refresh waits for a scene exposed from now on when the newest is older than Options.SceneAge. The error is
// the sensors' or ctx's.
func (s *Stage) Refresh(ctx context.Context) error {
	now := s.o.Clock.Now()
	if sc := s.o.Scenes.Scene(); sc != nil && now.Sub(sc.At) < s.o.SceneAge {
		return nil
	}
	if _, err := s.o.Scenes.Refresh(ctx, now); err != nil {
		return fmt.Errorf("scene not renewed: %w", err)
	}
	return nil
}

// Stop stops the robot, for anybody at any time, and returns nil only when standstill was measured.
func (s *Stage) Stop(ctx context.Context) error {
	return s.o.Mover.Stop(ctx) // which logs it
}

// NewDriver forgets what is staged and where the view was: whoever drives from now on did not choose them. It waits
// for nothing; a motion under way goes on, and what is being planned is not staged any more.
func (s *Stage) NewDriver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.staged, s.verdict, s.seen, s.pinned = staged{}, verdict{}, seen{}, nil
	s.orbit = s.o.Home
	s.rev++
	s.driver++
	s.log.Info("a new driver: nothing is staged")
}

// MarkDelivered records that the result of the execute id reached its caller.
func (s *Stage) MarkDelivered(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.ID == id {
		s.delivered = true
	}
}

// OrbitBy swings the camera by radians; clamped says that the elevation met 0 or 85 degrees.
func (s *Stage) OrbitBy(daz, del float64) (clamped bool, err error) {
	r := within("d_azimuth", daz, s.o.Caps.OrbitStep, degrees)
	if r == nil {
		r = within("d_elevation", del, s.o.Caps.OrbitStep, degrees)
	}
	return s.camera("orbit", r, func(o Orbit) (Orbit, bool) { return orbited(o, daz, del) })
}

// PanBy slides camera and target: metres right on the screen and up along the robot frame's z.
func (s *Stage) PanBy(right, up float64) error {
	r := within("d_right", right, s.o.Caps.PanStep, meters)
	if r == nil {
		r = within("d_up", up, s.o.Caps.PanStep, meters)
	}
	_, err := s.camera("pan", r, func(o Orbit) (Orbit, bool) { return panned(o, right, up), false })
	return err
}

// ZoomBy goes steps nearer (or, negative, farther) along the ray through (u,v), fractions of the cloud view;
// clamped says that the distance met a limit.
func (s *Stage) ZoomBy(u, v float64, steps int) (clamped bool, err error) {
	r := stepCount(steps, s.o.Caps.Steps)
	if r == nil && !(u >= 0 && u <= 1 && v >= 0 && v <= 1) {
		r = refuse("zoom point outside the cloud view", "u "+number(u)+" v "+number(v)+" of the view", "0 to 1", "Point inside the cloud view.")
	}
	return s.camera("zoom", r, func(o Orbit) (Orbit, bool) { return zoomed(o, u, v, steps, s.o.Caps.ZoomMin, s.o.Caps.ZoomMax) })
}

// CameraReset restores the initial view.
func (s *Stage) CameraReset() error {
	_, err := s.camera("camera reset", nil, func(Orbit) (Orbit, bool) { return s.o.Home, false })
	return err
}

// camera edits are allowed during a motion: they touch neither target nor robot.
func (s *Stage) camera(op string, r *safety.Refused, f func(Orbit) (Orbit, bool)) (bool, error) {
	if s.o.Face != Face3D {
		r = refuse(RuleFace, op, "3D face", "Use the tools of this face.")
	}
	if r != nil {
		return false, s.refused(op, r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, clamped := f(s.orbit)
	s.orbit = o
	return clamped, nil
}

// vecText is a point in metres to the millimetre, without minus zero.
func vecText(v r3.Vec) string {
	mm := func(x float64) float64 { return math.Round(x*1e3)/1e3 + 0 }
	return fmt.Sprintf("x %.3f y %.3f z %.3f", mm(v.X), mm(v.Y), mm(v.Z))
}
