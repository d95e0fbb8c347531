package control

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// at is a complete state of rest.
func at(_ *Kinematics, base geom.SE2, q []float64) robot.State {
	return robot.State{
		Seq: 7, Received: time.Unix(1, 0), Q: q, QD: make([]float64, len(q)), HasBase: true, Base: base,
		Jaw: robot.Jaw{Known: true, Aperture: 0.08, Open: true}, Mode: robot.ModeReady,
	}
}

func plannerOf(t testing.TB, k *Kinematics) *Planner {
	t.Helper()
	p, err := NewPlanner(k, DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pose(p geom.Pose, d r3.Vec) robot.Waypoint {
	p.P = r3.Add(p.P, d)
	return robot.Waypoint{Kind: robot.KindPose, Tool: p}
}

// Random small moves around comfortable postures: all of them are planned, and every plan keeps its word.
func TestPlansKeepTheirWord(t *testing.T) {
	for name, k := range robots(t) {
		t.Run(name, func(t *testing.T) {
			p := plannerOf(t, k)
			r := rand.New(rand.NewPCG(11, 12))
			failed := 0
			for i := range 60 {
				q := append([]float64(nil), k.desc.Home...)
				for j := range q {
					q[j] += 0.3 * (r.Float64() - 0.5)
				}
				if k.model.Mobile {
					q[jArm] = 0.5 * r.Float64()
				}
				s := at(k, geom.SE2{X: 0.3, Y: -1, Yaw: 0.7}, q)
				if !k.model.Mobile {
					s.Base = geom.SE2{}
				}
				w := pose(k.Tool(s.Base, s.Q), r3.Scale(0.08, r3.Vec{X: r.NormFloat64(), Y: r.NormFloat64(), Z: r.NormFloat64()}))
				w.Tool.R = quat.Mul(w.Tool.R, geom.FromRotVec(r3.Scale(0.25, r3.Vec{X: r.NormFloat64(), Y: r.NormFloat64(), Z: r.NormFloat64()})))
				plan, err := p.Plan(s, w)
				if err != nil {
					failed++
					t.Logf("%d: %v", i, err)
					continue
				}
				t.Run(fmt.Sprint(i), func(t *testing.T) { checkPlan(t, k, p.set, plan) })
			}
			if failed > 3 {
				t.Errorf("%d of 60 were not planned", failed)
			}
		})
	}
}

// 500 random reachable poses per robot: the goal is found again, inside the limits.
func TestRoundTrip(t *testing.T) {
	for name, k := range robots(t) {
		t.Run(name, func(t *testing.T) {
			p := plannerOf(t, k)
			r := rand.New(rand.NewPCG(13, 14))
			solved := 0
			var start joints
			copy(start[:], k.desc.Home)
			for range 500 {
				goal := k.Tool(geom.SE2{}, randomQ(k, r, p.margin()))
				qs := p.holding(geom.SE2{}, start, goal)
				if len(qs) > 0 {
					solved++
				}
				for _, h := range qs {
					got := k.Tool(h.base, h.q[:k.chain.n])
					if got.Dist(goal) > 2e-4 || got.Angle(goal) > 1e-3 {
						t.Fatalf("off by %v m, %v rad", got.Dist(goal), got.Angle(goal))
					}
					for i, j := range k.model.Joints {
						if h.q[i] < j.Min-1e-9 || h.q[i] > j.Max+1e-9 {
							t.Fatalf("%s at %v is outside its limits", j.Name, h.q[i])
						}
					}
				}
			}
			t.Logf("%d of 500", solved)
			if solved < 495 {
				t.Errorf("solved %d of 500, want 495", solved)
			}
		})
	}
}

func unreachable(t *testing.T, p *Planner, s robot.State, w robot.Waypoint) *robot.Unreachable {
	t.Helper()
	plan, err := p.Plan(s, w)
	var u *robot.Unreachable
	if !errors.As(err, &u) {
		t.Fatalf("want unreachable, got %v and a plan of %v", err, plan.Traj.Duration())
	}
	t.Logf("%s (joint %q by %.3f %s, gap %.1f mm, %.2f degrees)", u.Why, u.Joint, u.By, u.Unit, u.Gap*1e3, geom.Deg(u.Turn))
	if u.Why == "" || !u.Near.Finite() {
		t.Errorf("an empty reason or no nearest pose: %+v", u)
	}
	if g := u.Near.Dist(w.Tool); math.Abs(g-u.Gap) > 1e-9 {
		t.Errorf("gap %v, but the nearest pose is %v away", u.Gap, g)
	}
	return u
}

// The trap: from ready, pitch the hand forward low over the table.
func TestForwardHandLow(t *testing.T) {
	for _, d := range []Description{FR3(), Panda()} {
		t.Run(d.Name, func(t *testing.T) {
			k := kinOf(t, d)
			p := plannerOf(t, k)
			s := at(k, geom.SE2{}, ready[:])
			forward := geom.FromAxes(r3.Vec{X: 1}, r3.Vec{Y: 1})
			for _, x := range []float64{0.45, 0.55, 0.65} {
				for _, z := range []float64{0.06, 0.12, 0.2, 0.3, 0.45} {
					w := robot.Waypoint{Kind: robot.KindPose, Tool: geom.Pose{P: r3.Vec{X: x, Z: z}, R: forward}}
					plan, err := p.Plan(s, w)
					if err == nil {
						t.Logf("x %.2f z %.2f: %v, margins %v", x, z, plan.Traj.Duration(), plan.Margins)
						checkPlan(t, k, p.set, plan)
						continue
					}
					unreachable(t, p, s, w)
				}
			}
		})
	}
}

func TestOutOfReach(t *testing.T) {
	k := kinOf(t, FR3())
	p := plannerOf(t, k)
	s := at(k, geom.SE2{}, ready[:])
	far := k.Tool(s.Base, s.Q)
	far.P = r3.Vec{X: 1.4, Z: 0.4}
	u := unreachable(t, p, s, robot.Waypoint{Kind: robot.KindPose, Tool: far})
	if u.Gap < 0.3 || u.Gap > 0.9 {
		t.Errorf("gap %v", u.Gap)
	}
}

func TestStretchUnreachable(t *testing.T) {
	k := kinOf(t, Stretch4())
	p := plannerOf(t, k)
	s := at(k, geom.SE2{}, []float64{0.6, 0.1, 0, 0, 0})
	here := k.Tool(s.Base, s.Q)
	u := unreachable(t, p, s, pose(here, r3.Vec{Z: 0.7}))
	if u.Joint != "lift_joint" || math.Abs(u.By-0.1) > 1e-6 || u.Unit != "m" || math.Abs(u.Gap-0.1) > 1e-6 {
		t.Errorf("lift: %+v", u)
	}
	w := pose(here, r3.Vec{})
	w.Tool.R = quat.Mul(w.Tool.R, geom.RotX(1.3)) // roll may go to 1.135 less 0.022
	u = unreachable(t, p, s, w)
	if u.Joint != "wrist_roll_joint" || math.Abs(u.By-(1.3-1.113)) > 1e-6 || u.Unit != "rad" || u.Gap > 1e-9 {
		t.Errorf("roll: %+v", u)
	}
}

// A gripper that is lowered onto the robot's own base is no plan.
func TestRunsIntoItself(t *testing.T) {
	k := kinOf(t, Stretch4())
	p := plannerOf(t, k)
	s := at(k, geom.SE2{}, []float64{0.3, 0, 2.6, 0, 0})
	w := pose(k.Tool(s.Base, s.Q), r3.Vec{Z: -0.29})
	if u := unreachable(t, p, s, w); !strings.Contains(u.Why, "into itself") || !strings.Contains(u.Why, "base_link") {
		t.Errorf("lowering a folded gripper onto the base: %v", u)
	}
	// Stow is how the robot is parked: from there the arm must be able to come out.
	s = at(k, geom.SE2{}, []float64{0.15, 0, 3.14, 0, 0})
	if _, err := p.Plan(s, pose(k.Tool(s.Base, s.Q), r3.Vec{Z: 0.4})); err != nil {
		t.Errorf("up from stow: %v", err)
	}
}

// What the base does: nothing in x while the arm suffices, the rest when it does not, and y always.
func TestStretchSharing(t *testing.T) {
	k := kinOf(t, Stretch4())
	p := plannerOf(t, k)
	start := geom.SE2{X: 2, Y: 1, Yaw: math.Pi / 2}
	q := []float64{0.6, 0.1, 0, 0, 0}
	s := at(k, start, q)
	for _, c := range []struct {
		name  string
		local r3.Vec   // move of the tool on the base's axes
		base  geom.SE2 // expected move of the base on its own axes
		arm   float64
	}{
		{"arm suffices", r3.Vec{X: 0.3}, geom.SE2{}, 0.4},
		{"arm runs out", r3.Vec{X: 0.5}, geom.SE2{X: 0.08}, 0.52},
		{"arm is in", r3.Vec{X: -0.25}, geom.SE2{X: -0.15}, 0},
		{"sideways", r3.Vec{Y: 0.2}, geom.SE2{Y: 0.2}, 0.1},
		{"all", r3.Vec{X: 0.45, Y: -0.1, Z: 0.3}, geom.SE2{X: 0.03, Y: -0.1}, 0.52},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := pose(k.Tool(s.Base, s.Q), start.Pose().Dir(c.local))
			plan, err := p.Plan(s, w)
			if err != nil {
				t.Fatal(err)
			}
			checkPlan(t, k, p.set, plan)
			moved := start.Inv().Mul(plan.EndBase)
			if math.Abs(moved.X-c.base.X) > 1e-6 || math.Abs(moved.Y-c.base.Y) > 1e-6 || math.Abs(moved.Yaw) > 1e-9 {
				t.Errorf("base moved %+v, want %+v", moved, c.base)
			}
			if math.Abs(plan.EndQ[jArm]-c.arm) > 1e-6 {
				t.Errorf("arm at %v, want %v", plan.EndQ[jArm], c.arm)
			}
		})
	}
}

