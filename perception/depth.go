package perception

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/sensor"
)

// grazing is the tangent of the steepest angle at which a surface is still believed: 84 degrees between the
// ray and the surface's normal. Depth that jumps more from pixel to pixel is an edge between two things.
const grazing = 10

// checkFrame refuses a frame that does not have what its Info promises.
func checkFrame(f *sensor.Frame) error {
	in := f.Info.Intrinsics
	n := in.W * in.H
	switch {
	case f.Stamp.IsZero():
		return errors.New("frame without a stamp")
	case f.RGB != nil && len(f.RGB) != 3*n:
		return fmt.Errorf("picture of %d bytes, %d x %d needs %d", len(f.RGB), in.W, in.H, 3*n)
	case f.Depth != nil && len(f.Depth) != n:
		return fmt.Errorf("depth of %d values, %d x %d needs %d", len(f.Depth), in.W, in.H, n)
	case f.Depth != nil && !(in.Fx > 0 && in.Fy > 0):
		return fmt.Errorf("focal lengths %g, %g must be positive", in.Fx, in.Fy)
	case len(f.Points)%3 != 0:
		return fmt.Errorf("%d point coordinates are not a multiple of 3", len(f.Points))
	case f.Info.HasDepth && f.Depth == nil || f.Info.HasPoints && f.Points == nil:
		return errors.New("frame without its depth")
	case f.RGB == nil && f.Depth == nil && f.Points == nil:
		return errors.New("empty frame")
	}
	return nil
}

// leastDepth is the share of readings within its range below which a sensor says nothing of what is in the way: it is
// covered, or its depth has failed.
const leastDepth = 5e-4

// empty says so when hardly any reading of a frame is within its range.
func empty(f *sensor.Frame) string {
	near, far := f.Info.Range[0], f.Info.Range[1]
	if far <= 0 {
		far = math.Inf(1)
	}
	n, good := 0, 0
	for _, d := range f.Depth {
		if n++; float64(d) >= near && float64(d) <= far && d > 0 {
			good++
		}
	}
	for i := 0; i+2 < len(f.Points); i += 3 {
		p := r3.Vec{X: float64(f.Points[i]), Y: float64(f.Points[i+1]), Z: float64(f.Points[i+2])}
		if d := r3.Norm(p); d >= near && d <= far {
			good++
		}
		n++
	}
	if good > 0 && float64(good) >= leastDepth*float64(n) {
		return ""
	}
	return fmt.Sprintf("%d of %d readings are within its range of %g to %g m", good, n, near, far)
}

// coarse is the width in metres from which a pixel's place on a surface is so wide that few of its like fall into the
// space in which pixels bear each other out.
const coarse = 0.008

// weigh is what a pixel counts as evidence of an obstacle: more where pixels are far from each other, up to as much as
// is sure. A far thing seen by a coarse camera is a thing; its stray pixels then are obstacles too, which refuses more
// and never less.
func weigh(width float32) uint32 {
	k := width / coarse
	return min(1+uint32(min(k*k, sure)), sure)
}

// unprojector turns depth pictures into samples; its column table is reused.
type unprojector struct{ col [][3]float32 }

// depth adds the pixels of f, taken from pose (optical frame in odometry). Left out are invalid and
// out-of-range depth, the outermost pixels, and flying pixels: those that stand apart from both neighbours
// along their row or along their column. A surface less than two pixels wide is lost with them. A pixel is averaged
// with its left and right, and with its upper and lower neighbours where both differ from it by no more than noise
// explains: that leaves slopes and edges where they are and takes half of the noise.
func (u *unprojector) depth(p *pile, f *sensor.Frame, pose geom.Pose) {
	in := f.Info.Intrinsics
	near, far := float32(max(f.Info.Range[0], 1e-3)), float32(f.Info.Range[1])
	if far <= 0 {
		far = 1e3
	}
	slope, sigma, pixel := float32(grazing/in.Fx), float32(3*f.Info.Sigma), float32(1/in.Fx)
	x, y, z := vec32(pose.X()), vec32(pose.Y()), vec32(pose.Z())
	o := vec32(r3.Sub(pose.P, p.lat.origin))
	u.col = u.col[:0]
	for c := range in.W {
		k := float32((float64(c) - in.Cx) / in.Fx)
		u.col = append(u.col, [3]float32{k * x[0], k * x[1], k * x[2]})
	}
	for v := 1; v < in.H-1; v++ {
		k := float32((float64(v) - in.Cy) / in.Fy)
		row := [3]float32{k*y[0] + z[0], k*y[1] + z[1], k*y[2] + z[2]}
		d := f.Depth[v*in.W : (v+1)*in.W]
		up, down := f.Depth[(v-1)*in.W:v*in.W], f.Depth[(v+1)*in.W:(v+2)*in.W]
		var rgb []byte
		if f.RGB != nil {
			rgb = f.RGB[3*v*in.W : 3*(v+1)*in.W]
		}
		for c := 1; c < len(d)-1; c++ {
			t := d[c]
			if !(t >= near && t <= far) {
				continue
			}
			noise := sigma * t * t
			tol := t*slope + noise
			l, r, a, b := d[c-1], d[c+1], up[c], down[c]
			if apart(t, l, tol) && apart(t, r, tol) || apart(t, a, tol) && apart(t, b, tol) {
				continue
			}
			sum, n := t, float32(1)
			if noise *= 1.5; !apart(t, l, noise) && !apart(t, r, noise) {
				sum, n = sum+l+r, n+2
			}
			if !apart(t, a, noise) && !apart(t, b, noise) {
				sum, n = sum+a+b, n+2
			}
			t = sum / n
			q := &u.col[c]
			px, py, pz := o[0]+t*(row[0]+q[0]), o[1]+t*(row[1]+q[1]), o[2]+t*(row[2]+q[2])
			if rgb != nil {
				p.add(px, py, pz, rgb[3*c], rgb[3*c+1], rgb[3*c+2], weigh(t*pixel), false)
			} else {
				p.add(px, py, pz, 150, 150, 150, weigh(t*pixel), false)
			}
		}
	}
	p.flush()
}

// apart reports that two depths differ by more than tol, or that the other one is no reading.
func apart(a, b, tol float32) bool { return !(b > 0 && a-b <= tol && b-a <= tol) }

func vec32(v r3.Vec) [3]float32 { return [3]float32{float32(v.X), float32(v.Y), float32(v.Z)} }
