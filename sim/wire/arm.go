package wire

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"viad/ros"
	"viad/sim"
)

// robot_mode as Franka's control box reports it.
const (
	modeOther   uint8 = 0
	modeIdle    uint8 = 1
	modeMove    uint8 = 2
	modeGuiding uint8 = 3
	modeReflex  uint8 = 4
	modeStopped uint8 = 5
	modeHealing uint8 = 6
)

// Flags of the errors that the double knows, by their names on the wire.
const (
	flagSpeed       = "joint_velocity_violation"
	flagForce       = "cartesian_reflex"
	flagTorque      = "joint_reflex"
	flagRange       = "joint_motion_generator_position_limits_violation"
	flagJolt        = "joint_motion_generator_velocity_discontinuity"
	flagJerk        = "joint_motion_generator_acceleration_discontinuity"
	flagNetwork     = "communication_constraints_violation"
	brakeRate       = 10.0 // rad/s^2 with which the arm brakes by itself
	lossyAfter      = 2 * time.Second
	lateReflex      = 1500 * time.Millisecond
	lostAfter       = 300 * time.Millisecond // from the start of a motion
	recoveryUsually = 400 * time.Millisecond
)

// arm is the control box and the trajectory controller, with the hand, driven once per physics step.
type arm struct {
	joints []string
	build  build

	mu     sync.Mutex
	faults Faults
	now    time.Time
	q, v   []float64 // measured
	effort []float64
	want   knot      // where the controller commands the arm to be
	rest   knot      // the end of the last goal that was reached, which is held
	cmdV   []float64 // speed and acceleration of what was commanded, as the control box sees them: by differences
	cmdA   []float64
	run    *run
	moves  time.Time // since when goals have followed each other
	active bool      // the trajectory controller is
	down   bool      // the hardware component is unconfigured, as after every fault on ROS 2
	dead   bool      // the process of the controller is
	mode   uint8
	since  time.Time     // when the mode began
	err    string        // flag of the reflex while the arm brakes; reads clean afterwards
	last   string        // flag of the last motion
	fell   chan struct{} // closed at the next fault
	heals  healing
	force  float64
	tau    [7]float64 // that the force makes
	touch  [2]touch   // what collisions are: nominal, and while it accelerates
	hand   hand
	begun  bool
}

// healing is a recovery that runs.
type healing struct {
	until time.Time
	well  chan struct{} // closed at its end
}

func newArm(joints []string, b build, f Faults) *arm {
	n := len(joints)
	a := &arm{joints: joints, build: b, faults: f, active: true, mode: modeIdle, fell: make(chan struct{}), touch: [2]touch{b.touch, b.touch}}
	a.q, a.v, a.effort = make([]float64, n), make([]float64, n), make([]float64, n)
	a.cmdV, a.cmdA = make([]float64, n), make([]float64, n)
	a.hand = hand{homed: !f.Unhomed, halted: make(chan struct{})}
	return a
}

// set changes the faults while it runs.
func (a *arm) set(f func(*Faults)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.faults.Unhomed
	f(&a.faults)
	if a.faults.Unhomed != was {
		a.hand.homed = was
	}
}

func (a *arm) fault() Faults {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.faults
}

// govern is the sim.Governor: one step of the controller.
func (a *arm) govern(r *sim.Reading, axes []sim.Drive, jaw *sim.JawDrive) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now = a.now.Add(r.Step); r.Now.After(a.now) { // the twin's clock stands still while it makes several steps
		a.now = r.Now
	}
	a.force = r.Contact
	for i, x := range r.Axes {
		a.q[i], a.v[i], a.effort[i] = x.X, x.V, x.Effort
	}
	if !a.begun || a.displaced(axes) {
		a.begin(r.Aperture)
	}
	dt := r.Step.Seconds()
	a.feel()
	a.control(dt)
	a.watch()
	for i := range axes {
		axes[i] = sim.Drive{X: a.want.q[i], V: a.want.v[i], A: a.want.a[i]}
	}
	*jaw = a.hand.step(r.Aperture, r.Jaw, r.Now)
}

// displaced: the world was reset, and the axes are told to stay where they are now.
func (a *arm) displaced(axes []sim.Drive) bool {
	for i := range axes {
		if axes[i].X != a.want.q[i] {
			return true
		}
	}
	return false
}

