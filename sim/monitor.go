package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// Rules are what a Monitor watches; a zero leaves its rule out. Lengths in metres, angles in radians.
type Rules struct {
	// Box is where the closure point may be, in the base's frame. A robot that is outside may come back; BoxSlack
	// is how far past the box, or past the nearest that it has been since, it may go.
	Box      *r3.Box
	BoxSlack float64
	// JointSlack is how far past the model's range a joint may be; the stops of the simulation are soft.
	JointSlack float64
	// Greatest speeds, as means over 20 ms, so that the jolt of a contact is none. JointSpeed is a share of each
	// joint's own. SpeedSlack is what may be added, as a share.
	JointSpeed, ToolSpeed, ToolTurn, BaseSpeed, BaseTurn float64
	SpeedSlack                                           float64
	// Still and Drift bound the speed and the way, per joint, of a robot that was stopped or disarmed.
	Still, Drift float64
}

// The rules, as a Violation names them.
const (
	RuleBox        = "tool box"
	RuleJoint      = "joint range"
	RuleJointSpeed = "joint speed"
	RuleToolSpeed  = "tool speed"
	RuleToolTurn   = "tool turn"
	RuleBaseSpeed  = "base speed"
	RuleBaseTurn   = "base turn"
	RuleStopped    = "motion after a confirmed stop"
	RuleDisarmed   = "motion while disarmed"
)

// Violation is one stretch of time in which a rule was broken.
type Violation struct {
	At    time.Time // when it began
	Rule  string
	What  string // the joint, the axis, "a new motion"
	Value float64
	Limit float64
	// What the machine did and felt when it began, for whoever looks for the reason.
	Doing string
	Felt  float64 // N, on the hand
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s, %s %.4f, limit %.4f; %s, %.0f N felt", v.At.Format("15:04:05.000"), v.Rule, v.What, v.Value, v.Limit, v.Doing, v.Felt)
}

// Monitor watches the physics itself, every step, and knows nothing of those that are to keep the rules. Its methods
// may be called from any goroutine.
type Monitor struct {
	t     *Twin
	rules Rules

	// The rest is guarded by t.mu.
	found   []Violation
	last    map[broken]stretch // by what was broken, when last
	steps   uint64
	world   uint64
	outside float64 // least distance out of the box so far
	then    sample  // when the window began
	now     sample

	allowed  uint64 // counts Allow
	disarmed hold
	stopped  hold
}

type broken struct{ rule, what, of string }

// stretch is a violation that may go on: where it is in found, and when it was seen last.
type stretch struct {
	i  int
	at int64
}

// sample is where everything was.
type sample struct {
	at   int64
	x    []float64 // per axis
	tool geom.Pose // world
}

// hold is a robot that must stand where it stood.
type hold struct {
	rule string
	on   bool
	from []float64 // per axis; nil: not yet known
}

// window is the time that speeds are means over. What is broken again within a gap is broken still.
const (
	window = 20 * time.Millisecond
	gap    = 100 * time.Millisecond
)

// mostFound bounds memory; what comes after is only one more of too many.
const mostFound = 1000

// Watch begins to watch, instead of who watched before.
func (t *Twin) Watch(r Rules) *Monitor {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.monitor = &Monitor{
		t: t, rules: r, last: map[broken]stretch{},
		disarmed: hold{rule: RuleDisarmed}, stopped: hold{rule: RuleStopped},
	}
	return t.monitor
}

// Violations are those so far, by when they began.
func (m *Monitor) Violations() []Violation {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	return slices.Clone(m.found)
}

// Steps is how many steps were watched.
func (m *Monitor) Steps() uint64 {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	return m.steps
}

// SetArmed tells the monitor, once a disarming was answered and before an arming is asked for.
func (m *Monitor) SetArmed(on bool) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	m.disarmed.set(!on)
}

// Allow says, before a motion is asked for, that the robot may move again after a stop.
func (m *Monitor) Allow() {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	m.allowed++
	m.stopped.set(false)
}

// Mark is to be taken before a stop is asked for.
func (m *Monitor) Mark() uint64 {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	return m.allowed
}

// MarkStopped says that a stop was reported confirmed: nothing may move until Allow. When a motion was allowed since
// the mark, which may then run rightly, it does nothing.
func (m *Monitor) MarkStopped(mark uint64) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if mark == m.allowed {
		m.stopped.set(true)
	}
}

func (h *hold) set(on bool) {
	if h.on != on {
		h.on, h.from = on, nil
	}
}

// step looks at the physics after a time step that ended now. The caller holds t.mu.
func (m *Monitor) step(now int64) {
	m.steps++
	m.read(now)
	if m.world != m.t.world { // made anew
		m.world, m.outside = m.t.world, m.past()
		m.stopped.from, m.disarmed.from = nil, nil
		m.turn()
		return
	}
	m.checkJoints()
	m.checkBox()
	whole := now-m.then.at >= int64(window)
	if whole {
		m.now.tool = m.t.p.toolPose()
		m.checkSpeeds()
	}
	a, b := m.checkHold(&m.stopped, whole), m.checkHold(&m.disarmed, whole)
	if whole || a || b {
		m.turn()
	}
}

// turn begins a window.
func (m *Monitor) turn() {
	m.now.tool = m.t.p.toolPose()
	m.then, m.now = m.now, m.then
}

