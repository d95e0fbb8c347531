// Package robot says what a robot is: what can be asked of it, what it answers, and who
// answers. It knows no transport, no physics engine and no particular machine.
//
// Units are SI and radians. Every pose is in the odometry frame unless a name says otherwise:
// for a fixed arm that is the arm's base frame; for a mobile robot it is the frame in which the
// base's odometry counts, z up, z = 0 on the floor, and the base frame is base_footprint.
//
// One tool convention holds for every gripper: origin at the closure point (the midpoint between
// the finger pads), x the approach direction, y the opening line, z = x cross y. On a Franka hand
// that is x = z_hand, y = -y_hand, z = x_hand; on Stretch it is the tool site's own axes.
package robot

import (
	"context"
	"errors"
	"time"

	"viad/drivers/geom"
)

// Model is the fixed description of a robot, in the order that State.Q and trajectories use.
type Model struct {
	Name   string
	Mobile bool // a planar base is part of every plan
	Joints []Joint
	Jaw    JawSpec
}

// Joint is one actuated joint. Metres for a prismatic joint, radians for a revolute one.
type Joint struct {
	Name      string
	Prismatic bool
	Min, Max  float64 // position limits
	Vel, Acc  float64 // speed and acceleration limits, per second and per second squared
}

// JawSpec is the gripper's range: aperture between the pads in metres.
type JawSpec struct {
	Min, Max float64 // metres
	Speed    float64 // metres per second of aperture
	Force    float64 // newtons, the default grip force
}

// JawTarget asks for an open or closed jaw.
type JawTarget struct{ Open bool }

// Jaw is the measured jaw.
type Jaw struct {
	Known    bool    // false: no reading, the other fields mean nothing
	Aperture float64 // metres between the pads
	Speed    float64 // metres per second, positive opens
	Open     bool    // the last commanded state that ended plausibly; at start, aperture > half
	Holding  bool    // closed on something: commanded closed, at rest, aperture above empty
}

// Mode is what the body says of itself.
type Mode int

// The modes of a body. The zero value is ModeUnknown: missing is never taken for ready.
const (
	ModeUnknown Mode = iota
	ModeReady
	ModeMoving
	ModeFaulted    // needs a person: reflex, driver fault, lost servo
	ModeRunstopped // a stop button or protective stop is engaged
)

// String is the mode in lower-case words.
func (m Mode) String() string {
	return [...]string{"unknown", "ready", "moving", "faulted", "runstopped"}[m]
}

// State is one immutable reading. Missing is missing, never zero: Q is nil without joint
// positions, HasBase false without odometry, Jaw.Known false without a jaw reading.
type State struct {
	Seq      uint64
	Received time.Time // local receive time on the robot.Clock; ages are measured from here
	Stamp    time.Time // the source's own stamp; diagnostic only
	Changed  time.Time // when any value last changed; a driver that echoes never changes
	Q        []float64 // joint positions, Model order
	QD       []float64 // joint speeds, Model order
	HasBase  bool
	Base     geom.SE2 // pose of the base in the odometry frame; identity for a fixed arm
	BaseV    geom.SE2 // speed of the base in its own frame, per second
	Jaw      Jaw
	Contact  float64 // largest contact effort the body senses at the hand, newtons; 0 when it senses none
	Mode     Mode
	Fault    string // words for a person, empty when none
}

// Complete reports whether joints, base and jaw are all present and finite for m.
func (s State) Complete(m *Model) bool {
	if len(s.Q) != len(m.Joints) || len(s.QD) != len(m.Joints) || !s.HasBase || !s.Base.Finite() || !s.Jaw.Known {
		return false
	}
	for i := range s.Q {
		if !finite(s.Q[i]) || !finite(s.QD[i]) {
			return false
		}
	}
	return finite(s.Jaw.Aperture) && s.BaseV.Finite()
}

// How far past its limit a joint may be read: motors sag and gears give, more is no reading of this robot.
const (
	pastTurn  = 0.1  // radians
	pastSlide = 0.02 // metres
)

// Implausible names the first joint of a complete state that is read where the joint cannot be: joints in another
// order, other units, another robot. Less than 0 when there is none; past is how far past its limit.
func (s State) Implausible(m *Model) (joint int, past float64) {
	for i, j := range m.Joints {
		slack := pastTurn
		if j.Prismatic {
			slack = pastSlide
		}
		if past = max(j.Min-s.Q[i], s.Q[i]-j.Max); !(past <= slack) {
			return i, past
		}
	}
	return -1, 0
}

func finite(x float64) bool { return x-x == 0 }

