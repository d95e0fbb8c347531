package launch

import (
	"strings"
	"testing"

	"viad/drivers/robot"
	"viad/safety"
)

// Who starts a daemon that comes up disarmed is told so, and how to arm it; a twin that arms itself is not spoken of.
func TestBannerSaysThatItIsDisarmed(t *testing.T) {
	for arm, said := range map[string]bool{"operator": true, "auto": false} {
		c := testConfig(t, "twin-franka.yaml", func(c *Config) { c.Robot.Arm = arm })
		var b strings.Builder
		if err := c.banner(&b, c.Listen.Address, "viad_...", "/run/x.sock", certificate{}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "bin/viactl --socket /run/x.sock arm") != said {
			t.Errorf("arm: %s prints\n%s", arm, b.String())
		}
	}
}

// After a stop the execute still takes its pictures, but nothing moves, and the status says so.
func TestStatusMovesWithTheRobot(t *testing.T) {
	for _, c := range []struct{ guard, body, want bool }{{false, false, false}, {true, false, true}, {false, true, true}} {
		st := robot.State{Mode: robot.ModeReady}
		if c.body {
			st.Mode = robot.ModeMoving
		}
		if moves(safety.Status{Moving: c.guard}, st) != c.want {
			t.Errorf("%+v", c)
		}
	}
}
