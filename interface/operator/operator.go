// Package operator is the way to the daemon that is not HTTP and not MCP: a Unix socket that only the
// daemon's own user can open, with one JSON object per line each way. It works when the network door is
// shut, busy or wedged. The daemon serves it; viactl speaks it.
//
// A request is {"v":1,"id":7,"op":"stop"}; the answer carries the same id. Unknown keys, operations and
// versions are answered with an error and change nothing. Times are in seconds.
package operator

import (
	"context"
	"errors"
	"fmt"
)

// Version is the protocol's version; both sides must agree.
const Version = 1

// SocketName is the socket's file name inside the daemon's state folder.
const SocketName = "viad.sock"

// maxLine bounds a line of either side in bytes.
const maxLine = 64 << 10

// Op is what is asked.
type Op string

// The operations. Stop and EStop are carried out at once, beside whatever runs.
const (
	OpStatus   Op = "status"   // the state of robot, seat, scene and record
	OpStop     Op = "stop"     // stop the motion and measure standstill
	OpEStop    Op = "estop"    // stop and latch: nothing moves until clear and arm
	OpClear    Op = "clear"    // somebody has looked at the robot: clear the latch; it stays disarmed
	OpArm      Op = "arm"      // allow motion; refused while latched
	OpDisarm   Op = "disarm"   // stop and allow no motion
	OpTakeOver Op = "takeover" // stop, and take the seat from whoever drives
	OpFree     Op = "free"     // give the seat free, whoever has it
	OpDoctor   Op = "doctor"   // what the driver found out about the robot, and what it can do for an operator
	OpDo       Op = "do"       // carry out one of those tasks: homing, recovery; never while armed
)

// Ops lists the operations in the order that help texts use.
func Ops() []Op {
	return []Op{OpStatus, OpStop, OpEStop, OpClear, OpArm, OpDisarm, OpTakeOver, OpFree, OpDoctor, OpDo}
}

// Request is one line to the daemon.
type Request struct {
	V    int    `json:"v"`
	ID   uint64 `json:"id"`
	Op   Op     `json:"op"`
	Name string `json:"name,omitempty"` // with takeover: who shall drive; empty: nobody, until the seat is freed. With do: the task
}

// Answer is one line from the daemon. OK false comes with a sentence in Error.
type Answer struct {
	V      int     `json:"v"`
	ID     uint64  `json:"id"`
	OK     bool    `json:"ok"`
	Error  string  `json:"error,omitempty"`
	Note   string  `json:"note,omitempty"` // what was done, one sentence
	Status *Status `json:"status,omitempty"`
	Health *Health `json:"health,omitempty"` // with doctor
}

// Health is what the driver found out about the machine when it connected, and watches since.
type Health struct {
	Facts []Fact `json:"facts"`
	Tasks []Task `json:"tasks,omitempty"`
}

// Fact is one of these things. Bad says why the robot may not move while it is so, and the next step; empty when it is well.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Bad   string `json:"bad,omitempty"`
	Warn  string `json:"warn,omitempty"`
}

// Task is something that the machine does for an operator alone.
type Task struct {
	Name string `json:"name"`
	What string `json:"what"`
}

// Status is what a person beside the robot wants to know.
type Status struct {
	Name     string   `json:"name"`
	Robot    string   `json:"robot"` // model, and "twin" when it is one
	Face     string   `json:"face"`
	Version  string   `json:"version"`
	UptimeS  float64  `json:"uptime_s"`
	Armed    bool     `json:"armed"`
	Latched  string   `json:"latched,omitempty"` // why motion is latched off, empty when it is not
	Moving   bool     `json:"moving"`
	Mode     string   `json:"mode"`               // what the body says of itself
	Fault    string   `json:"fault,omitempty"`    // the body's own words
	StateAge float64  `json:"state_age_s"`        // age of the joint reading, negative when there is none
	SceneAge float64  `json:"scene_age_s"`        // age of the newest scene, negative before the first
	SceneSeq uint64   `json:"scene_seq"`          // counts scenes
	Seat     string   `json:"seat,omitempty"`     // who holds the seat, empty when it is free
	Staged   string   `json:"staged"`             // what is staged, in words
	Last     string   `json:"last,omitempty"`     // outcome of the last motion, in words
	Episode  int      `json:"episode"`            // counts episodes since the start
	Refused  uint64   `json:"refused_requests"`   // turned away at the door since the start, for host, origin or token
	MCP      string   `json:"mcp,omitempty"`      // address of the agent's door
	TLS      string   `json:"tls,omitempty"`      // fingerprint and file of its certificate
	Page     string   `json:"page,omitempty"`     // address of the people's page
	Record   string   `json:"record,omitempty"`   // folder of the running episode
	Warnings []string `json:"warnings,omitempty"` // what needs a person, e.g. a recording that stopped
}

// Desk is what the daemon does on request. The text is what was done, for a person; who asked stands in the log
// and in the record.
type Desk interface {
	Status() Status
	Stop(ctx context.Context, who string) (string, error)
	EStop(ctx context.Context, who string) (string, error)
	Clear(ctx context.Context, who string) (string, error)
	Arm(ctx context.Context, who string) (string, error)
	Disarm(ctx context.Context, who string) (string, error)
	TakeOver(ctx context.Context, who, name string) (string, error)
	Free(ctx context.Context, who string) (string, error)
	Health() Health
	Do(ctx context.Context, who, task string) (string, error)
}

// errVersion is what a peer of another version is told.
func errVersion(got int) error {
	return fmt.Errorf("protocol version %d is not spoken here, only %d: use the viactl that came with this viad", got, Version)
}

// do carries out one request of who.
func do(ctx context.Context, d Desk, who string, r Request) Answer {
	a := Answer{V: Version, ID: r.ID}
	err := check(r)
	if err == nil {
		err = perform(ctx, d, who, r, &a)
	}
	if err != nil {
		a.Error = err.Error()
		return a
	}
	a.OK = true
	return a
}

func check(r Request) error {
	switch {
	case r.V != Version:
		return errVersion(r.V)
	case r.Name != "" && r.Op != OpTakeOver && r.Op != OpDo:
		return fmt.Errorf("%s takes no name", r.Op)
	case r.Name == "" && r.Op == OpDo:
		return errors.New("do needs a task; viactl doctor lists them")
	}
	return nil
}

func perform(ctx context.Context, d Desk, who string, r Request, a *Answer) (err error) {
	switch r.Op {
	case OpStatus:
		s := d.Status()
		a.Status = &s
	case OpStop:
		a.Note, err = d.Stop(ctx, who)
	case OpEStop:
		a.Note, err = d.EStop(ctx, who)
	case OpClear:
		a.Note, err = d.Clear(ctx, who)
	case OpArm:
		a.Note, err = d.Arm(ctx, who)
	case OpDisarm:
		a.Note, err = d.Disarm(ctx, who)
	case OpTakeOver:
		a.Note, err = d.TakeOver(ctx, who, r.Name)
	case OpFree:
		a.Note, err = d.Free(ctx, who)
	case OpDoctor:
		h := d.Health()
		a.Health = &h
	case OpDo:
		a.Note, err = d.Do(ctx, who, r.Name)
	default:
		err = fmt.Errorf("%q is not an operation; the operations are %v", r.Op, Ops())
	}
	return err
}

// ErrRefused marks an answer of the daemon that says no, as against a daemon that does not answer.
var ErrRefused = errors.New("refused")
