package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/sim/mj"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Println(err)
			code = 1
		}
		if _, err := os.Stat("MUJOCO_LOG.TXT"); err == nil {
			fmt.Println("MuJoCo wrote MUJOCO_LOG.TXT into the working directory")
			code = 1
		}
	}
	os.Exit(code)
}

// start runs a twin for the length of a test.
func start(t testing.TB, o Options) *Twin {
	t.Helper()
	o.Light = true
	tw, err := NewTwin(o)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := tw.Run(context.Background()); err != nil && !errors.Is(err, ErrOver) {
			t.Error(err)
		}
	}()
	t.Cleanup(tw.Close)
	return tw
}

// reach is a smooth trajectory from the measured state by dq and a base motion, in the given time.
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

// moveTool follows a straight way of the tool to goal (odometry frame) found by damped least squares on
// MuJoCo's own Jacobian, and returns Follow's error.
func moveTool(t testing.TB, tw *Twin, goal geom.Pose, d time.Duration) error {
	t.Helper()
	tw.mu.Lock()
	ik, err := attach(&tw.mach, tw.p.meta, tw.p.shape.retain())
	if err == nil {
		err = tw.p.d.CopyTo(ik.d)
	}
	tw.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	defer ik.close()
	if err := ik.d.Forward(); err != nil {
		t.Fatal(err)
	}
	s := tw.State()
	first := len(ik.axes) - len(s.Q)
	from := ik.odom.Mul(ik.toolPose())
	const n = 60
	var knots [][]float64
	q := append([]float64(nil), s.Q...)
	for k := range n + 1 {
		u := float64(k) / n
		solve(t, ik, ik.odom.Inv().Mul(from.Lerp(goal, u*u*u*(10-15*u+6*u*u))), first, q)
		knots = append(knots, append([]float64(nil), q...))
	}
	tr := robot.Trajectory{}
	dt := d.Seconds() / n
	for k := range n + 1 {
		p := robot.Point{T: time.Duration(float64(k) / n * float64(d)), Q: knots[k], QD: make([]float64, len(q)), Base: s.Base}
		if k > 0 && k < n {
			for i := range q {
				p.QD[i] = (knots[k+1][i] - knots[k-1][i]) / (2 * dt)
			}
		}
		tr.Points = append(tr.Points, p)
	}
	return tw.Follow(t.Context(), tr)
}

// solve brings the tool of ik to goal (world) from q, in place.
func solve(t testing.TB, ik *plant, goal geom.Pose, first int, q []float64) {
	t.Helper()
	nv := ik.m.NV()
	jp, jr := make([]float64, 3*nv), make([]float64, 3*nv)
	for range 60 {
		for i, x := range q {
			ik.axes[first+i].place(ik.d.Qpos(), x)
		}
		if err := ik.d.Forward(); err != nil {
			t.Fatal(err)
		}
		at := ik.toolPose()
		e := r3.Sub(goal.P, at.P)
		w := at.Dir(geom.RotVec(at.Inv().Mul(goal).R))
		if r3.Norm(e) < 1e-5 && r3.Norm(w) < 1e-5 {
			return
		}
		if err := ik.d.JacSite(ik.tool, jp, jr); err != nil {
			t.Fatal(err)
		}
		jac := mat.NewDense(6, len(q), nil)
		for i := range q {
			for r := range 3 {
				a := &ik.axes[first+i]
				for k, dof := range a.dof {
					jac.Set(r, i, jac.At(r, i)+a.coef[k]*jp[r*nv+dof])
					jac.Set(r+3, i, jac.At(r+3, i)+a.coef[k]*jr[r*nv+dof])
				}
			}
		}
		var a, x mat.Dense
		a.Mul(jac, jac.T())
		for r := range 6 {
			a.Set(r, r, a.At(r, r)+1e-5)
		}
		if err := x.Solve(&a, mat.NewDense(6, 1, []float64{e.X, e.Y, e.Z, w.X, w.Y, w.Z})); err != nil {
			t.Fatal(err)
		}
		var dq mat.Dense
		dq.Mul(jac.T(), &x)
		for i := range q {
			q[i] += clamp(dq.At(i, 0), 0.2)
		}
	}
	t.Fatalf("no joint values for tool pose %+v", goal)
}

// linkPose is a body's pose in the odometry frame.
func linkPose(tw *Twin, name string) geom.Pose {
	if name == "" {
		return geom.Identity()
	}
	tw.mu.Lock()
	defer tw.mu.Unlock()
	return tw.p.odom.Mul(tw.p.bodyPose(tw.p.m.ID(mj.Body, name)))
}

// down is a tool pose that approaches straight down at p, its opening line turned by yaw.
func down(p r3.Vec, yaw float64) geom.Pose {
	s, c := math.Sincos(yaw)
	return geom.Pose{P: p, R: geom.FromAxes(r3.Vec{Z: -1}, r3.Vec{X: -s, Y: c})}
}

func after(t testing.TB, tw *Twin, d time.Duration) {
	t.Helper()
	select {
	case <-tw.Clock().After(d):
	case <-t.Context().Done():
		t.Fatal("the twin's clock stands still")
	}
}
