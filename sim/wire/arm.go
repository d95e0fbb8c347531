package wire

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"viad/ros/msg/control_msgs"
	"viad/sim"
)

// robot_mode as Franka's control box reports it.
const (
	modeIdle    uint8 = 1
	modeMove    uint8 = 2
	modeReflex  uint8 = 4
	modeStopped uint8 = 5
	modeHealing uint8 = 6
)

const (
	reflexForce = 70.0 // N on the hand that trip a cartesian reflex: above any grasp, below what breaks
	reflexJolt  = 60.0 // rad/s^2 of the commanded joints that trip a discontinuity; four times the arm's own limit
	brakeRate   = 10.0 // rad/s^2 with which the arm brakes by itself
	stillSpeed  = 0.01 // rad/s: stopped_velocity_tolerance of the trajectory controller
)

// run is a goal being followed.
type run struct {
	path  spline
	began time.Time
	lim   limits
	done  chan int32 // its error code; capacity 2, for one that was told too early
}

// arm is the control box, the trajectory controller and the hand, driven once per physics step.
type arm struct {
	joints []string

	mu     sync.Mutex
	faults Faults
	now    time.Time
	q, v   []float64 // measured
	effort []float64
	want   []knot // per joint: q, v, a of one element
	run    *run
	active bool // the trajectory controller is
	mode   uint8
	err    string // flag of the reflex while the arm brakes; reads clean afterwards
	last   string // flag of the last motion
	force  float64
	hand   hand
	begun  bool
	down   bool // the hardware component is unconfigured, as after every fault on ROS 2
	fast   fastest
}

func newArm(joints []string, f Faults) *arm {
	a := &arm{joints: joints, faults: f, active: true, mode: modeIdle}
	a.q, a.v, a.effort = make([]float64, len(joints)), make([]float64, len(joints)), make([]float64, len(joints))
	a.hand = hand{homed: !f.Unhomed}
	return a
}

// set changes the faults while it runs.
func (a *arm) set(f func(*Faults)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.faults)
}

// govern is the sim.Governor: one step of the controller.
func (a *arm) govern(r *sim.Reading, axes []sim.Drive, jaw *sim.JawDrive) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now, a.force = r.Now, r.Contact
	for i, x := range r.Axes {
		a.q[i], a.v[i], a.effort[i] = x.X, x.V, x.Effort
	}
	if !a.begun {
		a.begun = true
		a.want = make([]knot, len(a.joints))
		for i := range a.want {
			a.want[i] = knot{q: []float64{a.q[i]}, v: []float64{0}, a: []float64{0}}
		}
		a.hand.start(r.Aperture)
	}
	dt := r.Step.Seconds()
	a.control(dt)
	a.watch()
	for i := range axes {
		axes[i] = sim.Drive{X: a.want[i].q[0], V: a.want[i].v[0], A: a.want[i].a[0]}
	}
	*jaw = a.hand.step(r.Aperture, r.Jaw, r.Now)
}

// control is what the trajectory controller does in one step.
func (a *arm) control(dt float64) {
	if a.run == nil {
		a.slow(dt)
		return
	}
	t := a.now.Sub(a.run.began)
	jolt := 0.0
	for j := range a.want {
		q, v, acc := a.run.path.at(t.Seconds(), j)
		jolt = math.Max(jolt, math.Abs(v-a.want[j].v[0])/dt)
		a.want[j].q[0], a.want[j].v[0], a.want[j].a[0] = q, v, acc
	}
	if jolt > reflexJolt {
		a.reflex("joint_motion_generator_velocity_discontinuity")
		return
	}
	for j, most := range a.run.lim.path {
		if most > 0 && math.Abs(a.want[j].q[0]-a.q[j]) > most {
			a.end(control_msgs.FollowJointTrajectory_Result_PATH_TOLERANCE_VIOLATED)
			return
		}
	}
	if t >= a.run.path.end() {
		a.arrive()
	}
}

// arrive ends a goal whose time is over, when it is met or when it is late.
func (a *arm) arrive() {
	met := true
	for j, most := range a.run.lim.goal {
		off := math.Abs(a.want[j].q[0] - a.q[j])
		met = met && (most == 0 || off <= most) && math.Abs(a.v[j]) < stillSpeed
	}
	late := a.run.lim.late
	switch {
	case met:
		a.end(control_msgs.FollowJointTrajectory_Result_SUCCESSFUL)
	case late > 0 && a.now.After(a.run.began.Add(a.run.path.end()+late)):
		a.end(control_msgs.FollowJointTrajectory_Result_GOAL_TOLERANCE_VIOLATED)
	}
}

