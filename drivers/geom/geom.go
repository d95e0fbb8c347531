// Package geom holds poses and planar motions as thin values over gonum's r3 and quat.
//
// Lengths are metres and angles radians. All frames are right-handed. A Pose named aTb
// (or "pose of b in a") takes coordinates in b to coordinates in a. Rotations are unit
// quaternions; q and -q are the same rotation.
package geom

import (
	"math"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"
)

// Pose is a rigid transform: rotate by R, then translate by P.
type Pose struct {
	P r3.Vec      // metres
	R quat.Number // unit quaternion
}

// Identity is the pose that changes nothing.
func Identity() Pose { return Pose{R: quat.Number{Real: 1}} }

// At is an unrotated pose at x, y, z metres.
func At(x, y, z float64) Pose { return Pose{P: r3.Vec{X: x, Y: y, Z: z}, R: quat.Number{Real: 1}} }

// Mul composes: the pose of c in a from a (b in a) and b (c in b).
func (a Pose) Mul(b Pose) Pose {
	return Pose{P: a.Point(b.P), R: Normalize(quat.Mul(a.R, b.R))}
}

// Inv is the inverse transform.
func (a Pose) Inv() Pose {
	c := quat.Conj(a.R)
	return Pose{P: r3.Scale(-1, Rotate(c, a.P)), R: c}
}

// Point takes a point in the pose's own frame to the parent frame.
func (a Pose) Point(v r3.Vec) r3.Vec { return r3.Add(a.P, Rotate(a.R, v)) }

// Dir rotates a direction from the pose's own frame to the parent frame.
func (a Pose) Dir(v r3.Vec) r3.Vec { return Rotate(a.R, v) }

// X is the pose's own x axis in the parent frame.
func (a Pose) X() r3.Vec { return Rotate(a.R, r3.Vec{X: 1}) }

// Y is the pose's own y axis in the parent frame.
func (a Pose) Y() r3.Vec { return Rotate(a.R, r3.Vec{Y: 1}) }

// Z is the pose's own z axis in the parent frame.
func (a Pose) Z() r3.Vec { return Rotate(a.R, r3.Vec{Z: 1}) }

// Finite reports whether every component is a finite number and R has unit length within 1e-6.
func (a Pose) Finite() bool {
	return FiniteVec(a.P) && math.Abs(quat.Abs(a.R)-1) < 1e-6
}

// Dist is the distance between the origins of a and b in metres.
func (a Pose) Dist(b Pose) float64 { return r3.Norm(r3.Sub(a.P, b.P)) }

// Angle is the rotation angle between a and b in [0, pi].
func (a Pose) Angle(b Pose) float64 { return r3.Norm(RotVec(quat.Mul(quat.Conj(a.R), b.R))) }

// Lerp interpolates in SE(3): the origin along the straight line, the rotation along the
// shortest great arc, s in [0, 1].
func (a Pose) Lerp(b Pose, s float64) Pose {
	w := RotVec(quat.Mul(quat.Conj(a.R), b.R))
	return Pose{
		P: r3.Add(a.P, r3.Scale(s, r3.Sub(b.P, a.P))),
		R: Normalize(quat.Mul(a.R, FromRotVec(r3.Scale(s, w)))),
	}
}

// FiniteVec reports whether no component is NaN or infinite.
func FiniteVec(v r3.Vec) bool {
	for _, c := range [3]float64{v.X, v.Y, v.Z} {
		if math.IsNaN(c) || math.IsInf(c, 0) {
			return false
		}
	}
	return true
}

// Rotate applies a unit quaternion to a vector.
func Rotate(q quat.Number, v r3.Vec) r3.Vec {
	u := r3.Vec{X: q.Imag, Y: q.Jmag, Z: q.Kmag}
	t := r3.Scale(2, r3.Cross(u, v))
	return r3.Add(v, r3.Add(r3.Scale(q.Real, t), r3.Cross(u, t)))
}

// Normalize scales q to unit length; the zero quaternion becomes the identity.
func Normalize(q quat.Number) quat.Number {
	n := quat.Abs(q)
	if n == 0 {
		return quat.Number{Real: 1}
	}
	return quat.Scale(1/n, q)
}

// RotX is a right-handed rotation by a radians about x.
func RotX(a float64) quat.Number { s, c := math.Sincos(a / 2); return quat.Number{Real: c, Imag: s} }

// RotY is a right-handed rotation by a radians about y.
func RotY(a float64) quat.Number { s, c := math.Sincos(a / 2); return quat.Number{Real: c, Jmag: s} }

// RotZ is a right-handed rotation by a radians about z.
func RotZ(a float64) quat.Number { s, c := math.Sincos(a / 2); return quat.Number{Real: c, Kmag: s} }

// RPY is URDF's fixed-axis roll, pitch, yaw: Rz(yaw) Ry(pitch) Rx(roll).
func RPY(roll, pitch, yaw float64) quat.Number {
	return quat.Mul(RotZ(yaw), quat.Mul(RotY(pitch), RotX(roll)))
}

