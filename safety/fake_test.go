package safety

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/perception"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gantry is a robot of three slides x, y, z that carry a tool pointing down; above the closure point come
// finger, hand and arm, each an upright rod. As a mobile one it stands on a base that reaches the floor.
type gantry struct{ model robot.Model }

func newGantry(mobile bool) *gantry {
	g := &gantry{robot.Model{Name: "gantry", Mobile: mobile, Jaw: robot.JawSpec{Max: 0.08, Speed: 0.1}}}
	for _, n := range []string{"x", "y", "z"} {
		g.model.Joints = append(g.model.Joints, robot.Joint{Name: n, Prismatic: true, Min: -1, Max: 1, Vel: 0.5, Acc: 2})
	}
	return g
}

func (g *gantry) Model() *robot.Model { return &g.model }
func (g *gantry) WristMount() float64 { return 0 }

func (g *gantry) Tool(base geom.SE2, q []float64) geom.Pose {
	return base.Pose().Mul(geom.Pose{P: r3.Vec{X: q[0], Y: q[1], Z: q[2]}, R: geom.RotY(math.Pi / 2)})
}

func (g *gantry) Link(_ string, base geom.SE2, q []float64, _ float64) (geom.Pose, bool) {
	return g.Tool(base, q), true
}

func (g *gantry) Capsules(base geom.SE2, q []float64, _ float64) []robot.LinkCapsule {
	p := base.Pose()
	rod := func(name string, c robot.LinkClass, from, to, r float64) robot.LinkCapsule {
		return robot.LinkCapsule{Link: name, Class: c, Capsule: geom.Capsule{
			A: p.Point(r3.Vec{X: q[0], Y: q[1], Z: q[2] + from}), B: p.Point(r3.Vec{X: q[0], Y: q[1], Z: q[2] + to}), R: r,
		}}
	}
	out := []robot.LinkCapsule{
		rod("finger", robot.ClassFinger, 0.01, 0.05, 0.01),
		rod("hand", robot.ClassHand, 0.10, 0.15, 0.03),
		rod("forearm", robot.ClassArm, 0.25, 0.60, 0.05),
	}
	if g.model.Mobile {
		out = append(out, robot.LinkCapsule{Link: "base", Class: robot.ClassBase, Capsule: geom.Capsule{
			A: p.Point(r3.Vec{X: -1, Z: 0.15}), B: p.Point(r3.Vec{X: -0.8, Z: 0.15}), R: 0.15,
		}})
	}
	return out
}

