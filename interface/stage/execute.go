package stage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/perception"
	"viad/safety"
)

// run is one execute that has been allowed to start.
type run struct {
	id     uint64
	driver uint64
	plan   robot.Plan
	takes  time.Duration // planned, with the jaw's part
	before live
	staged staged
	target Gripper
}

// Execute moves the robot along the staged target and returns after standstill, with the scene renewed.
// called is when the request came in, on the robot.Clock: the cap counts from there. id names the request in
// the report. An error is a *safety.Refused: nothing moved and the staged target is as it was. A motion that
// was cut short is a Report. When ctx ends early the motion goes on or stops as Options.OnClientGone says.
func (s *Stage) Execute(ctx context.Context, called time.Time, id uint64) (*Report, error) {
	driver, r := s.enter()
	if r != nil {
		return nil, s.refused("execute", r)
	}
	m, r := s.begin(ctx, called, driver)
	if r != nil {
		return nil, s.refused("execute", r)
	}
	m.id = id
	done := false
	defer func() { // also when a driver panics
		if !done {
			s.become(idle)
		}
	}()
	out, err := s.follow(ctx, m)
	if err != nil {
		return nil, s.unmoved(err)
	}
	rep := s.report(ctx, m, out)
	s.settle(m, rep)
	done = true
	s.log.Debug("executed", slog.Uint64("id", id), slog.String("mode", rep.Mode.String()), slog.String("result", out.Result.String()),
		slog.String("stop", out.Stop.String()), slog.String("why", out.Why), slog.Duration("took", out.Took), slog.Duration("planned", out.Planned),
		slog.Float64("off_m", rep.Ordered.Pose.Dist(rep.Realized.Pose)), slog.Float64("off_deg", geom.Deg(rep.Ordered.Pose.Angle(rep.Realized.Pose))),
		slog.Bool("success", rep.Success))
	return rep, nil
}

func (s *Stage) become(a activity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.activity = a
}

// enter is the driver on whose behalf a call comes in; the seat may go to somebody else before the call is carried out.
func (s *Stage) enter() (driver uint64, r *safety.Refused) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.driver, s.busy()
}

// gone refuses what was asked for on behalf of a driver who is not there any more; needs mu.
func (s *Stage) gone(driver uint64) *safety.Refused {
	if s.driver == driver {
		return nil
	}
	return refuse(RuleNewDriver, "the seat went to somebody else meanwhile", "", "Look again: what was staged is gone.")
}

// begin decides whether the staged target may run now; when it may, the stage is moving from here on.
func (s *Stage) begin(ctx context.Context, called time.Time, driver uint64) (*run, *safety.Refused) {
	s.work.Lock()
	defer s.work.Unlock()
	if ctx.Err() != nil {
		return nil, refuse(RuleClientGone, "the request ended before the motion began", "", "Call again.")
	}
	s.awaitRest(ctx)
	l := s.live()
	if r := s.mayRun(l); r != nil {
		return nil, r
	}
	if called.IsZero() {
		called = s.o.Clock.Now()
	}
	deadline := called.Add(s.o.Caps.Motion)
	if r := s.late(deadline); r != nil {
		return nil, r
	}
	if r := s.o.Checker.Ready(); r != nil {
		return nil, r
	}
	if r := s.locked(func() *safety.Refused { return s.preview(l) }); r != nil {
		return nil, s.dead(r)
	}
	sc, err := s.fresh(ctx, false)
	if err != nil {
		return nil, refuse(RuleNoScene, err.Error(), "a picture of now", "Check the cameras, look again, then execute.")
	}
	s.mu.Lock()
	w, sn, r := s.staged, s.seen, s.gone(driver)
	s.mu.Unlock()
	if r != nil {
		return nil, r
	}
	v := s.judge(w, l, sc)
	if v.check.Refused != nil {
		if r := s.confirm(ctx, sn, &v); r != nil {
			return nil, r
		}
	}
	if r := s.late(deadline); r != nil {
		return nil, r
	}
	m := &run{driver: driver, plan: *v.check.Plan, takes: v.check.Duration, before: l, staged: w, target: s.target(w, l)}
	m.plan.Deadline = deadline
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.busy(); r != nil {
		return nil, r
	}
	if r := s.gone(driver); r != nil {
		return nil, r
	}
	s.activity = moving
	return m, nil
}

// restWait bounds how long an execute waits for a robot that still sways from its last motion.
const restWait = time.Second