// AxisAngle is a right-handed rotation by a radians about a non-zero axis.
func AxisAngle(axis r3.Vec, a float64) quat.Number {
	return FromRotVec(r3.Scale(a, r3.Unit(axis)))
}

// FromRotVec is the rotation by |w| radians about w.
func FromRotVec(w r3.Vec) quat.Number {
	a := r3.Norm(w)
	if a < 1e-12 {
		return Normalize(quat.Number{Real: 1, Imag: w.X / 2, Jmag: w.Y / 2, Kmag: w.Z / 2})
	}
	s, c := math.Sincos(a / 2)
	k := s / a
	return quat.Number{Real: c, Imag: k * w.X, Jmag: k * w.Y, Kmag: k * w.Z}
}

// RotVec is the rotation vector of q, its length in [0, pi].
func RotVec(q quat.Number) r3.Vec {
	if q.Real < 0 {
		q = quat.Scale(-1, q)
	}
	u := r3.Vec{X: q.Imag, Y: q.Jmag, Z: q.Kmag}
	n := r3.Norm(u)
	if n < 1e-12 {
		return r3.Scale(2, u)
	}
	return r3.Scale(2*math.Atan2(n, q.Real)/n, u)
}

// FromAxes is the rotation whose columns are the orthonormal right-handed x, y and x cross y.
func FromAxes(x, y r3.Vec) quat.Number {
	z := r3.Cross(x, y)
	m := [3][3]float64{{x.X, y.X, z.X}, {x.Y, y.Y, z.Y}, {x.Z, y.Z, z.Z}}
	return fromMatrix(m)
}

func fromMatrix(m [3][3]float64) quat.Number {
	var q quat.Number
	switch tr := m[0][0] + m[1][1] + m[2][2]; {
	case tr > 0:
		s := 2 * math.Sqrt(tr+1)
		q = quat.Number{Real: s / 4, Imag: (m[2][1] - m[1][2]) / s, Jmag: (m[0][2] - m[2][0]) / s, Kmag: (m[1][0] - m[0][1]) / s}
	case m[0][0] > m[1][1] && m[0][0] > m[2][2]:
		s := 2 * math.Sqrt(1+m[0][0]-m[1][1]-m[2][2])
		q = quat.Number{Real: (m[2][1] - m[1][2]) / s, Imag: s / 4, Jmag: (m[0][1] + m[1][0]) / s, Kmag: (m[0][2] + m[2][0]) / s}
	case m[1][1] > m[2][2]:
		s := 2 * math.Sqrt(1+m[1][1]-m[0][0]-m[2][2])
		q = quat.Number{Real: (m[0][2] - m[2][0]) / s, Imag: (m[0][1] + m[1][0]) / s, Jmag: s / 4, Kmag: (m[1][2] + m[2][1]) / s}
	default:
		s := 2 * math.Sqrt(1+m[2][2]-m[0][0]-m[1][1])
		q = quat.Number{Real: (m[1][0] - m[0][1]) / s, Imag: (m[0][2] + m[2][0]) / s, Jmag: (m[1][2] + m[2][1]) / s, Kmag: s / 4}
	}
	return Normalize(q)
}

// SE2 is a planar pose or displacement: metres and radians, yaw counter-clockwise from above.
type SE2 struct{ X, Y, Yaw float64 }

// Mul composes planar poses as Pose.Mul does; yaw is not wrapped, so turns accumulate.
func (a SE2) Mul(b SE2) SE2 {
	s, c := math.Sincos(a.Yaw)
	return SE2{X: a.X + c*b.X - s*b.Y, Y: a.Y + s*b.X + c*b.Y, Yaw: a.Yaw + b.Yaw}
}

// Inv is the inverse of a.
func (a SE2) Inv() SE2 {
	s, c := math.Sincos(a.Yaw)
	return SE2{X: -c*a.X - s*a.Y, Y: s*a.X - c*a.Y, Yaw: -a.Yaw}
}

// Pose lifts a to three dimensions at z = 0.
func (a SE2) Pose() Pose { return Pose{P: r3.Vec{X: a.X, Y: a.Y}, R: RotZ(a.Yaw)} }

// Norm is the length of the translation in metres.
func (a SE2) Norm() float64 { return math.Hypot(a.X, a.Y) }

// Finite reports whether all three numbers are finite.
func (a SE2) Finite() bool { return FiniteVec(r3.Vec{X: a.X, Y: a.Y, Z: a.Yaw}) }

// WrapAngle brings an angle into (-pi, pi].
func WrapAngle(a float64) float64 {
	a = math.Mod(a, 2*math.Pi)
	if a > math.Pi {
		a -= 2 * math.Pi
	} else if a <= -math.Pi {
		a += 2 * math.Pi
	}
	return a
}

// Rad converts degrees to radians.
func Rad(deg float64) float64 { return deg * math.Pi / 180 }

// Deg converts radians to degrees.
func Deg(rad float64) float64 { return rad * 180 / math.Pi }
