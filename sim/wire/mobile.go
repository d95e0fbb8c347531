package wire

import (
	"math"
	"sync"
	"time"

	"viad/sim"
)

// Joints of a Stretch by their places behind the three axes of its base.
const (
	lift = iota
	arm5
	yaw
	pitch
	roll
	wrists // how many there are
)

// span is what a joint's motion generator does: its range, speed and acceleration. Metres and radians; lift and arm have
// the body's default speeds, the wrist's servos are slowed to what the twin's drives give.
type span struct{ lo, hi, v, a float64 }

func spans() [wrists]span {
	return [wrists]span{{0, 1.2, 0.3, 0.6}, {0, 0.52, 0.4, 0.7}, {-1.135, 4.276, 3, 10}, {-1.135, 4.276, 3, 10}, {-4.276, 1.135, 3, 10}}
}

// generator moves a reference to a target by its speed and acceleration.
type generator struct {
	span
	x, xd   float64
	target  float64
	running bool
}

func (g *generator) step(dt float64) (acc float64) {
	d := g.target - g.x
	want := math.Copysign(math.Min(g.v, math.Sqrt(2*0.9*g.a*math.Abs(d))), d)
	dv := math.Max(-g.a*dt, math.Min(g.a*dt, want-g.xd))
	g.xd += dv
	g.x += g.xd * dt
	g.running = true
	if math.Abs(d) < 1e-4 && math.Abs(g.xd) <= 2*g.a*dt {
		g.x, g.xd, g.running = g.target, 0, false
	}
	return dv / dt
}

// halt makes the nearest rest the target.
func (g *generator) halt() { g.target = g.x + g.xd*math.Abs(g.xd)/(2*g.a) }

const (
	baseAcc  = 0.5         // m/s^2 of the wheels' ramp
	turnAcc  = 2.0         // rad/s^2
	firmware = time.Second // the wheels' own velocity watchdog
	jawFull  = 0.08        // m, the parallel gripper
	jawSpeed = 0.08        // m/s of aperture
)

// body is the boards of a Stretch: generators of the joints, wheels with a watchdog, the gripper's servo, the runstop.
type body struct {
	mu      sync.Mutex
	now     time.Time
	begun   bool
	joint   [wrists]generator
	q, v    [wrists]float64 // measured
	base    [3]float64      // measured, odometry frame
	baseV   [3]float64
	ref     [3]float64 // where the base is driven
	refV    [3]float64 // odometry frame
	cmd     [3]float64 // velocity in the base's own frame
	cmdAt   time.Time
	forever bool // the driver repeats the last velocity
	width   float64
	jaw     float64
	stopped bool // runstop
}

func (b *body) govern(r *sim.Reading, axes []sim.Drive, jaw *sim.JawDrive) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now, b.width = r.Now, r.Aperture
	for i := range 3 {
		b.base[i], b.baseV[i] = r.Axes[i].X, r.Axes[i].V
	}
	for i := range wrists {
		b.q[i], b.v[i] = r.Axes[3+i].X, r.Axes[3+i].V
	}
	if !b.begun {
		b.begin()
	}
	dt := r.Step.Seconds()
	b.drive(dt, axes)
	for i := range b.joint {
		g := &b.joint[i]
		if b.stopped && i >= yaw { // the wrist's servos lose their torque
			axes[3+i].Off = true
			g.x, g.xd, g.target = b.q[i], 0, b.q[i]
			continue
		}
		a := g.step(dt)
		axes[3+i] = sim.Drive{X: g.x, V: g.xd, A: a}
	}
	*jaw = sim.JawDrive{Aperture: b.jaw, Speed: jawSpeed}
}

func (b *body) begin() {
	b.begun, b.ref = true, b.base
	for i, s := range spans() {
		b.joint[i] = generator{span: s, x: b.q[i], target: b.q[i]}
	}
	b.jaw = b.width
}

// drive is one step of the wheels.
func (b *body) drive(dt float64, axes []sim.Drive) {
	want := b.cmd
	if b.stopped || !b.forever && b.now.Sub(b.cmdAt) > firmware {
		want = [3]float64{}
	}
	s, c := math.Sincos(b.ref[2])
	world := [3]float64{c*want[0] - s*want[1], s*want[0] + c*want[1], want[2]}
	for i := range 3 {
		most := map[bool]float64{true: turnAcc, false: baseAcc}[i == 2] * dt
		dv := math.Max(-most, math.Min(most, world[i]-b.refV[i]))
		b.refV[i] += dv
		b.ref[i] += b.refV[i] * dt
		axes[i] = sim.Drive{X: b.ref[i], V: b.refV[i], A: dv / dt}
	}
}

// velocity is a command of the base, in its own frame: x ahead, y left, counter-clockwise.
func (b *body) velocity(x, y, w float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cmd, b.cmdAt = [3]float64{x, y, w}, b.now
}

// halt stops everything that moves.
func (b *body) halt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cmd = [3]float64{}
	for i := range b.joint {
		b.joint[i].halt()
	}
	b.jaw = math.Max(b.jaw, -0.02)
}

// runstop engages or releases it.
func (b *body) runstop(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped = on; on {
		b.cmd = [3]float64{}
		for i := range b.joint {
			b.joint[i].halt()
		}
	}
}