// awaitRest waits while the guard refuses only because something still moves: a hand that has just closed
// sways for a moment, and nobody should have to call again for that.
func (s *Stage) awaitRest(ctx context.Context) {
	moving := func() bool {
		r := s.o.Checker.Ready()
		return r != nil && r.Rule == safety.RuleBusy
	}
	if !moving() {
		return
	}
	tick := s.o.Clock.Ticker(20 * time.Millisecond)
	defer tick.Stop()
	for end := s.o.Clock.Now().Add(restWait); moving() && s.o.Clock.Now().Before(end); {
		select {
		case <-tick.C():
		case <-ctx.Done():
			return
		}
	}
}

// late refuses to begin what would have to be stopped at once.
func (s *Stage) late(deadline time.Time) *safety.Refused {
	over := s.o.Clock.Now().Sub(deadline)
	if over < 0 {
		return nil
	}
	return refuse(RuleTimeCap, fmt.Sprintf("%.1f s since the call", (s.o.Caps.Motion+over).Seconds()),
		seconds(s.o.Caps.Motion), "Call execute again.")
}

// mayRun holds the rules that need no plan.
func (s *Stage) mayRun(l live) *safety.Refused {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.busy(); r != nil {
		return r
	}
	if !l.ok {
		return refuse(RuleNoState, "joints, base or jaw not reported", "all of them", "Wait for the robot, look again, then execute.")
	}
	if s.waypoint(s.staged, l).Kind == robot.KindNone {
		return s.nothing(l)
	}
	if s.last != nil && s.ranRev == s.rev && !s.looked {
		return refuse(RuleRepeated, "this target has run; "+s.last.Summary(), "an edit or a fresh look between two executes",
			"Look where the robot stopped, then execute again or edit the target.")
	}
	return nil
}

// dead kills the preview for good: the same execute is refused until somebody looks again, and that look is
// judged anew even if the robot and the scene stand still.
func (s *Stage) dead(r *safety.Refused) *safety.Refused {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.ok, s.stale = false, true
	return r
}

// confirm decides what a refused verdict means. What was shown as refused stays refused by its own rule. What
// was shown as movable is looked at a second time, so that one stray reading does not kill a preview; then
// only a change larger than sensor noise does. Within the noise the guard's own margins decide.
func (s *Stage) confirm(ctx context.Context, sn seen, v *verdict) *safety.Refused {
	if !sn.movable {
		return v.check.Refused
	}
	if v.check.Plan != nil {
		sc, err := s.fresh(ctx, true)
		if err != nil {
			return refuse(RuleNoScene, err.Error(), "a picture of now", "Check the cameras, look again, then execute.")
		}
		if s.inScene(v, sc); !s.flipped(sn, *v) {
			return nil
		}
	}
	return s.dead(refuse(RuleLookAgain, "the check has changed since the last look: "+refusedText(v.check.Refused), "the check that was shown",
		"Look at the target again; it is still staged."))
}

// fresh is a scene of now: a newer one when the newest is older than Options.SceneAge, or must.
func (s *Stage) fresh(ctx context.Context, must bool) (*perception.Scene, error) {
	now := s.o.Clock.Now()
	if sc := s.o.Scenes.Scene(); sc != nil && !must && now.Sub(sc.At) < s.o.SceneAge {
		return sc, nil
	}
	sc, err := s.o.Scenes.Refresh(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("no new scene: %w", err)
	}
	return sc, nil
}

// follow moves the robot. The motion does not hang on the request's context, which need not end when the
// client does and must not end a motion half way unless the operator chose so.
func (s *Stage) follow(ctx context.Context, m *run) (robot.Outcome, error) {
	mctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	if s.o.OnClientGone == StopNow {
		defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	}
	return s.o.Mover.Go(mctx, m.plan)
}

// unmoved is what the mover said instead of moving. Its refusals it has logged itself.
func (s *Stage) unmoved(err error) error {
	var r *safety.Refused
	if errors.As(err, &r) {
		return r
	}
	return s.refused("execute", refuse(RuleNotMoved, err.Error(), "", "Check the robot's state, then execute again."))
}

