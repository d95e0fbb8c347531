package control

import (
	"math"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// frame is a pose whose rotation is kept as its three columns: what inner loops want.
type frame struct{ x, y, z, p r3.Vec }

func newFrame(p geom.Pose) frame { return frame{x: p.X(), y: p.Y(), z: p.Z(), p: p.P} }

func (f frame) dir(v r3.Vec) r3.Vec {
	return r3.Vec{
		X: f.x.X*v.X + f.y.X*v.Y + f.z.X*v.Z,
		Y: f.x.Y*v.X + f.y.Y*v.Y + f.z.Y*v.Z,
		Z: f.x.Z*v.X + f.y.Z*v.Y + f.z.Z*v.Z,
	}
}

func (f frame) point(v r3.Vec) r3.Vec { return r3.Add(f.p, f.dir(v)) }

func (f frame) mul(g frame) frame {
	return frame{x: f.dir(g.x), y: f.dir(g.y), z: f.dir(g.z), p: f.point(g.p)}
}

func (f frame) pose() geom.Pose { return geom.Pose{P: f.p, R: f.rot()} }

func (f frame) rot() quat.Number { return geom.FromAxes(f.x, f.y) }

// turned is the rotation by angle a about the unit axis.
func turned(axis r3.Vec, a float64) frame {
	s, c := math.Sincos(a)
	k := 1 - c
	x, y, z := axis.X, axis.Y, axis.Z
	return frame{
		x: r3.Vec{X: c + k*x*x, Y: k*x*y + s*z, Z: k*x*z - s*y},
		y: r3.Vec{X: k*x*y - s*z, Y: c + k*y*y, Z: k*y*z + s*x},
		z: r3.Vec{X: k*x*z + s*y, Y: k*y*z - s*x, Z: c + k*z*z},
	}
}

// vec6 is a twist or an error: translation, then rotation.
type vec6 [6]float64

// mat6 is symmetric, lower triangle used.
type mat6 [6][6]float64

// cholesky factors m = L L' in place and returns the product of L's diagonal, the square root of the
// determinant; false when m is not positive definite.
func (m *mat6) cholesky() (float64, bool) {
	det := 1.0
	for j := range 6 {
		for k := range j {
			for i := j; i < 6; i++ {
				m[i][j] -= m[i][k] * m[j][k]
			}
		}
		if !(m[j][j] > 0) {
			return 0, false
		}
		d := math.Sqrt(m[j][j])
		det *= d
		for i := j; i < 6; i++ {
			m[i][j] /= d
		}
	}
	return det, true
}

// solve finds x of L L' x = b for a factored m.
func (m *mat6) solve(b vec6) vec6 {
	for i := range 6 {
		for k := range i {
			b[i] -= m[i][k] * b[k]
		}
		b[i] /= m[i][i]
	}
	for i := 5; i >= 0; i-- {
		for k := i + 1; k < 6; k++ {
			b[i] -= m[k][i] * b[k]
		}
		b[i] /= m[i][i]
	}
	return b
}

// poseError is what takes got to want: metres, and radians about the parent's axes.
func poseError(want, got frame) vec6 {
	d := r3.Sub(want.p, got.p)
	w := rotError(want, got)
	return vec6{d.X, d.Y, d.Z, w.X, w.Y, w.Z}
}

// rotError is the rotation vector of want * got', in the parent's axes.
func rotError(want, got frame) r3.Vec {
	// For small angles half the sum of cross products of matching axes is the rotation vector times
	// sin(a)/a; its length gives the sine, the trace gives the cosine.
	v := r3.Scale(0.5, r3.Add(r3.Cross(got.x, want.x), r3.Add(r3.Cross(got.y, want.y), r3.Cross(got.z, want.z))))
	s := r3.Norm(v)
	c := (r3.Dot(got.x, want.x) + r3.Dot(got.y, want.y) + r3.Dot(got.z, want.z) - 1) / 2
	if s > 1e-6 {
		return r3.Scale(math.Atan2(s, c)/s, v)
	}
	if c > 0 {
		return v
	}
	return geom.RotVec(quat.Mul(want.rot(), quat.Conj(got.rot())))
}
