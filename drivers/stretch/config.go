package stretch

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"viad/drivers/robot"
	"viad/ros"
)

// Config says how the robot is reached. The zero value of everything but Node has a default.
type Config struct {
	Node  ros.Node
	Clock robot.Clock  // nil is the wall clock
	Log   *slog.Logger // nil discards

	// Namespace is in front of every name, "/left"; "" is none.
	Namespace string
	// Driver is the robot's driver node. "" is stretch_driver.
	Driver string
	// Holders are the names under which that driver may hold the lease of the robot's body server. nil is its own.
	Holders []string
	// Tool is the gripper that is expected: "pg4", "sg4"; "" takes what the robot says.
	Tool string
	// BaseSpeed and BaseTurn bound the velocities that are streamed: m/s and rad/s; 0 is 0.24 and 0.8. From more than 0.24 the
	// base would not stand within Deadman after the firmware's watchdog. Plans should not be faster, or they are waited for.
	BaseSpeed, BaseTurn float64
	// BaseUnguarded lets the base of a generation B driver move although nobody would stop it if this process died.
	BaseUnguarded bool
}

func (c *Config) fill() error {
	if c.Node == nil {
		return errors.New("stretch: a ros.Node is needed")
	}
	if c.Namespace != "" && !strings.HasPrefix(c.Namespace, "/") {
		return fmt.Errorf("stretch: namespace is %q, must begin with a slash", c.Namespace)
	}
	c.Namespace = strings.TrimSuffix(c.Namespace, "/")
	if c.Clock == nil {
		c.Clock = robot.WallClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Driver == "" {
		c.Driver = "stretch_driver"
	}
	if c.Holders == nil {
		c.Holders = []string{"ros2_driver", "stretch_driver"}
	}
	if c.Tool != "" && c.Tool != toolPG4 && c.Tool != toolSG4 {
		return fmt.Errorf("stretch: tool is %q, must be %q or %q", c.Tool, toolPG4, toolSG4)
	}
	for _, n := range []struct {
		name      string
		value     *float64
		def, most float64
	}{{"base speed", &c.BaseSpeed, 0.24, 0.24}, {"base turn", &c.BaseTurn, 0.8, 2}} {
		if *n.value == 0 {
			*n.value = n.def
		}
		if !(*n.value > 0 && *n.value <= n.most) {
			return fmt.Errorf("stretch: %s is %v, must be above 0 and at most %v", n.name, *n.value, n.most)
		}
	}
	return nil
}

// names is the one table of what things are called on the robot's side. All are relative to the namespace.
type names struct {
	driver                                        string // node
	joints, odometry, battery, lease, description string // topics
	homed, mode, tool, runstopped                 string // latched topics
	velocity                                      string // topic that we publish
	action                                        string
	stop, home, stow, runstop                     string // services
	positionB, jogA, stateThree, modeThree        string // what tells generations apart
	alive, guard                                  string // between this driver and its Guard
}

func (c *Config) names() names {
	at := func(s string) string { return c.Namespace + "/" + s }
	return names{
		driver: at(c.Driver),
		joints: at("joint_states"), odometry: at("wheel_odom"), battery: at("battery"), lease: at("server_lease_holder"),
		description: at("robot_description"),
		homed:       at("is_homed"), mode: at("mode"), tool: at("tool"), runstopped: at("is_runstopped"),
		velocity: at("cmd_vel"), action: at("follow_joint_trajectory"),
		stop: at("stop_the_robot"), home: at("home_the_robot"), stow: at("stow_the_robot"), runstop: at("runstop_the_robot"),
		positionB: at("joint_velocity_cmd"), jogA: at("joint_vel"), stateThree: at("stretch/joint_states"), modeThree: at("switch_to_position_mode"),
		alive: at("viad/driving"), guard: at("viad/guard"),
	}
}

// Urgent are the names that must not wait behind anything: on rosbridge they belong on its second socket.
func (c Config) Urgent() []string {
	n := c.names()
	return []string{n.velocity, n.stop, n.runstop}
}

// Patience, each on the robot's clock.
const (
	staleJoints = 200 * time.Millisecond // no motion begins with joints or odometry older than this
	staleGoing  = 300 * time.Millisecond // and none goes on; whoever asked for it may have less patience
	lostAfter   = time.Second            // silence after which the handshake begins anew
	silentAfter = 2 * time.Second        // a topic that has publishers and says nothing is told so
	homingMost  = 90 * time.Second       // the robot's state may rest so long while it homes or stows
	callTime    = 2 * time.Second        // a service's answer
	readyTime   = 2 * time.Second        // a server's presence
	acceptTime  = time.Second            // a goal's acceptance
	haltTime    = time.Second            // one rung, when its context allows more
	tickTime    = 20 * time.Millisecond  // between two looks at a running motion
)
