package control

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/urdf"
)

// How far in metres a capsule may stand out beside the shape it covers before the shape is cut into more
// of them. The hand works close to things, so it is cut finest.
func slack(c robot.LinkClass) float64 {
	switch c {
	case robot.ClassHand, robot.ClassFinger:
		return 0.008
	case robot.ClassBase:
		return 0.03
	default:
		return 0.02
	}
}

const maxCut = 4 // pieces per direction

// cover is a few capsules, in the link's frame, that contain the primitive and stand out little.
func cover(p urdf.Primitive, class robot.LinkClass) []geom.Capsule {
	o := originPose(p.Origin)
	var cs []geom.Capsule
	switch p.Kind {
	case urdf.Sphere:
		cs = []geom.Capsule{{R: p.Radius}}
	case urdf.Capsule:
		cs = []geom.Capsule{along(2, p.Length/2, p.Radius)}
	case urdf.Cylinder:
		cs = coverCylinder(p.Radius, p.Length, slack(class))
	case urdf.Box:
		cs = coverBox(p.Size, slack(class))
	}
	for i := range cs {
		cs[i] = cs[i].Moved(o)
	}
	return cs
}

// along is a capsule on axis 0, 1 or 2 through the origin.
func along(axis int, half, r float64) geom.Capsule {
	a := setAxis(r3.Vec{}, axis, -half)
	return geom.Capsule{A: a, B: r3.Scale(-1, a), R: r}
}

func setAxis(v r3.Vec, axis int, x float64) r3.Vec {
	switch axis {
	case 0:
		v.X = x
	case 1:
		v.Y = x
	default:
		v.Z = x
	}
	return v
}

// coverRod covers a rod of half length h whose section lies within rc of its axis: the segment may be
// shorter than the rod by d when the radius grows to hypot(rc, d). Up to extra metres of growth are spent
// on shortening it.
func coverRod(axis int, h, rc, extra float64) geom.Capsule {
	d := math.Min(h, math.Sqrt(2*rc*extra+extra*extra))
	return along(axis, h-d, math.Hypot(rc, d))
}

// coverCylinder lies along z. A flat one is cut into slats, as a ball around it would be mostly air.
func coverCylinder(r, l, slack float64) []geom.Capsule {
	if l >= r {
		return []geom.Capsule{coverRod(2, l/2, r, slack/4)}
	}
	n := pieces(2*r, l, slack)
	w := 2 * r / float64(n)
	rc := 1.1 * math.Hypot(l/2, w/2) // a little thicker makes it a lot shorter
	var cs []geom.Capsule
	for i := range n {
		y := -r + (float64(i)+0.5)*w
		c := along(0, slatHalf(r, l, w, y, rc), rc)
		c.A.Y, c.B.Y = y, y
		cs = append(cs, c)
	}
	return cs
}

// slatHalf is the half length that a capsule of radius rc along x at y needs to cover the disc's rim
// between y-w/2 and y+w/2.
func slatHalf(r, l, w, y, rc float64) float64 {
	half := 0.0
	const samples = 64
	for i := range samples + 1 {
		d := w * (float64(i)/samples - 0.5)
		rim := math.Sqrt(math.Max(0, r*r-(y+d)*(y+d)))
		half = math.Max(half, rim-math.Sqrt(math.Max(0, rc*rc-l*l/4-d*d)))
	}
	return half + 1e-3 // between samples
}

// pieces is into how many slats a width is cut so that capsules around slats of that thickness stand out
// by no more than slack.
func pieces(width, thick, slack float64) int {
	for n := 1; n < maxCut; n++ {
		w := width / float64(n)
		if math.Hypot(thick/2, w/2)-math.Min(thick, w)/2 <= slack {
			return n
		}
	}
	return maxCut
}

// coverBox runs capsules along the longest edge, side by side over the middle one, and over the shortest
// when that is still too thick.
func coverBox(size r3.Vec, slack float64) []geom.Capsule {
	e := [3]float64{size.X, size.Y, size.Z}
	ax := [3]int{0, 1, 2}
	for i := range 2 { // by length, longest first
		for j := i + 1; j < 3; j++ {
			if e[ax[j]] > e[ax[i]] {
				ax[i], ax[j] = ax[j], ax[i]
			}
		}
	}
	long, mid, thin := e[ax[0]], e[ax[1]], e[ax[2]]
	nt := 1
	if (math.Sqrt2-1)*thin/2 > slack {
		nt = 2
	}
	nm := pieces(mid, thin/float64(nt), slack)
	wm, wt := mid/float64(nm), thin/float64(nt)
	rc := math.Hypot(wm/2, wt/2)
	cs := make([]geom.Capsule, 0, nm*nt)
	for i := range nm {
		for j := range nt {
			c := coverRod(ax[0], long/2, rc, slack/4)
			off := setAxis(setAxis(r3.Vec{}, ax[1], -mid/2+(float64(i)+0.5)*wm), ax[2], -thin/2+(float64(j)+0.5)*wt)
			c.A, c.B = r3.Add(c.A, off), r3.Add(c.B, off)
			cs = append(cs, c)
		}
	}
	return cs
}
