package perception

import (
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/sensor"
)

// A camera that sees the hand says whether the hand went where the joints say.
func TestWitness(t *testing.T) {
	kin := newSlider()
	hand := func(q float64) solid { return box(q, 0, 0.40, 0.035, 0.035, 0.08, [3]byte{240, 240, 240}) }
	at := func(q float64, second int, mount sensor.Mount, colour bool) *Scene {
		c := tripod(160, 120, table, hand(q))
		c.stamp = epoch.Add(time.Duration(second) * time.Second)
		c.info.HasColor = colour
		c.noise = func(i int, d float32) float32 { return d + 0.002*float32(i%3-1) }
		c.info.Mount = mount
		o := options(c)
		o.State, o.Clock = func() robot.State { return rest(c.stamp, q) }, &still{now: c.stamp}
		s := fuse(t, o)
		if !colour {
			s.Cameras[0].Frame.RGB = nil
		}
		return s
	}
	for _, c := range []struct {
		name          string
		claim, really float64 // where the hand is said to go, from 0.4, and where it goes
		carried       bool    // the camera is said to ride on the hand
		missed, due   bool
	}{
		{"it went", 0.5, 0.5, false, false, true},
		{"it stayed", 0.5, 0.4, false, true, true},
		{"it went elsewhere", 0.5, 0.3, false, false, true},
		{"too little to see", 0.401, 0.4, false, false, false},
		{"out of the picture", 2.5, 0.4, false, false, false},
		{"the camera should have moved", 0.5, 0.4, true, true, true},
	} {
		for _, colour := range []bool{true, false} {
			mount := tripod(160, 120).info.Mount
			before := at(0.4, 0, mount, colour)
			after := at(c.really, 1, mount, colour)
			if c.carried {
				after.Cameras[0].Pose.P = r3.Add(after.Cameras[0].Pose.P, r3.Vec{X: 0.1})
			}
			s := Witness(before, after, kin.Capsules(geom.SE2{}, []float64{0.4}, 0), kin.Capsules(geom.SE2{}, []float64{c.claim}, 0))
			if len(s) != 1 || s[0].Missed() != c.missed || (s[0].Due > 0) != c.due {
				t.Errorf("%s (colour %v): %+v, want missed %v, due %v", c.name, colour, s, c.missed, c.due)
			}
		}
	}
	same := at(0.4, 0, tripod(160, 120).info.Mount, true)
	if s := Witness(same, same, nil, nil); len(s) != 0 {
		t.Errorf("a picture is no witness of itself: %+v", s)
	}
}
