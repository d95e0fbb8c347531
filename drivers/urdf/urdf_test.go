package urdf

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"
)

func load(t *testing.T, name string) *Robot {
	t.Helper()
	r, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// frame is a homogeneous transform by rows; this package's own arithmetic for its own tests.
type frame [3][4]float64

var unit = frame{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}

func (a frame) mul(b frame) (c frame) {
	for i := range 3 {
		for j := range 4 {
			for k := range 3 {
				c[i][j] += a[i][k] * b[k][j]
			}
		}
		c[i][3] += a[i][3]
	}
	return c
}

// turn is Rodrigues' formula about a unit axis.
func turn(u r3.Vec, a float64) frame {
	s, c := math.Sincos(a)
	v := 1 - c
	return frame{
		{c + u.X*u.X*v, u.X*u.Y*v - u.Z*s, u.X*u.Z*v + u.Y*s, 0},
		{u.Y*u.X*v + u.Z*s, c + u.Y*u.Y*v, u.Y*u.Z*v - u.X*s, 0},
		{u.Z*u.X*v - u.Y*s, u.Z*u.Y*v + u.X*s, c + u.Z*u.Z*v, 0},
	}
}

func shift(v r3.Vec) frame { return frame{{1, 0, 0, v.X}, {0, 1, 0, v.Y}, {0, 0, 1, v.Z}} }

// at is a link's frame in the root link for joint values by name.
func (r *Robot) at(link string, q map[string]float64) frame {
	j := r.Above(link)
	if j == nil {
		return unit
	}
	f := r.at(j.Parent, q).mul(shift(j.Origin.XYZ)).
		mul(turn(r3.Vec{Z: 1}, j.Origin.RPY.Z)).mul(turn(r3.Vec{Y: 1}, j.Origin.RPY.Y)).mul(turn(r3.Vec{X: 1}, j.Origin.RPY.X))
	v := q[j.Name]
	if m := j.Mimic; m != nil {
		v = m.Multiplier*q[m.Joint] + m.Offset
	}
	switch j.Type {
	case Revolute, Continuous:
		f = f.mul(turn(j.Axis, v))
	case Prismatic:
		f = f.mul(shift(r3.Scale(v, j.Axis)))
	}
	return f
}

// off is the distance to a position and the angle to a rotation given as a quaternion x, y, z, w.
func (a frame) off(p [3]float64, q [4]float64) (dist, angle float64) {
	x, y, z, w := q[0], q[1], q[2], q[3]
	n := math.Sqrt(x*x + y*y + z*z + w*w)
	x, y, z, w = x/n, y/n, z/n, w/n
	m := [3][3]float64{
		{1 - 2*(y*y+z*z), 2 * (x*y - z*w), 2 * (x*z + y*w)},
		{2 * (x*y + z*w), 1 - 2*(x*x+z*z), 2 * (y*z - x*w)},
		{2 * (x*z - y*w), 2 * (y*z + x*w), 1 - 2*(x*x+y*y)},
	}
	var d, diff float64
	for i := range 3 {
		d += (a[i][3] - p[i]) * (a[i][3] - p[i])
		for j := range 3 {
			diff += (a[i][j] - m[i][j]) * (a[i][j] - m[i][j])
		}
	}
	return math.Sqrt(d), math.Sqrt(diff / 2)
}

func stretch(l, e, yaw, pitch, roll float64) map[string]float64 {
	return map[string]float64{
		"lift_joint": l, "arm_l1_joint": e / 4, "wrist_yaw_joint": yaw, "wrist_pitch_joint": pitch, "wrist_roll_joint": roll,
	}
}

// The vectors of reference/robots.md 5.1, grasp centre in base_link.
func TestStretchVectors(t *testing.T) {
	r := load(t, "stretch4_sg4")
	for _, v := range []struct {
		q    [5]float64
		p    [3]float64
		quat [4]float64
	}{
		{[5]float64{}, [3]float64{.46668, -.08742, .15022}, [4]float64{0, 0, 0, 1}},
		{[5]float64{.6, .3, 0, 0, 0}, [3]float64{.76668, -.08742, .75022}, [4]float64{0, 0, 0, 1}},
		{[5]float64{.8, .2, .5, .3, -.4}, [3]float64{.66079, .05875, .86281}, [4]float64{-.22657, .09331, .26852, .93159}},
		{[5]float64{.15, 0, 3.14, 0, 0}, [3]float64{-.12474, .08789, .30022}, [4]float64{0, 0, 1, .0008}},
	} {
		f := r.at("tool", stretch(v.q[0], v.q[1], v.q[2], v.q[3], v.q[4]))
		f[2][3] -= 0.028 // base_footprint to base_link
		if d, a := f.off(v.p, v.quat); d > 1e-5 || a > 2e-5 {
			t.Errorf("%v: %.7f m and %.7f rad off", v.q, d, a)
		}
	}
}

// The closed form of reference/robots.md 5.1, for both grippers.
func TestStretchClosedForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, reach := range map[string]float64{"stretch4_sg4": 0.29578, "stretch4_pg4": 0.22768} {
		r := load(t, name)
		for range 2000 {
			u := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
			l, e, yaw, pitch, roll := u(0, 1.2), u(0, .52), u(-1.135, 4.276), u(-1.135, 4.276), u(-4.276, 1.135)
			const b = -.08742
			want := [3]float64{
				.1709 + e + reach*math.Cos(pitch)*math.Cos(yaw) - b*math.Sin(yaw),
				reach*math.Cos(pitch)*math.Sin(yaw) + b*math.Cos(yaw),
				.15022 + l - reach*math.Sin(pitch) + .028,
			}
			f := r.at("tool", stretch(l, e, yaw, pitch, roll))
			for i := range 3 {
				if math.Abs(f[i][3]-want[i]) > 1e-8 {
					t.Fatalf("%s at %.3f %.3f %.3f %.3f: axis %d is %.9f, closed form %.9f", name, l, e, yaw, pitch, i, f[i][3], want[i])
				}
			}
		}
	}
}

