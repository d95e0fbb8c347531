package stretch

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"viad/ros/msg"
	"viad/ros/msg/control_msgs"
)

// How far a joint may be from where joint_states had it when the motion began, beyond its way to the first goal.
const (
	toldSlide = 0.004 // m
	toldTurn  = 0.03  // rad
)

// first calls tell with a goal's first feedback alone.
func first(tell func(*control_msgs.FollowJointTrajectory_Feedback)) func(msg.Message) {
	var once sync.Once
	return func(m msg.Message) {
		if f, is := m.(*control_msgs.FollowJointTrajectory_Feedback); is {
			once.Do(func() { tell(f) })
		}
	}
}

// told compares where the robot's driver itself has the joints, by the first feedback of a motion, with where
// joint_states had them when it began: joint states may be old, and the arm's stages come divided by 4 or by 5.
func (m *run) told(f *control_msgs.FollowJointTrajectory_Feedback) error {
	if m.compared {
		return nil
	}
	m.compared = true
	for i, name := range f.JointNames {
		j := m.jointOf(name)
		if j < 0 || i >= len(f.Actual.Positions) || unserved(f, i) || !finite(f.Actual.Positions[i]) {
			continue
		}
		at, from, to := f.Actual.Positions[i]*m.units.signs[j], m.from[j], m.Plan.At(m.S + m.leadOf(j)).Q[j]
		slack := toldTurn
		if m.Model.Joints[j].Prismatic {
			slack = toldSlide
		}
		if at >= math.Min(from, to)-slack && at <= math.Max(from, to)+slack {
			continue
		}
		if j == jArm {
			if err := m.r.restage(at, from); err != nil {
				return err
			}
		}
		return fmt.Errorf("%s is at %.4f by the robot's driver and at %.4f in joint_states: joint_states are old or wrong; look at what publishes them before the next motion", name, at, from)
	}
	return nil
}

// unserved: the driver writes -1 everywhere for a joint that it does not serve.
func unserved(f *control_msgs.FollowJointTrajectory_Feedback, i int) bool {
	return i < len(f.Desired.Positions) && f.Desired.Positions[i] == -1 && f.Actual.Positions[i] == -1
}

func (m *run) jointOf(name string) int {
	for j := range m.Model.Joints {
		if m.Model.Joints[j].Name == name {
			return j
		}
	}
	return -1
}

// restage takes the arm's stages as the other divisor explains where the arm is; nil when none does.
func (r *Robot) restage(at, read float64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.units().stages
	for _, stages := range []float64{1, 5.0 / 4} {
		if stages == now || math.Abs(read/now*stages-at) > toldSlide+0.01*at {
			continue
		}
		r.stages = stages
		b := &r.reading
		b.q, b.qd = slices.Clone(b.q), slices.Clone(b.qd)
		if len(b.q) == joints {
			b.q[jArm], b.qd[jArm] = b.q[jArm]*stages/now, b.qd[jArm]*stages/now
		}
		r.log.Warn("the arm's stages are divided otherwise than this generation of the driver does", "by", 4*stages, "not", 4*now)
		return fmt.Errorf("arm_joint is at %.4f m by the robot's driver and was read as %.4f m: the arm's stages in joint_states are divided by %g, not by %g, and are read so from now on; plan anew", at, read, 4*stages, 4*now)
	}
	return nil
}

// units are what the recognised driver's numbers mean, with what was learnt of it. It needs mu.
func (r *Robot) units() units {
	u := unitsOf(r.known.generation)
	if r.stages > 0 && u.stages > 0 {
		u.stages = r.stages
	}
	return u
}
