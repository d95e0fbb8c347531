package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a controller over a kinematic FR3. Tests run it in a bubble, where the wall clock is virtual.
type rig struct {
	*testing.T
	clock robot.Clock
	body  *robottest.Body
	c     *Controller
}

// bubble runs a subtest in virtual time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func newRig(t *testing.T, change func(*Settings)) *rig {
	t.Helper()
	k := kinOf(t, FR3())
	clock := robot.WallClock{}
	body := robottest.NewBody(k.Model(), clock, ready[:])
	set := DefaultSettings()
	if change != nil {
		change(&set)
	}
	c, err := New(Options{Body: body, Kinematics: k, Clock: clock, Settings: set})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, clock, body, c}
}

// plan moves the tool by d metres from where it is.
func (r *rig) plan(d r3.Vec) robot.Plan {
	r.Helper()
	s := r.c.State()
	p, err := r.c.Plan(s, pose(r.c.kin.Tool(s.Base, s.Q), d))
	if err != nil {
		r.Fatal(err)
	}
	return p
}

func (r *rig) run(p robot.Plan) robot.Outcome {
	r.Helper()
	o, err := r.c.Go(context.Background(), p)
	if err != nil {
		r.Fatal(err)
	}
	r.Logf("%v, %v after %v of %v: %s", o.Result, o.Stop, o.Took, o.Planned, o.Why)
	return o
}

func (r *rig) expect(o robot.Outcome, res robot.Result, stop robot.StopState, words string) {
	r.Helper()
	if o.Result != res || o.Stop != stop || !strings.Contains(o.Why, words) {
		r.Errorf("outcome %v, %v, %q; want %v, %v, words %q", o.Result, o.Stop, o.Why, res, stop, words)
	}
}

var tenCM = r3.Vec{X: 0.06, Y: 0.06, Z: -0.05}

func TestGoReaches(t *testing.T) { synctest.Test(t, goReaches) }

func goReaches(t *testing.T) {
	r := newRig(t, nil)
	p := r.plan(tenCM)
	o := r.run(p)
	r.expect(o, robot.ResultReached, robot.StopConfirmed, "")
	if o.Why != "" {
		t.Errorf("a reached goal needs no why: %q", o.Why)
	}
	if d := o.Realized.Dist(p.Waypoint.Tool); d > 1e-4 {
		t.Errorf("realized %v m from the goal", d)
	}
	if o.Ordered != p.Waypoint.Tool || o.Planned != p.Traj.Duration() || o.Took < o.Planned || o.Took > o.Planned+300*time.Millisecond {
		t.Errorf("ordered %v, planned %v, took %v", o.Ordered, o.Planned, o.Took)
	}
	if len(r.body.Halts()) != 0 {
		t.Errorf("a good motion used the stop ladder: %v", r.body.Halts())
	}
	if _, err := r.c.Go(context.Background(), p); !errors.Is(err, ErrMoved) {
		t.Errorf("the same plan from another place: %v", err)
	}
}

// A body that is slow, and one that trails, still reach.
func TestGoSlowBody(t *testing.T) {
	for name, f := range map[string]robottest.Faults{"10 % slow": {Slow: 1.1}, "200 ms late": {Lag: 200 * time.Millisecond}} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, func(s *Settings) { s.SpeedScale = 0.4 })
			p := r.plan(tenCM)
			r.body.Break(f)
			o := r.run(p)
			r.expect(o, robot.ResultReached, robot.StopConfirmed, "")
			if o.Took < o.Planned+100*time.Millisecond {
				t.Errorf("took %v of %v: the fault did nothing", o.Took, o.Planned)
			}
		})
	}
}

// A motion that needs more than 30 s is stopped at 30 s of virtual time, standing still, in place.
func TestGoThirtySeconds(t *testing.T) { synctest.Test(t, goThirtySeconds) }

func goThirtySeconds(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.SpeedScale = 0.035 })
	p := r.plan(r3.Vec{Y: 0.30, Z: -0.1})
	if p.Traj.Duration() < 31*time.Second {
		t.Fatalf("the plan takes only %v", p.Traj.Duration())
	}
	o := r.run(p)
	r.expect(o, robot.ResultStoppedShort, robot.StopConfirmed, "30 s cap")
	if o.Took < 30*time.Second || o.Took > 31*time.Second {
		t.Errorf("took %v", o.Took)
	}
	a := r.c.State()
	<-r.clock.After(time.Second)
	if b := r.c.State(); b.Q[0] != a.Q[0] {
		t.Errorf("still moving: %v then %v", a.Q, b.Q)
	}
}

// The plan's own deadline counts from the call, not from Go.
func TestGoDeadline(t *testing.T) { synctest.Test(t, goDeadline) }

