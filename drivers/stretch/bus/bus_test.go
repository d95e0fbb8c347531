package bus

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
)

// patience is for a rig that shares this machine with whatever else is tested.
const patience = 500 * time.Millisecond

// started is a driver that lives with a rig.
func started(t *testing.T, rig *rig, c Config) *Robot {
	t.Helper()
	c.Dir, c.Patience = rig.dir, patience
	if testing.Verbose() {
		c.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	r, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.Run(context.Background()) }()
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

func ready(t *testing.T, r *Robot) {
	t.Helper()
	if !r.until(t.Context(), 10*time.Second, func() bool { return r.State().Mode == robot.ModeReady }) {
		s := r.State()
		t.Fatalf("the robot is not ready: %s: %s", s.Mode, s.Fault)
	}
}

// machine is what somebody beside the rig measures.
func (r *rig) machine() robot.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := robot.State{Received: time.Now(), HasBase: true, Jaw: robot.Jaw{Known: true, Aperture: r.servos[24].opening(r.servos[24].pos)}}
	tick := 2 * math.Pi / 4096 / 2
	joint := func(id byte, sign float64, zero int) (q, v float64) {
		x := r.servos[id]
		return sign * (x.pos - float64(x.signed(52)) - float64(zero)) * tick, sign * x.vel * tick
	}
	yaw, yawV := joint(20, -1, -1478)
	pitch, pitchV := joint(21, -1, -1478)
	roll, rollV := joint(22, -1, 1478)
	m := r.motors
	s.Q = []float64{m[0].pos * 0.0175070437, m[1].pos * 0.0097449715, yaw, pitch, roll}
	s.QD = []float64{m[0].vel * 0.0175070437, m[1].vel * 0.0097449715, yawV, pitchV, rollV}
	// A wheel's speed along the floor, and that of the base as the mean of them.
	var x, y, w float64
	for i, a := range []float64{30, 150, 270} {
		u := m[2+i].vel / 6 * 0.1
		x += math.Sin(a*math.Pi/180) * u * 2 / 3
		y -= math.Cos(a*math.Pi/180) * u * 2 / 3
		w -= u / 3 / 0.174
	}
	s.BaseV = geom.SE2{X: x, Y: y, Yaw: w}
	return s
}

func TestBody(t *testing.T) {
	t.Parallel()
	robottest.CheckBody(t, func(t *testing.T) robottest.Subject {
		rig := newRig(t)
		r := started(t, rig, Config{Tool: "pg4"})
		ready(t, r)
		return robottest.Subject{
			Body: r, Clock: robot.WallClock{}, Model: r.Model(),
			Sever:   func() { rig.change(func() { rig.severed = true }) },
			Machine: rig.machine,
		}
	}, nil)
}
