package franka

import (
	"fmt"
	"math"

	"viad/drivers/robot"
	"viad/drivers/urdf"
)

const joints = 7

// envelope is a speed limit that shrinks towards the position limits, as libfranka enforces it on the FR3: upwards
// min(vmax, max(0, sqrt(c (hi - q)) - o)), and the mirror with (q - lo) downwards.
type envelope struct{ o, c, lo, hi float64 }

// fr3Envelope is that of a joint. Source: libfranka include/franka/rate_limiting.h.
func fr3Envelope(joint int) envelope {
	return [joints]envelope{
		{.30, 12, -2.7501, 2.7501},
		{.20, 5.17, -1.7918, 1.7918},
		{.20, 7, -2.9065, 2.9065},
		{.30, 8, -3.0481, -.1458},
		{.35, 34, -2.8101, 2.8101},
		{.35, 11, .54092, 4.5205},
		{.35, 34, -3.0196, 3.0196},
	}[joint]
}

// most is the greatest speed at q, in the direction of v, of a joint whose own limit is vmax.
func (e envelope) most(q, v, vmax float64) float64 {
	room := e.hi - q
	if v < 0 {
		room = q - e.lo
	}
	return math.Min(vmax, math.Max(0, math.Sqrt(e.c*math.Max(0, room))-e.o))
}

// Accelerations, rad/s^2. Source: franka_description robots/{fr3,fer}/joint_limits.yaml.
func accelerations(k Kind) [joints]float64 {
	if k == Panda {
		return [joints]float64{15, 7.5, 10, 12.5, 15, 20, 20}
	}
	return [joints]float64{10, 10, 10, 10, 10, 10, 10}
}

// Model is the arm as the driver takes and checks it: joint order, limits and hand.
func Model(k Kind) (*robot.Model, error) {
	d, err := urdf.Load(string(k))
	if err != nil {
		return nil, fmt.Errorf("franka: %w", err)
	}
	m := &robot.Model{Name: map[Kind]string{FR3: "FR3", Panda: "Panda"}[k], Jaw: robot.JawSpec{Max: 0.08, Speed: defaultSpeed, Force: defaultForce}}
	for i, a := range accelerations(k) {
		name := fmt.Sprintf("%s_joint%d", k, i+1)
		j := d.Joint(name)
		if j == nil {
			return nil, fmt.Errorf("franka: the description of %s has no joint %s", k, name)
		}
		m.Joints = append(m.Joints, robot.Joint{Name: name, Min: j.Lower, Max: j.Upper, Vel: j.Velocity, Acc: a})
	}
	return m, nil
}

// How closely a trajectory is looked at before it is sent, and how much of a joint's acceleration braking may take.
const (
	checkStep  = 5 * 1e6 // nanoseconds
	accSlack   = 1.05
	speedSlack = 1.02 // the slack that robot.Trajectory.Check gives
	brakeShare = 0.7
)

// admit checks the whole path before anything of it is sent: the cubic between knots keeps the joints' limits of position,
// speed (which depends on the position on an FR3) and acceleration, and can be left by braking in brakeMost at any time.
func (r *Robot) admit(p *path) error {
	for s := int64(0); s <= p.length.Nanoseconds(); s += checkStep {
		pt := p.at(seconds(s))
		for i := range r.model.Joints {
			if err := r.admitJoint(p, i, s, pt); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Robot) admitJoint(p *path, i int, s int64, pt sample) error {
	j := r.model.Joints[i]
	q, v, a := pt.q[i], pt.v[i], pt.a[i]
	vmax := j.Vel
	if r.config.Robot == FR3 {
		vmax = fr3Envelope(i).most(q, v, j.Vel)
	}
	past := math.Max(j.Min-q, q-j.Max)
	began := math.Max(0, math.Max(j.Min-p.begin[i], p.begin[i]-j.Max)) // a joint read past its limit may come back
	switch at := fmt.Sprintf("refused: %s at %.2f s", j.Name, float64(s)/1e9); {
	case !(past <= began+1e-3):
		return fmt.Errorf("%s would be at %.4f rad, limits %.4f to %.4f", at, q, j.Min, j.Max)
	case !(math.Abs(v) <= vmax*speedSlack+1e-3):
		return fmt.Errorf("%s would go at %.3f rad/s where it is at %.4f rad, limit %.3f there: plan it slower, or further from the end of the joint", at, v, q, vmax)
	case !(math.Abs(a) <= j.Acc*accSlack):
		return fmt.Errorf("%s would accelerate by %.2f rad/s^2, limit %.2f: plan it slower", at, a, j.Acc)
	case !(brakeTime(v, j.Acc, brakeShare) <= brakeMost.Seconds()):
		return fmt.Errorf("%s would go at %.3f rad/s, which takes %.2f s to brake, limit %.2f s: plan it slower", at, v, brakeTime(v, j.Acc, brakeShare), brakeMost.Seconds())
	}
	return nil
}
