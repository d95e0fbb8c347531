package view

import (
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
)

const (
	approachReach = 2.0  // metres from the closure point that are searched
	approachStep  = .002 // metres between two samples
	approachHole  = 2    // pixels of the camera that a reading may be away, across the holes of stereo
	handSkin      = .005 // metres around the hand's capsules that count as the hand
)

// ApproachHit is where the target's approach axis first meets a surface in the wrist camera's depth: the first
// sample from the closure point on, up to 2 m, that is at or behind what was measured there. The robot's own
// hand is left out. A closure point that is already behind a surface is its own answer.
func (p *Painter) ApproachHit(sn *stage.Snapshot) Hit {
	none := func(why string) Hit { return Hit{Kind: Nothing, Feed: p.o.Wrist, Why: why} }
	cam := camera(sn, p.o.Wrist)
	if cam == nil {
		return none("there is no picture from the " + p.o.Wrist + " camera")
	}
	f, in := cam.Frame, cam.Frame.Info.Intrinsics
	if in.W <= 0 || in.H <= 0 || len(f.Depth) < in.W*in.H {
		return none("no wrist depth is available")
	}
	l := cameraLens(cam.Pose, in, in.W, in.H)
	hand := p.hand(sn)
	seen, read := false, false
	for i := 0; float64(i)*approachStep <= approachReach; i++ {
		q := sn.Target.Pose.Point(r3.Vec{X: float64(i) * approachStep})
		s, ok := l.project(q)
		if !ok || !l.inside(s.X, s.Y) {
			continue
		}
		seen = true
		x, y, ok := nearestDepth(f, s.X, s.Y, 1, 1, approachHole)
		if !ok {
			continue
		}
		d := f.Depth[y*in.W+x]
		surface := cam.Pose.Point(in.Unproject(float64(x), float64(y), float64(d)))
		if within(hand, surface, handSkin) {
			continue
		}
		read = true
		if s.Z >= float64(d) {
			return Hit{Kind: Feed, Feed: p.o.Wrist, Point: q}
		}
	}
	switch {
	case !seen:
		return none("the approach axis does not cross the wrist view within 2 m of the target")
	case !read:
		return none("the approach axis meets no surface within 2 m of the target: the wrist camera has no depth reading along it")
	}
	return none("the approach axis meets no surface within 2 m of the target")
}

// hand is the capsules of the real hand, fingers and what they hold, at the exposure of the scene.
func (p *Painter) hand(sn *stage.Snapshot) []geom.Capsule {
	if p.o.Kin == nil || sn.Scene == nil {
		return nil
	}
	st := sn.Scene.State
	if len(st.Q) != len(p.o.Kin.Model().Joints) {
		return nil
	}
	var out []geom.Capsule
	for _, c := range p.o.Kin.Capsules(st.Base, st.Q, st.Jaw.Aperture) {
		if c.Class == robot.ClassHand || c.Class == robot.ClassFinger {
			out = append(out, c.Capsule)
		}
	}
	return out
}

func within(cs []geom.Capsule, q r3.Vec, skin float64) bool {
	for _, c := range cs {
		if c.Dist(q) <= skin {
			return true
		}
	}
	return false
}
