package wire

import (
	"math"
	"slices"

	"viad/sim"
)

// Registers of a servo. Those below regTorque are kept without power.
const (
	regModel    = 3
	regID       = 5
	regMode     = 33
	regTorque   = 40
	regAcc      = 41
	regGoal     = 42
	regPwm      = 44
	regSpeed    = 46
	regLoadMost = 48
	regFlags    = 50
	regOffset   = 52
	regLock     = 55
	regPos      = 56
	regVel      = 58
	regLoad     = 60
	regVolt     = 62
	regTemp     = 63
	regError    = 65
	regMoving   = 66
	regCurrent  = 69
	servoMemory = 80
)

const (
	servoFast   = 12.0 // rad/s of the joint: without a limit
	servoHard   = 60.0 // rad/s^2
	restTicks   = 20.0 // ticks/s: slower is at rest
	wristForce  = 10.0 // Nm at full load: the twin's drive
	overloadBit = 32
	jawPressing = 0.5 // m/s: the jaw's own drive follows what the servo says
)

// servo is one of the bus.
type servo struct {
	id       byte
	axis     int     // of the twin; 0: the gripper
	gear     float64 // servo radians per joint radian
	polarity float64
	sense    float64 // -1: the URDF's joint turns the other way
	limit    [2]float64
	zero     float64 // ticks from where it was homed to its zero
	offset   int     // ticks where it is homed
	turns    float64 // ticks, whole turns that it has forgotten
	opens    func(angle float64) float64
	shuts    func(aperture float64) float64

	mem    [servoMemory]byte
	later  []byte
	homed  bool
	x, v   float64 // measured, ticks
	load   float64
	ref    ramp // ticks
	target float64
	frozen []byte
}

func newServos(tool string) []*servo {
	deg := math.Pi / 180
	wrist := func(id byte, axis int, polarity, sense float64, offset int) *servo {
		return &servo{id: id, axis: axis, gear: 2, polarity: polarity, sense: sense, limit: [2]float64{-65 * deg, 245 * deg}, offset: offset}
	}
	all := make([]*servo, 0, 4)
	all = append(all,
		wrist(20, axisHand, -1, 1, 1287),
		wrist(21, axisHand+1, -1, 1, 2140),
		wrist(22, axisHand+2, 1, -1, -3110))
	grip := &servo{id: 24, gear: 1, polarity: -1, sense: 1, limit: [2]float64{0, 116.5 * deg}, offset: 2900, opens: rodded, shuts: unrodded}
	if tool == toolCompliant {
		grip = &servo{id: 23, gear: 1, polarity: 1, sense: 1, limit: [2]float64{compliantShut, compliantOpen}, offset: -512, opens: bent, shuts: unbent}
	}
	all = append(all, grip)
	for _, s := range all {
		s.zero = -math.Trunc(s.limit[0]/(2*math.Pi)*turnTicks) * s.gear * s.polarity
		s.factory()
	}
	return all
}

// factory fills the memory as the vendor's program leaves it.
func (s *servo) factory() {
	le.PutUint16(s.mem[regModel:], 2825)
	s.mem[regID] = s.id
	s.mem[13], s.mem[14], s.mem[15] = 72, 254, 110
	le.PutUint16(s.mem[16:], 480)
	s.mem[18], s.mem[19] = 61, 8|4
	s.mem[21], s.mem[22], s.mem[23] = 32, 0, 32
	le.PutUint16(s.mem[28:], 150)
	s.mem[30] = 1
	s.mem[34], s.mem[35], s.mem[36] = 25, 100, 48
	if s.id == 24 {
		le.PutUint16(s.mem[11:], 4095)
		s.mem[18] = 45
	}
	s.start()
}

// start is what it has after power comes.
func (s *servo) start() {
	clear(s.mem[regTorque:])
	copy(s.mem[regLoadMost:regLoadMost+2], s.mem[16:18])
	s.mem[regLock] = 1
}

func (s *servo) home(homed bool) {
	s.homed = homed
	s.mem[regTorque] = 1
	if homed {
		s.mem[regFlags] = 1
		le.PutUint16(s.mem[regOffset:], unsigned(s.offset, 15))
	}
}

// reboot loses what it had without power.
func (s *servo) reboot() {
	s.start()
	s.homed = false
	s.later = nil
	s.forget()
}

// forget counts the turns anew: what it reads is within one again.
func (s *servo) forget() {
	whole := math.Floor(s.x/turnTicks) * turnTicks
	s.turns -= whole
	s.x -= whole
	s.ref, s.target = ramp{x: s.x}, s.x
}

// null is what it reads at the joint's zero.
func (s *servo) null() float64 { return s.zero + float64(s.offset) + s.turns }

// ticks of an angle of the joint, as its own program has it.
func (s *servo) ticks(angle float64) float64 {
	return s.null() + s.polarity*angle*s.gear*turnTicks/(2*math.Pi)
}

func (s *servo) angle(ticks float64) float64 {
	return s.polarity * (ticks - s.null()) / turnTicks * 2 * math.Pi / s.gear
}

func (s *servo) measure(r *sim.Reading) {
	if s.axis > 0 {
		a := r.Axes[s.axis]
		s.x = s.ticks(s.sense * a.X)
		s.v = s.polarity * s.sense * a.V * s.gear * turnTicks / (2 * math.Pi)
		s.load = s.polarity * s.sense * a.Effort / wristForce * 1000
		return
	}
	x := s.ticks(s.shuts(r.Aperture))
	s.v = (x - s.ticks(s.shuts(math.Max(0, r.Aperture-r.Jaw*r.Step.Seconds())))) / r.Step.Seconds()
	s.x = x
	s.load = math.Max(-480, math.Min(480, (s.ref.x-s.x)*5))
}

