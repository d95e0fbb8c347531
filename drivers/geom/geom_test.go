package geom

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s = %.9g, want %.9g within %g", what, got, want, tol)
	}
}

func nearVec(t *testing.T, what string, got, want r3.Vec, tol float64) {
	t.Helper()
	if !(r3.Norm(r3.Sub(got, want)) <= tol) {
		t.Errorf("%s = %v, want %v within %g", what, got, want, tol)
	}
}

func randomRot(r *rand.Rand) quat.Number {
	return Normalize(quat.Number{Real: r.NormFloat64(), Imag: r.NormFloat64(), Jmag: r.NormFloat64(), Kmag: r.NormFloat64()})
}

func randomVec(r *rand.Rand) r3.Vec {
	return r3.Vec{X: r.NormFloat64(), Y: r.NormFloat64(), Z: r.NormFloat64()}
}

// The wrist vectors of the contract's section 8: opening and approach after single tilts, by hand from
// sines and cosines.
func TestRotationSigns(t *testing.T) {
	c, s := math.Sqrt(3)/2, 0.5
	nearVec(t, "Rx(30) y", Rotate(RotX(math.Pi/6), r3.Vec{Y: 1}), r3.Vec{Y: c, Z: s}, 1e-12)
	nearVec(t, "Ry(30) x", Rotate(RotY(math.Pi/6), r3.Vec{X: 1}), r3.Vec{X: c, Z: -s}, 1e-12)
	nearVec(t, "Rz(30) x", Rotate(RotZ(math.Pi/6), r3.Vec{X: 1}), r3.Vec{X: c, Y: s}, 1e-12)
	nearVec(t, "Rz(90) of x+y", Rotate(RotZ(math.Pi/2), r3.Vec{X: 1, Y: 1}), r3.Vec{X: -1, Y: 1}, 1e-12)
}

// URDF's rpy is fixed-axis: the matrix written out by hand (sin and cos of each angle).
func TestRPYMatrix(t *testing.T) {
	r, p, y := 0.3, -0.7, 1.1
	cr, sr, cp, sp, cy, sy := math.Cos(r), math.Sin(r), math.Cos(p), math.Sin(p), math.Cos(y), math.Sin(y)
	want := [3][3]float64{
		{cy * cp, cy*sp*sr - sy*cr, cy*sp*cr + sy*sr},
		{sy * cp, sy*sp*sr + cy*cr, sy*sp*cr - cy*sr},
		{-sp, cp * sr, cp * cr},
	}
	got := Matrix(RPY(r, p, y))
	for i := range 3 {
		for j := range 3 {
			near(t, "entry", got[i][j], want[i][j], 1e-12)
		}
	}
	gy, gp, gr, cpitch := YawPitchRoll(RPY(r, p, y))
	near(t, "yaw", gy, y, 1e-12)
	near(t, "pitch", gp, p, 1e-12)
	near(t, "roll", gr, r, 1e-12)
	near(t, "cos pitch", cpitch, cp, 1e-12)
}

func TestRotationProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		q, v, w := randomRot(r), randomVec(r), randomVec(r)
		near(t, "length kept", r3.Norm(Rotate(q, v)), r3.Norm(v), 1e-12)
		nearVec(t, "cross kept", Rotate(q, r3.Cross(v, w)), r3.Cross(Rotate(q, v), Rotate(q, w)), 1e-11)
		back := FromMatrix(Matrix(q))
		near(t, "matrix round trip", math.Abs(back.Real*q.Real+back.Imag*q.Imag+back.Jmag*q.Jmag+back.Kmag*q.Kmag), 1, 1e-12)
		nearVec(t, "rotvec round trip", Rotate(FromRotVec(RotVec(q)), v), Rotate(q, v), 1e-11)
		if n := r3.Norm(RotVec(q)); n > math.Pi+1e-12 {
			t.Errorf("rotation vector longer than pi: %v", n)
		}
		m := Matrix(q)
		x, y := r3.Vec{X: m[0][0], Y: m[1][0], Z: m[2][0]}, r3.Vec{X: m[0][1], Y: m[1][1], Z: m[2][1]}
		nearVec(t, "from axes", Rotate(FromAxes(x, y), v), Rotate(q, v), 1e-11)
	}
}