// The vectors of reference/robots.md 5.3. The flange is .107 m out on link7.
func TestFrankaVectors(t *testing.T) {
	ready := [7]float64{0, -math.Pi / 4, 0, -3 * math.Pi / 4, 0, math.Pi / 2, math.Pi / 4}
	other := [7]float64{.1, -.3, .2, -2.0, .4, 1.8, -.5}
	for _, name := range []string{"fr3", "panda"} {
		r := load(t, name)
		for _, v := range []struct {
			what  string
			q     [7]float64
			frame string
			out   float64
			p     [3]float64
			quat  [4]float64
		}{
			{"zeros", [7]float64{}, "link7", .107, [3]float64{.088, 0, .926}, [4]float64{1, 0, 0, 0}},
			{"ready", ready, "link7", .107, [3]float64{.30689, 0, .59028}, [4]float64{.92388, -.38268, 0, 0}},
			{"ready TCP", ready, "hand", .1034, [3]float64{.30689, 0, .48688}, [4]float64{1, 0, 0, 0}},
			{"other", other, "link7", .107, [3]float64{.44348, .18337, .59545}, [4]float64{-.92158, -.34743, -.06435, .16072}},
			{"other TCP", other, "hand", .1034, [3]float64{.44420, .21862, .49824}, [4]float64{-.71848, -.67366, -.12096, .12386}},
		} {
			q := map[string]float64{}
			for i, x := range v.q {
				q[name+"_joint"+string(rune('1'+i))] = x
			}
			f := r.at(v.frame, q).mul(shift(r3.Vec{Z: v.out}))
			if d, a := f.off(v.p, v.quat); d > 1e-5 || a > 2e-5 {
				t.Errorf("%s %s: %.7f m and %.7f rad off", name, v.what, d, a)
			}
		}
	}
}

// x_tool = z_hand, y_tool = -y_hand, z_tool = x_hand.
func TestFrankaToolConvention(t *testing.T) {
	r := load(t, "fr3")
	q := map[string]float64{"fr3_joint2": .4, "fr3_joint4": -1.3, "fr3_joint6": 2.1, "fr3_joint7": .7}
	hand, tool := r.at("hand", q), r.at("tool", q)
	for i := range 3 {
		for k, want := range [3]float64{hand[i][2], -hand[i][1], hand[i][0]} {
			if math.Abs(tool[i][k]-want) > 1e-12 {
				t.Errorf("row %d of tool axis %d is %v; wanted %v", i, k, tool[i][k], want)
			}
		}
	}
}