// stay makes where it is now its goal.
func (s *servo) stay() {
	s.ref, s.target = ramp{x: s.x}, s.x
	le.PutUint16(s.mem[regGoal:], unsigned(int(math.Round(s.x)), 15))
}

func (s *servo) torque(w *works) bool {
	return s.mem[regTorque] != 0 && w.faults.Overload != s.id
}

func (s *servo) step(w *works, dt float64) {
	if !s.torque(w) {
		s.ref, s.target = ramp{x: s.x}, s.x
		s.mem[regTorque] &= boolByte(w.faults.Overload != s.id)
		return
	}
	k := s.gear * turnTicks / (2 * math.Pi)
	acc := float64(s.mem[regAcc]) * 100
	if acc == 0 {
		acc = servoHard * k
	}
	speed := float64(signed(le.Uint16(s.mem[regSpeed:]), 15))
	switch s.mem[regMode] {
	case 0:
		if speed == 0 || math.Abs(speed) > servoFast*k {
			speed = servoFast * k
		}
		s.ref.toward(s.target, speed, acc, dt)
	case 1:
		s.ref.speed(math.Max(-servoFast*k, math.Min(servoFast*k, speed)), acc, dt)
	default:
		s.ref.speed(float64(signed(le.Uint16(s.mem[regPwm:]), 10))/1000*servoFast*k, acc, dt)
	}
	s.bind()
}

// bind keeps the reference near: a servo that is held back does not leap when it is let go.
func (s *servo) bind() {
	lead := 0.35 * s.gear * turnTicks / (2 * math.Pi)
	if s.axis == 0 {
		lead *= 3
	}
	s.ref.x = math.Max(s.x-lead, math.Min(s.x+lead, s.ref.x))
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (s *servo) drive() sim.Drive {
	k := s.polarity * s.sense / s.gear / turnTicks * 2 * math.Pi
	return sim.Drive{X: s.sense * s.angle(s.ref.x), V: s.ref.v * k, A: s.ref.a * k, Off: s.mem[regTorque] == 0}
}

// jaw: a gripper that is told to shut presses.
func (s *servo) jaw() sim.JawDrive {
	to := s.opens(s.angle(s.ref.x))
	if s.opens(s.angle(s.target)) < jawShut && to < jawShut+0.003 {
		to = jawPress
	}
	return sim.JawDrive{Aperture: to, Speed: jawPressing, Off: s.mem[regTorque] == 0}
}

func (s *servo) errors(w *works) byte {
	if w.faults.Overload == s.id {
		return overloadBit
	}
	return s.mem[regError]
}

// read is a part of the memory, with what is measured in it.
func (s *servo) read(w *works, at, n byte) []byte {
	if int(at)+int(n) > servoMemory {
		return nil
	}
	s.present(w)
	return slices.Clone(s.mem[at : at+n])
}

func (s *servo) present(w *works) {
	le.PutUint16(s.mem[regPos:], unsigned(int(math.Round(s.x)), 15))
	le.PutUint16(s.mem[regVel:], unsigned(int(math.Round(s.v)), 15))
	le.PutUint16(s.mem[regLoad:], unsigned(int(math.Round(s.load)), 10))
	s.mem[regVolt], s.mem[regTemp] = 121, 34
	s.mem[regError] = s.errors(w)
	s.mem[regMoving] = boolByte(math.Abs(s.v) > restTicks)
	le.PutUint16(s.mem[regCurrent:], uint16(math.Abs(s.load)/4))
	if w.faults.Frozen != s.id || s.frozen == nil {
		s.frozen = slices.Clone(s.mem[regPos : regCurrent+2])
		return
	}
	copy(s.mem[regPos:], s.frozen)
}

// write puts bytes into the memory and does what they mean. What is measured cannot be written.
func (s *servo) write(w *works, at byte, b []byte) {
	if int(at)+len(b) > servoMemory {
		return
	}
	touches := func(reg, n int) bool { return int(at) < reg+n && reg < int(at)+len(b) }
	if at < regTorque && !(at == regMode && len(b) == 1 && s.mem[regLock] == 1) {
		w.violate("servo %d: register %d, which is kept without power, was written", s.id, at)
	}
	if at <= regMode && regMode < int(at)+len(b) && b[regMode-at] == 2 {
		w.violate("servo %d: the mode of homing", s.id)
	}
	had := s.mem
	copy(s.mem[at:], b)
	copy(s.mem[regPos:], had[regPos:])
	if touches(regFlags, 4) {
		w.violate("servo %d: what it was homed to was written", s.id)
	}
	if had[regTorque] == 0 && s.mem[regTorque] != 0 {
		s.ref, s.target = ramp{x: s.x}, s.x
	}
	if had[regMode] != s.mem[regMode] {
		if s.mem[regMode] == 2 { // the count of its turns is lost with this mode
			s.forget()
		}
		s.stay()
	}
	if touches(regGoal, 2) {
		s.target = float64(signed(le.Uint16(s.mem[regGoal:]), 15))
		s.judge(w)
	}
}

// judge notes goals that no servo should be given.
func (s *servo) judge(w *works) {
	if s.mem[regMode] != 0 {
		return
	}
	if le.Uint16(s.mem[regSpeed:]) == 0 {
		w.violate("servo %d: a goal with speed 0, which is no limit", s.id)
	}
	if !s.homed {
		w.violate("servo %d: a goal, and it is not homed", s.id)
	}
	if a := s.angle(s.target); !(a >= s.limit[0]-0.01 && a <= s.limit[1]+0.01) {
		w.violate("servo %d: a goal of %.3f rad, outside %.3f to %.3f", s.id, a, s.limit[0], s.limit[1])
	}
}
