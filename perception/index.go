package perception

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// fan is the number of points in a leaf and of children in a node.
const fan = 8

// box32 is an axis-aligned box in metres.
type box32 struct{ lo, hi [3]float32 }

// index answers nearest-obstacle questions. Points come in Morton order, so every run of eight is a compact
// cluster: a tree of boxes over such runs needs no sorting and no pointers. levels[0] bounds the points,
// levels[k+1] bounds levels[k]; the last level has one box.
type index struct {
	pts    []float32 // 3 per point
	levels [][]box32
}

// newIndex takes ownership of pts, three coordinates per point in Morton order.
func newIndex(pts []float32) *index {
	ix := &index{pts: pts}
	n := len(pts) / 3
	if n == 0 {
		return ix
	}
	leaves := make([]box32, (n+fan-1)/fan)
	for i := range leaves {
		b := emptyBox()
		for j := i * fan; j < min(n, (i+1)*fan); j++ {
			p := [3]float32{pts[3*j], pts[3*j+1], pts[3*j+2]}
			b.add(p, p)
		}
		leaves[i] = b
	}
	ix.levels = append(ix.levels, leaves)
	for low := leaves; len(low) > 1; {
		up := make([]box32, (len(low)+fan-1)/fan)
		for i := range up {
			b := emptyBox()
			for _, c := range low[i*fan : min(len(low), (i+1)*fan)] {
				b.add(c.lo, c.hi)
			}
			up[i] = b
		}
		ix.levels = append(ix.levels, up)
		low = up
	}
	return ix
}

func emptyBox() box32 {
	const inf = math.MaxFloat32
	return box32{lo: [3]float32{inf, inf, inf}, hi: [3]float32{-inf, -inf, -inf}}
}

func (b *box32) add(lo, hi [3]float32) {
	for k := range 3 {
		b.lo[k] = min(b.lo[k], lo[k])
		b.hi[k] = max(b.hi[k], hi[k])
	}
}

// segment is a capsule's axis prepared for many distance questions.
type segment struct {
	a, d, lo, hi [3]float64 // origin, vector to the far end, and their bounds
	inv          float64    // 1/|d|^2, 0 for a sphere
}

func newSegment(c geom.Capsule) segment {
	s := segment{a: arr(c.A)}
	b := arr(c.B)
	var l float64
	for k := range 3 {
		s.d[k] = b[k] - s.a[k]
		l += s.d[k] * s.d[k]
		s.lo[k], s.hi[k] = min(s.a[k], b[k]), max(s.a[k], b[k])
	}
	if l > 0 {
		s.inv = 1 / l
	}
	return s
}

func arr(v r3.Vec) [3]float64 { return [3]float64{v.X, v.Y, v.Z} }

// dist2 is the squared distance from a point to the axis.
func (s *segment) dist2(x, y, z float64) float64 {
	x, y, z = x-s.a[0], y-s.a[1], z-s.a[2]
	t := (x*s.d[0] + y*s.d[1] + z*s.d[2]) * s.inv
	t = max(0, min(1, t))
	x, y, z = x-t*s.d[0], y-t*s.d[1], z-t*s.d[2]
	return x*x + y*y + z*z
}

// bound is never more than the distance from the axis to anything in b: the better of two cheap bounds,
// between the two boxes and between the axis and the sphere around b.
func (s *segment) bound(b *box32) float64 {
	var gap2, half2 float64
	var c [3]float64
	for k := range 3 {
		lo, hi := float64(b.lo[k]), float64(b.hi[k])
		g := max(0, lo-s.hi[k], s.lo[k]-hi)
		gap2 += g * g
		h := (hi - lo) / 2
		half2 += h * h
		c[k] = lo + h
	}
	return max(math.Sqrt(gap2), math.Sqrt(s.dist2(c[0], c[1], c[2]))-math.Sqrt(half2))
}

