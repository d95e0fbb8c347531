package stage

import (
	"log/slog"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/safety"
)

// draft is an edit in the making: committed as a whole or not at all.
type draft struct {
	live
	want   staged
	target Gripper
}

// put moves the draft's target to g, taking a resting 3D target off the real gripper.
func (d *draft) put(face Face, g Gripper) {
	d.want.pose, d.want.open, d.target = g.Pose, g.Open, g
	if face == Face3D {
		d.want.set = true
		return
	}
	d.want.mode = ModePose
}

// edit stages what f makes of a copy, or refuses and changes nothing.
func (s *Stage) edit(op string, face Face, f func(*draft) *safety.Refused) error {
	return s.maybe(op, face, func(d *draft) (bool, *safety.Refused) { return true, f(d) })
}

// maybe runs f on a copy and, when f says that something changed, checks the cumulative caps, plans and judges
// the result and commits it.
func (s *Stage) maybe(op string, face Face, f func(*draft) (bool, *safety.Refused)) error {
	if face != s.o.Face {
		return s.refused(op, refuse(RuleFace, op, "", "Use the tools of this face."))
	}
	driver, r := s.enter() // before work, so that nobody waits for an execute's planning
	if r != nil {
		return s.refused(op, r)
	}
	s.work.Lock()
	defer s.work.Unlock()
	if r := s.locked(s.busy); r != nil {
		return s.refused(op, r)
	}
	d := draft{live: s.live()}
	if !d.ok {
		return s.refused(op, refuse(RuleNoState, "joints, base or jaw not reported", "all of them", "Wait for the robot, look again, then repeat this call."))
	}
	if d.want, r = s.current(driver); r != nil {
		return s.refused(op, r)
	}
	d.target = s.target(d.want, d.live)
	changed, r := f(&d)
	if r == nil && changed {
		r = s.travel(&d)
	}
	if r != nil || !changed {
		return s.refused(op, r)
	}
	v := s.judge(d.want, d.live, s.o.Scenes.Scene())
	if r := s.commit(d.want, v, driver); r != nil {
		return s.refused(op, r)
	}
	s.log.Debug("staged", slog.String("op", op), slog.String("mode", d.want.mode.String()), slog.String("at", vecText(d.target.Pose.P)),
		slog.Bool("reachable", v.check.Reachable), slog.Bool("clear", v.check.Clear))
	return nil
}

func (s *Stage) locked(f func() *safety.Refused) *safety.Refused {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

// current is what driver has staged.
func (s *Stage) current(driver uint64) (staged, *safety.Refused) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.staged, s.gone(driver)
}

// commit stages w, unless the driver who wanted it has gone.
func (s *Stage) commit(w staged, v verdict, driver uint64) *safety.Refused {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.gone(driver); r != nil {
		return r
	}
	s.staged, s.verdict, s.stale = w, v, false
	s.rev++
	return nil
}

// travel checks the net displacement from the real gripper, whatever sequence of edits led there.
func (s *Stage) travel(d *draft) *safety.Refused {
	if !d.target.Pose.Finite() {
		return refuse("target not finite", vecText(d.target.Pose.P), "", "Reset the target.")
	}
	limit, next := s.o.Caps.Travel, "Come nearer with nav_translate and execute_waypoint first, or stage a nearer target."
	if s.o.Face == Face3D {
		limit, next = s.o.Caps.Travel3D, "Stage a nearer target and execute it first."
		if limit == 0 {
			return nil
		}
	} else if d.want.mode != ModePose {
		return nil
	}
	if dist := d.target.Pose.Dist(d.real.Pose); !(dist <= limit+capTolerance) {
		return refuse("staged distance from the real gripper", meters.of(dist), meters.of(limit), next)
	}
	return nil
}

// TeleportTo stages the gripper TeleportBack behind p (odometry frame) along its approach axis.
func (s *Stage) TeleportTo(p r3.Vec) error {
	return s.edit("teleport", s.o.Face, func(d *draft) *safety.Refused {
		if r := s.kind(d, ModePose); r != nil {
			return r
		}
		if !geom.FiniteVec(p) {
			return refuse("scene point not finite", vecText(p), "", "Click another point.")
		}
		d.put(s.o.Face, Gripper{teleported(d.target.Pose, p), d.target.Open})
		d.want.teleported = s.o.Face == Face2D
		return nil
	})
}

// kind refuses a 2D edit of another kind than what is staged.
func (s *Stage) kind(d *draft, m Mode) *safety.Refused {
	if s.o.Face == Face3D || d.want.mode == ModeNone || d.want.mode == m {
		return nil
	}
	return refuse(RuleMixed, "a "+m.String()+" edit", "a "+d.want.mode.String()+" waypoint is staged",
		"Call execute_waypoint to run it, or reset_target to discard it.")
}
