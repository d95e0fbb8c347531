package field

import (
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/control"
	"viad/drivers/robot"
	"viad/sim/wire"
)

// Where the robot's driver ignores times, plans sweep where joints may be apart, and where the joints truly go lies within
// that; the way ends where it should.
func TestStretchHull(t *testing.T) {
	long(t)
	for _, gen := range generations() {
		t.Run(string(gen), func(t *testing.T) {
			r := start(t, gen, wire.StretchFaults{}).ready()
			kin := must[*control.Kinematics](t)(control.NewKinematics(control.Stretch4()))
			c := must[*control.Controller](t)(control.New(control.Options{Body: r.d, Kinematics: kin, Clock: robot.WallClock{}, Settings: control.DefaultSettings()}))
			s := r.d.State()
			goal := kin.Tool(s.Base, s.Q)
			goal.P = r3.Add(goal.P, r3.Vec{X: 0.2, Y: 0.1, Z: -0.25})
			p := must[robot.Plan](t)(c.Plan(s, robot.Waypoint{Kind: robot.KindPose, Tool: goal}))
			own, swept := len(kin.Capsules(s.Base, s.Q, s.Jaw.Aperture)), len(p.Sweep[0].Capsules)
			if loose := gen != wire.GenerationB; (swept > own) != loose {
				t.Errorf("%d parts are swept, the robot has %d", swept, own)
			}
			type end struct {
				out robot.Outcome
				err error
			}
			done := make(chan end, 1)
			go func() {
				out, err := c.Go(t.Context(), p)
				done <- end{out, err}
			}()
			worst := 0.0
			for {
				select {
				case e := <-done:
					t.Logf("at worst %.0f mm beside what is swept, %s", worst*1e3, e.out.Result)
					if e.err != nil || e.out.Result == robot.ResultReached && r3.Norm(r3.Sub(r.twin.Truth().Tool.P, goal.P)) > 0.008 {
						t.Errorf("%+v, %v", e.out, e.err)
					}
					if worst > 0.05 { // what joints may lag before the plan waits for them
						t.Errorf("the robot was %.0f mm beside what is swept", worst*1e3)
					}
					return
				case <-r.twin.Clock().After(40 * time.Millisecond):
				}
				tr := r.twin.Truth()
				worst = max(worst, beside(p, kin.Capsules(tr.Base, tr.Q, s.Jaw.Aperture)))
			}
		})
	}
}

// beside is how far the robot's parts are from where the plan sweeps them.
func beside(p robot.Plan, parts []robot.LinkCapsule) (worst float64) {
	for _, c := range parts {
		best := 10.0
		for i := range p.Sweep {
			for k := range p.Sweep[i].Capsules {
				if s := &p.Sweep[i].Capsules[k]; s.Link == c.Link && s.R == c.R {
					best = min(best, max(r3.Norm(r3.Sub(s.A, c.A)), r3.Norm(r3.Sub(s.B, c.B))))
				}
			}
		}
		worst = max(worst, best)
	}
	return worst
}