func TestSmallRotation(t *testing.T) {
	w := r3.Vec{X: 3e-13, Y: -2e-13, Z: 1e-13}
	nearVec(t, "tiny", RotVec(FromRotVec(w)), w, 1e-20)
	nearVec(t, "half turn", RotVec(FromRotVec(r3.Vec{Z: math.Pi})), r3.Vec{Z: math.Pi}, 1e-12)
	near(t, "q and -q", At(0, 0, 0).Angle(Pose{R: quat.Number{Real: -1}}), 0, 1e-12)
}

func TestPoseGroup(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		a, b := Pose{randomVec(r), randomRot(r)}, Pose{randomVec(r), randomRot(r)}
		v := randomVec(r)
		nearVec(t, "compose", a.Mul(b).Point(v), a.Point(b.Point(v)), 1e-11)
		nearVec(t, "inverse", a.Inv().Point(a.Point(v)), v, 1e-11)
		nearVec(t, "z = x cross y", r3.Cross(a.X(), a.Y()), a.Z(), 1e-12)
		near(t, "lerp ends at b", a.Lerp(b, 1).Angle(b)+a.Lerp(b, 1).Dist(b), 0, 1e-7)
		near(t, "half the angle", a.Angle(a.Lerp(b, 0.5)), a.Angle(b)/2, 1e-9)
		near(t, "half the way", a.Dist(a.Lerp(b, 0.5)), a.Dist(b)/2, 1e-12)
	}
}

func TestPoseFinite(t *testing.T) {
	nan := math.NaN()
	for _, p := range []Pose{
		{P: r3.Vec{X: nan}, R: quat.Number{Real: 1}},
		{P: r3.Vec{Y: math.Inf(-1)}, R: quat.Number{Real: 1}},
		{R: quat.Number{Real: nan}},
		{R: quat.Number{}},
		{R: quat.Number{Real: 1.001}},
	} {
		if p.Finite() {
			t.Errorf("%v passes as finite", p)
		}
	}
	if !Identity().Finite() {
		t.Error("the identity is not finite")
	}
	if (SE2{Yaw: nan}).Finite() || !(SE2{X: 1}).Finite() {
		t.Error("SE2.Finite")
	}
}

// The nav vectors of the contract's section 8.
func TestSE2Vectors(t *testing.T) {
	steps := func(m ...SE2) SE2 {
		var a SE2
		for _, b := range m {
			a = a.Mul(b)
		}
		return a
	}
	check := func(name string, got SE2, x, y, deg float64) {
		t.Helper()
		near(t, name+" x", got.X, x, 5e-5)
		near(t, name+" y", got.Y, y, 5e-5)
		near(t, name+" yaw", Deg(got.Yaw), deg, 1e-9)
	}
	check("turn, go", steps(SE2{Yaw: Rad(90)}, SE2{X: 0.3}), 0, 0.3, 90)
	check("four", steps(SE2{Yaw: Rad(90)}, SE2{X: 0.3}, SE2{Yaw: Rad(-45)}, SE2{Y: 0.1}), -0.0707, 0.3707, 45)
	d := steps(SE2{X: 0.3}, SE2{Yaw: Rad(30)}, SE2{X: 0.1, Y: 0.1})
	check("three", d, 0.336603, 0.136603, 30)
	near(t, "norm", d.Norm(), 0.363265, 1e-6)
	nearVec(t, "gripper", d.Pose().Point(r3.Vec{X: 0.6, Y: -0.1, Z: 0.8}), r3.Vec{X: 0.906218, Y: 0.35, Z: 0.8}, 1e-6)
	i := d.Mul(d.Inv())
	check("inverse", i, 0, 0, 0)
	check("turns add up", steps(SE2{Yaw: 3}, SE2{Yaw: 3}), 0, 0, Deg(6))
	check("lerp", SE2{X: 1}.Lerp(SE2{X: 2, Y: 4, Yaw: 1}, 0.25), 1.25, 1, Deg(0.25))
}

