package control

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/urdf"
)

// Kinematics is robot.Kinematics from a URDF, with the Jacobian and the shapes that planning needs. It is
// immutable and safe for concurrent use.
type Kinematics struct {
	desc  Description
	model robot.Model
	links []link // parents before children
	index map[string]int
	tool  int
	mount float64
	chain chain    // root to tool
	pairs [][2]int // capsules that must not touch
}

var _ robot.Kinematics = (*Kinematics)(nil)

// link is one body with the joint above it. Its joint's position is gain*q[drive] + shift, where drive
// counts through the driven joints and then the aperture; drive < 0 is a fixed joint.
type link struct {
	name        string
	parent      int // -1 for the root
	origin      frame
	axis        r3.Vec
	prismatic   bool
	drive       int
	gain, shift float64
	class       robot.LinkClass
	shapes      []geom.Capsule // link frame
}

// NewKinematics loads d's built-in URDF.
func NewKinematics(d Description) (*Kinematics, error) {
	r, err := urdf.Load(d.URDF)
	if err != nil {
		return nil, err
	}
	return FromURDF(d, r)
}

// FromURDF builds the kinematics of d from a given URDF, such as one that was read from the robot itself.
func FromURDF(d Description, r *urdf.Robot) (*Kinematics, error) {
	k := &Kinematics{desc: d, index: map[string]int{}}
	if err := k.buildModel(r); err != nil {
		return nil, err
	}
	if err := k.buildLinks(r); err != nil {
		return nil, err
	}
	var ok bool
	if k.tool, ok = k.index[d.Tool]; !ok {
		return nil, fmt.Errorf("%s: URDF %q has no link %q for the tool", d.Name, r.Name, d.Tool)
	}
	if err := k.buildChain(); err != nil {
		return nil, err
	}
	k.buildPairs()
	if d.Mobile {
		if err := k.chain.checkWhole(); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return k, k.buildMount(r)
}

func (k *Kinematics) buildModel(r *urdf.Robot) error {
	d := k.desc
	k.model = robot.Model{Name: d.Name, Mobile: d.Mobile, Jaw: robot.JawSpec{Max: d.Jaw.Max, Speed: d.Jaw.Speed, Force: d.Jaw.Force}}
	for _, j := range d.Joints {
		m := robot.Joint{Name: j.Name, Vel: j.Vel, Acc: j.Acc}
		for _, name := range j.driven() {
			u := r.Joint(name)
			if u == nil || u.Type != urdf.Revolute && u.Type != urdf.Prismatic {
				return fmt.Errorf("%s: URDF %q has no limited joint %q", d.Name, r.Name, name)
			}
			m.Prismatic = u.Type == urdf.Prismatic
			m.Min += u.Lower
			m.Max += u.Upper
		}
		k.model.Joints = append(k.model.Joints, m)
	}
	return nil
}

func (j JointDesc) driven() []string {
	if j.Drives == nil {
		return []string{j.Name}
	}
	return j.Drives
}

// drives maps each URDF joint that moves to its drive, gain and shift.
func (k *Kinematics) drives() map[string]link {
	m := map[string]link{}
	for i, j := range k.desc.Joints {
		names := j.driven()
		for _, n := range names {
			m[n] = link{drive: i, gain: 1 / float64(len(names))}
		}
	}
	for _, f := range k.desc.Jaw.Joints {
		m[f.Joint] = link{drive: len(k.desc.Joints), gain: (f.Open - f.Shut) / k.desc.Jaw.Max, shift: f.Shut}
	}
	return m
}

func (k *Kinematics) buildLinks(r *urdf.Robot) error {
	drives := k.drives()
	add := func(name string, l link) {
		l.name = name
		l.class = classOf(k.desc.Classes[name])
		for _, p := range r.Link(name).Collisions {
			l.shapes = append(l.shapes, cover(p, l.class)...)
		}
		k.index[name] = len(k.links)
		k.links = append(k.links, l)
	}
	add(r.Root, link{parent: -1, drive: -1})
	for _, j := range r.Joints {
		l, moves := drives[j.Name]
		if !moves {
			if j.Type != urdf.Fixed {
				return fmt.Errorf("%s: nothing drives the URDF's joint %q", k.desc.Name, j.Name)
			}
			l.drive = -1
		}
		delete(drives, j.Name)
		l.parent = k.index[j.Parent]
		l.origin = newFrame(originPose(j.Origin))
		l.axis, l.prismatic = j.Axis, j.Type == urdf.Prismatic
		add(j.Child, l)
	}
	for name := range drives {
		return fmt.Errorf("%s: the URDF %q has no joint %q", k.desc.Name, r.Name, name)
	}
	return nil
}

func classOf(s string) robot.LinkClass {
	switch s {
	case "base":
		return robot.ClassBase
	case "hand":
		return robot.ClassHand
	case "finger":
		return robot.ClassFinger
	}
	return robot.ClassArm
}

func originPose(o urdf.Origin) geom.Pose {
	return geom.Pose{P: o.XYZ, R: geom.RPY(o.RPY.X, o.RPY.Y, o.RPY.Z)}
}

// buildMount finds how far the closure point is from the pitch axis along the approach: the distance is
// the same for every configuration of a wrist whose roll axis is the approach.
func (k *Kinematics) buildMount(r *urdf.Robot) error {
	if k.desc.Pitch == "" {
		return nil
	}
	j := r.Joint(k.desc.Pitch)
	if j == nil {
		return fmt.Errorf("%s: the URDF has no pitch joint %q", k.desc.Name, k.desc.Pitch)
	}
	poses := k.poses(geom.SE2{}, make([]float64, len(k.model.Joints)), 0)
	f, tool := poses[k.index[j.Child]], poses[k.tool]
	axis := f.dir(j.Axis)
	w := r3.Sub(tool.p, f.p)
	// Point of the approach line nearest to the axis line.
	b, d, e := r3.Dot(tool.x, axis), r3.Dot(tool.x, w), r3.Dot(axis, w)
	if den := 1 - b*b; den > 1e-9 {
		k.mount = (d - b*e) / den
		return nil
	}
	return fmt.Errorf("%s: the pitch axis lies along the approach, there is no wrist mount", k.desc.Name)
}

// Model is the robot's fixed description.
func (k *Kinematics) Model() *robot.Model { return &k.model }

// Description is what the kinematics were built from.
func (k *Kinematics) Description() Description { return k.desc }

// WristMount is the distance in metres from the closure point back to the point nearest the pitch axis.
func (k *Kinematics) WristMount() float64 { return k.mount }

func baseFrame(b geom.SE2) frame { return newFrame(b.Pose()) }

// place is the link's frame given its parent's.
func (l *link) place(parent frame, q []float64, aperture float64) frame {
	f := parent.mul(l.origin)
	if l.drive < 0 {
		return f
	}
	v := aperture
	if l.drive < len(q) {
		v = q[l.drive]
	}
	v = l.gain*v + l.shift
	if l.prismatic {
		f.p = r3.Add(f.p, f.dir(r3.Scale(v, l.axis)))
		return f
	}
	return f.mul(turned(l.axis, v))
}

// poses are the frames of all links in the odometry frame.
func (k *Kinematics) poses(base geom.SE2, q []float64, aperture float64) []frame {
	return k.posesInto(make([]frame, len(k.links)), base, q, aperture)
}

func (k *Kinematics) posesInto(fs []frame, base geom.SE2, q []float64, aperture float64) []frame {
	for i := range k.links {
		l := &k.links[i]
		if l.parent < 0 {
			fs[i] = baseFrame(base)
			continue
		}
		fs[i] = l.place(fs[l.parent], q, aperture)
	}
	return fs
}

// Tool is the pose of the closure point, odometry frame. A q of the wrong length gives a pose of NaN.
func (k *Kinematics) Tool(base geom.SE2, q []float64) geom.Pose {
	if len(q) != len(k.model.Joints) {
		return nanPose()
	}
	return baseFrame(base).mul(k.chain.forward(q)).pose()
}

func nanPose() geom.Pose {
	n := math.NaN()
	return geom.Pose{P: r3.Vec{X: n, Y: n, Z: n}, R: quat.Number{Real: n, Imag: n, Jmag: n, Kmag: n}}
}

// Link is the pose of a named link, odometry frame; false when there is no such link or q is not the
// model's length.
func (k *Kinematics) Link(name string, base geom.SE2, q []float64, aperture float64) (geom.Pose, bool) {
	i, ok := k.index[name]
	if !ok || len(q) != len(k.model.Joints) {
		return geom.Pose{}, false
	}
	return k.linkFrame(i, base, q, aperture).pose(), true
}

func (k *Kinematics) linkFrame(i int, base geom.SE2, q []float64, aperture float64) frame {
	l := &k.links[i]
	if l.parent < 0 {
		return baseFrame(base)
	}
	return l.place(k.linkFrame(l.parent, base, q, aperture), q, aperture)
}

// LinkNames are the URDF's links, parents before children.
func (k *Kinematics) LinkNames() []string {
	names := make([]string, len(k.links))
	for i := range k.links {
		names[i] = k.links[i].name
	}
	return names
}

// Capsules is the collision shape of the whole robot, odometry frame; nil when q is not the model's length.
func (k *Kinematics) Capsules(base geom.SE2, q []float64, aperture float64) []robot.LinkCapsule {
	if len(q) != len(k.model.Joints) {
		return nil
	}
	var buf [32]frame
	fs := buf[:]
	if len(k.links) > len(buf) {
		fs = make([]frame, len(k.links))
	}
	fs = k.posesInto(fs[:len(k.links)], base, q, aperture)
	n := 0
	for i := range k.links {
		n += len(k.links[i].shapes)
	}
	out := make([]robot.LinkCapsule, 0, n)
	for i := range k.links {
		l := &k.links[i]
		for _, c := range l.shapes {
			out = append(out, robot.LinkCapsule{
				Link: l.name, Class: l.class,
				Capsule: geom.Capsule{A: fs[i].point(c.A), B: fs[i].point(c.B), R: c.R},
			})
		}
	}
	return out
}
