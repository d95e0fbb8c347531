package control

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// halfSecond is a body whose joints may be half a second apart, as with a driver that ignores times.
type halfSecond struct{}

func (halfSecond) Ahead() []time.Duration {
	out := make([]time.Duration, 5)
	for i := range out {
		out[i] = 500 * time.Millisecond
	}
	return out
}

// nearest is how near any part of a sweep comes to a point, from its surface.
func nearest(p robot.Plan, at r3.Vec) float64 {
	d := math.Inf(1)
	for i := range p.Sweep {
		for k := range p.Sweep[i].Capsules {
			d = min(d, p.Sweep[i].Capsules[k].Gap(geom.Capsule{A: at, B: at}))
		}
	}
	return d
}

func looseStretch(t *testing.T, change func(*geom.Pose)) (k *Kinematics, tight, loose robot.Plan) {
	t.Helper()
	k, err := NewKinematics(Stretch4())
	if err != nil {
		t.Fatal(err)
	}
	p := plannerOf(t, k)
	s := at(k, geom.SE2{}, Stretch4().Home)
	goal := k.Tool(s.Base, s.Q)
	change(&goal)
	w := robot.Waypoint{Kind: robot.KindPose, Tool: goal}
	if tight, err = p.Plan(s, w); err != nil {
		t.Fatal(err)
	}
	p.loose = halfSecond{}
	if loose, err = p.Plan(s, w); err != nil {
		t.Fatal(err)
	}
	return k, tight, loose
}

// Down and back by lift and arm or base: the straight way is free of what the hull hits, which is under a finger when the lift
// is half a second ahead of the others.
func TestLooseHullHits(t *testing.T) {
	k, tight, loose := looseStretch(t, func(g *geom.Pose) { g.P = r3.Add(g.P, r3.Vec{X: -0.3, Z: -0.3}) })
	mid := tight.Traj.Duration()/2 + 250*time.Millisecond
	now, before := tight.Traj.At(mid), tight.Traj.At(mid-500*time.Millisecond)
	q := append([]float64(nil), before.Q...)
	q[0] = now.Q[0]
	var at r3.Vec // just under a finger
	for _, c := range k.Capsules(before.Base, q, loose.From.Jaw.Aperture) {
		if c.Class == robot.ClassFinger {
			at = r3.Add(c.B, r3.Vec{Z: -c.R - 0.005})
		}
	}
	if d := nearest(tight, at); d < 0.02 {
		t.Errorf("the straight way comes to %.3f m from what stands there", d)
	}
	if d := nearest(loose, at); d > 0.006 {
		t.Errorf("the hull comes to %.3f m from what stands in it", d)
	}
	if len(tight.Sweep[0].Capsules) >= len(loose.Sweep[0].Capsules) || loose.Traj.Duration() != tight.Traj.Duration() {
		t.Error("the hull is not beside the plan")
	}
}

// Wherever the joints are, each by itself at a time of the last half second, the sweep is there, but for a little less
// than half a hand.
func TestLooseHullCovers(t *testing.T) {
	k, _, loose := looseStretch(t, func(g *geom.Pose) {
		g.P = r3.Add(g.P, r3.Vec{X: 0.25, Y: 0.15, Z: -0.25})
		g.R = geom.RPY(0, 0.4, 0.3)
	})
	r := rand.New(rand.NewPCG(3, 4))
	worst := 0.0
	for range 150 {
		at := time.Duration(r.Float64() * float64(loose.Traj.Duration()))
		lag := func() time.Duration { return max(0, at-time.Duration(r.Float64()*5e8)) }
		q, turn := make([]float64, 5), lag()
		for j := range q {
			when := turn
			if j < 2 {
				when = lag()
			}
			q[j] = loose.Traj.At(when).Q[j]
		}
		for _, c := range k.Capsules(loose.Traj.At(at-min(at, 500*time.Millisecond)).Base, q, loose.From.Jaw.Aperture) {
			best := math.Inf(1)
			for i := range loose.Sweep {
				for n := range loose.Sweep[i].Capsules {
					if s := &loose.Sweep[i].Capsules[n]; s.Link == c.Link && s.R == c.R {
						best = min(best, math.Max(r3.Norm(r3.Sub(s.A, c.A)), r3.Norm(r3.Sub(s.B, c.B))))
					}
				}
			}
			worst = max(worst, best)
		}
	}
	t.Logf("at worst %.1f mm beside the sweep, %d samples of %d parts", worst*1e3, len(loose.Sweep), len(loose.Sweep[0].Capsules))
	if worst > 0.04 {
		t.Errorf("a place of the hull is %.1f mm beside the sweep", worst*1e3)
	}
}

// One joint alone is its own hull, and a base alone has none.
func TestLooseOfOneJoint(t *testing.T) {
	_, tight, loose := looseStretch(t, func(g *geom.Pose) { g.P.Z -= 0.3 })
	if a, b := len(tight.Sweep[0].Capsules), len(loose.Sweep[0].Capsules); a != b {
		t.Errorf("the lift alone is swept by %d parts, not by %d", b, a)
	}
}
