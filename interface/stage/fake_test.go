package stage_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/perception"
	"viad/safety"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kin is a robot whose joints are the tool's place and rotation vector on its base.
type kin struct {
	model robot.Model
	mount float64
}

func (k *kin) Model() *robot.Model { return &k.model }

func (k *kin) Tool(base geom.SE2, q []float64) geom.Pose {
	return base.Pose().Mul(geom.Pose{P: r3.Vec{X: q[0], Y: q[1], Z: q[2]}, R: geom.FromRotVec(r3.Vec{X: q[3], Y: q[4], Z: q[5]})})
}

func (k *kin) solve(base geom.SE2, p geom.Pose) []float64 {
	g := base.Pose().Inv().Mul(p)
	w := geom.RotVec(g.R)
	return []float64{g.P.X, g.P.Y, g.P.Z, w.X, w.Y, w.Z}
}

func (k *kin) Link(string, geom.SE2, []float64, float64) (geom.Pose, bool) { return geom.Pose{}, false }
func (k *kin) Capsules(geom.SE2, []float64, float64) []robot.LinkCapsule   { return nil }
func (k *kin) WristMount() float64                                         { return k.mount }

// world is everything around a stage: planner, mover, checker, scenes and judge, all obedient unless told.
type world struct {
	*kin
	mu       sync.Mutex
	st       robot.State
	seq      uint64 // of the scene
	scene    *perception.Scene
	plans    int
	goes     []robot.Plan
	planErr  error
	drift    geom.SE2 // how far the base moves to reach a pose
	ready    *safety.Refused
	check    func(robot.Plan, *perception.Scene) ([]safety.Warning, perception.Hit, *safety.Refused)
	onScene  func(n uint64) // runs when a new scene is made
	sceneErr error
	goErr    error
	short    float64 // part of the way that a motion goes; 0 is all
	result   robot.Result
	why      string
	took     time.Duration
	stop     chan struct{}
	began    chan struct{} // closed when Go begins, if set
	success  bool
	nudge    geom.SE2 // moves the base just before a motion begins
	lost     bool     // After comes back incomplete
}

var errNoSeed = errors.New("no seed converged")

var down = geom.Pose{P: r3.Vec{X: .45, Z: .3}, R: geom.FromAxes(r3.Vec{Z: -1}, r3.Vec{Y: 1})}

func newWorld(at geom.Pose) *world {
	k := &kin{mount: .22768, model: robot.Model{Name: "fake", Mobile: true, Jaw: robot.JawSpec{Max: .08, Speed: .08}}}
	for i, n := range []string{"x_joint", "y_joint", "z_joint", "roll_joint", "pitch_joint", "yaw_joint"} {
		j := robot.Joint{Name: n, Prismatic: i < 3, Min: -4, Max: 4, Vel: 1, Acc: 1}
		k.model.Joints = append(k.model.Joints, j)
	}
	w := &world{kin: k, took: 2 * time.Second, result: robot.ResultReached, stop: make(chan struct{})}
	w.st = robot.State{
		Seq: 1, Q: k.solve(geom.SE2{}, at), QD: make([]float64, 6), HasBase: true, Mode: robot.ModeReady,
		Jaw: robot.Jaw{Known: true, Aperture: .08, Open: true}, Received: time.Now(),
	}
	w.renew()
	return w
}

func (w *world) renew() {
	w.seq++
	if w.onScene != nil {
		w.onScene(w.seq)
	}
	w.scene = &perception.Scene{Seq: w.seq, At: time.Now(), State: w.st, Fused: []string{"third_person"}}
}

func (w *world) State() robot.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.st
}

// set changes the robot's state from outside.
func (w *world) set(f func(*robot.State)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.st
	st.Q = append([]float64(nil), st.Q...)
	f(&st)
	st.Seq++
	w.st = st
}

func (w *world) Scene() *perception.Scene {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scene
}

func (w *world) Refresh(ctx context.Context, _ time.Time) (*perception.Scene, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sceneErr != nil {
		return nil, w.sceneErr
	}
	w.renew()
	return w.scene, ctx.Err()
}

func (w *world) Plan(st robot.State, wp robot.Waypoint) (robot.Plan, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans++
	if w.planErr != nil {
		return robot.Plan{}, w.planErr
	}
	p := robot.Plan{Waypoint: wp, FromSeq: st.Seq, From: st, Start: w.Tool(st.Base, st.Q), EndBase: st.Base, EndQ: st.Q}
	switch wp.Kind {
	case robot.KindPose, robot.KindPoseJaw:
		p.EndBase = st.Base.Mul(w.drift)
		p.EndQ = w.solve(p.EndBase, wp.Tool)
	case robot.KindBase:
		p.EndBase = wp.Base
	case robot.KindJaw:
	default:
		return p, fmt.Errorf("nothing to plan")
	}
	p.End = w.Tool(p.EndBase, p.EndQ)
	if by := p.End.P.X - 3; by > 0 {
		return p, &robot.Unreachable{Joint: "x_joint", By: by, Unit: "m", Why: fmt.Sprintf("x_joint would have to go %.3f m past its limit", by)}
	}
	if wp.Kind != robot.KindJaw {
		p.Traj.Points = []robot.Point{{Q: st.Q, Base: st.Base}, {T: w.took, Q: p.EndQ, Base: p.EndBase}}
	}
	for i, j := range w.model.Joints {
		p.Margins = append(p.Margins, robot.Margin{Joint: j.Name, Value: math.Min(p.EndQ[i]-j.Min, j.Max-p.EndQ[i])})
	}
	return p, nil
}