// Contract section 8, "Stretch check": from l .6, e .2 a tilt_left of 30 degrees about the wrist mount
// needs (-.04371, -.011712, 0) of arm and base on top of the wrist's yaw.
func TestStretchTiltLeft(t *testing.T) {
	k := kinOf(t, Stretch4())
	p := plannerOf(t, k)
	s := at(k, geom.SE2{}, []float64{0.6, 0.2, 0, 0, 0})
	tool := k.Tool(s.Base, s.Q)
	mount := r3.Sub(tool.P, r3.Scale(k.WristMount(), tool.X()))
	tilted := geom.Pose{R: geom.RotZ(math.Pi / 6)}
	tilted.P = r3.Add(mount, r3.Scale(k.WristMount(), tilted.X()))
	plan, err := p.Plan(s, robot.Waypoint{Kind: robot.KindPose, Tool: tilted})
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, k, p.set, plan)
	if d := plan.EndQ[jArm] - 0.2 + 0.04371; math.Abs(d) > 1e-5 {
		t.Errorf("arm moves %v, want -0.04371", plan.EndQ[jArm]-0.2)
	}
	if d := plan.EndBase.Y + 0.011712; math.Abs(d) > 1e-5 {
		t.Errorf("base moves %v, want -0.011712", plan.EndBase.Y)
	}
	if d := plan.EndQ[jYaw] - math.Pi/6; math.Abs(d) > 1e-6 {
		t.Errorf("wrist yaw %v", plan.EndQ[jYaw])
	}
}

