package safety

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/perception"
)

// reached is what the fake robot's Go returns when all is well.
func reached() (robot.Outcome, error) {
	return robot.Outcome{Result: robot.ResultReached, Stop: robot.StopConfirmed}, nil
}

// takes is a motion of d that ends early at its deadline or when it is cancelled, stopped and confirmed.
func (b *bench) takes(d time.Duration) func(context.Context, robot.Plan) (robot.Outcome, error) {
	return func(ctx context.Context, p robot.Plan) (robot.Outcome, error) {
		out := robot.Outcome{Result: robot.ResultReached, Stop: robot.StopConfirmed}
		if left := p.Deadline.Sub(b.clock.Now()); left < d {
			d, out.Result, out.Why = left, robot.ResultStoppedShort, "cap"
		}
		select {
		case <-b.clock.After(d):
		case <-ctx.Done():
			out.Result, out.Why = robot.ResultStoppedShort, "cancelled"
		}
		return out, nil
	}
}

// deaf is a motion that nothing ends but the test.
func deaf(begun chan<- struct{}, end <-chan struct{}) func(context.Context, robot.Plan) (robot.Outcome, error) {
	return func(context.Context, robot.Plan) (robot.Outcome, error) {
		close(begun)
		<-end
		return reached()
	}
}

func refusal(err error) string {
	var r *Refused
	if errors.As(err, &r) {
		return r.Rule
	}
	if err != nil {
		return "other: " + err.Error()
	}
	return ""
}

func TestGoodPlanGoesWithItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := b.plan()
		now := b.clock.Now()
		if _, err := b.guard.Go(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if got := b.robot.plans[0].Deadline.Sub(now); got != 30*time.Second {
			t.Errorf("deadline %v after the call, want 30 s", got)
		}
		p.Deadline = b.clock.Now().Add(7 * time.Second)
		want := p.Deadline
		if _, err := b.guard.Go(t.Context(), p); err != nil || !b.robot.plans[1].Deadline.Equal(want) {
			t.Errorf("an earlier deadline became %v, %v", b.robot.plans[1].Deadline, err)
		}
		p.Deadline = b.clock.Now().Add(-time.Millisecond)
		if _, err := b.guard.Go(t.Context(), p); refusal(err) != RuleCap {
			t.Errorf("a deadline that has passed: %v", err)
		}
		if b.log.count("motion ended") != 2 || b.log.count("motion refused") != 1 {
			t.Errorf("log:\n%s", b.log.buf.String())
		}
	})
}

// TestUnfitStateNeverMoves injects every way in which a reading can be missing, wrong, old or busy.
func TestUnfitStateNeverMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nan := math.NaN()
		for name, c := range map[string]struct {
			spoil func(s *robot.State, now time.Time)
			rule  string
		}{
			"nothing":         {func(s *robot.State, _ time.Time) { *s = robot.State{} }, RuleState},
			"no joints":       {func(s *robot.State, _ time.Time) { s.Q = nil }, RuleState},
			"no speeds":       {func(s *robot.State, _ time.Time) { s.QD = nil }, RuleState},
			"half the joints": {func(s *robot.State, _ time.Time) { s.Q = s.Q[:2] }, RuleState},
			"no base":         {func(s *robot.State, _ time.Time) { s.HasBase = false }, RuleState},
			"no jaw":          {func(s *robot.State, _ time.Time) { s.Jaw.Known = false }, RuleState},
			"NaN joint":       {func(s *robot.State, _ time.Time) { s.Q[1] = nan }, RuleState},
			"NaN speed":       {func(s *robot.State, _ time.Time) { s.QD[1] = nan }, RuleState},
			"NaN base":        {func(s *robot.State, _ time.Time) { s.Base.Yaw = nan }, RuleState},
			"old":             {func(s *robot.State, now time.Time) { s.Received = now.Add(-201 * time.Millisecond) }, RuleState},
			"of the future":   {func(s *robot.State, now time.Time) { s.Received = now.Add(time.Second) }, RuleState},
			"never received":  {func(s *robot.State, _ time.Time) { s.Received = time.Time{} }, RuleState},
			"joint moves":     {func(s *robot.State, _ time.Time) { s.QD[2] = -0.03 }, RuleBusy},
			"base moves":      {func(s *robot.State, _ time.Time) { s.BaseV.Yaw = 0.1 }, RuleBusy},
			"says it moves":   {func(s *robot.State, _ time.Time) { s.Mode = robot.ModeMoving }, RuleBusy},
			"mode unknown":    {func(s *robot.State, _ time.Time) { s.Mode = robot.ModeUnknown }, RuleMode},
			"faulted":         {func(s *robot.State, _ time.Time) { s.Mode = robot.ModeFaulted; s.Fault = "reflex" }, RuleMode},
			"runstopped":      {func(s *robot.State, _ time.Time) { s.Mode = robot.ModeRunstopped }, RuleMode},
		} {
			b := newBench(t)
			p := b.plan()
			b.robot.set(func() {
				b.robot.state = func(now time.Time) robot.State {
					s := restAt(now, 0, 0, 0.5)
					c.spoil(&s, now)
					return s
				}
			})
			if r := b.guard.Ready(); ruleOf(r) != c.rule {
				t.Errorf("%s: Ready says %v, want %q", name, r, c.rule)
			}
			if _, err := b.guard.Go(t.Context(), p); refusal(err) != c.rule {
				t.Errorf("%s: Go says %v, want %q", name, err, c.rule)
			}
			if b.robot.moves() != 0 {
				t.Errorf("%s: it moved", name)
			}
		}
	})
}

