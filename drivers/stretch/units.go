package stretch

import (
	"fmt"
	"math"

	"viad/drivers/robot"
)

// Generation is which of the robot's drivers answers.
type Generation int

// The generations. Stretch 3 is recognised and refused.
const (
	GenUnknown Generation = iota
	GenA                  // the first: modes by one parameter, the arm's stages add up to four fifths
	GenAPrime             // the same, with speeds as parameters and stages that add up
	GenB                  // modes per joint, position and velocity topics
	GenStretch3
)

// String is the generation as facts name it.
func (g Generation) String() string {
	return [...]string{"unknown", "Stretch 4, driver A", "Stretch 4, driver A'", "Stretch 4, driver B", "Stretch 3"}[g]
}

// Grippers.
const (
	toolPG4 = "pg4" // parallel
	toolSG4 = "sg4" // compliant
)

// Geometry of the grippers.
const (
	fingerLength = 0.18205 // m, SG4
	apertureSG4  = 0.150   // m
	aperturePG4  = 0.080   // m
	percentShut  = -100.0  // SG4's servo
	percentOpen  = 300.0
)

// units is what one generation's numbers mean: the only place where numbers of the wire and of the Model meet.
type units struct {
	stages float64    // extension of the arm for each unit of the sum of its stages
	signs  [5]float64 // of the Model's joints on the wire, states and goals alike
	grip   map[string]gripUnits
}

// gripUnits are functions between the wire and the aperture in metres.
type gripUnits struct {
	joint    string // that goals name
	goal     func(aperture float64) float64
	aperture func(left, right float64) float64 // from the two fingers' states
}

// fullAngle is the angle between SG4's fingers for an aperture, a chord of the fingers' length.
func fullAngle(aperture float64) float64 {
	return 2 * math.Asin(math.Max(-1, math.Min(1, aperture/(2*fingerLength))))
}

// chord is the aperture for SG4's fingers, each by its own half of the angle.
func chord(left, right float64) float64 {
	return 2 * fingerLength * math.Sin((math.Abs(left)+math.Abs(right))/2)
}

// percent is the servo's number, linear in the angle between the fingers.
func percent(aperture float64) float64 {
	return percentShut + (percentOpen-percentShut)*fullAngle(aperture)/fullAngle(apertureSG4)
}

func same(x float64) float64 { return x }

// slide is the aperture of PG4's fingers, each by its own way from the middle.
func slide(left, right float64) float64 { return math.Abs(left) + math.Abs(right) }

// unitsOf is the table. y is to the left and pitch points down in all of them; roll and its limits are the URDF's. What of
// it is assumed, and how it would show, stands in docs/field-faults.md.
func unitsOf(g Generation) units {
	plain := [5]float64{1, 1, 1, 1, 1}
	pg4 := gripUnits{"parallel_gripper_joint", same, slide}
	switch g {
	case GenA:
		return units{5.0 / 4, plain, map[string]gripUnits{toolPG4: pg4, toolSG4: {"gripper_joint", percent, chord}}}
	case GenAPrime:
		half := func(a float64) float64 { return fullAngle(a) / 2 }
		return units{1, plain, map[string]gripUnits{toolPG4: pg4, toolSG4: {"gripper_joint", half, chord}}}
	case GenB: // fingers report half of the angle that goals mean
		return units{1, plain, map[string]gripUnits{toolPG4: pg4, toolSG4: {"gripper_joint", fullAngle, chord}}}
	default:
		return units{}
	}
}

// toolOf takes the gripper from the robot's own name of its tool.
func toolOf(name string) (string, error) {
	switch name {
	case "eoa_wrist_dw4_tool_pg4":
		return toolPG4, nil
	case "eoa_wrist_dw4_tool_sg4":
		return toolSG4, nil
	}
	return "", fmt.Errorf("the robot says that its tool is %q; this driver knows eoa_wrist_dw4_tool_pg4 and eoa_wrist_dw4_tool_sg4: mount one of them and set the robot's tool parameter", name)
}

// Joints of the Model by their places.
const (
	jLift = iota
	jArm
	jYaw
	jPitch
	jRoll
	joints
)

// stageNames are the arm's stages from the mast outwards.

func stageNames() [4]string {
	return [4]string{"arm_l1_joint", "arm_l2_joint", "arm_l3_joint", "arm_l4_joint"}
}

// Model is a Stretch 4 with the gripper, "pg4" or "sg4": the smaller of the body's limits and the URDF's.
func Model(tool string) (*robot.Model, error) {
	m := &robot.Model{
		Name: "Stretch 4", Mobile: true,
		Joints: []robot.Joint{
			{Name: "lift_joint", Prismatic: true, Max: 1.2, Vel: 0.5, Acc: 1},
			{Name: "arm_joint", Prismatic: true, Max: 0.52, Vel: 0.7, Acc: 0.7},
			{Name: "wrist_yaw_joint", Min: -1.135, Max: 4.276, Vel: 12, Acc: 20},
			{Name: "wrist_pitch_joint", Min: -1.135, Max: 4.276, Vel: 12, Acc: 20},
			{Name: "wrist_roll_joint", Min: -4.276, Max: 1.135, Vel: 12, Acc: 20},
		},
		Jaw: robot.JawSpec{Max: aperturePG4, Speed: 0.08, Force: 20},
	}
	switch tool {
	case toolPG4:
	case toolSG4:
		m.Jaw.Max, m.Jaw.Speed = apertureSG4, 0.15
	default:
		return nil, fmt.Errorf("stretch: no gripper %q, there are %q and %q", tool, toolPG4, toolSG4)
	}
	return m, nil
}
