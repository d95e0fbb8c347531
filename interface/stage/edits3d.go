package stage

import (
	"gonum.org/v1/gonum/spatial/r3"

	"viad/safety"
)

// place stages to(current target) on the 3D face and returns the closure point's displacement, robot frame.
func (s *Stage) place(op string, to func(d *draft) (Gripper, *safety.Refused)) (delta r3.Vec, err error) {
	err = s.edit(op, Face3D, func(d *draft) *safety.Refused {
		was := d.target.Pose.P
		g, r := to(d)
		if r != nil {
			return r
		}
		d.put(Face3D, g)
		delta = r3.Sub(g.Pose.P, was)
		return nil
	})
	if err != nil {
		return r3.Vec{}, err
	}
	return delta, nil
}

// Drag moves the target as a mouse would: right and down are pixels of the 1280x800 reference layout, and
// constraint is free (in the plane of the view last shown), x, y or z (one robot axis).
func (s *Stage) Drag(right, down float64, constraint string) (delta r3.Vec, err error) {
	return s.place("drag", func(d *draft) (Gripper, *safety.Refused) {
		if right == 0 && down == 0 {
			return Gripper{}, zero("u2 - u1", "v2 - v1")
		}
		v, ok := dragVector(s.view(), right, down, constraint)
		if !ok {
			return Gripper{}, refuse("unknown constraint", constraint, "free, x, y or z", "Use one of these.")
		}
		return Gripper{moved(d.target.Pose, v), d.target.Open}, nil
	})
}

// view is the camera the seat was last shown.
func (s *Stage) view() Orbit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pinned != nil {
		return s.pinned.Orbit
	}
	return s.orbit
}

// Translate moves the target on the robot axes by metres, each within Caps.Translate.
func (s *Stage) Translate(v r3.Vec) (delta r3.Vec, err error) {
	return s.place("translate", func(d *draft) (Gripper, *safety.Refused) {
		r := axes([3]string{"d_x", "d_y", "d_z"}, v, s.o.Caps.Translate)
		return Gripper{moved(d.target.Pose, v), d.target.Open}, r
	})
}

// Advance moves the target along its approach axis, AdvanceStep per step; negative retreats.
func (s *Stage) Advance(steps int) (delta r3.Vec, err error) {
	return s.place("advance", func(d *draft) (Gripper, *safety.Refused) {
		return Gripper{advanced(d.target.Pose, steps), d.target.Open}, stepCount(steps, s.o.Caps.Steps)
	})
}

// RotateGizmo turns the target in place by radians about its gizmo axis x, y or z.
func (s *Stage) RotateGizmo(axis string, rad float64) error {
	_, err := s.place("rotate", func(d *draft) (Gripper, *safety.Refused) {
		a, ok := gizmoAxis(axis)
		if !ok {
			return Gripper{}, refuse("unknown axis", axis, "x, y or z", "Use one of these.")
		}
		if r := within("angle", rad, s.o.Caps.Rotate, degrees); r != nil {
			return Gripper{}, r
		}
		if rad == 0 {
			return Gripper{}, zero("angle")
		}
		return Gripper{gizmoRotated(d.target.Pose, a, rad), d.target.Open}, nil
	})
	return err
}

// Toggle sets the target's jaw: toggle, open or closed. Asking for the state it has is not an error and
// changes nothing, unless the real jaw rests halfway: then it is asked for anew.
func (s *Stage) Toggle(state string) (changed bool, err error) {
	var same bool
	err = s.maybe("toggle", Face3D, func(d *draft) (bool, *safety.Refused) {
		open := !d.target.Open
		switch state {
		case "toggle":
		case "open", "closed":
			open = state == "open"
		default:
			return false, refuse("unknown state", state, "toggle, open or closed", "Use one of these.")
		}
		same = open == d.target.Open && (d.want.jaw || !s.between(d.state.Jaw))
		if !same {
			d.put(Face3D, Gripper{d.target.Pose, open})
			d.want.jaw = true
		}
		return !same, nil
	})
	return err == nil && !same, err
}

// ResetToReal puts the 3D target back on the real gripper.
func (s *Stage) ResetToReal() error {
	_, err := s.reset("reset", Face3D)
	return err
}
