package sim

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a twin for the length of a test.
func start(t testing.TB, o Options) *Twin {
	t.Helper()
	tw, err := NewTwin(o)
	if err != nil {
		t.Fatal(err)
	}
	go tw.Run(context.Background())
	t.Cleanup(tw.Close)
	return tw
}

// reach is a trajectory from the measured state by dq (and a base motion), smooth, in the given time.
func reach(s robot.State, dq []float64, base geom.SE2, d time.Duration) robot.Trajectory {
	const n = 40
	var tr robot.Trajectory
	for k := range n + 1 {
		u := float64(k) / n
		w, wd := u*u*u*(10-15*u+6*u*u), 30*u*u*(1-u)*(1-u)/d.Seconds()
		p := robot.Point{T: time.Duration(u * float64(d))}
		for i, q := range s.Q {
			x := 0.0
			if i < len(dq) {
				x = dq[i]
			}
			p.Q, p.QD = append(p.Q, q+w*x), append(p.QD, wd*x)
		}
		p.Base = geom.SE2{X: s.Base.X + w*base.X, Y: s.Base.Y + w*base.Y, Yaw: s.Base.Yaw + w*base.Yaw}
		p.BaseV = geom.SE2{X: wd * base.X, Y: wd * base.Y, Yaw: wd * base.Yaw}
		tr.Points = append(tr.Points, p)
	}
	return tr
}

func TestThinLine(t *testing.T) {
	for _, o := range []Options{{Robot: "fr3", World: "tabletop"}, {Robot: "panda", World: "tabletop"}, {Robot: "stretch4", World: "room"}} {
		t.Run(o.Robot, func(t *testing.T) {
			tw := start(t, o)
			s := tw.State()
			if m := tw.Model(); !s.Complete(&m) {
				t.Fatalf("incomplete state %+v", s)
			}
			t.Logf("%+v", s)
			dq := []float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}
			base := geom.SE2{}
			if tw.Model().Mobile {
				base = geom.SE2{X: 0.1, Y: 0.1, Yaw: 0.3}
			}
			w := time.Now()
			if err := tw.Follow(t.Context(), reach(s, dq, base, 2*time.Second)); err != nil {
				t.Fatal(err)
			}
			e := tw.State()
			t.Logf("2 s in %v", time.Since(w))
			for i := range e.Q {
				t.Logf("joint %d error %.6f speed %.5f", i, e.Q[i]-s.Q[i]-dq[i], e.QD[i])
			}
			t.Logf("base %+v contact %v mode %v", e.Base, e.Contact, e.Mode)
			for _, src := range tw.Sources() {
				w = time.Now()
				f, err := src.Frame(t.Context(), time.Time{})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %v, %d rgb %d depth %d points", src.Info().Name, time.Since(w), len(f.RGB), len(f.Depth), len(f.Points)/3)
			}
		})
	}
}
