package perception

import (
	"fmt"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/sensor"
)

// placed is a frame with its place.
type placed struct {
	frame *sensor.Frame
	pose  geom.Pose // sensor frame in odometry
	moved string    // why it is not fused, or empty
}

// build makes one scene; the caller holds the token.
func (f *Fuser) build(frames []*sensor.Frame, gaps []Gap) (*Scene, error) {
	f.mu.Lock()
	last := *f.ring.at(f.ring.n - 1)
	all, err := f.place(frames)
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f.seq++
	s := &Scene{Seq: f.seq, State: last, At: all[0].frame.Stamp, Missing: gaps}
	box := f.opt.Bounds
	shift := r3.Vec{X: last.Base.X, Y: last.Base.Y}
	lat, err := newLattice(r3.Box{Min: r3.Add(box.Min, shift), Max: r3.Add(box.Max, shift)}, f.opt.Voxel)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.frame.Stamp.Before(s.At) {
			s.At = p.frame.Stamp
		}
		if p.frame.RGB != nil || p.frame.Depth != nil {
			s.Cameras = append(s.Cameras, &Camera{Frame: p.frame, Pose: p.pose})
		}
	}
	f.pile.reset(lat)
	for _, p := range all {
		f.fuse(s, p)
	}
	f.pile.merge(&f.vox)
	if last.Jaw.Holding {
		f.self.hold(f.opt.Kin.Tool(last.Base, last.Q), f.opt.Held, last.Jaw.Aperture)
	} else {
		f.self.held = false
	}
	s.Held, s.HasHeld = f.self.apply(&f.vox, &lat)
	s.Cloud, s.index = f.vox.cloud, f.vox.obstacles(&lat)
	f.vox.cloud = nil
	return s, nil
}

// fuse adds one frame's geometry to the pile, or says in s why not.
func (f *Fuser) fuse(s *Scene, p placed) {
	fr := p.frame
	if fr.Depth == nil && fr.Points == nil {
		return
	}
	if p.moved != "" {
		s.Missing = append(s.Missing, Gap{Source: fr.Info.Name, Why: p.moved})
		return
	}
	if why := empty(fr); why != "" {
		s.Missing = append(s.Missing, Gap{Source: fr.Info.Name, Why: why})
		return
	}
	if fr.Depth != nil {
		f.unproj.depth(&f.pile, fr, p.pose)
	}
	if fr.Points != nil {
		f.scan.lidar(&f.pile, fr, p.pose, eye(s.Cameras), &f.self)
	}
	s.Fused = append(s.Fused, fr.Info.Name)
}

// eye is the camera that lends its colours to lidar points: the first without depth of its own.
func eye(cams []*Camera) *Camera {
	for _, c := range cams {
		if c.Frame.RGB != nil && c.Frame.Depth == nil {
			return c
		}
	}
	return nil
}

// place finds where every frame was taken and where the robot's own body was meanwhile. The caller holds mu.
func (f *Fuser) place(frames []*sensor.Frame) ([]placed, error) {
	f.self.caps, f.self.segs, f.self.margin = f.self.caps[:0], f.self.segs[:0], f.opt.SelfMargin
	var bodies []config
	all := make([]placed, 0, len(frames))
	for _, fr := range frames {
		around, err := f.around(fr.Stamp, fr.Info.Latency)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fr.Info.Name, err)
		}
		p := placed{frame: fr}
		var link geom.Pose
		if p.moved, link, err = f.mount(fr.Info, around); err != nil {
			return nil, err
		}
		p.pose = link.Mul(fr.Info.Mount.Pose)
		if c, ok := f.opt.Calib[fr.Info.Name]; ok {
			p.pose = p.pose.Mul(c)
		}
		all = append(all, p)
		if fr.Depth != nil || fr.Points != nil {
			bodies = f.ownBody(bodies, around)
		}
	}
	return all, nil
}

// around is the robot's configuration at an exposure, then at the earliest and the latest it may really have been.
func (f *Fuser) around(stamp time.Time, bound time.Duration) (out [3]config, err error) {
	if out[0], err = f.ring.when(stamp, f.opt.StateGap); err != nil {
		return out, err
	}
	for i, d := range [2]time.Duration{-bound, bound} {
		if out[i+1], err = f.ring.when(stamp.Add(d), f.opt.StateGap+bound); err != nil {
			return out, err
		}
	}
	return out, nil
}

// mount is the pose of a source's link at its exposure, and a clause when the link moved within the latency bound.
func (f *Fuser) mount(in *sensor.Info, around [3]config) (moved string, at geom.Pose, err error) {
	if in.Mount.Link == "" {
		return "", geom.Identity(), nil
	}
	var pose [3]geom.Pose
	for i, c := range around {
		var ok bool
		if pose[i], ok = f.opt.Kin.Link(in.Mount.Link, c.base, c.q, c.aperture); !ok || !pose[i].Finite() {
			return "", at, fmt.Errorf("%s: link %q has no pose", in.Name, in.Mount.Link)
		}
	}
	for _, p := range pose[1:] {
		if d, a := p.Dist(pose[0]), p.Angle(pose[0]); !(d <= f.opt.MoveTol && a <= f.opt.TurnTol) {
			return fmt.Sprintf("moved %.1f mm and %.2f degrees within its latency bound of %v", 1e3*d, geom.Deg(a), in.Latency), pose[0], nil
		}
	}
	return "", pose[0], nil
}

// ownBody adds the robot's capsules at configurations that differ from those already in bodies.
func (f *Fuser) ownBody(bodies []config, around [3]config) []config {
next:
	for _, c := range around {
		for _, b := range bodies {
			if c.near(b) {
				continue next
			}
		}
		bodies = append(bodies, c)
		for _, l := range f.opt.Kin.Capsules(c.base, c.q, c.aperture) {
			c := l.Capsule
			if l.Class == robot.ClassArm || l.Class == robot.ClassBase {
				c.R += f.opt.BodyMargin - f.opt.SelfMargin
			}
			f.self.caps, f.self.segs = append(f.self.caps, c), append(f.self.segs, newSegment(c))
		}
	}
	return bodies
}
