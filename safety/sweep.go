package safety

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/perception"
)

const (
	lookDist    = 0.10  // metres: how far the nearest thing is looked for, for the text of a clear way
	contactSlip = 0.002 // metres: how much nearer a part that began inside its margin may come
)

// near is what is known of one capsule of the robot along a path.
type near struct {
	largest float64      // largest distance so far, up to the margin
	inside  bool         // began inside its margin and has not left it yet
	first   geom.Capsule // where it began
	moved   bool         // it has left there
}

// still is how far in metres a part may be from where it began to count as not moving: nothing comes nearer to a
// part that stands still.
const still = 1e-4

// sweeper follows every capsule of the robot along one plan.
type sweeper struct {
	g      *Guard
	sc     *perception.Scene
	noise  float64
	axes   geom.Pose // odometry to the robot axes, which the reader thinks in
	parts  []near
	warned [robot.ClassHeld + 1]perception.Hit
	link   [robot.ClassHeld + 1]string
	best   perception.Hit
}

// checkClearance sweeps the whole robot, and what it holds, through the scene.
func (g *Guard) checkClearance(p *robot.Plan, sc *perception.Scene, noise float64) ([]Warning, perception.Hit, *Refused) {
	if sc == nil || sc.Blind() {
		return nil, perception.Hit{}, found(RuleScene, "nothing seen", "a scene with depth", "wait for the cameras, then look again")
	}
	w := &sweeper{g: g, sc: sc, noise: noise, axes: p.From.Base.Pose().Inv(), parts: make([]near, len(p.Sweep[0].Capsules)+1)}
	for i := range p.Sweep {
		s := &p.Sweep[i]
		carried := sc.HasHeld
		for k := range s.Capsules {
			c := &s.Capsules[k]
			carried = carried && c.Class != robot.ClassHeld
			if h := w.step(i, k, c); h.Found {
				return nil, h, w.blocked(c, h, float64(i)/float64(len(p.Sweep)-1))
			}
		}
		if carried {
			w.step(i, len(s.Capsules), &robot.LinkCapsule{Link: "held object", Class: robot.ClassHeld, Capsule: sc.Held.Moved(s.Tool)})
		}
	}
	return w.warnings(), w.best, nil
}

// step judges capsule k in sample i and returns what is in its way.
func (w *sweeper) step(i, k int, c *robot.LinkCapsule) perception.Hit {
	part := &w.parts[k]
	if i == 0 {
		part.first = c.Capsule
	}
	part.moved = part.moved || max(r3.Norm(r3.Sub(c.A, part.first.A)), r3.Norm(r3.Sub(c.B, part.first.B))) > still
	if i > 0 && !part.moved {
		return perception.Hit{}
	}
	margin, refuses := w.g.lim.Clearance.of(c.Class)
	if refuses {
		margin = max(0, margin-w.noise)
	}
	var h perception.Hit
	if reach := max(margin, lookDist); c.Class == robot.ClassBase && w.g.model.Mobile {
		h = w.sc.ClearanceAbove(c.Capsule, reach, w.g.lim.FloorHeight)
	} else {
		h = w.sc.Clearance(c.Capsule, reach)
	}
	d := margin
	if h.Found {
		d = min(d, h.Dist)
	}
	if !refuses {
		if i == 0 {
			part.inside = d < margin
		}
		// A finger that already touches says nothing new.
		if d < margin && !part.inside && (!w.warned[c.Class].Found || h.Dist < w.warned[c.Class].Dist) {
			w.warned[c.Class], w.link[c.Class] = h, c.Link
		}
		return perception.Hit{}
	}
	if i == 0 {
		part.largest, part.inside = d, d < margin
	}
	slip := 0.0
	if part.inside {
		slip = contactSlip
	}
	if !(d >= part.largest-slip) {
		return h
	}
	part.largest = max(part.largest, d)
	part.inside = part.inside && part.largest < margin
	if part.moved && h.Found && (!w.best.Found || h.Dist < w.best.Dist) {
		w.best = h
	}
	return perception.Hit{}
}

func (w *sweeper) blocked(c *robot.LinkCapsule, h perception.Hit, way float64) *Refused {
	margin, _ := w.g.lim.Clearance.of(c.Class)
	return found(RuleClearance, fmt.Sprintf("%s comes to %s from what is seen at %s, after %.0f%% of the way", partName(c.Class, c.Link), mm(h.Dist), at(w.axes.Point(h.Point)), 100*way),
		mm(margin), "keep this part of the robot away from there: approach from another side or in smaller steps",
		Number{"distance", h.Dist}, Number{"margin", margin}, Number{"way", way},
		Number{"x", h.Point.X}, Number{"y", h.Point.Y}, Number{"z", h.Point.Z})
}

func (w *sweeper) warnings() (out []Warning) {
	for c, h := range w.warned {
		if h.Found {
			out = append(out, Warning{fmt.Sprintf("%s may touch what is seen at %s", partName(robot.LinkClass(c), w.link[c]), at(w.axes.Point(h.Point))), h.Point})
		}
	}
	return out
}

// partName is a part of the robot in words: its kind, and which one where there are several.
func partName(c robot.LinkClass, link string) string {
	if name := c.String(); name != link {
		return name + " (" + link + ")"
	}
	return link
}

// mm is a distance in words: millimetres, with a tenth where it is small, or how deep inside.
func mm(d float64) string {
	d *= 1e3
	if d < 0 {
		return fmt.Sprintf("%.0f mm inside", -d)
	}
	if d < 10 && math.Abs(d-math.Round(d)) >= 0.05 {
		return fmt.Sprintf("%.1f mm", d)
	}
	return fmt.Sprintf("%.0f mm", d)
}

func at(p r3.Vec) string { return fmt.Sprintf("(%.3f, %.3f, %.3f)", p.X, p.Y, p.Z) }
