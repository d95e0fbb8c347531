package urdf

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"
)

func readRobot(n *node) (*Robot, error) {
	if n.name != "robot" {
		return nil, n.errorf("the document element must be <robot>")
	}
	if err := n.only(nil, []string{"link", "joint", "material"}, []string{"transmission", "gazebo"}); err != nil {
		return nil, err
	}
	name, err := n.str("name")
	if err != nil {
		return nil, err
	}
	r := &Robot{Name: name}
	colors := map[string]Color{}
	for _, k := range n.kids {
		if k.name == "material" {
			if err := readMaterial(k, colors); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range n.kids {
		switch k.name {
		case "link":
			l, err := readLink(k, colors)
			if err != nil {
				return nil, err
			}
			if r.Link(l.Name) != nil {
				return nil, k.errorf("a second link of this name")
			}
			r.Links = append(r.Links, l)
		case "joint":
			j, err := readJoint(k)
			if err != nil {
				return nil, err
			}
			if r.Joint(j.Name) != nil {
				return nil, k.errorf("a second joint of this name")
			}
			r.Joints = append(r.Joints, j)
		}
	}
	return r, nil
}

func readMaterial(n *node, colors map[string]Color) error {
	if err := n.only([]string{"color"}, nil, []string{"texture"}); err != nil {
		return err
	}
	name, err := n.str("name")
	if err != nil {
		return err
	}
	if _, twice := colors[name]; twice {
		return n.errorf("a second material of this name")
	}
	c, err := readColor(n)
	if err != nil {
		return err
	}
	colors[name] = c
	return nil
}

func readColor(n *node) (Color, error) {
	k := n.kid("color")
	if k == nil {
		return Color{}, n.errorf("has no <color>")
	}
	f, err := k.floats("rgba", 4)
	if err != nil {
		return Color{}, err
	}
	for _, x := range f {
		if !(x >= 0 && x <= 1) {
			return Color{}, k.errorf("rgba=%q: %v is outside 0..1", k.attrs["rgba"], x)
		}
	}
	return Color(f), nil
}

func readLink(n *node, colors map[string]Color) (Link, error) {
	name, err := n.str("name")
	if err != nil {
		return Link{}, err
	}
	if err := n.only(nil, []string{"visual", "collision"}, []string{"inertial"}); err != nil {
		return Link{}, err
	}
	l := Link{Name: name}
	for _, k := range n.kids {
		if k.name == "inertial" {
			continue
		}
		p, err := readPrimitive(k, colors)
		if err != nil {
			return Link{}, err
		}
		if k.name == "visual" {
			l.Visuals = append(l.Visuals, p)
		} else {
			l.Collisions = append(l.Collisions, p)
		}
	}
	return l, nil
}

func readPrimitive(n *node, colors map[string]Color) (Primitive, error) {
	single := []string{"origin", "geometry"}
	if n.name == "visual" {
		single = append(single, "material")
	}
	if err := n.only(single, nil, nil); err != nil {
		return Primitive{}, err
	}
	p := Primitive{Name: n.attrs["name"], Color: Color{0.6, 0.6, 0.6, 1}}
	var err error
	if p.Origin, err = n.origin(); err != nil {
		return Primitive{}, err
	}
	g := n.kid("geometry")
	if g == nil || len(g.kids) != 1 {
		return Primitive{}, n.errorf("must have one <geometry> with one shape in it")
	}
	if err := p.shape(g.kids[0]); err != nil {
		return Primitive{}, err
	}
	if m := n.kid("material"); m != nil {
		if p.Color, err = lookUpColor(m, colors); err != nil {
			return Primitive{}, err
		}
	}
	return p, nil
}

func lookUpColor(m *node, colors map[string]Color) (Color, error) {
	if m.kid("color") != nil {
		return readColor(m)
	}
	name, err := m.str("name")
	if err != nil {
		return Color{}, err
	}
	c, ok := colors[name]
	if !ok {
		return Color{}, m.errorf("no <material> of this name with a colour stands under <robot>")
	}
	return c, nil
}

func (p *Primitive) shape(s *node) (err error) {
	switch s.name {
	case "box":
		p.Kind = Box
		if p.Size, err = s.vec("size"); err != nil {
			return err
		}
		if !(p.Size.X > 0 && p.Size.Y > 0 && p.Size.Z > 0) {
			return s.errorf("size=%q: every edge must be over 0", s.attrs["size"])
		}
		return nil
	case "sphere":
		p.Kind = Sphere
		p.Radius, err = s.length("radius")
		return err
	case "cylinder", "capsule":
		p.Kind = Cylinder
		if s.name == "capsule" {
			p.Kind = Capsule
		}
		if p.Radius, err = s.length("radius"); err != nil {
			return err
		}
		p.Length, err = s.length("length")
		return err
	case "mesh":
		return s.errorf("meshes are not read; give boxes, cylinders, spheres or capsules")
	}
	return s.errorf("unknown shape; wanted box, cylinder, sphere or capsule")
}

func readJoint(n *node) (Joint, error) {
	var j Joint
	var err error
	if j.Name, err = n.str("name"); err != nil {
		return j, err
	}
	if err = n.only([]string{"origin", "parent", "child", "axis", "limit", "mimic"}, nil,
		[]string{"dynamics", "safety_controller", "calibration"}); err != nil {
		return j, err
	}
	if j.Type, err = readType(n); err != nil {
		return j, err
	}
	if j.Origin, err = n.origin(); err != nil {
		return j, err
	}
	for _, end := range []struct {
		name string
		to   *string
	}{{"parent", &j.Parent}, {"child", &j.Child}} {
		k := n.kid(end.name)
		if k == nil {
			return j, n.errorf("has no <%s>", end.name)
		}
		if *end.to, err = k.str("link"); err != nil {
			return j, err
		}
	}
	if j.Type == Fixed {
		return j, nil
	}
	if err = j.readMotion(n); err != nil {
		return j, err
	}
	return j, j.readMimic(n)
}

func readType(n *node) (Type, error) {
	s, err := n.str("type")
	if err != nil {
		return 0, err
	}
	for _, t := range []Type{Fixed, Revolute, Continuous, Prismatic} {
		if t.String() == s {
			return t, nil
		}
	}
	return 0, n.errorf("type=%q is not read; wanted fixed, revolute, continuous or prismatic", s)
}

func (j *Joint) readMotion(n *node) error {
	j.Axis = r3.Vec{X: 1} // URDF's default
	if a := n.kid("axis"); a != nil {
		v, err := a.vec("xyz")
		if err != nil {
			return err
		}
		l := r3.Norm(v)
		if !(l > 1e-6) || math.IsInf(l, 0) {
			return a.errorf("xyz=%q has no direction", a.attrs["xyz"])
		}
		j.Axis = r3.Scale(1/l, v)
	}
	l := n.kid("limit")
	if l == nil {
		if j.Type == Continuous {
			j.Lower, j.Upper = math.Inf(-1), math.Inf(1)
			return nil
		}
		return n.errorf("a %s joint must have a <limit>", j.Type)
	}
	return j.readLimit(l)
}

func (j *Joint) readLimit(l *node) error {
	for _, f := range []struct {
		attr string
		to   *float64
	}{{"lower", &j.Lower}, {"upper", &j.Upper}, {"velocity", &j.Velocity}, {"effort", &j.Effort}} {
		var err error
		if *f.to, err = l.number(f.attr, 0); err != nil {
			return err
		}
	}
	if j.Velocity < 0 || j.Effort < 0 {
		return l.errorf("velocity=%v and effort=%v must not be under 0", j.Velocity, j.Effort)
	}
	if j.Type == Continuous {
		j.Lower, j.Upper = math.Inf(-1), math.Inf(1)
		return nil
	}
	if j.Lower >= j.Upper {
		return l.errorf("lower=%v must be under upper=%v", j.Lower, j.Upper)
	}
	return nil
}

func (j *Joint) readMimic(n *node) error {
	m := n.kid("mimic")
	if m == nil {
		return nil
	}
	var out Mimic
	var err error
	if out.Joint, err = m.str("joint"); err != nil {
		return err
	}
	if out.Multiplier, err = m.number("multiplier", 1); err != nil {
		return err
	}
	if out.Offset, err = m.number("offset", 0); err != nil {
		return err
	}
	j.Mimic = &out
	return nil
}
