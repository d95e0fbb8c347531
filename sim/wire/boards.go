package wire

import (
	"encoding/binary"
	"math"
	"time"
)

// Requests of a stepper board; the reply to each is the number after it.
const (
	askCommand   = 1
	askStatus    = 3
	askSetGains  = 5
	askTrigger   = 9
	askEncoder   = 11
	askGains     = 13
	askMenu      = 15
	askInfo      = 17
	askLimits    = 19
	askStatusAux = 29
	askSetKind   = 33
	askKind      = 35
)

// Bits of a stepper's status.
const (
	diagHomed    = 1
	diagRunstop  = 2
	diagNearPos  = 4
	diagNearVel  = 8
	diagMoving   = 16
	diagFault    = 32
	diagAccel    = 64
	diagTraj     = 128
	diagTable    = 256
	diagGuarded  = 512
	diagSafety   = 1024
	diagWaiting  = 2048
	diagSyncMode = 16384
)

// Triggers of a stepper.
const (
	trigMark      = 1
	trigGenerator = 2
	trigReboot    = 4
	trigFlash     = 8
	trigUnhome    = 16
	trigHome      = 32
	trigTraceOn   = 128
	trigTraceOff  = 256
	trigHarmless  = trigGenerator | trigTraceOn | trigTraceOff
)

var le = binary.LittleEndian

func putFloat(b []byte, x float64) []byte { return le.AppendUint32(b, math.Float32bits(float32(x))) }

func getFloat(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }

// askMotor answers a request to the stepper board number i.
func (w *works) askMotor(i int, q []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := &w.motors[i]
	reply := []byte{q[0] + 1}
	switch q[0] {
	case askCommand:
		w.command(m, q[1:])
		return le.AppendUint16(reply, uint16(m.cycles))
	case askStatus:
		w.cycle(m)
		return m.status(reply, w)
	case askInfo:
		return append(w.info(reply, "Stepper.6", "Stepper", "hello-stepper2", w.faults.Stepper), m.kind)
	case askLimits:
		if b := q[1:]; len(b) >= 8 {
			m.limits, m.limited = [2]float64{getFloat(b), getFloat(b[4:])}, true
			if !(m.limits[0] <= m.limits[1]) {
				w.violate("%s: limits of %g to %g", m.port, m.limits[0], m.limits[1])
				m.limited = false
			}
		}
		return reply
	case askTrigger:
		if b := q[1:]; len(b) >= 8 {
			w.trigger(m, le.Uint32(b), getFloat(b[4:]))
		}
		return reply
	case askGains:
		return m.gains(reply, w)
	case askSetGains, askEncoder, askMenu, askSetKind:
		w.violate("%s: request %d writes gains, calibration or flash", m.port, q[0])
		return reply
	case askKind:
		return append(reply, m.kind)
	case askStatusAux:
		return append(reply, make([]byte, 12)...)
	}
	w.violate("%s: there is no request %d", m.port, q[0])
	return nil
}

// info is a board's answer of who it is.
func (w *works) info(reply []byte, variant, name, long, protocol string) []byte {
	version, room := name+".v0.8.1"+protocol, 20
	if w.faults.LongNames {
		version, room = long+".v0.8.1"+protocol, 30
	}
	text := make([]byte, 20+room)
	copy(text, variant)
	copy(text[20:], version)
	return append(reply, text...)
}

// command takes SET_COMMAND: 30 bytes, 38 on p8.
func (w *works) command(m *motor, b []byte) {
	size := 30
	if w.faults.Stepper == "p8" {
		size = 38
	}
	if len(b) != size {
		w.violate("%s: a command of %d bytes; on %s it has %d", m.port, len(b), w.faults.Stepper, size)
		if len(b) < 30 {
			return
		}
	}
	o := bidding{
		mode: b[0], x: getFloat(b[1:]), v: getFloat(b[5:]), a: getFloat(b[9:]), stiffness: getFloat(b[13:]),
		feed: getFloat(b[17:]), pos: getFloat(b[21:]), neg: getFloat(b[25:]), trigger: b[29],
	}
	if len(b) >= 38 {
		o.sensitive, o.hasSensing = [2]float64{getFloat(b[30:]), getFloat(b[34:])}, true
	}
	w.judge(m, &o)
	if o.mode >= stepModes || !o.finite() {
		return
	}
	if m.stopped = w.power.stopped && m.config&flagRunstop != 0; m.stopped || m.broken {
		o.mode = stepSafety
	}
	m.next, m.waiting, m.asked = o, true, m.cycles
}

// cycleMost is how long a status waits for a control cycle; when no time passes, none comes.
const cycleMost = 50 * time.Millisecond

// cycle waits until a control cycle has seen the last command, as the firmware does before a status. The caller holds mu.
func (w *works) cycle(m *motor) {
	for m.waiting && m.cycles == m.asked {
		if w.tick == nil {
			w.tick = make(chan struct{})
		}
		tick, late := w.tick, false
		w.mu.Unlock()
		select {
		case <-tick:
		case <-time.After(cycleMost):
			late = true
		}
		w.mu.Lock()
		if late {
			return
		}
	}
}

func (o *bidding) finite() bool {
	sum := o.x + o.v + o.a + o.stiffness + o.pos + o.neg + o.sensitive[0] + o.sensitive[1]
	return !math.IsNaN(sum) && !math.IsInf(sum, 0)
}

