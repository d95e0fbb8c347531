package launch

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	simwire "viad/sim/wire"
)

// The faults of every robot's cameras.
const (
	faultFrozenCameras  = "frozen-cameras"
	faultStalledCameras = "stalled-cameras"
)

func cameraFaults() []string { return []string{faultFrozenCameras, faultStalledCameras} }

// switchCameras turns a fault of the cameras on or off; false says that it is none of theirs.
func switchCameras(eyes *simwire.Sensors, name string, on bool) bool {
	switch name {
	case faultFrozenCameras:
		eyes.Freeze(on)
	case faultStalledCameras:
		eyes.Stall(on)
	default:
		return false
	}
	return true
}

// stretchSwitch is a fault of a Stretch 4 by name.
type stretchSwitch struct {
	name  string
	start bool // can only be had from the start
	set   func(on bool)
}

func stretchSwitches(f *simwire.StretchFaults) []stretchSwitch {
	flag := func(name string, b *bool) stretchSwitch { return stretchSwitch{name, false, func(on bool) { *b = on }} }
	text := func(name string, s *string, bad string, start bool) stretchSwitch {
		return stretchSwitch{name, start, func(on bool) { *s = map[bool]string{true: bad}[on] }}
	}
	return []stretchSwitch{
		flag("ignore-cancel", &f.IgnoreCancel), flag("success-after-runstop", &f.SuccessAfterRunstop), flag("position-only", &f.PositionOnly),
		flag("four-stages", &f.FourStages), flag("stop-answers", &f.StopAnswers), flag("frozen-joints", &f.FrozenJoints),
		flag("silent-joints", &f.SilentJoints), flag("quiet-tasks", &f.QuietTasks), flag("dead-services", &f.DeadServices),
		flag("forever", &f.Forever),
		{"unhomed", true, func(on bool) { f.Unhomed = on }},
		text("teleop", &f.Mode, "teleop", true),
		text("other-holder", &f.Holder, "somebody_else", false), text("compliant-gripper", &f.Tool, "eoa_wrist_dw4_tool_sg4", true),
	}
}

func stretchFaultNames() []string {
	all := stretchSwitches(new(simwire.StretchFaults))
	out := make([]string, 0, len(all))
	for _, s := range all {
		out = append(out, s.name)
	}
	return out
}

// faultVars are the names of the faults for the help.
func faultVars() kong.Vars {
	return kong.Vars{
		"arm_faults": strings.Join(simwire.FaultNames(), ", "), "stretch_faults": strings.Join(stretchFaultNames(), ", "),
		"serial_faults": strings.Join(serialFaultNames(), ", "),
		"camera_faults": strings.Join(cameraFaults(), ", "),
	}
}

func noFault(robot, name string, known []string) error {
	return fmt.Errorf("a %s has no fault %q; there are %s", robot, name, strings.Join(append(known, cameraFaults()...), ", "))
}

func isCameraFault(name string) bool {
	return name == faultFrozenCameras || name == faultStalledCameras
}

// faults reads the names of the flag for an arm.
func (c *twinCommand) faults() (simwire.Faults, error) {
	var f simwire.Faults
	for _, n := range c.Fault {
		if !isCameraFault(n) && !f.Switch(n, true) {
			return f, usageError{noFault(c.Robot, n, simwire.FaultNames())}
		}
	}
	return f, nil
}

// stretchFaults reads the names of the flag for a Stretch.
func (c *twinCommand) stretchFaults() (simwire.StretchFaults, error) {
	var f simwire.StretchFaults
	for _, n := range c.Fault {
		found := isCameraFault(n)
		for _, s := range stretchSwitches(&f) {
			if s.name == n {
				s.set(true)
				found = true
			}
		}
		if !found {
			return f, usageError{noFault(c.Robot, n, stretchFaultNames())}
		}
	}
	return f, nil
}

// turn turns the fault of that name on or off, unless it can be had from the start alone: then it is late.
func turn(switches []stretchSwitch, name string, on bool) (found, late bool) {
	for _, s := range switches {
		if s.name != name {
			continue
		}
		if found, late = true, s.start; !late {
			s.set(on)
		}
	}
	return found, late
}

// switchStretch turns a fault of a running Stretch on or off.
func switchStretch(w *simwire.Stretch, name string, on bool) error {
	found, late := false, false
	w.Set(func(f *simwire.StretchFaults) {
		found, late = turn(stretchSwitches(f), name, on)
	})
	switch {
	case late:
		return fmt.Errorf("%s can be had from the start alone: viad twin stretch4 --fault %s", name, name)
	case !found:
		return noFault("stretch4", name, stretchFaultNames())
	}
	return nil
}

// switchArm turns a fault of a running arm on or off.
func switchArm(w *simwire.Franka, name string, on bool) error {
	found := false
	w.Set(func(f *simwire.Faults) { found = f.Switch(name, on) })
	if !found {
		return noFault("franka", name, simwire.FaultNames())
	}
	return nil
}
