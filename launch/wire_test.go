package launch

import (
	"context"
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"
	"viad/drivers/control"
	"viad/drivers/franka"
	"viad/drivers/robot"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/sim"
	simwire "viad/sim/wire"
)

// The driver moves the twin through the wire: planned from what it reads, judged by the twin's own truth.
func TestFrankaOnTheWire(t *testing.T) {
	tw, err := sim.NewTwin(sim.Options{Robot: "fr3", World: "tabletop", Seed: 1, Pace: sim.PaceReal, Light: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	domain, release, err := interop.Domain()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ended := make(chan error, 3)
	go func() { ended <- tw.Run(ctx) }()

	side, err := dds.Open(dds.Config{Node: "robot", Domain: domain, Localhost: true, Distro: cdr.Jazzy})
	if err != nil {
		t.Fatal(err)
	}
	defer side.Close()
	w, err := simwire.NewFranka(tw, side, "", simwire.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	go func() { ended <- w.Run(ctx) }()

	ours, err := dds.Open(dds.Config{Node: "viad", Domain: domain, Localhost: true, Distro: cdr.Jazzy})
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	d, err := franka.Open(ctx, franka.Config{Node: ours, Robot: franka.FR3})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	go func() { ended <- d.Run(ctx) }()

	kin, err := control.NewKinematics(control.FR3())
	if err != nil {
		t.Fatal(err)
	}
	for tick := time.NewTicker(50 * time.Millisecond); d.State().Mode != robot.ModeReady; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never ready: %+v; facts %+v", d.State(), d.Facts())
		}
	}
	c, err := control.New(control.Options{Body: d, Kinematics: kin, Clock: robot.WallClock{}, Settings: control.DefaultSettings()})
	if err != nil {
		t.Fatal(err)
	}
	st := d.State()
	goal := kin.Tool(st.Base, st.Q)
	goal.P.X += 0.08
	goal.P.Z -= 0.05
	p, err := c.Plan(st, robot.Waypoint{Kind: robot.KindPose, Tool: goal})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Go(ctx, p)
	if err != nil || out.Result != robot.ResultReached {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := tw.Truth().Tool; r3.Norm(r3.Sub(got.P, goal.P)) > 0.003 || math.IsNaN(got.P.X) {
		t.Errorf("the twin's tool is at %v, was sent to %v", got.P, goal.P)
	}
	p, err = c.Plan(d.State(), robot.Waypoint{Kind: robot.KindJaw, Jaw: robot.JawTarget{Open: false}})
	if err != nil {
		t.Fatal(err)
	}
	if out, err = c.Go(ctx, p); err != nil || tw.Truth().Aperture > 0.002 {
		t.Errorf("%+v, %v: the jaw is at %.4f m", out, err, tw.Truth().Aperture)
	}
}
