package field

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
	"viad/drivers/stretch"
	"viad/drivers/urdf"
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/sim"
	"viad/sim/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long anything may take that should happen.
const patience = 15 * time.Second

// rig is a driver, the twin that it moves, and what stands between them.
type rig struct {
	t    *testing.T
	d    *stretch.Robot
	twin *sim.Twin
	face *wire.Stretch
	ours ros.Node // the driver's
	gen  wire.Generation

	domain int
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// start puts a twin on the wire and a driver at its other end.
func start(t *testing.T, gen wire.Generation, f wire.StretchFaults, change ...func(*stretch.Config)) *rig {
	t.Helper()
	domain, release, err := interop.Domain()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	r := &rig{t: t, gen: gen, domain: domain}
	r.twin = must[*sim.Twin](t)(sim.NewTwin(sim.Options{Robot: "stretch4", World: "room", Seed: 1, Pace: sim.PaceReal, Light: true}))
	t.Cleanup(r.twin.Close)
	text := must[[]byte](t)(urdf.Source("stretch4_pg4"))
	r.face = must[*wire.Stretch](t)(wire.NewStretch(r.twin, r.open("stretch_driver"), gen, string(text), f))
	r.ours = r.open("viad")
	var log *slog.Logger
	if os.Getenv("VIAD_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	c := stretch.Config{Node: r.ours, Log: log, BaseUnguarded: gen == wire.GenerationB}
	for _, f := range change {
		f(&c)
	}
	r.d = must[*stretch.Robot](t)(stretch.Open(t.Context(), c))
	r.live()
	return r
}

// open joins the robot's graph.
func (r *rig) open(name string) *dds.Node {
	r.t.Helper()
	n := must[*dds.Node](r.t)(dds.Open(dds.Config{Node: name, Domain: r.domain, Localhost: true, Distro: cdr.Jazzy}))
	r.t.Cleanup(func() { _ = n.Close() })
	return n
}

// live runs twin, wire and driver until the test ends.
func (r *rig) live() {
	world, over := context.WithCancel(context.Background())
	ctx, cancel := context.WithCancel(world)
	var physics, wait sync.WaitGroup
	live := func(ctx context.Context, w *sync.WaitGroup, run func(context.Context) error) {
		w.Go(func() {
			if err := run(ctx); err != nil && !errors.Is(err, sim.ErrOver) {
				r.t.Error(err)
			}
		})
	}
	live(world, &physics, r.twin.Run)
	live(ctx, &wait, r.face.Run)
	live(ctx, &wait, r.d.Run)
	r.t.Cleanup(func() {
		_ = r.d.Close()
		cancel()
		wait.Wait()
		_ = r.face.Close()
		over()
		physics.Wait()
	})
}

// until waits for what should become true.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; {
		if ok() {
			return
		}
		if now := <-tick.C; now.After(end) {
			s := r.d.State()
			r.t.Fatalf("%s: not within %v; the robot is %v: %s; truth %+v", what, patience, s.Mode, s.Fault, r.twin.Truth().Q)
		}
	}
}

func (r *rig) ready() *rig {
	r.t.Helper()
	r.until("ready", func() bool { return r.d.State().Mode == robot.ModeReady })
	return r
}

// pass lets the twin's time, which is the wall's, pass.
func (r *rig) pass(d time.Duration) { <-r.twin.Clock().After(d) }

// says waits until the driver is in the mode with all of the words.
func (r *rig) says(m robot.Mode, words ...string) {
	r.t.Helper()
	r.until("it says "+m.String()+" "+strings.Join(words, ", "), func() bool {
		s := r.d.State()
		for _, w := range words {
			if !strings.Contains(s.Fault, w) {
				return false
			}
		}
		return s.Mode == m
	})
}

// busy is an end or a refusal that says that this computer did not get to reading in time, which is no fault of what is
// tried: the tests of a whole module run beside it.
func busy(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "no complete reading") || strings.Contains(err.Error(), "newest reading is"))
}

// refused is an error with all of the words.
func (r *rig) refused(err error, words ...string) {
	r.t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			r.t.Errorf("got %v, want words %q", err, w)
		}
	}
}

// cut is how a motion was ended: with all of the words, unless readings were late, which ends it as safely.
func (r *rig) cut(err error, words ...string) {
	r.t.Helper()
	if busy(err) {
		r.t.Log(err)
		return
	}
	r.refused(err, words...)
}

// refuses tries a plan that is refused, or ended, with all of the words.
func (r *rig) refuses(plan func() robot.Trajectory, words ...string) {
	r.t.Helper()
	var err error
	for range 4 {
		if err = r.d.Follow(r.t.Context(), plan()); !busy(err) {
			break
		}
		r.rests()
	}
	r.refused(err, words...)
}