func goDeadline(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.SpeedScale = 0.2 })
	p := r.plan(tenCM)
	p.Deadline = r.clock.Now().Add(time.Second)
	o := r.run(p)
	r.expect(o, robot.ResultStoppedShort, robot.StopConfirmed, "cap on motions")
	if o.Took > 1500*time.Millisecond {
		t.Errorf("took %v", o.Took)
	}
}

func TestGoTrouble(t *testing.T) {
	const half = 500 * time.Millisecond
	for _, c := range []struct {
		name  string
		f     robottest.Faults
		res   robot.Result
		stop  robot.StopState
		words string
	}{
		{"stall", robottest.Faults{BlockAfter: half}, robot.ResultStoppedShort, robot.StopConfirmed, "no progress for 1.5s"},
		{"contact", robottest.Faults{ContactFrom: half, Contact: 45}, robot.ResultContact, robot.StopConfirmed, "45 N"},
		{"frozen", robottest.Faults{FreezeAfter: half}, robot.ResultUnknown, robot.StopNotConfirmed, "no complete joint state"},
		{"echo", robottest.Faults{EchoAfter: half}, robot.ResultUnknown, robot.StopNotConfirmed, "not known"},
		{"NaN", robottest.Faults{NaNAfter: half}, robot.ResultStoppedShort, robot.StopConfirmed, "no complete joint state"}, // both read well at rest
		{"partial", robottest.Faults{PartAfter: half}, robot.ResultStoppedShort, robot.StopConfirmed, "no complete joint state"},
		{"reflex", robottest.Faults{FaultAfter: half}, robot.ResultFaulted, robot.StopConfirmed, "reflex"},
		{"runstop", robottest.Faults{StopAfter: half}, robot.ResultFaulted, robot.StopConfirmed, "runstop pressed"},
		{"lies", robottest.Faults{LieAfter: half}, robot.ResultStoppedShort, robot.StopConfirmed, "mm and"},
		{"deaf to the mild rungs", robottest.Faults{ContactFrom: half, Contact: 99, DeafBelow: robot.RungPower}, robot.ResultContact, robot.StopConfirmed, "runstop or controller off"},
		{"deaf", robottest.Faults{ContactFrom: half, Contact: 99, DeafAlways: true}, robot.ResultUnknown, robot.StopNotConfirmed, "read its state"},
		{"hanging rungs", robottest.Faults{ContactFrom: half, Contact: 99, HangBelow: robot.RungHold}, robot.ResultContact, robot.StopConfirmed, "99 N"},
	} {
		bubble(t, c.name, func(t *testing.T) {
			r := newRig(t, func(s *Settings) { s.SpeedScale, s.FollowError = 0.1, 0.5 })
			p := r.plan(r3.Vec{Y: 0.3, Z: -0.2})
			r.body.Break(c.f)
			o := r.run(p)
			r.expect(o, c.res, c.stop, c.words)
			if o.Took > 8*time.Second {
				t.Errorf("took %v", o.Took)
			}
			if o.Result != robot.ResultReached && o.Realized.Dist(o.Ordered) < 0.003 {
				t.Errorf("it did reach, after all")
			}
			<-r.clock.After(20 * time.Second) // lets a deaf body end, for goleak
		})
	}
}

// What is said of a contact is where it came to rest, as the outcome's poses have it, and not where it was cut.
func TestContactSaysWhereItRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		p := r.plan(r3.Vec{Y: 0.3, Z: -0.2})
		r.body.Break(robottest.Faults{ContactFrom: 500 * time.Millisecond, Contact: 45, Coast: 300 * time.Millisecond})
		o := r.run(p)
		r.expect(o, robot.ResultContact, robot.StopConfirmed, "45 N")
		want := fmt.Sprintf(", %.0f mm and %.1f degrees from the goal", o.Realized.Dist(o.Ordered)*1e3, o.Realized.Angle(o.Ordered)*180/math.Pi)
		if !strings.HasSuffix(o.Why, want) {
			t.Errorf("%q, and it rests%s", o.Why, want)
		}
	})
}

func TestGoFollowError(t *testing.T) { synctest.Test(t, goFollowError) }

func goFollowError(t *testing.T) {
	r := newRig(t, nil)
	p := r.plan(r3.Vec{Y: 0.3})
	r.body.Break(robottest.Faults{Slow: 4})
	r.expect(r.run(p), robot.ResultStoppedShort, robot.StopConfirmed, "mm from where the plan has it")
}

func TestGoRefuses(t *testing.T) { synctest.Test(t, goRefuses) }

