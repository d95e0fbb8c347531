package perception

import (
	"context"
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/sensor"
)

// epoch is when every test's clock starts.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// still is a clock that a test sets by hand; its tickers are driven through tick.
type still struct {
	now  time.Time
	tick chan time.Time
}

func (c *still) Now() time.Time                       { return c.now }
func (c *still) After(time.Duration) <-chan time.Time { return c.tick }
func (c *still) Ticker(time.Duration) robot.Ticker    { return c }
func (c *still) C() <-chan time.Time                  { return c.tick }
func (c *still) Stop()                                {}

// slider is a robot with one joint: a hand that slides along the base's x at height 0.3.
type slider struct{ model robot.Model }

func newSlider() *slider {
	return &slider{robot.Model{Name: "slider", Joints: []robot.Joint{{Name: "slide", Prismatic: true, Min: 0, Max: 1, Vel: 1, Acc: 2}}, Jaw: robot.JawSpec{Max: 0.08}}}
}

func (s *slider) Model() *robot.Model { return &s.model }

func (s *slider) Tool(base geom.SE2, q []float64) geom.Pose {
	return base.Pose().Mul(geom.Pose{P: r3.Vec{X: q[0], Z: 0.3}, R: geom.RotY(math.Pi / 2)}) // approach is down
}

func (s *slider) Link(name string, base geom.SE2, q []float64, _ float64) (geom.Pose, bool) {
	return s.Tool(base, q), name == "hand"
}

func (s *slider) Capsules(base geom.SE2, q []float64, _ float64) []robot.LinkCapsule {
	p := base.Pose()
	return []robot.LinkCapsule{{Link: "hand", Class: robot.ClassHand, Capsule: geom.Capsule{
		A: p.Point(r3.Vec{X: q[0], Z: 0.35}), B: p.Point(r3.Vec{X: q[0], Z: 0.45}), R: 0.04,
	}}}
}

func (s *slider) WristMount() float64 { return 0 }

// rest is a complete state at time t.
func rest(t time.Time, q float64) robot.State {
	return robot.State{
		Seq: 1, Received: t, Stamp: t, Changed: t, Q: []float64{q}, QD: []float64{0}, HasBase: true,
		Jaw: robot.Jaw{Known: true, Aperture: 0.08, Open: true}, Mode: robot.ModeReady,
	}
}

// solid is an axis-aligned box in odometry with one colour.
type solid struct {
	box r3.Box
	rgb [3]byte
}

// box is a solid by centre and half sizes.
func box(cx, cy, cz, hx, hy, hz float64, rgb [3]byte) solid {
	c, h := r3.Vec{X: cx, Y: cy, Z: cz}, r3.Vec{X: hx, Y: hy, Z: hz}
	return solid{r3.Box{Min: r3.Sub(c, h), Max: r3.Add(c, h)}, rgb}
}

// table is a slab whose top is at z = 0.
var table = box(0.5, 0, -0.05, 0.6, 0.6, 0.05, [3]byte{200, 180, 160})

// cast is the distance along dir to the first solid, by slabs; 0 when there is none.
func cast(o, dir r3.Vec, world []solid) (float64, [3]byte) {
	best, rgb := math.Inf(1), [3]byte{}
	for _, s := range world {
		lo, hi := 0.0, math.Inf(1)
		for k := range 3 {
			p, d := arr(o)[k], arr(dir)[k]
			a, b := (arr(s.box.Min)[k]-p)/d, (arr(s.box.Max)[k]-p)/d
			lo, hi = max(lo, min(a, b)), min(hi, max(a, b))
		}
		if lo <= hi && lo > 1e-9 && lo < best {
			best, rgb = lo, s.rgb
		}
	}
	if math.IsInf(best, 1) {
		return 0, rgb
	}
	return best, rgb
}

// rgbd is a camera that looks at solids from wherever truth says it is.
type rgbd struct {
	info  sensor.Info
	world []solid
	truth geom.Pose // optical frame in odometry
	stamp time.Time
	noise func(i int, d float32) float32
	err   error
}

func (c *rgbd) Info() *sensor.Info { return &c.info }

func (c *rgbd) Frame(context.Context, time.Time) (*sensor.Frame, error) {
	if c.err != nil {
		return nil, c.err
	}
	in := c.info.Intrinsics
	f := &sensor.Frame{Info: &c.info, Seq: 1, Received: c.stamp, Stamp: c.stamp, RGB: make([]byte, 3*in.W*in.H)}
	if c.info.HasDepth {
		f.Depth = make([]float32, in.W*in.H)
	}
	for i := range in.W * in.H {
		ray := in.Unproject(float64(i%in.W), float64(i/in.W), 1) // depth along z is the ray parameter
		d, rgb := cast(c.truth.P, c.truth.Dir(ray), c.world)
		copy(f.RGB[3*i:], rgb[:])
		if c.info.HasDepth {
			f.Depth[i] = float32(d)
			if c.noise != nil {
				f.Depth[i] = c.noise(i, f.Depth[i])
			}
		}
	}
	return f, nil
}

// looking is the pose of a camera at eye that looks at a point, with its x axis level.
func looking(eye, at r3.Vec) geom.Pose {
	z := r3.Unit(r3.Sub(at, eye))
	x := r3.Unit(r3.Cross(z, r3.Vec{Z: 1}))
	return geom.Pose{P: eye, R: geom.FromAxes(x, r3.Cross(z, x))}
}

// tripod is a camera over the table.
func tripod(w, h int, world ...solid) *rgbd {
	p := looking(r3.Vec{X: 1.2, Y: 0.3, Z: 0.7}, r3.Vec{X: 0.5})
	return &rgbd{
		info: sensor.Info{
			Name: "third_person", Intrinsics: sensor.FromFovy(w, h, geom.Rad(50)), Mount: sensor.Mount{Pose: p},
			HasColor: true, HasDepth: true, Range: [2]float64{0.1, 3}, Sigma: 0.001,
		},
		world: world, truth: p, stamp: epoch,
	}
}

// fuse makes one scene or fails.
func fuse(t testing.TB, o Options) *Scene {
	t.Helper()
	f, err := NewFuser(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Refresh(context.Background(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// options are those of a robot at rest, its hand far from what the tests look at.
func options(src ...sensor.Source) Options {
	return Options{Sources: src, Kin: newSlider(), Clock: &still{now: epoch}, State: func() robot.State { return rest(epoch, 0) }}
}

// once is a source that gives the same frame again.
type once struct{ f *sensor.Frame }

func (o once) Info() *sensor.Info                                      { return o.f.Info }
func (o once) Frame(context.Context, time.Time) (*sensor.Frame, error) { return o.f, nil }

// frozen renders a camera once.
func frozen(t testing.TB, c *rgbd) sensor.Source {
	f, err := c.Frame(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return once{f}
}
