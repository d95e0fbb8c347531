// Package model writes the twin's physics models: robots and worlds in MuJoCo's XML, with all that
// the twin has to know about them beside the XML.
//
// Robots are fr3, panda (both with the Franka Hand) and stretch4 (with the PG4 gripper). Their body
// trees, joint ranges and collision capsules come from drivers/urdf, so that a body or joint has
// one name and one place in both; masses, pads, drives and looks are fragments in xml/. Worlds are
// tabletop and room; Seed places what can be moved.
//
// Units are SI and radians. Poses are in the XML's world frame unless a name says otherwise.
// tabletop: the world frame is the Franka base frame, the table's top at z = 0, the floor at
// z = -0.75. room: z = 0 on the floor, origin in the middle of the room.
//
// Geom groups: 0 is scenery and objects that are both seen and touched, 2 is seen only, 3 is touched
// only. Cameras show 0 and 2 (MuJoCo's default); a lidar that casts rays at 0 and 3 is quick, since
// those are primitives, and sees what the collision shapes are.
package model

import (
	"fmt"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/sensor"
)

// Spec chooses a model. The same Spec always gives the same Model, to the byte.
type Spec struct {
	Robot string // fr3, panda, stretch4
	World string // tabletop, room
	Seed  uint64
}

// Robots and Worlds are the names that Spec takes.
var (
	Robots = [...]string{"fr3", "panda", "stretch4"}
	Worlds = [...]string{"tabletop", "room"}
)

// Model is an XML model and its description.
type Model struct {
	Spec
	XML  string
	URDF string // name of the same robot in drivers/urdf

	// Odom is the odometry frame: the base frame of a fixed arm; for a mobile robot, where
	// base_footprint stands at the start. Base joints at zero put base_footprint there.
	Odom geom.Pose

	Joints  []Joint // robot.State order
	Base    *Base   // nil for a fixed arm
	Jaw     Jaw
	Tool    string // site at the closure point, axes of the tool convention
	Cameras []Camera
	Lidars  []Lidar
	Objects []Object // bodies with a free joint
	Slides  []Slide  // moving furniture
	// TableTop is the height of the table's top, world frame.
	TableTop float64
}

// Drive is what an actuator's ctrl means.
type Drive int

// The drives.
const (
	Torque   Drive = iota // ctrl is the effort, within +-Effort
	Position              // ctrl is the position; force = Kp (ctrl - q) - Kv v, within +-Effort
	Velocity              // ctrl is the speed; force = Kv (ctrl - v), within +-Effort
)

// Joint is one value of robot.State.Q.
type Joint struct {
	Name      string // as in robot.Model
	Prismatic bool
	Parts     []string // the XML's joints that move it; the value is their sum, each takes an equal share
	Actuator  string
	Drive     Drive
	Kp, Kv    float64
	Effort    float64 // newtons or newton metres
	Min, Max  float64
	Home      float64
	// Weightless asks the twin to apply qfrc_bias to the parts: the real machine balances its own weight
	// and a servo alone would sag. Not set for torque drives, whose control law does it.
	Weightless bool
}

// Base is the planar base: joints and velocity actuators for x, y and yaw in the odometry frame.
type Base struct {
	Joints    [3]string
	Actuators [3]string
	Kv        [3]float64
	Effort    [3]float64
}

// Jaw is the gripper: two finger joints of 0..Max/2 kept equal. The actuator's ctrl is half the aperture.
type Jaw struct {
	Joints   [2]string
	Actuator string
	Pads     [2]string // geoms that touch what is held, left first
	Min, Max float64   // aperture, metres
	Home     float64   // aperture, metres
	Force    float64   // newtons per finger at most
}

// Camera is a pinhole camera. The XML holds it under the same name.
type Camera struct {
	Name       string
	Mount      sensor.Mount // the optical frame in its link; an empty Link is the odometry frame
	Intrinsics sensor.Intrinsics
	Fovy       float64 // vertical field of view, radians
	Depth      bool    // gives dense depth
	Stereo     bool    // depth has the noise and holes of a stereo pair
}

// Lidar is a site on a link, with the link's axes.
type Lidar struct {
	Name  string
	Mount sensor.Mount
}

// Object is a free body.
type Object struct {
	Name  string // body; its free joint is Name+"_free"
	Words string // for a person
	Color [3]float64
	Size  r3.Vec    // bounding box, metres
	Mass  float64   // kilograms
	Start geom.Pose // at rest, world frame
}

// Slide is a drawer.
type Slide struct {
	Body, Joint string
	Words       string
	Max         float64 // metres open
	Handle      string  // geom of the handle
}

// Build makes the model of a Spec.
func Build(s Spec) (*Model, error) {
	robot, err := newRobot(s.Robot)
	if err != nil {
		return nil, err
	}
	world, err := newWorld(s, robot.Model)
	if err != nil {
		return nil, err
	}
	m := robot.Model
	m.Spec, m.Odom = s, world.odom
	m.Objects, m.Slides, m.TableTop = world.objects, world.slides, world.tableTop
	m.Cameras = append(world.cameras(m), m.Cameras...)
	if m.XML, err = write(robot, world); err != nil {
		return nil, fmt.Errorf("model %s in %s: %w", s.Robot, s.World, err)
	}
	return m, nil
}

// Camera is the camera of that name; false when there is none.
func (m *Model) Camera(name string) (Camera, bool) {
	for _, c := range m.Cameras {
		if c.Name == name {
			return c, true
		}
	}
	return Camera{}, false
}

// Object is the free body of that name; false when there is none.
func (m *Model) Object(name string) (Object, bool) {
	for _, o := range m.Objects {
		if o.Name == name {
			return o, true
		}
	}
	return Object{}, false
}
