package wire

import (
	"math"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// link is a row of the modified (Craig) Denavit-Hartenberg table.
type link struct{ a, alpha, d float64 }

func frankaLinks() [8]link {
	const right = math.Pi / 2
	return [8]link{
		{0, 0, 0.333},
		{0, -right, 0},
		{0, right, 0.316},
		{0.0825, right, 0},
		{-0.0825, -right, 0.384},
		{0, right, 0},
		{0.088, right, 0},
		{0, 0, 0.107}, // the flange
	}
}

// handTurn and handLong are the hand on the flange: its point between the finger tips.
const (
	handTurn = -math.Pi / 4
	handLong = 0.1034
)

// chain is the frames of the seven joints, the flange and the hand's point, in the base.
func chain(q [7]float64) [9]geom.Pose {
	var out [9]geom.Pose
	at := geom.Identity()
	for i, l := range frankaLinks() {
		turn := 0.0
		if i < len(q) {
			turn = q[i]
		}
		tilt := geom.Pose{P: r3.Vec{X: l.a}, R: about(r3.Vec{X: 1}, l.alpha)}
		at = at.Mul(tilt).Mul(geom.Pose{P: r3.Vec{Z: l.d}, R: about(r3.Vec{Z: 1}, turn)})
		out[i] = at
	}
	out[8] = at.Mul(geom.Pose{P: r3.Vec{Z: 0}, R: about(r3.Vec{Z: 1}, handTurn)}).Mul(geom.Pose{P: r3.Vec{Z: handLong}, R: quat.Number{Real: 1}})
	return out
}

func about(axis r3.Vec, angle float64) quat.Number {
	s, c := math.Sincos(angle / 2)
	return quat.Number{Real: c, Imag: s * axis.X, Jmag: s * axis.Y, Kmag: s * axis.Z}
}

// handPose is O_T_EE.
func handPose(q [7]float64) geom.Pose { return chain(q)[8] }

// jacobian is the speed of the hand's point for each joint's.
func jacobian(q [7]float64) (v [7]r3.Vec) {
	c := chain(q)
	for j := range v {
		axis := r3.Sub(c[j].Point(r3.Vec{Z: 1}), c[j].P)
		v[j] = r3.Cross(axis, r3.Sub(c[8].P, c[j].P))
	}
	return v
}

// twist is the hand's speed for the joints': of its point, and of its turning.
func twist(q, qd [7]float64) (v, w r3.Vec) {
	c := chain(q)
	for j, u := range jacobian(q) {
		v = r3.Add(v, r3.Scale(qd[j], u))
		w = r3.Add(w, r3.Scale(qd[j], r3.Sub(c[j].Point(r3.Vec{Z: 1}), c[j].P)))
	}
	return v, w
}

// columns is a pose as 16 numbers, column by column.
func columns(p geom.Pose) (m [16]float64) {
	for i, e := range [3]r3.Vec{{X: 1}, {Y: 1}, {Z: 1}} {
		u := r3.Sub(p.Point(e), p.P)
		m[4*i], m[4*i+1], m[4*i+2] = u.X, u.Y, u.Z
	}
	m[12], m[13], m[14], m[15] = p.P.X, p.P.Y, p.P.Z, 1
	return m
}
