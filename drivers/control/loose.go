package control

import (
	"math"
	"slices"
	"time"

	"viad/drivers/robot"
)

// looseLooks is at how many times of a plan it is looked at which parts a corner moves apart, by apartLeast.
const (
	looseLooks = 24
	apartLeast = 0.005 // metres
)

// corner is one corner of the hull in which a loose body's joints may be, or half of the way there: joints without a lag
// are where the plan has them, the others and the base where it had them so long before.
type corner struct {
	lags  []time.Duration
	base  time.Duration
	parts []int // capsules that it moves away from where the plan has them
}

// corners are those of a plan that a loose body follows. Each sliding joint is early or late by itself, the turning ones
// together: they share a bus and a command. A body that keeps to times has none.
func (p *Planner) corners(plan *robot.Plan) []corner {
	ahead := p.ahead()
	groups := p.looseGroups(plan, ahead)
	base := plan.EndBase != plan.From.Base
	var out []corner
	for mask := 1; mask < 1<<len(groups); mask++ {
		if mask == 1<<len(groups)-1 && !base {
			continue // all of it: the plan itself
		}
		for _, part := range []time.Duration{1, 2} {
			c := corner{lags: make([]time.Duration, len(ahead)), base: slices.Max(ahead) / part}
			for g, joints := range groups {
				for _, j := range joints {
					if mask&(1<<g) == 0 {
						c.lags[j] = ahead[j] / part
					}
				}
			}
			if c.parts = p.cornerParts(plan, c); len(c.parts) > 0 {
				out = append(out, c)
			}
		}
	}
	return out
}

// looseGroups are the joints that the plan moves and that may be apart from one another.
func (p *Planner) looseGroups(plan *robot.Plan, ahead []time.Duration) (groups [][]int) {
	if len(ahead) != len(p.kin.model.Joints) {
		return nil
	}
	var turning []int
	for j, m := range p.kin.model.Joints {
		moves := slices.ContainsFunc(plan.Traj.Points, func(pt robot.Point) bool { return math.Abs(pt.Q[j]-plan.Traj.Points[0].Q[j]) > 1e-3 })
		switch {
		case !moves || ahead[j] <= 0:
		case m.Prismatic:
			groups = append(groups, []int{j})
		default:
			turning = append(turning, j)
		}
	}
	if len(turning) > 0 {
		groups = append(groups, turning)
	}
	return groups
}

// cornerParts looks along the plan for the capsules that the corner moves apart.
func (p *Planner) cornerParts(plan *robot.Plan, c corner) (parts []int) {
	var apart []bool
	for i := range looseLooks + 1 {
		at := time.Duration(float64(plan.Traj.Duration()) * float64(i) / looseLooks)
		pt := plan.Traj.At(at)
		own, off := p.kin.Capsules(pt.Base, pt.Q, plan.From.Jaw.Aperture), p.cornerAt(plan, c, at)
		if apart == nil {
			apart = make([]bool, len(own))
		}
		for k := range own {
			apart[k] = apart[k] || farthest(own[k:k+1], off[k:k+1]) > apartLeast
		}
	}
	for k, is := range apart {
		if is {
			parts = append(parts, k)
		}
	}
	return parts
}

// cornerAt is the whole robot in the corner at a time of the plan.
func (p *Planner) cornerAt(plan *robot.Plan, c corner, at time.Duration) []robot.LinkCapsule {
	q := plan.Traj.At(at).Q
	for j, lag := range c.lags {
		if lag > 0 {
			q[j] = plan.Traj.At(max(0, at-lag)).Q[j]
		}
	}
	return p.kin.Capsules(plan.Traj.At(max(0, at-c.base)).Base, q, plan.From.Jaw.Aperture)
}

// loosen adds to a sample what of the robot may be elsewhere at its time.
func (p *Planner) loosen(plan *robot.Plan, cs []corner, s *robot.Swept) {
	for _, c := range cs {
		all := p.cornerAt(plan, c, s.T)
		for _, k := range c.parts {
			s.Capsules = append(s.Capsules, all[k])
		}
	}
}
