package franka

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// domain is a DDS domain that no other test on this machine has.
func domain(t *testing.T) int {
	t.Helper()
	d, release, err := interop.Domain()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return d
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
}

type option func(*Config, *double)

func start(t *testing.T, options ...option) *bench {
	t.Helper()
	b := begin(t, options...)
	b.ready()
	return b
}

// begin is start without waiting for the robot.
func begin(t *testing.T, options ...option) *bench {
	t.Helper()
	d := domain(t)
	return beginOn(t, node(t, "franka_double", d), node(t, "viad_franka", d), FR3, options...)
}

func beginOn(t *testing.T, there, here ros.Node, kind Kind, options ...option) *bench {
	t.Helper()
	c := Config{Robot: kind, Node: here, Log: logger(t)}
	d := newDouble(t, there, kind, func(d *double) {
		for _, o := range options {
			o(&c, d)
		}
	})
	r := must[*Robot](t)(Open(t.Context(), c))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = r.Close() // its node may be closed by the test
	})
	return &bench{Robot: r, t: t, d: d, n: c.Node}
}

// eventually waits until ok, on the driver's clock.
func (b *bench) eventually(what string, ok func() bool) {
	b.t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		<-b.clock.After(10 * time.Millisecond)
	}
	b.t.Fatalf("waited in vain until %s; state %v %q, facts %v", what, b.State().Mode, b.State().Fault, b.Facts())
}

func (b *bench) ready() {
	b.t.Helper()
	b.eventually("it is ready", func() bool { s := b.State(); return s.Mode == robot.ModeReady && s.Complete(b.model) })
}

// says waits for a fault whose words have all of these.
func (b *bench) says(m robot.Mode, words ...string) {
	b.t.Helper()
	b.eventually(m.String()+" with "+strings.Join(words, ", "), func() bool {
		s := b.State()
		for _, w := range words {
			if !strings.Contains(s.Fault, w) {
				return false
			}
		}
		return s.Mode == m
	})
}

// swing is a smooth trajectory of all joints by step rad in d, from where the arm is.
func (b *bench) swing(step float64, d time.Duration) robot.Trajectory {
	const n = 60
	s := b.State()
	var t robot.Trajectory
	for i := range n + 1 {
		x := float64(i) / n
		p := robot.Point{T: time.Duration(x * float64(d)), Q: make([]float64, 7), QD: make([]float64, 7)}
		for j := range s.Q {
			p.Q[j] = s.Q[j] + step*x*x*x*(10-15*x+6*x*x)
			p.QD[j] = step * 30 * x * x * (1 - 2*x + x*x) / d.Seconds()
		}
		t.Points = append(t.Points, p)
	}
	return t
}

func (b *bench) follow(t robot.Trajectory) <-chan error {
	done := make(chan error, 1)
	go func() { done <- b.Follow(context.Background(), t) }()
	return done
}

func (b *bench) moves() {
	b.t.Helper()
	b.eventually("it moves", func() bool { return fastest(b.State().QD) > 0.02 })
}

func (b *bench) refused(err error, words ...string) {
	b.t.Helper()
	if err == nil {
		b.t.Fatalf("no error, want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			b.t.Errorf("the error %q does not say %q", err, w)
		}
	}
}

func TestFollow(t *testing.T) {
	b := start(t)
	tr := b.swing(0.5, 3*time.Second)
	if err := b.Follow(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	goal := tr.Points[len(tr.Points)-1].Q
	if _, off := b.furthest(b.d.truth().Q, goal); off > 0.002 {
		t.Errorf("the arm is %v from its goal", off)
	}
	goals, a := get(b.d, func(d *double) int { return d.goals }), get(b.d, func(d *double) float64 { return d.aMost })
	// The trajectory's own acceleration is 5.77 * 0.5 / 9 = 0.32 rad/s^2.
	if goals < 10 || a > 2.5 {
		t.Errorf("%d goals, accelerations up to %.2f rad/s^2, want many and below 2.5", goals, a)
	}
	t.Logf("%d goals, acceleration %.2f", goals, a)
}

func TestSuite(t *testing.T) {
	robottest.CheckBody(t, func(t *testing.T) robottest.Subject {
		b := start(t)
		return robottest.Subject{
			Body: b, Clock: b.clock, Model: b.Model(), Machine: b.d.truth,
			Sever: func() { _ = b.n.Close() },
		}
	}, nil)
}
