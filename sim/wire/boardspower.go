package wire

import (
	"math"
	"time"
)

// Requests of the power board; those for less are not spoken here.
const (
	askPowerConfig = 1
	askPowerStatus = 3
	askPowerTrig   = 5
	askPowerInfo   = 7
	askSync        = 9
	askPowerAux    = 13
	askEnable      = 19
	askDisable     = 21
	askImuConfig   = 27
	askEyes        = 29
)

// Triggers of the power board.
const (
	powerReboot   = 1
	powerReset    = 2
	powerRunstop  = 256
	powerBeep     = 512
	powerHarmless = powerReset | powerRunstop | powerBeep
)

// Bits of its state.
const (
	stateRunstop = 16
	stateLowSoc  = 256
	stateTilt    = 512
	stateBoot    = 4096
)

// Causes of a runstop.
const (
	causeNone = iota
	causeButton
	causeSoftware
	causeLowSoc
)

// The pulses of a sync: so many a second, and so many more may wait.
const (
	syncRate  = 100.0
	syncQueue = 5.0
)

const tiltAngle = 12 * math.Pi / 180

// power is the power board.
type power struct {
	born    time.Time
	stopped bool
	cause   byte
	syncs   uint64
	queue   float64 // pulses that may come at once
	at      time.Time
	booted  bool // asked who it is
}

func (p *power) begin() { *p = power{queue: syncQueue, syncs: p.syncs} }

func (p *power) runstop(on bool, cause byte) {
	switch {
	case !on:
		p.stopped, p.cause = false, causeNone
	case !p.stopped:
		p.stopped, p.cause = true, cause
	}
}

func (p *power) step(w *works) {
	if p.born.IsZero() {
		p.born, p.at = w.now, w.now
	}
	p.queue = math.Min(syncQueue, p.queue+syncRate*w.now.Sub(p.at).Seconds())
	p.at = w.now
	if w.faults.LowBattery {
		p.runstop(true, causeLowSoc)
	}
}

// sync lets the boards take the commands that wait.
func (p *power) sync(w *works) {
	p.syncs++
	if p.queue--; p.queue < 0 && !p.stopped {
		w.violate("%s: syncs come faster than %g a second", PortPower, syncRate)
		p.runstop(true, causeSoftware)
	}
	p.queue = math.Max(p.queue, 0)
}

func (w *works) askPower(q []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.power
	reply := []byte{q[0] + 1}
	switch q[0] {
	case askPowerStatus:
		return p.status(reply, w)
	case askPowerInfo:
		p.booted = true
		return w.info(reply, "Pimu.5", "Pimu", "hello-pimu2", w.faults.Power)
	case askSync:
		p.sync(w)
		return le.AppendUint16(reply, uint16(p.syncs))
	case askPowerTrig:
		if len(q) < 5 {
			return reply
		}
		bits := le.Uint32(q[1:])
		w.powerTrigger(bits)
		return le.AppendUint32(reply, bits)
	case askPowerAux:
		return le.AppendUint16(reply, uint16(p.syncs))
	case askEyes:
		return reply
	case askEnable, askDisable:
		w.violate("%s: request %d switches the power of a motor", PortPower, q[0])
		w.cut(q, q[0] == askDisable)
		return reply
	case askPowerConfig, askImuConfig:
		w.violate("%s: request %d writes its configuration", PortPower, q[0])
		return reply
	}
	w.violate("%s: there is no request %d", PortPower, q[0])
	return nil
}

// cut switches a motor: 1 lift, 2 to 4 the wheels, 5 arm.
func (w *works) cut(q []byte, off bool) {
	if len(q) < 2 || q[1] < 1 || q[1] > 5 {
		return
	}
	w.motors[[...]int{motorLift, motorOmni, motorOmni + 1, motorOmni + 2, motorArm}[q[1]-1]].dead = off
}

func (w *works) powerTrigger(bits uint32) {
	if odd := bits &^ powerHarmless; odd != 0 {
		w.violate("%s: trigger %d", PortPower, odd)
	}
	if bits&powerReset != 0 {
		w.power.runstop(false, causeNone)
	}
	if bits&powerRunstop != 0 {
		w.power.runstop(true, causeSoftware)
	}
	if bits&powerReboot != 0 {
		w.reboot(PortPower)
	}
}

// status is as its protocol has it: 137 bytes, 2 more from p11 on, and 5 more from p12 on.
func (p *power) status(b []byte, w *works) []byte {
	tilt := 0.0
	if w.faults.Tilt {
		tilt = tiltAngle
	}
	b = imu(b, w, tilt)
	for _, x := range []float64{28.8, 3.1, 36} { // V, A, deg C
		b = putFloat(b, x)
	}
	b = le.AppendUint32(b, p.state(w))
	b = le.AppendUint64(b, uint64(w.up(p.born)/time.Microsecond))
	b = le.AppendUint16(b, 0)
	b = putFloat(putFloat(b, 0), 0)
	kind := byte(0)
	if w.faults.Tilt {
		kind = 3 // to the front
	}
	b = append(b, kind)
	b = putFloat(b, -3.1)
	soc := byte(83)
	if w.faults.LowBattery {
		soc = 8
	}
	b = append(b, soc, 97)
	b = le.AppendUint16(b, 41)
	for _, x := range []float64{19.9, 5.02, 36.1, 12.03, 19.8, 1.7} {
		b = putFloat(b, x)
	}
	b = append(b, 1, p.cause)
	switch w.faults.Power {
	case "p11":
		b = le.AppendUint16(b, 420)
	case "p12", "p13":
		b = le.AppendUint16(b, 420)
		b = append(putFloat(b, 0.4), 0x7e) // all powered
	}
	return b
}

func (p *power) state(w *works) (s uint32) {
	for bit, on := range map[uint32]bool{stateRunstop: p.stopped, stateLowSoc: w.faults.LowBattery, stateTilt: w.faults.Tilt, stateBoot: p.booted} {
		if on {
			s |= bit
		}
	}
	return s
}

// imu is the first 17 floats. Angles are in degrees, the quaternion has its real part first.
func imu(b []byte, w *works, pitch float64) []byte {
	yaw := w.past[axisYaw]
	sy, cy := math.Sincos(yaw / 2)
	sp, cp := math.Sincos(pitch / 2)
	heading := math.Mod(yaw*180/math.Pi, 360)
	if heading < 0 {
		heading += 360
	}
	for _, x := range []float64{
		-9.81 * math.Sin(pitch), 0, 9.81 * math.Cos(pitch),
		0, 0, w.twist[2],
		20, 0, -40,
		0, pitch * 180 / math.Pi, heading,
		cy * cp, -sy * sp, cy * sp, sy * cp,
		0,
	} {
		b = putFloat(b, x)
	}
	return b
}
