package perception

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// selfFilter names the points that are the robot and what it holds.
type selfFilter struct {
	caps   []geom.Capsule // the robot at every exposure, odometry frame
	segs   []segment
	margin float64
	held   bool
	box    HeldBox
	at     r3.Vec // of the closure point
	toTool geom.Pose
	half   r3.Vec // of the held region
	mid    r3.Vec
}

// apply classifies every point of v. Points come in Morton order, so the capsules near a block of about 6 cm
// are looked up once for all its points.
func (s *selfFilter) apply(v *voxels, l *lattice) (held geom.Capsule, any bool) {
	var near []int
	lo, hi := vec(math.Inf(1)), vec(math.Inf(-1))
	block := l.shift(0.064)
	for i := 0; i < len(v.key); {
		j := i
		b := emptyBox()
		for ; j < len(v.key) && v.key[j]>>block == v.key[i]>>block; j++ {
			p := [3]float32(v.cloud.XYZ[3*j : 3*j+3])
			b.add(p, p)
		}
		near = near[:0]
		for k := range s.segs {
			if s.segs[k].bound(&b) <= s.caps[k].R+s.margin {
				near = append(near, k)
			}
		}
		for ; i < j; i++ {
			switch {
			case s.inHand(v.cloud, i, &lo, &hi):
				v.cloud.Class[i], any = Held, true
			case v.own[i] && v.w[i] == 0, s.own(v.cloud, i, near):
				v.cloud.Class[i] = Robot
			}
		}
	}
	if any {
		s.grow(v, &lo, &hi)
		held = boxCapsule(lo, hi)
	}
	return held, any
}

// own reports that point i is within the margin of one of the capsules in near.
func (s *selfFilter) own(c *Cloud, i int, near []int) bool {
	x, y, z := float64(c.XYZ[3*i]), float64(c.XYZ[3*i+1]), float64(c.XYZ[3*i+2])
	for _, k := range near {
		if r := s.caps[k].R + s.margin; s.segs[k].dist2(x, y, z) <= r*r {
			return true
		}
	}
	return false
}

// boxCapsule lies along the longest side of a box, as thick as the larger of the other two.
func boxCapsule(lo, hi r3.Vec) geom.Capsule {
	mid, h := r3.Scale(0.5, r3.Add(lo, hi)), r3.Scale(0.5, r3.Sub(hi, lo))
	var axis r3.Vec
	var long, r float64
	switch {
	case h.X >= h.Y && h.X >= h.Z:
		axis, long, r = r3.Vec{X: 1}, h.X, max(h.Y, h.Z)
	case h.Y >= h.Z:
		axis, long, r = r3.Vec{Y: 1}, h.Y, max(h.X, h.Z)
	default:
		axis, long, r = r3.Vec{Z: 1}, h.Z, max(h.X, h.Y)
	}
	d := r3.Scale(max(0, long-r), axis)
	return geom.Capsule{A: r3.Sub(mid, d), B: r3.Add(mid, d), R: r}
}

func vec(x float64) r3.Vec { return r3.Vec{X: x, Y: x, Z: x} }
