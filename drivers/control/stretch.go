package control

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// Joints of a lift-and-telescope robot, in Model order.
const (
	jLift = iota
	jArm
	jYaw
	jPitch
	jRoll
	wholeJoints
)

// checkWhole says whether the closed form holds: lift up, arm forward, wrist yaw, pitch and roll about z, y
// and x, with no turned frames between.
func (c *chain) checkWhole() error {
	if c.n != wholeJoints {
		return fmt.Errorf("%d joints, need lift, arm, wrist yaw, pitch and roll", c.n)
	}
	axes := [wholeJoints]r3.Vec{{Z: 1}, {X: 1}, {Z: 1}, {Y: 1}, {X: 1}}
	straight := func(f frame) bool { return r3.Norm(r3.Sub(f.x, unit.x))+r3.Norm(r3.Sub(f.y, unit.y)) < 1e-9 }
	for i := range c.n {
		if !straight(c.fixed[i]) || r3.Norm(r3.Sub(c.axis[i], axes[i])) > 1e-9 || c.prismatic[i] != (i < jYaw) {
			return fmt.Errorf("joint %d is not the one that the closed form expects", i)
		}
	}
	if !straight(c.end) {
		return fmt.Errorf("the tool is turned against the roll link")
	}
	return nil
}

// whole follows a line with base, lift, arm and wrist together. Along the line the base turns by turn and
// goes forward by ahead, both evenly, and sideways by whatever the wrist leaves over.
type whole struct {
	c      *chain
	lo, hi joints
	base   geom.SE2
	from   geom.Pose // odometry
	to     geom.Pose
	turn   float64 // radians
	ramp   float64 // share of the line by which the base has turned
	ahead  float64 // metres
	knots  []knot
}

// stretchKnots finds the line; the base keeps its heading unless the wrist's yaw runs out, and stays where
// it is along the arm unless the arm runs out.
func (p *Planner) stretchKnots(base geom.SE2, start joints, goal geom.Pose) ([]knot, error) {
	w := &whole{c: &p.kin.chain, base: base, to: goal, ramp: 1}
	w.lo, w.hi = p.limits(&start)
	w.from = baseFrame(base).mul(w.c.forward(start[:w.c.n])).pose()
	n := steps(w.from, w.to)
	for range 4 {
		if stuck := w.trace(start, n); stuck {
			return nil, p.flipped(w)
		}
		if !w.turnBase() {
			break
		}
	}
	w.reachAhead()
	if j, by := w.worst(); j >= 0 {
		return nil, p.outOfRange(w, j, by)
	}
	return w.knots, nil
}

// trace fills the knots; true when the wrist would have to jump.
func (w *whole) trace(start joints, n int) (stuck bool) {
	w.knots = append(w.knots[:0], knot{q: start, base: w.base})
	for i := 1; i <= n; i++ {
		if !w.advance(float64(i)/float64(n), 0) {
			return true
		}
	}
	return false
}

func (w *whole) advance(s float64, depth int) bool {
	last := w.knots[len(w.knots)-1]
	k := w.at(s, &last.q)
	turn := 0.0
	for i := jYaw; i <= jRoll; i++ {
		turn = math.Max(turn, math.Abs(k.q[i]-last.q[i]))
	}
	switch {
	case turn <= knotJoint:
		w.knots = append(w.knots, k)
		return true
	case math.Abs(math.Cos(last.q[jPitch])) < singular && depth == 0:
		w.swing(k)
		return w.advance(s, 1)
	case depth < knotDeep:
		return w.advance((last.s+s)/2, depth+1) && w.advance(s, depth+1)
	}
	return false
}

// swing turns yaw and roll against each other in place, to where k will need them: pointing straight up or
// down they are one.
func (w *whole) swing(k knot) {
	last := w.knots[len(w.knots)-1]
	dYaw, dBase := k.q[jYaw]-last.q[jYaw], k.base.Yaw-last.base.Yaw
	dRoll := math.Copysign(dYaw+dBase, math.Sin(last.q[jPitch])*(dYaw+dBase))
	n := int(math.Ceil(math.Max(math.Abs(dYaw), math.Abs(dRoll)) / knotJoint))
	w.knots[len(w.knots)-1].stop = true
	for i := 1; i <= n; i++ {
		x := float64(i) / float64(n)
		q := last.q
		q[jYaw] += x * dYaw
		q[jRoll] += x * dRoll
		w.knots = append(w.knots, w.place(last.s, last.base.Yaw+x*dBase, q))
	}
	w.knots[len(w.knots)-1].stop = true
}

// singular is the cosine of pitch under which yaw and roll are one to a third of a degree.
const singular = 0.006

