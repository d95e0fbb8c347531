package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"viad/drivers/sensor"
	"viad/sim/mj"
	"viad/sim/model"
)

// newSources makes the robot's sensors; where they sit is the same in every world of a twin.
func (t *Twin) newSources() []sensor.Source {
	out := make([]sensor.Source, 0, len(t.p.meta.Cameras)+len(t.p.meta.Lidars))
	for _, c := range t.p.meta.Cameras {
		out = append(out, newCamera(t, c))
	}
	for i, l := range t.p.meta.Lidars {
		out = append(out, newLidar(t, l, uint64(i)))
	}
	return out
}

// until blocks until the physics time is at or after at, and keeps a fast clock where it is until release: taking
// a picture takes no physics time. Else a scene would be old before it is made, and a wait for it over.
func (t *Twin) until(ctx context.Context, at time.Time) (release func(), err error) {
	select {
	case <-t.stop:
		return nil, ErrOver
	default:
	}
	if now := t.clk.Now(); !at.After(now) {
		return t.clk.holdAt(now).Stop, nil
	}
	h := t.clk.holdAt(at)
	select {
	case <-h.C():
		return h.Stop, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-t.over:
		err = ErrOver
	}
	h.Stop()
	return nil, err
}

// Latency is the bound on the stamp error that the twin's sensors state. Their stamps are exact; the bound
// keeps the rule for moving cameras in force.
const latency = 10 * time.Millisecond

// camera renders on demand.
type camera struct {
	t    *Twin
	info sensor.Info
	spec model.Camera
	salt uint64

	mu   sync.Mutex
	last *sensor.Frame
	from uint64 // world of last
}

func newCamera(t *Twin, c model.Camera) *camera {
	s := &camera{t: t, spec: c, info: sensor.Info{
		Name: c.Name, Intrinsics: c.Intrinsics, Mount: c.Mount, HasColor: true, HasDepth: c.Depth, Latency: latency,
	}}
	for _, b := range []byte(c.Name) {
		s.salt = s.salt*31 + uint64(b)
	}
	if c.Depth {
		q := opticsOf(c)
		s.info.Range, s.info.Sigma = [2]float64{q.near, q.far}, q.sigma
	}
	return s
}

func (s *camera) close() {}

// Info describes the camera.
func (s *camera) Info() *sensor.Info { return &s.info }

// Frame renders the present, or the first moment at or after at. While the clock stands still the same
// frame is returned.
func (s *camera) Frame(ctx context.Context, at time.Time) (*sensor.Frame, error) {
	release, err := s.t.until(ctx, at)
	if err != nil {
		return nil, err
	}
	defer release()
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.fresh(); f != nil {
		return f, nil
	}
	in := s.info.Intrinsics
	f := &sensor.Frame{Info: &s.info, RGB: make([]byte, 3*in.W*in.H)}
	if s.info.HasDepth {
		f.Depth = make([]float32, in.W*in.H)
	}
	id, err := s.t.cameraID(s.spec.Name)
	if err != nil {
		return nil, err
	}
	x := s.t.eyes.draw(ctx, mj.Shot{Camera: id, W: in.W, H: in.H, RGB: f.RGB, Depth: f.Depth, Sky: !s.info.HasDepth, Shadows: !s.t.opts.Light})
	if x.err != nil {
		return nil, fmt.Errorf("camera %s: %w", s.spec.Name, x.err)
	}
	f.Stamp, f.Received = x.stamp, x.stamp
	if s.last != nil {
		f.Seq = s.last.Seq
	}
	f.Seq++
	if f.Depth != nil {
		spoil(f, opticsOf(s.spec), s.salt^x.world<<32)
	}
	s.last, s.from = f, x.world
	return f, nil
}

// fresh is the last frame when the world has not moved on since.
func (s *camera) fresh() *sensor.Frame {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if s.last != nil && s.from == s.t.world && s.last.Stamp.Equal(s.t.clk.Now()) {
		return s.last
	}
	return nil
}

func (t *Twin) cameraID(name string) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, ErrOver
	}
	id := t.p.m.ID(mj.Camera, name)
	if id < 0 {
		return 0, fmt.Errorf("camera %s: the model has none of that name", name)
	}
	return id, nil
}
