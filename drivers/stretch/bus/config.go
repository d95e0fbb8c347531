package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"viad/drivers/robot"
)

// Ports are the paths of the seven serial ports. Each that is empty is a name of its own below Dir.
type Ports struct {
	Lift, Arm           string
	Omni0, Omni1, Omni2 string
	Power, Wrist        string
}

// Config says how the robot is reached. The zero value is a Stretch 4 on the computer inside it.
type Config struct {
	// Dir is the folder of the ports' names, "" is /dev; the names are those of the robot's udev rules.
	Dir   string
	Ports Ports
	Clock robot.Clock  // nil is the wall clock
	Log   *slog.Logger // nil discards

	// Tool is the gripper that is expected: "pg4", "sg4"; "" takes the one whose servo answers.
	Tool string
	// BaseSpeed and BaseTurn bound the base: m/s and rad/s; 0 is 0.24 and 0.8. From more than 0.24 the base, free after its
	// watchdog's second, would not stand within Deadman. Plans should not be faster, or they are waited for.
	BaseSpeed, BaseTurn float64
	// Patience is how much longer answers may take than on the robot's own computer: 0 there; up to a second on a machine
	// that is busy with a twin of the robot besides. It does not touch Deadman: no goal reaches further, and a base that is
	// not measured is told to stand.
	Patience time.Duration
}

func (c *Config) fill() error {
	if c.Dir == "" {
		c.Dir = "/dev"
	}
	p := &c.Ports
	table := axisTable()
	names := map[string]bool{}
	for _, x := range []struct {
		path *string
		name string
	}{
		{&p.Lift, table[liftAxis].port},
		{&p.Arm, table[armAxis].port},
		{&p.Omni0, table[omni0].port},
		{&p.Omni1, table[omni1].port},
		{&p.Omni2, table[omni2].port},
		{&p.Power, "hello-power-periph"},
		{&p.Wrist, "hello-feetech-wrist"},
	} {
		if *x.path == "" {
			*x.path = filepath.Join(c.Dir, x.name)
		}
		if names[*x.path] {
			return fmt.Errorf("stretch/bus: the port %s is named twice, each board has its own", *x.path)
		}
		names[*x.path] = true
	}
	if c.Clock == nil {
		c.Clock = robot.WallClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Tool != "" && c.Tool != toolPG4 && c.Tool != toolSG4 {
		return fmt.Errorf("stretch/bus: tool is %q, must be %q or %q", c.Tool, toolPG4, toolSG4)
	}
	if c.Patience < 0 || c.Patience > time.Second {
		return fmt.Errorf("stretch/bus: patience is %v, must be from 0 to 1s", c.Patience)
	}
	return errors.Join(bounded("base speed", &c.BaseSpeed, 0.24, 0.24), bounded("base turn", &c.BaseTurn, 0.8, 2))
}

func bounded(name string, v *float64, def, most float64) error {
	if *v == 0 {
		*v = def
	}
	if !(*v > 0 && *v <= most) {
		return fmt.Errorf("stretch/bus: %s is %v, must be above 0 and at most %v", name, *v, most)
	}
	return nil
}

// Patience, each on the robot's clock.
const (
	pollEvery   = 20 * time.Millisecond  // between two looks at a board
	tickTime    = 20 * time.Millisecond  // between two looks at a running motion
	stepEvery   = 80 * time.Millisecond  // between two commands
	staleStart  = 200 * time.Millisecond // no motion begins with a reading older than this
	staleGoing  = 400 * time.Millisecond // and none goes on: so far the newest goal reaches
	stalePower  = time.Second            // the power board may be slower: a runstop is told by every stepper too
	sendTime    = 300 * time.Millisecond // one command, its answer and its motor sync
	haltTime    = time.Second            // one rung, when its context allows more
	silentAfter = time.Second            // without one good answer a port is opened anew
	againLeast  = 200 * time.Millisecond // between two attempts to open a port, doubled each time
	againMost   = 5 * time.Second
	ownAfter    = 1500 * time.Millisecond // after a motion of ours, in which the robot may still move
	strangeTime = 300 * time.Millisecond  // of moving by itself
)
