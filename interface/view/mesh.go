package view

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// SolidKind is the shape of a Solid.
type SolidKind int

// The shapes. All are centred on their own origin; round ones have their axis along z.
const (
	Box      SolidKind = iota // Size: full edge lengths along x, y, z
	Cylinder                  // Size.X: radius, Size.Z: length
	Sphere                    // Size.X: radius
	Capsule                   // Size.X: radius, Size.Z: length between the centres of its round ends
)

// Solid is one primitive of a gripper in the tool frame (package robot), metres.
type Solid struct {
	Link  string // name of the link it belongs to; solids of one link are outlined together
	Kind  SolidKind
	Size  r3.Vec
	Pose  geom.Pose // the primitive's own frame in the tool frame
	Shade float64   // brightness of its surface, 0 dark to 1 light; 0 counts as 0.7
}

// GripperShape is the gripper's solids at an aperture between the pads in metres. It must be safe to call from
// several goroutines.
type GripperShape func(aperture float64) []Solid

// mesh is triangles with one normal per vertex. Vertices are not shared between triangles.
type mesh struct {
	pos, normal []r3.Vec // three per triangle
	shade       []float32
	part        []uint8 // one per triangle: solids of one link share it
}

func (m *mesh) tri(part uint8, shade float32, p, n [3]r3.Vec) {
	m.pos = append(m.pos, p[:]...)
	m.normal = append(m.normal, n[:]...)
	m.shade = append(m.shade, shade)
	m.part = append(m.part, part)
}

func (m *mesh) quad(part uint8, shade float32, p, n [4]r3.Vec) {
	m.tri(part, shade, [3]r3.Vec{p[0], p[1], p[2]}, [3]r3.Vec{n[0], n[1], n[2]})
	m.tri(part, shade, [3]r3.Vec{p[0], p[2], p[3]}, [3]r3.Vec{n[0], n[2], n[3]})
}

// tessellate turns solids into triangles of the tool frame, wound counter-clockwise seen from outside.
func tessellate(solids []Solid) *mesh {
	m, links := &mesh{}, map[string]uint8{}
	for _, s := range solids {
		id, seen := links[s.Link]
		if !seen {
			id = uint8(min(len(links)+1, 255))
			links[s.Link] = id
		}
		shade := float32(s.Shade)
		if shade == 0 {
			shade = 0.7
		}
		from := len(m.pos)
		switch s.Kind {
		case Box:
			m.box(id, shade, s.Size)
		case Cylinder:
			m.round(id, shade, cylinderProfile(s.Size.X, s.Size.Z))
		case Sphere:
			m.round(id, shade, capsuleProfile(s.Size.X, 0))
		case Capsule:
			m.round(id, shade, capsuleProfile(s.Size.X, s.Size.Z))
		}
		for i := from; i < len(m.pos); i++ {
			m.pos[i] = s.Pose.Point(m.pos[i])
			m.normal[i] = s.Pose.Dir(m.normal[i])
		}
	}
	return m
}

func (m *mesh) box(part uint8, shade float32, size r3.Vec) {
	h := r3.Scale(.5, size)
	for axis := range 3 {
		for _, sign := range [2]float64{1, -1} {
			var p [4]r3.Vec
			for i, c := range [4][2]float64{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}} {
				p[i] = onAxes(axis, sign, sign*c[0], c[1])
				p[i] = r3.Vec{X: p[i].X * h.X, Y: p[i].Y * h.Y, Z: p[i].Z * h.Z}
			}
			n := onAxes(axis, sign, 0, 0)
			m.quad(part, shade, p, [4]r3.Vec{n, n, n, n})
		}
	}
}

// onAxes is the vector with a on the axis, b and c on the two that follow it cyclically.
func onAxes(axis int, a, b, c float64) r3.Vec {
	switch axis {
	case 0:
		return r3.Vec{X: a, Y: b, Z: c}
	case 1:
		return r3.Vec{X: c, Y: a, Z: b}
	default:
		return r3.Vec{X: b, Y: c, Z: a}
	}
}

// knot is a point of a profile turned about z: distance from the axis, height, and the normal's two components.
type knot struct{ r, z, nr, nz float64 }

func cylinderProfile(r, length float64) []knot {
	h := length / 2
	return []knot{{0, -h, 0, -1}, {r, -h, 0, -1}, {r, -h, 1, 0}, {r, h, 1, 0}, {r, h, 0, 1}, {0, h, 0, 1}}
}

func capsuleProfile(r, length float64) []knot {
	const steps = 7
	ks := make([]knot, 0, 2*(steps+1))
	for i := range steps + 1 {
		s, c := math.Sincos(-math.Pi/2 + math.Pi/2*float64(i)/steps)
		if i == 0 {
			c = 0 // the pole exactly, so that no sliver is made there
		}
		ks = append(ks, knot{r * c, r*s - length/2, c, s})
	}
	for i := range steps + 1 {
		s, c := math.Sincos(math.Pi / 2 * float64(i) / steps)
		if i == steps {
			c = 0
		}
		ks = append(ks, knot{r * c, r*s + length/2, c, s})
	}
	return ks
}

// round turns a profile about z. The profile runs from low to high.
func (m *mesh) round(part uint8, shade float32, ks []knot) {
	const sides = 24
	at := func(k knot, s, c float64) (p, n r3.Vec) {
		return r3.Vec{X: k.r * c, Y: k.r * s, Z: k.z}, r3.Vec{X: k.nr * c, Y: k.nr * s, Z: k.nz}
	}
	for j := range sides {
		s0, c0 := math.Sincos(2 * math.Pi * float64(j) / sides)
		s1, c1 := math.Sincos(2 * math.Pi * float64(j+1) / sides)
		for i := range len(ks) - 1 {
			a, b := ks[i], ks[i+1]
			if a.r == b.r && a.z == b.z {
				continue
			}
			p0, n0 := at(a, s0, c0)
			p1, n1 := at(a, s1, c1)
			p2, n2 := at(b, s1, c1)
			p3, n3 := at(b, s0, c0)
			if a.r > 0 {
				m.tri(part, shade, [3]r3.Vec{p0, p1, p2}, [3]r3.Vec{n0, n1, n2})
			}
			if b.r > 0 {
				m.tri(part, shade, [3]r3.Vec{p0, p2, p3}, [3]r3.Vec{n0, n2, n3})
			}
		}
	}
}

// plainGripper is what is drawn when nobody says what the gripper looks like: two fingers, a palm and a wrist.
func plainGripper(aperture float64) []Solid {
	pad := func(side float64, link string) Solid {
		y := side * (aperture/2 + .006)
		return Solid{Link: link, Kind: Box, Size: r3.Vec{X: .05, Y: .012, Z: .02}, Pose: geom.At(-.017, y, 0), Shade: .85}
	}
	return []Solid{
		pad(1, "left_finger"), pad(-1, "right_finger"),
		{Link: "hand", Kind: Box, Size: r3.Vec{X: .06, Y: .2, Z: .05}, Pose: geom.At(-.072, 0, 0), Shade: .6},
		{Link: "wrist", Kind: Cylinder, Size: r3.Vec{X: .035, Z: .05}, Pose: geom.Pose{P: r3.Vec{X: -.127}, R: geom.RotY(math.Pi / 2)}, Shade: .7},
	}
}
