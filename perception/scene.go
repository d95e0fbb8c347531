// Package perception fuses what cameras and lidars see into one immutable Scene, and says how far
// a robot's volume stays clear of it. It sees only what a sensor gives: no ground truth crosses here.
//
// Positions are metres in the odometry frame (see package robot).
package perception

import (
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/sensor"
)

// Class says what a cloud point belongs to.
type Class uint8

// The classes of points. Robot points are drawn (they are the gray real gripper) and clicked, but never
// count as obstacles; Held points move with the hand and count only in the sweep of what is held.
const (
	World Class = iota
	Robot
	Held
)

// Cloud is the fused points in voxel order, structure of arrays.
type Cloud struct {
	XYZ   []float32 // 3 per point, odometry frame
	RGB   []uint8   // 3 per point
	Class []Class   // 1 per point
}

// Len is the number of points.
func (c *Cloud) Len() int {
	if c == nil {
		return 0
	}
	return len(c.Class)
}

// At is point i.
func (c *Cloud) At(i int) r3.Vec {
	return r3.Vec{X: float64(c.XYZ[3*i]), Y: float64(c.XYZ[3*i+1]), Z: float64(c.XYZ[3*i+2])}
}

// Camera is one picture with the place it was taken from.
type Camera struct {
	Frame *sensor.Frame
	Pose  geom.Pose // optical frame in odometry at the time of exposure
}

// Gap is a source that gave nothing to the cloud, and why.
type Gap struct {
	Source string
	Why    string // one clause: stalled, moved during its exposure, malformed
}

// Scene is one immutable snapshot.
type Scene struct {
	Seq     uint64
	At      time.Time // the oldest exposure among all frames that were used, robot.Clock
	State   robot.State
	Cloud   *Cloud
	Cameras []*Camera    // newest picture of every source with colour or depth
	Fused   []string     // sources whose geometry is in the cloud
	Missing []Gap        // sources whose geometry is not; their pictures may still be in Cameras
	HasHeld bool         // something was seen between the pads of a jaw that holds
	Held    geom.Capsule // its extent in the tool frame, valid when HasHeld
	index   *index
}

// Blind reports that no sensor contributed geometry: nothing can be said about what is in the way.
func (s *Scene) Blind() bool { return len(s.Fused) == 0 }

// Camera finds a picture by its source's name; nil when there is none.
func (s *Scene) Camera(name string) *Camera {
	for _, c := range s.Cameras {
		if c.Frame.Info.Name == name {
			return c
		}
	}
	return nil
}

// Hit is the nearest thing to a capsule.
type Hit struct {
	Found bool
	Dist  float64 // signed metres from the capsule's surface, negative when inside
	Point r3.Vec
}
