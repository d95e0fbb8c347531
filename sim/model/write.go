package model

import (
	"embed"
	"fmt"
	"strings"
	"text/template"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/urdf"
)

//go:embed xml/*.xml
var fragments embed.FS

// writer assembles one model's XML from fragments.
type writer struct {
	robot *robot
	world *world
	t     *template.Template
	err   error
}

func write(r *robot, w *world) (string, error) {
	x := &writer{robot: r, world: w}
	t, err := template.New("model").Funcs(template.FuncMap{
		"pose": pose, "vec": vec, "num": num, "robot": x.robotTree, "tripods": func() string { return x.cameras("") },
		"mesh": meshAsset, "at": x.at,
	}).ParseFS(fragments, "xml/model.xml", "xml/"+r.file, "xml/"+w.file)
	if err != nil {
		return "", err
	}
	x.t = t
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, "model.xml", map[string]*writer{"X": x}); err != nil {
		return "", err
	}
	return b.String(), x.err
}

// Model and World are what the fragments read.
func (x *writer) Model() *Model { return x.robot.Model }

// World is the placed world.
func (x *writer) World() *world { return x.world }

func num(v float64) string { return fmt.Sprintf("%.10g", v) }

func vec(v r3.Vec) string { return num(v.X) + " " + num(v.Y) + " " + num(v.Z) }

// pose is pos and quat attributes; precise enough that chains agree with the URDF to 1e-12.
func pose(p geom.Pose) string {
	return fmt.Sprintf(`pos="%.15g %.15g %.15g" quat="%.15g %.15g %.15g %.15g"`,
		p.P.X, p.P.Y, p.P.Z, p.R.Real, p.R.Imag, p.R.Jmag, p.R.Kmag)
}

func originPose(o urdf.Origin) geom.Pose {
	return geom.Pose{P: o.XYZ, R: geom.RPY(o.RPY.X, o.RPY.Y, o.RPY.Z)}
}

// at is the start pose of a named object.
func (x *writer) at(name string) (string, error) {
	for _, o := range x.world.objects {
		if o.Name == name {
			return pose(o.Start), nil
		}
	}
	return "", fmt.Errorf("the world places no object %q", name)
}

func (x *writer) block(name string) string {
	if x.t.Lookup(name) == nil {
		return ""
	}
	var b strings.Builder
	if err := x.t.ExecuteTemplate(&b, name, map[string]*writer{"X": x}); err != nil && x.err == nil {
		x.err = err
	}
	return strings.TrimSpace(b.String())
}

// robotTree writes the robot's bodies from the URDF, each with the block of its name from the fragment
// (inertia, looks) and its collision shapes (the block "<link> collision" or the URDF's own).
func (x *writer) robotTree() string {
	var b strings.Builder
	x.body(&b, x.robot.tree.Root, x.world.odom, nil, "    ")
	return b.String()
}

func (x *writer) body(b *strings.Builder, link string, at geom.Pose, j *urdf.Joint, in string) {
	fmt.Fprintf(b, "%s<body name=%q %s>\n", in, link, pose(at))
	in += "  "
	if j != nil && j.Type != urdf.Fixed {
		kind := map[urdf.Type]string{urdf.Revolute: "hinge", urdf.Continuous: "hinge", urdf.Prismatic: "slide"}[j.Type]
		fmt.Fprintf(b, "%s<joint name=%q class=%q type=%q axis=%q range=\"%s %s\"/>\n",
			in, j.Name, x.jointClass(j), kind, vec(j.Axis), num(j.Lower), num(j.Upper))
	}
	lines(b, in, x.block(link))
	if !strings.Contains(x.block(link), `class="see"`) {
		for _, p := range x.robot.tree.Link(link).Visuals {
			fmt.Fprintf(b, "%s<geom class=\"see\" %s rgba=\"%s %s %s 1\"/>\n", in, shape(p), num(p.Color[0]), num(p.Color[1]), num(p.Color[2]))
		}
	}
	if own := x.block(link + " collision"); own != "" {
		lines(b, in, own)
	} else {
		for i, p := range x.robot.tree.Link(link).Collisions {
			fmt.Fprintf(b, "%s<geom name=\"%s_c%d\" class=\"touch\" %s/>\n", in, link, i, shape(p))
		}
	}
	lines(b, in, x.cameras(link))
	for _, l := range x.robot.Lidars {
		if l.Mount.Link == link {
			fmt.Fprintf(b, "%s<site name=%q %s/>\n", in, l.Name, pose(l.Mount.Pose))
		}
	}
	for i := range x.robot.tree.Joints {
		if c := &x.robot.tree.Joints[i]; c.Parent == link {
			x.body(b, c.Child, originPose(c.Origin), c, in)
		}
	}
	fmt.Fprintf(b, "%s</body>\n", strings.TrimSuffix(in, "  "))
}

// jointClass is the default class in the robot's fragment that sets damping and armature.
func (x *writer) jointClass(j *urdf.Joint) string {
	for _, f := range x.robot.Jaw.Joints {
		if j.Name == f {
			return "finger"
		}
	}
	for _, m := range x.robot.Joints {
		for _, p := range m.Parts {
			if p != j.Name {
				continue
			}
			if m.Prismatic {
				return m.Name
			}
			return "turn"
		}
	}
	return "main"
}

func shape(p urdf.Primitive) string {
	at := pose(originPose(p.Origin))
	switch p.Kind {
	case urdf.Box:
		return fmt.Sprintf(`type="box" size=%q %s`, vec(r3.Scale(0.5, p.Size)), at)
	case urdf.Sphere:
		return fmt.Sprintf(`type="sphere" size="%s" %s`, num(p.Radius), at)
	default:
		return fmt.Sprintf(`type=%q size="%s %s" %s`, p.Kind, num(p.Radius), num(p.Length/2), at)
	}
}

func (x *writer) cameras(link string) string {
	var b strings.Builder
	for _, c := range x.robot.Cameras {
		if c.Mount.Link != link {
			continue
		}
		p := c.Mount.Pose
		if link == "" {
			p = x.world.odom.Mul(p)
		}
		fmt.Fprintf(&b, "<camera name=%q %s fovy=\"%s\"/>\n", c.Name, pose(mujocoCamera(p)), num(geom.Deg(c.Fovy)))
	}
	return b.String()
}

func lines(b *strings.Builder, in, s string) {
	for _, l := range strings.Split(s, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			b.WriteString(in + l + "\n")
		}
	}
}