// TestStateMayDieWhileThePlanIsChecked: the reading is good at the call and gone after the scene was renewed.
func TestStateMayDieWhileThePlanIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Limits.SceneAge = 100 * time.Millisecond })
		p := b.plan()
		<-b.clock.After(time.Second)
		b.eyes.refresh = func(context.Context) (*perception.Scene, error) {
			b.robot.set(func() { b.robot.state = func(now time.Time) robot.State { return robot.State{Received: now} } })
			return b.eyes.sc, nil
		}
		if _, err := b.guard.Go(t.Context(), p); refusal(err) != RuleState || b.robot.moves() != 0 || b.eyes.fresh != 1 {
			t.Errorf("got %v after %d refreshes, %d moves", err, b.eyes.fresh, b.robot.moves())
		}
		if r := b.guard.Status(); r.Moving {
			t.Error("the place for a motion was not given back")
		}
	})
}

func TestOldSceneIsRenewedOrRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Limits.SceneAge = time.Second })
		p := b.plan()
		<-b.clock.After(2 * time.Second)
		if _, err := b.guard.Go(t.Context(), p); err != nil || b.eyes.fresh != 1 {
			t.Errorf("%v after %d refreshes", err, b.eyes.fresh)
		}
		b.eyes.refresh = func(context.Context) (*perception.Scene, error) { return nil, errors.New("cable is out") }
		_, err := b.guard.Go(t.Context(), p)
		if refusal(err) != RuleScene || !strings.Contains(err.Error(), "cable is out") {
			t.Errorf("got %v", err)
		}
		jaw := robot.Plan{Waypoint: robot.Waypoint{Kind: robot.KindJaw}, From: b.robot.State()}
		if _, err := b.guard.Go(t.Context(), jaw); err != nil {
			t.Errorf("a jaw needs no scene: %v", err)
		}
	})
}

func TestRobotNudgedSinceThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			x, yaw float64
			rule   string
		}{"4 mm": {0.004, 0, ""}, "6 mm": {0.006, 0, RuleMoved}, "base turned 1 degree": {0, geom.Rad(1), RuleMoved}} {
			b := newBench(t, func(o *Options) { o.Kin = newGantry(true) })
			b.kin = newGantry(true)
			p := b.plan()
			b.robot.set(func() {
				b.robot.state = func(now time.Time) robot.State {
					s := restAt(now, c.x, 0, 0.5)
					s.Base.Yaw = c.yaw
					return s
				}
			})
			if _, err := b.guard.Go(t.Context(), p); refusal(err) != c.rule {
				t.Errorf("%s: got %v, want %q", name, err, c.rule)
			}
		}
	})
}

func TestOneMotionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		begun, end := make(chan struct{}), make(chan struct{})
		b.robot.goes = deaf(begun, end)
		p := b.plan()
		first := make(chan error, 1)
		go func() { _, err := b.guard.Go(context.Background(), p); first <- err }()
		<-begun
		if _, err := b.guard.Go(t.Context(), p); refusal(err) != RuleBusy {
			t.Errorf("second motion: %v", err)
		}
		if s := b.guard.Status(); !s.Moving || ruleOf(s.Refused) != RuleBusy {
			t.Errorf("status %+v", s)
		}
		close(end)
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		if r := b.guard.Ready(); r != nil {
			t.Errorf("after the motion: %v", r)
		}
		var wg sync.WaitGroup // many at once: each either goes or is refused as busy, never two together
		var mu sync.Mutex
		running, most, gone := 0, 0, 0
		b.robot.set(func() {
			b.robot.goes = func(context.Context, robot.Plan) (robot.Outcome, error) {
				mu.Lock()
				running++
				gone++
				most = max(most, running)
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				running--
				mu.Unlock()
				return reached()
			}
		})
		for range 16 {
			wg.Go(func() {
				if _, err := b.guard.Go(t.Context(), p); err != nil && refusal(err) != RuleBusy {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most != 1 || gone < 1 {
			t.Errorf("%d motions, %d at the same time", gone, most)
		}
	})
}

// TestCap: a 2.0 s move that arrives at 2.2 s is a success; one that needs 31 s is stopped at 30 s.
func TestCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			needs, ends time.Duration
			result      robot.Result
		}{{2200 * time.Millisecond, 2200 * time.Millisecond, robot.ResultReached}, {31 * time.Second, 30 * time.Second, robot.ResultStoppedShort}} {
			b := newBench(t)
			b.robot.goes = b.takes(c.needs)
			p := b.plan()
			began := b.clock.Now()
			out, err := b.guard.Go(t.Context(), p)
			took := b.clock.Now().Sub(began)
			if err != nil || out.Result != c.result || (took-c.ends).Abs() > beat || b.guard.Latched() != "" {
				t.Errorf("a motion of %v: %+v, %v after %v; latched %q", c.needs, out, err, took, b.guard.Latched())
			}
		}
	})
}

