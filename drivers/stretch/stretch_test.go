package stretch

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// domain is a DDS domain that no other test on this machine uses now.
func domain(t *testing.T) int {
	t.Helper()
	for d := 139; d >= 130; d-- {
		f, err := os.OpenFile(fmt.Sprintf("%s/viad-dds-domain-%d", os.TempDir(), d), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			t.Cleanup(func() { _ = f.Close() })
			return d
		}
		_ = f.Close()
	}
	t.Fatal("no DDS domain is free")
	return 0
}

func logger(t *testing.T) *slog.Logger {
	if os.Getenv("VIAD_VERBOSE") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func node(t *testing.T, name string, domain int) ros.Node {
	t.Helper()
	n, err := dds.Open(dds.Config{Node: name, Domain: domain, Localhost: true, Distro: cdr.Jazzy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() }) // a test may have closed it
	return n
}

// bench is a driver and a double on one wire.
type bench struct {
	*Robot
	t *testing.T
	d *double
	n ros.Node // the driver's

	domain int
}

type option func(*Config, *double)

func with(f func(*double)) option { return func(_ *Config, d *double) { f(d) } }

func begin(t *testing.T, gen Generation, options ...option) *bench {
	t.Helper()
	on := domain(t)
	c := Config{Log: logger(t), BaseUnguarded: true}
	d := newDouble(t, node(t, "stretch_driver", on), gen, func(d *double) {
		for _, o := range options {
			o(&c, d)
		}
	})
	b := &bench{t: t, d: d, n: node(t, "viad_stretch", on), domain: on}
	c.Node = b.n
	b.Robot = must[*Robot](t)(Open(context.Background(), c))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = b.Close()
	})
	return b
}

func start(t *testing.T, gen Generation, options ...option) *bench {
	t.Helper()
	b := begin(t, gen, options...)
	b.wait("ready", func(s robot.State) bool { return s.Mode == robot.ModeReady && s.Complete(b.Model()) })
	return b
}

const patience = 15 * time.Second

// wait waits for a state.
func (b *bench) wait(what string, ok func(robot.State) bool) {
	b.t.Helper()
	if !b.until(context.Background(), patience, func() bool { return ok(b.State()) }) {
		s := b.State()
		b.t.Fatalf("not %s: %v %q q %v base %v jaw %+v; facts %+v", what, s.Mode, s.Fault, s.Q, s.HasBase, s.Jaw, b.Facts())
	}
}

// blocked waits until motion is barred with these words.
func (b *bench) blocked(words string) {
	b.t.Helper()
	b.wait("barred with "+words, func(s robot.State) bool {
		return s.Mode != robot.ModeReady && strings.Contains(s.Fault, words)
	})
	if err := b.Follow(context.Background(), b.plan(time.Second, geom.SE2{}, 0.02)); err == nil {
		b.t.Error("it followed all the same")
	}
}

// plan is a smooth trajectory of so long from where the robot is, by base (in its frame at the start) and by joints.
func (b *bench) plan(long time.Duration, base geom.SE2, by ...float64) robot.Trajectory {
	s := b.State()
	if s.Q == nil {
		s.Q = make([]float64, 5)
	}
	const n = 60
	var t robot.Trajectory
	w := s.Base.Mul(base)
	for i := range n + 1 {
		x := float64(i) / n
		pos, vel := x*x*x*(10-15*x+6*x*x), 30*x*x*(1-2*x+x*x)/long.Seconds()
		p := robot.Point{T: time.Duration(x * float64(long)), Q: make([]float64, 5), QD: make([]float64, 5)}
		for j := range 5 {
			d := 0.0
			if j < len(by) {
				d = by[j]
			}
			p.Q[j], p.QD[j] = s.Q[j]+pos*d, vel*d
		}
		p.Base = geom.SE2{X: s.Base.X + pos*(w.X-s.Base.X), Y: s.Base.Y + pos*(w.Y-s.Base.Y), Yaw: s.Base.Yaw + pos*base.Yaw}
		p.BaseV = geom.SE2{X: vel * (w.X - s.Base.X), Y: vel * (w.Y - s.Base.Y), Yaw: vel * base.Yaw}
		t.Points = append(t.Points, p)
	}
	return t
}

// arrived compares the double, and not its readings, with the plan's end.
func (b *bench) arrived(t robot.Trajectory) {
	b.t.Helper()
	end := t.Points[len(t.Points)-1]
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	for i, tol := range []float64{0.002, 0.002, 0.006, 0.006, 0.006} {
		if d := math.Abs(b.d.j[i].q - end.Q[i]); d > tol {
			b.t.Errorf("joint %d is %.4f from its end", i, d)
		}
	}
	if d := math.Hypot(b.d.base[0]-end.Base.X, b.d.base[1]-end.Base.Y); d > 0.003 {
		b.t.Errorf("the base is %.4f m from its end", d)
	}
	if d := math.Abs(b.d.base[2] - end.Base.Yaw); d > 0.005 {
		b.t.Errorf("the base is %.4f rad from its end", d)
	}
}

func generations(t *testing.T, f func(t *testing.T, g Generation)) {
	for _, g := range []Generation{GenA, GenAPrime, GenB} {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			f(t, g)
		})
	}
}

func TestFollowWhole(t *testing.T) {
	t.Parallel()
	generations(t, func(t *testing.T, g Generation) {
		b := start(t, g)
		if k := b.known.generation; k != g {
			t.Fatalf("recognised as %v", k)
		}
		p := b.plan(4*time.Second, geom.SE2{X: 0.3, Y: 0.2, Yaw: 0.4}, 0.25, 0.2, 0.5, 0.3, -0.4)
		began := time.Now()
		if err := b.Follow(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		t.Logf("took %v of %v, %d goals", time.Since(began), p.Duration(), len(b.d.goals))
		b.arrived(p)
	})
}

func TestBody(t *testing.T) {
	t.Parallel()
	generations(t, func(t *testing.T, g Generation) {
		if g == GenAPrime && os.Getenv("VIAD_LONG") == "" {
			t.Skip("it differs from A in the telescope's units alone: set VIAD_LONG")
		}
		robottest.CheckBody(t, func(t *testing.T) robottest.Subject {
			b := start(t, g)
			return robottest.Subject{
				Body: b, Clock: robot.WallClock{}, Model: b.Model(),
				Sever: func() { _ = b.n.Close() }, Machine: b.machine,
			}
		}, nil)
	})
}

// machine is the double's own truth.
func (b *bench) machine() robot.State {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	s := robot.State{
		HasBase: true, Base: geom.SE2{X: b.d.base[0], Y: b.d.base[1], Yaw: b.d.base[2]},
		BaseV: geom.SE2{X: b.d.baseV[0], Y: b.d.baseV[1], Yaw: b.d.baseV[2]},
	}
	for _, a := range b.d.j {
		s.Q, s.QD = append(s.Q, a.q), append(s.QD, a.v)
	}
	return s
}

// A server that takes no goal while one runs is followed goal by goal.
func TestOneGoalAtATime(t *testing.T) {
	t.Parallel()
	b := start(t, GenA, with(func(d *double) { d.f.oneAtATime = true }))
	p := b.plan(4*time.Second, geom.SE2{}, 0.1, 0.05, 0.3)
	if err := b.Follow(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	b.arrived(p)
}
