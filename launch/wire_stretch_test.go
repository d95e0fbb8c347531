package launch

import (
	"context"
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/control"
	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/stretch"
	"viad/drivers/urdf"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/sim"
	simwire "viad/sim/wire"
)

// The driver moves lift, arm, wrist, base and gripper of the twin through each generation of the robot's own driver.
func TestStretchOnTheWire(t *testing.T) {
	for _, gen := range []simwire.Generation{simwire.GenerationA, simwire.GenerationAPrime, simwire.GenerationB} {
		t.Run(string(gen), func(t *testing.T) { stretchOnTheWire(t, gen) })
	}
}

func stretchOnTheWire(t *testing.T, gen simwire.Generation) {
	domain, release, err := interop.Domain()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	tw, err := sim.NewTwin(sim.Options{Robot: "stretch4", World: "room", Seed: 1, Pace: sim.PaceReal, Light: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	open := func(name string) *dds.Node {
		n, err := dds.Open(dds.Config{Node: name, Domain: domain, Localhost: true, Distro: cdr.Jazzy})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		return n
	}
	text, err := urdf.Source("stretch4_pg4")
	if err != nil {
		t.Fatal(err)
	}
	w, err := simwire.NewStretch(tw, open("stretch_driver"), gen, string(text), simwire.StretchFaults{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d, err := stretch.Open(ctx, stretch.Config{Node: open("viad"), BaseUnguarded: gen == simwire.GenerationB})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, run := range []func(context.Context) error{tw.Run, w.Run, d.Run} {
		go func() { _ = run(ctx) }()
	}
	for tick := time.NewTicker(50 * time.Millisecond); d.State().Mode != robot.ModeReady; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never ready: %+v; facts %+v", d.State(), d.Facts())
		}
	}
	kin, err := control.NewKinematics(control.Stretch4())
	if err != nil {
		t.Fatal(err)
	}
	c, err := control.New(control.Options{Body: d, Kinematics: kin, Clock: robot.WallClock{}, Settings: control.DefaultSettings()})
	if err != nil {
		t.Fatal(err)
	}
	st := d.State()
	goal := kin.Tool(st.Base, st.Q)
	goal.P = r3.Add(goal.P, r3.Vec{X: 0.05, Y: 0.04, Z: -0.06})
	for _, wp := range []robot.Waypoint{
		{Kind: robot.KindPose, Tool: goal},
		{Kind: robot.KindBase, Base: geom.SE2{X: 0.2, Y: 0.1, Yaw: 0.3}},
		{Kind: robot.KindJaw, Jaw: robot.JawTarget{Open: false}},
	} {
		p, err := c.Plan(d.State(), wp)
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Go(ctx, p)
		if err != nil || wp.Kind != robot.KindJaw && out.Result != robot.ResultReached {
			t.Fatalf("%v: %+v, %v", wp.Kind, out, err)
		}
		tr := tw.Truth()
		switch wp.Kind {
		case robot.KindPose:
			if off := r3.Norm(r3.Sub(tr.Tool.P, goal.P)); off > 0.008 {
				t.Errorf("the tool is %.1f mm beside its goal", 1e3*off)
			}
		case robot.KindBase:
			if math.Hypot(tr.Base.X-0.2, tr.Base.Y-0.1) > 0.02 || math.Abs(tr.Base.Yaw-0.3) > 0.03 {
				t.Errorf("the base is at %+v", tr.Base)
			}
		default:
			if tr.Aperture > 0.003 {
				t.Errorf("the jaw is at %.4f m", tr.Aperture)
			}
		}
	}
}
