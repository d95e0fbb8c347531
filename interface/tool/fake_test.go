package tool_test

import (
	"context"
	"image"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/interface/tool"
	"viad/interface/view"
	"viad/perception"
	"viad/safety"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an obedient robot whose joints are the tool's place and rotation vector on its base, with its own
// planner, guard and sensors. It moves at once, or when hold is closed.
type world struct {
	model robot.Model

	mu      sync.Mutex
	st      robot.State
	seq     uint64
	scene   *perception.Scene
	ran     []robot.Plan
	hold    chan struct{} // a motion waits for it to close; nil does not wait
	stop    chan struct{}
	began   chan struct{} // one value per motion that began
	result  robot.Result
	why     string
	share   float64 // part of the way that motions go; 0 is all
	drift   geom.SE2
	blocked *safety.Refused
	ready   *safety.Refused
	success bool
	stopErr error
	blind   error  // the sensors give nothing
	check   func() // runs in every check, without mu
	stopped time.Time
	inside  int
	overlap bool // two motions at once
}

var (
	down    = geom.Pose{P: r3.Vec{X: .45, Z: .3}, R: geom.FromAxes(r3.Vec{Z: -1}, r3.Vec{Y: 1})}
	forward = geom.At(.6, 0, .8)
	wide    = robot.JawSpec{Max: .08, Speed: .08}
)

func newWorld(at geom.Pose) *world {
	w := &world{
		model: robot.Model{Name: "fake", Mobile: true, Jaw: wide},
		stop:  make(chan struct{}), began: make(chan struct{}, 100), result: robot.ResultReached,
	}
	for i, n := range []string{"x_joint", "y_joint", "z_joint", "wrist_roll_joint", "wrist_pitch_joint", "wrist_yaw_joint"} {
		j := robot.Joint{Name: n, Prismatic: i < 3, Min: -4, Max: 4, Vel: 1, Acc: 1}
		if i >= 3 {
			j.Min, j.Max = [3]float64{-1.0804, -1.0786, -1.0961}[i-3], [3]float64{1.1345, 1.309, 1.5691}[i-3]
		}
		w.model.Joints = append(w.model.Joints, j)
	}
	w.st = robot.State{
		Seq: 1, Q: joints(geom.SE2{}, at), QD: make([]float64, 6), HasBase: true, Mode: robot.ModeReady,
		Jaw: robot.Jaw{Known: true, Aperture: .08, Open: true}, Received: time.Now(),
	}
	w.renew()
	return w
}

func joints(base geom.SE2, p geom.Pose) []float64 {
	g := base.Pose().Inv().Mul(p)
	v := geom.RotVec(g.R)
	return []float64{g.P.X, g.P.Y, g.P.Z, v.X, v.Y, v.Z}
}

func (w *world) Model() *robot.Model { return &w.model }

func (w *world) Tool(base geom.SE2, q []float64) geom.Pose {
	return base.Pose().Mul(geom.Pose{P: r3.Vec{X: q[0], Y: q[1], Z: q[2]}, R: geom.FromRotVec(r3.Vec{X: q[3], Y: q[4], Z: q[5]})})
}

func (w *world) Link(string, geom.SE2, []float64, float64) (geom.Pose, bool) {
	return geom.Pose{}, false
}
func (w *world) Capsules(geom.SE2, []float64, float64) []robot.LinkCapsule { return nil }
func (w *world) WristMount() float64                                       { return .22768 }

// renew needs mu, or a world nobody else has yet.
func (w *world) renew() {
	w.seq++
	w.scene = &perception.Scene{Seq: w.seq, At: time.Now(), State: w.st, Fused: []string{"third_person"}}
}

func (w *world) State() robot.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.st
	st.Received = time.Now()
	return st
}

func (w *world) Scene() *perception.Scene {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scene
}

func (w *world) Refresh(ctx context.Context, _ time.Time) (*perception.Scene, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blind != nil {
		return nil, w.blind
	}
	w.renew()
	return w.scene, ctx.Err()
}

func (w *world) Plan(st robot.State, wp robot.Waypoint) (robot.Plan, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := robot.Plan{Waypoint: wp, FromSeq: st.Seq, From: st, Start: w.Tool(st.Base, st.Q), EndBase: st.Base, EndQ: st.Q}
	switch wp.Kind {
	case robot.KindPose, robot.KindPoseJaw:
		p.EndBase = st.Base.Mul(w.drift)
		p.EndQ = joints(p.EndBase, wp.Tool)
	case robot.KindBase:
		p.EndBase = wp.Base
	}
	p.End = w.Tool(p.EndBase, p.EndQ)
	if by := p.End.P.Z - 2; by > 0 {
		return p, &robot.Unreachable{Joint: "z_joint", By: by, Unit: "m", Why: "z_joint would have to go past its limit"}
	}
	if wp.Kind != robot.KindJaw {
		p.Traj.Points = []robot.Point{{Q: st.Q, Base: st.Base}, {T: 2 * time.Second, Q: p.EndQ, Base: p.EndBase}}
	}
	p.Margins = []robot.Margin{{Joint: "z_joint", Value: 1}}
	return p, nil
}

