package sim

import (
	"errors"
	"math"
	"time"
)

// Axis is one driven coordinate as a robot's own controllers read it, with the encoder's step. A mobile base is three
// axes, base_x, base_y and base_yaw, in the odometry frame; the joints follow in robot.Model order. Metres, radians and
// seconds; an effort is the drive's force in N or Nm, 0 before the first step.
type Axis struct {
	Name         string
	X, V, Effort float64
}

// Reading is what a Governor is given in each time step. Its slices are used again for the next.
type Reading struct {
	Now      time.Time // on the twin's clock
	Step     time.Duration
	Axes     []Axis
	Aperture float64 // metres between the pads
	Jaw      float64 // speed of it, m/s
	Contact  float64 // force on the hand as State.Contact has it, N
}

// Drive is what an axis is to do: be at X with speed V and acceleration A, or, when Off, nothing: gravity moves it, and
// friction holds it where there is any.
type Drive struct {
	X, V, A float64
	Off     bool
}

// JawDrive is what the jaw is to do: go to an aperture with a speed, or nothing. An aperture below 0 keeps pressing.
type JawDrive struct {
	Aperture, Speed float64
	Off             bool
}

// Governor stands in for the machine's own controller, as the boards and servers of a real robot do. It is called once
// per time step with what the encoders say and fills in what every axis is to do; what it does not touch stays as it
// was. It runs on the physics goroutine with the twin locked: it must not block nor call the twin.
type Governor func(r *Reading, axes []Drive, jaw *JawDrive)

// ErrGoverned is what Follow and Grip return while a Governor drives.
var ErrGoverned = errors.New("twin: its axes are driven by a governor; command the robot on its wire")

// Govern lets g drive from the next time step on, also over resets; nil gives the twin its own controller back, which
// brakes. A running motion ends with ErrGoverned. The first call finds every axis told to stay where it is.
func (t *Twin) Govern(g Governor) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrOver
	}
	t.endMotion(ErrGoverned)
	t.governor = g
	if g == nil {
		t.servo.off = nil
		t.jaw.off = false
		t.brake(1)
		return nil
	}
	t.yield()
	return nil
}

// yield puts the governor in the path's place. The caller holds mu.
func (t *Twin) yield() {
	n := len(t.p.axes)
	v := &governed{t: t, axes: make([]Axis, n), out: make([]Drive, n), jaw: JawDrive{Aperture: t.jaw.target, Speed: t.mach.jaw.speed}}
	t.servo.off = make([]bool, n)
	for i := range t.p.axes {
		v.axes[i].Name = t.p.axes[i].spec.name
		v.out[i].X = t.servo.ref[i].x
	}
	t.path, t.began, t.resting = v, t.clk.now.Load(), false
	t.clk.nudge()
}

// governed is the path of a twin that a Governor drives. It never ends.
type governed struct {
	t    *Twin
	axes []Axis
	out  []Drive
	jaw  JawDrive
}

func (g *governed) at(_ float64, ref []refPoint) bool {
	t, p := g.t, g.t.p
	q, v := p.d.Qpos(), p.d.Qvel()
	for i := range p.axes {
		x, xd := p.axes[i].x(q, v)
		g.axes[i].X, g.axes[i].V = math.Round(x/t.mach.quant)*t.mach.quant+0, xd
		g.axes[i].Effort = p.axes[i].effort
	}
	x, xd := p.jaw.x(q, v)
	r := Reading{
		Now: t.clk.base.Add(time.Duration(t.clk.now.Load())), Step: time.Duration(p.dt), Axes: g.axes,
		Aperture: math.Max(0, math.Round(x/5e-5)*5e-5), Jaw: xd, Contact: math.Max(t.sense.peak, t.sense.before),
	}
	t.governor(&r, g.out, &g.jaw)
	for i, d := range g.out {
		if d.Off {
			ref[i] = refPoint{x: g.axes[i].X}
			t.servo.integral[i] = 0
		} else {
			ref[i] = refPoint{x: d.X, v: d.V, a: d.A}
		}
		t.servo.off[i] = d.Off
	}
	t.jaw.target, t.jaw.speed, t.jaw.off = math.Max(g.jaw.Aperture, -jawPress), g.jaw.Speed, g.jaw.Off
	return false
}
