package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"viad/ros"
	"viad/sim"
	simwire "viad/sim/wire"
)

// The share of bytes and of answers that a disturbed line loses: some of each second's.
const (
	badBytes   = 0.0005
	badReplies = 0.05
)

// weakServo is the one whose faults can be had by name: the wrist's pitch.
const weakServo = 21

// serialSwitches are the faults of a Stretch 4 on its serial wires, by name.
func serialSwitches(f *simwire.SerialFaults) []stretchSwitch {
	flag := func(name string, b *bool, start bool) stretchSwitch {
		return stretchSwitch{name, start, func(on bool) { *b = on }}
	}
	text := func(name string, s *string, bad string, start bool) stretchSwitch {
		return stretchSwitch{name, start, func(on bool) { *s = map[bool]string{true: bad}[on] }}
	}
	servo := func(name string, id *byte) stretchSwitch {
		return stretchSwitch{name, false, func(on bool) { *id = map[bool]byte{true: weakServo}[on] }}
	}
	return []stretchSwitch{
		flag("unhomed", &f.Unhomed, true), text("old-steppers", &f.Stepper, "p7", true), text("unknown-protocol", &f.Stepper, "p9", true),
		text("compliant-gripper", &f.Tool, "eoa_wrist_dw4_tool_sg4", true),
		flag("no-sync", &f.NoSync, false), flag("no-watchdog", &f.NoWatchdog, false),
		flag("tilt", &f.Tilt, false), flag("low-battery", &f.LowBattery, false),
		text("driver-fault", &f.DriverFault, simwire.PortLift, false),
		servo("silent-servo", &f.Silent), servo("frozen-servo", &f.Frozen), servo("overload", &f.Overload),
		{"lost-replies", false, func(on bool) { f.DropReplies = map[bool]float64{true: badReplies}[on] }},
		{"noise", false, func(on bool) {
			f.Lines = nil
			if on {
				f.Lines = []simwire.LineFault{{Flip: badBytes, Drop: badBytes, Duplicate: badBytes, Requests: true}}
			}
		}},
	}
}

// unplugged are the faults that pull a cable.
func unplugged() map[string]string {
	return map[string]string{"unplugged-wrist": simwire.PortServos, "unplugged-lift": simwire.PortLift}
}

func serialFaultNames() []string {
	all := serialSwitches(new(simwire.SerialFaults))
	out := make([]string, 0, len(all)+2)
	for _, s := range all {
		out = append(out, s.name)
	}
	return append(out, "unplugged-wrist", "unplugged-lift")
}

// serialFace makes what puts a Stretch 4 behind ports in the folder of the flag.
func (c *twinCommand) serialFace() (func(*sim.Twin, ros.Node, string) (face, error), error) {
	if c.Robot != "stretch4" {
		return nil, usageError{fmt.Errorf("--serial is for a stretch4: a %s has no serial ports", c.Robot)}
	}
	f, pulled, err := c.serialFaults()
	return func(tw *sim.Twin, _ ros.Node, _ string) (face, error) {
		if err := noRobotIn(c.Serial); err != nil {
			return nil, err
		}
		w, err := simwire.NewSerial(tw, c.Serial, f)
		if err != nil {
			return nil, err
		}
		for _, port := range pulled {
			if err := w.Unplug(port); err != nil {
				return nil, errors.Join(err, w.Close())
			}
		}
		return w, nil
	}, err
}

// noRobotIn refuses a folder with ports that are no twin's: they would be replaced, and the daemon would drive the twin.
func noRobotIn(dir string) error {
	for _, name := range simwire.SerialPorts() {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		to, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(to, "/dev/pts/") {
			return fmt.Errorf("--serial: %s is there already and no port of a twin: name another folder", path)
		}
	}
	return nil
}

// serialFaults reads the names of the flag; pulled are the ports without their cable.
func (c *twinCommand) serialFaults() (f simwire.SerialFaults, pulled []string, err error) {
	for _, n := range c.Fault {
		found := isCameraFault(n)
		if port, ok := unplugged()[n]; ok {
			pulled, found = append(pulled, port), true
		}
		for _, s := range serialSwitches(&f) {
			if s.name == n {
				s.set(true)
				found = true
			}
		}
		if !found {
			return f, nil, usageError{noFault("stretch4 on its serial ports", n, serialFaultNames())}
		}
	}
	return f, pulled, nil
}

// switchSerial turns a fault of a running Stretch on its serial wires on or off.
func switchSerial(w *simwire.Serial, name string, on bool) error {
	if port, ok := unplugged()[name]; ok {
		if on {
			return w.Unplug(port)
		}
		return w.Replug(port)
	}
	found, late := false, false
	w.Set(func(f *simwire.SerialFaults) {
		found, late = turn(serialSwitches(f), name, on)
	})
	switch {
	case late:
		return fmt.Errorf("%s can be had from the start alone: viad twin stretch4 --serial DIR --fault %s", name, name)
	case !found:
		return noFault("stretch4 on its serial ports", name, serialFaultNames())
	}
	return nil
}

// serialSaid is where the ports are, in words.
func (c *twinCommand) serialSaid() string {
	return "its serial ports in " + c.Serial + " (" + strings.Join(simwire.SerialPorts(), ", ") + "), its cameras on "
}
