package control

import (
	"fmt"
	"math"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// Planner is robot.Planner over a Kinematics. It keeps no state between plans and is safe for concurrent
// use: the same state and waypoint always give the same plan.
type Planner struct {
	kin   *Kinematics
	set   Settings
	loose robot.Loose // nil: the body keeps to a plan's times
}

var _ robot.Planner = (*Planner)(nil)

// NewPlanner makes a planner.
func NewPlanner(k *Kinematics, s Settings) (*Planner, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return &Planner{kin: k, set: s}, nil
}

// ahead is how far apart in time the body's joints may be; nil when they keep together.
func (p *Planner) ahead() []time.Duration {
	if p.loose == nil {
		return nil
	}
	return p.loose.Ahead()
}

// Plan makes a plan from a complete state. The error is *robot.Unreachable when the goal cannot be reached
// on a straight line, or not without the robot running into itself.
func (p *Planner) Plan(s robot.State, w robot.Waypoint) (robot.Plan, error) {
	m := p.kin.Model()
	if !s.Complete(m) {
		return robot.Plan{}, fmt.Errorf("no plan: the measured state of %s is missing or incomplete", m.Name)
	}
	var start joints
	if err := p.startJoints(s, &start); err != nil {
		return robot.Plan{}, err
	}
	plan := robot.Plan{
		Waypoint: w, FromSeq: s.Seq, From: s,
		Start: p.kin.Tool(s.Base, s.Q), EndBase: s.Base, EndQ: append([]float64(nil), s.Q...),
	}
	plan.End = plan.Start
	var (
		knots []knot
		err   error
	)
	switch w.Kind {
	case robot.KindPose, robot.KindPoseJaw:
		knots, err = p.poseKnots(s.Base, start, w.Tool)
	case robot.KindBase:
		knots, err = p.baseKnots(s.Base, start, w.Base)
	case robot.KindJaw:
		p.sweepStill(&plan)
		return plan, nil
	default:
		return robot.Plan{}, fmt.Errorf("no plan: waypoint kind %d asks for nothing", w.Kind)
	}
	if err != nil {
		return robot.Plan{}, err
	}
	p.finish(&plan, knots)
	if d := plan.Traj.Duration(); d > robot.LongestGoal {
		return robot.Plan{}, &robot.Unreachable{Near: plan.Start, Gap: plan.Start.Dist(plan.End), Turn: plan.Start.Angle(plan.End), Why: fmt.Sprintf(
			"the way there takes %.0f s at the speeds that the operator allows, and one motion may take %.0f s", d.Seconds(), robot.LongestGoal.Seconds(),
		)}
	}
	if err := p.checkSelf(&plan); err != nil {
		return robot.Plan{}, err
	}
	return plan, nil
}

func (p *Planner) poseKnots(base geom.SE2, start joints, tool geom.Pose) ([]knot, error) {
	if !tool.Finite() {
		return nil, fmt.Errorf("no plan: the goal pose %v is not finite", tool)
	}
	if p.kin.model.Mobile {
		return p.stretchKnots(base, start, tool)
	}
	return p.armKnots(base, start, tool)
}

// startJoints are the measured joints, brought onto a limit that sensors see them slightly past.
func (p *Planner) startJoints(s robot.State, q *joints) error {
	for i, j := range p.kin.model.Joints {
		tol, unit := 0.02, "rad"
		if j.Prismatic {
			tol, unit = 0.005, "m"
		}
		q[i] = math.Max(j.Min, math.Min(j.Max, s.Q[i]))
		if by := math.Abs(s.Q[i] - q[i]); !(by <= tol) {
			return fmt.Errorf("no plan: %s is measured at %.4f %s, %.4f past its limit; a person has to move it back", j.Name, s.Q[i], unit, by)
		}
	}
	return nil
}

// margin is how far in radians plans keep from revolute limits.
func (p *Planner) margin() float64 {
	if p.set.JointMargin >= 0 {
		return p.set.JointMargin
	}
	return p.kin.desc.Margin
}

// ripple is what the spline through the knots may swing past them, radians.
const ripple = 0.002

// limits are the model's limits less the margin, widened to include where the robot is now: a joint inside
// the margin may stay or come back, and go no deeper.
func (p *Planner) limits(start *joints) (lo, hi joints) {
	for i, j := range p.kin.model.Joints {
		m := p.margin() + ripple
		if j.Prismatic {
			m = 0
		}
		lo[i], hi[i] = math.Min(j.Min+m, start[i]), math.Max(j.Max-m, start[i])
	}
	return lo, hi
}

// finish times the knots and fills what follows from the trajectory.
func (p *Planner) finish(plan *robot.Plan, knots []knot) {
	t := timing{k: p.kin, set: &p.set, knots: knots}
	plan.Traj = t.trajectory()
	last := plan.Traj.Points[len(plan.Traj.Points)-1]
	plan.EndQ, plan.EndBase = append([]float64(nil), last.Q...), last.Base
	plan.End = p.kin.Tool(last.Base, last.Q)
	plan.Margins = p.margins(plan.Traj)
	p.sweep(plan)
}

func (p *Planner) margins(t robot.Trajectory) []robot.Margin {
	ms := make([]robot.Margin, len(p.kin.model.Joints))
	for i, j := range p.kin.model.Joints {
		least := math.Inf(1)
		for _, pt := range t.Points {
			least = math.Min(least, math.Min(pt.Q[i]-j.Min, j.Max-pt.Q[i]))
		}
		ms[i] = robot.Margin{Joint: j.Name, Value: least}
	}
	return ms
}

// baseKnots is the straight line of the base; the arm keeps its joints. The turn is the short way round.
func (p *Planner) baseKnots(base geom.SE2, start joints, goal geom.SE2) ([]knot, error) {
	if !p.kin.model.Mobile {
		return nil, fmt.Errorf("no plan: %s has no base that moves", p.kin.model.Name)
	}
	if !goal.Finite() {
		return nil, fmt.Errorf("no plan: the base goal %v is not finite", goal)
	}
	goal.Yaw = base.Yaw + geom.WrapAngle(goal.Yaw-base.Yaw)
	d := geom.SE2{X: goal.X - base.X, Y: goal.Y - base.Y, Yaw: goal.Yaw - base.Yaw}
	n := max(minKnots, int(math.Ceil(math.Max(d.Norm()/0.02, math.Abs(d.Yaw)/0.05))))
	knots := make([]knot, n+1)
	for i := range knots {
		s := float64(i) / float64(n)
		knots[i] = knot{s: s, q: start, base: base.Lerp(goal, s)}
	}
	return knots, nil
}

// sweepGap is how far in metres a point of the robot may move between two samples of the sweep.
const sweepGap = 0.01

// sweep samples the robot's volume along the trajectory, and for a body that does not keep to times the corners of the
// hull in which its joints may be. The step is guessed from the last one and halved
// while any capsule moves too far.
func (p *Planner) sweep(plan *robot.Plan) {
	total, cs := plan.Traj.Duration(), p.corners(plan)
	prev := p.swept(plan, cs, 0)
	plan.Sweep = append(plan.Sweep, prev)
	step := total / 20
	for at := time.Duration(0); at < total; {
		step = max(min(step, total-at), 100*time.Microsecond)
		next := p.swept(plan, cs, min(at+step, total))
		moved := farthest(prev.Capsules, next.Capsules)
		if moved > sweepGap && step > 100*time.Microsecond {
			step = time.Duration(float64(step) * math.Max(0.1, 0.85*sweepGap/moved))
			continue
		}
		plan.Sweep = append(plan.Sweep, next)
		prev, at = next, next.T
		step = time.Duration(float64(step) * math.Min(3, 0.85*sweepGap/math.Max(moved, 1e-6)))
	}
}

func (p *Planner) swept(plan *robot.Plan, cs []corner, at time.Duration) robot.Swept {
	pt := plan.Traj.At(at)
	s := robot.Swept{
		T: at, Tool: p.kin.Tool(pt.Base, pt.Q), Base: pt.Base, Q: pt.Q,
		Capsules: p.kin.Capsules(pt.Base, pt.Q, plan.From.Jaw.Aperture),
	}
	p.loosen(plan, cs, &s)
	return s
}

// sweepStill is the sweep of a plan that moves only the jaw: the hand where it is, jaw as it is and as it
// will be.
func (p *Planner) sweepStill(plan *robot.Plan) {
	f := plan.From
	to := p.kin.model.Jaw.Min
	if plan.Waypoint.Jaw.Open {
		to = p.kin.model.Jaw.Max
	}
	n := 1 + int(math.Ceil(math.Abs(to-f.Jaw.Aperture)/2/sweepGap))
	for i := range n + 1 {
		a := f.Jaw.Aperture + (to-f.Jaw.Aperture)*float64(i)/float64(n)
		plan.Sweep = append(plan.Sweep, robot.Swept{
			Tool: plan.Start, Base: f.Base, Q: f.Q, Capsules: p.kin.Capsules(f.Base, f.Q, a),
		})
	}
	plan.Margins = p.margins(robot.Trajectory{Points: []robot.Point{{Q: f.Q}}})
}

// farthest is how far an end of any capsule moved; no point of a capsule moves further than an end of it.
func farthest(a, b []robot.LinkCapsule) float64 {
	most := 0.0
	for i := range a {
		da, db := sub(a[i].A, b[i].A), sub(a[i].B, b[i].B)
		most = math.Max(most, math.Max(da, db))
	}
	return math.Sqrt(most)
}