// Fingers meet at the closure point and part along the tool's y, left towards +y on Stretch.
func TestFingersMeetAtTheTool(t *testing.T) {
	for name, c := range map[string]struct{ joint, left, right string }{
		"fr3":          {"fr3_finger_joint1", "left_finger", "right_finger"},
		"panda":        {"panda_finger_joint1", "left_finger", "right_finger"},
		"stretch4_pg4": {"finger_left_joint", "finger_left", "finger_right"},
	} {
		r := load(t, name)
		q := map[string]float64{c.joint: 0.03}
		left, right, tool := r.at(c.left, q), r.at(c.right, q), r.at("tool", q)
		var gap, along float64
		for i := range 3 {
			d := left[i][3] - right[i][3]
			gap += d * d
			along += d * tool[i][1]
		}
		if math.Abs(math.Sqrt(gap)-0.06) > 1e-12 || math.Abs(math.Abs(along)-0.06) > 1e-12 {
			t.Errorf("%s: fingers %.4f apart, %.4f of it along the tool's y; wanted .06", name, math.Sqrt(gap), along)
		}
	}
}

func TestLimits(t *testing.T) {
	for name, want := range map[string][][3]float64{ // lower, upper, velocity; reference/robots.md 3.7
		"fr3": {
			{-2.7437, 2.7437, 2.62},
			{-1.7837, 1.7837, 2.62},
			{-2.9007, 2.9007, 2.62},
			{-3.0421, -.1518, 2.62},
			{-2.8065, 2.8065, 5.26},
			{.5445, 4.5169, 4.18},
			{-3.0159, 3.0159, 5.26},
		},
		"panda": {
			{-2.8973, 2.8973, 2.175},
			{-1.7628, 1.7628, 2.175},
			{-2.8973, 2.8973, 2.175},
			{-3.0718, -.0698, 2.175},
			{-2.8973, 2.8973, 2.61},
			{-.0175, 3.7525, 2.61},
			{-2.8973, 2.8973, 2.61},
		},
	} {
		r := load(t, name)
		for i, w := range want {
			j := r.Joint(name + "_joint" + string(rune('1'+i)))
			if got := [3]float64{j.Lower, j.Upper, j.Velocity}; got != w {
				t.Errorf("%s: %v; wanted %v", j.Name, got, w)
			}
		}
	}
	r := load(t, "stretch4_pg4")
	var reach float64
	for _, n := range []string{"arm_l1_joint", "arm_l2_joint", "arm_l3_joint", "arm_l4_joint"} {
		reach += r.Joint(n).Upper
	}
	if math.Abs(reach-0.52) > 1e-12 {
		t.Errorf("the arm's stages sum to %v m; wanted .52", reach)
	}
}

func TestLinkNames(t *testing.T) {
	arm := []string{"link0", "link1", "link2", "link3", "link4", "link5", "link6", "link7", "hand", "left_finger", "right_finger", "tool"}
	mobile := []string{
		"base_footprint", "base_link", "mast_link", "lift_link", "arm_l0_link", "arm_l1_link", "arm_l2_link", "arm_l3_link",
		"arm_l4_link", "wrist_link", "wrist_yaw_link", "wrist_pitch_link", "wrist_roll_link", "tool_site", "finger_left", "finger_right", "tool", "head_link",
	}
	for _, name := range Names() {
		want := mobile
		if name == "fr3" || name == "panda" {
			want = arm
		}
		r := load(t, name)
		var got []string
		for _, l := range r.Links {
			got = append(got, l.Name)
			if l.Name != "tool" && l.Name != "base_footprint" && (len(l.Collisions) == 0 || len(l.Visuals) == 0) {
				t.Errorf("%s: link %s has %d collision shapes and %d visuals", name, l.Name, len(l.Collisions), len(l.Visuals))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has links %v; wanted %v", name, got, want)
		}
		if r.Name != name || r.Root != want[0] {
			t.Errorf("%s is named %q with root %q", name, r.Name, r.Root)
		}
	}
}

func TestLoadUnknown(t *testing.T) {
	if _, err := Load("ur5"); err == nil {
		t.Error("ur5 loaded")
	}
	if _, err := Load("../models/fr3"); err == nil {
		t.Error("a path loaded")
	}
}