func TestWrapAngle(t *testing.T) {
	for _, c := range [][2]float64{{0, 0}, {math.Pi, math.Pi}, {-math.Pi, math.Pi}, {4, 4 - 2*math.Pi}, {-7, -7 + 2*math.Pi}, {100, 100 - 32*math.Pi}} {
		near(t, "wrap", WrapAngle(c[0]), c[1], 1e-12)
	}
}

// Distances to a capsule by hand: beside the segment, beyond an end, on the axis, a point capsule.
func TestCapsuleDist(t *testing.T) {
	c := Capsule{A: r3.Vec{}, B: r3.Vec{X: 2}, R: 0.5}
	for _, k := range []struct {
		p    r3.Vec
		want float64
	}{
		{r3.Vec{X: 1, Y: 3}, 2.5},
		{r3.Vec{X: 5, Y: 4}, 4.5}, // 3-4-5 from B
		{r3.Vec{X: -1}, 0.5},
		{r3.Vec{X: 1}, -0.5},
	} {
		near(t, "dist", c.Dist(k.p), k.want, 1e-12)
	}
	near(t, "sphere", Capsule{A: r3.Vec{Z: 1}, B: r3.Vec{Z: 1}, R: 1}.Dist(r3.Vec{Z: 4}), 2, 1e-12)
	b := c.Bounds(0.1)
	nearVec(t, "min", b.Min, r3.Vec{X: -0.6, Y: -0.6, Z: -0.6}, 1e-12)
	nearVec(t, "max", b.Max, r3.Vec{X: 2.6, Y: 0.6, Z: 0.6}, 1e-12)
	m := c.Moved(Pose{P: r3.Vec{Z: 1}, R: RotZ(math.Pi / 2)})
	nearVec(t, "moved B", m.B, r3.Vec{Y: 2, Z: 1}, 1e-12)
}

// Gaps by hand, and against the least distance over a fine grid of both segments.
func TestCapsuleGap(t *testing.T) {
	x := Capsule{A: r3.Vec{X: -1}, B: r3.Vec{X: 1}, R: 0.1}
	for _, k := range []struct {
		o    Capsule
		want float64
	}{
		{Capsule{A: r3.Vec{Y: -1, Z: 1}, B: r3.Vec{Y: 1, Z: 1}, R: 0.2}, 0.7},    // crossing above
		{Capsule{A: r3.Vec{X: -3, Y: 1}, B: r3.Vec{X: 3, Y: 1}, R: 0.2}, 0.7},    // parallel
		{Capsule{A: r3.Vec{X: 4, Y: 4}, B: r3.Vec{X: 9, Y: 9}, R: 0.2}, 4.7},     // end to end: 3-4-5
		{Capsule{A: r3.Vec{Z: 2}, B: r3.Vec{Z: 2}, R: 0.5}, 1.4},                 // a point
		{Capsule{A: r3.Vec{X: 0.5, Y: -1}, B: r3.Vec{X: 0.5, Y: 1}, R: 1}, -1.1}, // through each other
	} {
		near(t, "gap", x.Gap(k.o), k.want, 1e-12)
		near(t, "gap, the other way", k.o.Gap(x), k.want, 1e-12)
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		a, b := Capsule{A: randomVec(r), B: randomVec(r)}, Capsule{A: randomVec(r), B: randomVec(r)}
		least := math.Inf(1)
		const n = 200
		for i := range n + 1 {
			p := r3.Add(a.A, r3.Scale(float64(i)/n, r3.Sub(a.B, a.A)))
			least = math.Min(least, b.Dist(p))
		}
		if g := a.Gap(b); g > least+1e-12 || g < least-0.02 {
			t.Errorf("gap %v, on the grid %v", g, least)
		}
	}
}
