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

// Gap is the signed distance in metres between the surfaces of two capsules; negative when they overlap.
func (c Capsule) Gap(o Capsule) float64 {
	return segmentDist(c.A, c.B, o.A, o.B) - c.R - o.R
}

// segmentDist is the least distance between segments ab and cd: the least over one parameter of the
// distance to the other segment, at the unconstrained optimum clamped, and at the ends.
func segmentDist(a, b, c, d r3.Vec) float64 {
	u, v, w := r3.Sub(b, a), r3.Sub(d, c), r3.Sub(a, c)
	uu, uv, vv, uw, vw := r3.Dot(u, u), r3.Dot(u, v), r3.Dot(v, v), r3.Dot(u, w), r3.Dot(v, w)
	clamp := func(x float64) float64 { return math.Max(0, math.Min(1, x)) }
	s := 0.0
	if den := uu*vv - uv*uv; den > 1e-12*uu*vv {
		s = clamp((uv*vw - vv*uw) / den)
	}
	t := 0.0
	if vv > 0 {
		t = clamp((uv*s + vw) / vv)
	}
	if uu > 0 {
		s = clamp((uv*t - uw) / uu)
	}
	return r3.Norm(r3.Add(w, r3.Sub(r3.Scale(s, u), r3.Scale(t, v))))
}