func goRefuses(t *testing.T) {
	r := newRig(t, nil)
	p := r.plan(tenCM)
	refused := func(name, words string, ctx context.Context, p robot.Plan) {
		t.Helper()
		before := r.c.State().Q
		_, err := r.c.Go(ctx, p)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want words %q", name, err, words)
		}
		for i, q := range r.c.State().Q {
			if q != before[i] {
				t.Errorf("%s: it moved", name)
			}
		}
	}
	bg := context.Background()
	gone, cancel := context.WithCancel(bg)
	cancel()
	refused("ended caller", "canceled", gone, p)
	late := p
	late.Deadline = r.clock.Now()
	refused("too late", "deadline has passed", bg, late)
	refused("no plan", "not made by a planner", bg, robot.Plan{})
	r.body.SetMode(robot.ModeRunstopped, "button")
	refused("runstop", "runstopped: button", bg, p)
	r.body.SetMode(robot.ModeUnknown, "")
	refused("unknown mode", "the robot is unknown", bg, p)
	r.body.SetMode(robot.ModeReady, "")
	r.body.Break(robottest.Faults{FollowErr: errors.New("controller is not loaded")})
	refused("driver says no", "controller is not loaded", bg, p)
	r.body.Break(robottest.Faults{})
	q := append([]float64(nil), ready[:]...)
	q[3] += 0.03
	r.body.Place(geom.SE2{}, q)
	refused("pushed", "has moved since", bg, p)
	q[3] -= 0.03
	q[0], q[2] = q[0]+0.0205, q[2]-0.0205 // the tool is hardly moved, joints are
	r.body.Place(geom.SE2{}, q)
	refused("elbow pushed", "has moved since", bg, p)
}

// untilMoving waits until a motion runs, and then for d.
func (r *rig) untilMoving(d time.Duration) {
	for r.c.State().Mode != robot.ModeMoving {
		<-r.clock.After(10 * time.Millisecond)
	}
	<-r.clock.After(d)
}

func TestGoOneAtATime(t *testing.T) { synctest.Test(t, goOneAtATime) }

func goOneAtATime(t *testing.T) {
	r := newRig(t, nil)
	p := r.plan(tenCM)
	done := make(chan robot.Outcome)
	go func() { done <- r.run(p) }()
	r.untilMoving(0)
	if _, err := r.c.Go(context.Background(), p); !errors.Is(err, ErrBusy) {
		t.Errorf("second Go: %v", err)
	}
	r.expect(<-done, robot.ResultReached, robot.StopConfirmed, "")
}

func TestStopBesideGo(t *testing.T) { synctest.Test(t, stopBesideGo) }

func stopBesideGo(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.SpeedScale = 0.2 })
	p := r.plan(tenCM)
	done := make(chan robot.Outcome)
	go func() { done <- r.run(p) }()
	r.untilMoving(time.Second)
	began := r.clock.Now()
	if err := r.c.Stop(context.Background()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if d := r.clock.Now().Sub(began); d > 500*time.Millisecond {
		t.Errorf("stopping took %v", d)
	}
	o := <-done
	r.expect(o, robot.ResultStoppedShort, robot.StopConfirmed, "stop command")
	// The next plan works.
	r.expect(r.run(r.plan(r3.Vec{Z: 0.02})), robot.ResultReached, robot.StopConfirmed, "")
}

func TestStopWhileIdleAndDead(t *testing.T) { synctest.Test(t, stopWhileIdleAndDead) }

func stopWhileIdleAndDead(t *testing.T) {
	r := newRig(t, nil)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.c.Stop(gone); err != nil {
		t.Errorf("stop of a resting robot with an ended context: %v", err)
	}
	if n := len(r.body.Halts()); n != 3 {
		t.Errorf("%d rungs were used, want 3", n)
	}
}

func TestStopDeafBody(t *testing.T) { synctest.Test(t, stopDeafBody) }

func stopDeafBody(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.SpeedScale = 0.1 })
	p := r.plan(r3.Vec{Y: 0.3, Z: -0.2})
	r.body.Break(robottest.Faults{DeafAlways: true, HangBelow: robot.RungCancel})
	done := make(chan robot.Outcome)
	go func() { done <- r.run(p) }()
	r.untilMoving(time.Second)
	err := r.c.Stop(context.Background())
	if err == nil || !strings.Contains(err.Error(), "NOT confirmed") || !strings.Contains(err.Error(), "zero velocity: no answer") {
		t.Errorf("stop of a deaf body: %v", err)
	}
	if h := r.body.Halts(); len(h) != 4 || h[3] != robot.RungPower {
		t.Errorf("rungs %v", h)
	}
	r.expect(<-done, robot.ResultUnknown, robot.StopNotConfirmed, "stop command")
	<-r.clock.After(30 * time.Second)
}

