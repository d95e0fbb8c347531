package safety

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"viad/drivers/robot"
	"viad/perception"
)

// Scenes is where the guard sees from; *perception.Fuser is one.
type Scenes interface {
	// Scene is the newest scene, nil before the first.
	Scene() *perception.Scene
	// Refresh returns a scene whose exposures are all at or after t.
	Refresh(ctx context.Context, t time.Time) (*perception.Scene, error)
}

// Memory keeps what latches motion off beyond the process.
type Memory interface {
	// Keep returns once the reason is where the next start finds it; an empty one says that nothing latches. It
	// takes a few seconds at most.
	Keep(latch string) error
}

// Options are what a guard stands on; all are required but Latched, Memory and Log.
type Options struct {
	Robot   robot.Robot
	Kin     robot.Kinematics
	Clock   robot.Clock
	Scenes  Scenes
	Limits  Limits
	AutoArm bool   // come up armed: for a twin only, and not when it comes up latched
	Latched string // come up latched, for this reason, which the memory has; empty: not latched
	Memory  Memory
	Log     *slog.Logger
}

// Guard is a robot.Robot that lets a motion through only when every rule is met. All methods are safe for
// concurrent use; none but Go waits for a motion, and Stop, EStop and Disarm never wait behind one.
type Guard struct {
	inner  robot.Robot
	kin    robot.Kinematics
	model  *robot.Model
	clock  robot.Clock
	scenes Scenes
	lim    Limits
	log    *slog.Logger
	memory Memory

	keeping  sync.Mutex // held while the memory is written
	mu       sync.Mutex // held for moments only, never while anything moves or is waited for
	armed    bool
	armedBy  string
	latch    string // why motion is latched off; empty: it is not
	latchAt  time.Time
	unkept   string // why the memory does not hold it; empty: it does
	kept     string // the latch that the memory was given last
	motion   *motion
	stopping int
	stopped  time.Time   // when the last stop began or ended; no plan made from a state of before may run
	unknown  time.Time   // no state received by then may move the robot; zero: no outcome is unknown
	faults   []time.Time // when motions ended in faults, within faultSpan
}

// motion is the one motion that is being checked or is under way.
type motion struct {
	ctx    context.Context //nolint:containedctx // lives exactly as long as the motion, which others must be able to end
	cancel context.CancelCauseFunc
	since  time.Time
	scene  *perception.Scene // that it was checked in; nil for a jaw alone
	handed atomic.Bool       // the robot has it
	back   atomic.Bool       // the robot has come back from it
}

// NewGuard checks the limits.
func NewGuard(o Options) (*Guard, error) {
	if o.Robot == nil || o.Kin == nil || o.Clock == nil || o.Scenes == nil {
		return nil, errors.New("safety: Robot, Kin, Clock and Scenes are required")
	}
	if err := o.Limits.Validate(); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	g := &Guard{inner: o.Robot, kin: o.Kin, model: o.Kin.Model(), clock: o.Clock, scenes: o.Scenes, lim: o.Limits, log: o.Log, memory: o.Memory}
	switch {
	case o.Latched != "":
		g.latch, g.latchAt, g.kept = o.Latched, o.Clock.Now(), o.Latched
		g.log.Error("latched", slog.String("why", o.Latched), slog.Bool("from_before", true))
	case o.AutoArm:
		g.armed, g.armedBy = true, "launch file"
	}
	return g, nil
}

// Limits are those the guard was made with.
func (g *Guard) Limits() Limits { return g.lim }

// State is the robot's own; it never blocks.
func (g *Guard) State() robot.State { return g.inner.State() }

// Ready says whether motion is allowed at all now: armed, not latched, nothing moving, state fresh, complete and
// at rest, mode ready, and no outcome unknown. nil means yes.
func (g *Guard) Ready() *Refused {
	now, s := g.clock.Now(), g.inner.State()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ready(s, now)
}

