package geom

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"
)

// Capsule is the set of points within R metres of the segment from A to B.
type Capsule struct {
	A, B r3.Vec
	R    float64
}

// Moved is the capsule taken from a link's frame to the link's parent frame.
func (c Capsule) Moved(p Pose) Capsule { return Capsule{A: p.Point(c.A), B: p.Point(c.B), R: c.R} }

// Dist is the signed distance in metres from a point to the capsule's surface; negative inside.
func (c Capsule) Dist(p r3.Vec) float64 {
	ab := r3.Sub(c.B, c.A)
	t := 0.0
	if l := r3.Dot(ab, ab); l > 0 {
		t = math.Max(0, math.Min(1, r3.Dot(r3.Sub(p, c.A), ab)/l))
	}
	return r3.Norm(r3.Sub(p, r3.Add(c.A, r3.Scale(t, ab)))) - c.R
}

// Bounds is the axis-aligned box of the capsule grown by margin metres.
func (c Capsule) Bounds(margin float64) r3.Box {
	g := c.R + margin
	return r3.Box{
		Min: r3.Vec{X: math.Min(c.A.X, c.B.X) - g, Y: math.Min(c.A.Y, c.B.Y) - g, Z: math.Min(c.A.Z, c.B.Z) - g},
		Max: r3.Vec{X: math.Max(c.A.X, c.B.X) + g, Y: math.Max(c.A.Y, c.B.Y) + g, Z: math.Max(c.A.Z, c.B.Z) + g},
	}
}