func (w *world) Check(p robot.Plan, sc *perception.Scene) ([]safety.Warning, perception.Hit, *safety.Refused) {
	w.mu.Lock()
	f := w.check
	w.mu.Unlock()
	if f == nil {
		return nil, perception.Hit{}, nil
	}
	return f(p, sc)
}

func (w *world) Ready() *safety.Refused {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

func (w *world) Go(ctx context.Context, p robot.Plan) (robot.Outcome, error) {
	w.mu.Lock()
	if w.goErr != nil {
		defer w.mu.Unlock()
		return robot.Outcome{}, w.goErr
	}
	w.goes = append(w.goes, p)
	w.st.Base = w.st.Base.Mul(w.nudge)
	before, took, part, result, why := w.st, w.took, w.short, w.result, w.why
	if w.began != nil {
		close(w.began)
		w.began = nil
	}
	stop := w.stop
	w.mu.Unlock()
	if part == 0 {
		part = 1
	}
	start := time.Now()
	select {
	case <-time.After(took):
	case <-time.After(time.Until(p.Deadline)):
		part, result, why = time.Since(start).Seconds()/took.Seconds(), robot.ResultStoppedShort, "30 s cap"
	case <-ctx.Done():
		part, result, why = time.Since(start).Seconds()/took.Seconds(), robot.ResultStoppedShort, "the request ended"
	case <-stop:
		part, result, why = time.Since(start).Seconds()/took.Seconds(), robot.ResultStoppedShort, "stopped on request"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.st
	st.Q = append([]float64(nil), st.Q...)
	for i := range st.Q {
		st.Q[i] += part * (p.EndQ[i] - st.Q[i])
	}
	d := before.Base.Inv().Mul(p.EndBase)
	st.Base = before.Base.Mul(geom.SE2{X: part * d.X, Y: part * d.Y, Yaw: part * d.Yaw})
	st.Base.Yaw = geom.WrapAngle(st.Base.Yaw) // as odometry does
	if k := p.Waypoint.Kind; (k == robot.KindJaw || k == robot.KindPoseJaw) && part == 1 {
		st.Jaw.Open, st.Jaw.Aperture = p.Waypoint.Jaw.Open, map[bool]float64{true: .08}[p.Waypoint.Jaw.Open]
	}
	st.Seq++
	w.st = st
	out := robot.Outcome{Result: result, Stop: robot.StopConfirmed, Why: why, Before: before, After: st, Took: time.Since(start)}
	if w.lost {
		out.After, out.Stop = robot.State{}, robot.StopNotConfirmed
	}
	return out, nil
}

func (w *world) Stop(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.stop)
	w.stop = make(chan struct{})
	return nil
}

func (w *world) Succeeded() bool { return w.success }

func (w *world) ran() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.goes)
}

var home = stage.Orbit{Target: r3.Vec{X: .45, Z: .1}, Distance: 1, Azimuth: geom.Rad(90), Elevation: geom.Rad(30)}

func newStage(w *world, face stage.Face, opt ...func(*stage.Options)) *stage.Stage {
	o := stage.Options{
		Face: face, Kin: w, Clock: robot.WallClock{}, Planner: w, Mover: w, Checker: w, Scenes: w, Judge: w, Home: home,
	}
	for _, f := range opt {
		f(&o)
	}
	return stage.New(o)
}

// tabletop is the 3D face, the gripper pointing down. (The model says mobile; the base never moves there.)
func tabletop(t *testing.T) (*stage.Stage, *world) {
	t.Helper()
	w := newWorld(down)
	return newStage(w, stage.Face3D), w
}

// room is the 2D face, the gripper level and forward.
func room(t *testing.T) (*stage.Stage, *world) {
	t.Helper()
	w := newWorld(geom.At(.6, 0, .8))
	return newStage(w, stage.Face2D), w
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
}

func vec(t *testing.T, what string, got, want r3.Vec) {
	t.Helper()
	if d := r3.Norm(r3.Sub(got, want)); !(d < 2e-6) {
		t.Errorf("%s = %.6f, want %.6f", what, got, want)
	}
}

// refusal fails unless err is a complete refusal by rule.
func refusal(t *testing.T, err error, rule string) {
	t.Helper()
	var r *safety.Refused
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal by %q", err, rule)
	}
	if rule != "" && r.Rule != rule {
		t.Fatalf("refused by %q (%v), want %q", r.Rule, r, rule)
	}
	if r.Rule == "" || r.Next == "" {
		t.Errorf("refusal %+v does not say what to do", *r)
	}
}

var sameScene = cmp.Comparer(func(a, b *perception.Scene) bool { return a == b })

// notNow leaves out the time of the reading, which is no part of what is staged.
var notNow = cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Now" }, cmp.Ignore())

// unchanged runs f and fails if it changed any byte of the snapshot.
func unchanged(t *testing.T, s *stage.Stage, f func()) {
	t.Helper()
	before := s.Snapshot()
	f()
	if d := cmp.Diff(before, s.Snapshot(), sameScene, notNow); d != "" {
		t.Errorf("a refused call changed the snapshot:\n%s", d)
	}
}
