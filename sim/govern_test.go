package sim

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"viad/drivers/robot"
)

// A governor is a cosine from the start posture: the joint must be there, and what is told Off must fall.
func TestGovernorDrives(t *testing.T) {
	tw := start(t, Options{Robot: "stretch4", World: "room", Seed: 1})
	type seen struct {
		lift, pitch, base float64
		aperture          float64
	}
	var last atomic.Pointer[seen]
	var began time.Time
	from := math.NaN()
	err := tw.Govern(func(r *Reading, axes []Drive, jaw *JawDrive) {
		if began.IsZero() {
			began, from = r.Now, r.Axes[3].X
		}
		s := min(r.Now.Sub(began).Seconds(), 2)
		axes[3] = Drive{X: from + 0.05*(1-math.Cos(math.Pi*s/2)), V: 0.05 * math.Pi / 2 * math.Sin(math.Pi*s/2)}
		axes[1] = Drive{X: 0.1 * s, V: 0.1}
		if s >= 2 {
			axes[1] = Drive{X: 0.2}
		}
		axes[6].Off = true
		*jaw = JawDrive{Aperture: 0.03, Speed: 0.05}
		last.Store(&seen{lift: r.Axes[3].X - from, pitch: r.Axes[6].X, base: r.Axes[1].X, aperture: r.Aperture})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Follow(context.Background(), reach(tw.State(), []float64{0.1}, tw.State().Base, time.Second)); !errors.Is(err, ErrGoverned) {
		t.Errorf("Follow while governed: %v", err)
	}
	<-tw.Clock().After(3 * time.Second)
	got := last.Load()
	if math.Abs(got.lift-0.1) > 0.002 || math.Abs(got.base-0.2) > 0.005 || math.Abs(got.aperture-0.03) > 0.002 {
		t.Errorf("lift moved %.4f (0.1), base %.4f (0.2), aperture %.4f (0.03)", got.lift, got.base, got.aperture)
	}
	if got.pitch < 0.3 {
		t.Errorf("a wrist pitch without torque stands at %.3f rad: the tool should have dropped", got.pitch)
	}
	if err := tw.Govern(nil); err != nil {
		t.Fatal(err)
	}
	if err := tw.Halt(context.Background(), robot.RungZeroVelocity); err != nil {
		t.Fatal(err)
	}
	<-tw.Clock().After(time.Second)
	for i, v := range tw.State().QD {
		if math.Abs(v) > 0.01 {
			t.Errorf("joint %d still moves at %.3f after the governor left", i, v)
		}
	}
}
