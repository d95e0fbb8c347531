package launch

import (
	"context"
	"fmt"
	"log/slog"

	"viad/drivers/control"
	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/sim"
)

// rig is the machine that a launch file names: what moves, what sees, and the time they live in. Nothing
// beyond launch can tell a twin's from a real robot's.
type rig struct {
	body    robot.Body
	sources []sensor.Source
	clock   robot.Clock
	run     func(context.Context) error // nil when there is nothing to run
	// reset puts the world back to a start; nil on a real robot, which nobody but a person puts back.
	reset func(ctx context.Context, seed int64) error
	// release ends a runstop that the stop ladder engaged; nil where only a hand at the robot can.
	release func()
	close   func()
	twin    *sim.Twin // nil on a real robot
}

// openRig is the one place where twin and real robot part.
func (c *Config) openRig(ctx context.Context, log *slog.Logger) (*rig, error) {
	switch c.Robot.Driver {
	case "twin":
		return c.openTwin()
	case "ros":
		return c.openROS(ctx, log)
	case "serial":
		return c.openSerial(ctx, log)
	default:
		return nil, fmt.Errorf("there is no driver %q", c.Robot.Driver)
	}
}

func (c *Config) openTwin() (*rig, error) {
	t, err := sim.NewTwin(sim.Options{Robot: c.Robot.Model, World: c.Robot.World, Seed: uint64(c.Robot.Seed), Pace: sim.Pace(c.Robot.Pace)})
	if err != nil {
		return nil, err
	}
	return &rig{
		body: t.Body(), sources: t.Sources(), clock: t.Clock(), run: t.Run, release: t.Release, close: t.Close, twin: t,
		reset: func(ctx context.Context, seed int64) error { return t.Reset(ctx, uint64(seed)) },
	}, nil
}

// examined is what of the rig can say how it is.
func (r *rig) examined() []robot.Examined {
	var out []robot.Examined
	if e, ok := r.body.(robot.Examined); ok {
		out = append(out, e)
	}
	for _, s := range r.sources {
		if e, ok := s.(robot.Examined); ok {
			out = append(out, e)
		}
	}
	return out
}

// description is the robot as control knows it.
func (c *Config) description() control.Description {
	switch c.Robot.Model {
	case "panda":
		return control.Panda()
	case "stretch4":
		return control.Stretch4()
	}
	return control.FR3()
}
