package hello

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Remote procedures of a stepper board; a reply has the number after.
const (
	stepperCommand   = 1
	stepperStatus    = 3
	stepperTrigger   = 9
	stepperFlash     = 13
	stepperInfo      = 17
	stepperLimits    = 19
	commandSize      = 30 // p7
	sensitivitySize  = 8  // what p8 appends
	statusSize       = 47
	statusLongerSize = 55 // with voltage and temperature
	gainsSize        = 20 * 4
)

// Mode is how a stepper is controlled.
type Mode uint8

// Modes. In safety a motor is free or floats, as its gains say; velocities fall back to it after a second without a new
// command, if the watchdog is on.
const (
	ModeSafety Mode = iota
	ModeFreewheel
	ModeHold
	ModePosition
	ModeVelocity
	ModePositionTrajectory
	ModeVelocityTrajectory
	ModeCurrent
	ModePositionRelative // as ModePositionTrajectory, from where it is
)

// String is the mode in words.
func (m Mode) String() string {
	names := [...]string{"safety", "freewheel", "hold", "position", "velocity", "position trajectory", "velocity trajectory", "current", "relative position trajectory"}
	if int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("mode %d", m)
}

// Diag are the bits of a stepper's state.
type Diag uint32

// The bits.
const (
	DiagHomed        Diag = 1 // the position's zero was set since power-up
	DiagRunstop      Diag = 2
	DiagNearPosition Diag = 4
	DiagNearVelocity Diag = 8
	DiagMoving       Diag = 16
	DiagDriverFault  Diag = 32
	DiagAccelerating Diag = 64
	DiagGenerating   Diag = 128 // the motion generator is on its way
	DiagCalibrated   Diag = 256 // the encoder's table is in flash
	DiagContact      Diag = 512 // the motor stopped on a contact
	DiagSafety       Diag = 1024
	DiagWaiting      Diag = 2048 // a command waits for the motor sync
	DiagSyncMode     Diag = 16384
)

// Has reports whether all of the bits are set.
func (d Diag) Has(bits Diag) bool { return d&bits == bits }

// StepperStatus is a reading. Angles are those of the motor's shaft: radians and radians per second.
type StepperStatus struct {
	Mode     Mode
	Effort   float64 // ticks of the current controller
	Pos, Vel float64
	Error    float64 // of the controller
	Diag     Diag
	Stamp    time.Duration // the board's own clock
	Contacts uint32        // contact events so far
	// Powered says that the board reports the two below.
	Powered     bool
	Voltage     float64 // V
	Temperature float64 // degrees Celsius
}

// Command is what a motor shall do. Angles are those of its shaft.
type Command struct {
	Mode        Mode
	X, V, A     float64 // rad, rad/s, rad/s^2
	Stiffness   float64 // 0 to 1
	FeedForward float64 // A
	// ContactPos and ContactNeg are currents in amperes at which a guarded motor stops (p7).
	ContactPos, ContactNeg float64
	// SensePos and SenseNeg say how hard a contact must be, 0 to 1 (p8).
	SensePos, SenseNeg float64
}

// Config are the bits that a board has in flash.
type Config uint8

// The bits.
const (
	ConfigSafetyHold Config = 1 // in safety it holds or floats, else it is free
	ConfigRunstop    Config = 2
	ConfigSync       Config = 4
	ConfigGuarded    Config = 8
	ConfigWatchdog   Config = 64 // velocities time out after a second
)

// Has reports whether all of the bits are set.
func (c Config) Has(bits Config) bool { return c&bits == bits }

// StepperTrigger are things that a stepper does once.
type StepperTrigger uint32

// TriggerResetGenerator makes the motion generator start anew from where the motor is: the only trigger that is sent. The
// others reset the board, write flash, or change what is taken for zero.
const TriggerResetGenerator StepperTrigger = 2

// Stepper is a stepper board. Calls are made one at a time, from any goroutine.
type Stepper struct {
	link *link
	info Info

	mu   sync.Mutex
	last clock
	incr uint8
}

