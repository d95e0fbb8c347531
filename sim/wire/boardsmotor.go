package wire

import (
	"math"
	"time"

	"viad/sim"
)

// Modes of a stepper board.
const (
	stepSafety = iota
	stepFreewheel
	stepHold
	stepPos
	stepVel
	stepPosTraj
	stepVelTraj
	stepCurrent
	stepPosIncr
	stepModes
)

// Flags of a board's configuration.
const (
	flagHold     = 1  // hold in SAFETY
	flagRunstop  = 2  // heed the runstop
	flagSync     = 4  // commands wait for a sync
	flagGuarded  = 8  // stop on contact
	flagWatchdog = 64 // end a velocity that is not repeated
)

const (
	stepWatchdog = time.Second
	coastBrake   = 30.0                // rad/s^2: how a motor without current that turns comes to rest
	stiffSpeed   = 40.0                // rad/s: of a position without a generator
	stiffBrake   = 400.0               // rad/s^2
	leadMotor    = 50 * math.Pi / 180  // rad: a reference is no farther ahead (vTe_d)
	overSpeed    = 1.5                 // of what the body asks for at most: more it cannot do
	nearPos      = 6 * math.Pi / 180   // rad (pos_near_setpoint_d)
	nearVel      = 3.5 * math.Pi / 180 // rad/s (vel_near_setpoint_d)
)

// bidding is a command as it came. Motor radians.
type bidding struct {
	mode       uint8
	x, v, a    float64
	stiffness  float64
	feed       float64 // A
	pos, neg   float64 // A, or without a unit on p8's sensitivities
	trigger    uint8
	sensitive  [2]float64
	hasSensing bool
}

// motor is a stepper with its board.
type motor struct {
	port   string
	kind   byte    // of the motor, in its board's flash
	ratio  float64 // metres per radian; 0: a wheel
	reach  float64 // metres from 0: the joint's range; 0: a wheel
	most   float64 // rad/s that the body asks for at most
	amps   float64 // A per Nm: the motor's rated current and its holding torque; a wheel's effort is not measured
	config uint8

	zero             float64 // turn at which the board reads 0
	pos, vel, effort float64 // measured: rad, rad/s, Nm
	ref              ramp

	now     bidding // that is being done; its mode is the board's
	next    bidding // that came last
	waiting bool    // next has not been taken
	synced  uint64  // syncs up to the last command that was taken
	fed     time.Time
	target  float64 // of a relative move
	hold    float64
	limits  [2]float64
	limited bool
	homed   bool
	stopped bool    // by the runstop
	guarded bool    // it stopped on a contact
	events  uint32  // that it did
	press   float64 // s that it has pressed
	weight  float64 // A that it takes to stand
	born    time.Time
	cycles  uint64
	asked   uint64 // cycles when the last command came
	dead    bool   // the power board has cut its power
	broken  bool   // its driver has a fault
	hand    ramp   // of somebody who pushes it in SAFETY: v is how fast, x how far it is to go
}

func newMotors() [motors]motor {
	const all = flagRunstop | flagSync | flagWatchdog
	m := [motors]motor{
		{port: PortLift, kind: 5, ratio: 22 * 0.005 / (2 * math.Pi), reach: 1.20, most: 0.5, amps: 2.95 / 1.9, config: all | flagHold | flagGuarded},
		{port: PortArm, kind: 4, ratio: 0.009525 * 15 / 2.33333 / (2 * math.Pi), reach: 0.52, most: 0.7, amps: 2.8 / 1.26, config: all | flagGuarded},
		{port: PortOmni0, kind: 1, config: all},
		{port: PortOmni1, kind: 2, config: all},
		{port: PortOmni2, kind: 3, config: all},
	}
	for i := range m {
		if m[i].ratio != 0 {
			m[i].most /= m[i].ratio
		} else {
			m[i].most = wheelGear / wheelRadius * (baseMost + wheelArm*turnMost)
		}
	}
	return m
}

// boot is a start of the board, with the motor at a turn.
func (m *motor) boot(now time.Time, homed bool, at float64) {
	*m = motor{
		port: m.port, kind: m.kind, ratio: m.ratio, reach: m.reach, most: m.most, amps: m.amps, config: m.config,
		vel: m.vel, effort: m.effort, born: now, homed: homed, dead: m.dead,
	}
	if m.zero = at; homed {
		m.zero = 0
	}
	if m.ratio != 0 {
		m.pos = at - m.zero
	}
	m.ref.x, m.hold, m.target = m.pos, m.pos, m.pos
	m.ref.v = m.vel
}

// rest makes where it is now what it wants.
func (m *motor) rest() {
	m.ref = ramp{x: m.pos}
	m.hold, m.target, m.now.x, m.now.v = m.pos, m.pos, m.pos, 0
}

func (m *motor) velocity() bool { return m.now.mode == stepVel || m.now.mode == stepVelTraj }

// loose: no current.
func (m *motor) loose() bool {
	switch m.now.mode {
	case stepSafety:
		if m.hand.x != 0 {
			return false
		}
		return m.dead || m.config&flagHold == 0
	case stepFreewheel, stepCurrent:
		return true
	}
	return m.dead || m.now.stiffness == 0
}

// flags are the configuration as the faults leave it.
func (m *motor) flags(f *SerialFaults) uint8 {
	c := m.config
	if f.NoSync {
		c &^= flagSync
	}
	if f.NoWatchdog {
		c &^= flagWatchdog
	}
	return c
}

