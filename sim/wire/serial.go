package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"viad/sim"
)

// The ports of a Stretch 4, as its udev rules name them.
const (
	PortLift   = "hello-motor-lift"
	PortArm    = "hello-motor-arm"
	PortOmni0  = "hello-motor-omni-0"
	PortOmni1  = "hello-motor-omni-1"
	PortOmni2  = "hello-motor-omni-2"
	PortPower  = "hello-power-periph"
	PortServos = "hello-feetech-wrist"
)

// SerialPorts are all of them.
func SerialPorts() []string {
	return []string{PortLift, PortArm, PortOmni0, PortOmni1, PortOmni2, PortPower, PortServos}
}

// Serial is a Stretch 4 on its own wires: five stepper boards, the power board and the bus of the servos, each on a
// pseudo-terminal with the name of the robot's port. What they drive is the twin's physics.
//
// The numbers, and where they are from; s4b is github.com/hello-robot/stretch4_body, fw is
// github.com/hello-robot/stretch_firmware (hello_stepper2 and hello_pimu2 are the boards of this robot):
//
//	lift, metres per motor radian   22 * 0.005 / 2 pi                   s4b subsystem/lift.py, robot_params_SE4.py
//	arm, metres per motor radian    .009525 * 15 / 2.33333 / 2 pi       s4b subsystem/arm.py, robot_params_SE4.py
//	wheels                          u = 6/r [sin g, -cos g, -R] (x, y, w), g = 30, 150, 270 deg, r .100, R .174
//	                                s4b core/hello_utils.py, subsystem/omnibase.py; y is to the left
//	order of modes, triggers, bits  s4b core/stepper.py, subsystem/power_periph.py
//	config flags of the boards      runstop, sync and velocity watchdog on all; safety hold on the lift alone;
//	                                guarded on lift and arm; robot_params_SE4.py
//	status of a stepper             55 bytes: robots.md's P1 with f32 voltage and f32 temperature; fw hello_stepper2/Common.h
//	board info                      variant 20 bytes, firmware 20 (30 when it begins hello-stepper2 or hello-pimu2), u8 type of
//	                                the motor (1-3 omni-0 to -2, 4 arm, 5 lift; the power board has none); s4b core/stepper.py
//	command's reply                 u16 count of control cycles; fw
//	a sync counts once              a board that got a sync while it had no command takes the next command at once; fw
//	watchdog, runstop               SAFETY, 1 s after the last command that was taken; fw
//	motion limits                   clip goals in POS_TRAJ, and in POS_TRAJ_INCR when homed; not velocities; fw
//	power board's voltages          volts, and not raw counts, from p7 on; s4b subsystem/power_periph.py
//	servos: ids, gears, polarities  20 yaw 2 -1, 21 pitch 2 -1, 22 roll 2 +1, 23 gripper 1 +1, 24 gripper 1 -1;
//	                                s4b robot_params_SE4.py. The URDF's roll is the servo's with the other sign
//	zero of a servo                 -int(int-ticks of the lower limit) * gear * polarity, plus the offset in register 52;
//	                                limits -65, -65, -65, -100, 0 deg; s4b core/feetech/feetech_SM_hello.py
//	parallel gripper's linkage      rod 30.25 mm, crank 22 mm at 44 deg, face 10.5 mm from the pivot; 0 to 116.5 deg are 0
//	                                to 80 mm; s4b utils/tool_metadata.py
//	compliant gripper               aperture 2 * 182.05 mm * sin(half the angle), the angle proportional to the servo's
//	                                way from -100 to 300 deg, 150 mm when open; s4b utils/tool_metadata.py
//
// Assumed, because nothing public says it: motors without current that turn come to rest at 30 rad/s^2 (a base at 0.5
// m/s^2), and a base that stands so is moved by no less than 15 N or 3 Nm; a single wheel without current drags; a servo without a limit does 12 rad/s of its joint (the body's own maximum) with 60 rad/s^2; servos know nothing
// of the runstop (in the vendor's body it is the program that takes their torque away); a sync pulse more often than 100
// times a second fills a queue of 5 and then engages the runstop, with cause 2; and where on its turn each servo is homed; that lift and arm stop on a contact when they press with 1.95 A
// more than they stand with, for 50 ms, scaled by the command's sensitivity (p8) or with the command's own current (p7).
// A robot in this state has just been homed by its own program, and then left: boards in SAFETY, servos with torque, the
// servos' speeds and accelerations 0.
type Serial struct {
	twin    *sim.Twin
	works   *works
	devices []*device
}

