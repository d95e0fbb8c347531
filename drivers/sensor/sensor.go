// Package sensor says what a sensor is: frames of pixels or points with all that is needed to place them.
//
// A camera's optical frame has z along the optical axis into the scene, x right and y down in the
// picture. Pixel (0,0) is the centre of the top-left pixel. Depth is metres along z, not along the ray.
package sensor

import (
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// Intrinsics is a pinhole without distortion: u = Fx x/z + Cx, v = Fy y/z + Cy, in pixels.
type Intrinsics struct {
	W, H           int
	Fx, Fy, Cx, Cy float64
}

// FromFovy is a pinhole with square pixels and a vertical field of view of fovy radians.
func FromFovy(w, h int, fovy float64) Intrinsics {
	f := 0.5 * float64(h) / math.Tan(fovy/2)
	return Intrinsics{W: w, H: h, Fx: f, Fy: f, Cx: float64(w-1) / 2, Cy: float64(h-1) / 2}
}

// Project takes a point in the optical frame to pixels; ok is false at or behind the camera.
func (in Intrinsics) Project(p r3.Vec) (u, v float64, ok bool) {
	if p.Z <= 1e-6 {
		return 0, 0, false
	}
	return in.Fx*p.X/p.Z + in.Cx, in.Fy*p.Y/p.Z + in.Cy, true
}

// Unproject is the point in the optical frame at pixel (u,v) and depth z metres.
func (in Intrinsics) Unproject(u, v, z float64) r3.Vec {
	return r3.Vec{X: (u - in.Cx) / in.Fx * z, Y: (v - in.Cy) / in.Fy * z, Z: z}
}

// Mount says which link carries a sensor and where: Pose takes the sensor's frame (optical for a
// camera) to the link's frame. An empty Link is the odometry frame itself (a camera on a tripod).
type Mount struct {
	Link string
	Pose geom.Pose
}

// Info describes a source before its first frame.
type Info struct {
	Name       string // third_person, wrist, head, lidar_left, ...
	Intrinsics Intrinsics
	Mount      Mount
	HasColor   bool
	HasDepth   bool          // dense depth beside the colour picture
	HasPoints  bool          // sparse points (lidar)
	Range      [2]float64    // metres, nearest and farthest trusted reading
	Sigma      float64       // depth noise at 1 m in metres; grows with the square of depth for stereo
	Latency    time.Duration // bound on stamp error: a sensor that moved within it is not fused
}

// Frame is one immutable reading.
type Frame struct {
	Info     *Info
	Seq      uint64
	Received time.Time // robot.Clock
	Stamp    time.Time // when the exposure happened, robot.Clock
	RGB      []byte    // W*H*3, row-major from the top-left, nil without colour
	Depth    []float32 // W*H metres along z, 0 = no reading, nil without depth
	Points   []float32 // 3 per point, sensor frame, nil without points
}

// Source delivers frames.
type Source interface {
	Info() *Info
	// Frame blocks until there is a frame stamped at or after t and returns it; a zero t takes the newest.
	Frame(ctx context.Context, t time.Time) (*Frame, error)
}