func (w *world) Check(robot.Plan, *perception.Scene) ([]safety.Warning, perception.Hit, *safety.Refused) {
	w.mu.Lock()
	f, blocked := w.check, w.blocked
	w.mu.Unlock()
	if f != nil {
		f()
	}
	return nil, perception.Hit{}, blocked
}

func (w *world) Ready() *safety.Refused {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

func (w *world) Go(ctx context.Context, p robot.Plan) (robot.Outcome, error) {
	w.mu.Lock()
	if !w.stopped.IsZero() && !p.From.Received.After(w.stopped) {
		w.mu.Unlock()
		return robot.Outcome{}, refusedRule("planned before a stop")
	}
	w.ran = append(w.ran, p)
	w.inside++
	w.overlap = w.overlap || w.inside > 1
	before, hold, stop, part, result, why := w.st, w.hold, w.stop, w.share, w.result, w.why
	w.mu.Unlock()
	select {
	case w.began <- struct{}{}:
	default:
	}
	if part == 0 {
		part = 1
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			part, result, why = .5, robot.ResultStoppedShort, "the request ended"
		case <-stop:
			part, result, why = .5, robot.ResultStoppedShort, "stopped on request"
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside--
	st := w.st
	st.Q = append([]float64(nil), st.Q...)
	for i := range st.Q {
		st.Q[i] += part * (p.EndQ[i] - st.Q[i])
	}
	d := before.Base.Inv().Mul(p.EndBase)
	st.Base = before.Base.Mul(geom.SE2{X: part * d.X, Y: part * d.Y, Yaw: part * d.Yaw})
	if k := p.Waypoint.Kind; (k == robot.KindJaw || k == robot.KindPoseJaw) && part == 1 {
		st.Jaw.Open, st.Jaw.Aperture = p.Waypoint.Jaw.Open, 0
		if st.Jaw.Open {
			st.Jaw.Aperture = .08
		}
	}
	st.Seq++
	w.st = st
	return robot.Outcome{
		Result: result, Stop: robot.StopConfirmed, Why: why, Before: before, After: st, JawFrom: before.Jaw, JawTo: st.Jaw,
		Took: 2100 * time.Millisecond, Planned: 2 * time.Second,
	}, nil
}

func (w *world) Stop(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopErr != nil {
		return w.stopErr
	}
	w.stopped = time.Now()
	close(w.stop)
	w.stop = make(chan struct{})
	return nil
}

func (w *world) Succeeded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.success
}

// set changes the world from outside.
func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) motions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ran)
}

// painter draws nothing much and finds what the test put there; it keeps the overlays it was asked for.
type painter struct {
	mu   sync.Mutex
	hits map[[2]float64]view.Hit // by u, v; what is not listed is empty space
	axis view.Hit
	drew []drawn
	boom bool
}

type drawn struct {
	what string
	ov   view.Overlay
	sn   *stage.Snapshot
}

func (p *painter) draw(what string, sn *stage.Snapshot, ov view.Overlay) *image.RGBA {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boom {
		panic("no colours left")
	}
	p.drew = append(p.drew, drawn{what, ov, sn})
	return image.NewRGBA(image.Rect(0, 0, 16, 10))
}

// take returns what was drawn since the last take.
func (p *painter) take() []drawn {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.drew
	p.drew = nil
	return d
}

func (p *painter) UI(sn *stage.Snapshot, ov view.Overlay) *image.RGBA { return p.draw("ui", sn, ov) }

func (p *painter) Head(sn *stage.Snapshot, ov view.Overlay) *image.RGBA {
	return p.draw("head", sn, ov)
}

func (p *painter) Wrist(sn *stage.Snapshot, ov view.Overlay) *image.RGBA {
	return p.draw("wrist", sn, ov)
}

func (p *painter) NavMap(sn *stage.Snapshot) *image.RGBA {
	return p.draw("nav_map", sn, view.Overlay{})
}

func (p *painter) Pick(_ *stage.Snapshot, u, v float64) view.Hit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits[[2]float64{u, v}]
}
func (p *painter) PickHead(sn *stage.Snapshot, u, v float64) view.Hit  { return p.Pick(sn, u, v) }
func (p *painter) PickWrist(sn *stage.Snapshot, u, v float64) view.Hit { return p.Pick(sn, u, v) }
func (p *painter) ApproachHit(*stage.Snapshot) view.Hit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.axis
}

func point(x, y, z float64) view.Hit {
	return view.Hit{Kind: view.Cloud, Point: r3.Vec{X: x, Y: y, Z: z}}
}

// episode counts its ends.
type episode struct {
	mu   sync.Mutex
	ends int
	err  error
}

func (e *episode) End(context.Context) (tool.Verdict, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return tool.Verdict{}, e.err
	}
	e.ends++
	return tool.Verdict{Saved: "episode-0001", Reset: true}, nil
}

// records keeps what was recorded.
type records struct {
	mu  sync.Mutex
	all []tool.Record
}

func (r *records) Call(c tool.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, c)
}

func (r *records) last() tool.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[len(r.all)-1]
}