// NewSerial puts a twin of a stretch4 behind ports with their names in dir.
func NewSerial(twin *sim.Twin, dir string, f SerialFaults) (*Serial, error) {
	w, err := newWorks(f)
	if err != nil {
		return nil, err
	}
	s := &Serial{twin: twin, works: w}
	if n := len(twin.Model().Joints); n != axisMost-axisLift || !twin.Model().Mobile {
		return nil, fmt.Errorf("wire: these boards are those of a stretch4, and the twin is a %s", twin.Model().Name)
	}
	w.now = twin.Clock().Now()
	w.start, w.wall = w.now, time.Now()
	w.begin(standing(twin), true)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("wire: no directory for the ports: %w", err)
	}
	for _, name := range SerialPorts() {
		d := &device{name: name, link: filepath.Join(dir, name), bad: &weather{port: name, faults: w.fault}}
		switch i := slices.Index(SerialPorts(), name); name {
		case PortServos:
			d.hear = (&bus{works: w}).hear
		case PortPower:
			d.hear = (&mainboard{answer: w.askPower}).hear
		default:
			d.hear = (&mainboard{answer: func(q []byte) []byte { return w.askMotor(i, q) }}).hear
		}
		s.devices = append(s.devices, d)
	}
	err = twin.Govern(w.govern)
	for _, d := range s.devices {
		if err == nil {
			err = d.plug()
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Run waits until ctx ends; the ports answer from the beginning to Close.
func (s *Serial) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Close takes the ports away and gives the twin back.
func (s *Serial) Close() error {
	errs := make([]error, 0, 1+len(s.devices))
	for _, d := range s.devices {
		errs = append(errs, d.shut())
	}
	if err := s.twin.Govern(nil); !errors.Is(err, sim.ErrOver) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Set changes the faults while it runs.
func (s *Serial) Set(f func(*SerialFaults)) {
	s.works.mu.Lock()
	defer s.works.mu.Unlock()
	f(&s.works.faults)
}

// Runstop is the button on the robot.
func (s *Serial) Runstop(on bool) {
	s.works.mu.Lock()
	defer s.works.mu.Unlock()
	s.works.power.runstop(on, causeButton)
}

// Unplug pulls a port's plug; the board goes on with what it does.
func (s *Serial) Unplug(port string) error {
	d, err := s.device(port)
	if err != nil {
		return err
	}
	return d.unplug()
}

// Replug puts it in again, as another pseudo-terminal under the old name.
func (s *Serial) Replug(port string) error {
	d, err := s.device(port)
	if err != nil {
		return err
	}
	return d.plug()
}

// Reboot starts a board anew, or all servos, as after a loss of its power: nothing is homed, a board is in SAFETY, and a
// servo has no torque and no limit of its speed.
func (s *Serial) Reboot(port string) error {
	if _, err := s.device(port); err != nil {
		return err
	}
	s.works.mu.Lock()
	defer s.works.mu.Unlock()
	s.works.reboot(port)
	return nil
}

// Push is somebody who moves lift or arm by hand, so many metres and with a speed in m/s. Only a motor in SAFETY gives way.
func (s *Serial) Push(port string, way, speed float64) error {
	if _, err := s.device(port); err != nil {
		return err
	}
	s.works.mu.Lock()
	defer s.works.mu.Unlock()
	i := slices.Index(SerialPorts(), port)
	if i > motorArm {
		return fmt.Errorf("wire: only lift and arm can be pushed, not %s", port)
	}
	m := &s.works.motors[i]
	m.hold = m.pos
	m.hand = ramp{x: way / m.ratio, v: math.Abs(speed) / m.ratio}
	return nil
}

// Violations are what was written that nobody may write, and goals that no robot should be given, in their order.
func (s *Serial) Violations() []string {
	s.works.mu.Lock()
	defer s.works.mu.Unlock()
	return slices.Clone(s.works.violations)
}

// Fastest is the greatest measured speed of a wrist joint so far, in rad/s.
func (s *Serial) Fastest() float64 {
	s.works.mu.Lock()
	defer s.works.mu.Unlock()
	return s.works.fastest
}

func (s *Serial) device(port string) (*device, error) {
	for _, d := range s.devices {
		if d.name == port {
			return d, nil
		}
	}
	return nil, fmt.Errorf("wire: no port %q; there are %s", port, strings.Join(SerialPorts(), ", "))
}
