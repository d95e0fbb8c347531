package view

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/sensor"
	"viad/interface/stage"
)

func randomOrbit(rng *rand.Rand) stage.Orbit {
	return stage.Orbit{
		Target: r3.Vec{X: rng.Float64(), Y: rng.Float64() - .5, Z: .3 * rng.Float64()}, Distance: .2 + 2*rng.Float64(),
		Azimuth: 2 * math.Pi * rng.Float64(), Elevation: geom.Rad(85 * rng.Float64()),
	}
}

// The viewport's lens and the stage's own projection are one camera.
func TestOrbitLensIsStagesProjection(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	r := Layout.Cloud
	for range 300 {
		o := randomOrbit(rng)
		l := orbitLens(o, r.Dx(), r.Dy())
		q := o.Unproject(rng.Float64(), rng.Float64(), .05+2*rng.Float64())
		u, v, z, ok := o.Project(q)
		s, ok2 := l.project(q)
		if !ok || !ok2 || math.Abs(s.X-u*float64(r.Dx())) > 1e-6 || math.Abs(s.Y-v*float64(r.Dy())) > 1e-6 || math.Abs(s.Z-z) > 1e-9 {
			t.Fatalf("%+v at %v: lens (%v), stage (%v,%v,%v)", o, q, s, u, v, z)
		}
		if b := l.unproject(s.X, s.Y, s.Z); r3.Norm(r3.Sub(b, q)) > 1e-9 {
			t.Fatalf("unproject gives %v, want %v", b, q)
		}
	}
}

// By hand: at azimuth 90, elevation 0, distance 2 the camera stands at x = 2 looking along -X; a point half a
// metre to +Y appears to the right by f*0.5/2 with f = 400/tan(22.5 deg).
func TestOrbitLensByHand(t *testing.T) {
	l := orbitLens(stage.Orbit{Distance: 2, Azimuth: math.Pi / 2}, 880, 800)
	s, ok := l.project(r3.Vec{Y: .5, Z: .25})
	f := 400 / math.Tan(22.5*math.Pi/180)
	if !ok || math.Abs(s.X-(440+f*.25)) > 1e-9 || math.Abs(s.Y-(400-f*.125)) > 1e-9 || math.Abs(s.Z-2) > 1e-12 {
		t.Errorf("got %v, want (%v, %v, 2)", s, 440+f*.25, 400-f*.125)
	}
}

// A camera's lens agrees with the sensor's own projection, whose pixel centres are whole numbers.
func TestCameraLens(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	in := sensor.Intrinsics{W: 640, H: 480, Fx: 500, Fy: 510, Cx: 300, Cy: 251}
	pose := lookAt(r3.Vec{X: 1, Y: .3, Z: 1}, r3.Vec{}, r3.Vec{Z: 1})
	for _, size := range [][2]int{{640, 480}, {400, 300}, {960, 720}} {
		l := cameraLens(pose, in, size[0], size[1])
		for range 100 {
			c := r3.Vec{X: rng.Float64() - .5, Y: rng.Float64() - .5, Z: .2 + 2*rng.Float64()}
			u, v, _ := in.Project(c)
			s, ok := l.project(pose.Point(c))
			wx, wy := (u+.5)*float64(size[0])/640, (v+.5)*float64(size[1])/480
			if !ok || math.Abs(s.X-wx) > 1e-9 || math.Abs(s.Y-wy) > 1e-9 || math.Abs(s.Z-c.Z) > 1e-9 {
				t.Fatalf("%v at %v: %v, want (%v,%v)", c, size, s, wx, wy)
			}
		}
	}
}

func TestPixelOfFraction(t *testing.T) {
	for _, c := range []struct {
		u    float64
		n, x int
		ok   bool
	}{
		{0, 1280, 0, true},
		{1, 1280, 1279, true},
		{.5, 1280, 640, true},
		{1279.999 / 1280, 1280, 1279, true},
		{-1e-9, 1280, 0, false},
		{1.0000001, 1280, 0, false},
		{math.NaN(), 1280, 0, false},
		{math.Inf(1), 1280, 0, false},
	} {
		if x, ok := Pixel(c.u, c.n); x != c.x || ok != c.ok {
			t.Errorf("Pixel(%v,%d) = %d,%v, want %d,%v", c.u, c.n, x, ok, c.x, c.ok)
		}
	}
}

// Every primitive is closed and wound outwards: its volume by the divergence theorem is the known one, and each
// normal points the way its triangle faces.
func TestTessellationVolumes(t *testing.T) {
	turn := geom.Pose{P: r3.Vec{X: .3, Y: -.2, Z: .1}, R: geom.RPY(.4, -.7, 1.1)}
	for _, c := range []struct {
		name string
		s    Solid
		want float64
		tol  float64
	}{
		{"box", Solid{Kind: Box, Size: r3.Vec{X: .1, Y: .2, Z: .3}}, .006, 1e-9},
		{"cylinder", Solid{Kind: Cylinder, Size: r3.Vec{X: .05, Z: .2}}, math.Pi * .0025 * .2, .02},
		{"sphere", Solid{Kind: Sphere, Size: r3.Vec{X: .1}}, 4. / 3 * math.Pi * .001, .03},
		{"capsule", Solid{Kind: Capsule, Size: r3.Vec{X: .1, Z: .3}}, 4./3*math.Pi*.001 + math.Pi*.01*.3, .03},
	} {
		c.s.Pose = turn
		m := tessellate([]Solid{c.s})
		vol := 0.0
		for i := range m.part {
			a, b, d := m.pos[3*i], m.pos[3*i+1], m.pos[3*i+2]
			vol += r3.Dot(a, r3.Cross(b, d)) / 6
			face := r3.Cross(r3.Sub(b, a), r3.Sub(d, a))
			for k := range 3 {
				if r3.Dot(face, m.normal[3*i+k]) <= 0 {
					t.Fatalf("%s: triangle %d faces away from its normal", c.name, i)
				}
			}
		}
		if math.Abs(vol-c.want) > c.tol*c.want {
			t.Errorf("%s: volume %v, want %v within %v", c.name, vol, c.want, c.tol)
		}
	}
}
