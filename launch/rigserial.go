package launch

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"viad/drivers/robot"
	"viad/drivers/stretch/bus"
)

// Serial says which serial ports a Stretch 4 is behind.
type Serial struct {
	Dir   string      `yaml:"dir"` // where the ports have their usual names
	Ports SerialPorts `yaml:"ports"`
}

// SerialPorts are ports that are elsewhere; an empty one has its usual name below Dir.
type SerialPorts struct {
	Lift  string `yaml:"lift"`
	Arm   string `yaml:"arm"`
	Omni0 string `yaml:"omni_0"`
	Omni1 string `yaml:"omni_1"`
	Omni2 string `yaml:"omni_2"`
	Power string `yaml:"power"`
	Wrist string `yaml:"wrist"`
}

// checkSerial are the rules of robot.serial; its cameras are checked as those of any robot.
func (c *Config) checkSerial() error {
	if c.Robot.Driver != "serial" {
		return nil
	}
	if c.Robot.Model != "stretch4" {
		return c.complain("robot.driver", "only a stretch4 is driven over its serial ports; a %s is driven over ROS (ros)", c.Robot.Model)
	}
	s := c.Robot.Serial
	if s.Dir == "" {
		return c.complain("robot.serial.dir", "must be the folder of the ports; on the robot it is /dev")
	}
	seen := map[string]bool{}
	for _, p := range []struct{ key, path, usual string }{
		{"dir", s.Dir, ""},
		{"ports.lift", s.Ports.Lift, "hello-motor-lift"},
		{"ports.arm", s.Ports.Arm, "hello-motor-arm"},
		{"ports.omni_0", s.Ports.Omni0, "hello-motor-omni-0"},
		{"ports.omni_1", s.Ports.Omni1, "hello-motor-omni-1"},
		{"ports.omni_2", s.Ports.Omni2, "hello-motor-omni-2"},
		{"ports.power", s.Ports.Power, "hello-power-periph"},
		{"ports.wrist", s.Ports.Wrist, "hello-feetech-wrist"},
	} {
		path := p.path
		if path == "" {
			path = filepath.Join(s.Dir, p.usual)
		}
		switch {
		case !filepath.IsAbs(path):
			return c.complain("robot.serial."+p.key, "must be an absolute path, got %q", path)
		case seen[path]:
			return c.complain("robot.serial."+p.key, "%q is another port already: each board has its own", path)
		}
		seen[path] = true
	}
	return nil
}

// openSerial is a Stretch 4 behind its serial ports, with cameras that are ROS nodes.
func (c *Config) openSerial(ctx context.Context, log *slog.Logger) (*rig, error) {
	s := c.Robot.Serial
	d, err := bus.Open(ctx, bus.Config{
		Dir: s.Dir, Ports: bus.Ports(s.Ports), Tool: "pg4", Clock: robot.WallClock{}, Log: log,
		BaseSpeed: float64(c.Limits.BaseSpeed), BaseTurn: float64(c.Limits.BaseTurn),
	})
	if err != nil {
		return nil, err
	}
	node, err := c.openNode(ctx, "viad", log)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	eyes, err := c.openEyes(ctx, node, log)
	if err != nil {
		return nil, errors.Join(err, d.Close(), node.Close())
	}
	return realRig(d, node, eyes, log), nil
}

// wire is how a real robot is reached, in words.
func (c *Config) wire() string {
	if c.Robot.Driver == "serial" {
		return "its serial ports in " + c.Robot.Serial.Dir + ", its cameras over " + c.Robot.ROS.Wire
	}
	return c.Robot.ROS.Wire
}
