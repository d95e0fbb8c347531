package perception

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
	"viad/drivers/sensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var red = [3]byte{220, 30, 30}

func ball(x, y, z, r float64) geom.Capsule {
	p := r3.Vec{X: x, Y: y, Z: z}
	return geom.Capsule{A: p, B: p, R: r}
}

func TestCubeOnTableIsWhereItIs(t *testing.T) {
	s := fuse(t, options(tripod(640, 480, table, box(0.5, 0.1, 0.0225, 0.0225, 0.0225, 0.0225, red))))
	var top, n float64
	for i := range s.Cloud.Len() {
		if p := s.Cloud.At(i); s.Cloud.RGB[3*i] == 220 && s.Cloud.RGB[3*i+1] == 30 && p.Z > 0.040 {
			top += p.Z
			n++
			if math.Abs(p.X-0.5) > 0.0235 || math.Abs(p.Y-0.1) > 0.0235 {
				t.Fatalf("red point at %v is off the cube", p)
			}
		}
	}
	if n < 50 || math.Abs(top/n-0.045) > 5e-4 {
		t.Errorf("cube top at %.5f by %v points, want 0.045 by more than 50", top/n, n)
	}
	for _, c := range []struct {
		ball geom.Capsule
		want float64 // by plane geometry
	}{
		{ball(0.5, 0.1, 0.145, 0.01), 0.09},
		{ball(0.5, -0.2, 0.05, 0.01), 0.04},
		{ball(0.5, -0.2, 0, 0.01), -0.01},
	} {
		if h := s.Clearance(c.ball, 0.12); !h.Found || math.Abs(h.Dist-c.want) > 2e-3 {
			t.Errorf("clearance of %v: got %+v, want %.3f", c.ball, h, c.want)
		}
	}
	if h := s.Clearance(ball(0.5, 0, 0.5, 0.01), 0.3); h.Found {
		t.Errorf("nothing is within 0.3 m of a point 0.5 m up, got %+v", h)
	}
	if s.Blind() || len(s.Missing) != 0 || s.Camera("third_person") == nil || s.Camera("wrist") != nil {
		t.Errorf("fused %v, missing %v", s.Fused, s.Missing)
	}
}

func TestTwoCamerasAndCalibrationAgree(t *testing.T) {
	a := tripod(320, 240, table)
	b := tripod(320, 240, table)
	b.info.Name = "wrist"
	b.info.Mount = sensor.Mount{Link: "hand", Pose: geom.Pose{P: r3.Vec{Y: 0.05}, R: geom.RotZ(0.3)}}
	o := options(a, b)
	link, _ := o.Kin.Link("hand", geom.SE2{}, []float64{0}, 0)
	off := geom.Pose{P: r3.Vec{X: 0.004, Z: -0.01}, R: geom.RotX(0.05)} // how the real mount differs
	b.truth = looking(link.Mul(b.info.Mount.Pose).P, r3.Vec{X: 0.5})
	b.info.Mount.Pose = link.Inv().Mul(b.truth).Mul(off.Inv())
	flat := func(s *Scene) (worst float64) {
		for i := range s.Cloud.Len() {
			if p := s.Cloud.At(i); math.Abs(p.X-0.5) < 0.2 && math.Abs(p.Y) < 0.2 {
				worst = max(worst, math.Abs(p.Z))
			}
		}
		return worst
	}
	if w := flat(fuse(t, o)); w < 0.01 {
		t.Errorf("a wrong mount leaves the table flat within %.4f", w)
	}
	o.Calib = map[string]geom.Pose{"wrist": off}
	if w := flat(fuse(t, o)); w > 1e-3 {
		t.Errorf("calibrated, the table is off by %.4f", w)
	}
}

