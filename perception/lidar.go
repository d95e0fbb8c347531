package perception

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/sensor"
)

// Two lidar points support each other when they are nearer than nearAngle times their range, between nearMin
// and nearMax metres: beams of a sparse lidar are a few degrees apart.
const (
	nearAngle = 0.05
	nearMin   = 0.06
	nearMax   = 0.20
)

// lidar adds the points of f, taken from pose (sensor frame in odometry). Points out of range are left out.
// A point that has two others close by weighs as an obstacle; a lone one is only drawn.
func (z *lidarScratch) lidar(p *pile, f *sensor.Frame, pose geom.Pose, eye *Camera) {
	z.load(f, pose)
	z.bin()
	for i, v := range z.pts {
		w := uint32(0)
		if z.supported(i) {
			w = sure
		}
		r, g, b := tint(v, eye)
		q := vec32(r3.Sub(v, p.lat.origin))
		p.add(q[0], q[1], q[2], r, g, b, w)
	}
	p.flush()
}

// lidarScratch is reused from scene to scene.
type lidarScratch struct {
	pts  []r3.Vec  // odometry frame
	dist []float64 // range
	cell map[[3]int32][]int32
}

func (z *lidarScratch) load(f *sensor.Frame, pose geom.Pose) {
	z.pts, z.dist = z.pts[:0], z.dist[:0]
	near, far := f.Info.Range[0], f.Info.Range[1]
	if far <= 0 {
		far = 1e3
	}
	for i := 0; i+2 < len(f.Points); i += 3 {
		v := r3.Vec{X: float64(f.Points[i]), Y: float64(f.Points[i+1]), Z: float64(f.Points[i+2])}
		if d := r3.Norm(v); d >= max(near, 1e-6) && d <= far { // false for NaN
			z.pts = append(z.pts, pose.Point(v))
			z.dist = append(z.dist, d)
		}
	}
}

func cellOf(v r3.Vec) [3]int32 {
	f := func(x float64) int32 { return int32(math.Floor(x / nearMax)) }
	return [3]int32{f(v.X), f(v.Y), f(v.Z)}
}

func (z *lidarScratch) bin() {
	if z.cell == nil {
		z.cell = map[[3]int32][]int32{}
	}
	for k, v := range z.cell {
		if len(v) == 0 {
			delete(z.cell, k)
			continue
		}
		z.cell[k] = v[:0]
	}
	for i, v := range z.pts {
		k := cellOf(v)
		z.cell[k] = append(z.cell[k], int32(i))
	}
}

// supported reports that two other points lie close to point i.
func (z *lidarScratch) supported(i int) bool {
	at := z.pts[i]
	r := max(nearMin, min(nearMax, nearAngle*z.dist[i]))
	c, found := cellOf(at), 0
	for dx := int32(-1); dx <= 1; dx++ {
		for dy := int32(-1); dy <= 1; dy++ {
			for dz := int32(-1); dz <= 1; dz++ {
				for _, j := range z.cell[[3]int32{c[0] + dx, c[1] + dy, c[2] + dz}] {
					if int(j) != i && r3.Norm2(r3.Sub(z.pts[j], at)) <= r*r {
						if found++; found == 2 {
							return true
						}
					}
				}
			}
		}
	}
	return false
}

// tint is the colour of a lidar point: that of the pixel it falls on in eye, else a grey that rises with height.
// The camera and the lidars sit side by side on the head, so no occlusion is looked for.
func tint(v r3.Vec, eye *Camera) (r, g, b uint8) {
	if eye != nil {
		in := eye.Frame.Info.Intrinsics
		if x, y, ok := in.Project(eye.Pose.Inv().Point(v)); ok {
			c, l := int(math.Round(x)), int(math.Round(y))
			if c >= 0 && l >= 0 && c < in.W && l < in.H {
				i := 3 * (l*in.W + c)
				return eye.Frame.RGB[i], eye.Frame.RGB[i+1], eye.Frame.RGB[i+2]
			}
		}
	}
	k := uint8(90 + 110*max(0, min(1, v.Z/2)))
	return k, k, k
}