// A gripper turned right past the wrist's yaw limit takes the base along.
func TestStretchTurnsBase(t *testing.T) {
	k := kinOf(t, Stretch4())
	p := plannerOf(t, k)
	s := at(k, geom.SE2{}, []float64{0.6, 0.2, 0, 0, 0})
	tool := k.Tool(s.Base, s.Q)
	tool.R = geom.RotZ(geom.Rad(-80))
	plan, err := p.Plan(s, robot.Waypoint{Kind: robot.KindPose, Tool: tool})
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, k, p.set, plan)
	want := geom.Rad(-80) + 1.135 - p.margin() - ripple
	if math.Abs(plan.EndBase.Yaw-want) > 1e-3 {
		t.Errorf("base turned %v, want %v", plan.EndBase.Yaw, want)
	}
}

// Straight down is where yaw and roll are one: into it, sideways out of it, and along it.
func TestStretchStraightDown(t *testing.T) {
	k := kinOf(t, Stretch4())
	p := plannerOf(t, k)
	down := func(q []float64) geom.Pose { return k.Tool(geom.SE2{}, q) }
	level := []float64{0.9, 0.2, 0, 0, 0}
	straight := []float64{0.9, 0.2, 0, math.Pi / 2, 0}
	for _, c := range []struct {
		name string
		from []float64
		to   func() geom.Pose
	}{
		{"into", level, func() geom.Pose { g := down(level); g.R = quat.Mul(g.R, geom.RotY(math.Pi/2)); return g }},
		{"past", level, func() geom.Pose { g := down(level); g.R = quat.Mul(g.R, geom.RotY(1.9)); return g }},
		{"along", straight, func() geom.Pose { g := down(straight); g.P.X += 0.1; g.P.Y += 0.1; g.P.Z -= 0.2; return g }},
		{"roll", straight, func() geom.Pose { g := down(straight); g.R = quat.Mul(g.R, geom.RotX(-0.5)); return g }},
		{"sideways", straight, func() geom.Pose { g := down(straight); g.R = quat.Mul(g.R, geom.RotZ(0.4)); return g }},
		{"nearly straight", []float64{0.9, 0.2, 0.02, 1.566, -0.01}, func() geom.Pose {
			g := down(straight)
			g.R = quat.Mul(g.R, geom.RotZ(0.4))
			return g
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := at(k, geom.SE2{}, c.from)
			w := robot.Waypoint{Kind: robot.KindPose, Tool: c.to()}
			plan, err := p.Plan(s, w)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v, base %+v, q %.3f", plan.Traj.Duration(), plan.EndBase, plan.EndQ)
			if c.name == "nearly straight" { // swings on a cone of a quarter degree
				checkCaps(t, k, p.set, plan)
				checkSweep(t, k, plan)
				return
			}
			checkPlan(t, k, p.set, plan)
		})
	}
}