func (a *arm) begin(aperture float64) {
	n := len(a.joints)
	a.end(ending{code: jtcInvalid, text: "the world was reset"})
	a.begun, a.rest, a.want = true, knot{}, knot{q: append([]float64(nil), a.q...), v: make([]float64, n), a: make([]float64, n)}
	clear(a.cmdV)
	clear(a.cmdA)
	a.hand.start(aperture)
}

// control is what the trajectory controller does in one step.
func (a *arm) control(dt float64) {
	if a.run == nil && a.rest.q != nil && a.mode == modeMove {
		a.command(a.limited(a.rest, dt), dt)
		return
	}
	if a.run == nil || a.run.held {
		a.slow(dt)
		return
	}
	t := a.now.Sub(a.run.began)
	n := len(a.joints)
	next := knot{q: make([]float64, n), v: make([]float64, n), a: make([]float64, n)}
	for j := range n {
		next.q[j], next.v[j], next.a[j] = a.run.path.at(t.Seconds(), j)
	}
	if a.mode == modeMove {
		if flag := a.rough(next, dt); flag != "" {
			a.reflex(flag)
			return
		}
		if a.faults.LostPackets && a.now.Sub(a.moves) > lostAfter {
			a.reflex(flagJerk)
			return
		}
		if !finite(next.q) { // libfranka refuses it, and the hardware component goes into its error state
			a.drop(modeIdle)
			return
		}
		a.command(a.limited(next, dt), dt)
	} else {
		a.slow(dt) // what the controller wants reaches nobody
	}
	a.follow(t, next)
}

// command gives the arm its next place.
func (a *arm) command(next knot, dt float64) {
	for j := range next.q {
		v := (next.q[j] - a.want.q[j]) / dt
		a.cmdA[j] = (v - a.cmdV[j]) / dt
		a.cmdV[j] = v
	}
	a.want = next
}

// slow brakes what was commanded to a rest.
func (a *arm) slow(dt float64) {
	next := knot{q: make([]float64, len(a.q)), v: make([]float64, len(a.q)), a: make([]float64, len(a.q))}
	for j := range a.want.q {
		v := a.want.v[j]
		dv := math.Copysign(math.Min(math.Abs(v), brakeRate*dt), v)
		next.q[j] = a.want.q[j] + (v-dv/2)*dt
		next.v[j], next.a[j] = v-dv, -dv/dt
		if v == dv {
			next.a[j] = 0
		}
	}
	a.command(next, dt)
}

// live says that the box obeys, or could.
func (a *arm) live() bool { return a.mode == modeIdle || a.mode == modeMove }

// watch trips reflexes and keeps the mode.
func (a *arm) watch() {
	forced, m := a.faults.mode()
	moving := false
	for _, v := range a.v {
		moving = moving || math.Abs(v) > 0.005
	}
	switch {
	case forced && a.mode != m:
		a.drop(m)
	case forced:
	case a.mode == modeGuiding || a.mode == modeOther: // released
		a.enter(modeIdle)
	case a.mode == modeReflex && !moving && a.now.Sub(a.since) > 50*time.Millisecond:
		a.err = "" // the flags read clean while the reflex is latched
	case a.mode == modeHealing && !a.now.Before(a.heals.until):
		a.heal()
	case !a.live():
	case a.hurries():
		a.reflex(flagSpeed)
	case a.collides() != "":
		a.reflex(a.collides())
	case a.mode == modeMove && a.faults.LossyNetwork && a.now.Sub(a.since) > lossyAfter:
		a.reflex(flagNetwork)
	case a.active && !a.down && !a.faults.NotStarted:
		a.enter(modeMove)
	default:
		a.enter(modeIdle)
	}
}

func (a *arm) enter(mode uint8) {
	if a.mode != mode {
		a.mode, a.since = mode, a.now
	}
}

func (a *arm) reflex(flag string) {
	a.err, a.last = flag, flag
	a.drop(modeReflex)
}