// TestMovingCameraIsPlacedOrLeftOut lets the hand move at 0.4 m/s with a camera on it.
func TestMovingCameraIsPlacedOrLeftOut(t *testing.T) {
	at := func(d time.Duration) robot.State {
		s := rest(epoch.Add(d), 0.3+0.4*d.Seconds())
		s.QD[0] = 0.4
		return s
	}
	for _, c := range []struct {
		latency time.Duration
		fused   bool
	}{{0, true}, {5 * time.Millisecond, true}, {10 * time.Millisecond, false}} { // 2 mm passes, 4 mm does not
		cam := tripod(160, 120, table)
		cam.info.Name, cam.info.Latency = "wrist", c.latency
		cam.info.Mount = sensor.Mount{Link: "hand", Pose: geom.Identity()}
		cam.stamp = epoch.Add(25 * time.Millisecond)
		o := options(cam)
		link, _ := o.Kin.Link("hand", geom.SE2{}, []float64{0.3 + 0.4*0.025}, 0)
		cam.truth = link
		now := []time.Duration{0, 40 * time.Millisecond} // states around the exposure, none at it
		o.State = func() robot.State {
			d := now[0]
			if len(now) > 1 {
				now = now[1:]
			}
			return at(d)
		}
		s := fuse(t, o)
		if got := len(s.Fused) == 1; got != c.fused {
			t.Errorf("latency bound %v: fused %v, missing %v", c.latency, s.Fused, s.Missing)
		}
		if c.fused == (s.Cloud.Len() == 0) || c.fused == s.Blind() {
			t.Errorf("latency bound %v: %d points", c.latency, s.Cloud.Len())
		}
		got := s.Camera("wrist")
		if got == nil || got.Pose.Dist(link) > 1e-9 {
			t.Fatalf("the picture must be there and placed where the hand was, got %+v", got)
		}
	}
}

