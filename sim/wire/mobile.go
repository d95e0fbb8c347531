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

// span is what a joint's motion generator does: its range, speed and acceleration. Metres and radians.
type span struct{ lo, hi, v, a float64 }

// spans are the body's default speeds for lift and arm, and the smaller of the ranges that body and URDF state. The
// wrist's servos do 7 rad/s by default; here they are slowed to what the twin's drives can follow.
func spans() [wrists]span {
	return [wrists]span{{0, 1.2, 0.3, 0.3}, {0, 0.52, 0.4, 0.4}, {-1.135, 4.276, 3, 10}, {-1.135, 4.276, 3, 10}, {-4.276, 1.135, 3, 10}}
}

// generator moves a reference to a target by its speed and acceleration, in a trapezoid; or with a speed, when jogged.
type generator struct {
	span
	x, xd   float64
	target  float64
	asked   float64 // speed that came with the target; 0: its own
	running bool
	moves   int // times that it started
	jogged  bool
	jog     float64 // speed asked for
	jogAt   time.Time
	track   track
}

// track is a straight way in time, which generation B's time priority follows; none has no end.
type track struct {
	from       float64
	begin, end time.Time
}

// at is where a generator on a track with that target is to be, and how fast.
func (k track) at(target float64, now time.Time) (x, v float64) {
	whole := k.end.Sub(k.begin).Seconds()
	v = (target - k.from) / whole
	return k.from + v*math.Max(0, now.Sub(k.begin).Seconds()), v
}

// braking is the greatest speed from which it stops within d.
func (g *generator) braking(d float64) float64 { return math.Sqrt(2 * 0.9 * g.a * math.Max(0, d)) }

func (g *generator) step(dt float64, now time.Time) (acc float64) {
	d := g.target - g.x
	most := math.Min(g.v, g.braking(math.Abs(d)))
	if g.asked > 0 {
		most = math.Min(most, g.asked)
	}
	want := math.Copysign(most, d)
	timed := now.Before(g.track.end)
	if timed {
		x, v := g.track.at(g.target, now)
		want = math.Max(-most, math.Min(most, v+trackGain*(x-g.x)))
	}
	if g.jogged {
		want = math.Max(-math.Min(g.v, g.braking(g.x-g.lo)), math.Min(math.Min(g.v, g.braking(g.hi-g.x)), g.jog))
	}
	done := math.Abs(d) < 1e-4
	if g.jogged {
		done = math.Abs(want) < 1e-6 || want > 0 && g.hi-g.x < 1e-4 || want < 0 && g.x-g.lo < 1e-4
		g.target = g.x
	}
	if done && !timed && math.Abs(g.xd) <= 2*g.a*dt {
		acc = math.Max(-g.a, math.Min(g.a, -g.xd/dt))
		g.x, g.xd, g.running = g.target, 0, false
		return acc
	}
	if !g.running {
		g.running = true
		g.moves++
	}
	dv := math.Max(-g.a*dt, math.Min(g.a*dt, want-g.xd))
	g.xd += dv
	g.x += g.xd * dt
	return dv / dt
}

// aim gives it a target, which it goes to with its own speed.
func (g *generator) aim(x float64) { g.target, g.asked, g.jogged, g.track = x, 0, false, track{} }

// follow gives it a target to be at at a time, in a straight way from where it is.
func (g *generator) follow(x float64, begin, end time.Time) {
	g.aim(x)
	g.track = track{g.x, begin, end}
}

// turn gives it a speed.
func (g *generator) turn(v float64, now time.Time) { g.jogged, g.jog, g.jogAt = true, v, now }

// halt makes the nearest rest the target.
func (g *generator) halt() { g.aim(g.x + g.xd*math.Abs(g.xd)/(2*0.9*g.a)) }

const (
	trackGain = 5.0         // 1/s: how hard a lag behind a track is made good
	baseAcc   = 0.25        // m/s^2, the body's default
	turnAcc   = 2.0         // rad/s^2
	baseMost  = 0.6         // m/s
	turnMost  = 4.0         // rad/s
	firmware  = time.Second // the steppers' own velocity watchdog
	jawSpeed  = 0.08        // m/s of aperture
	jawPress  = -0.02       // aperture that a shut gripper goes on closing to
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
	shift   generator // a straight way ahead, from where it began
	forever bool      // the last velocities are repeated
	width   float64
	widthV  float64
	jaw     float64
	stopped bool // runstop
}

