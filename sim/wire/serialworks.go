package wire

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"viad/sim"
)

// The axes of the twin that boards and servos move.
const (
	axisYaw  = 2 // of the base
	axisLift = 3
	axisHand = 5 // first of the wrist
	axisMost = 8
)

// The motors, in the order of their ports.
const (
	motorLift = iota
	motorArm
	motorOmni
	motors = motorOmni + 3
)

// works is what all the boards drive: the motors, the servos, the base that three wheels move together, and the line that
// the power board stops them on.
type works struct {
	mu         sync.Mutex
	faults     SerialFaults
	dice       *rand.Rand
	now        time.Time // the physics's
	start      time.Time // which was this
	wall       time.Time // when it was this by the wall
	governs    bool      // the physics has called
	motors     [motors]motor
	servos     []*servo
	power      power
	base, past [3]float64 // where it is driven, and where it was measured; odometry frame
	shove      [3]float64 // that holds it there, N and Nm
	twist      [3]float64 // that it is driven with, in its own frame
	told       [axisMost]sim.Drive
	tick       chan struct{} // closed after the next step, when somebody waits
	fastest    float64
	violations []string
}

const violationsMost = 1000 // more say nothing new

func newWorks(f SerialFaults) (*works, error) {
	w := &works{faults: f, dice: rand.New(rand.NewPCG(f.Seed, 0))}
	if w.faults.Stepper == "" {
		w.faults.Stepper = "p8"
	}
	if w.faults.Power == "" {
		w.faults.Power = "p12"
	}
	switch f.Tool {
	case "":
		w.faults.Tool = toolParallel
	case toolParallel, toolCompliant:
	default:
		return nil, fmt.Errorf("wire: no tool %q for the servos; there are %s and %s", f.Tool, toolParallel, toolCompliant)
	}
	w.motors = newMotors()
	w.servos = newServos(w.faults.Tool)
	w.power.begin()
	return w, nil
}

// up is how long a board that was born then is up by its own quartz, which goes on when the physics cannot keep up.
func (w *works) up(born time.Time) time.Duration { return time.Since(w.wall) - born.Sub(w.start) }

func (w *works) fault() SerialFaults {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.faults
	f.Lines = slices.Clone(f.Lines)
	return f
}

// violate notes what should not have been sent. The caller holds mu.
func (w *works) violate(format string, args ...any) {
	if len(w.violations) < violationsMost {
		w.violations = append(w.violations, fmt.Sprintf(format, args...))
	}
}

func (w *works) govern(r *sim.Reading, axes []sim.Drive, jaw *sim.JawDrive) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = r.Now
	if w.governs && w.moved(axes) {
		w.begin(r, false)
	}
	w.governs = true
	dt := r.Step.Seconds()
	w.measure(r)
	w.power.step(w)
	for i := range w.motors {
		w.motors[i].step(w, dt)
	}
	w.roll(dt, axes)
	for i := range 2 {
		axes[axisLift+i] = w.motors[i].drive()
	}
	for _, s := range w.servos {
		s.step(w, dt)
		if s.axis > 0 {
			axes[s.axis] = s.drive()
		} else {
			*jaw = s.jaw()
		}
	}
	copy(w.told[:], axes)
	if w.tick != nil {
		close(w.tick)
		w.tick = nil
	}
}

// moved: the twin was reset, and its axes are told to stay where they are now.
func (w *works) moved(axes []sim.Drive) bool {
	for i, d := range w.told {
		if !d.Off && axes[i].X != d.X {
			return true
		}
	}
	return false
}

// begin takes the robot as it stands, and the first time starts its boards. Motors that move stop there.
func (w *works) begin(r *sim.Reading, first bool) {
	for i := range 3 {
		w.base[i], w.past[i] = r.Axes[i].X, r.Axes[i].X
	}
	w.twist = [3]float64{}
	for i := range w.motors {
		m := &w.motors[i]
		at := m.pos
		if i < motorOmni {
			at = r.Axes[axisLift+i].X/m.ratio - m.zero
		}
		if first {
			m.boot(w.now, !w.faults.Unhomed, at)
		} else {
			m.pos, m.vel = at, 0
			m.rest()
		}
	}
	for _, s := range w.servos {
		s.measure(r)
		if first {
			s.home(!w.faults.Unhomed)
		}
		s.stay()
	}
}

