package model

import (
	"embed"
	"fmt"
	"math"
	"strings"
	"text/template"

	"gonum.org/v1/gonum/num/quat"
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
		"lathe": lathe, "loft": loft, "pipe": pipe, "at": x.at, "ring": ring, "beads": beads, "wheels": wheels, "books": books,
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

// ring is n boxes that stand around z as the wall of a bowl or the rim of a plate, for each row
// "radius z radius z halfthickness": a wall from its lower to its upper edge.
func ring(n int, rows string) (string, error) {
	t, err := table(rows, 5, 5)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, s := range t {
		r0, z0, r1, z1 := s[0], s[1], s[2], s[3]
		long := math.Hypot(r1-r0, z1-z0) / 2
		wide := math.Tan(math.Pi/float64(n)) * math.Max(r0, r1)
		for i := range n {
			a := 2 * math.Pi * float64(i) / float64(n)
			// along x up the wall: turn about z to the azimuth, then tilt up about the new y
			q := quat.Mul(geom.RotZ(a), geom.RotY(-math.Atan2(z1-z0, r1-r0)))
			rm := (r0 + r1) / 2
			p := geom.Pose{P: r3.Vec{X: rm * math.Cos(a), Y: rm * math.Sin(a), Z: (z0 + z1) / 2}, R: q}
			fmt.Fprintf(&b, "<geom class=\"rim\" type=\"box\" size=\"%s %s %s\" %s/>\n      ", num(long+s[4]/2), num(wide), num(s[4]), pose(p))
		}
	}
	return strings.TrimSpace(b.String()), nil
}

// wheels draws the three omni wheels at 30, 150 and 270 degrees, radius .174 m, centre .072 m above
// base_link: a disc whose axle points outward, with barrel rollers around its rim, under a fender.
func wheels() string {
	var b strings.Builder
	for _, deg := range []float64{30, 150, 270} {
		out := geom.Pose{R: geom.RotZ(geom.Rad(deg))}
		// z of the wheel outward: turn z into x
		w := out.Mul(geom.Pose{P: r3.Vec{X: 0.174, Z: 0.072}, R: geom.RotY(math.Pi / 2)})
		fmt.Fprintf(&b, "<geom class=\"see\" type=\"mesh\" mesh=\"wheel\" material=\"charcoal\" %s/>\n", pose(w))
		fmt.Fprintf(&b, "<geom class=\"see\" type=\"mesh\" mesh=\"hub\" material=\"alu\" %s/>\n", pose(w))
		const n = 14
		for i := range n {
			a := 2 * math.Pi * float64(i) / n
			for _, side := range []float64{-1, 1} {
				// two rows, half a pitch apart; each roller lies along the rim
				p := w.Mul(geom.Pose{R: geom.RotZ(a + side*math.Pi/(2*n))}).Mul(geom.Pose{
					P: r3.Vec{X: 0.0880, Z: 0.0105 * side}, R: geom.RotX(math.Pi / 2),
				})
				fmt.Fprintf(&b, "<geom class=\"see\" type=\"ellipsoid\" size=\"0.0120 0.0105 0.0225\" material=\"rubber\" %s/>\n", pose(p))
			}
		}
	}
	return b.String()
}

// books fills two boards of the shelf with upright books of different sizes and colours.
func books() string {
	var b strings.Builder
	colors := [...]string{"0.48 0.20 0.18", "0.20 0.30 0.42", "0.75 0.70 0.60", "0.25 0.38 0.28", "0.55 0.52 0.50", "0.36 0.26 0.40"}
	for _, row := range [...]struct{ y0, y1, z float64 }{{-0.46, 0.16, 0.562}, {-0.12, 0.45, 1.012}} {
		i := 0
		for y := row.y0; y < row.y1; i++ {
			w := 0.014 + 0.004*float64(i*5%4)
			h := 0.10 + 0.006*float64(i*7%5)
			d := 0.075 + 0.005*float64(i*3%4)
			fmt.Fprintf(&b, "<geom type=\"box\" size=\"%s %s %s\" pos=\"%s %s %s\" rgba=\"%s 1\"/>\n      ",
				num(d), num(w), num(h), num(-0.05), num(y+w), num(row.z+h), colors[i*5%len(colors)])
			y += 2*w + 0.001
		}
	}
	return strings.TrimSpace(b.String())
}

// beads is n small spheres in a circle about z: "radius z beadradius".
func beads(n int, row string) (string, error) {
	t, err := table(row, 3, 3)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range n {
		s, c := math.Sincos(2 * math.Pi * (float64(i) + 0.5) / float64(n))
		fmt.Fprintf(&b, "<geom class=\"bead\" size=\"%s\" pos=\"%s\"/>\n      ", num(t[0][2]), vec(r3.Vec{X: t[0][0] * c, Y: t[0][0] * s, Z: t[0][1]}))
	}
	return strings.TrimSpace(b.String()), nil
}