// sensed makes a scene of the given points with a lidar on a tripod.
func sensed(t testing.TB, pts ...r3.Vec) *perception.Scene {
	t.Helper()
	info := &sensor.Info{Name: "lidar", HasPoints: true, Range: [2]float64{0.01, 20}, Mount: sensor.Mount{Pose: geom.At(0, 0, 3)}}
	clock := robot.WallClock{}
	now := clock.Now()
	f := &sensor.Frame{Info: info, Stamp: now, Points: []float32{0, 0, -20}}
	for _, p := range pts {
		f.Points = append(f.Points, float32(p.X), float32(p.Y), float32(p.Z-3))
	}
	fu, err := perception.NewFuser(perception.Options{
		Sources: []sensor.Source{source{f}}, Kin: newGantry(false), Clock: clock, Voxel: 0.01,
		Bounds: r3.Box{Min: r3.Vec{X: -2, Y: -2, Z: -1}, Max: r3.Vec{X: 2, Y: 2, Z: 2}},
		State:  func() robot.State { return restAt(now, 0, 0, 0.9) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := fu.Refresh(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type source struct{ f *sensor.Frame }

func (s source) Info() *sensor.Info                                      { return s.f.Info }
func (s source) Frame(context.Context, time.Time) (*sensor.Frame, error) { return s.f, nil }

// plate is a horizontal square of points with half side h around (x, y) at height z, 2 cm apart.
func plate(x, y, z, h float64) (pts []r3.Vec) {
	for i := -h; i <= h+1e-9; i += 0.02 {
		for j := -h; j <= h+1e-9; j += 0.02 {
			pts = append(pts, r3.Vec{X: x + i, Y: y + j, Z: z})
		}
	}
	return pts
}

// wall is an upright square of points at x, around (y, z).
func wall(x, y, z, h float64) []r3.Vec {
	pts := plate(y, z, x, h)
	for i, p := range pts {
		pts[i] = r3.Vec{X: p.Z, Y: p.X, Z: p.Y}
	}
	return pts
}

func restAt(t time.Time, q ...float64) robot.State {
	return robot.State{
		Seq: 1, Received: t, Stamp: t, Changed: t, Q: q, QD: make([]float64, len(q)), HasBase: true,
		Jaw: robot.Jaw{Known: true, Aperture: 0.08, Open: true}, Mode: robot.ModeReady,
	}
}

// stop is one place of a path: joints and base.
type stop struct {
	q    [3]float64
	base geom.SE2
}

func at3(x, y, z float64) stop { return stop{q: [3]float64{x, y, z}} }

// path plans straight legs at a 0.15 m/s on average between rests: cubic in each leg.
func path(k *gantry, from robot.State, stops ...stop) robot.Plan {
	p := robot.Plan{Waypoint: robot.Waypoint{Kind: robot.KindPose}, FromSeq: from.Seq, From: from}
	all := append([]stop{{q: [3]float64(from.Q), base: from.Base}}, stops...)
	var t time.Duration
	for i, s := range all {
		if i > 0 {
			d := all[i-1].base.Inv().Mul(s.base)
			l := d.Norm() + math.Abs(d.Yaw)
			for j := range s.q {
				l += math.Abs(s.q[j] - all[i-1].q[j])
			}
			t += time.Duration(max(l/0.15, 0.5) * float64(time.Second))
		}
		q := s.q
		p.Traj.Points = append(p.Traj.Points, robot.Point{T: t, Q: q[:], QD: make([]float64, 3), Base: s.base})
	}
	p.EndQ, p.EndBase = all[len(all)-1].q[:], all[len(all)-1].base
	n := int(t/(25*time.Millisecond)) + 1
	for i := range n + 1 {
		at := p.Traj.At(t * time.Duration(i) / time.Duration(n))
		p.Sweep = append(p.Sweep, robot.Swept{T: at.T, Q: at.Q, Base: at.Base, Tool: k.Tool(at.Base, at.Q), Capsules: k.Capsules(at.Base, at.Q, 0.08)})
	}
	p.Start, p.End = p.Sweep[0].Tool, p.Sweep[n].Tool
	return p
}

// fake is a robot that does what the test says.
type fake struct {
	clock robot.Clock

	mu    sync.Mutex
	state func(now time.Time) robot.State
	goes  func(ctx context.Context, p robot.Plan) (robot.Outcome, error)
	stops func(ctx context.Context) error
	plans []robot.Plan
	asked int           // Stop calls
	began chan struct{} // gets one for every Go while there is room
}

func newFake(c robot.Clock) *fake {
	return &fake{
		clock: c, began: make(chan struct{}, 1),
		state: func(now time.Time) robot.State { return restAt(now, 0, 0, 0.5) },
		goes: func(context.Context, robot.Plan) (robot.Outcome, error) {
			return robot.Outcome{Result: robot.ResultReached, Stop: robot.StopConfirmed}, nil
		},
		stops: func(context.Context) error { return nil },
	}
}

func (f *fake) State() robot.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state(f.clock.Now())
}

func (f *fake) Go(ctx context.Context, p robot.Plan) (robot.Outcome, error) {
	f.mu.Lock()
	f.plans = append(f.plans, p)
	goes := f.goes
	f.mu.Unlock()
	select {
	case f.began <- struct{}{}:
	default:
	}
	return goes(ctx, p)
}

func (f *fake) Stop(ctx context.Context) error {
	f.mu.Lock()
	f.asked++
	stops := f.stops
	f.mu.Unlock()
	return stops(ctx)
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) moves() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.plans)
}

// scenes gives one scene, as old as it says, and counts refreshes.
type scenes struct {
	mu      sync.Mutex
	sc      *perception.Scene
	fresh   int
	refresh func(ctx context.Context) (*perception.Scene, error)
}

func (s *scenes) Scene() *perception.Scene {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sc
}

func (s *scenes) Refresh(ctx context.Context, _ time.Time) (*perception.Scene, error) {
	s.mu.Lock()
	s.fresh++
	r := s.refresh
	s.mu.Unlock()
	if r != nil {
		return r(ctx)
	}
	return s.Scene(), nil
}

// bench is a guard on a fake robot in a room with a table at z = 0.
type bench struct {
	clock robot.WallClock
	kin   *gantry
	robot *fake
	eyes  *scenes
	guard *Guard
	log   *lines
}

type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(msg string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), `msg="`+msg+`"`) + strings.Count(l.buf.String(), "msg="+msg+" ")
}

// newBench is a bench on the machine's clock: in a bubble of testing/synctest that is exact virtual time.
func newBench(t testing.TB, change ...func(*Options)) *bench {
	t.Helper()
	b := &bench{clock: robot.WallClock{}, kin: newGantry(false), log: &lines{}}
	b.robot = newFake(b.clock)
	b.eyes = &scenes{sc: sensed(t, plate(0, 0, 0, 0.4)...)}
	o := Options{
		Robot: b.robot, Kin: b.kin, Clock: b.clock, Scenes: b.eyes, Limits: DefaultLimits(b.kin.Model()),
		AutoArm: true, Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	o.Limits.SceneAge = time.Minute
	for _, c := range change {
		c(&o)
	}
	g, err := NewGuard(o)
	if err != nil {
		t.Fatal(err)
	}
	b.guard = g
	return b
}

// plan is a harmless move from the robot's state.
func (b *bench) plan() robot.Plan { return path(b.kin, b.robot.State(), at3(0.1, 0, 0.5)) }
