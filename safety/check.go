package safety

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/perception"
)

// The rules of the guard, as Refused names them.
const (
	RulePlan      = "malformed plan"
	RuleState     = "robot state"
	RuleScene     = "scene"
	RuleJoint     = "joint limit"
	RuleBox       = "workspace box"
	RuleKeepIn    = "keep-in area"
	RuleSpeed     = "speed limit"
	RuleClearance = "clearance"
	RuleMoved     = "robot moved since the plan"
	RuleCap       = "motion cap"
	RuleBusy      = "one motion at a time"
	RuleArmed     = "not armed"
	RuleLatch     = "latched"
	RuleStopping  = "stop"
	RuleMode      = "robot mode"
	RuleSeat      = "seat"
)

// Slack of the path rules: what the arithmetic of planner and sampling may differ by.
const (
	jointSlack  = 1e-6  // radians or metres
	placeSlack  = 5e-4  // metres, box and polygon
	speedSlack  = 1.05  // of speeds
	accSlack    = 1.25  // of accelerations, which a cubic between knots overshoots
	sampleGap   = 0.025 // metres a capsule may move between two samples of a sweep
	sampleError = 5e-3  // radians or metres between a sample and the trajectory at its time
)

// Check judges the geometry of a plan in a scene: shape, joint limits with margin, speeds, the box and the
// keep-in polygon along the whole path, and the clearance of the whole sweep. refused is nil when the plan may
// move. warnings are contacts of fingers and of what they hold. hit is what is nearest to the parts that must
// keep clear, within 10 cm of them; with a clearance refusal it is what is in the way.
//
// A robot that stands where a rule does not want it may always leave: past a joint's margin, outside the box or
// the polygon, only going further out is refused. Likewise a part that is nearer to something than its margin
// when the plan begins may stay or move away; it is refused when along the path its distance falls more than
// 2 mm below the largest that it has had since the beginning.
func (g *Guard) Check(p robot.Plan, sc *perception.Scene) (warnings []Warning, hit perception.Hit, refused *Refused) {
	return g.check(&p, p.From, sc, 0)
}

// Recheck is Check with the margins that Go uses: smaller by the scene's noise, so that a way that was shown
// clear is not refused for noise alone.
func (g *Guard) Recheck(p robot.Plan, sc *perception.Scene) (warnings []Warning, hit perception.Hit, refused *Refused) {
	return g.check(&p, p.From, sc, g.lim.SceneNoise)
}

func (g *Guard) check(p *robot.Plan, from robot.State, sc *perception.Scene, noise float64) ([]Warning, perception.Hit, *Refused) {
	if p.Waypoint.Kind == robot.KindJaw && len(p.Traj.Points) == 0 {
		return nil, perception.Hit{}, nil // fingers alone move, and they may touch
	}
	f := g.checkKnots(&p.Traj)
	if f == nil {
		f = g.checkJoints(&p.Traj)
	}
	if f == nil {
		f = g.checkShape(p, from)
	}
	if f == nil {
		f = g.checkPlaces(p.Sweep)
	}
	if f == nil {
		f = g.checkSpeeds(p)
	}
	if f != nil {
		return nil, perception.Hit{}, f
	}
	return g.checkClearance(p, sc, noise)
}

// bad is a plan that cannot be judged.
func bad(format string, args ...any) *Refused {
	return found(RulePlan, fmt.Sprintf(format, args...), "", "stage the target again")
}

// checkKnots refuses knots without a finite position for every joint.
func (g *Guard) checkKnots(t *robot.Trajectory) *Refused {
	if len(t.Points) < 2 {
		return bad("%d knots", len(t.Points))
	}
	for i := range t.Points {
		q := t.Points[i].Q
		if len(q) != len(g.model.Joints) {
			return bad("knot %d has %d joints, the robot %d", i, len(q), len(g.model.Joints))
		}
		for k, x := range q {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return bad("knot %d has %s at %v", i, g.model.Joints[k].Name, x)
			}
		}
	}
	return nil
}

// checkShape refuses a malformed trajectory, and a sweep that is not its trajectory's.
func (g *Guard) checkShape(p *robot.Plan, from robot.State) *Refused {
	if err := p.Traj.Check(g.model, from); err != nil {
		return bad("%v", err)
	}
	n := len(p.Sweep)
	if n < 2 || p.Sweep[0].T != 0 || p.Sweep[n-1].T < p.Traj.Duration() {
		return bad("the swept volume does not cover the whole motion")
	}
	for i := range p.Sweep {
		s := &p.Sweep[i]
		at := p.Traj.At(s.T)
		if len(s.Q) != len(at.Q) || len(s.Capsules) == 0 || len(s.Capsules) != len(p.Sweep[0].Capsules) || !s.Tool.Finite() {
			return bad("sample %d of the swept volume is incomplete", i)
		}
		d := math.Max(at.Base.Inv().Mul(s.Base).Norm(), math.Abs(at.Base.Yaw-s.Base.Yaw))
		for k := range s.Q {
			d = math.Max(d, math.Abs(at.Q[k]-s.Q[k]))
		}
		if !(d <= sampleError) {
			return bad("sample %d of the swept volume is %.4f from the trajectory, allowed %.4f", i, d, sampleError)
		}
		if i == 0 {
			continue
		}
		for k := range s.Capsules {
			a, b := &p.Sweep[i-1].Capsules[k], &s.Capsules[k]
			if a.Link != b.Link || !(math.Max(r3.Norm(r3.Sub(a.A, b.A)), r3.Norm(r3.Sub(a.B, b.B))) <= sampleGap) {
				return bad("the swept volume jumps at sample %d (%s)", i, b.Link)
			}
		}
	}
	return nil
}