// Kind says what a waypoint moves.
type Kind int

// The kinds of waypoint.
const (
	KindNone    Kind = iota
	KindPose         // tool pose, whole body
	KindBase         // base only, the arm keeps its joints
	KindJaw          // jaw only
	KindPoseJaw      // tool pose first, then the jaw (3D face only)
)

// Waypoint is one goal of one kind.
type Waypoint struct {
	Kind Kind
	Tool geom.Pose // goal of the closure point, odometry frame (KindPose, KindPoseJaw)
	Base geom.SE2  // goal of the base, odometry frame (KindBase)
	Jaw  JawTarget // (KindJaw, KindPoseJaw)
}

// Point is one knot of a trajectory. Between knots positions are cubic in time (Q, QD given).
type Point struct {
	T     time.Duration // from the start of the trajectory, strictly increasing
	Q, QD []float64
	Base  geom.SE2 // odometry frame
	BaseV geom.SE2 // odometry frame, per second (not the base's own frame)
}

// Trajectory is what a body follows. It starts at the measured state and ends at rest.
type Trajectory struct{ Points []Point }

// Duration is the time of the last point.
func (t Trajectory) Duration() time.Duration {
	if len(t.Points) == 0 {
		return 0
	}
	return t.Points[len(t.Points)-1].T
}

// LinkClass says which clearance rule a capsule falls under.
type LinkClass int

// Arm, base and hand body must keep clear; fingers and a held object may touch.
const (
	ClassArm LinkClass = iota
	ClassBase
	ClassHand
	ClassFinger
	ClassHeld
)

// String is the class in words.
func (c LinkClass) String() string {
	return [...]string{"arm", "base", "hand", "finger", "held object"}[c]
}

// LinkCapsule is a body part in space: a capsule of one link, odometry frame.
type LinkCapsule struct {
	Link  string
	Class LinkClass
	geom.Capsule
}

// Swept is the robot's volume at one instant of a plan.
type Swept struct {
	T        time.Duration
	Tool     geom.Pose
	Base     geom.SE2
	Q        []float64
	Capsules []LinkCapsule // of the robot at T; then, for a Loose body, parts that may be elsewhere at T
}

// Margin is how far a joint stays from its nearer limit over the whole plan.
type Margin struct {
	Joint string
	Value float64 // least distance to a limit, metres or radians; negative when past it
}

// Plan is made once from a measured state, and is what stage previews, guard checks and control follows.
type Plan struct {
	Waypoint Waypoint
	FromSeq  uint64    // State.Seq it was made from
	From     State     // the state it was made from
	Start    geom.Pose // tool pose at From, odometry frame
	End      geom.Pose // tool pose that the trajectory ends at
	EndBase  geom.SE2
	EndQ     []float64
	Traj     Trajectory // empty for a jaw-only plan
	Sweep    []Swept    // dense enough that no point of the robot moves over 1 cm between two samples
	Margins  []Margin
	Deadline time.Time // on the robot.Clock: stop by then; zero means the executor's own 30 s from Go
}

// Unreachable is a Planner's reason that there is no plan. It is written for an agent choosing its next waypoint.
type Unreachable struct { //nolint:errname // a word of the contract
	Joint string    // the joint that runs out, or empty
	By    float64   // how far past its limit the joint would have to go, metres or radians
	Unit  string    // "m" or "rad"
	Gap   float64   // distance in metres between the goal and the nearest tool position found
	Turn  float64   // angle in radians between the goal and the nearest tool rotation found
	Near  geom.Pose // the nearest tool pose found, odometry frame
	Why   string    // one sentence
}

// Error is one sentence with the joint and the amount.
func (u *Unreachable) Error() string { return u.Why }

// Result is how a motion ended, decided by measured joints.
type Result int

// The results. Unknown locks further motion until the state is read again.
const (
	ResultUnknown Result = iota
	ResultReached
	ResultStoppedShort
	ResultContact
	ResultFaulted
)

// String is the result as the tools print it.
func (r Result) String() string {
	return [...]string{"unknown", "reached", "stopped_short", "contact", "faulted"}[r]
}

// StopState says what is known of standstill at the end of a motion.
type StopState int

// Standstill is confirmed by measured velocity or it is not.
const (
	StopNotConfirmed StopState = iota
	StopConfirmed
)

// String is the wording that results use.
func (s StopState) String() string {
	return [...]string{"stop NOT confirmed: use the e-stop", "stopped, confirmed"}[s]
}