func TestBasePlan(t *testing.T) {
	k := kinOf(t, Stretch4())
	p := plannerOf(t, k)
	q := []float64{0.6, 0.1, 0.3, 0.2, 0.1}
	from := geom.SE2{X: 1, Y: 1, Yaw: 3}
	goal := from.Mul(geom.SE2{X: 0.3, Y: -0.2, Yaw: geom.Rad(60)})
	plan, err := p.Plan(at(k, from, q), robot.Waypoint{Kind: robot.KindBase, Base: goal})
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, k, p.set, plan)
	for _, pt := range plan.Traj.Points {
		for i := range q {
			if math.Abs(pt.Q[i]-q[i]) > 1e-12 {
				t.Fatalf("the arm moves: %v", pt.Q)
			}
		}
		// On the straight line of x, y and yaw (contract X13).
		s := (pt.Base.Yaw - from.Yaw) / (goal.Yaw - from.Yaw)
		if math.Abs(pt.Base.X-(from.X+s*(goal.X-from.X))) > 1e-6 || math.Abs(pt.Base.Y-(from.Y+s*(goal.Y-from.Y))) > 1e-6 {
			t.Fatalf("off the line at %v", pt.Base)
		}
	}
	wrapped := goal
	wrapped.Yaw -= 2 * math.Pi
	again, err := p.Plan(at(k, from, q), robot.Waypoint{Kind: robot.KindBase, Base: wrapped})
	if err != nil || math.Abs(again.EndBase.Yaw-goal.Yaw) > 1e-9 {
		t.Errorf("a wrapped yaw goes to %v: %v", again.EndBase, err)
	}
	if _, err := plannerOf(t, kinOf(t, FR3())).Plan(at(k, geom.SE2{}, ready[:]), robot.Waypoint{Kind: robot.KindBase}); err == nil {
		t.Error("a fixed arm drives")
	}
}

func TestPlanRefusesRubbish(t *testing.T) {
	k := kinOf(t, FR3())
	p := plannerOf(t, k)
	good := at(k, geom.SE2{}, ready[:])
	nan := good
	nan.Q = append([]float64(nil), ready[:]...)
	nan.Q[2] = math.NaN()
	w := pose(k.Tool(good.Base, good.Q), r3.Vec{X: 0.01})
	bad := w
	bad.Tool.P.Y = math.NaN()
	past := good
	past.Q = append([]float64(nil), ready[:]...)
	past.Q[5] = 4.6
	for name, c := range map[string]struct {
		s robot.State
		w robot.Waypoint
	}{
		"empty state": {robot.State{}, w}, "NaN state": {nan, w}, "NaN goal": {good, bad},
		"nothing asked": {good, robot.Waypoint{}}, "joint past its limit": {past, w},
	} {
		if plan, err := p.Plan(c.s, c.w); err == nil || len(plan.Traj.Points) > 0 {
			t.Errorf("%s: planned", name)
		}
	}
}

