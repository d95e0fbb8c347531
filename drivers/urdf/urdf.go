// Package urdf reads robot descriptions: links with their shapes, joints with their limits.
//
// It reads the part of URDF that viad uses and refuses the rest by name: fixed, revolute,
// continuous and prismatic joints with origin, axis, limit and mimic; visual and collision shapes
// that are boxes, cylinders, spheres or capsules; colours. Meshes are refused: viad's
// robots are drawn and checked as primitives. Elements that say nothing about shape or motion
// (inertial, transmission, gazebo, dynamics, safety_controller, calibration) are skipped.
//
// Lengths are metres and angles radians. Origins are URDF's: translate by XYZ, then rotate about
// the fixed axes by roll, pitch, yaw: R = Rz(yaw) Ry(pitch) Rx(roll).
package urdf

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/spatial/r3"
)

//go:embed models/*.urdf
var models embed.FS

// Robot is a tree of links connected by joints.
type Robot struct {
	Name   string
	Root   string  // the one link that is no joint's child
	Links  []Link  // document order
	Joints []Joint // parents before children
}

// Link is a rigid body.
type Link struct {
	Name       string
	Visuals    []Primitive
	Collisions []Primitive
}

// Kind is the shape of a primitive.
type Kind int

// The shapes. Each is centred on its origin; cylinders and capsules lie along their own z.
const (
	Box Kind = iota
	Cylinder
	Sphere
	Capsule
)

// String is URDF's element name of the shape.
func (k Kind) String() string { return [...]string{"box", "cylinder", "sphere", "capsule"}[k] }

// Primitive is one shape in its link's frame.
type Primitive struct {
	Name   string // optional
	Kind   Kind
	Size   r3.Vec  // full edge lengths of a box
	Radius float64 // of a cylinder, sphere or capsule
	Length float64 // of a cylinder; of a capsule, between the centres of its caps
	Origin Origin  // of the shape in the link's frame
	Color  Color   // visuals only; mid grey when the document gives none
}

// Origin places a child frame in its parent's.
type Origin struct {
	XYZ r3.Vec // metres
	RPY r3.Vec // radians: roll, pitch, yaw about fixed axes
}

// Color is red, green, blue and alpha in 0..1.
type Color [4]float64

// Type is how a joint moves.
type Type int

// The joint types.
const (
	Fixed Type = iota
	Revolute
	Continuous
	Prismatic
)

// String is URDF's word for the type.
func (t Type) String() string { return [...]string{"fixed", "revolute", "continuous", "prismatic"}[t] }

// Joint connects Parent to Child. At position q the child frame is Origin, then a rotation by q
// about Axis (revolute, continuous) or a translation by q along it (prismatic).
type Joint struct {
	Name          string
	Type          Type
	Parent, Child string // link names
	Origin        Origin // of the child in the parent at position zero
	Axis          r3.Vec // unit, in the joint's frame; zero for fixed joints
	Lower, Upper  float64
	Velocity      float64 // limit, per second; zero for fixed joints
	Effort        float64 // limit, newtons or newton metres
	Mimic         *Mimic  // nil unless the joint follows another
}

// Mimic makes a joint's position Multiplier times that of another joint, plus Offset.
type Mimic struct {
	Joint      string
	Multiplier float64
	Offset     float64
}

// Names are the descriptions that Load knows: fr3, panda, stretch4_pg4, stretch4_sg4.
func Names() []string {
	files, err := models.ReadDir("models")
	if err != nil {
		return nil // the directory is embedded: it is always there
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(f.Name(), ".urdf")
	}
	return names
}

// Source is the text of a built-in robot's description.
func Source(name string) ([]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("urdf: no built-in robot %q; there are %s", name, strings.Join(Names(), ", "))
	}
	b, err := models.ReadFile("models/" + name + ".urdf")
	if err != nil {
		return nil, fmt.Errorf("urdf: %s: %w", name, err)
	}
	return b, nil
}

// Load reads one of the built-in descriptions.
func Load(name string) (*Robot, error) {
	b, err := Source(name)
	if err != nil {
		return nil, err
	}
	r, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Link is the link of that name, nil when there is none.
func (r *Robot) Link(name string) *Link {
	for i := range r.Links {
		if r.Links[i].Name == name {
			return &r.Links[i]
		}
	}
	return nil
}

// Joint is the joint of that name, nil when there is none.
func (r *Robot) Joint(name string) *Joint {
	for i := range r.Joints {
		if r.Joints[i].Name == name {
			return &r.Joints[i]
		}
	}
	return nil
}

// Above is the joint whose child is the named link, nil for the root and for unknown links.
func (r *Robot) Above(link string) *Joint {
	for i := range r.Joints {
		if r.Joints[i].Child == link {
			return &r.Joints[i]
		}
	}
	return nil
}
