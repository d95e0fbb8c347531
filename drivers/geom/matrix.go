package geom

import (
	"math"

	"gonum.org/v1/gonum/num/quat"
)

// Matrix is the rotation matrix of a unit quaternion, m[row][column]; its columns are the rotated axes.
func Matrix(q quat.Number) [3][3]float64 {
	w, x, y, z := q.Real, q.Imag, q.Jmag, q.Kmag
	return [3][3]float64{
		{1 - 2*(y*y+z*z), 2 * (x*y - w*z), 2 * (x*z + w*y)},
		{2 * (x*y + w*z), 1 - 2*(x*x+z*z), 2 * (y*z - w*x)},
		{2 * (x*z - w*y), 2 * (y*z + w*x), 1 - 2*(x*x+y*y)},
	}
}

// FromMatrix is the unit quaternion of a rotation matrix m[row][column].
func FromMatrix(m [3][3]float64) quat.Number { return fromMatrix(m) }

// YawPitchRoll takes q apart as Rz(yaw) Ry(pitch) Rx(roll), pitch in [-pi/2, pi/2]. cosPitch is the cosine
// of pitch, never negative: near zero only the sum or difference of yaw and roll means something, and the
// caller has to choose one of them.
func YawPitchRoll(q quat.Number) (yaw, pitch, roll, cosPitch float64) {
	m := Matrix(q)
	cosPitch = math.Hypot(m[0][0], m[1][0])
	yaw = math.Atan2(m[1][0], m[0][0])
	pitch = math.Atan2(-m[2][0], cosPitch)
	roll = math.Atan2(m[2][1], m[2][2])
	return yaw, pitch, roll, cosPitch
}

// Lerp interpolates each of x, y and yaw linearly, s in [0, 1]. Yaw is not wrapped: a turn of more than
// half a revolution is made the long way, as asked.
func (a SE2) Lerp(b SE2, s float64) SE2 {
	return SE2{X: a.X + s*(b.X-a.X), Y: a.Y + s*(b.Y-a.Y), Yaw: a.Yaw + s*(b.Yaw-a.Yaw)}
}