// drop is what a fault does: the arm brakes. On ROS 2 the hardware component and with it the controller are deactivated;
// franka_ros' controllers know of nothing.
func (a *arm) drop(mode uint8) {
	if a.mode == modeHealing {
		close(a.heals.well)
	}
	a.rest = knot{}
	a.enter(mode)
	close(a.fell)
	a.fell = make(chan struct{})
	if !a.build.one {
		a.active, a.down = false, true
		a.end(ending{code: jtcInvalid, text: "the controller was deactivated"})
	}
}

// listens says that the trajectory controller takes goals, rightly or not.
func (a *arm) listens() bool { return a.begun && !a.dead && (a.active || a.seemsWell()) }

// seemsWell: a user stop was released, and the state looks healthy.
func (a *arm) seemsWell() bool {
	return a.faults.HealthyStop && a.mode == modeStopped && !a.faults.UserStop
}

// shown is the state as it is told.
func (a *arm) shown() (mode uint8, err, last string, rate float64) {
	mode, err, last = a.mode, a.err, a.last
	switch {
	case a.seemsWell():
		return modeIdle, "", "", 0
	case a.mode == modeReflex && a.faults.LateReflex && a.now.Sub(a.since) < lateReflex:
		return modeMove, "", "", 1
	case a.faults.LossyNetwork:
		rate = 0.43
	case a.faults.LostPackets:
		rate = 0.9
	case a.mode == modeMove:
		rate = 1
	}
	return mode, err, last, rate
}

var (
	errPressed = errors.New("the user stop is pressed")
	errNoFault = errors.New("there is nothing to recover from")
)

// recover clears a reflex or a released user stop; it waits as the real one does.
func (a *arm) recover(ctx context.Context) error {
	a.mu.Lock()
	for a.faults.EarlyRecovery && a.live() {
		fell := a.fell
		a.mu.Unlock()
		select {
		case <-fell:
		case <-ctx.Done():
			return ctx.Err()
		}
		a.mu.Lock()
	}
	takes := a.faults.Recovery
	if takes == 0 {
		takes = recoveryUsually
	}
	switch {
	case a.faults.UserStop:
		a.mu.Unlock()
		return errPressed
	case a.mode != modeReflex && a.mode != modeStopped:
		a.mu.Unlock()
		return errNoFault
	}
	a.enter(modeHealing)
	well := make(chan struct{})
	a.heals = healing{until: a.now.Add(takes), well: well}
	a.mu.Unlock()
	select {
	case <-well:
	case <-ctx.Done(): // the box goes on with it
	}
	return ctx.Err()
}

// heal is the end of a recovery.
func (a *arm) heal() {
	a.enter(modeIdle)
	a.err = ""
	close(a.heals.well)
	if a.build.one { // franka_ros starts its controllers again
		a.end(ending{code: jtcSuccess, status: ros.GoalCanceled, text: "the controllers were started again"})
	}
}

// activate starts or stops the trajectory controller. Starting it recovers from a reflex without being asked to.
func (a *arm) activate(on bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if on {
		switch {
		case a.down:
			return false
		case a.mode == modeReflex:
			a.err = ""
			a.enter(modeIdle)
		case !a.live() && !a.build.one: // franka_ros calls it running all the same
			return false
		}
	}
	a.active, a.rest = on, knot{}
	if !on {
		a.end(ending{code: jtcInvalid, text: "the controller was deactivated"})
	}
	return true
}

// bringUp makes the hardware component active again.
func (a *arm) bringUp() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = a.down && !a.live() && a.mode != modeReflex
	return !a.down
}

// die is the end of the controller's process: the box hears nothing, and stops. live begins it anew.
func (a *arm) die() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dead = true
	if a.live() {
		a.reflex(flagNetwork)
	}
	a.active = false
	a.end(ending{code: jtcInvalid, text: "the process ended"})
}

// rise is the process as it is started by hand: its controllers start, which clears a reflex.
func (a *arm) rise() {
	a.mu.Lock()
	a.dead, a.down = false, false
	if a.mode == modeStopped && !a.faults.UserStop {
		a.enter(modeIdle)
	}
	a.mu.Unlock()
	a.activate(true)
}

// leave ends the running goal: nobody moves the arm from here on.
func (a *arm) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end(ending{code: jtcInvalid, text: "the controller was shut down"})
}

func finite(x []float64) bool {
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
