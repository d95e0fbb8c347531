package stretch

import (
	"fmt"
	"math"
	"time"

	"viad/drivers/geom"
)

// A reading that follows another within leapGap may be away from it by what the speeds of both explain in the time between
// them and leapSlack, and by these. More is no motion: a driver that was started anew counts from another zero, or two
// programs publish under one name.
const (
	leapGap   = time.Second
	leapSlack = 100 * time.Millisecond // by which a network may bunch them
	leapSlide = 0.05                   // m
	leapTurn  = 0.15                   // rad
	leapWait  = time.Second            // for which readings are not believed after one
)

// leaps says that a reading is further from the one before than speeds explain.
func leaps(from, to, speed, slack float64, gap time.Duration) bool {
	return math.Abs(to-from) > slack+speed*(gap+leapSlack).Seconds()
}

// leapJoints looks at joints before they become the newest.
func (b *reading) leapJoints(p picked, stages float64, now time.Time) {
	gap, same := now.Sub(b.received), stages == b.stages
	b.stages = stages
	if gap > leapGap || !same || len(b.q) != joints {
		return
	}
	for i := range p.q {
		slack, most := leapTurn, 7.5 // of a servo that goes to a goal as fast as it can
		if i <= jArm {
			slack, most = leapSlide, 0.4
		}
		speed := math.Max(math.Abs(b.qd[i]), math.Abs(p.qd[i]))
		if !p.speeds {
			speed = most
		}
		if leaps(b.q[i], p.q[i], speed, slack, gap) {
			b.leapt = now
			b.leap = fmt.Sprintf("joint_states leap from %.3f to %.3f (joint %d) within %v", b.q[i], p.q[i], i+1, gap.Round(time.Millisecond))
		}
	}
}

// leapBase is the same of the base.
func (b *reading) leapBase(base, twist geom.SE2, now time.Time) {
	gap := now.Sub(b.odometry)
	if gap > leapGap {
		return
	}
	way := math.Hypot(base.X-b.base.X, base.Y-b.base.Y)
	slide, turn := math.Max(twist.Norm(), b.twist.Norm()), math.Max(math.Abs(twist.Yaw), math.Abs(b.twist.Yaw))
	if leaps(0, way, slide, leapSlide, gap) || leaps(b.base.Yaw, base.Yaw, turn, leapTurn, gap) {
		b.leapt = now
		b.leap = fmt.Sprintf("the odometry leaps by %.2f m and %.2f rad within %v", way, base.Yaw-b.base.Yaw, gap.Round(time.Millisecond))
	}
}

// doubtful says why readings are not believed; empty when they are.
func (b *reading) doubtful(now time.Time) string {
	if b.leapt.IsZero() || now.Sub(b.leapt) > leapWait {
		return ""
	}
	return b.leap + ": the robot's driver was started anew, or two programs publish under this name; look which, before the next motion"
}