// judge notes what no robot should be told.
func (w *works) judge(m *motor, o *bidding) {
	to, absolute := o.x, o.mode == stepPos || o.mode == stepPosTraj
	if o.mode == stepPosIncr {
		to = m.pos
		if o.trigger != m.now.trigger {
			to += o.x
		}
	}
	switch {
	case o.mode >= stepModes:
		w.violate("%s: there is no mode %d", m.port, o.mode)
	case !o.finite():
		w.violate("%s: a command with no number", m.port)
	case o.mode == stepCurrent:
		w.violate("%s: a current instead of a motion", m.port)
	case o.mode >= stepPos && math.Abs(o.v) > 1.01*m.most:
		w.violate("%s: a speed of %.1f rad/s; the body asks for %.1f at most", m.port, o.v, m.most)
	case m.ratio != 0 && absolute && !m.homed:
		w.violate("%s: a position, and it is not homed", m.port)
	case m.ratio != 0 && m.homed && (absolute || o.mode == stepPosIncr):
		if x := to * m.ratio; !(x >= -rangeMargin && x <= m.reach+rangeMargin) {
			w.violate("%s: a goal of %.4f m, outside 0 to %.2f", m.port, x, m.reach)
		}
	}
}

const markMost = 1e4 // rad: a place to be marked that is none

func (w *works) trigger(m *motor, bits uint32, x float64) {
	if odd := bits &^ trigHarmless; odd != 0 {
		w.violate("%s: trigger %d", m.port, odd)
	}
	if bits&trigMark != 0 && math.Abs(x) < markMost {
		m.zero += m.pos - x
		m.pos = x
		m.rest()
	}
	if bits&trigGenerator != 0 {
		m.ref = ramp{x: m.pos, v: m.vel}
	}
	if bits&trigUnhome != 0 {
		m.homed = false
	}
	if bits&trigHome != 0 {
		m.homed = true
	}
	if bits&trigReboot != 0 {
		w.reboot(m.port)
	}
}

// status is the 55 bytes of this robot's boards.
func (m *motor) status(b []byte, w *works) []byte {
	b = append(b, m.now.mode)
	b = putFloat(b, m.current()*1000/tickCurrent)
	b = le.AppendUint64(b, math.Float64bits(m.pos))
	b = putFloat(b, m.vel)
	b = putFloat(b, m.ref.x-m.pos)
	b = le.AppendUint32(b, m.diag(w))
	b = le.AppendUint64(b, uint64(w.up(m.born)/time.Microsecond))
	b = putFloat(b, 0)
	b = le.AppendUint32(b, m.events)
	b = putFloat(b, 0)
	b = le.AppendUint16(b, 0)
	b = putFloat(b, 28.8/(11*3.3/4095)) // raw: 12 bits, 3.3 V, divided by 11
	return putFloat(b, (0.5+0.01*35)*4095/3.3)
}

// tickCurrent is mA per tick of effort: 3300 mV over 4096 ticks and 0.424 V/A.
const tickCurrent = 3300.0 / 4096 / 0.424

func (m *motor) diag(w *works) (d uint32) {
	c := m.flags(&w.faults)
	set := func(bit uint32, on bool) {
		if on {
			d |= bit
		}
	}
	goal := m.now.x
	if m.now.mode == stepPosIncr {
		goal = m.target
	}
	positions := m.now.mode == stepPos || m.now.mode == stepPosTraj || m.now.mode == stepPosIncr
	set(diagHomed, m.homed)
	set(diagRunstop, m.stopped)
	set(diagFault, m.broken)
	set(diagSafety, m.stopped || m.broken)
	set(diagNearPos, positions && math.Abs(goal-m.pos) < nearPos || !m.loose() && (m.now.mode == stepHold || m.now.mode == stepSafety) && math.Abs(m.hold-m.pos) < nearPos)
	set(diagNearVel, m.velocity() && math.Abs(m.now.v-m.vel) < nearVel)
	set(diagMoving, math.Abs(m.vel) > nearVel)
	generates := m.now.mode >= stepPosTraj && m.now.mode != stepCurrent && !m.loose()
	set(diagAccel, generates && m.ref.a != 0)
	set(diagTraj, generates && m.ref.moving())
	set(diagTable, true)
	set(diagGuarded, m.guarded)
	set(diagWaiting, m.waiting && c&flagSync != 0)
	set(diagSyncMode, c&flagSync != 0)
	return d
}

// gains are those in flash: 20 floats, the flags, and what this robot's boards have more. Of the floats only those are
// true that something here follows.
func (m *motor) gains(b []byte, w *works) []byte {
	g := [20]float64{10: 50, 11: 7.7, 12: -7.7, 13: 1.8, 14: 6, 15: 3.5, 16: 10, 17: 2}
	for _, x := range g {
		b = putFloat(b, x)
	}
	b = append(b, m.flags(&w.faults), 0, 0)
	b = le.AppendUint16(b, 25)
	b = putFloat(b, 0.3)
	if w.faults.Stepper == "p8" {
		b = append(b, make([]byte, 16)...)
	}
	return b
}

// current is what the motor takes, in A.
func (m *motor) current() float64 {
	if m.loose() {
		return 0
	}
	return m.effort * m.amps
}