// sweptError is how far in metres the swept volume may be from the robot's own at its sample's joints.
const sweptError = 5e-3

// checkSweep compares the swept volume with the robot's own shape: no rule of clearance, box or speed is better than
// the volume that it is asked of. Fingers may be at another aperture.
func (g *Guard) checkSweep(p *robot.Plan) *Refused {
	if len(p.Traj.Points) == 0 {
		return nil
	}
	for i := range p.Sweep {
		s := &p.Sweep[i]
		own := g.kin.Capsules(s.Base, s.Q, p.From.Jaw.Aperture)
		if len(own) > len(s.Capsules) {
			return bad("sample %d of the swept volume has %d parts, the robot %d", i, len(s.Capsules), len(own))
		}
		if d := g.kin.Tool(s.Base, s.Q).Dist(s.Tool); !(d <= sweptError) {
			return bad("sample %d of the swept volume has the gripper %.4f m from where it would be", i, d)
		}
		for k, c := range own {
			has := &s.Capsules[k]
			d := max(r3.Norm(r3.Sub(c.A, has.A)), r3.Norm(r3.Sub(c.B, has.B)), c.R-has.R)
			if c.Link != has.Link || c.Class != has.Class || c.Class != robot.ClassFinger && !(d <= sweptError) {
				return bad("sample %d of the swept volume has %s %.4f m from where it would be", i, c.Link, d)
			}
		}
	}
	return nil
}

// checkJoints keeps the margin to every joint limit along the path; from beyond it the way leads only back.
func (g *Guard) checkJoints(t *robot.Trajectory) *Refused {
	for k, j := range g.model.Joints {
		m, unit := g.lim.JointMargin, "rad"
		if j.Prismatic {
			m, unit = g.lim.SlideMargin, "m"
		}
		past := func(q float64) float64 { return max(j.Min+m-q, q-(j.Max-m), 0) }
		least := past(t.Points[0].Q[k])
		for i := range t.Points {
			q := t.Points[i].Q[k]
			d := past(q)
			if !(d <= least+jointSlack) {
				return found(RuleJoint, fmt.Sprintf("%s at %.4f %s", j.Name, q, unit),
					fmt.Sprintf("%.4f to %.4f %s with a margin of %.3f", j.Min, j.Max, unit, m),
					fmt.Sprintf("choose a target that needs %.4f %s less of this joint", d, unit),
					Number{"position", q}, Number{"min", j.Min}, Number{"max", j.Max}, Number{"margin", m})
			}
			least = min(least, d)
		}
	}
	return nil
}

// checkPlaces keeps the closure point in its box and the base in its polygon along the path. Once the path leads out
// of the box it is followed to where it is furthest out on that side: the refusal says what is missing in all.
func (g *Guard) checkPlaces(sweep []robot.Swept) *Refused {
	boxed, kept := math.Inf(1), math.Inf(1)
	worst, furthest := (*Refused)(nil), 0.0
	for i := range sweep {
		s := &sweep[i]
		if b := g.lim.ToolBox; b != nil {
			at := s.Base.Pose().Inv().Point(s.Tool.P)
			out, axis := b.outside(at)
			if !(out <= boxed+placeSlack) && !(out <= furthest) {
				worst, furthest = g.outOfBox(b, at, axis, out), out
			}
			if worst == nil {
				boxed = min(boxed, out)
			}
		}
		out := polygonOutside(g.lim.KeepIn, s.Base.X, s.Base.Y)
		if worst == nil && i > 0 && !(out <= kept+placeSlack) {
			return found(RuleKeepIn, fmt.Sprintf("base at x %.3f, y %.3f m, %.3f m outside", s.Base.X, s.Base.Y, out), "the operator's polygon",
				"choose a target nearer to where the robot is", Number{"x", s.Base.X}, Number{"y", s.Base.Y}, Number{"outside", out})
		}
		kept = min(kept, out)
	}
	return worst
}

func (g *Guard) outOfBox(b *Box, at r3.Vec, axis int, out float64) *Refused {
	x, s, name := arr(at)[axis], b.span(axis), string('x'+rune(axis))
	return found(RuleBox, fmt.Sprintf("gripper at %s %.3f m", name, x), fmt.Sprintf("%s %.3f to %.3f m in the base frame", name, s[0], s[1]),
		fmt.Sprintf("move the target at least %.3f m back along %s", out, name),
		Number{"at", x}, Number{"min", s[0]}, Number{"max", s[1]})
}

