package safety_test

import (
	"context"
	"math"
	"sync"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/sensor"
)

// eye is an RGB-D camera on a tripod that sees the machine where it really is, a floor and some balls. It has depth
// noise when the test gives it some.
type eye struct {
	r    *rig
	info sensor.Info

	mu    sync.Mutex
	balls []geom.Capsule
	noise func() float64 // metres
	held  float64        // radius of a ball that the machine carries when its jaw holds; 0: none
	seq   uint64
}

const floorZ = -0.05

func newEye(r *rig, w int) *eye {
	at := r3.Vec{X: 1.5, Y: 0.9, Z: 1.0}
	z := r3.Unit(r3.Sub(r3.Vec{X: 0.3, Z: 0.3}, at))
	x := r3.Unit(r3.Cross(z, r3.Vec{Z: 1}))
	return &eye{r: r, info: sensor.Info{
		Name: "third_person", Intrinsics: sensor.FromFovy(w, w*3/4, geom.Rad(55)), HasColor: true, HasDepth: true,
		Mount: sensor.Mount{Pose: geom.Pose{P: at, R: geom.FromAxes(x, r3.Cross(z, x))}}, Range: [2]float64{0.1, 5}, Sigma: 0.001,
	}}
}

// put lays a ball into the world.
func (e *eye) put(at r3.Vec, radius float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.balls = append(e.balls, geom.Capsule{A: at, B: at, R: radius})
}

func (e *eye) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.balls = nil
}

func (e *eye) Info() *sensor.Info { return &e.info }

// Frame is exposed now.
func (e *eye) Frame(context.Context, time.Time) (*sensor.Frame, error) {
	s := e.r.machine.Machine()
	e.mu.Lock()
	defer e.mu.Unlock()
	things := append([]geom.Capsule(nil), e.balls...)
	for _, c := range e.r.kin.Capsules(s.Base, s.Q, s.Jaw.Aperture) {
		things = append(things, c.Capsule)
	}
	balls := len(e.balls)
	if s.Jaw.Holding && e.held > 0 {
		at := e.r.kin.Tool(s.Base, s.Q).P
		things = append([]geom.Capsule{{A: at, B: at, R: e.held}}, things...)
		balls++
	}
	now := e.r.clock.Now()
	e.seq++
	in := e.info.Intrinsics
	f := &sensor.Frame{
		Info: &e.info, Seq: e.seq, Received: now, Stamp: now,
		RGB: make([]byte, 3*in.W*in.H), Depth: make([]float32, in.W*in.H),
	}
	pose := e.info.Mount.Pose
	for i := range f.Depth {
		ray := in.Unproject(float64(i%in.W), float64(i/in.W), 1)
		d, rgb := cast(pose.P, r3.Unit(pose.Dir(ray)), things, balls)
		if d *= 1 / r3.Norm(ray); d > 0 && e.noise != nil {
			d += e.noise()
		}
		f.Depth[i] = float32(d)
		copy(f.RGB[3*i:], rgb[:])
	}
	return f, nil
}

// cast is the distance to the first thing along a unit ray, 0 when there is none. The first balls are blue, the robot
// is white, the floor is brown.
func cast(o, dir r3.Vec, things []geom.Capsule, balls int) (float64, [3]byte) {
	best, rgb := math.Inf(1), [3]byte{}
	if dir.Z < 0 {
		best, rgb = (floorZ-o.Z)/dir.Z, [3]byte{120, 90, 60}
	}
	for i, c := range things {
		if d := hit(o, dir, c); d < best {
			best, rgb = d, [3]byte{240, 240, 240}
			if i < balls {
				rgb = [3]byte{30, 60, 220}
			}
		}
	}
	if math.IsInf(best, 1) {
		return 0, rgb
	}
	return best, rgb
}

// hit walks along the ray by the distance to the capsule, which never steps over it.
func hit(o, dir r3.Vec, c geom.Capsule) float64 {
	mid := r3.Scale(0.5, r3.Add(c.A, c.B))
	along := r3.Dot(r3.Sub(mid, o), dir)
	reach := c.R + r3.Norm(r3.Sub(c.A, mid))
	if off := r3.Norm(r3.Sub(r3.Add(o, r3.Scale(along, dir)), mid)); off > reach {
		return math.Inf(1)
	}
	for d := math.Max(0, along-reach); d < along+reach; {
		gap := c.Dist(r3.Add(o, r3.Scale(d, dir)))
		if gap < 1e-3 {
			return d
		}
		d += gap
	}
	return math.Inf(1)
}

var _ robot.Body = (*bent)(nil)
