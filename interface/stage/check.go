package stage

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/perception"
	"viad/safety"
)

// verdict is a Check with what it was made from. Its Refused is of the geometry alone: reach, box, joints and
// clearance, and not whether the robot is armed.
type verdict struct {
	check Check
	scene uint64
	from  live
	notes []string       // those of the plan, before the scene's
	near  perception.Hit // what is nearest to the way, also when it is clear
}

// waypoint is what would be executed now; KindNone when nothing would.
func (s *Stage) waypoint(w staged, l live) robot.Waypoint {
	t := s.target(w, l)
	wp := robot.Waypoint{Tool: t.Pose, Base: l.state.Base, Jaw: robot.JawTarget{Open: t.Open}}
	switch {
	case s.o.Face == Face3D && w.set:
		moves := t.Pose.Dist(l.real.Pose) > s.o.SameDist || t.Pose.Angle(l.real.Pose) > s.o.SameTurn
		switch jaws := s.jawMoves(w, l); {
		case moves && jaws:
			wp.Kind = robot.KindPoseJaw
		case moves:
			wp.Kind = robot.KindPose
		case jaws:
			wp.Kind = robot.KindJaw
		}
	case w.mode == ModePose:
		wp.Kind = robot.KindPose
	case w.mode == ModeNav:
		wp.Kind = robot.KindBase
		wp.Base = l.state.Base.Mul(w.delta)
	case w.mode == ModeGripper:
		wp.Kind = robot.KindJaw
	}
	return wp
}

// judge plans w from l and checks the plan in sc. It never refuses: that is for execute.
func (s *Stage) judge(w staged, l live, sc *perception.Scene) verdict {
	wp := s.waypoint(w, l)
	v := verdict{from: l}
	if sc != nil {
		v.scene = sc.Seq
	}
	c := &v.check
	if wp.Kind == robot.KindNone {
		return v
	}
	c.Staged = true
	if wp.Kind == robot.KindPoseJaw {
		v.notes = append(v.notes, "jaw and pose together: pose first, then jaw; a waypoint of its own for the jaw is more reliable")
	}
	c.Notes = v.notes
	plan, err := s.o.Planner.Plan(l.state, wp)
	if err != nil {
		unreachable(c, err)
		return v
	}
	c.Reachable, c.Plan = true, &plan
	c.Duration = plan.Traj.Duration() + s.jawTime(wp, l)
	c.Reach = s.reachText(&plan)
	if c.Duration > s.o.Caps.Motion {
		v.notes = append(v.notes, fmt.Sprintf("the motion takes %.1f s and will be stopped at %s, before it arrives: stage a nearer target", c.Duration.Seconds(), seconds(s.o.Caps.Motion)))
	}
	s.inScene(&v, sc)
	return v
}

// inScene (re)judges v's plan in sc.
func (s *Stage) inScene(v *verdict, sc *perception.Scene) {
	c := &v.check
	c.Notes = v.notes
	if sc == nil {
		c.Way = "The way cannot be judged: there is no picture of the scene yet."
		c.Refused = refuse(RuleNoScene, "nothing received", "one fused scene", "Wait for the cameras and look again.")
		return
	}
	v.scene = sc.Seq
	warnings, hit, refused := s.o.Checker.Check(*c.Plan, sc)
	v.near = hit
	var may []string
	c.Touch = nil
	for _, w := range warnings {
		may, c.Touch = append(may, w.Text), append(c.Touch, w.At)
	}
	c.Notes = slices.Concat(v.notes, may, unseen(sc))
	c.Clear, c.Refused = refused == nil, refused
	c.Hit, c.HasHit = r3.Vec{}, false
	switch {
	case refused != nil && hit.Found:
		c.Hit, c.HasHit = hit.Point, true
		c.Way = "The way is not clear: " + refusedText(refused) + "; the nearest thing seen is at " + s.place3(hit.Point, v.from) + "."
	case refused != nil:
		c.Way = "The way is refused: " + refusedText(refused) + "."
	case sc.Blind():
		c.Clear, c.Way = false, "The way cannot be judged: no sensor measures distances now."
	case hit.Found && len(warnings) > 0:
		c.Way = fmt.Sprintf("The way is clear by %.3f m, fingers and what they hold aside; the nearest thing seen is at %s.", hit.Dist, s.place3(hit.Point, v.from))
	case hit.Found:
		c.Way = fmt.Sprintf("The way is clear by %.3f m; the nearest thing seen is at %s.", hit.Dist, s.place3(hit.Point, v.from))
	case len(warnings) > 0:
		c.Way = "The way is clear, fingers and what they hold aside: nothing else seen near it."
	default:
		c.Way = "The way is clear: nothing seen near it."
	}
}