func TestCallerEnds(t *testing.T) { synctest.Test(t, callerEnds) }

func callerEnds(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.SpeedScale = 0.2 })
	p := r.plan(tenCM)
	ctx, cancel := robot.WithTimeout(context.Background(), r.clock, time.Second)
	defer cancel()
	o, err := r.c.Go(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	r.expect(o, robot.ResultStoppedShort, robot.StopConfirmed, "whoever asked for it is gone; the robot holds")
}

func jawPlan(r *rig, w robot.Waypoint) robot.Plan {
	r.Helper()
	p, err := r.c.Plan(r.c.State(), w)
	if err != nil {
		r.Fatal(err)
	}
	return p
}

func TestJaw(t *testing.T) {
	shut := robot.Waypoint{Kind: robot.KindJaw}
	open := robot.Waypoint{Kind: robot.KindJaw, Jaw: robot.JawTarget{Open: true}}
	bubble(t, "shut and open", func(t *testing.T) {
		r := newRig(t, nil)
		o := r.run(jawPlan(r, shut))
		r.expect(o, robot.ResultReached, robot.StopConfirmed, "")
		if o.JawFrom.Aperture != 0.08 || o.JawTo.Aperture != 0 || o.Realized.Dist(o.Ordered) > 1e-9 {
			t.Errorf("jaw %v to %v", o.JawFrom, o.JawTo)
		}
		r.expect(r.run(jawPlan(r, open)), robot.ResultReached, robot.StopConfirmed, "")
	})
	bubble(t, "on an object", func(t *testing.T) {
		r := newRig(t, nil)
		r.body.Break(robottest.Faults{Object: 0.045})
		o := r.run(jawPlan(r, shut))
		r.expect(o, robot.ResultReached, robot.StopConfirmed, "")
		if !o.JawTo.Holding || o.JawTo.Aperture != 0.045 {
			t.Errorf("jaw %+v", o.JawTo)
		}
	})
	bubble(t, "stuck", func(t *testing.T) {
		r := newRig(t, nil)
		r.body.Break(robottest.Faults{JawStuck: true})
		r.expect(r.run(jawPlan(r, shut)), robot.ResultStoppedShort, robot.StopConfirmed, "did not close: look what its fingers press against, then close again")
	})
	bubble(t, "stuck while it opens", func(t *testing.T) {
		r := newRig(t, nil)
		r.expect(r.run(jawPlan(r, shut)), robot.ResultReached, robot.StopConfirmed, "")
		r.body.Break(robottest.Faults{JawStuck: true})
		r.expect(r.run(jawPlan(r, open)), robot.ResultStoppedShort, robot.StopConfirmed,
			"the jaw opened to 0 mm of 80 mm and something holds it: look what its fingers press against, move away from it, then open again")
	})
	bubble(t, "driver hangs", func(t *testing.T) {
		r := newRig(t, nil)
		r.body.Break(robottest.Faults{GripHangs: true, JawStuck: true})
		r.expect(r.run(jawPlan(r, shut)), robot.ResultStoppedShort, robot.StopConfirmed, "did not return")
	})
	bubble(t, "driver refuses", func(t *testing.T) {
		r := newRig(t, nil)
		r.body.Break(robottest.Faults{GripErr: errors.New("not homed")})
		if _, err := r.c.Go(context.Background(), jawPlan(r, shut)); err == nil || !strings.Contains(err.Error(), "not homed") {
			t.Errorf("%v", err)
		}
	})
}

func TestPoseThenJaw(t *testing.T) { synctest.Test(t, poseThenJaw) }

func poseThenJaw(t *testing.T) {
	r := newRig(t, nil)
	w := pose(r.c.kin.Tool(geom.SE2{}, ready[:]), tenCM)
	w.Kind = robot.KindPoseJaw
	o := r.run(jawPlan(r, w))
	r.expect(o, robot.ResultReached, robot.StopConfirmed, "")
	if o.JawTo.Aperture != 0 || o.Realized.Dist(w.Tool) > 0.003 {
		t.Errorf("%v, jaw %v", o.Realized, o.JawTo)
	}
	// When the pose is not reached the jaw stays.
	w.Tool.P.Z += 0.1
	w.Jaw.Open = true
	p := jawPlan(r, w)
	r.body.Break(robottest.Faults{LieAfter: 300 * time.Millisecond})
	o = r.run(p)
	r.expect(o, robot.ResultStoppedShort, robot.StopConfirmed, "")
	if o.JawTo.Aperture != 0 {
		t.Errorf("the jaw moved although the pose was not reached: %v", o.JawTo)
	}
}