// visit is a box still to be opened.
type visit struct {
	bound float64
	level int32
	at    int32
}

// nearest finds the point nearest to c's axis that is closer than reach metres to the axis and not below floor.
func (ix *index) nearest(c geom.Capsule, reach, floor float64) (point int, dist float64, ok bool) {
	if ix == nil || len(ix.levels) == 0 || !(reach > 0) {
		return 0, 0, false
	}
	s := newSegment(c)
	var stack [fan * 12]visit // at most fan-1 waiting boxes per level, and 8^12 points are more than any cloud
	top := len(ix.levels) - 1
	stack[0] = visit{bound: s.bound(&ix.levels[top][0]), level: int32(top)}
	for n := 1; n > 0; {
		n--
		v := stack[n]
		if v.bound >= reach {
			continue
		}
		if v.level == 0 {
			if i, d := ix.leaf(&s, int(v.at), reach, floor); d < reach {
				point, reach, ok = i, d, true
			}
			continue
		}
		n = ix.open(&s, v, reach, floor, &stack, n)
	}
	return point, reach, ok
}

// leaf is the nearest point of one leaf, and its distance; reach when none is nearer.
func (ix *index) leaf(s *segment, at int, reach, floor float64) (point int, dist float64) {
	best := reach * reach
	point = -1
	pts := ix.pts[at*fan*3 : min(len(ix.pts), (at+1)*fan*3)]
	for j := 0; j+2 < len(pts); j += 3 {
		if d := s.dist2(float64(pts[j]), float64(pts[j+1]), float64(pts[j+2])); d < best && float64(pts[j+2]) >= floor {
			best, point = d, at*fan+j/3
		}
	}
	if point < 0 {
		return 0, reach
	}
	return point, math.Sqrt(best)
}

// open puts v's children on the stack, nearest on top, and returns the new height.
func (ix *index) open(s *segment, v visit, reach, floor float64, stack *[fan * 12]visit, n int) int {
	low := ix.levels[v.level-1]
	from := n
	for i := int(v.at) * fan; i < min(len(low), (int(v.at)+1)*fan); i++ {
		b := s.bound(&low[i])
		if b >= reach || float64(low[i].hi[2]) < floor {
			continue
		}
		k := n
		for k > from && stack[k-1].bound < b {
			stack[k] = stack[k-1]
			k--
		}
		stack[k] = visit{bound: b, level: v.level - 1, at: int32(i)}
		n++
	}
	return n
}

// Clearance is the obstacle nearest to a capsule's surface among those nearer than within metres (odometry
// frame). Obstacles are World points that are sure: pixels of a depth picture count when at least four fall
// into the same 2 cm of space (fewer where pixels are over 8 mm apart), lidar points when two of their neighbours agree; a lone flyer of either
// never counts. What no sensor has seen counts as empty. Points are averages over at least 4 mm, so Dist may be
// off by about 2 mm beside the sensor's own noise.
func (s *Scene) Clearance(c geom.Capsule, within float64) Hit {
	return s.ClearanceAbove(c, within, math.Inf(-1))
}

// ClearanceAbove is Clearance among the obstacles that are not below z = floor in the odometry frame. It is for
// the base of a mobile robot, which stands on the floor.
func (s *Scene) ClearanceAbove(c geom.Capsule, within, floor float64) Hit {
	if s == nil {
		return Hit{}
	}
	i, d, ok := s.index.nearest(c, within+c.R, floor)
	if !ok {
		return Hit{}
	}
	p := s.index.pts[3*i : 3*i+3]
	return Hit{Found: true, Dist: d - c.R, Point: r3.Vec{X: float64(p[0]), Y: float64(p[1]), Z: float64(p[2])}}
}

// Obstacles is the number of points that Clearance knows.
func (s *Scene) Obstacles() int {
	if s == nil || s.index == nil {
		return 0
	}
	return len(s.index.pts) / 3
}