// ready is Ready for s; it needs mu.
func (g *Guard) ready(s robot.State, now time.Time) *Refused {
	switch {
	case g.latch != "":
		return found(RuleLatch, g.latch, "", "an operator must look at the robot and arm it again")
	case !g.armed:
		return found(RuleArmed, "", "", "an operator must arm the robot; no tool can")
	case g.stopping > 0:
		return found(RuleStopping, "a stop is under way", "", "wait until standstill is confirmed")
	case g.motion != nil:
		return found(RuleBusy, "a motion is running", "", "wait for its result or stop it",
			Number{"running", g.clock.Now().Sub(g.motion.since).Seconds()})
	}
	if f := g.fit(s, now); f != nil {
		return f
	}
	if !g.stopped.IsZero() && !s.Received.After(g.stopped) { // what is planned from it would be from before the stop
		return found(RuleBusy, "no reading since the stop", "", "wait for the next one")
	}
	return nil
}

// fit says whether a state, read just after now, may move the robot; it needs mu. The other order would age
// a reading by whatever held up the reader, which on a fast clock is much.
func (g *Guard) fit(s robot.State, now time.Time) *Refused {
	const wait = "wait for the robot to report, and look at it if it does not"
	if !s.Complete(g.model) {
		return found(RuleState, "joints, base or jaw missing or not finite", "a complete reading", wait)
	}
	age := now.Sub(s.Received)
	if !(age >= -g.lim.StateAge && age <= g.lim.StateAge) {
		return found(RuleState, fmt.Sprintf("joint state is %.3f s old", age.Seconds()), fmt.Sprintf("%.3f s", g.lim.StateAge.Seconds()), wait,
			Number{"age", age.Seconds()}, Number{"limit", g.lim.StateAge.Seconds()})
	}
	if f := g.plausible(s); f != nil {
		return f
	}
	if !g.unknown.IsZero() && !s.Received.After(g.unknown) {
		return found(RuleState, "the last motion's outcome is unknown", "a reading taken after it", wait)
	}
	if s.Mode != robot.ModeReady && s.Mode != robot.ModeMoving {
		return found(RuleMode, s.Mode.String()+words(s.Fault), robot.ModeReady.String(), "a person must see to the robot; nothing here clears it")
	}
	if s.Mode == robot.ModeMoving {
		return found(RuleBusy, "the robot says that it is moving", "", "wait for standstill or stop the robot")
	}
	if name, v, moving := g.moving(s); moving {
		return found(RuleBusy, fmt.Sprintf("%s moves at %.3f per second", name, v), fmt.Sprintf("%.3f", g.lim.RestSpeed), "wait for standstill or stop the robot",
			Number{"speed", v}, Number{"limit", g.lim.RestSpeed})
	}
	return nil
}

// plausible refuses readings that this robot cannot have.
func (g *Guard) plausible(s robot.State) *Refused {
	i, past := s.Implausible(g.model)
	if i < 0 {
		return nil
	}
	j, unit := g.model.Joints[i], "rad"
	if j.Prismatic {
		unit = "m"
	}
	return found(RuleState, fmt.Sprintf("%s read at %.4f %s", j.Name, s.Q[i], unit), fmt.Sprintf("%.4f to %.4f %s, which it cannot leave", j.Min, j.Max, unit),
		"an operator must look at the driver: order and units of its joints", Number{"position", s.Q[i]}, Number{"past", past})
}

func words(fault string) string {
	if fault == "" {
		return ""
	}
	return " (" + fault + ")"
}

// moving names the fastest joint, or the base, of a complete state.
func (g *Guard) moving(s robot.State) (name string, speed float64, moving bool) {
	name = "base"
	speed = max(s.BaseV.Norm(), abs(s.BaseV.Yaw))
	for i, v := range s.QD {
		if abs(v) > speed {
			name, speed = g.model.Joints[i].Name, abs(v)
		}
	}
	return name, speed, !(speed <= g.lim.RestSpeed)
}

