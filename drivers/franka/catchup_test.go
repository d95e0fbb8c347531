package franka

import (
	"testing"
	"testing/synctest"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/sensor_msgs"
)

// Readings that a network or a stopped process had kept come all at once, and look new: an arm is not held at them.
func TestOldReadingsInABurst(t *testing.T) { synctest.Test(t, oldReadings) }

func oldReadings(t *testing.T) {
	c := Config{Robot: FR3, Prefix: "fr3"}
	r := &Robot{clock: robot.WallClock{}, names: c.names()}
	read := func(q float64) {
		m := &sensor_msgs.JointState{Name: r.names.joints, Position: make([]float64, 7), Velocity: make([]float64, 7)}
		m.Position[0] = q
		r.onMeasured(m, ros.Info{Received: time.Now()})
	}
	steady := func(q float64) {
		for range 30 {
			read(q)
			<-time.After(10 * time.Millisecond)
		}
	}
	steady(0.1)
	if !r.caughtUp() {
		t.Error("steady readings are not believed")
	}
	<-time.After(3 * time.Second)
	for i := range 100 { // what came meanwhile
		if read(0.1 + 0.001*float64(i)); r.caughtUp() {
			t.Fatalf("reading %d of a burst is believed", i)
		}
	}
	if steady(0.2); !r.caughtUp() {
		t.Error("readings after it are not believed")
	}
}