// at is the configuration at s, with the wrist posture that is nearest to prev.
func (w *whole) at(s float64, prev *joints) knot {
	q := *prev
	yaw := w.base.Yaw + w.turn*math.Min(1, s/w.ramp)
	tool := w.from.Lerp(w.to, s)
	q[jYaw], q[jPitch], q[jRoll] = w.wrist(quat.Mul(geom.RotZ(-yaw), tool.R), prev)
	return w.place(s, yaw, q)
}

// place finds lift, arm and the base's position for the wrist angles in q and a heading.
func (w *whole) place(s, yaw float64, q joints) knot {
	tool := w.from.Lerp(w.to, s)
	q[jLift], q[jArm] = 0, 0
	f := w.c.forward(q[:w.c.n]).p // the tool with lift and arm at zero, in the base frame
	d := geom.Rotate(geom.RotZ(-yaw), r3.Sub(tool.P, r3.Vec{X: w.base.X, Y: w.base.Y}))
	q[jLift] = d.Z - f.Z
	forward := s * w.ahead
	q[jArm] = d.X - f.X - forward
	sn, cs := math.Sincos(yaw)
	side := d.Y - f.Y
	return knot{s: s, q: q, base: geom.SE2{X: w.base.X + cs*forward - sn*side, Y: w.base.Y + sn*forward + cs*side, Yaw: yaw}}
}

// wrist takes a rotation apart into yaw, pitch and roll, as near as possible to where the wrist is. Where
// yaw and roll are one the wrist may leave by either branch: by the one that stays inside the limits, and
// rather past yaw's, which the base can make up for.
func (w *whole) wrist(r quat.Number, prev *joints) (yaw, pitch, roll float64) {
	y, p, ro, c := geom.YawPitchRoll(r)
	if c < 1e-4 { // yaw and roll are one: keep yaw
		y = prev[jYaw]
		if p > 0 {
			v := geom.Rotate(geom.Normalize(quat.Mul(r, geom.RotY(-math.Pi/2))), r3.Vec{X: 1})
			ro = y - math.Atan2(v.Y, v.X)
		} else {
			v := geom.Rotate(geom.Normalize(quat.Mul(r, geom.RotY(math.Pi/2))), r3.Vec{X: 1})
			ro = math.Atan2(v.Y, v.X) - y
		}
	}
	best := math.Inf(1)
	for _, a := range [2][3]float64{{y, p, ro}, {y + math.Pi, math.Pi - p, ro + math.Pi}} {
		d := 0.0
		for i := range a {
			a[i] = prev[jYaw+i] + geom.WrapAngle(a[i]-prev[jYaw+i])
			d += math.Abs(a[i] - prev[jYaw+i])
			if over := math.Max(w.lo[jYaw+i]-a[i], a[i]-w.hi[jYaw+i]); over > 0 && math.Abs(math.Cos(prev[jPitch])) < singular {
				d += over * [3]float64{5, 1000, 1000}[i]
			}
		}
		if d < best {
			best = d
			yaw, pitch, roll = a[0], a[1], a[2]
		}
	}
	return yaw, pitch, roll
}

// turnBase gives the base the turn that keeps the wrist's yaw inside its limits, early enough on the line;
// false when none is needed.
func (w *whole) turnBase() bool {
	over := func(k *knot) float64 {
		return math.Max(0, k.q[jYaw]-w.hi[jYaw]) - math.Max(0, w.lo[jYaw]-k.q[jYaw])
	}
	// need is the turn that the base must have made by a knot for the wrist to be at its limit there.
	need := func(k *knot) float64 { return k.base.Yaw - w.base.Yaw + over(k) }
	turn, any := w.turn, false
	for i := range w.knots {
		if k := &w.knots[i]; math.Abs(over(k)) > 1e-9 {
			any = true
			if math.Abs(need(k)) > math.Abs(turn) {
				turn = need(k)
			}
		}
	}
	if !any {
		return false
	}
	w.turn = turn * 1.0001
	for i := range w.knots {
		if k := &w.knots[i]; math.Abs(over(k)) > 1e-9 && need(k)*turn > 0 {
			w.ramp = math.Min(w.ramp, k.s*turn/need(k))
		}
	}
	w.ramp = math.Max(w.ramp, 1e-6)
	return true
}