func stepperKind() kind {
	return kind{"stepper", []string{"Stepper", "Stepper2", "hello-stepper2", "hello_stepper2"}, []int{7, 8}, stepperInfo}
}

// OpenStepper greets the board behind a port. The port stays the caller's. With ErrProtocol the Stepper is nil and the
// Info inside the error's words is all that is known.
func OpenStepper(ctx context.Context, p Port) (*Stepper, error) {
	l := newLink(p)
	i, err := greet(ctx, l, stepperKind())
	if err != nil {
		return nil, err
	}
	return &Stepper{link: l, info: i}, nil
}

// Info is what the board said of itself.
func (s *Stepper) Info() Info { return s.info }

// Counters are what the line has seen.
func (s *Stepper) Counters() Counters { return s.link.counters() }

// ErrStale is an answer that the board had given before, or that is older than one: the line repeats, or the board was
// started anew. What it says is not used.
var ErrStale = errors.New("the answer is not newer than the one before: the line repeats itself or the board was started anew")

// ErrRestarted is a board whose clock goes on from an earlier time: it has forgotten its zero, its limits and what it was
// told, so that nothing in numbers of before may be sent to it.
var ErrRestarted = errors.New("the board was started anew and has forgotten where it is")

// clock are the stamps of a board's answers.
type clock struct {
	newest  time.Duration // 0: none yet
	earlier time.Duration // the newest of those that were earlier than it; 0: none since
}

// take is nil for a stamp that is newer than all before. One that is newer than an earlier one alone goes on from there:
// a line that repeats itself does not do that.
func (c *clock) take(stamp time.Duration) error {
	switch {
	case c.newest == 0 || stamp > c.newest:
		*c = clock{newest: stamp}
		return nil
	case c.earlier != 0 && stamp > c.earlier && stamp < c.newest:
		return ErrRestarted
	case stamp < c.newest:
		c.earlier = stamp
	}
	return ErrStale
}

// Status asks for a reading. One that is not newer than the last is ErrStale, or ErrRestarted when it must be.
func (s *Stepper) Status(ctx context.Context) (StepperStatus, error) {
	b, err := s.link.pull(ctx, "status", []byte{stepperStatus})
	if err != nil {
		return StepperStatus{}, err
	}
	st, err := parseStepperStatus(b)
	if err != nil {
		return StepperStatus{}, &LineError{"status", err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.last.take(st.Stamp); err != nil {
		s.link.strange.Add(1)
		return StepperStatus{}, &LineError{"status", err}
	}
	return st, nil
}

func parseStepperStatus(b []byte) (StepperStatus, error) {
	if len(b) < statusSize {
		return StepperStatus{}, fmt.Errorf("the status has %d bytes, at least %d are needed", len(b), statusSize)
	}
	r := reader{b: b}
	s := StepperStatus{Mode: Mode(r.u8()), Effort: r.f32(), Pos: r.f64(), Vel: r.f32(), Error: r.f32(), Diag: Diag(r.u32())}
	us := r.u64()
	if us > uint64(1<<63-1)/1000 {
		return StepperStatus{}, errNumber
	}
	s.Stamp = time.Duration(us) * time.Microsecond
	r.loose() // debug
	s.Contacts = r.u32()
	r.loose() // deprecated setpoint
	r.take(2) // and its id
	if len(b) >= statusLongerSize {
		s.Powered, s.Voltage, s.Temperature = true, adcVolts(r.loose()), adcCelsius(r.loose())
	}
	if r.bad {
		return StepperStatus{}, errNumber
	}
	return s, nil
}

// adcVolts and adcCelsius are what the raw readings of the board's converter mean: 12 bits of 3.3 V, behind a divider by
// 11, and of a sensor of 10 mV per degree with 0.5 V at zero.
func adcVolts(raw float64) float64   { return raw * 3.3 / 4095 * 11 }
func adcCelsius(raw float64) float64 { return (raw*3.3/4095 - 0.5) / 0.01 }

// Command tells the motor what to do. In sync mode the board waits with it for the power board's sync, unless the mode is
// ModeSafety. A relative move is given a number of its own, as the board ignores one that it has seen: the first after
// opening may be taken for a repeat of another program's last.
func (s *Stepper) Command(ctx context.Context, c Command) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("hello: command refused: %w", err)
	}
	s.mu.Lock()
	if c.Mode == ModePositionRelative {
		s.incr = uint8((int(s.incr) + 1) % 255)
	}
	b := c.bytes(s.info.Protocol, s.incr)
	s.mu.Unlock()
	_, err := s.link.push(ctx, "command", b)
	return err
}

