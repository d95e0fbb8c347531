package wire

import (
	"fmt"
	"math"
	"slices"

	"viad/ros"
)

// The tools that a face can show. The twin's hand is the parallel one in either case.
const (
	toolParallel  = "eoa_wrist_dw4_tool_pg4"
	toolCompliant = "eoa_wrist_dw4_tool_sg4"
)

const (
	fingerLength = 0.18205 // m, of the compliant gripper
	compliantMax = 0.150   // m, its aperture at 300 percent; at -100 it is shut, and the angle is linear between
	fullPercent  = 300.0
	shutPercent  = -100.0
	jawShut      = 0.002 // m: an aperture below it presses
	shiftJoint   = "translate_mobile_base"
	jawJoint     = "gripper_joint"
)

// aperture is what a goal of the gripper means. The parallel one's is metres in every generation. The compliant one's is
// percent in generation A, the angle of a finger in A', and the angle between the fingers in B.
func (w *Stretch) aperture(x float64) float64 {
	if w.tool == toolCompliant {
		switch w.gen {
		case GenerationA:
			x = 2 * fingerLength * math.Sin(math.Asin(compliantMax/2/fingerLength)*(x-shutPercent)/(fullPercent-shutPercent))
		case GenerationAPrime:
			x = 2 * fingerLength * math.Sin(x)
		case GenerationB:
			x = 2 * fingerLength * math.Sin(x/2)
		}
	}
	if !(x >= jawShut) {
		return jawPress
	}
	return x
}

// finger is what joint_states says of a finger at an aperture: half of it, or, of the compliant one, its angle.
func (w *Stretch) finger(aperture float64) float64 {
	if w.tool == toolCompliant {
		return math.Asin(math.Min(1, aperture/2/fingerLength))
	}
	return aperture / 2
}

// alias is a joint's own name: generation B knows others of the gripper.
func (w *Stretch) alias(name string) string {
	if w.gen == GenerationB && (name == "stretch_gripper_joint" || name == "gripper_aperture") {
		return jawJoint
	}
	return name
}

func isJaw(name string) bool { return name == jawJoint || name == "parallel_gripper_joint" }

func stretchJoints() []string {
	return []string{lift: "lift_joint", arm5: "arm_joint", yaw: "wrist_yaw_joint", pitch: "wrist_pitch_joint", roll: "wrist_roll_joint"}
}

func (w *Stretch) joint(name string) (int, bool) {
	i := slices.Index(stretchJoints(), name)
	return i, i >= 0
}

// param is a parameter's present value, or without one the given.
func param[T ros.ParamType](w *Stretch, name string, without T) T {
	p, has := w.params.Get(name)
	if !has {
		return without
	}
	v, err := ros.As[T](p)
	if err != nil {
		return without
	}
	return v
}

func (w *Stretch) declare() (err error) {
	var ps []ros.Declared
	add := func(p ros.Param) { ps = append(ps, ros.Declared{Param: p}) }
	add(ros.P("mode", w.mode))
	add(ros.P("broadcast_odom_tf", false))
	if w.gen == GenerationB {
		w.declareB(add)
	} else {
		add(ros.P("action_timeout", 3.0))
		add(ros.P("velocity_timeout", 0.5)) // it exists, and nothing reads it
	}
	if w.gen == GenerationAPrime {
		for _, n := range []string{"lift", "arm", "wrist_yaw", "wrist_pitch", "wrist_roll", "gripper"} {
			add(ros.P("joint_velocity."+n, 0.3))
		}
	}
	w.params, err = ros.ServeParams(w.node, ps, w.setParams)
	return err
}

func (w *Stretch) declareB(add func(ros.Param)) {
	add(ros.P("trajectory_server.mode", "target_priority"))
	add(ros.P("trajectory_server.strict_mode", false))
	add(ros.P("trajectory_server.timeout", 5.0))
	add(ros.P("trajectory_server.default_tolerance", 0.05))
	add(ros.P("trajectory_server.loop_rate", 50.0))
	add(ros.P("trajectory_server.settle_before_return", false))
	add(ros.P("trajectory_server.tolerance.lift_joint", doneSlides))
	add(ros.P("trajectory_server.tolerance.arm_joint", doneSlides))
	for _, j := range append(stretchJoints(), jawJoint) {
		w.each[j] = modePosition
		add(ros.P("joint_mode."+j, modePosition))
		for _, n := range []string{"upper", "lower", "velocity", "acceleration"} {
			add(ros.P("joint_limit."+j+"."+n, 0.0)) // a real robot fills in none
		}
	}
}

// setParams is asked before parameters are set. That of the mode takes effect here.
func (w *Stretch) setParams(set []ros.Param) error {
	for _, p := range set {
		joint, ofJoint := cutJointMode(p.Name)
		switch {
		case p.Name == "mode":
			mode, err := ros.As[string](p)
			if err != nil {
				return err
			}
			if err := w.enter(mode); err != nil {
				return err
			}
		case ofJoint:
			mode, err := ros.As[string](p)
			if err != nil {
				return err
			}
			if mode != modePosition && mode != modeVelocity && mode != "settling" {
				return fmt.Errorf("a joint has no mode %q; it has position, velocity and settling", mode)
			}
			w.enterJoint(joint, mode)
		case p.Name == "trajectory_server.mode":
			if m, err := ros.As[string](p); err != nil || !slices.Contains([]string{"target_priority", "time_priority", "adaptive_velocity"}, m) {
				return fmt.Errorf("the trajectory server has no mode %q", m)
			}
		}
	}
	return nil
}

// enterJoint changes the mode of one joint of generation B; one that moved with a velocity comes to rest.
func (w *Stretch) enterJoint(joint, mode string) {
	w.mu.Lock()
	other := w.each[joint] != mode
	w.each[joint] = mode
	w.mu.Unlock()
	if !other {
		return
	}
	if j, known := w.joint(joint); known {
		w.body.mu.Lock()
		w.body.joint[j].halt()
		w.body.mu.Unlock()
	}
	w.end(codeInvalid, "the mode of "+joint+" changed")
}
