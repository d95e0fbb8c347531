package view

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/sensor"
	"viad/interface/stage"
)

// nearPlane is the nearest depth in metres that is drawn.
const nearPlane = 0.012

// lens takes points of the odometry frame to a picture. Picture coordinates are continuous: pixel i covers
// [i, i+1), its centre is i+0.5.
type lens struct {
	pos              r3.Vec
	right, down, fwd r3.Vec // orthonormal
	fx, fy, cx, cy   float64
	w, h             int
}

// orbitLens is the viewport of the 3D face on a w by h picture.
func orbitLens(o stage.Orbit, w, h int) lens {
	pos, right, up, fwd := o.Basis()
	f := float64(h) / 2 / math.Tan(stage.OrbitFovy/2)
	return lens{pos: pos, right: right, down: r3.Scale(-1, up), fwd: fwd, fx: f, fy: f, cx: float64(w) / 2, cy: float64(h) / 2, w: w, h: h}
}

// cameraLens is a camera whose picture has been scaled to w by h. Intrinsics count pixel centres from zero.
func cameraLens(pose geom.Pose, in sensor.Intrinsics, w, h int) lens {
	sx, sy := float64(w)/float64(in.W), float64(h)/float64(in.H)
	return lens{
		pos: pose.P, right: pose.X(), down: pose.Y(), fwd: pose.Z(),
		fx: in.Fx * sx, fy: in.Fy * sy, cx: (in.Cx + .5) * sx, cy: (in.Cy + .5) * sy, w: w, h: h,
	}
}

// local takes a point to the lens's own axes: x right, y down, z forward.
func (l *lens) local(p r3.Vec) r3.Vec {
	d := r3.Sub(p, l.pos)
	return r3.Vec{X: r3.Dot(d, l.right), Y: r3.Dot(d, l.down), Z: r3.Dot(d, l.fwd)}
}

// screen is where a point in the lens's own axes falls; its Z must be positive. The result's Z is the depth.
func (l *lens) screen(c r3.Vec) r3.Vec {
	return r3.Vec{X: l.cx + l.fx*c.X/c.Z, Y: l.cy + l.fy*c.Y/c.Z, Z: c.Z}
}

// project is the picture coordinates of a point with its depth in Z; ok is false at or behind the lens.
func (l *lens) project(p r3.Vec) (s r3.Vec, ok bool) {
	c := l.local(p)
	if !(c.Z > nearPlane) {
		return r3.Vec{Z: c.Z}, false
	}
	return l.screen(c), true
}

// unproject is the point at picture coordinates x, y and depth z metres.
func (l *lens) unproject(x, y, z float64) r3.Vec {
	return r3.Add(l.pos, r3.Scale(z, l.slope(x, y)))
}

// slope is the direction through x, y whose component along forward is one.
func (l *lens) slope(x, y float64) r3.Vec {
	return r3.Add(l.fwd, r3.Add(r3.Scale((x-l.cx)/l.fx, l.right), r3.Scale((y-l.cy)/l.fy, l.down)))
}

// inside reports whether picture coordinates lie in the picture.
func (l *lens) inside(x, y float64) bool {
	return x >= 0 && y >= 0 && x < float64(l.w) && y < float64(l.h)
}

// clip cuts a segment, in the lens's own axes, at the near plane; ok is false when nothing is left.
func clip(a, b r3.Vec) (r3.Vec, r3.Vec, bool) {
	switch {
	case a.Z < nearPlane && b.Z < nearPlane:
		return a, b, false
	case a.Z < nearPlane:
		a = mix(a, b, (nearPlane-a.Z)/(b.Z-a.Z))
	case b.Z < nearPlane:
		b = mix(b, a, (nearPlane-b.Z)/(a.Z-b.Z))
	}
	return a, b, true
}

// mix is the point a share s of the way from a to b.
func mix(a, b r3.Vec, s float64) r3.Vec { return r3.Add(a, r3.Scale(s, r3.Sub(b, a))) }
