package control

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
)

// stretchRig is a controller over a kinematic Stretch whose base stands somewhere in odometry.
func stretchRig(t *testing.T) *rig {
	t.Helper()
	k := kinOf(t, Stretch4())
	body := robottest.NewBody(k.Model(), robot.WallClock{}, []float64{0.6, 0.1, 0.1, 0.2, 0})
	body.Place(geom.SE2{X: 1, Y: 2, Yaw: 2.5}, []float64{0.6, 0.1, 0.1, 0.2, 0})
	c, err := New(Options{Body: body, Kinematics: k, Clock: robot.WallClock{}, Settings: DefaultSettings()})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, robot.WallClock{}, body, c}
}

func TestMobilePose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stretchRig(t)
		s := r.c.State()
		w := pose(r.c.kin.Tool(s.Base, s.Q), r3.Vec{X: 0.2, Y: 0.15, Z: -0.1})
		w.Tool.R = quat.Mul(w.Tool.R, geom.RotZ(0.4))
		o := r.run(jawPlan(r, w))
		r.expect(o, robot.ResultReached, robot.StopConfirmed, "")
		if d := o.Realized.Dist(w.Tool); d > 1e-4 {
			t.Errorf("realized %v m from the goal", d)
		}
	})
}

func TestMobileBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stretchRig(t)
		from := r.c.State()
		goal := from.Base.Mul(geom.SE2{X: 0.3, Y: -0.2, Yaw: 1})
		o := r.run(jawPlan(r, robot.Waypoint{Kind: robot.KindBase, Base: goal}))
		r.expect(o, robot.ResultReached, robot.StopConfirmed, "")
		b := o.After.Base
		if math.Hypot(b.X-goal.X, b.Y-goal.Y) > 1e-4 || math.Abs(b.Yaw-goal.Yaw) > 1e-4 {
			t.Errorf("base at %v, want %v", b, goal)
		}
		for i := range from.Q {
			if math.Abs(o.After.Q[i]-from.Q[i]) > 1e-9 {
				t.Errorf("joint %d moved", i)
			}
		}
		want := goal.Pose().Mul(from.Base.Pose().Inv().Mul(r.c.kin.Tool(from.Base, from.Q)))
		if o.Ordered.Dist(want) > 1e-6 {
			t.Errorf("ordered tool %v, want it rigid with the base: %v", o.Ordered, want)
		}
	})
}

// A base that is blocked while the arm does not move: nothing but odometry shows it.
func TestMobileBaseStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stretchRig(t)
		p := jawPlan(r, robot.Waypoint{Kind: robot.KindBase, Base: r.c.State().Base.Mul(geom.SE2{X: 0.4})})
		r.body.Break(robottest.Faults{BlockAfter: 700 * time.Millisecond})
		o := r.run(p)
		if o.Result != robot.ResultStoppedShort || o.Stop != robot.StopConfirmed || o.Took > 5*time.Second {
			t.Errorf("%v %v after %v: %s", o.Result, o.Stop, o.Took, o.Why)
		}
	})
}

// A nudged base is another place, even when no joint has moved.
func TestMobileNudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stretchRig(t)
		s := r.c.State()
		p := jawPlan(r, pose(r.c.kin.Tool(s.Base, s.Q), r3.Vec{Z: 0.1}))
		for _, c := range []struct {
			by geom.SE2
			ok bool
		}{{geom.SE2{X: 0.006}, false}, {geom.SE2{Yaw: 0.012}, false}, {geom.SE2{X: 0.003}, true}} {
			r.body.Place(s.Base.Mul(c.by), s.Q)
			if err := r.c.matches(r.c.State(), r.c.clock.Now(), p); (err == nil) != c.ok {
				t.Errorf("nudged by %+v: %v", c.by, err)
			}
		}
		if _, err := r.c.Go(context.Background(), p); err != nil {
			t.Errorf("3 mm off is near enough: %v", err)
		}
	})
}

// The same on the demand-driven clock of the twin: everything that waits must also read its ticks.
func TestOnDemandClock(t *testing.T) {
	k := kinOf(t, FR3())
	clock := robottest.NewClock(t)
	body := robottest.NewBody(k.Model(), clock, ready[:])
	c, err := New(Options{Body: body, Kinematics: k, Clock: clock, Settings: DefaultSettings()})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t, clock, body, c}
	r.expect(r.run(r.plan(tenCM)), robot.ResultReached, robot.StopConfirmed, "")
	if err := c.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	body.Break(robottest.Faults{Object: 0.03})
	r.expect(r.run(jawPlan(r, robot.Waypoint{Kind: robot.KindJaw})), robot.ResultReached, robot.StopConfirmed, "")
}
