package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	simwire "viad/sim/wire"
)

func TestTwinSerialFaults(t *testing.T) {
	c := twinCommand{Robot: "stretch4", Serial: t.TempDir(), Fault: []string{"silent-servo", "old-steppers", "stalled-cameras", "unplugged-lift"}}
	f, pulled, err := c.serialFaults()
	if err != nil || f.Silent != 21 || f.Stepper != "p7" || f.Unhomed || len(pulled) != 1 || pulled[0] != simwire.PortLift {
		t.Errorf("%+v, %v, %v", f, pulled, err)
	}
	var usage usageError
	for _, c := range []twinCommand{
		{Robot: "stretch4", Serial: "/x", Fault: []string{"ignore-cancel"}}, // of its ROS face
		{Robot: "franka", Serial: "/x"},
	} {
		if _, err := c.face(); !errors.As(err, &usage) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := noRobotIn(c.Serial); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(c.Serial, simwire.PortArm), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := noRobotIn(c.Serial); err == nil || !strings.Contains(err.Error(), simwire.PortArm) {
		t.Errorf("ports of a robot are replaced: %v", err)
	}
}

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