func abs(x float64) float64 { return max(x, -x) }

// Go lets one motion through. It refuses with *Refused before anything moves: not ready, robot moved since the
// plan, a rule of Check in the newest scene, cap used up. The motion ends by the plan's deadline or 30 s from
// the call, whichever is earlier. A stop that was not confirmed latches; an unknown outcome locks motion until a
// newer complete state was read. The error is not *Refused when the robot could not be commanded.
func (g *Guard) Go(ctx context.Context, p robot.Plan) (robot.Outcome, error) {
	m, f := g.begin(ctx)
	if f == nil {
		if f = g.admit(m, &p); f != nil {
			g.end(m)
			m.cancel(nil)
		}
	}
	if f != nil {
		g.logRefused(f)
		return robot.Outcome{}, f
	}
	return g.run(m, p)
}

// begin takes the one place for a motion. A stop from now on ends it, also before it has begun to move.
func (g *Guard) begin(ctx context.Context) (*motion, *Refused) {
	now, s := g.clock.Now(), g.inner.State()
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.ready(s, now); f != nil {
		return nil, f
	}
	m := &motion{since: g.clock.Now()}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	g.motion = m
	return m, nil
}

// end frees the place for the next motion.
func (g *Guard) end(m *motion) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.motion == m {
		g.motion = nil
	}
}

// admit judges p against the newest scene and state, and sets its deadline.
func (g *Guard) admit(m *motion, p *robot.Plan) *Refused {
	sc, f := g.freshScene(m, p)
	if f != nil {
		return f
	}
	now, s := g.clock.Now(), g.inner.State()
	g.mu.Lock()
	f = g.fit(s, now)
	stopped := g.stopped
	g.mu.Unlock()
	if f != nil {
		return f
	}
	if !stopped.IsZero() && !p.From.Received.After(stopped) {
		return found(RuleStopping, "the robot was stopped after this was planned", "", "look at the target again, then execute")
	}
	if !p.From.Complete(g.model) {
		return found(RulePlan, "made from an incomplete state", "", "stage the target again")
	}
	if f := g.movedSince(p, s); f != nil {
		return f
	}
	if _, _, f := g.check(p, s, sc, g.lim.SceneNoise); f != nil {
		return f
	}
	if f := g.checkSweep(p); f != nil {
		return f
	}
	m.scene = sc
	limit := m.since.Add(g.lim.Motion)
	if p.Deadline.IsZero() || p.Deadline.After(limit) {
		p.Deadline = limit
	}
	if left := p.Deadline.Sub(g.clock.Now()); left <= 0 {
		return found(RuleCap, fmt.Sprintf("%.1f s were used up before the motion", g.lim.Motion.Seconds()-left.Seconds()),
			fmt.Sprintf("%.1f s from the call", g.lim.Motion.Seconds()), "execute again", Number{"left", left.Seconds()})
	}
	if m.ctx.Err() != nil {
		return found(RuleStopping, "stopped before the motion began", "", "execute again when it is clear why")
	}
	return nil
}

// freshScene is the newest scene, or a new one when that is older than the limit. A jaw alone needs none.
func (g *Guard) freshScene(m *motion, p *robot.Plan) (*perception.Scene, *Refused) {
	sc := g.scenes.Scene()
	oldest := g.clock.Now().Add(-g.lim.SceneAge)
	if p.Waypoint.Kind == robot.KindJaw || sc != nil && !sc.At.Before(oldest) {
		return sc, nil
	}
	sc, err := g.scenes.Refresh(m.ctx, oldest)
	if err != nil {
		return nil, found(RuleScene, err.Error(), fmt.Sprintf("a scene not older than %v", g.lim.SceneAge), "look at the cameras, then execute again")
	}
	return sc, nil
}

func (g *Guard) logRefused(f *Refused) {
	g.log.LogAttrs(context.Background(), slog.LevelWarn, "motion refused", f.Attrs()...)
}
