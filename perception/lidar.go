package perception

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/sensor"
)

// Echoes are neighbours when their beams are less than nearAngle radians apart: a sparse lidar's beams lie one or
// two degrees from each other. A neighbour supports an echo when their ranges differ by less than the larger of
// four sigmas and nearAngle of the range. An echo with fewer than two supporters is a flyer.
const (
	nearAngle = 0.05
	sphere    = 2/nearAngle + 3 // cells of nearAngle along each axis of the cube around the directions
)

// echo is one lidar point.
type echo struct {
	dir  r3.Vec  // unit, sensor frame
	dist float64 // metres
	cell int32
	own  bool // of the robot's own body
}

// lidarScratch is reused from scene to scene.
type lidarScratch struct {
	echoes []echo
	start  []int32 // after bin: where the next cell begins in order, for every cell
	order  []int32 // echoes by cell
}

// lidar adds the points of f, taken from pose (sensor frame in odometry), with the noise along the beams averaged
// over neighbours of nearly the same range. Out-of-range points are left out. Those of the robot's own body, with
// three sigmas for noise, are marked so. A flyer is drawn and never an obstacle.
func (z *lidarScratch) lidar(p *pile, f *sensor.Frame, pose geom.Pose, eye *Camera, self *selfFilter) {
	z.load(f)
	z.claim(pose, f.Info.Sigma, self)
	z.bin()
	for i := range z.echoes {
		e := &z.echoes[i]
		w, d := uint32(0), e.dist
		if !e.own {
			var friends int
			if friends, d = z.neighbours(i, f.Info.Sigma); friends >= 2 {
				w = sure
			}
		}
		v := pose.Point(r3.Scale(d, e.dir))
		r, g, b := tint(v, eye)
		q := vec32(r3.Sub(v, p.lat.origin))
		p.add(q[0], q[1], q[2], r, g, b, w, e.own)
	}
	p.flush()
}

func (z *lidarScratch) load(f *sensor.Frame) {
	z.echoes = z.echoes[:0]
	near, far := f.Info.Range[0], f.Info.Range[1]
	if far <= 0 {
		far = 1e3
	}
	for i := 0; i+2 < len(f.Points); i += 3 {
		v := r3.Vec{X: float64(f.Points[i]), Y: float64(f.Points[i+1]), Z: float64(f.Points[i+2])}
		if d := r3.Norm(v); d >= max(near, 1e-6) && d <= far { // false for NaN
			u := r3.Scale(1/d, v)
			z.echoes = append(z.echoes, echo{dir: u, dist: d, cell: cellOf(u)})
		}
	}
}

// cellOf is the cell of a unit vector; its 26 neighbours hold all vectors within nearAngle.
func cellOf(u r3.Vec) int32 {
	f := func(x float64) int32 { return int32((x+1)/nearAngle) + 1 }
	return (f(u.X)*sphere+f(u.Y))*sphere + f(u.Z)
}

// claim marks the echoes of the robot's own body.
func (z *lidarScratch) claim(pose geom.Pose, sigma float64, self *selfFilter) {
	all := emptyBox()
	grow := self.margin + 3*sigma
	for _, c := range self.caps {
		b := c.Bounds(grow)
		all.add(vec32(b.Min), vec32(b.Max))
	}
	for i := range z.echoes {
		e := &z.echoes[i]
		v := pose.Point(r3.Scale(e.dist, e.dir))
		q := vec32(v)
		if q[0] < all.lo[0] || q[1] < all.lo[1] || q[2] < all.lo[2] || q[0] > all.hi[0] || q[1] > all.hi[1] || q[2] > all.hi[2] {
			continue
		}
		for k := range self.segs {
			if r := self.caps[k].R + grow; self.segs[k].dist2(v.X, v.Y, v.Z) <= r*r {
				e.own = true
				break
			}
		}
	}
}

// bin sorts the echoes by cell.
func (z *lidarScratch) bin() {
	const cells = int32(sphere) * sphere * sphere
	if z.start == nil {
		z.start = make([]int32, cells+1)
	}
	clear(z.start)
	for i := range z.echoes {
		z.start[z.echoes[i].cell+1]++
	}
	for c := range cells {
		z.start[c+1] += z.start[c]
	}
	z.order = append(z.order[:0], make([]int32, len(z.echoes))...)
	for i := range z.echoes {
		c := z.echoes[i].cell
		z.order[z.start[c]] = int32(i)
		z.start[c]++
	}
}

// neighbours counts what supports echo i, and averages the ranges within 2.5 sigmas of its own.
func (z *lidarScratch) neighbours(i int, sigma float64) (friends int, dist float64) {
	e := &z.echoes[i]
	loose, tight := max(4*sigma, nearAngle*e.dist), 2.5*sigma
	sum, n := e.dist, 1.0
	for dx := int32(-1); dx <= 1; dx++ {
		for dy := int32(-1); dy <= 1; dy++ {
			c := e.cell + (dx*sphere+dy)*sphere
			// After bin, start[c-1] is where cell c begins.
			for _, j := range z.order[z.start[c-2]:z.start[c+1]] {
				o := &z.echoes[j]
				d := math.Abs(o.dist - e.dist)
				if int(j) == i || o.own || d > loose || r3.Norm2(r3.Sub(o.dir, e.dir)) > nearAngle*nearAngle {
					continue
				}
				friends++
				if d <= tight {
					sum, n = sum+o.dist, n+1
				}
			}
		}
	}
	return friends, sum / n
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