func (c Command) check() error {
	for _, x := range []struct {
		name      string
		v, lo, hi float64
	}{
		{"position", c.X, -1e4, 1e4},
		{"speed", c.V, -200, 200},
		{"acceleration", c.A, 0, 2000},
		{"stiffness", c.Stiffness, 0, 1},
		{"feed-forward", c.FeedForward, -4, 4},
		{"contact current", c.ContactPos, 0, 8},
		{"contact current", c.ContactNeg, -8, 0},
		{"contact sensitivity", c.SensePos, 0, 1},
		{"contact sensitivity", c.SenseNeg, 0, 1},
	} {
		if !(x.v >= x.lo && x.v <= x.hi) {
			return fmt.Errorf("%s is %v, must be from %g to %g", x.name, x.v, x.lo, x.hi)
		}
	}
	switch c.Mode {
	case ModeSafety, ModeFreewheel, ModeHold, ModeVelocityTrajectory, ModePositionTrajectory, ModePositionRelative:
		return nil
	default: // those without a motion generator jump, a current has no end
		return fmt.Errorf("mode %q is not sent by this driver", c.Mode)
	}
}

func (c Command) bytes(protocol int, incr uint8) []byte {
	b := append(make([]byte, 0, 1+commandSize+sensitivitySize), stepperCommand, byte(c.Mode))
	for _, x := range []float64{c.X, c.V, c.A, c.Stiffness, c.FeedForward, c.ContactPos, c.ContactNeg} {
		b = putFloat(b, x)
	}
	b = append(b, incr)
	if protocol >= 8 {
		b = putFloat(putFloat(b, c.SensePos), c.SenseNeg)
	}
	return b
}

// Limits bounds positions on the board itself, radians at the motor's shaft, until it is switched off.
func (s *Stepper) Limits(ctx context.Context, lo, hi float64) error {
	if !(lo < hi && lo >= -1e4 && hi <= 1e4) {
		return fmt.Errorf("hello: limits refused: %v to %v is no range", lo, hi)
	}
	_, err := s.link.push(ctx, "motion limits", putFloat(putFloat([]byte{stepperLimits}, lo), hi))
	return err
}

// Trigger sends one of the triggers that may be sent.
func (s *Stepper) Trigger(ctx context.Context, t StepperTrigger) error {
	if t != TriggerResetGenerator {
		return fmt.Errorf("hello: trigger %d refused: of a stepper's triggers only %d (start the motion generator anew) is sent", t, TriggerResetGenerator)
	}
	b := binary.LittleEndian.AppendUint32([]byte{stepperTrigger}, uint32(t))
	_, err := s.link.push(ctx, "trigger", putFloat(b, 0))
	return err
}

// FlashConfig reads the bits that the board starts with. What another program has changed since in the board's memory
// cannot be read; only sync mode shows in the status.
func (s *Stepper) FlashConfig(ctx context.Context) (Config, error) {
	b, err := s.link.pull(ctx, "configuration", []byte{stepperFlash})
	if err != nil {
		return 0, err
	}
	c, err := parseConfig(b)
	if err != nil {
		return 0, &LineError{"configuration", err}
	}
	return c, nil
}

func parseConfig(b []byte) (Config, error) {
	if len(b) < gainsSize+1 {
		return 0, fmt.Errorf("the configuration has %d bytes, at least %d are needed", len(b), gainsSize+1)
	}
	return Config(b[gainsSize]), nil
}
