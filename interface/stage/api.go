// Package stage holds the one waypoint that is being staged: edit, plan, preview, execute. It owns the
// geometry of the edits of both faces, the caps, the modes, what was last shown to the seat, and the rule
// that a preview dies. It draws nothing and knows no MCP.
//
// Poses are in the odometry frame (package robot). "Robot axes" of the 2D face are those of the current
// real base; of the 3D face, those of the arm's base, which is the odometry frame.
package stage

import (
	"context"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/perception"
	"viad/safety"
)

// Face chooses the rules of edits.
type Face int

// The two faces.
const (
	Face3D Face = iota // dense depth, fixed arm: target is always there, carries pose and jaw together
	Face2D             // sparse depth, mobile robot: one kind per waypoint
)

// Mode is the kind staged on the 2D face; ModeNone on the 3D face.
type Mode int

// The modes.
const (
	ModeNone Mode = iota
	ModePose
	ModeNav
	ModeGripper
)

// String is the mode as proprio prints it.
func (m Mode) String() string { return [...]string{"none", "pose", "nav", "gripper"}[m] }

// Gripper is a gripper pose with its jaw.
type Gripper struct {
	Pose geom.Pose // closure point, tool convention, odometry frame
	Open bool
}

// Check is what can be said of the staged target before it moves. It warns; execute refuses.
type Check struct {
	Staged    bool   // something differs from the real gripper
	Reachable bool   // there is a plan
	Reach     string // one sentence: reachable with the tightest joint, or which joint runs out and by how much
	Clear     bool   // the way is clear of what the sensors see, and inside the box
	Way       string // one sentence: clear by how much, or what is in the way and where
	Notes     []string
	Duration  time.Duration // planned time of the motion
	Hit       r3.Vec        // where the way is blocked; valid when HasHit
	HasHit    bool
	Touch     []r3.Vec           // where fingers or what they hold may touch, as Notes say
	Plan      *robot.Plan        // nil when there is none
	Near      *robot.Unreachable // set when not reachable
	Refused   *safety.Refused    // what execute would answer now; nil when it would move
}

// Orbit is the 3D face's viewport camera. It orbits Target at Distance metres.
// camera = Target + D (cos e sin z, -cos e cos z, sin e), z azimuth, e elevation (radians here; degrees in tools).
type Orbit struct {
	Target    r3.Vec
	Distance  float64
	Azimuth   float64
	Elevation float64
}

// Snapshot is an immutable copy of all that a picture needs.
type Snapshot struct {
	Face       Face
	Scene      *perception.Scene
	State      robot.State
	HasReal    bool // false: no complete robot state yet, Real and Target mean nothing
	Real       Gripper
	Aperture   float64 // measured, metres
	JawBetween bool    // the real jaw rests neither open nor closed nor on an object
	Target     Gripper
	JawStaged  bool // the target's jaw is to move, also when Real says that it is so and JawBetween that it is not
	Mode       Mode
	Teleported bool
	BaseDelta  geom.SE2 // staged base motion on the current real axes (ModeNav)
	Check      Check
	Orbit      Orbit
	Barred     *safety.Refused // why nothing may move at all: not armed, latched, no fresh state; nil when it may, or moves
	Moving     bool
	Last       *Report // outcome of the last execute, nil before the first
	LastShown  bool    // its result was delivered
	JustRan    bool    // nothing was staged since Last
	Episode    int
	Finished   bool // task succeeded: only end_episode is left
	Now        time.Time
}

// OnAxes is a pose of the odometry frame on the robot axes: those of the current real base.
func (sn *Snapshot) OnAxes(p geom.Pose) geom.Pose { return sn.State.Base.Pose().Inv().Mul(p) }

// PointOnAxes is a point of the odometry frame on the robot axes.
func (sn *Snapshot) PointOnAxes(p r3.Vec) r3.Vec { return sn.State.Base.Pose().Inv().Point(p) }

// Offset is the vector from the real gripper's closure point to p (odometry frame), on the robot axes.
func (sn *Snapshot) Offset(p r3.Vec) r3.Vec {
	return sn.State.Base.Pose().Inv().Dir(r3.Sub(p, sn.Real.Pose.P))
}

// Report is what an execute came to.
type Report struct {
	ID                        uint64
	Mode                      Mode
	Kind                      robot.Kind // what was asked to move
	Outcome                   robot.Outcome
	Ordered                   Gripper  // odometry frame
	Realized                  Gripper  // odometry frame
	Base                      geom.SE2 // base pose after, odometry frame
	OrderedBase, RealizedBase geom.SE2 // displacements on the pre-execution axes (ModeNav)
	Message                   string   // when cut short or task success, else empty
	Success                   bool     // the task's predicate held at rest
}

// OnAxes is a pose of the odometry frame on the robot axes after the execution.
func (r *Report) OnAxes(p geom.Pose) geom.Pose { return r.Base.Pose().Inv().Mul(p) }

// Mover is the guarded robot.
type Mover interface {
	State() robot.State
	Go(context.Context, robot.Plan) (robot.Outcome, error)
	Stop(context.Context) error
}

// Checker is the guard's judgement of a plan without its arm switch.
type Checker interface {
	// Check judges geometry: box, joints, speed, clearance of the sweep in sc. nil means it may move;
	// warnings are contacts of fingers and held object. hit is what comes nearest to the parts that must keep
	// clear, also when that is far enough: stage tells sensor noise from a moved scene by how its distance changed.
	Check(p robot.Plan, sc *perception.Scene) (warnings []safety.Warning, hit perception.Hit, refused *safety.Refused)
	// Ready says whether motion is allowed at all now: armed, not latched, not moving, fresh state.
	Ready() *safety.Refused
}

// Scenes is where pictures come from.
type Scenes interface {
	// Scene is the newest fused scene; nil before the first.
	Scene() *perception.Scene
	// Refresh blocks until a scene exists whose exposures are all at or after t. It must end by itself when a
	// sensor is silent: after a motion stage waits for it whether or not anybody still waits for stage.
	Refresh(ctx context.Context, t time.Time) (*perception.Scene, error)
}

// Judge says, at rest after an execute, whether the episode's task has succeeded. A real robot has none.
type Judge interface {
	Succeeded() bool
}
