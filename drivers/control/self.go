package control

import (
	"fmt"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// selfApart is how many drives lie at least between two links that are checked against each other: nearer
// neighbours touch by design, or their capsules do.
const selfApart = 3

// touching allows for starts in which two capsules overlap already: a plan may not go deeper than this.
const touching = 0.001

// buildPairs lists the capsules, by index in Capsules, that must not touch.
func (k *Kinematics) buildPairs() {
	depth := make([]int, len(k.links))
	for i, l := range k.links {
		if l.parent < 0 {
			continue
		}
		depth[i] = depth[l.parent]
		if l.drive >= 0 && l.drive < len(k.model.Joints) && l.drive != k.driveAbove(l.parent) {
			depth[i]++
		}
	}
	var of []int // capsule -> link
	for i, l := range k.links {
		for range l.shapes {
			of = append(of, i)
		}
	}
	for i := range of {
		for j := range i {
			if d := depth[of[i]] - depth[of[j]]; d >= selfApart || -d >= selfApart {
				k.pairs = append(k.pairs, [2]int{i, j})
			}
		}
	}
}

// driveAbove is the drive that moves the link, or -1.
func (k *Kinematics) driveAbove(i int) int {
	for ; i >= 0; i = k.links[i].parent {
		if k.links[i].drive >= 0 {
			return k.links[i].drive
		}
	}
	return -1
}

// selfContact looks along the sweep for the robot's first contact with itself.
func (k *Kinematics) selfContact(sweep []robot.Swept) (at int, a, b robot.LinkCapsule, found bool) {
	first := sweep[0].Capsules
	for s := 1; s < len(sweep); s++ {
		cs := sweep[s].Capsules
		for _, p := range k.pairs {
			x, y := &cs[p[0]], &cs[p[1]]
			if !near(&x.Capsule, &y.Capsule) {
				continue
			}
			g := x.Gap(y.Capsule)
			if g < 0 && g < first[p[0]].Gap(first[p[1]].Capsule)-touching {
				return s, *x, *y, true
			}
		}
	}
	return 0, a, b, false
}

// near is false when two capsules are certainly apart: twice the distance of their middles is more than
// their lengths and diameters together.
func near(a, b *geom.Capsule) bool {
	d := r3.Sub(r3.Add(a.A, a.B), r3.Add(b.A, b.B))
	reach := r3.Norm(r3.Sub(a.A, a.B)) + r3.Norm(r3.Sub(b.A, b.B)) + 2*(a.R+b.R)
	return r3.Norm2(d) <= reach*reach
}

// checkSelf is an Unreachable when the robot would run into itself on the way.
func (p *Planner) checkSelf(plan *robot.Plan) error {
	s, a, b, found := p.kin.selfContact(plan.Sweep)
	if !found {
		return nil
	}
	near := plan.Sweep[s-1].Tool
	share := float64(plan.Sweep[s].T) / float64(plan.Traj.Duration())
	u := &robot.Unreachable{Near: near, Gap: near.Dist(plan.End), Turn: near.Angle(plan.End)}
	u.Why = fmt.Sprintf("the robot would run into itself: %s (%s) into %s (%s), after %.0f %% of the motion, %.0f mm and %.1f degrees short of the goal",
		a.Link, a.Class, b.Link, b.Class, share*100, u.Gap*1e3, geom.Deg(u.Turn))
	return u
}
