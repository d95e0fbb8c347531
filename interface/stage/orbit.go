package stage

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"
)

const (
	// OrbitFovy is the vertical field of view of the 3D face's viewport in radians.
	OrbitFovy = 45 * math.Pi / 180
	// OrbitAspect is the viewport's width over its height: 880x800.
	OrbitAspect = 880.0 / 800.0
	// orbitNear is the nearest depth in metres that is drawn or projected.
	orbitNear = 0.01
)

// Basis is the camera's position (metres, robot frame) and its unit axes: right and up on the screen, and
// forward into it. right x up = -forward.
func (o Orbit) Basis() (pos, right, up, fwd r3.Vec) {
	sz, cz := math.Sincos(o.Azimuth)
	se, ce := math.Sincos(o.Elevation)
	back := r3.Vec{X: ce * sz, Y: -ce * cz, Z: se}
	return r3.Add(o.Target, r3.Scale(o.Distance, back)),
		r3.Vec{X: cz, Y: sz},
		r3.Vec{X: -se * sz, Y: se * cz, Z: ce},
		r3.Scale(-1, back)
}

// Project takes a point of the robot frame to fractions of the viewport (0,0 top-left, 1,1 bottom-right) and
// its depth in metres along forward; ok is false at or behind the camera. Fractions may lie outside 0..1.
func (o Orbit) Project(p r3.Vec) (u, v, depth float64, ok bool) {
	pos, right, up, fwd := o.Basis()
	d := r3.Sub(p, pos)
	depth = r3.Dot(d, fwd)
	if !(depth > orbitNear) {
		return 0, 0, depth, false
	}
	h := 2 * depth * math.Tan(OrbitFovy/2)
	return 0.5 + r3.Dot(d, right)/(h*OrbitAspect), 0.5 - r3.Dot(d, up)/h, depth, true
}

// Ray is the unit vector from the camera through the viewport's fraction (u,v).
func (o Orbit) Ray(u, v float64) r3.Vec {
	return r3.Unit(o.slope(u, v))
}

// Unproject is the point at viewport fraction (u,v) and depth metres along forward.
func (o Orbit) Unproject(u, v, depth float64) r3.Vec {
	pos, _, _, _ := o.Basis()
	return r3.Add(pos, r3.Scale(depth, o.slope(u, v)))
}

// slope is the direction through (u,v) whose component along forward is one.
func (o Orbit) slope(u, v float64) r3.Vec {
	_, right, up, fwd := o.Basis()
	h := 2 * math.Tan(OrbitFovy/2)
	return r3.Add(fwd, r3.Add(r3.Scale((u-0.5)*h*OrbitAspect, right), r3.Scale((0.5-v)*h, up)))
}