// step is a control cycle, in the order of the firmware: safety, a new command, the control.
func (m *motor) step(w *works, dt float64) {
	m.cycles++
	c := m.flags(&w.faults)
	m.stopped = w.power.stopped && c&flagRunstop != 0
	m.broken = w.faults.DriverFault == m.port
	if m.stopped || m.broken || m.velocity() && c&flagWatchdog != 0 && w.now.Sub(m.fed) >= stepWatchdog {
		m.next.mode = stepSafety
		m.enter(stepSafety)
	}
	if m.waiting && (c&flagSync == 0 || w.power.syncs != m.synced || m.next.mode == stepSafety) {
		m.take(w)
	}
	m.control(dt)
	m.guard(c, dt)
}

// How a contact is told: so many A more, or less, than it takes to stand, for so long. On p8 a command has a sensitivity
// instead of a current: 0 stops at half of a board's own threshold and 1 at one and a half times that.
const (
	guardTime = 0.05 // s
	guardAmps = 1.95 // the own threshold: the lift's 1024 ticks
	weightLag = 0.3  // s
)

func (m *motor) guard(c uint8, dt float64) {
	more := m.current() - m.weight
	switch m.now.mode {
	case stepSafety, stepHold:
		if math.Abs(m.vel) < nearVel {
			m.weight += more * math.Min(1, dt/weightLag)
		}
		m.press = 0
		return
	case stepFreewheel, stepCurrent:
		return
	}
	most := math.Abs(m.now.pos)
	if more < 0 {
		most = math.Abs(m.now.neg)
	}
	if m.now.hasSensing {
		s := m.now.sensitive[0]
		if more < 0 {
			s = m.now.sensitive[1]
		}
		most = guardAmps * (0.5 + math.Max(0, math.Min(1, s)))
	}
	if m.amps == 0 || c&flagGuarded == 0 || math.Abs(more) <= most {
		m.press = 0
		return
	}
	if m.press += dt; m.press >= guardTime {
		m.enter(stepSafety)
		m.guarded, m.press = true, 0
		m.events++
	}
}

// enter changes the mode; each begins from what is measured.
func (m *motor) enter(mode uint8) {
	if m.now.mode == mode {
		return
	}
	m.now.mode = mode
	m.hold = m.pos
	m.ref = ramp{x: m.pos, v: m.vel}
}

// take begins the command that came last.
func (m *motor) take(w *works) {
	m.waiting, m.guarded, m.synced, m.fed = false, false, w.power.syncs, w.now
	was := m.now.trigger
	mode := m.next.mode
	x := m.now.x
	m.enter(mode)
	m.now = m.next
	if mode == stepPosIncr {
		m.now.x = x
		if m.next.trigger != was {
			m.target = m.pos + m.next.x
		}
	}
}

func (m *motor) clip(x float64) float64 {
	if !m.limited {
		return x
	}
	return math.Min(math.Max(x, m.limits[0]), m.limits[1])
}

func (m *motor) control(dt float64) {
	if m.loose() {
		m.ref.x = m.pos
		m.ref.speed(0, coastBrake, dt)
		if m.ratio != 0 {
			m.ref = ramp{x: m.pos, v: m.vel}
		}
		return
	}
	o := m.now
	o.v = math.Max(-overSpeed*m.most, math.Min(overSpeed*m.most, o.v)) // it has not the force for more
	o.a = math.Min(math.Abs(o.a), stiffBrake)
	switch o.mode {
	case stepSafety, stepHold:
		m.ref = ramp{x: m.hold}
		if o.mode == stepSafety && m.hand.x != 0 {
			way := math.Max(-m.hand.v*dt, math.Min(m.hand.v*dt, m.hand.x))
			m.hand.x -= way
			m.hold += way
			m.ref = ramp{x: m.hold, v: way / dt}
		}
	case stepPos:
		x := o.x
		if m.homed {
			x = m.clip(x)
		}
		m.ref.toward(x, stiffSpeed, stiffBrake, dt)
	case stepVel, stepVelTraj:
		m.ref.speed(o.v, o.a, dt)
	case stepPosTraj:
		m.ref.toward(m.clip(o.x), o.v, o.a, dt)
	case stepPosIncr:
		if m.homed {
			m.target = m.clip(m.target)
		}
		m.ref.toward(m.target, o.v, o.a, dt)
	}
	if m.ratio != 0 || m.velocity() {
		m.ref.x = math.Max(m.pos-leadMotor, math.Min(m.pos+leadMotor, m.ref.x))
	}
}

// drive is what the joint is told.
func (m *motor) drive() sim.Drive {
	return sim.Drive{X: (m.ref.x + m.zero) * m.ratio, V: m.ref.v * m.ratio, A: m.ref.a * m.ratio, Off: m.loose()}
}

// ramp moves with a limited speed and acceleration.
type ramp struct{ x, v, a float64 }

// speed is one step towards a speed.
func (r *ramp) speed(v, a, dt float64) {
	a = math.Abs(a)
	dv := math.Max(-a*dt, math.Min(a*dt, v-r.v))
	r.v += dv
	r.x += r.v * dt
	r.a = dv / dt
}

// toward is one step of a trapezoid to a target.
func (r *ramp) toward(x, v, a, dt float64) {
	a = math.Abs(a)
	d := x - r.x
	if math.Abs(d) <= a*dt*dt && math.Abs(r.v) <= 2*a*dt {
		r.a = -r.v / dt
		r.x, r.v = x, 0
		return
	}
	r.speed(math.Copysign(math.Min(math.Abs(v), math.Sqrt(2*0.9*a*math.Abs(d))), d), a, dt)
}

func (r *ramp) moving() bool { return r.v != 0 }