// read takes the joints and the closure point, which MuJoCo gives as they were one step before.
func (m *Monitor) read(now int64) {
	p := m.t.p
	q, v := p.d.Qpos(), p.d.Qvel()
	m.now.x = m.now.x[:0]
	for i := range p.axes {
		x, _ := p.axes[i].x(q, v)
		m.now.x = append(m.now.x, x)
	}
	at := p.d.SitePos(p.tool)
	m.now.at, m.now.tool.P = now, r3.Vec{X: at[0], Y: at[1], Z: at[2]}
}

// note keeps what is over its limit, or not a number.
func (m *Monitor) note(rule, what, of string, value, limit float64) {
	if value <= limit {
		return
	}
	k, now := broken{rule, what, of}, m.now.at
	s, was := m.last[k]
	if was && now-s.at <= int64(gap) {
		m.found[s.i].Value = math.Max(m.found[s.i].Value, value)
		m.last[k] = stretch{s.i, now}
		return
	}
	if len(m.found) == mostFound {
		return
	}
	m.last[k] = stretch{len(m.found), now}
	m.found = append(m.found, Violation{
		At: m.t.clk.base.Add(time.Duration(now)), Rule: rule, What: what + " " + of, Value: value, Limit: limit,
		Doing: m.t.doing(), Felt: math.Max(m.t.sense.peak, m.t.sense.before),
	})
}

// doing is what drives the reference. The caller holds mu.
func (t *Twin) doing() string {
	since := float64(t.clk.now.Load()-t.began) * 1e-9
	switch p := t.path.(type) {
	case *spline:
		return fmt.Sprintf("following, %.2f s of %.2f s", since, p.knots[len(p.knots)-1].t)
	case ramp:
		return fmt.Sprintf("braking, %.2f s of %.2f s", since, p.t)
	case *governed:
		return "governed"
	}
	return "holding"
}

func (m *Monitor) checkJoints() {
	if m.rules.JointSlack == 0 {
		return
	}
	for i, x := range m.now.x {
		a := &m.t.p.axes[i]
		m.note(RuleJoint, a.spec.name, "past its end", max(a.lo-x, x-a.hi), m.rules.JointSlack)
	}
}

// past is how far the closure point is outside the box.
func (m *Monitor) past() float64 {
	b := m.rules.Box
	if b == nil {
		return 0
	}
	p := m.t.p.odom.Point(m.now.tool.P)
	if m.t.mach.mobile {
		x := m.now.x
		p = geom.SE2{X: x[0], Y: x[1], Yaw: x[2]}.Pose().Inv().Point(p)
	}
	return max(b.Min.X-p.X, p.X-b.Max.X, b.Min.Y-p.Y, p.Y-b.Max.Y, b.Min.Z-p.Z, p.Z-b.Max.Z, 0)
}

func (m *Monitor) checkBox() {
	if m.rules.Box == nil {
		return
	}
	out := m.past()
	m.note(RuleBox, "closure point", "outside", out, m.outside+m.rules.BoxSlack)
	m.outside = math.Min(m.outside, out)
}

func (m *Monitor) checkSpeeds() {
	r, p := &m.rules, m.t.p
	a, b := &m.then, &m.now
	dt := float64(b.at-a.at) * 1e-9
	fast := func(rule, what string, way, limit float64) {
		if limit > 0 {
			m.note(rule, what, "speed", way/dt, limit*(1+r.SpeedSlack))
		}
	}
	first := 0
	if m.t.mach.mobile {
		first = 3
		fast(RuleBaseSpeed, "base", math.Hypot(b.x[0]-a.x[0], b.x[1]-a.x[1]), r.BaseSpeed)
		fast(RuleBaseTurn, "base", math.Abs(b.x[2]-a.x[2]), r.BaseTurn)
	}
	for i := first; i < len(b.x); i++ {
		fast(RuleJointSpeed, p.axes[i].spec.name, math.Abs(b.x[i]-a.x[i]), r.JointSpeed*m.t.mach.axes[i].vel)
	}
	fast(RuleToolSpeed, "closure point", r3.Norm(r3.Sub(b.tool.P, a.tool.P)), r.ToolSpeed)
	fast(RuleToolTurn, "tool", a.tool.Angle(b.tool), r.ToolTurn)
}

// checkHold looks at a robot that must stand: no motion may be begun, and what stands may not move. It reports
// whether the standing has just begun.
func (m *Monitor) checkHold(h *hold, whole bool) (begun bool) {
	if !h.on {
		return false
	}
	if h.from == nil {
		h.from = slices.Clone(m.now.x)
		return true
	}
	if m.t.goal != nil || m.t.grip != nil {
		m.note(h.rule, "a command", "is being followed", 1, 0)
	}
	dt := float64(m.now.at-m.then.at) * 1e-9
	for i, x := range m.now.x {
		name := m.t.p.axes[i].spec.name
		if m.rules.Drift > 0 {
			m.note(h.rule, name, "way", math.Abs(x-h.from[i]), m.rules.Drift)
		}
		if whole && m.rules.Still > 0 {
			m.note(h.rule, name, "speed", math.Abs(x-m.then.x[i])/dt, m.rules.Still)
		}
	}
	return false
}
