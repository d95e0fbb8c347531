package perception

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/robot"
	"viad/drivers/sensor"
)

// Sight is what one camera has to say of a motion that the joints report.
type Sight struct {
	Source  string
	Due     float64 // share of the picture in which the motion must show; 0: it could not be seen
	Changed float64 // share of the picture that changed
}

const (
	leastDue   = 5e-4 // a smaller share of a picture may be noise
	dueOfMoved = 0.02 // of a picture whose camera is said to have moved
	cameraMove = 0.01 // metres from which a camera is said to have moved
	cameraTurn = 0.02 // radians
	levelNoise = 24   // of 255: colour levels by which a pixel may differ and be the same
	depthNoise = 0.02 // metres, and sixfold the source's own at that depth
)

// Missed says that the motion should have shown in the picture and did not: not in a fourth of where it had to.
func (s Sight) Missed() bool { return s.Due > 0 && s.Changed < s.Due/4 }

// Witness compares the pictures of two scenes, between which the robot is said to have gone from one set of capsules
// to the other (the same links in the same order). It knows nothing of what hides what: a part behind a wall is
// due and not seen.
func Witness(before, after *Scene, from, to []robot.LinkCapsule) []Sight {
	var out []Sight
	for _, a := range before.Cameras {
		b := after.Camera(a.Frame.Info.Name)
		if b == nil || b.Frame.Info.Intrinsics != a.Frame.Info.Intrinsics || !b.Frame.Stamp.After(a.Frame.Stamp) {
			continue
		}
		s := Sight{Source: a.Frame.Info.Name, Due: due(a, b, from, to)}
		if s.Due > 0 {
			s.Changed = changed(a.Frame, b.Frame)
		}
		out = append(out, s)
	}
	return out
}

// due is the share of the picture that the largest seen motion of any part sweeps.
func due(a, b *Camera, from, to []robot.LinkCapsule) float64 {
	if a.Pose.Dist(b.Pose) > cameraMove || a.Pose.Angle(b.Pose) > cameraTurn {
		return dueOfMoved
	}
	in, most := a.Frame.Info.Intrinsics, 0.0
	eye := a.Pose.Inv()
	for i := range min(len(from), len(to)) {
		p, q := r3.Scale(0.5, r3.Add(from[i].A, from[i].B)), r3.Scale(0.5, r3.Add(to[i].A, to[i].B))
		u0, v0, ok0 := seen(in, eye.Point(p))
		u1, v1, ok1 := seen(in, eye.Point(q))
		if !ok0 || !ok1 {
			continue
		}
		thick := 2 * from[i].R * in.Fx / eye.Point(p).Z
		if share := math.Hypot(u1-u0, v1-v0) * thick / float64(in.W*in.H); share >= leastDue {
			most = math.Max(most, share)
		}
	}
	return math.Min(most, dueOfMoved)
}

// seen is where a point is in the picture; false outside of it.
func seen(in sensor.Intrinsics, p r3.Vec) (u, v float64, ok bool) {
	u, v, ok = in.Project(p)
	return u, v, ok && u >= 0 && v >= 0 && u < float64(in.W) && v < float64(in.H)
}

// changed is the share of pixels that differ by more than noise: in colour, or in depth where there is no colour.
func changed(a, b *sensor.Frame) float64 {
	n := a.Info.Intrinsics.W * a.Info.Intrinsics.H
	count := 0
	switch {
	case len(a.RGB) == 3*n && len(b.RGB) == 3*n:
		for i := range n {
			x, y := a.RGB[3*i:3*i+3], b.RGB[3*i:3*i+3]
			if differ(x[0], y[0]) || differ(x[1], y[1]) || differ(x[2], y[2]) {
				count++
			}
		}
	case len(a.Depth) == n && len(b.Depth) == n:
		for i := range n {
			x, y := float64(a.Depth[i]), float64(b.Depth[i])
			if x > 0 && y > 0 && math.Abs(x-y) > depthNoise+6*a.Info.Sigma*x*x {
				count++
			}
		}
	}
	return float64(count) / float64(n)
}

func differ(a, b uint8) bool { return max(a, b)-min(a, b) > levelNoise }
