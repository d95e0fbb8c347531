package control

// Description is what is known of a robot beyond its URDF: which joints are driven and how, how fast they
// may go, and how its links count for clearance.
type Description struct {
	Name    string // the robot's name in messages
	URDF    string // name for urdf.Load
	Mobile  bool
	Joints  []JointDesc
	Jaw     JawDesc
	Tool    string            // link whose frame is the tool convention's
	Classes map[string]string // link name to "base", "hand" or "finger"; others are "arm"
	Pitch   string            // URDF joint whose axis the wrist mount is nearest to; empty: no wrist mount
	Home    []float64         // a comfortable posture: first seed, and what the redundancy is pulled to
	Margin  float64           // radians: how far plans keep from a revolute joint's limit
}

// JointDesc is one driven joint in Model order. Vel and Acc are the machine's own limits; PlanVel and
// PlanAcc are what plans use at an operator's speed scale of 1. rad/s or m/s, and per second again.
type JointDesc struct {
	Name             string
	Drives           []string // URDF joints moved together, each by an equal share; nil: the joint of that name
	Vel, Acc         float64
	PlanVel, PlanAcc float64
	Envelope         *Envelope
}

// Envelope is a speed limit that shrinks towards the position limits, as libfranka enforces it on the FR3:
// speed <= min(Vel, max(0, sqrt(C (Hi - q)) - O)) upwards, and the mirror with (q - Lo) downwards.
type Envelope struct{ O, C, Lo, Hi float64 }

// JawDesc maps the aperture to finger joints: position = Shut + aperture/Max * (Open - Shut).
type JawDesc struct {
	Max    float64 // metres between the pads
	Speed  float64 // metres per second of aperture
	Force  float64 // newtons
	Joints []FingerDesc
}

// FingerDesc is a finger's URDF joint with its positions when the jaw is shut and when it is fully open.
type FingerDesc struct {
	Joint      string
	Shut, Open float64
}

// base limits of a mobile robot: the default column of the vendor's table.
const (
	baseVel    = 0.3  // m/s
	baseAcc    = 0.25 // m/s^2
	baseYawVel = 0.6  // rad/s; the vendor's default is 2, which swings an outstretched arm at 2 m/s
	baseYawAcc = 0.6  // rad/s^2
)

// The share of a Franka's limits that plans use, and the margin in radians to its position limits: the
// daemon's budget of the driver notes.
const (
	velShare     = 0.4
	accShare     = 0.3
	frankaMargin = 0.1
)

func franka(name, urdf, prefix string, vel, acc [7]float64, home []float64, env [7]*Envelope) Description {
	d := Description{
		Name: name, URDF: urdf, Tool: "tool", Home: home, Margin: frankaMargin,
		Classes: map[string]string{"link0": "base", "hand": "hand", "left_finger": "finger", "right_finger": "finger"},
		Jaw: JawDesc{Max: 0.08, Speed: 0.1, Force: 40, Joints: []FingerDesc{
			{prefix + "_finger_joint1", 0, 0.04}, {prefix + "_finger_joint2", 0, 0.04},
		}},
	}
	for i := range 7 {
		d.Joints = append(d.Joints, JointDesc{
			Name: prefix + "_joint" + string(rune('1'+i)), Vel: vel[i], Acc: acc[i],
			PlanVel: velShare * vel[i], PlanAcc: accShare * acc[i], Envelope: env[i],
		})
	}
	return d
}

// ready is Franka's own "ready" posture: hand down in front of the arm.
var ready = [7]float64{0, -0.7853981634, 0, -2.3561944902, 0, 1.5707963268, 0.7853981634}

// FR3 is the Franka Research 3 with hand. Limits: franka_description robots/fr3/joint_limits.yaml;
// envelopes: libfranka rate_limiting.h.
func FR3() Description {
	env := func(o, c, lo, hi float64) *Envelope { return &Envelope{o, c, lo, hi} }
	return franka("FR3", "fr3", "fr3",
		[7]float64{2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26},
		[7]float64{10, 10, 10, 10, 10, 10, 10}, ready[:],
		[7]*Envelope{
			env(.30, 12, -2.7501, 2.7501), env(.20, 5.17, -1.7918, 1.7918), env(.20, 7, -2.9065, 2.9065),
			env(.30, 8, -3.0481, -.1458), env(.35, 34, -2.8101, 2.8101), env(.35, 11, .54092, 4.5205),
			env(.35, 34, -3.0196, 3.0196),
		})
}

// Panda is the Franka Emika Robot (FER) with hand. Limits: franka_description robots/fer/joint_limits.yaml.
func Panda() Description {
	return franka("Panda", "panda", "panda",
		[7]float64{2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61},
		[7]float64{15, 7.5, 10, 12.5, 15, 20, 20}, ready[:], [7]*Envelope{})
}

// Stretch4 is the Hello Robot Stretch 4 with the parallel gripper PG4. Ranges and speeds: stretch4_body
// robot_params_SE4.py, plans use its default column; the arm ends at the URDF's 0.52 m. The wrist's default
// of 7 rad/s is for an empty gripper that may swing: plans use 2; its acceleration is not published.
func Stretch4() Description {
	wrist := func(name string) JointDesc {
		return JointDesc{Name: name, Vel: 12, Acc: 20, PlanVel: 2, PlanAcc: 4}
	}
	return Description{
		Name: "Stretch 4", URDF: "stretch4_pg4", Mobile: true, Tool: "tool", Pitch: "wrist_pitch_joint",
		Joints: []JointDesc{
			{Name: "lift_joint", Vel: 0.5, Acc: 1.0, PlanVel: 0.3, PlanAcc: 0.3},
			{
				Name: "arm_joint", Drives: []string{"arm_l1_joint", "arm_l2_joint", "arm_l3_joint", "arm_l4_joint"},
				Vel: 0.7, Acc: 0.7, PlanVel: 0.4, PlanAcc: 0.4,
			},
			wrist("wrist_yaw_joint"), wrist("wrist_pitch_joint"), wrist("wrist_roll_joint"),
		},
		Jaw: JawDesc{Max: 0.08, Speed: 0.08, Force: 20, Joints: []FingerDesc{
			{"finger_left_joint", 0, 0.04}, {"finger_right_joint", 0, 0.04},
		}},
		Classes: map[string]string{
			"base_footprint": "base", "base_link": "base", "mast_link": "base", "head_link": "base",
			"wrist_yaw_link": "hand", "wrist_pitch_link": "hand", "wrist_roll_link": "hand", "tool_site": "hand",
			"finger_left": "finger", "finger_right": "finger",
		},
		Home:   []float64{0.6, 0.1, 0, 0, 0},
		Margin: 0.02,
	}
}
