package control

import (
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// at is a complete state of rest.
func at(k *Kinematics, base geom.SE2, q []float64) robot.State {
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

func TestFrankaMove(t *testing.T) {
	k := kinOf(t, FR3())
	p := plannerOf(t, k)
	s := at(k, geom.SE2{}, ready[:])
	plan, err := p.Plan(s, pose(k.Tool(s.Base, s.Q), r3.Vec{X: 0.05, Y: 0.05, Z: -0.05}))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(plan.Traj.Duration(), len(plan.Traj.Points), len(plan.Sweep), plan.Margins)
	if d := plan.End.Dist(plan.Waypoint.Tool); d > 1e-4 {
		t.Errorf("ends %v m from the goal", d)
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