// report renews the scene, measures what the motion came to and asks the judge.
func (s *Stage) report(ctx context.Context, m *run, out robot.Outcome) *Report {
	_, serr := s.fresh(context.WithoutCancel(ctx), true)
	after := live{state: out.After, ok: out.After.Complete(s.model)}
	if after.ok {
		after.real = Gripper{Pose: s.o.Kin.Tool(out.After.Base, out.After.Q), Open: out.After.Jaw.Open}
	} else if after = s.live(); !after.ok {
		after = m.before
	}
	out.Planned = m.takes // the body knows the trajectory's part alone
	from := m.before.state.Base
	if out.Before.HasBase {
		from = out.Before.Base
	}
	rep := &Report{
		ID: m.id, Mode: m.staged.mode, Kind: m.plan.Waypoint.Kind, Outcome: out,
		Ordered: m.target, Realized: after.real, Base: after.state.Base,
		OrderedBase: m.staged.delta, RealizedBase: from.Inv().Mul(after.state.Base),
	}
	rep.RealizedBase.Yaw = geom.WrapAngle(rep.RealizedBase.Yaw)
	rep.Success = s.o.Judge != nil && out.Stop == robot.StopConfirmed && s.o.Judge.Succeeded()
	rep.Message = message(rep, serr)
	return rep
}

func message(r *Report, scene error) string {
	var text string
	if o := r.Outcome; o.Result != robot.ResultReached {
		why := o.Why
		if why == "" {
			why = o.Result.String()
		}
		text = "Cut short: " + strings.TrimSuffix(why, ".") + "."
		if o.Result == robot.ResultUnknown {
			text = "Outcome unknown: " + strings.TrimSuffix(why, ".") + "."
		}
	}
	if r.Outcome.Stop != robot.StopConfirmed {
		text = join(text, r.Outcome.Stop.String()+".")
	}
	if r.Success {
		text = join(text, "TASK SUCCEEDED. The session will be closed; only observing and end_episode are left.")
	}
	if scene != nil {
		text = join(text, "The pictures are from before the motion ended: "+scene.Error()+".")
	}
	return text
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}

// Summary is the outcome in one clause: result, reason, and what is known of standstill.
func (r *Report) Summary() string {
	text := r.Outcome.Result.String()
	if r.Outcome.Why != "" {
		text += " (" + r.Outcome.Why + ")"
	}
	return text + "; " + r.Outcome.Stop.String()
}

// settle ends the motion: the 2D target rests on the real gripper again, the 3D target stays as commanded.
func (s *Stage) settle(m *run, rep *Report) {
	s.work.Lock()
	defer s.work.Unlock()
	w := m.staged
	w.jaw = w.jaw && rep.Outcome.Result != robot.ResultReached
	if s.o.Face == Face2D {
		w = staged{}
	}
	var v verdict
	if l := s.live(); l.ok && w != (staged{}) {
		v = s.judge(w, l, s.o.Scenes.Scene())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.driver == m.driver {
		s.staged, s.verdict = w, v
	}
	s.rev++
	s.ranRev = s.rev
	s.seen.ok = false
	s.last, s.delivered, s.shows, s.looked = rep, false, 0, false
	s.finished = s.finished || rep.Success
	s.activity = idle
}

// EndEpisode runs reset (save the episode, reset a twin's world; nil does nothing) and starts the next episode
// with nothing staged and the initial view. It is refused during a motion. When reset fails the episode goes
// on as it was.
func (s *Stage) EndEpisode(ctx context.Context, reset func(context.Context) error) error {
	s.mu.Lock()
	if s.activity != idle {
		r := refuse(RuleEnding, "", "", "Wait for end_episode to return.")
		if s.activity == moving {
			r = refuse(RuleMotionRunning, "", "", "Call stop, or wait for the motion to end.")
		}
		s.mu.Unlock()
		return s.refused("end_episode", r)
	}
	s.activity = ending
	s.mu.Unlock()
	defer s.become(idle)
	s.work.Lock() // an edit or an execute that was being judged ends first
	defer s.work.Unlock()
	if reset != nil {
		if err := reset(ctx); err != nil {
			return fmt.Errorf("the episode goes on as it was: %w", err)
		}
	}
	if _, err := s.fresh(ctx, true); err != nil {
		s.log.Warn("episode ended without a new scene", slog.Any("error", err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.staged, s.verdict, s.seen, s.pinned = staged{}, verdict{}, seen{}, nil
	s.rev++
	s.orbit = s.o.Home
	s.last, s.delivered, s.finished = nil, false, false
	s.episode++
	s.log.Info("episode ended", slog.Int("next", s.episode))
	return nil
}