// standing is a reading of a twin that has not been governed yet.
func standing(t *sim.Twin) *sim.Reading {
	s := t.State()
	r := &sim.Reading{Now: t.Clock().Now(), Step: time.Millisecond, Aperture: s.Jaw.Aperture, Axes: make([]sim.Axis, axisMost)}
	r.Axes[0].X, r.Axes[1].X, r.Axes[axisYaw].X = s.Base.X, s.Base.Y, s.Base.Yaw
	for i, q := range s.Q {
		r.Axes[axisLift+i].X = q
	}
	return r
}

func (w *works) measure(r *sim.Reading) {
	for i := range 2 {
		m, a := &w.motors[i], r.Axes[axisLift+i]
		m.pos, m.vel, m.effort = a.X/m.ratio-m.zero, a.V/m.ratio, a.Effort*m.ratio
	}
	var d, v [3]float64
	for i := range 3 {
		d[i], v[i] = r.Axes[i].X-w.past[i], r.Axes[i].V
		w.past[i], w.shove[i] = r.Axes[i].X, r.Axes[i].Effort
	}
	mid := w.past[axisYaw] - d[axisYaw]/2
	way, speed := wheels(turned(d, -mid)), wheels(turned(v, -w.past[axisYaw]))
	for i := range way {
		m := &w.motors[motorOmni+i]
		m.pos += way[i]
		m.vel = speed[i]
	}
	for _, s := range w.servos {
		s.measure(r)
		if s.axis > 0 {
			w.fastest = math.Max(w.fastest, math.Abs(r.Axes[s.axis].V))
		}
	}
}

// How far the base may be from where it is driven before its wheels' references wait for it, and what it takes to move
// one that stands without current.
const (
	leadWay   = 0.05 // m
	leadTurn  = 0.1  // rad
	standWay  = 15.0 // N
	standTurn = 3.0  // Nm
)

// roll is one step of the base: what the three wheels say together.
func (w *works) roll(dt float64, axes []sim.Drive) {
	var u [3]float64
	loose := true
	for i := range u {
		m := &w.motors[motorOmni+i]
		u[i] = m.ref.v
		loose = loose && m.loose()
	}
	was := turned(w.twist, w.base[axisYaw])
	w.twist = unwheels(u)
	v := turned(w.twist, w.base[axisYaw])
	stands := loose && w.twist == [3]float64{}
	for i := range 3 {
		lead, most := leadWay, standWay
		if i == axisYaw {
			lead, most = leadTurn, standTurn
		}
		if stands && math.Abs(w.shove[i]) > most {
			w.base[i] = w.past[i] // pushed away
		}
		w.base[i] = math.Max(w.past[i]-lead, math.Min(w.past[i]+lead, w.base[i]+v[i]*dt))
		axes[i] = sim.Drive{X: w.base[i], V: v[i], A: (v[i] - was[i]) / dt}
	}
}

// turned is a twist or a way in the plane, seen from a frame that is turned.
func turned(v [3]float64, by float64) [3]float64 {
	s, c := math.Sincos(by)
	return [3]float64{c*v[0] - s*v[1], s*v[0] + c*v[1], v[2]}
}

// The base: radius and distance of its wheels in metres, their azimuths, and the motors' gear.
const (
	wheelRadius = 0.100
	wheelArm    = 0.174
	wheelGear   = 6.0
)

// wheels is how fast, or how far, the motors turn when the base moves so in its own frame.
func wheels(v [3]float64) (u [3]float64) {
	for i := range u {
		s, c := math.Sincos((30 + 120*float64(i)) * math.Pi / 180)
		u[i] = wheelGear / wheelRadius * (s*v[0] - c*v[1] - wheelArm*v[2])
	}
	return u
}

// unwheels is the other way: the three azimuths are 120 degrees apart, so each column is two thirds of its row.
func unwheels(u [3]float64) (v [3]float64) {
	for i := range u {
		s, c := math.Sincos((30 + 120*float64(i)) * math.Pi / 180)
		k := wheelRadius / wheelGear * u[i] / 3
		v[0] += 2 * k * s
		v[1] -= 2 * k * c
		v[2] -= k / wheelArm
	}
	return v
}

func (w *works) reboot(port string) {
	switch i := slices.Index(SerialPorts(), port); port {
	case PortServos:
		for _, s := range w.servos {
			s.reboot()
		}
	case PortPower:
		w.power.begin()
	default:
		m := &w.motors[i]
		at := m.pos
		if i < motorOmni {
			at += m.zero
		}
		m.boot(w.now, false, at)
		m.synced = w.power.syncs
	}
}