// TestDeafRobotIsStoppedByTheGuard: neither deadline nor cancelling ends the motion.
func TestDeafRobotIsStoppedByTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name   string
			cancel bool
			heeds  bool // the robot's Stop works
			within time.Duration
		}{
			{"deadline, then stops", false, true, 35*time.Second + beat},
			{"deadline, never stops", false, false, 43*time.Second + 3*beat},
			{"cancelled, never stops", true, false, 14*time.Second + 3*beat},
		} {
			b := newBench(t)
			begun, end := make(chan struct{}), make(chan struct{})
			b.robot.goes = deaf(begun, end)
			b.robot.stops = func(ctx context.Context) error {
				if c.heeds {
					close(end)
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}
			p := b.plan()
			ctx, cancel := context.WithCancel(t.Context())
			began := b.clock.Now()
			if c.cancel {
				go func() { <-begun; <-b.clock.After(time.Second); cancel() }()
			}
			out, err := b.guard.Go(ctx, p)
			cancel()
			took := b.clock.Now().Sub(began)
			if err != nil || took > c.within || b.log.count("motion overran") != 1 {
				t.Errorf("%s: %v after %v\n%s", c.name, err, took, b.log.buf.String())
			}
			if c.heeds {
				if out.Stop != robot.StopConfirmed || b.guard.Latched() != "" {
					t.Errorf("%s: %+v, latched %q", c.name, out, b.guard.Latched())
				}
				continue
			}
			if out.Stop != robot.StopNotConfirmed || out.Result != robot.ResultUnknown || b.guard.Latched() == "" || !b.guard.Status().Moving {
				t.Errorf("%s: %+v, status %+v", c.name, out, b.guard.Status())
			}
			close(end) // only now does it come back, and frees the place
		}
	})
}

func TestUnknownOutcomeWaitsForANewReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, goes := range map[string]func(context.Context, robot.Plan) (robot.Outcome, error){
			"unknown": func(context.Context, robot.Plan) (robot.Outcome, error) {
				return robot.Outcome{Result: robot.ResultUnknown, Stop: robot.StopConfirmed}, nil
			},
			"failed": func(context.Context, robot.Plan) (robot.Outcome, error) {
				return robot.Outcome{}, errors.New("connection lost")
			},
		} {
			b := newBench(t)
			b.robot.goes = goes
			p := b.plan()
			b.robot.set(func() { // readings stop at the call
				last := b.clock.Now()
				b.robot.state = func(time.Time) robot.State { return restAt(last, 0, 0, 0.5) }
			})
			if _, err := b.guard.Go(t.Context(), p); (err == nil) != (name == "unknown") {
				t.Errorf("%s: %v", name, err)
			}
			if r := b.guard.Ready(); ruleOf(r) != RuleState || !b.guard.Status().Unknown {
				t.Errorf("%s: motion is not locked: %v", name, r)
			}
			<-b.clock.After(10 * time.Millisecond)
			b.robot.set(func() { b.robot.state = func(now time.Time) robot.State { return restAt(now, 0, 0, 0.5) } })
			if r := b.guard.Ready(); r != nil || b.guard.Status().Unknown {
				t.Errorf("%s: a new reading does not unlock: %v", name, r)
			}
		}
	})
}

func TestNewSceneRefusesAtGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := path(b.kin, b.robot.State(), at3(0, 0, 0.1))
		if _, _, r := b.guard.Check(p, b.eyes.Scene()); r != nil {
			t.Fatal(r)
		}
		b.eyes.sc = sensed(t, plate(0, 0, 0.2, 0.2)...) // somebody has put a box there
		_, err := b.guard.Go(t.Context(), p)
		if refusal(err) != RuleClearance || b.robot.moves() != 0 || b.log.count("motion refused") != 1 {
			t.Errorf("got %v", err)
		}
	})
}

func TestGuardNeedsItsParts(t *testing.T) {
	b := newBench(t)
	for name, change := range map[string]func(*Options){
		"robot": func(o *Options) { o.Robot = nil }, "scenes": func(o *Options) { o.Scenes = nil },
		"limits": func(o *Options) { o.Limits.SpeedScale = 2 },
	} {
		o := Options{Robot: b.robot, Kin: b.kin, Clock: b.clock, Scenes: b.eyes, Limits: DefaultLimits(b.kin.Model())}
		change(&o)
		if _, err := NewGuard(o); err == nil {
			t.Errorf("made without %s", name)
		}
	}
}
