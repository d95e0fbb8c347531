package field

import (
	"testing"

	"viad/drivers/robot/robottest"
	"viad/sim/wire"
)

// TestStretchBody is the suite of every body, for each generation of the robot's driver.
func TestStretchBody(t *testing.T) {
	if testing.Short() {
		t.Skip("three minutes: three generations in the wall's time; the driver's own double runs the suite")
	}
	for _, gen := range generations() {
		t.Run(string(gen), func(t *testing.T) {
			robottest.CheckBody(t, func(t *testing.T) robottest.Subject {
				return start(t, gen, wire.StretchFaults{}).ready().subject()
			}, nil)
		})
	}
}
