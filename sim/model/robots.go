package model

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/sensor"
	"viad/drivers/urdf"
)

// robot is a robot before it stands in a world.
type robot struct {
	*Model
	tree *urdf.Robot
	file string // fragment in xml/
}

func newRobot(name string) (*robot, error) {
	switch name {
	case "fr3", "panda":
		return newFranka(name)
	case "stretch4":
		return newStretch()
	}
	return nil, fmt.Errorf("model: no robot %q; there are fr3, panda, stretch4", name)
}

// frankaHome is the maker's "ready" pose.
var frankaHome = [7]float64{0, -math.Pi / 4, 0, -3 * math.Pi / 4, 0, math.Pi / 2, math.Pi / 4}

func newFranka(name string) (*robot, error) {
	tree, err := urdf.Load(name)
	if err != nil {
		return nil, err
	}
	m := &Model{URDF: name, Tool: "tool"}
	for i, home := range frankaHome {
		j := tree.Joint(fmt.Sprintf("%s_joint%d", name, i+1))
		m.Joints = append(m.Joints, Joint{
			Name: j.Name, Parts: []string{j.Name}, Actuator: j.Name, Drive: Torque, Effort: j.Effort,
			Min: j.Lower, Max: j.Upper, Home: home,
		})
	}
	m.Jaw = Jaw{
		Joints:   [2]string{name + "_finger_joint1", name + "_finger_joint2"},
		Actuator: "jaw", Pads: [2]string{"left_pad", "right_pad"},
		Max: 0.08, Home: 0.08, Force: 40,
	}
	// On a bracket in front of the palm, turned back towards the closure point: the picture's top is
	// away from the robot's base in the ready pose, and the finger tips show at its lower edge.
	eye := r3.Vec{X: 0.070, Z: 0.040}
	wrist := lookAt(eye, r3.Add(eye, r3.Vec{X: -math.Sin(geom.Rad(22)), Z: math.Cos(geom.Rad(22))}), r3.Vec{X: 1})
	m.Cameras = []Camera{camera("wrist", "hand", wrist, 640, 480, geom.Rad(70))}
	m.Cameras[0].Depth = true
	return &robot{Model: m, tree: tree, file: "franka.xml"}, nil
}

// stretchHome: arm out a little, wrist level and forward, jaw open.
var stretchHome = [5]float64{0.85, 0.10, 0, 0, 0}

func newStretch() (*robot, error) {
	tree, err := urdf.Load("stretch4_pg4")
	if err != nil {
		return nil, err
	}
	m := &Model{URDF: "stretch4_pg4", Tool: "tool"}
	m.Joints = []Joint{
		{Name: "lift_joint", Prismatic: true, Kp: 8000, Kv: 600},
		{
			Name: "arm_joint", Prismatic: true, Kp: 4000, Kv: 400,
			Parts: []string{"arm_l1_joint", "arm_l2_joint", "arm_l3_joint", "arm_l4_joint"},
		},
		{Name: "wrist_yaw_joint", Kp: 120, Kv: 6},
		{Name: "wrist_pitch_joint", Kp: 120, Kv: 6},
		{Name: "wrist_roll_joint", Kp: 120, Kv: 6},
	}
	for i := range m.Joints {
		j := &m.Joints[i]
		if j.Parts == nil {
			j.Parts = []string{j.Name}
		}
		for _, p := range j.Parts {
			u := tree.Joint(p)
			j.Min, j.Max, j.Effort = j.Min+u.Lower, j.Max+u.Upper, u.Effort
		}
		j.Actuator, j.Drive, j.Home, j.Weightless = j.Name, Position, stretchHome[i], true
	}
	m.Base = &Base{
		Joints: [3]string{"base_x", "base_y", "base_yaw"}, Actuators: [3]string{"base_x", "base_y", "base_yaw"},
		Kv: [3]float64{2000, 2000, 300}, Effort: [3]float64{120, 120, 30},
	}
	m.Jaw = Jaw{
		Joints:   [2]string{"finger_left_joint", "finger_right_joint"},
		Actuator: "jaw", Pads: [2]string{"left_pad", "right_pad"},
		Max: 0.08, Home: 0.08, Force: 30,
	}
	m.Cameras = stretchCameras()
	for _, l := range []struct {
		name string
		y    float64
	}{{"lidar_left", 0.2224}, {"lidar_right", -0.0264}} { // stretch4_urdf: the two Hesai lidars
		m.Lidars = append(m.Lidars, Lidar{Name: l.name, Mount: sensor.Mount{Link: "head_link", Pose: geom.At(0.1317, l.y, -0.0583)}})
	}
	return &robot{Model: m, tree: tree, file: "stretch4.xml"}, nil
}

func stretchCameras() []Camera {
	// Centre camera of the head, pitched 35 degrees down (stretch4_urdf). Its field of view is not public;
	// the paper's head picture is about 65 degrees wide.
	head := pitched(r3.Vec{X: 0.1772, Y: 0.0980, Z: -0.0239}, geom.Rad(35))
	// Left eye of the wrist's stereo camera: on the roll link at (.0192, 0, .057), pitched 3 degrees down,
	// baseline 20 mm (stretch4_urdf); 640x400.
	eye := pitched(r3.Vec{X: 0.0192, Y: 0.010, Z: 0.057}, 0.05236)
	out := []Camera{
		camera("head", "head_link", head, 960, 720, fovyOf(geom.Rad(65), 960, 720)),
		camera("wrist", "wrist_roll_link", eye, 640, 400, fovyOf(geom.Rad(70), 640, 400)),
	}
	out[1].Depth, out[1].Stereo = true, true
	return out
}

func camera(name, link string, optical geom.Pose, w, h int, fovy float64) Camera {
	return Camera{
		Name: name, Mount: sensor.Mount{Link: link, Pose: optical},
		Intrinsics: sensor.FromFovy(w, h, fovy), Fovy: fovy,
	}
}

// fovyOf is the vertical field of view of a picture that is fovx wide.
func fovyOf(fovx float64, w, h int) float64 {
	return 2 * math.Atan(math.Tan(fovx/2)*float64(h)/float64(w))
}

// lookAt is an optical frame (z into the scene, x right, y down) at eye, looking at to, with the
// picture's top towards up.
func lookAt(eye, to, up r3.Vec) geom.Pose {
	z := r3.Unit(r3.Sub(to, eye))
	x := r3.Unit(r3.Cross(z, up))
	return geom.Pose{P: eye, R: geom.FromAxes(x, r3.Cross(z, x))}
}

// pitched is an optical frame that looks along its link's x, turned down by pitch, top up.
func pitched(eye r3.Vec, pitch float64) geom.Pose {
	s, c := math.Sincos(pitch)
	return lookAt(eye, r3.Add(eye, r3.Vec{X: c, Z: -s}), r3.Vec{Z: 1})
}

// mujocoCamera turns an optical frame into MuJoCo's camera frame, which looks along -z with y up.
func mujocoCamera(optical geom.Pose) geom.Pose {
	return geom.Pose{P: optical.P, R: geom.Normalize(quat.Mul(optical.R, geom.RotX(math.Pi)))}
}
