package control

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/urdf"
)

// surface gives a random point on the skin of a primitive, and outside how far a point is from it.
func surface(p urdf.Primitive, r *rand.Rand) r3.Vec {
	u := func(h float64) float64 { return h * (2*r.Float64() - 1) }
	switch p.Kind {
	case urdf.Box:
		v := [3]float64{u(p.Size.X / 2), u(p.Size.Y / 2), u(p.Size.Z / 2)}
		i := r.IntN(3)
		v[i] = math.Copysign([3]float64{p.Size.X, p.Size.Y, p.Size.Z}[i]/2, v[i])
		if r.IntN(4) == 0 { // a corner
			return r3.Vec{X: math.Copysign(p.Size.X/2, v[0]), Y: math.Copysign(p.Size.Y/2, v[1]), Z: math.Copysign(p.Size.Z/2, v[2])}
		}
		return r3.Vec{X: v[0], Y: v[1], Z: v[2]}
	case urdf.Cylinder:
		s, c := math.Sincos(r.Float64() * 2 * math.Pi)
		z, rad := u(p.Length/2), p.Radius
		if r.IntN(2) == 0 {
			z = math.Copysign(p.Length/2, z)
			if r.IntN(2) == 0 {
				rad *= r.Float64()
			}
		}
		return r3.Vec{X: rad * c, Y: rad * s, Z: z}
	}
	n := r3.Unit(r3.Vec{X: r.NormFloat64(), Y: r.NormFloat64(), Z: r.NormFloat64()})
	return r3.Scale(p.Radius, n)
}

func outside(p urdf.Primitive, v r3.Vec) float64 {
	var d r3.Vec
	switch p.Kind {
	case urdf.Box:
		d = r3.Vec{X: math.Abs(v.X) - p.Size.X/2, Y: math.Abs(v.Y) - p.Size.Y/2, Z: math.Abs(v.Z) - p.Size.Z/2}
	case urdf.Cylinder:
		d = r3.Vec{X: math.Hypot(v.X, v.Y) - p.Radius, Z: math.Abs(v.Z) - p.Length/2}
	default:
		return r3.Norm(v) - p.Radius
	}
	return r3.Norm(r3.Vec{X: math.Max(0, d.X), Y: math.Max(0, d.Y), Z: math.Max(0, d.Z)})
}

// Capsules contain what they cover, all of it, and do not stand out far.
func TestCover(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	o := urdf.Origin{XYZ: r3.Vec{X: 0.1, Y: -0.2, Z: 0.3}, RPY: r3.Vec{X: 0.4, Y: -0.5, Z: 0.6}}
	for _, c := range []struct {
		name  string
		p     urdf.Primitive
		class robot.LinkClass
		most  float64 // metres that a capsule may stand out
		count int
	}{
		{"sphere", urdf.Primitive{Kind: urdf.Sphere, Radius: 0.05}, robot.ClassArm, 1e-9, 1},
		{"tube", urdf.Primitive{Kind: urdf.Cylinder, Radius: 0.06, Length: 0.3}, robot.ClassArm, 0.045, 1},
		{"disc", urdf.Primitive{Kind: urdf.Cylinder, Radius: 0.17, Length: 0.1}, robot.ClassBase, 0.08, 4},
		{"beam", urdf.Primitive{Kind: urdf.Box, Size: r3.Vec{X: 0.05, Y: 0.05, Z: 1.5}}, robot.ClassArm, 0.03, 1},
		{"cube", urdf.Primitive{Kind: urdf.Box, Size: r3.Vec{X: 0.1, Y: 0.1, Z: 0.1}}, robot.ClassArm, 0.05, 4},
		{"palm", urdf.Primitive{Kind: urdf.Box, Size: r3.Vec{X: 0.06, Y: 0.2, Z: 0.066}}, robot.ClassHand, 0.016, 8},
		{"plate", urdf.Primitive{Kind: urdf.Box, Size: r3.Vec{X: 0.3, Y: 0.2, Z: 0.02}}, robot.ClassArm, 0.04, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.p.Origin = o
			cs := cover(c.p, c.class)
			if len(cs) > c.count {
				t.Errorf("%d capsules, want at most %d", len(cs), c.count)
			}
			pose := originPose(o)
			for range 4000 {
				v := pose.Point(surface(c.p, r))
				in := math.Inf(1)
				for _, k := range cs {
					in = math.Min(in, k.Dist(v))
				}
				if in > 1e-9 {
					t.Fatalf("a point of the skin is %v outside the capsules", in)
				}
			}
			worst := 0.0
			for _, k := range cs {
				for range 2000 {
					n := r3.Unit(r3.Vec{X: r.NormFloat64(), Y: r.NormFloat64(), Z: r.NormFloat64()})
					v := r3.Add(k.A, r3.Add(r3.Scale(r.Float64(), r3.Sub(k.B, k.A)), r3.Scale(k.R, n)))
					worst = math.Max(worst, outside(c.p, pose.Inv().Point(v)))
				}
			}
			if worst > c.most {
				t.Errorf("capsules stand out by %.1f mm, want at most %.1f mm", worst*1e3, c.most*1e3)
			}
		})
	}
}

// Capsules ride on their links, carry the link's class, and fingers move with the aperture.
func TestCapsulesOfRobots(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for name, k := range robots(t) {
		tree, err := urdf.Load(k.desc.URDF)
		if err != nil {
			t.Fatal(err)
		}
		q, base := randomQ(k, r, 0), geom.SE2{X: 1, Y: -2, Yaw: 0.5}
		const a = 0.05
		classes := map[robot.LinkClass]int{}
		i := 0
		cs := k.Capsules(base, q, a)
		for _, link := range k.LinkNames() {
			pose, ok := k.Link(link, base, q, a)
			if !ok {
				t.Fatalf("%s: no link %s", name, link)
			}
			for _, p := range tree.Link(link).Collisions {
				if p.Kind != urdf.Capsule { // covered by several: TestCover says that it is
					i += len(cover(p, cs[i].Class))
					continue
				}
				c := cs[i]
				at := pose.Mul(originPose(p.Origin))
				if c.Link != link || math.Abs(c.R-p.Radius) > 1e-12 {
					t.Fatalf("%s: capsule %d is %+v, want one of %s", name, i, c, link)
				}
				nearVec(t, link, c.A, at.Point(r3.Vec{Z: -p.Length / 2}), 1e-9)
				nearVec(t, link, c.B, at.Point(r3.Vec{Z: p.Length / 2}), 1e-9)
				classes[c.Class]++
				i++
			}
		}
		if i != len(cs) {
			t.Errorf("%s: %d capsules, the URDF has %d", name, len(cs), i)
		}
		for _, c := range []robot.LinkClass{robot.ClassArm, robot.ClassBase, robot.ClassHand, robot.ClassFinger} {
			if classes[c] == 0 {
				t.Errorf("%s: no capsule of class %v", name, c)
			}
		}
		for i, c := range k.Capsules(base, q, a+0.02) {
			moved := r3.Norm(r3.Sub(c.A, cs[i].A))
			if want := 0.01; c.Class == robot.ClassFinger && math.Abs(moved-want) > 1e-9 || c.Class != robot.ClassFinger && moved > 1e-12 {
				t.Errorf("%s: %s moved by %v when the jaw opened by 20 mm", name, c.Link, moved)
			}
		}
	}
}
