package stage

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/safety"
)

// pose stages to(current target) as a 2D pose edit.
func (s *Stage) pose(op string, args *safety.Refused, to func(d *draft) geom.Pose) error {
	return s.edit(op, Face2D, func(d *draft) *safety.Refused {
		if r := s.kind(d, ModePose); r != nil {
			return r
		}
		if args != nil {
			return args
		}
		d.put(Face2D, Gripper{to(d), d.target.Open})
		return nil
	})
}

// TranslateRobot moves the target by metres on the robot axes: those of the current real base.
func (s *Stage) TranslateRobot(v r3.Vec) error {
	return s.pose("robot translate", axes([3]string{"dx_m", "dy_m", "dz_m"}, v, s.o.Caps.RobotStep),
		func(d *draft) geom.Pose { return moved(d.target.Pose, d.state.Base.Pose().Dir(v)) })
}

// TranslateWrist moves the target by metres on its own axes.
func (s *Stage) TranslateWrist(v r3.Vec) error {
	return s.pose("wrist translate", axes([3]string{"dx_m", "dy_m", "dz_m"}, v, s.o.Caps.WristStep),
		func(d *draft) geom.Pose { return moved(d.target.Pose, d.target.Pose.Dir(v)) })
}

// RotateWrist turns the target by radians: roll (counter-clockwise in the wrist view), then up, then left,
// each about the axes as already turned; the tilts pivot at the wrist mount.
func (s *Stage) RotateWrist(roll, up, left float64) error {
	var args *safety.Refused
	for _, a := range []struct {
		name string
		rad  float64
	}{{"roll_deg", roll}, {"tilt_up_deg", up}, {"tilt_left_deg", left}} {
		if args == nil {
			args = within(a.name, a.rad, s.o.Caps.WristTurn, degrees)
		}
	}
	if args == nil && roll == 0 && up == 0 && left == 0 {
		args = zero("roll_deg", "tilt_up_deg", "tilt_left_deg")
	}
	return s.pose("wrist rotate", args,
		func(d *draft) geom.Pose { return wristRotated(d.target.Pose, s.o.Kin.WristMount(), roll, up, left) })
}

// SetJaw stages the jaw alone. Asking for the state the target has is refused, unless the jaw rests halfway; flipping
// back is not.
func (s *Stage) SetJaw(open bool) error {
	return s.edit("set jaw", Face2D, func(d *draft) *safety.Refused {
		if r := s.kind(d, ModeGripper); r != nil {
			return r
		}
		if d.target.Open == open && (d.want.mode == ModeGripper || !s.between(d.state.Jaw)) {
			return refuse(RuleAlready, jaw(open), "the other state", "Ask for "+jaw(!open)+", or go on without a jaw waypoint.")
		}
		d.want.mode, d.want.open, d.target.Open = ModeGripper, open, open
		return nil
	})
}

// NavTranslate adds metres to the staged base motion, along the staged heading.
func (s *Stage) NavTranslate(dx, dy float64) error {
	return s.nav("nav translate", axes([3]string{"dx_m", "dy_m"}, r3.Vec{X: dx, Y: dy}, s.o.Caps.NavStep), geom.SE2{X: dx, Y: dy})
}

// NavRotate adds radians, counter-clockwise from above, to the staged base motion.
func (s *Stage) NavRotate(rad float64) error {
	args := within("angle_deg", rad, s.o.Caps.NavTurn, degrees)
	if args == nil && rad == 0 {
		args = zero("angle_deg")
	}
	return s.nav("nav rotate", args, geom.SE2{Yaw: rad})
}

func (s *Stage) nav(op string, args *safety.Refused, by geom.SE2) error {
	return s.edit(op, Face2D, func(d *draft) *safety.Refused {
		if r := s.kind(d, ModeNav); r != nil {
			return r
		}
		if args != nil {
			return args
		}
		to := d.want.delta.Mul(by)
		next := "Execute what is staged and go on from there, or reset_target."
		if !(to.Norm() <= s.o.Caps.NavTravel+capTolerance) {
			return refuse("staged base displacement", meters.of(to.Norm()), meters.of(s.o.Caps.NavTravel), next)
		}
		if !(math.Abs(to.Yaw) <= s.o.Caps.NavHeading+capTolerance) {
			return refuse("staged base turn", degrees.of(to.Yaw), degrees.of(s.o.Caps.NavHeading), next)
		}
		d.want.mode, d.want.delta = ModeNav, to
		d.target.Pose = onBase(d.state.Base, to, d.real.Pose)
		return nil
	})
}

// ResetTarget discards what is staged on the 2D face; wasStaged is false when there was nothing, which is
// not an error.
func (s *Stage) ResetTarget() (wasStaged bool, err error) { return s.reset("reset", Face2D) }

func (s *Stage) reset(op string, face Face) (was bool, err error) {
	err = s.maybe(op, face, func(d *draft) (bool, *safety.Refused) {
		was = d.want.set || d.want.mode != ModeNone
		d.want, d.target = staged{}, d.real
		return was, nil
	})
	return was && err == nil, err
}