// Outcome is what a motion came to.
type Outcome struct {
	Result   Result
	Stop     StopState
	Why      string // one sentence when the motion was cut short, went wrong or was not borne out by pictures, else empty
	Before   State  // state when motion began
	After    State  // state after standstill
	Ordered  geom.Pose
	Realized geom.Pose
	Took     time.Duration // on the robot.Clock, from Go to standstill
	Planned  time.Duration
	JawFrom  Jaw
	JawTo    Jaw
	Followed Followed
}

// Followed is what was observed on the way of what was commanded.
type Followed struct {
	Readings int           // new readings while the trajectory moved
	Exact    int           // those that lay on the commanded path, or on its end, to within a millionth
	Lag      time.Duration // the longest time that an exact reading trailed the command
	Apart    float64       // the largest distance in metres between the tool and where the plan had it
}

// echoed is how many exact readings are no chance.
const echoed = 5

// Echo says that the readings look like the commands themselves: without noise, every one. No motor follows so. It
// is no proof: only what the robot is seen to do is.
func (f Followed) Echo() bool { return f.Readings >= echoed && f.Exact == f.Readings }

// Planner makes plans; control implements it. The error is *Unreachable when the goal cannot be reached.
type Planner interface {
	Plan(State, Waypoint) (Plan, error)
}

// Robot moves along plans. Controller, guard and recorder are one.
type Robot interface {
	// State never blocks.
	State() State
	// Go follows a plan and returns after standstill. An error means that nothing moved or that the
	// robot could not be commanded; a cut-short motion is an Outcome.
	Go(context.Context, Plan) (Outcome, error)
	// Stop runs beside Go, walks the stop ladder and returns nil only when standstill was measured.
	Stop(context.Context) error
}

// EStopper is a Robot whose last rung can be asked for at once: runstop, or controller off. A Robot that is none has
// no such rung, and an e-stop of it is a Stop.
type EStopper interface {
	// EStop runs beside Go. It asks for RungPower first and for the milder rungs if that does not answer, and
	// returns nil only when standstill was measured.
	EStop(context.Context) error
}

// Rung is one step of the stop ladder, mildest first.
type Rung int

// The rungs.
const (
	RungZeroVelocity Rung = iota // command zero velocity
	RungCancel                   // cancel the running goal
	RungHold                     // hold at the measured pose
	RungPower                    // runstop, or controller off
)

// String names the rung.
func (r Rung) String() string {
	return [...]string{"zero velocity", "cancel", "hold", "runstop"}[r]
}

// LongestGoal bounds one trajectory: a body must take one so long, and may refuse a longer one. A goal that nobody
// ends then ends by itself. Motions are stopped earlier by a cap of their own.
const LongestGoal = 45 * time.Second

// ErrHalted is what a motion that Halt ended returns: no reason of its own.
var ErrHalted = errors.New("halted")

// Body is a machine: franka, stretch and the twin. Only control calls it.
type Body interface {
	State() State
	// Follow runs a trajectory to its end and blocks meanwhile. It refuses, before anything moves, a
	// trajectory that is malformed, out of the joint limits, or does not start at the measured state.
	// When ctx ends it stops following and holds.
	Follow(context.Context, Trajectory) error
	// Grip moves the jaw and blocks until it is at rest or blocked.
	Grip(context.Context, JawTarget) error
	// Halt runs beside Follow and Grip, and ends them with an error that is ErrHalted.
	Halt(context.Context, Rung) error
	// Deadman is the longest time the body may go on moving after the daemon is gone.
	Deadman() time.Duration
}

// Loose is a Body whose joints do not keep to a plan's times: each may be anywhere on its way between now and so much
// later, by itself. Plans for it sweep that too.
type Loose interface {
	// Ahead is how far ahead of the base and of one another the joints may be, in the Model's order; nil when they keep
	// to times.
	Ahead() []time.Duration
}

// Kinematics gives link poses and collision capsules for joint values.
type Kinematics interface {
	Model() *Model
	// Tool is the pose of the closure point, odometry frame.
	Tool(base geom.SE2, q []float64) geom.Pose
	// Link is the pose of a named link, odometry frame; false when there is no such link.
	Link(name string, base geom.SE2, q []float64, aperture float64) (geom.Pose, bool)
	// Capsules is the collision shape of the whole robot, odometry frame.
	Capsules(base geom.SE2, q []float64, aperture float64) []LinkCapsule
	// WristMount is the distance in metres from the closure point back along the approach axis to the
	// point nearest the wrist's pitch axis: the pivot of the 2D face's tilts. Zero for a fixed arm.
	WristMount() float64
}
