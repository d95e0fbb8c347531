package sim

import (
	"context"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/control"
	"viad/drivers/geom"
	"viad/drivers/robot"
)

// A machine with motors, gears and encoders is not taken for a driver that echoes its commands, and what is said of how
// it followed is true: its tool never was far from the plan's.
func TestTwinIsNoEcho(t *testing.T) {
	for _, c := range []struct {
		o Options
		d control.Description
		w func(robot.State, geom.Pose) robot.Waypoint
	}{
		{Options{Robot: "fr3", World: "tabletop", Seed: 1}, control.FR3(), func(_ robot.State, at geom.Pose) robot.Waypoint {
			at.P = r3.Add(at.P, r3.Vec{Y: 0.1, Z: 0.05})
			return robot.Waypoint{Kind: robot.KindPose, Tool: at}
		}},
		{Options{Robot: "stretch4", World: "room", Seed: 3}, control.Stretch4(), func(s robot.State, _ geom.Pose) robot.Waypoint {
			return robot.Waypoint{Kind: robot.KindBase, Base: s.Base.Mul(geom.SE2{Yaw: 0.3})}
		}},
		{Options{Robot: "stretch4", World: "room", Seed: 3}, control.Stretch4(), func(s robot.State, _ geom.Pose) robot.Waypoint {
			return robot.Waypoint{Kind: robot.KindBase, Base: s.Base.Mul(geom.SE2{X: -0.2})}
		}},
		{Options{Robot: "stretch4", World: "room", Seed: 3}, control.Stretch4(), func(_ robot.State, at geom.Pose) robot.Waypoint {
			at.P.Z += 0.2 // the lift alone
			return robot.Waypoint{Kind: robot.KindPose, Tool: at}
		}},
	} {
		t.Run(c.o.Robot, func(t *testing.T) {
			tw := start(t, c.o)
			kin, err := control.NewKinematics(c.d)
			if err != nil {
				t.Fatal(err)
			}
			ctrl, err := control.New(control.Options{Body: tw.Body(), Kinematics: kin, Clock: tw.Clock(), Settings: control.DefaultSettings()})
			if err != nil {
				t.Fatal(err)
			}
			<-tw.Clock().After(500 * time.Millisecond)
			s := ctrl.State()
			p, err := ctrl.Plan(s, c.w(s, kin.Tool(s.Base, s.Q)))
			if err != nil {
				t.Fatal(err)
			}
			o, err := ctrl.Go(context.Background(), p)
			if err != nil {
				t.Fatal(err)
			}
			f := o.Followed
			t.Logf("%v: %+v", o.Result, f)
			if o.Result != robot.ResultReached || f.Echo() || f.Readings < 20 || f.Exact > 1 || !(f.Apart > 0 && f.Apart < 0.05) {
				t.Errorf("%v, %+v: %s", o.Result, f, o.Why)
			}
		})
	}
}
