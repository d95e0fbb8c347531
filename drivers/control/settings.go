package control

import (
	"fmt"
	"time"
)

// Settings are the operator's choices for planning and following. Start from DefaultSettings: a zero is
// never taken for a default.
type Settings struct {
	// SpeedScale slows every motion: 1 is the planning speed of the robot's description, 0.1 a tenth.
	SpeedScale float64 `yaml:"speed_scale"`
	// Caps of the tool's motion, before SpeedScale: m/s, rad/s, m/s^2, rad/s^2.
	ToolSpeed    float64       `yaml:"tool_speed"`
	ToolTurn     float64       `yaml:"tool_turn"`
	ToolAccel    float64       `yaml:"tool_accel"`
	ToolTurnAcc  float64       `yaml:"tool_turn_accel"`
	BaseSpeed    float64       `yaml:"base_speed"`      // m/s
	BaseTurn     float64       `yaml:"base_turn"`       // rad/s
	BaseAccel    float64       `yaml:"base_accel"`      // m/s^2
	BaseTurnAcc  float64       `yaml:"base_turn_accel"` // rad/s^2
	JointMargin  float64       `yaml:"joint_margin"`    // radians inside every revolute limit; -1: the description's
	KnotInterval time.Duration `yaml:"knot_interval"`

	// Deadline is how long a motion may take from Go when the plan names no time of its own.
	Deadline time.Duration `yaml:"deadline"`
	Tick     time.Duration `yaml:"tick"` // how often a running motion is looked at
	// StateAge: with no complete reading younger than this, nothing moves on.
	StateAge time.Duration `yaml:"state_age"`
	// StallTime without measured progress while motion is commanded is a stall.
	StallTime time.Duration `yaml:"stall_time"`
	// FollowError is how far the tool may be from where the plan has it, metres.
	FollowError float64 `yaml:"follow_error"`
	// ContactStop in newtons: contact that rises this far above its value at the start ends a motion. 0: never.
	ContactStop float64 `yaml:"contact_stop"`
	// A motion has arrived within these of its goal, metres and radians, at rest, inside SettleTime.
	SettlePos  float64       `yaml:"settle_position"`
	SettleRot  float64       `yaml:"settle_rotation"`
	SettleTime time.Duration `yaml:"settle_time"`
	// Measured speeds under which a joint, and the base, stand still.
	RestJoint float64       `yaml:"rest_revolute"`  // rad/s, also the base's yaw
	RestSlide float64       `yaml:"rest_prismatic"` // m/s, also the base
	RestTicks int           `yaml:"rest_ticks"`     // readings in a row
	RungTime  time.Duration `yaml:"rung_time"`      // patience with each rung of the stop ladder
	StopTime  time.Duration `yaml:"stop_time"`      // patience with standstill after the hold, and again after power
	JawTime   time.Duration `yaml:"jaw_time"`       // patience with a jaw that does not report its end
	JawTol    float64       `yaml:"jaw_tolerance"`  // metres of aperture that count as open
	// A plan is refused when the robot has moved further than this since it was made.
	MovedPos   float64 `yaml:"moved_position"` // metres of the tool
	MovedRot   float64 `yaml:"moved_rotation"` // radians of the tool
	MovedJoint float64 `yaml:"moved_revolute"` // radians of any joint
	MovedSlide float64 `yaml:"moved_prismatic"`
}

// DefaultSettings are slower than the vendors' defaults.
func DefaultSettings() Settings {
	return Settings{
		SpeedScale: 1,
		ToolSpeed:  0.25, ToolTurn: 1, ToolAccel: 0.8, ToolTurnAcc: 3,
		BaseSpeed: baseVel, BaseTurn: baseYawVel, BaseAccel: baseAcc, BaseTurnAcc: baseYawAcc,
		JointMargin:  -1,
		KnotInterval: 25 * time.Millisecond,
		Deadline:     30 * time.Second,
		Tick:         20 * time.Millisecond,
		StateAge:     200 * time.Millisecond,
		StallTime:    1500 * time.Millisecond,
		FollowError:  0.15,
		ContactStop:  30,
		SettlePos:    0.003, SettleRot: 0.0174532925, SettleTime: 2 * time.Second,
		RestJoint: 0.01, RestSlide: 0.003, RestTicks: 4,
		RungTime: 300 * time.Millisecond, StopTime: 1500 * time.Millisecond,
		JawTime: 5 * time.Second, JawTol: 0.005,
		MovedPos: 0.005, MovedRot: 0.00872664626, MovedJoint: 0.02, MovedSlide: 0.005,
	}
}

// Validate names the first setting that cannot be right, with the range that is.
func (s Settings) Validate() error {
	for _, c := range []struct {
		key         string
		v, min, max float64
	}{
		{"speed_scale", s.SpeedScale, 0.01, 1},
		{"tool_speed", s.ToolSpeed, 0.001, 2},
		{"tool_turn", s.ToolTurn, 0.01, 6},
		{"tool_accel", s.ToolAccel, 0.01, 10},
		{"tool_turn_accel", s.ToolTurnAcc, 0.05, 20},
		{"base_speed", s.BaseSpeed, 0.01, 0.6},
		{"base_turn", s.BaseTurn, 0.01, 4},
		{"base_accel", s.BaseAccel, 0.01, 0.5},
		{"base_turn_accel", s.BaseTurnAcc, 0.01, 4},
		{"joint_margin", s.JointMargin, -1, 0.5},
		{"knot_interval", s.KnotInterval.Seconds(), 0.005, 0.1},
		{"deadline", s.Deadline.Seconds(), 0.1, 30},
		{"tick", s.Tick.Seconds(), 0.001, 0.1},
		{"state_age", s.StateAge.Seconds(), 0.02, 0.25},
		{"stall_time", s.StallTime.Seconds(), 0.2, 10},
		{"follow_error", s.FollowError, 0.01, 1},
		{"contact_stop", s.ContactStop, 0, 500},
		{"settle_position", s.SettlePos, 1e-4, 0.05},
		{"settle_rotation", s.SettleRot, 1e-3, 0.2},
		{"settle_time", s.SettleTime.Seconds(), 0.1, 10},
		{"rest_revolute", s.RestJoint, 1e-4, 0.2},
		{"rest_prismatic", s.RestSlide, 1e-4, 0.05},
		{"rest_ticks", float64(s.RestTicks), 2, 50},
		{"rung_time", s.RungTime.Seconds(), 0.01, 2},
		{"stop_time", s.StopTime.Seconds(), 0.1, 5},
		{"jaw_time", s.JawTime.Seconds(), 0.5, 20},
		{"jaw_tolerance", s.JawTol, 1e-4, 0.05},
		{"moved_position", s.MovedPos, 1e-4, 0.02},
		{"moved_rotation", s.MovedRot, 1e-4, 0.1},
		{"moved_revolute", s.MovedJoint, 1e-4, 0.05},
		{"moved_prismatic", s.MovedSlide, 1e-4, 0.01},
	} {
		if !(c.v >= c.min && c.v <= c.max) {
			return fmt.Errorf("control setting %s is %g, allowed %g to %g", c.key, c.v, c.min, c.max)
		}
	}
	return nil
}
