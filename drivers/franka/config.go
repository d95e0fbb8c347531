package franka

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"viad/drivers/robot"
	"viad/ros"
)

// Kind is which arm.
type Kind string

// The arms.
const (
	FR3   Kind = "fr3"   // franka_ros2
	Panda Kind = "panda" // franka_ros, also FER
)

// Config says which arm is driven and how. The zero value of everything but Node and Robot has a default.
type Config struct {
	Node  ros.Node
	Robot Kind
	Clock robot.Clock  // nil is the wall clock
	Log   *slog.Logger // nil discards

	// Namespace is in front of every name, "/left"; "" is none.
	Namespace string
	// Prefix is what the arm's own joint names begin with: "fr3", "left_fr3", "fr3v2", "fer". "" is the Kind.
	Prefix string
	// Controller is the joint trajectory controller. "" is fr3_arm_controller, on a Panda position_joint_trajectory_controller.
	Controller string
	// Hardware is the hardware component to activate after a fault. "" is FrankaHardwareInterface. ROS 2 only.
	Hardware string

	GripForce float64 // N; 0 is 40
	GripSpeed float64 // m/s of aperture; 0 is 0.1

	// PathTolerance and GoalTolerance are set in every goal, since the stock controller has none: radians of each joint.
	// 0 is 0.1 and 0.02.
	PathTolerance, GoalTolerance float64
	// AutoRecover lets the driver try once by itself to recover from a communication fault. Reflexes after contact, a
	// user stop and a second fault are for the operator alone.
	AutoRecover bool
}

const (
	defaultForce = 40  // N
	defaultSpeed = 0.1 // m/s
	defaultPath  = 0.1
	defaultGoal  = 0.02
)

func (c *Config) fill() error {
	switch {
	case c.Node == nil:
		return errors.New("franka: a ros.Node is needed")
	case c.Robot != FR3 && c.Robot != Panda:
		return fmt.Errorf("franka: robot is %q, must be %q or %q", c.Robot, FR3, Panda)
	case c.Namespace != "" && !strings.HasPrefix(c.Namespace, "/"):
		return fmt.Errorf("franka: namespace is %q, must begin with a slash", c.Namespace)
	}
	c.Namespace = strings.TrimSuffix(c.Namespace, "/")
	if c.Clock == nil {
		c.Clock = robot.WallClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	text := func(s *string, d string) {
		if *s == "" {
			*s = d
		}
	}
	text(&c.Prefix, string(c.Robot))
	text(&c.Hardware, "FrankaHardwareInterface")
	text(&c.Controller, map[Kind]string{FR3: "fr3_arm_controller", Panda: "position_joint_trajectory_controller"}[c.Robot])
	for _, n := range []struct {
		name  string
		value *float64
		def   float64
		most  float64
	}{
		{"grip force", &c.GripForce, defaultForce, 70},
		{"grip speed", &c.GripSpeed, defaultSpeed, 0.2},
		{"path tolerance", &c.PathTolerance, defaultPath, 0.5},
		{"goal tolerance", &c.GoalTolerance, defaultGoal, 0.2},
	} {
		if *n.value == 0 {
			*n.value = n.def
		}
		if !(*n.value > 0 && *n.value <= n.most) {
			return fmt.Errorf("franka: %s is %v, must be above 0 and at most %v", n.name, *n.value, n.most)
		}
	}
	return nil
}

// names is the one table of what things are called on the robot's side.
type names struct {
	joints  []string  // in Model order
	fingers [2]string // each moves half the aperture

	measured    string // joint states from the arm itself, as fast as they come
	merged      string // the same through a publisher that merges arm and hand
	state       string // FrankaRobotState or FrankaState
	handJoints  string
	description string // topic, or parameter of ROS 1

	trajectory string // action
	commands   string // the controller's topic
	recovery   string // action
	homing     string // actions of the hand
	move       string
	grasp      string
	stop       string // Trigger, or an action of ROS 1
	list       string // services of the controller manager
	change     string
	hardware   string // "" where there is none
}

func (c *Config) names() names {
	n := names{fingers: [2]string{c.Prefix + "_finger_joint1", c.Prefix + "_finger_joint2"}}
	for i := range joints {
		n.joints = append(n.joints, fmt.Sprintf("%s_joint%d", c.Prefix, i+1))
	}
	at := func(s string) string { return c.Namespace + s }
	n.merged, n.handJoints, n.description = at("/joint_states"), at("/franka_gripper/joint_states"), at("/robot_description")
	n.trajectory, n.commands = at("/"+c.Controller+"/follow_joint_trajectory"), at("/"+c.Controller+"/joint_trajectory")
	n.homing, n.move, n.grasp, n.stop = at("/franka_gripper/homing"), at("/franka_gripper/move"), at("/franka_gripper/grasp"), at("/franka_gripper/stop")
	n.list, n.change = at("/controller_manager/list_controllers"), at("/controller_manager/switch_controller")
	if c.Robot == Panda {
		n.measured, n.state = at("/franka_state_controller/joint_states"), at("/franka_state_controller/franka_states")
		n.recovery, n.commands = at("/franka_control/error_recovery"), at("/"+c.Controller+"/command")
		return n
	}
	n.measured, n.state = at("/franka/joint_states"), at("/franka_robot_state_broadcaster/robot_state")
	n.recovery, n.hardware = at("/action_server/error_recovery"), at("/controller_manager/set_hardware_component_state")
	return n
}

// Patience, each on the robot's clock.
const (
	staleJoints = 250 * time.Millisecond // no motion begins or goes on with joint readings older than this
	staleState  = 500 * time.Millisecond // the same of robot_state, which comes with 30 Hz on ROS 1
	staleHand   = time.Second            // the hand publishes with 15 Hz
	lostAfter   = 2 * time.Second        // silence after which the handshake begins anew
	callTime    = 2 * time.Second        // a service's answer
	readyTime   = time.Second            // a server's presence
	acceptTime  = 400 * time.Millisecond // a goal's acceptance
	haltTime    = 800 * time.Millisecond // one rung, when its context allows more
	tickTime    = 20 * time.Millisecond  // between two looks at a running motion
)