// plan is a smooth trajectory from where the robot is, by that much: base (odometry frame), then lift, arm, yaw, pitch,
// roll.
func (r *rig) plan(d time.Duration, base geom.SE2, by ...float64) robot.Trajectory {
	s := r.d.State()
	const n = 80
	var t robot.Trajectory
	for i := range n + 1 {
		x := float64(i) / n
		pos, vel := x*x*x*(10-15*x+6*x*x), 30*x*x*(1-2*x+x*x)/d.Seconds()
		p := robot.Point{T: time.Duration(x * float64(d)), Q: append([]float64(nil), s.Q...), QD: make([]float64, len(s.Q)), Base: s.Base}
		for j, b := range by {
			p.Q[j], p.QD[j] = s.Q[j]+pos*b, vel*b
		}
		p.Base = geom.SE2{X: s.Base.X + pos*base.X, Y: s.Base.Y + pos*base.Y, Yaw: s.Base.Yaw + pos*base.Yaw}
		p.BaseV = geom.SE2{X: vel * base.X, Y: vel * base.Y, Yaw: vel * base.Yaw}
		t.Points = append(t.Points, p)
	}
	return t
}

func (r *rig) follow(t robot.Trajectory) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.d.Follow(context.Background(), t) }()
	return done
}

// ends is what a motion came to.
func (r *rig) ends(done <-chan error) error {
	r.t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		r.t.Fatal("the motion does not end")
		return nil
	}
}

// tolerances of the truth: lift, arm, yaw, pitch, roll.
func near() []float64 { return []float64{0.004, 0.004, 0.015, 0.015, 0.015} }

// at holds the twin's truth to joints and base.
func (r *rig) at(what string, q []float64, base geom.SE2) {
	r.t.Helper()
	tr := r.twin.Truth()
	for j, tol := range near() {
		if d := math.Abs(tr.Q[j] - q[j]); !(d <= tol) {
			r.t.Errorf("%s: joint %d is truly at %.4f, not at %.4f", what, j, tr.Q[j], q[j])
		}
	}
	if d := math.Hypot(tr.Base.X-base.X, tr.Base.Y-base.Y); !(d <= 0.012) || !(math.Abs(geom.WrapAngle(tr.Base.Yaw-base.Yaw)) <= 0.02) {
		r.t.Errorf("%s: the base is truly at %+v, not at %+v", what, tr.Base, base)
	}
}

// goes makes a plan and follows it to its true end.
func (r *rig) goes(plan func() robot.Trajectory) robot.Trajectory {
	r.t.Helper()
	p := plan()
	err := r.d.Follow(r.t.Context(), p)
	for n := 0; busy(err) && n < 3; n++ {
		r.t.Log(err)
		r.ready()
		r.rests()
		p = plan()
		err = r.d.Follow(r.t.Context(), p)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.arrived(p)
	return p
}

func (r *rig) arrived(t robot.Trajectory) {
	r.t.Helper()
	end := t.Points[len(t.Points)-1]
	r.at("the end", end.Q, end.Base)
}

// stays holds the twin's truth to where it is for so long.
func (r *rig) stays(d time.Duration) {
	r.t.Helper()
	a := r.twin.Truth()
	r.pass(d)
	r.at("it should stand", a.Q, a.Base)
}

// moves waits until the twin's joint j has truly moved by that much.
func (r *rig) moves(j int, by float64) {
	r.t.Helper()
	from := r.twin.Truth().Q[j]
	r.until("it moves", func() bool { return math.Abs(r.twin.Truth().Q[j]-from) > by })
}

// rests waits for true standstill, by two looks a tenth of a second apart.
func (r *rig) rests() {
	r.t.Helper()
	last, since := r.twin.Truth(), time.Now()
	r.until("it rests", func() bool {
		tr := r.twin.Truth()
		gone := math.Hypot(tr.Base.X-last.Base.X, tr.Base.Y-last.Base.Y) + math.Abs(tr.Base.Yaw-last.Base.Yaw)
		for j := range tr.Q {
			gone = math.Max(gone, math.Abs(tr.Q[j]-last.Q[j]))
		}
		if gone > 5e-4 {
			last, since = tr, time.Now()
		}
		return time.Since(since) > 150*time.Millisecond
	})
}

func (r *rig) subject() robottest.Subject {
	return robottest.Subject{
		Body: r.d, Clock: robot.WallClock{}, Model: r.d.Model(), Machine: r.twin.Body().State, Settle: 0.011,
		Sever: func() { _ = r.ours.Close() },
	}
}

func generations() []wire.Generation {
	return []wire.Generation{wire.GenerationA, wire.GenerationAPrime, wire.GenerationB}
}

// every runs f for each generation of the robot's driver.
func every(t *testing.T, f wire.StretchFaults, do func(t *testing.T, r *rig)) {
	for _, gen := range generations() {
		t.Run(string(gen), func(t *testing.T) { do(t, start(t, gen, f)) })
	}
}