func TestStateIsNeverGuessed(t *testing.T) {
	cam := tripod(160, 120, table)
	for name, c := range map[string]struct {
		state robot.State
		want  string
	}{
		"no joints":  {func() robot.State { s := rest(epoch, 0); s.Q = nil; return s }(), "incomplete"},
		"NaN":        {func() robot.State { s := rest(epoch, 0); s.Q[0] = math.NaN(); return s }(), "incomplete"},
		"no base":    {func() robot.State { s := rest(epoch, 0); s.HasBase = false; return s }(), "incomplete"},
		"none":       {robot.State{}, "incomplete"},
		"too old":    {rest(epoch.Add(-time.Second), 0), "1s from the exposure"},
		"far behind": {rest(epoch.Add(time.Second), 0), "1s from the exposure"},
	} {
		o := options(cam)
		o.State = func() robot.State { return c.state }
		f, err := NewFuser(o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.Refresh(t.Context(), time.Time{})
		if err == nil || !strings.Contains(err.Error(), c.want) || s != nil || f.Scene() != nil {
			t.Errorf("%s: got %v, %v; want an error with %q and no scene", name, s, err, c.want)
		}
	}
}

func TestStatesInterpolate(t *testing.T) {
	r := newStates(newSlider().Model(), 4)
	put := func(ms int, q, yaw float64) {
		s := rest(epoch.Add(time.Duration(ms)*time.Millisecond), q)
		s.Base = geom.SE2{X: q, Yaw: yaw}
		s.QD[0] = 1
		if err := r.add(s); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 { // two more than it holds
		put(20*i, 0.02*float64(i), 3.1+0.02*float64(i)) // yaw passes pi
	}
	r.at(3).Base.Yaw -= 2 * math.Pi // as an encoder may report it
	for _, c := range []struct {
		ms      int
		q, yaw  float64
		wantErr bool
	}{{70, 0.07, 3.17, false}, {80, 0.08, 3.18, false}, {90, 0.09, 3.19, false}, {110, 0.11, 3.2, false}, {30, 0.03, 3.14, false}, {300, 0, 0, true}, {-200, 0, 0, true}} {
		got, err := r.when(epoch.Add(time.Duration(c.ms)*time.Millisecond), 100*time.Millisecond)
		if (err != nil) != c.wantErr {
			t.Errorf("at %d ms: %v", c.ms, err)
			continue
		}
		if err == nil && (math.Abs(got.q[0]-c.q) > 1e-9 || math.Abs(geom.WrapAngle(got.base.Yaw-c.yaw)) > 1e-9) {
			t.Errorf("at %d ms: got q %.4f yaw %.4f, want %.4f %.4f", c.ms, got.q[0], got.base.Yaw, c.q, c.yaw)
		}
	}
	put(10, 0.7, 0) // time ran backwards: nothing before counts any more
	if r.n != 1 || r.at(0).Q[0] != 0.7 {
		t.Errorf("after a jump backwards the ring holds %d states", r.n)
	}
	put(30, 0.71, 0)
	if r.n != 2 {
		t.Errorf("a motion empties the ring")
	}
	for _, to := range []struct{ q, yaw float64 }{{0.2, 0}, {0.71, 1.5}} { // elsewhere, without a motion that leads there
		put(50, 0.71, 0)
		put(70, to.q, to.yaw)
		if got, err := r.when(epoch.Add(60*time.Millisecond), 100*time.Millisecond); r.n != 1 || err != nil || math.Abs(got.base.Yaw-to.yaw) > 1e-9 {
			t.Errorf("to %v: the ring holds %d states, 10 ms before %+v, %v", to, r.n, got, err)
		}
		r.n = 0
	}
}

func TestRobotAndHeldAreNotObstacles(t *testing.T) {
	// The hand is a rod of 4 cm radius at x = 0.5; under it, at z = 0.3, something is held.
	world := []solid{
		table,
		box(0.5, 0, 0.40, 0.028, 0.028, 0.05, [3]byte{90, 90, 90}), // inside the rod
		box(0.5, 0, 0.29, 0.015, 0.015, 0.015, red),
	}
	o := options(tripod(640, 480, world...))
	state := rest(epoch, 0.5)
	state.Jaw.Holding, state.Jaw.Aperture = true, 0.03
	o.State = func() robot.State { return state }
	s := fuse(t, o)
	count := map[Class]int{}
	for i, c := range s.Cloud.Class {
		count[c]++
		want := World
		switch p := s.Cloud.At(i); {
		case s.Cloud.RGB[3*i] == 90:
			want = Robot
		case p.Z > 0.27 && p.Z < 0.31:
			want = Held
		}
		if c != want {
			t.Fatalf("point %v of colour %v is class %d, want %d", s.Cloud.At(i), s.Cloud.RGB[3*i:3*i+3], c, want)
		}
	}
	if count[Robot] < 100 || count[Held] < 20 || s.Obstacles() > count[World] {
		t.Errorf("counts %v, obstacles %d", count, s.Obstacles())
	}
	if h := s.Clearance(ball(0.5, 0, 0.29, 0.05), 0.05); h.Found {
		t.Errorf("robot and held object count as obstacles: %+v", h)
	}
	// The held cube spans 3 cm; approach is down, so its middle is 1 cm ahead of the closure point.
	if mid := r3.Scale(0.5, r3.Add(s.Held.A, s.Held.B)); !s.HasHeld || r3.Norm(r3.Sub(mid, r3.Vec{X: 0.01})) > 0.012 || s.Held.R > 0.017 || s.Held.R < 0.005 {
		t.Errorf("held capsule %+v", s.Held)
	}
	state.Jaw.Holding = false
	if s := fuse(t, o); s.HasHeld || !s.Clearance(ball(0.5, 0, 0.29, 0.05), 0.05).Found {
		t.Error("an open jaw holds nothing: the object is an obstacle")
	}
}

func TestLonePointsAreNoObstacles(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	cam := tripod(640, 480, table)
	cam.noise = func(_ int, d float32) float32 { // a stereo camera: noise, holes, one wild pixel in 500
		switch rng.IntN(500) {
		case 0:
			return 0.3 + 0.4*rng.Float32()
		case 1, 2, 3, 4, 5, 6, 7, 8:
			return 0
		}
		return d + 0.001*float32(rng.NormFloat64())*d*d
	}
	s := fuse(t, options(cam))
	if h := s.Clearance(geom.Capsule{A: r3.Vec{X: 0.5, Z: 0.2}, B: r3.Vec{X: 1, Z: 0.4}, R: 0.05}, 0.05); h.Found {
		t.Errorf("noise in mid-air counts: %+v", h)
	}
	if h := s.Clearance(ball(0.5, 0, 0.05, 0.01), 0.1); math.Abs(h.Dist-0.04) > 0.005 {
		t.Errorf("the table is 4 cm away, got %+v", h)
	}
}

// TestThinThingsAreObstacles: a pole of 6 mm at 1 m is three pixels wide and must not pass for noise.
func TestThinThingsAreObstacles(t *testing.T) {
	s := fuse(t, options(tripod(640, 480, box(0.5, 0, 0.2, 0.003, 0.003, 0.2, red))))
	if h := s.Clearance(ball(0.45, 0, 0.2, 0.01), 0.1); !h.Found || math.Abs(h.Dist-0.043) > 2e-3 {
		t.Errorf("visible side of the pole is 43 mm away: got %+v", h)
	}
}

// TestNoiseHardlyMovesClearance bounds what noise does to a distance, for the margin that safety leaves for it.
func TestNoiseHardlyMovesClearance(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	cam := tripod(320, 240, table, box(0.5, 0.1, 0.04, 0.04, 0.04, 0.04, red))
	cam.noise = func(_ int, d float32) float32 { return d + 0.001*float32(rng.NormFloat64())*d*d }
	lo, hi := math.Inf(1), math.Inf(-1)
	for range 20 {
		h := fuse(t, options(cam)).Clearance(geom.Capsule{A: r3.Vec{X: 0.4, Z: 0.12}, B: r3.Vec{X: 0.6, Z: 0.12}, R: 0.04}, 0.1)
		lo, hi = min(lo, h.Dist), max(hi, h.Dist)
	}
	if hi-lo > 0.006 {
		t.Errorf("the same way is clear by %.4f to %.4f m: noise moves it by more than 6 mm", lo, hi)
	}
}

func TestSourceThatFailsIsNamed(t *testing.T) {
	good, bad := tripod(160, 120, table), tripod(160, 120, table)
	bad.info.Name, bad.err = "wrist", errors.New("cable is out")
	s := fuse(t, options(good, bad))
	if len(s.Missing) != 1 || s.Missing[0] != (Gap{"wrist", "cable is out"}) || s.Blind() {
		t.Errorf("missing %v, fused %v", s.Missing, s.Fused)
	}
	short := &sensor.Frame{Info: &good.info, Stamp: epoch, Depth: make([]float32, 5)}
	for name, o := range map[string]Options{"all fail": options(bad), "malformed": options(once{short})} {
		f, err := NewFuser(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Refresh(t.Context(), time.Time{}); err == nil || f.Scene() != nil {
			t.Errorf("%s: got %v and a scene %v", name, err, f.Scene() != nil)
		}
	}
}

// silent is a source that never delivers.
type silent struct{ info sensor.Info }

func (s *silent) Info() *sensor.Info { return &s.info }
func (s *silent) Frame(ctx context.Context, _ time.Time) (*sensor.Frame, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestSilentSourceTimesOutOnTheClock(t *testing.T) {
	clock := robottest.NewClock(t)
	cam := tripod(160, 120, table)
	cam.stamp = clock.Now().Add(2 * time.Second)
	o := options(cam, &silent{sensor.Info{Name: "wrist", Mount: sensor.Mount{Pose: geom.Identity()}}})
	o.Clock, o.SourceTimeout = clock, 2*time.Second
	o.State = func() robot.State { return rest(clock.Now(), 0) }
	s := fuse(t, o)
	if len(s.Missing) != 1 || s.Missing[0].Source != "wrist" || len(s.Fused) != 1 {
		t.Errorf("missing %v, fused %v", s.Missing, s.Fused)
	}
	o.SourceTimeout = 0
	f, err := NewFuser(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Refresh(ctx, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the caller's own cancellation", err)
	}
}

// live is a camera whose frames are stamped now.
type live struct {
	*rgbd
	clock robot.Clock
	asked chan<- time.Time // gets the time of every frame; may be nil
}

func (l live) Frame(ctx context.Context, t time.Time) (*sensor.Frame, error) {
	f, err := l.rgbd.Frame(ctx, t)
	if err == nil {
		f.Stamp = l.clock.Now()
	}
	if l.asked != nil {
		select {
		case l.asked <- f.Stamp:
		case <-ctx.Done():
		}
	}
	return f, err
}

func TestRefreshReusesWhatIsNewEnough(t *testing.T) {
	clock := robottest.NewManualClock()
	o := options(live{rgbd: tripod(80, 60, table), clock: clock})
	o.Clock = clock
	o.State = func() robot.State { return rest(clock.Now(), 0) }
	f, err := NewFuser(o)
	if err != nil {
		t.Fatal(err)
	}
	seq := func(at time.Time) uint64 {
		s, err := f.Refresh(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		return s.Seq
	}
	start := clock.Now()
	if a, b, c := seq(start), seq(start), seq(time.Time{}); a != 1 || b != 1 || c != 2 {
		t.Errorf("sequence numbers %d %d %d, want 1 1 2", a, b, c)
	}
	clock.Advance(time.Second)
	if d := seq(clock.Now()); d != 3 {
		t.Errorf("a scene from before was given: %d", d)
	}
}

func TestRunKeepsFusing(t *testing.T) {
	clock := robottest.NewClock(t)
	asked := make(chan time.Time)
	o := options(live{tripod(80, 60, table), clock, asked})
	o.Clock, o.RateHz, o.StateHz = clock, 5, 50
	o.State = func() robot.State { return rest(clock.Now(), 0) }
	f, err := NewFuser(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	first := <-asked
	for range 4 {
		<-asked
	}
	// Ticks come every 200 ms, and the clock does not pass one that was not read.
	if d := (<-asked).Sub(first); d < 900*time.Millisecond || d > 1300*time.Millisecond {
		t.Errorf("six frames at 5 Hz took %v", d)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
	if s := f.Scene(); s == nil || s.Seq < 5 || s.Seq > 6 {
		t.Errorf("six frames make five or six scenes, got %+v", s)
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	cam := tripod(80, 60, table)
	lost := tripod(80, 60, table)
	lost.info.Name, lost.info.Mount.Link = "wrist", "elbow"
	loose := tripod(80, 60, table)
	loose.info.Mount.Pose = geom.Pose{}
	for name, change := range map[string]func(*Options){
		"no source":    func(o *Options) { o.Sources = nil },
		"no clock":     func(o *Options) { o.Clock = nil },
		"rate":         func(o *Options) { o.RateHz = math.NaN() },
		"voxel":        func(o *Options) { o.Voxel = -1 },
		"bounds":       func(o *Options) { o.Bounds = r3.Box{Max: vec(1000)} },
		"unknown link": func(o *Options) { o.Sources = []sensor.Source{lost} },
		"no rotation":  func(o *Options) { o.Sources = []sensor.Source{loose} },
		"same name":    func(o *Options) { o.Sources = []sensor.Source{cam, cam} },
	} {
		o := options(cam)
		change(&o)
		if _, err := NewFuser(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A depth camera that is covered, or whose depth has failed, says nothing of what is in the way: with it alone the
// scene is blind, and the source is named.
func TestDepthWithoutReadingsIsBlind(t *testing.T) {
	nan := float32(math.NaN())
	for name, spoil := range map[string]func(i int, d float32) float32{
		"covered":  func(int, float32) float32 { return 0 },
		"NaN":      func(int, float32) float32 { return nan },
		"infinite": func(int, float32) float32 { return float32(math.Inf(1)) },
		"too near": func(int, float32) float32 { return 0.01 },
		"one stray reading": func(i int, _ float32) float32 {
			if i == 5000 {
				return 0.5
			}
			return 0
		},
	} {
		c := tripod(160, 120, table)
		if s := fuse(t, options(c)); s.Blind() {
			t.Fatalf("blind in front of a table: %+v", s.Missing)
		}
		c.noise = spoil
		s := fuse(t, options(c))
		if !s.Blind() || len(s.Missing) != 1 || s.Missing[0].Source != "third_person" || s.Cloud.Len() != 0 {
			t.Errorf("%s: blind %v, missing %+v, %d points", name, s.Blind(), s.Missing, s.Cloud.Len())
		}
	}
}