// reachAhead moves the base along the arm by what the arm cannot give, evenly over the line, and gives it
// also what is missing at single knots.
func (w *whole) reachAhead() {
	end := w.knots[len(w.knots)-1]
	w.ahead = end.q[jArm] - math.Max(w.lo[jArm], math.Min(w.hi[jArm], end.q[jArm]))
	for i, k := range w.knots[1:] {
		stop := k.stop
		k = w.place(k.s, k.base.Yaw, k.q)
		k.stop = stop
		over := k.q[jArm] - math.Max(w.lo[jArm], math.Min(w.hi[jArm], k.q[jArm]))
		sn, cs := math.Sincos(k.base.Yaw)
		k.q[jArm] -= over
		k.base.X, k.base.Y = k.base.X+cs*over, k.base.Y+sn*over
		w.knots[i+1] = k
	}
}

// worst is the joint that is furthest past its limits anywhere; -1 when none is.
func (w *whole) worst() (joint int, by float64) {
	joint, by = -1, 1e-9
	for _, k := range w.knots {
		for i := range w.c.n {
			if x := math.Max(w.lo[i]-k.q[i], k.q[i]-w.hi[i]); x > by {
				joint, by = i, x
			}
		}
	}
	return joint, by
}

// outOfRange is the report for a joint that the line asks too much of. The nearest pose is the line's end
// with every joint brought to its limit; base and arm still bring the tool to the place where they can.
func (p *Planner) outOfRange(w *whole, joint int, by float64) error {
	j := p.kin.model.Joints[joint]
	u := &robot.Unreachable{Joint: j.Name, By: by, Unit: "rad"}
	if j.Prismatic {
		u.Unit = "m"
	}
	end := w.knots[len(w.knots)-1]
	q := end.q
	for i := range w.c.n {
		q[i] = math.Max(w.lo[i], math.Min(w.hi[i], q[i]))
	}
	near := w.place(1, end.base.Yaw, q)
	near.q[jLift] = math.Max(w.lo[jLift], math.Min(w.hi[jLift], near.q[jLift]))
	u.Near = p.kin.Tool(near.base, near.q[:w.c.n])
	u.Gap, u.Turn = u.Near.Dist(w.to), u.Near.Angle(w.to)
	limit, dir := w.hi[joint], "above"
	if end.q[joint] < w.lo[joint] {
		limit, dir = w.lo[joint], "below"
	}
	amount := fmt.Sprintf("%.0f mm", by*1e3)
	at := fmt.Sprintf("%.3f m", limit)
	if !j.Prismatic {
		amount, at = fmt.Sprintf("%.2f rad (%.0f degrees)", by, geom.Deg(by)), fmt.Sprintf("%.4f rad", limit)
	}
	u.Why = fmt.Sprintf("%s would need to go %s %s its limit of %s; nearest reachable pose is %.0f mm and %.1f degrees short",
		j.Name, amount, dir, at, u.Gap*1e3, geom.Deg(u.Turn))
	return u
}

// flipped is the report for a line on which the wrist would have to jump.
func (p *Planner) flipped(w *whole) error {
	last := w.knots[len(w.knots)-1]
	near := p.kin.Tool(last.base, last.q[:w.c.n])
	return &robot.Unreachable{
		Near: near, Gap: near.Dist(w.to), Turn: near.Angle(w.to),
		Why: fmt.Sprintf("the wrist would have to jump where the gripper points straight up or down, %.0f %% along the line; go by way of another pose", last.s*100),
	}
}

// wholePostures are the ways to hold a pose with the base's heading kept or turned as little as its wrist
// needs: the wrist's two branches.
func (p *Planner) wholePostures(base geom.SE2, start joints, goal geom.Pose) []knot {
	w := &whole{c: &p.kin.chain, base: base, to: goal, from: goal}
	w.lo, w.hi = p.limits(&start)
	var out []knot
	for _, flip := range []float64{0, math.Pi} {
		prev := start
		y, pitch, r, _ := geom.YawPitchRoll(quat.Mul(geom.RotZ(-base.Yaw), goal.R))
		mid := func(i int) float64 { return (w.lo[i] + w.hi[i]) / 2 }
		prev[jYaw] = mid(jYaw) + geom.WrapAngle(y+flip-mid(jYaw))
		prev[jPitch] = pitch
		if flip != 0 {
			prev[jPitch] = math.Pi - pitch
		}
		prev[jPitch] = mid(jPitch) + geom.WrapAngle(prev[jPitch]-mid(jPitch))
		prev[jRoll] = mid(jRoll) + geom.WrapAngle(r+flip-mid(jRoll))
		w.turn = math.Max(0, prev[jYaw]-w.hi[jYaw]) - math.Max(0, w.lo[jYaw]-prev[jYaw])
		prev[jYaw] -= w.turn
		w.knots = []knot{{q: start, base: base}, w.place(1, base.Yaw+w.turn, prev)}
		w.reachAhead()
		w.knots = w.knots[1:]
		if j, _ := w.worst(); j < 0 {
			out = append(out, w.knots[0])
		}
	}
	return out
}