// A joint inside the margin may stay and come back.
func TestMarginComesBack(t *testing.T) {
	k := kinOf(t, FR3())
	p := plannerOf(t, k)
	q := append([]float64(nil), ready[:]...)
	q[6] = 3.0159 - 0.03
	s := at(k, geom.SE2{}, q)
	plan, err := p.Plan(s, pose(k.Tool(s.Base, s.Q), r3.Vec{Z: 0.05}))
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, k, p.set, plan)
	if m := plan.Margins[6].Value; m < 0.03-1e-9 {
		t.Errorf("joint 7 went deeper: %v left", m)
	}
}

func TestPlanIsDeterministic(t *testing.T) {
	k := kinOf(t, FR3())
	p := plannerOf(t, k)
	s := at(k, geom.SE2{}, ready[:])
	w := robot.Waypoint{Kind: robot.KindPose, Tool: geom.Pose{P: r3.Vec{X: 0.5, Z: 0.3}, R: geom.FromAxes(r3.Vec{X: 1}, r3.Vec{Y: 1})}}
	a, errA := p.Plan(s, w)
	b, errB := p.Plan(s, w)
	if fmt.Sprint(a.Traj, errA) != fmt.Sprint(b.Traj, errB) {
		t.Error("two plans of the same differ")
	}
}

func BenchmarkFranka10cm(b *testing.B) {
	k := kinOf(b, FR3())
	p := plannerOf(b, k)
	s := at(k, geom.SE2{}, ready[:])
	w := pose(k.Tool(s.Base, s.Q), r3.Vec{X: 0.06, Y: 0.06, Z: -0.05})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Plan(s, w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStretch20cm(b *testing.B) {
	k := kinOf(b, Stretch4())
	p := plannerOf(b, k)
	s := at(k, geom.SE2{}, []float64{0.6, 0.1, 0, 0.3, 0})
	w := pose(k.Tool(s.Base, s.Q), r3.Vec{X: 0.12, Y: 0.12, Z: 0.1})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Plan(s, w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFrankaUnreachable(b *testing.B) {
	k := kinOf(b, FR3())
	p := plannerOf(b, k)
	s := at(k, geom.SE2{}, ready[:])
	w := pose(k.Tool(s.Base, s.Q), r3.Vec{X: 0.9})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Plan(s, w); err == nil {
			b.Fatal("reached")
		}
	}
}

// A line that is shut is reported with the joint that shuts it; the ways through that exist are found. The
// table was made with 60 random seeds of inverse kinematics at 21 places of each line: a line is open here
// if and only if every place had a solution.
func TestLinesFromReadyToForward(t *testing.T) {
	open := map[string]string{
		"FR3":   "0.45,0.45 0.55,0.45 0.65,0.06 0.65,0.12 0.65,0.20 0.65,0.30 0.65,0.45",
		"Panda": "0.45,0.45 0.55,0.45",
	}
	for _, d := range []Description{FR3(), Panda()} {
		k := kinOf(t, d)
		p := plannerOf(t, k)
		s := at(k, geom.SE2{}, ready[:])
		for _, x := range []float64{0.45, 0.55, 0.65} {
			for _, z := range []float64{0.06, 0.12, 0.2, 0.3, 0.45} {
				w := robot.Waypoint{Kind: robot.KindPose, Tool: geom.Pose{P: r3.Vec{X: x, Z: z}, R: geom.FromAxes(r3.Vec{X: 1}, r3.Vec{Y: 1})}}
				_, err := p.Plan(s, w)
				want := strings.Contains(open[d.Name], fmt.Sprintf("%.2f,%.2f", x, z))
				if (err == nil) != want {
					t.Errorf("%s to x %.2f z %.2f: %v, want open %v", d.Name, x, z, err, want)
				}
				var u *robot.Unreachable
				if errors.As(err, &u) && (u.Joint == "" || u.By < 0.005) {
					t.Errorf("%s to x %.2f z %.2f: no joint is named: %v", d.Name, x, z, err)
				}
			}
		}
	}
}
