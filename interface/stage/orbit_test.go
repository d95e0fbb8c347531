package stage

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

func orbitAt(azimuth, elevation float64) Orbit {
	return Orbit{Target: r3.Vec{X: .45, Z: .1}, Distance: 1, Azimuth: geom.Rad(azimuth), Elevation: geom.Rad(elevation)}
}

func near(t *testing.T, what string, got, want r3.Vec) {
	t.Helper()
	if r3.Norm(r3.Sub(got, want)) > 1e-6 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// The contract's camera vectors (section 8).
func TestOrbitBasisVectors(t *testing.T) {
	pos, right, up, _ := orbitAt(90, 30).Basis()
	near(t, "pos 90,30", pos, r3.Vec{X: 1.316025, Z: .6})
	near(t, "right 90,30", right, r3.Vec{Y: 1})
	near(t, "up 90,30", up, r3.Vec{X: -.5, Z: .866025})
	pos, right, _, _ = orbitAt(180, 30).Basis()
	near(t, "pos 180,30", pos, r3.Vec{X: .45, Y: .866025, Z: .6})
	near(t, "right 180,30", right, r3.Vec{X: -1})
	pos, right, _, _ = orbitAt(0, 30).Basis()
	near(t, "pos 0,30", pos, r3.Vec{X: .45, Y: -.866025, Z: .6})
	near(t, "right 0,30", right, r3.Vec{X: 1})
	_, right, _, _ = orbitAt(135, 30).Basis()
	near(t, "right 135,30", right, r3.Vec{X: -.707107, Y: .707107})
}

func TestOrbitProjectUnproject(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		o := Orbit{
			Target:   r3.Vec{X: rng.Float64(), Y: rng.Float64() - .5, Z: rng.Float64()},
			Distance: .1 + 2.9*rng.Float64(), Azimuth: 7 * rng.Float64(), Elevation: geom.Rad(85 * rng.Float64()),
		}
		u, v, z := rng.Float64(), rng.Float64(), .05+3*rng.Float64()
		p := o.Unproject(u, v, z)
		gu, gv, gz, ok := o.Project(p)
		if !ok || math.Abs(gu-u) > 1e-9 || math.Abs(gv-v) > 1e-9 || math.Abs(gz-z) > 1e-9 {
			t.Fatalf("%+v: (%v,%v,%v) came back as (%v,%v,%v,%v)", o, u, v, z, gu, gv, gz, ok)
		}
		pos, _, _, _ := o.Basis()
		if c := r3.Cross(o.Ray(u, v), r3.Unit(r3.Sub(p, pos))); r3.Norm(c) > 1e-9 {
			t.Fatalf("ray at (%v,%v) does not point at the point there", u, v)
		}
	}
	if _, _, _, ok := orbitAt(90, 30).Project(r3.Vec{X: 3, Z: 1.6}); ok {
		t.Error("a point behind the camera was projected")
	}
	u, v, z, ok := orbitAt(37, 12).Project(r3.Vec{X: .45, Z: .1})
	if !ok || math.Abs(u-.5) > 1e-12 || math.Abs(v-.5) > 1e-12 || math.Abs(z-1) > 1e-12 {
		t.Errorf("the target is at (%v,%v) depth %v, want the centre at the distance", u, v, z)
	}
}