// slow brakes what was commanded to a rest.
func (a *arm) slow(dt float64) {
	for j := range a.want {
		v := a.want[j].v[0]
		dv := math.Copysign(math.Min(math.Abs(v), brakeRate*dt), v)
		a.want[j].q[0] += (v - dv/2) * dt
		a.want[j].v[0], a.want[j].a[0] = v-dv, -dv/dt
		if v == dv {
			a.want[j].a[0] = 0
		}
	}
}

// watch trips reflexes and keeps the mode.
func (a *arm) watch() {
	moving := false
	for _, v := range a.v {
		moving = moving || math.Abs(v) > 0.005
	}
	switch {
	case a.faults.UserStop && a.mode != modeStopped:
		a.drop(modeStopped)
	case a.mode == modeReflex && !moving:
		a.err = "" // the flags read clean while the reflex is latched
	case (a.mode == modeIdle || a.mode == modeMove) && a.hurries():
		a.reflex(tooFast)
	case a.force > reflexForce && (a.mode == modeIdle || a.mode == modeMove):
		a.reflex("cartesian_reflex")
	case a.mode == modeIdle && a.active:
		a.mode = modeMove
	case a.mode == modeMove && !a.active:
		a.mode = modeIdle
	}
}

func (a *arm) reflex(flag string) {
	a.err, a.last = flag, flag
	a.drop(modeReflex)
}

// drop is what a fault does: the arm brakes and the controller is deactivated.
func (a *arm) drop(mode uint8) {
	a.mode, a.active, a.down = mode, false, true
	a.end(control_msgs.FollowJointTrajectory_Result_INVALID_GOAL)
}

// end ends the running goal.
func (a *arm) end(code int32) {
	if a.run != nil {
		a.run.done <- code
		a.run = nil
	}
}

// begin makes a goal the running one, from where the controller wants to be.
func (a *arm) begin(g *control_msgs.FollowJointTrajectory_Goal) (*run, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := knot{q: make([]float64, len(a.want)), v: make([]float64, len(a.want)), a: make([]float64, len(a.want))}
	for j, w := range a.want {
		from.q[j], from.v[j], from.a[j] = w.q[0], w.v[0], w.a[0]
	}
	path, err := newSpline(&g.Trajectory, a.joints, from)
	switch {
	case err != nil:
		return nil, err
	case !a.begun || !a.active:
		return nil, fmt.Errorf("%w: the controller is not active", errGoal)
	case len(path) < 2:
		return nil, fmt.Errorf("%w: all its points lie in the past", errGoal)
	}
	if s := g.Trajectory.Header.Stamp; s.Sec != 0 || s.Nanosec != 0 {
		if begin := time.Unix(int64(s.Sec), int64(s.Nanosec)); begin.Add(path.end()).Before(a.now) {
			return nil, fmt.Errorf("%w: it ends in the past", errGoal)
		}
	}
	a.end(control_msgs.FollowJointTrajectory_Result_INVALID_GOAL) // replaced
	a.run = &run{path: path, began: a.now, lim: tolerances(g, a.joints), done: make(chan int32, 2)}
	if a.faults.SuccessEarly {
		a.run.done <- control_msgs.FollowJointTrajectory_Result_SUCCESSFUL
	}
	return a.run, nil
}

// cancel holds, when r still runs.
func (a *arm) cancel(r *run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run == r {
		a.run = nil
	}
}

// recover clears a reflex or a released user stop; it waits as the real one does.
func (a *arm) recover(ctx context.Context, after func(time.Duration) <-chan time.Time) error {
	a.mu.Lock()
	takes := a.faults.Recovery
	if takes == 0 {
		takes = 400 * time.Millisecond
	}
	switch {
	case a.faults.UserStop:
		a.mu.Unlock()
		return fmt.Errorf("the user stop is pressed")
	case a.mode != modeReflex && a.mode != modeStopped:
		a.mu.Unlock()
		return fmt.Errorf("there is nothing to recover from")
	}
	a.mode = modeHealing
	a.mu.Unlock()
	select {
	case <-after(takes):
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode, a.err = modeIdle, ""
	return nil
}