func (b *body) govern(r *sim.Reading, axes []sim.Drive, jaw *sim.JawDrive) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now, b.width, b.widthV = r.Now, r.Aperture, r.Jaw
	for i := range 3 {
		b.base[i], b.baseV[i] = r.Axes[i].X, r.Axes[i].V
	}
	for i := range wrists {
		b.q[i], b.v[i] = r.Axes[3+i].X, r.Axes[3+i].V
	}
	if !b.begun || b.moved(axes) {
		b.begin()
	}
	dt := r.Step.Seconds()
	b.drive(dt, axes)
	for i := range b.joint {
		g := &b.joint[i]
		if b.stopped && i >= yaw { // the wrist's servos lose their torque
			axes[3+i] = sim.Drive{X: b.q[i], Off: true}
			g.x, g.xd, g.running = b.q[i], 0, false
			g.aim(b.q[i])
			continue
		}
		if g.jogged && !b.forever && b.now.Sub(g.jogAt) > firmware {
			g.halt()
		}
		a := g.step(dt, b.now)
		axes[3+i] = sim.Drive{X: g.x, V: g.xd, A: a}
	}
	*jaw = sim.JawDrive{Aperture: b.jaw, Speed: jawSpeed}
}

// moved: the twin was reset, and its axes are told to stay where they are now.
func (b *body) moved(axes []sim.Drive) bool {
	for i := range wrists {
		if axes[3+i].X != b.joint[i].x && !axes[3+i].Off {
			return true
		}
	}
	return axes[0].X != b.ref[0] || axes[1].X != b.ref[1] || axes[2].X != b.ref[2]
}

func (b *body) begin() {
	b.begun, b.ref, b.refV, b.cmd = true, b.base, [3]float64{}, [3]float64{}
	for i, s := range spans() {
		b.joint[i] = generator{span: s, x: b.q[i], target: b.q[i], moves: b.joint[i].moves}
	}
	b.shift = generator{span: span{math.Inf(-1), math.Inf(1), 0.3, baseAcc}}
	b.jaw = b.width
}

// drive is one step of the wheels.
func (b *body) drive(dt float64, axes []sim.Drive) {
	s, c := math.Sincos(b.ref[2])
	if b.shift.running {
		a := b.shift.step(dt, b.now)
		b.refV = [3]float64{c * b.shift.xd, s * b.shift.xd, 0}
		for i, k := range [3]float64{c, s, 0} {
			b.ref[i] += b.refV[i] * dt
			axes[i] = sim.Drive{X: b.ref[i], V: b.refV[i], A: k * a}
		}
		return
	}
	want := b.cmd
	if b.stopped || !b.forever && b.now.Sub(b.cmdAt) > firmware {
		want = [3]float64{}
	}
	world := [3]float64{c*want[0] - s*want[1], s*want[0] + c*want[1], want[2]}
	for i := range 3 {
		most := map[bool]float64{true: turnAcc, false: baseAcc}[i == 2] * dt
		dv := math.Max(-most, math.Min(most, world[i]-b.refV[i]))
		b.refV[i] += dv
		b.ref[i] += b.refV[i] * dt
		axes[i] = sim.Drive{X: b.ref[i], V: b.refV[i], A: dv / dt}
	}
}

// velocity is a command of the base, in its own frame: x ahead, y left, counter-clockwise; no faster than the wheels do.
func (b *body) velocity(x, y, w float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !(math.Abs(x)+math.Abs(y)+math.Abs(w) < 1e6) {
		return // no number
	}
	if n := math.Hypot(x, y); n > baseMost {
		x, y = x*baseMost/n, y*baseMost/n
	}
	b.shift.running = false
	b.cmd, b.cmdAt = [3]float64{x, y, math.Max(-turnMost, math.Min(turnMost, w))}, b.now
}

// ahead begins a straight way of d metres from where the base is. The caller holds mu.
func (b *body) ahead(d float64) {
	b.cmd = [3]float64{}
	b.shift.x, b.shift.xd, b.shift.running = 0, 0, true
	b.shift.aim(d)
}

// halt stops everything that moves.
func (b *body) halt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest()
	if math.Abs(b.widthV) > 0.005 {
		b.jaw = b.width // one that has closed on something goes on holding it
	}
}

// rest brakes the base and the joints. The caller holds mu.
func (b *body) rest() {
	b.cmd = [3]float64{}
	b.shift.running = false // the wheels' ramp brakes what is left
	for i := range b.joint {
		b.joint[i].halt()
	}
}

// runstop engages or releases it.
func (b *body) runstop(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped = on; on {
		b.rest()
	}
}
