package wire

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// Poses of Franka's own description for three postures: robots.md has the numbers.
func TestWhereTheHandIs(t *testing.T) {
	const q4 = math.Pi / 4
	ready := [7]float64{0, -q4, 0, -3 * q4, 0, 2 * q4, q4}
	other := [7]float64{.1, -.3, .2, -2.0, .4, 1.8, -.5}
	for _, c := range []struct {
		what  string
		q     [7]float64
		frame int // of the chain
		p     r3.Vec
		r     quat.Number
	}{
		{"stretched up", [7]float64{}, 7, r3.Vec{X: .088, Z: .926}, quat.Number{Imag: 1}},
		{"ready", ready, 7, r3.Vec{X: .30689, Z: .59028}, quat.Number{Imag: .92388, Jmag: -.38268}},
		{"ready, hand", ready, 8, r3.Vec{X: .30689, Z: .48688}, quat.Number{Imag: 1}},
		{"other", other, 7, r3.Vec{X: .44348, Y: .18337, Z: .59545}, quat.Number{Imag: -.92158, Jmag: -.34743, Kmag: -.06435, Real: .16072}},
		{"other, hand", other, 8, r3.Vec{X: .44420, Y: .21862, Z: .49824}, quat.Number{Imag: -.71848, Jmag: -.67366, Kmag: -.12096, Real: .12386}},
	} {
		got := chain(c.q)[c.frame]
		if want := (geom.Pose{P: c.p, R: c.r}); got.Dist(want) > 2e-5 || got.Angle(want) > 1e-4 {
			t.Errorf("%s: %+v, want %+v", c.what, got, want)
		}
	}
	want := [16]float64{1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 0, .306891, 0, .486882, 1}
	for i, x := range columns(handPose(ready)) {
		if math.Abs(x-want[i]) > 1e-6 {
			t.Errorf("number %d of O_T_EE is %v, want %v", i, x, want[i])
		}
	}
}

// The hand's speed is what its pose changes by.
func TestTwistIsThePosesChange(t *testing.T) {
	q := [7]float64{.1, -.3, .2, -2.0, .4, 1.8, -.5}
	qd := [7]float64{.3, -.1, .2, .4, -.5, .6, .7}
	const h = 1e-6
	next := q
	for j := range next {
		next[j] += h * qd[j]
	}
	a, b := handPose(q), handPose(next)
	v, w := twist(q, qd)
	if d := r3.Scale(1/h, r3.Sub(b.P, a.P)); r3.Norm(r3.Sub(d, v)) > 1e-5 {
		t.Errorf("speed %v, the pose changes by %v", v, d)
	}
	if d := r3.Scale(1/h, geom.RotVec(quat.Mul(b.R, quat.Conj(a.R)))); r3.Norm(r3.Sub(d, w)) > 1e-5 {
		t.Errorf("turning %v, the pose turns by %v", w, d)
	}
}
