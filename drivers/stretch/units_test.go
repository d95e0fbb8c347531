package stretch

import (
	"math"
	"testing"

	"viad/drivers/urdf"
	"viad/ros/msg/sensor_msgs"
)

// Numbers of the wire against apertures, computed by hand from a finger of 182.05 mm that opens to 150 mm: half the angle is
// asin(75/182.05) = 0.42462.
func TestGripUnits(t *testing.T) {
	const half = 0.42462019
	for _, c := range []struct {
		gen      Generation
		tool     string
		aperture float64
		joint    string
		goal     float64
		finger   float64 // each
	}{
		{GenA, toolSG4, 0.150, "gripper_joint", 300, half},
		{GenA, toolSG4, 0, "gripper_joint", -100, 0},
		{GenA, toolSG4, 0.0767227, "gripper_joint", 100, half / 2}, // half of the angle is half of the percent
		{GenAPrime, toolSG4, 0.150, "gripper_joint", half, half},
		{GenAPrime, toolSG4, 0, "gripper_joint", 0, 0},
		{GenB, toolSG4, 0.150, "gripper_joint", 2 * half, half}, // goals mean the whole angle, states half of it
		{GenB, toolSG4, 0.0767227, "gripper_joint", half, half / 2},
		{GenA, toolPG4, 0.080, "parallel_gripper_joint", 0.080, 0.040},
		{GenAPrime, toolPG4, 0.020, "parallel_gripper_joint", 0.020, 0.010},
		{GenB, toolPG4, 0.080, "parallel_gripper_joint", 0.080, 0.040},
	} {
		g := unitsOf(c.gen).grip[c.tool]
		if g.joint != c.joint {
			t.Errorf("%v %s: joint %q, want %q", c.gen, c.tool, g.joint, c.joint)
		}
		if x := g.goal(c.aperture); math.Abs(x-c.goal) > 0.005*math.Max(1e-2, math.Abs(c.goal)) {
			t.Errorf("%v %s: a goal of %v m is %v, want %v", c.gen, c.tool, c.aperture, x, c.goal)
		}
		if a := g.aperture(c.finger, c.finger); math.Abs(a-c.aperture) > 1e-5 {
			t.Errorf("%v %s: fingers at %v are %v m apart, want %v", c.gen, c.tool, c.finger, a, c.aperture)
		}
		if a := g.aperture(-c.finger, c.finger); math.Abs(a-c.aperture) > 1e-5 { // a mirrored finger counts the other way
			t.Errorf("%v %s: mirrored fingers are %v m apart, want %v", c.gen, c.tool, a, c.aperture)
		}
	}
}

// The telescope is out by 0.4 m: generation A publishes a fifth of it per stage, the others a quarter.
func TestStages(t *testing.T) {
	for g, stage := range map[Generation]float64{GenA: 0.08, GenAPrime: 0.1, GenB: 0.1} {
		m := &sensor_msgs.JointState{
			Name:     []string{"wrist_roll_joint", "arm_l4_joint", "arm_l1_joint", "arm_l2_joint", "arm_l3_joint", "wrist_pitch_joint", "lift_joint", "wrist_yaw_joint"},
			Position: []float64{-0.5, stage, stage, stage, stage, 0.3, 0.7, 0.2},
			Velocity: []float64{0, stage, stage, stage, stage, 0, 0, 0},
		}
		p := pick(m, unitsOf(g))
		want := []float64{0.7, 0.4, 0.2, 0.3, -0.5}
		for i := range want {
			if p.q == nil || math.Abs(p.q[i]-want[i]) > 1e-12 {
				t.Fatalf("%v: %v, want %v", g, p.q, want)
			}
		}
		if math.Abs(p.qd[jArm]-0.4) > 1e-12 {
			t.Errorf("%v: speed %v, want 0.4", g, p.qd[jArm])
		}
		if p.jaw {
			t.Error("a message without fingers has a jaw")
		}
		m.Name[3] = "arm_l9_joint"
		if pick(m, unitsOf(g)).q != nil {
			t.Error("three stages of four pass for an arm")
		}
	}
}

// Parallel grippers are also published as one joint, the whole aperture.
func TestFingerNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		at    []float64
	}{
		{[]string{"gripper_finger_left_joint", "gripper_finger_right_joint"}, []float64{0.03, 0.03}},
		{[]string{"finger_left", "finger_right"}, []float64{0.03, -0.03}},
		{[]string{"parallel_gripper_joint"}, []float64{0.06}},
	} {
		p := pick(&sensor_msgs.JointState{Name: c.names, Position: c.at}, unitsOf(GenB))
		if a := unitsOf(GenB).grip[toolPG4].aperture(p.fingers[0], p.fingers[1]); !p.jaw || math.Abs(a-0.06) > 1e-12 {
			t.Errorf("%v: aperture %v, want 0.06", c.names, a)
		}
	}
}

// The Model's limits are those of the description that everything else goes by, the arm's the sum of its stages.
func TestModelAgrees(t *testing.T) {
	for _, tool := range []string{toolPG4, toolSG4} {
		m, err := Model(tool)
		if err != nil {
			t.Fatal(err)
		}
		u, err := urdf.Load("stretch4_" + tool)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range m.Joints {
			lo, hi := 0.0, 0.0
			for _, o := range u.Joints {
				if o.Name == j.Name {
					lo, hi = o.Lower, o.Upper
				}
				if j.Name == "arm_joint" && len(o.Name) == 12 && o.Name[:5] == "arm_l" && o.Name[5] != '0' {
					lo, hi = lo+o.Lower, hi+o.Upper
				}
			}
			if math.Abs(lo-j.Min) > 1e-9 || math.Abs(hi-j.Max) > 1e-9 {
				t.Errorf("%s %s: %v to %v, the description has %v to %v", tool, j.Name, j.Min, j.Max, lo, hi)
			}
		}
	}
	if _, err := Model("hook"); err == nil {
		t.Error("a hook passes for a gripper")
	}
}

// The smaller of two limits counts, also the arm's.
func TestLimits(t *testing.T) {
	l, err := readLimits(description(0.1))
	if err != nil {
		t.Fatal(err)
	}
	if _, hi, ok := l.of("arm_joint"); !ok || math.Abs(hi-0.4) > 1e-12 {
		t.Errorf("the arm goes to %v, want 0.4", hi)
	}
	for _, doc := range []string{"", "<robot/>", "<robot", "no xml"} {
		if _, err := readLimits(doc); err == nil {
			t.Errorf("%q passes for a description", doc)
		}
	}
}