// unseen names the sensors that the scene had to do without.
func unseen(sc *perception.Scene) []string {
	out := make([]string, 0, len(sc.Missing))
	for _, g := range sc.Missing {
		out = append(out, fmt.Sprintf("not seen by %s: %s", g.Source, g.Why))
	}
	return out
}

// refusedText is a refusal without its advice.
func refusedText(r *safety.Refused) string {
	return (&safety.Refused{Rule: r.Rule, Value: r.Value, Limit: r.Limit}).Error()
}

// place3 is a point on the axes that the face speaks in.
func (s *Stage) place3(p r3.Vec, l live) string {
	return vecText(l.state.Base.Pose().Inv().Point(p))
}

func unreachable(c *Check, err error) {
	c.Way = "The way is not judged: there is no plan."
	var u *robot.Unreachable
	if !errors.As(err, &u) {
		c.Reach = "No plan: " + err.Error() + "."
		c.Refused = refuse(RuleUnreachable, err.Error(), "a plan", "Change the target, or reset it.")
		return
	}
	c.Near = u
	why := u.Why
	if why == "" {
		why = fmt.Sprintf("the nearest pose found is %.3f m and %s short", u.Gap, degrees.of(u.Turn))
		if u.Joint != "" {
			why = fmt.Sprintf("%s would have to go %s past its limit", u.Joint, amount(u.By, u.Unit != "rad"))
		}
	}
	c.Reach = "Not reachable: " + why + "."
	c.Refused = refuse(RuleUnreachable, why, "", "Change the target; the check of each edit says what is still missing.")
}

func amount(v float64, prismatic bool) string {
	if prismatic {
		return fmt.Sprintf("%.3f m", v)
	}
	return fmt.Sprintf("%.1f deg", v*180/math.Pi)
}

// reachText names the joint that comes nearest to a limit, in proportion to its range.
func (s *Stage) reachText(p *robot.Plan) string {
	switch p.Waypoint.Kind { //nolint:exhaustive // what does not move the arm has no reach to speak of
	case robot.KindBase:
		return "Reachable: the base alone moves, and the arm stays as it is on it."
	case robot.KindJaw:
		return "Reachable: the jaw alone moves."
	}
	best, text := math.Inf(1), ""
	for _, m := range p.Margins {
		for _, j := range s.model.Joints {
			if j.Name != m.Joint || !(j.Max > j.Min) {
				continue
			}
			if rel := m.Value / (j.Max - j.Min); rel < best {
				best, text = rel, fmt.Sprintf("; %s comes nearest to its limit, %s away", m.Joint, amount(m.Value, j.Prismatic))
			}
		}
	}
	return "Reachable" + baseText(p) + text + "."
}

// baseText is where a pose takes the base of a mobile robot, on the axes of where it stands: nothing else shows it.
func baseText(p *robot.Plan) string {
	if p.Waypoint.Kind != robot.KindPose {
		return ""
	}
	d := p.From.Base.Inv().Mul(p.EndBase)
	var parts []string
	part := func(v, least float64, unit, plus, minus string, digits int) {
		switch {
		case v >= least:
			parts = append(parts, fmt.Sprintf("%.*f %s %s", digits, v, unit, plus))
		case v <= -least:
			parts = append(parts, fmt.Sprintf("%.*f %s %s", digits, -v, unit, minus))
		}
	}
	part(d.X, .005, "m", "forward", "back", 2)
	part(d.Y, .005, "m", "to the left", "to the right", 2)
	part(geom.Deg(geom.WrapAngle(d.Yaw)), .5, "deg", "to the left", "to the right", 0)
	if len(parts) == 0 {
		return ""
	}
	return ", the base goes " + strings.Join(parts, " and ")
}
