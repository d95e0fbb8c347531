package control

import (
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// checkPlan holds a plan against everything that is promised of it, by sampling the trajectory as a body
// would and differencing.
func checkPlan(t *testing.T, k *Kinematics, set Settings, plan robot.Plan) {
	t.Helper()
	if err := plan.Traj.Check(k.Model(), plan.From); err != nil {
		t.Errorf("a body would refuse it: %v", err)
	}
	checkCaps(t, k, set, plan)
	checkSweep(t, k, plan)
	if plan.Waypoint.Kind == robot.KindPose {
		checkLine(t, k, plan)
		if d, r := plan.End.Dist(plan.Waypoint.Tool), plan.End.Angle(plan.Waypoint.Tool); d > 5e-4 || r > 2e-3 {
			t.Errorf("ends %v m and %v rad from the goal", d, r)
		}
	}
	for i, m := range plan.Margins {
		least := math.Inf(1)
		for _, pt := range plan.Traj.Points {
			least = math.Min(least, math.Min(pt.Q[i]-k.model.Joints[i].Min, k.model.Joints[i].Max-pt.Q[i]))
		}
		if m.Joint != k.model.Joints[i].Name || math.Abs(m.Value-least) > 1e-9 {
			t.Errorf("margin %+v, want %v", m, least)
		}
	}
}

// envelopeFR3 is libfranka's position-dependent limit, written out again.
func envelopeFR3(i int, q float64) (up, down float64) {
	vmax := [7]float64{2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26}[i]
	o := [7]float64{.30, .20, .20, .30, .35, .35, .35}[i]
	c := [7]float64{12, 5.17, 7, 8, 34, 11, 34}[i]
	hi := [7]float64{2.7501, 1.7918, 2.9065, -.1458, 2.8101, 4.5205, 3.0196}[i]
	lo := [7]float64{-2.7501, -1.7918, -2.9065, -3.0481, -2.8101, .54092, -3.0196}[i]
	f := func(d float64) float64 {
		return math.Min(vmax, math.Max(0, -o+math.Sqrt(math.Max(0, c*d))))
	}
	return f(hi - q), f(q - lo)
}

func checkCaps(t *testing.T, k *Kinematics, set Settings, plan robot.Plan) {
	t.Helper()
	const h = 2 * time.Millisecond
	over := map[string]float64{}
	note := func(what string, v, limit float64) {
		if r := v / limit; r > 1 && r > over[what] {
			over[what] = r
		}
	}
	sc := set.SpeedScale
	prev := plan.Traj.At(0)
	prevTool := k.Tool(prev.Base, prev.Q)
	for at := h; at <= plan.Traj.Duration()+h; at += h {
		p := plan.Traj.At(at)
		for i, j := range k.desc.Joints {
			v := (p.Q[i] - prev.Q[i]) / h.Seconds()
			note(j.Name+" speed", math.Abs(v), sc*j.PlanVel*1.005)
			note(j.Name+" acceleration", math.Abs(p.QD[i]-prev.QD[i])/h.Seconds(), sc*j.PlanAcc*1.05)
			if j.Envelope != nil {
				up, down := envelopeFR3(i, p.Q[i])
				note(j.Name+" envelope", math.Max(v/math.Max(up, .02), -v/math.Max(down, .02)), 0.4*sc*1.01)
			}
		}
		bv := math.Hypot(p.Base.X-prev.Base.X, p.Base.Y-prev.Base.Y) / h.Seconds()
		note("base speed", bv, sc*set.BaseSpeed*1.005)
		note("base turn", math.Abs(p.Base.Yaw-prev.Base.Yaw)/h.Seconds(), sc*set.BaseTurn*1.005)
		tool := k.Tool(p.Base, p.Q)
		note("tool speed", tool.Dist(prevTool)/h.Seconds(), sc*set.ToolSpeed*1.02)
		if a := tool.Angle(prevTool); a > 1e-6 {
			note("tool turn", a/h.Seconds(), sc*set.ToolTurn*1.02)
		}
		prev, prevTool = p, tool
	}
	for what, r := range over {
		t.Errorf("%s is %.3f of its cap", what, r)
	}
	first, last := plan.Traj.Points[0], plan.Traj.Points[len(plan.Traj.Points)-1]
	for i := range first.Q {
		if math.Abs(first.QD[i]) > 1e-9 || math.Abs(last.QD[i]) > 1e-6 {
			t.Errorf("joint %d starts at %v, ends at %v per second", i, first.QD[i], last.QD[i])
		}
	}
}

// checkLine: the tool is within 1 mm and 0.3 degrees of the straight line in SE(3) all along.
func checkLine(t *testing.T, k *Kinematics, plan robot.Plan) {
	t.Helper()
	from, to := plan.Start, plan.Waypoint.Tool
	line, turn := r3.Sub(to.P, from.P), from.Angle(to)
	worstP, worstR := 0.0, 0.0
	for at := time.Duration(0); at <= plan.Traj.Duration(); at += 3 * time.Millisecond {
		pt := plan.Traj.At(at)
		tool := k.Tool(pt.Base, pt.Q)
		s := 0.0
		if r3.Norm(line)/0.005 > turn/0.03 {
			s = r3.Dot(r3.Sub(tool.P, from.P), line) / r3.Norm2(line)
		} else if turn > 0 {
			s = from.Angle(tool) / turn
		}
		want := from.Lerp(to, s)
		worstP, worstR = math.Max(worstP, want.Dist(tool)), math.Max(worstR, want.Angle(tool))
	}
	if worstP > 1e-3 || worstR > geom.Rad(0.3) {
		t.Errorf("the tool leaves the line by %.2f mm and %.2f degrees", worstP*1e3, geom.Deg(worstR))
	}
}

func checkSweep(t *testing.T, k *Kinematics, plan robot.Plan) {
	t.Helper()
	sw := plan.Sweep
	if len(sw) < 2 || sw[0].T != 0 || sw[len(sw)-1].T != plan.Traj.Duration() {
		t.Fatalf("sweep of %d samples does not cover the trajectory", len(sw))
	}
	for i := 1; i < len(sw); i++ {
		for j, c := range sw[i].Capsules {
			o := sw[i-1].Capsules[j]
			if d := math.Max(r3.Norm(r3.Sub(c.A, o.A)), r3.Norm(r3.Sub(c.B, o.B))); d > 0.0101 {
				t.Fatalf("%s moves %.1f mm between samples %d and %d of the sweep", c.Link, d*1e3, i-1, i)
			}
		}
		pt := plan.Traj.At(sw[i].T)
		if d := k.Tool(pt.Base, pt.Q).Dist(sw[i].Tool); d > 1e-9 {
			t.Fatalf("sweep sample %d is not on the trajectory: %v", i, d)
		}
	}
}
