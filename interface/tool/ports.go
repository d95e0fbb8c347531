package tool

import (
	"context"
	"encoding/json"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/interface/stage"
	"viad/safety"
)

// Stage is the staged waypoint as the tools use it; *stage.Stage is one. A refusal is a *safety.Refused and
// changes nothing.
type Stage interface {
	Viewer
	Editor
	Editor3D
	Editor2D
	Executor
}

// Viewer gives what is to be drawn.
type Viewer interface {
	// Snapshot is the newest state of things; it pins nothing.
	Snapshot() *stage.Snapshot
	// Show is what the seat is shown now: clicks resolve in it from now on, and the preview counts as seen.
	Show() *stage.Snapshot
	// Pinned is what the seat was last shown.
	Pinned() *stage.Snapshot
	// Refresh waits for a scene that is newer than now.
	Refresh(ctx context.Context) error
}

// Editor is what both faces edit.
type Editor interface {
	TeleportTo(p r3.Vec) error
}

// Editor3D edits target and viewport of the 3D face: metres and radians, robot frame.
type Editor3D interface {
	Drag(right, down float64, constraint string) (r3.Vec, error) // pixels of the 1280x800 picture
	Translate(d r3.Vec) (r3.Vec, error)
	Advance(steps int) (r3.Vec, error)
	RotateGizmo(axis string, rad float64) error
	Toggle(state string) (changed bool, err error)
	ResetToReal() error
	OrbitBy(daz, del float64) (clamped bool, err error)
	PanBy(right, up float64) error
	ZoomBy(u, v float64, steps int) (clamped bool, err error)
	CameraReset() error
}

// Editor2D edits the staged waypoint of the 2D face: metres and radians.
type Editor2D interface {
	TranslateRobot(d r3.Vec) error
	TranslateWrist(d r3.Vec) error
	RotateWrist(roll, up, left float64) error
	SetJaw(open bool) error
	ResetTarget() (wasStaged bool, err error)
	NavTranslate(dx, dy float64) error
	NavRotate(rad float64) error
}

// Executor moves the robot.
type Executor interface {
	Execute(ctx context.Context, called time.Time, id uint64) (*stage.Report, error)
	// MarkDelivered says that the result of execute id reached who asked for it.
	MarkDelivered(id uint64)
	Stop(ctx context.Context) error
	EndEpisode(ctx context.Context, reset func(context.Context) error) error
}

// Episode ends the running episode: it saves, and resets a twin's world; a real robot does not move.
type Episode interface {
	End(ctx context.Context) (Verdict, error)
}

// Verdict is what may be told of an episode that ended.
type Verdict struct {
	Saved     string // folder that holds it, as the operator would name it; empty when nothing was kept
	Reset     bool   // the world was put back to a start
	Judged    bool   // a task was set and its predicate looked at
	Succeeded bool
	Note      string // one sentence more, or empty
}

// Seat is the one driver's place; *safety.Seat is one.
type Seat interface {
	// Take gives the seat to name when it is free or already theirs, or refuses and names the holder.
	Take(name string) *safety.Refused
	// Keep counts a call of name against silence.
	Keep(name string) bool
	// Free gives the seat back.
	Free(name string) bool
	// Holder is who sits there; empty when it is free.
	Holder() (name string, since, last time.Time)
}

// Recorder keeps what was called and what came of it. It must not block for long and must not change what
// it is given.
type Recorder interface {
	Call(Record)
}

// Record is one finished call.
type Record struct {
	At        time.Time // when the call came in, robot.Clock
	Took      time.Duration
	Principal string
	Role      string
	Tool      string
	ID        string // JSON-RPC id
	Args      json.RawMessage
	Texts     []string
	Pictures  []Picture
	Refused   bool
	Shown     *stage.Snapshot // what the pictures were drawn from; nil without pictures
	Report    *stage.Report   // of an execute that ran, else nil
	Lost      bool            // the reply did not reach the client
}

// Picture is one encoded view.
type Picture struct {
	View string // "ui", "head", "wrist", "nav_map"
	JPEG []byte
}
