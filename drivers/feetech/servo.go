package feetech

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
)

// Servo is one joint on a bus. Any goroutine may use it.
type Servo struct {
	bus   *Bus
	joint Joint
	last  atomic.Pointer[Reading] // nil until read, and after the torque was switched
}

// NewServo is a joint's servo. Nothing is asked yet.
func NewServo(bus *Bus, j Joint) *Servo { return &Servo{bus: bus, joint: j} }

// Joint is what the servo turns.
func (s *Servo) Joint() Joint { return s.joint }

// Mode is what a servo's goal means.
type Mode byte

// The modes. Only in ModePosition does a servo keep count of its turns.
const (
	ModePosition Mode = 0
	ModeVelocity Mode = 1
	ModePWM      Mode = 2
)

// Reading is everything that a servo says of itself, from one packet.
type Reading struct {
	// Position (rad) is NaN while the servo is not Calibrated: it then does not know where the joint is.
	Position float64
	Velocity float64 // rad/s
	Load     float64 // -1..1 of the driver's full output, along the joint
	Current  float64 // A
	Voltage  float64 // V
	Celsius  float64
	Fault    Fault
	Moving   bool
	Torque   bool // the driver is on
	Mode     Mode

	// Calibrated says that the servo was homed since its power came on; Offset (ticks) is where homing found the stop.
	Calibrated bool
	Offset     int

	Ticks int // the position as the servo counts it
	Goal  int // ticks
	Speed int // limit of its goal, ticks/s; 0 is none
	Accel int // limit of its goal, 100 ticks/s²; 0 is none
}

// block is what a Reading is made of, from the mode to the current.
const block = regLast + 1 - regMode

// Read reads the servo. A reading that surprises (the first one; a jump, a switch, a mode, an offset or a fault that is not
// as in the last) is taken a second time at once, and two that contradict each other are an *Unsure.
func (s *Servo) Read(ctx context.Context) (Reading, error) {
	r, err := s.readOnce(ctx)
	if err != nil {
		return Reading{}, err
	}
	if last := s.last.Load(); last == nil || differ(*last, r) != "" {
		again, err := s.readOnce(ctx)
		if err != nil {
			return Reading{}, err
		}
		if what := differ(r, again); what != "" {
			return Reading{}, &Unsure{ID: s.joint.ID, What: what}
		}
		r = again
	}
	s.last.Store(&r)
	return r, nil
}

// jump (ticks) is more than any joint turns between two readings that follow each other: a twelfth of a turn of the servo.
const jump = 340

// differ says in what two readings contradict each other; empty when they do not.
func differ(a, b Reading) string {
	switch {
	case a.Torque != b.Torque:
		return fmt.Sprintf("torque %s, then %s", onOff(a.Torque), onOff(b.Torque))
	case a.Mode != b.Mode:
		return fmt.Sprintf("mode %d, then %d", a.Mode, b.Mode)
	case a.Calibrated != b.Calibrated || a.Offset != b.Offset:
		return fmt.Sprintf("homed at %d, then at %d", a.Offset, b.Offset)
	case a.Fault != b.Fault:
		return fmt.Sprintf("faults %#02x, then %#02x", byte(a.Fault), byte(b.Fault))
	case b.Ticks-a.Ticks > jump || a.Ticks-b.Ticks > jump:
		return fmt.Sprintf("position %d ticks, then %d", a.Ticks, b.Ticks)
	}
	return ""
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func (s *Servo) readOnce(ctx context.Context) (Reading, error) {
	b, err := s.bus.Read(ctx, s.joint.ID, regMode, block)
	if err != nil {
		return Reading{}, err
	}
	return s.joint.reading(b), nil
}

// reading takes a block apart.
func (j Joint) reading(b []byte) Reading {
	at := func(reg int) []byte { return b[reg-regMode:] }
	along := float64(j.polarity())
	r := Reading{
		Velocity:   j.Speed(signed(word(at(regVelocity)), 15)),
		Load:       along * float64(signed(word(at(regLoad)), 10)) / 1000,
		Current:    float64(signed(word(at(regCurrent)), 15)) * 0.0065,
		Voltage:    float64(at(regVoltage)[0]) / 10,
		Celsius:    float64(at(regTemperature)[0]),
		Fault:      Fault(at(regFault)[0]),
		Moving:     at(regMoving)[0] != 0,
		Torque:     at(regTorque)[0] != 0,
		Mode:       Mode(at(regMode)[0]),
		Calibrated: at(regFlags)[0]&1 != 0,
		Offset:     signed(word(at(regOffset)), 15),
		Ticks:      signed(word(at(regPosition)), 15),
		Accel:      int(at(regGoal)[0]),
		Goal:       signed(word(at(regGoal+1)), 15),
		Speed:      int(word(at(regGoal + 5))),
		Position:   math.NaN(),
	}
	if r.Calibrated {
		r.Position = j.Radians(r.Ticks, r.Offset)
	}
	return r
}

// Torque switches the servo's driver. Off, the joint is limp and what it carries may fall. Back on, it holds where it is
// only if the goal before was there: give a goal at the measured position first.
func (s *Servo) Torque(ctx context.Context, on bool) error {
	v := byte(0)
	if on {
		v = 1
	}
	s.last.Store(nil)
	defer s.last.Store(nil) // what was read before says nothing any more
	return s.bus.Write(ctx, s.joint.ID, regTorque, []byte{v})
}

// Go gives the servo a goal. The last reading must say that the servo is calibrated, holds and is in ModePosition: a goal
// switches the torque of an STS servo on, which after a runstop is for an operator to decide.
func (s *Servo) Go(ctx context.Context, g Goal) error {
	data, err := s.Encode(g)
	if err != nil {
		return err
	}
	return s.bus.Write(ctx, s.joint.ID, regGoal, data.Bytes)
}

// RegisterGoal is where SyncWrite puts goals.
const RegisterGoal = regGoal

// Encode is a goal for SyncWrite at RegisterGoal, under the same conditions as Go.
func (s *Servo) Encode(g Goal) (Data, error) {
	last, err := s.holding()
	if err != nil {
		return Data{}, err
	}
	if !last.Calibrated {
		return Data{}, s.joint.refuse("it is not homed since its power came on: an operator must home the wrist")
	}
	b, err := s.joint.encode(g, last.Offset)
	if err != nil {
		return Data{}, err
	}
	return Data{ID: s.joint.ID, Bytes: b}, nil
}

// Hold makes the place where the servo was at the last reading its goal, braking with accel (rad/s²) and coming back no
// faster than speed (rad/s). It may be outside the joint's limits, and a servo that is not calibrated can hold too.
func (s *Servo) Hold(ctx context.Context, speed, accel float64) error {
	last, err := s.holding()
	if err != nil {
		return err
	}
	here := s.joint.Radians(last.Ticks, 0)
	free := s.joint
	free.Min, free.Max = here, here
	b, err := free.encode(Goal{Position: here, Speed: speed, Accel: accel}, 0)
	if err != nil {
		return err
	}
	return s.bus.Write(ctx, s.joint.ID, regGoal, b)
}

// holding is the last reading of a servo that may have a goal.
func (s *Servo) holding() (*Reading, error) {
	last := s.last.Load()
	switch {
	case last == nil:
		return nil, s.joint.refuse("a goal needs a reading first")
	case last.Mode != ModePosition:
		return nil, s.joint.refuse("it is in mode %d, where a goal is no position: something else drives it", last.Mode)
	case !last.Torque:
		return nil, s.joint.refuse("its torque is off, and a goal would switch it on: an operator must enable it")
	}
	return last, nil
}