func arr(v r3.Vec) [3]float64 { return [3]float64{v.X, v.Y, v.Z} }

// checkSpeeds refuses joint, base and tool speeds beyond the operator's share.
func (g *Guard) checkSpeeds(p *robot.Plan) *Refused {
	pts := p.Traj.Points
	for i := 1; i < len(pts); i++ {
		a, b := &pts[i-1], &pts[i]
		h := (b.T - a.T).Seconds()
		for k, j := range g.model.Joints {
			v, acc := fastest(a.Q[k], a.QD[k], b.Q[k], b.QD[k], h)
			if lim := j.Vel * g.lim.SpeedScale; !(v <= lim*speedSlack) {
				return tooFast(j.Name, v, lim, "per second")
			}
			if !(acc <= j.Acc*accSlack) {
				return tooFast(j.Name+" acceleration", acc, j.Acc, "per second squared")
			}
		}
		vx, _ := fastest(a.Base.X, a.BaseV.X, b.Base.X, b.BaseV.X, h)
		vy, _ := fastest(a.Base.Y, a.BaseV.Y, b.Base.Y, b.BaseV.Y, h)
		w, _ := fastest(a.Base.Yaw, a.BaseV.Yaw, b.Base.Yaw, b.BaseV.Yaw, h)
		if v := math.Hypot(vx, vy); !(v <= g.lim.BaseSpeed*speedSlack) {
			return tooFast("base", v, g.lim.BaseSpeed, "m/s")
		}
		if !(w <= g.lim.BaseTurn*speedSlack) {
			return tooFast("base", w, g.lim.BaseTurn, "rad/s")
		}
	}
	return g.checkToolSpeed(p.Sweep)
}

func (g *Guard) checkToolSpeed(sweep []robot.Swept) *Refused {
	for i := 1; i < len(sweep); i++ {
		a, b := &sweep[i-1], &sweep[i]
		h := (b.T - a.T).Seconds()
		if !(h > 0) {
			return bad("sample %d of the swept volume is not after the one before", i)
		}
		if v := a.Tool.Dist(b.Tool) / h; !(v <= g.lim.ToolSpeed*speedSlack) {
			return tooFast("gripper", v, g.lim.ToolSpeed, "m/s")
		}
		if w := a.Tool.Angle(b.Tool) / h; !(w <= g.lim.ToolTurn*speedSlack) {
			return tooFast("gripper", w, g.lim.ToolTurn, "rad/s")
		}
	}
	return nil
}

func tooFast(what string, got, limit float64, unit string) *Refused {
	return found(RuleSpeed, fmt.Sprintf("%s at %.3f %s", what, got, unit), fmt.Sprintf("%.3f %s", limit, unit),
		"this is the operator's to change: planner and guard have different speed limits",
		Number{"speed", got}, Number{"limit", limit})
}

// fastest is the largest speed and acceleration on a cubic of h seconds between two knots. Acceleration is linear
// in time, so it is largest at an end; speed is largest at an end or where acceleration is zero.
func fastest(p0, v0, p1, v1, h float64) (speed, acc float64) {
	m := 6 * (p1 - p0) / h
	a0, a1 := (m-4*v0-2*v1)/h, (-m+2*v0+4*v1)/h
	speed, acc = math.Max(math.Abs(v0), math.Abs(v1)), math.Max(math.Abs(a0), math.Abs(a1))
	if s := a0 / (a0 - a1); s > 0 && s < 1 {
		speed = math.Max(speed, math.Abs(v0+h*(a0*s+(a1-a0)*s*s/2)))
	}
	return speed, acc
}

// movedSince refuses a plan that does not start where the robot is now.
func (g *Guard) movedSince(p *robot.Plan, now robot.State) *Refused {
	at := g.kin.Tool(now.Base, now.Q)
	was := g.kin.Tool(p.From.Base, p.From.Q)
	base := p.From.Base.Inv().Mul(now.Base)
	d := math.Max(at.Dist(was), base.Norm())
	a := math.Max(at.Angle(was), math.Abs(geom.WrapAngle(base.Yaw)))
	for i, j := range g.model.Joints { // an elbow may move and leave the tool where it is
		if by := math.Abs(now.Q[i] - p.From.Q[i]); j.Prismatic {
			d = math.Max(d, by)
		} else {
			a = math.Max(a, by)
		}
	}
	if d <= g.lim.StartDist && a <= g.lim.StartTurn {
		return nil
	}
	return found(RuleMoved, fmt.Sprintf("%.1f mm, %.2f degrees", 1e3*d, geom.Deg(a)),
		fmt.Sprintf("%.1f mm, %.2f degrees", 1e3*g.lim.StartDist, geom.Deg(g.lim.StartTurn)), "look again, then execute",
		Number{"moved", d}, Number{"turned", a}, Number{"moved_limit", g.lim.StartDist}, Number{"turned_limit", g.lim.StartTurn})
}
