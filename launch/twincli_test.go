package launch

import (
	"errors"
	"testing"

	simwire "viad/sim/wire"
)

// Each robot has its own faults, and a name of another's is refused.
func TestTwinFaultNames(t *testing.T) {
	c := twinCommand{Robot: "stretch4", Generation: "B", Fault: []string{"frozen-joints", "other-holder", "compliant-gripper", "teleop"}}
	f, err := c.stretchFaults()
	if want := (simwire.StretchFaults{FrozenJoints: true, Holder: "somebody_else", Tool: "eoa_wrist_dw4_tool_sg4", Mode: "teleop"}); err != nil || f != want {
		t.Errorf("%+v, %v", f, err)
	}
	for robot, wrong := range map[string]string{"stretch4": "nan-joint", "franka": "frozen-joints"} {
		c := twinCommand{Robot: robot, Fault: []string{wrong}}
		var usage usageError
		if _, err := c.face(); !errors.As(err, &usage) {
			t.Errorf("%s takes %s: %v", robot, wrong, err)
		}
	}
}
