package franka

import (
	"fmt"
	"strings"

	"viad/drivers/robot"
	"viad/ros/msg/franka_msgs"
)

// Kinds of trouble, by who has to do something about it.
const (
	TroubleReflex        Trouble = "reflex"                   // the arm protected itself and is latched
	TroubleUserStop      Trouble = "user stop"                // a stop button, or a safety rule
	TroubleGuiding       Trouble = "guiding"                  // somebody leads the arm by hand
	TroubleBrakes        Trouble = "brakes or FCI"            // not ready for commands at all
	TroubleNotDriven     Trouble = "not driven"               // the controller says that it runs and does not
	TroubleRecovering    Trouble = "recovering"               // wait
	TroubleDead          Trouble = "dead controller node"     // its process is gone or deaf
	TroubleLink          Trouble = "link"                     // the wire between this daemon and the robot's nodes
	TroubleCommunication Trouble = "FCI communication"        // packets are lost between the robot and its computer
	TroubleUnknown       Trouble = "what happened is unknown" // a server went away while it was waited for
	TroubleShort         Trouble = "stopped short"            // the controller gave up
	TroubleReadings      Trouble = "contradictory readings"   // joints are read where the arm cannot have come to
)

// Trouble is a kind of condition.
type Trouble string

// Condition is why the robot does not do what is asked, with what a person does next. It is an error.
type Condition struct { //nolint:errname // a word of its own
	Trouble Trouble
	What    string
	Next    string
	cause   error
}

func (c *Condition) Error() string {
	if c.Next == "" {
		return c.What
	}
	return c.What + ": " + c.Next
}

// Unwrap is the error that it was found by.
func (c *Condition) Unwrap() error { return c.cause }

// Robot modes, the same numbers in both generations.
const (
	modeOther      = franka_msgs.FrankaRobotState_ROBOT_MODE_OTHER
	modeIdle       = franka_msgs.FrankaRobotState_ROBOT_MODE_IDLE
	modeMove       = franka_msgs.FrankaRobotState_ROBOT_MODE_MOVE
	modeGuiding    = franka_msgs.FrankaRobotState_ROBOT_MODE_GUIDING
	modeReflex     = franka_msgs.FrankaRobotState_ROBOT_MODE_REFLEX
	modeUserStop   = franka_msgs.FrankaRobotState_ROBOT_MODE_USER_STOPPED
	modeRecovering = franka_msgs.FrankaRobotState_ROBOT_MODE_AUTOMATIC_ERROR_RECOVERY
)

func modeName(m uint8) string {
	names := [...]string{"other", "idle", "move", "guiding", "reflex", "user stopped", "automatic error recovery"}
	if int(m) >= len(names) {
		return fmt.Sprintf("%d, which is no mode", m)
	}
	return names[m]
}

// ofMode says what a robot_mode means. nil: commands are taken. An idle robot takes none, whatever its controller says of
// itself; active says that it says so.
func ofMode(s *status, active bool) (robot.Mode, *Condition) {
	switch s.mode {
	case modeMove:
		return robot.ModeReady, nil
	case modeReflex:
		return robot.ModeFaulted, reflex(s)
	case modeUserStop:
		return robot.ModeRunstopped, &Condition{
			Trouble: TroubleUserStop, What: "the robot is stopped by its user stop, or by a safety rule of its control",
			Next: "release the button (or clear the rule in Desk), see that nobody is near, then an operator runs the task recover: released alone, it looks healthy and does not move",
		}
	case modeGuiding:
		return robot.ModeFaulted, &Condition{
			Trouble: TroubleGuiding, What: "somebody guides the arm by hand",
			Next: "let go of the guiding buttons and set the robot to execution in Desk",
		}
	case modeRecovering:
		return robot.ModeFaulted, &Condition{Trouble: TroubleRecovering, What: "the robot recovers from an error", Next: "wait; it takes up to 16 s"}
	case modeIdle:
		if active && s.latched {
			return robot.ModeFaulted, &Condition{
				Trouble: TroubleNotDriven, What: "the robot looks healthy and does not move: it is idle since a user stop or a reflex, though the controller says that it is active",
				Next: "see that nobody is near, then an operator runs the task recover; if it stays so, restart the robot's bring-up",
			}
		}
		if active {
			return robot.ModeFaulted, &Condition{
				Trouble: TroubleNotDriven, What: "the controller says that it is active, but the robot is idle: it did not start",
				Next: "an operator stops the controller and runs the task activate; if it stays so, restart the robot's bring-up",
			}
		}
		return robot.ModeFaulted, &Condition{
			Trouble: TroubleNotDriven, What: "the robot is idle: no controller drives it",
			Next: "an operator runs the task activate",
		}
	default:
		return robot.ModeFaulted, &Condition{
			Trouble: TroubleBrakes, What: "the robot takes no commands (its mode is " + modeName(s.mode) + ")",
			Next: "in Desk: open the brakes, activate FCI, release the user stop; then restart the robot's bring-up if it does not come by itself",
		}
	}
}

// reflex words a latched reflex. The error flags of now are clean once the arm has braked: those of the last motion tell.
func reflex(s *status) *Condition {
	flags := s.last
	if len(flags) == 0 {
		flags = s.current
	}
	c := &Condition{Trouble: TroubleReflex, What: "the arm stopped itself (reflex)"}
	if len(flags) > 0 {
		c.What += ", its reason: " + strings.ReplaceAll(strings.Join(flags, ", "), "_", " ")
	}
	c.Next = "look what it touched and free it, then an operator runs the task recover; the motion is not repeated: plan it anew"
	if communication(flags) {
		c.Trouble = TroubleCommunication
		c.Next = "commands came late or not at all: check the real-time kernel, the network between the robot and its computer (nothing else on it) and power saving; then an operator runs the task recover"
		if s.rate > 0 {
			c.What += fmt.Sprintf(", %.0f %% of the commands arrived", 100*s.rate)
		}
	}
	return c
}

// communication says that all flags are of the kind that lost packets cause, and none of them of contact.
func communication(flags []string) bool {
	for _, f := range flags {
		if f != "communication_constraints_violation" && !strings.HasSuffix(f, "_discontinuity") {
			return false
		}
	}
	return len(flags) > 0
}

func deadNode(what string) *Condition {
	return &Condition{
		Trouble: TroubleDead, What: what,
		Next: "look whether the robot's bring-up (ros2_control_node, franka_control) still runs and restart it by hand; nothing moves by itself after that",
	}
}

func unknown(cause error) *Condition {
	return &Condition{
		Trouble: TroubleUnknown, What: "whether the motion went on is not known", cause: cause,
		Next: cause.Error(),
	}
}
