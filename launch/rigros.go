package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"viad/drivers/franka"
	"viad/drivers/robot"
	"viad/drivers/stretch"
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/ros1"
	"viad/ros/rosbridge"
)

// driver is a real robot's body with a life of its own.
type driver interface {
	robot.Body
	Run(ctx context.Context) error
	Close() error
}

// reachTime bounds the first connection to a robot's ROS graph at the start.
const reachTime = 10 * time.Second

// masterEvery is the time between two looks at a ROS 1 master: a motion whose graph is lost ends within the dead-man.
const masterEvery = 250 * time.Millisecond

// openROS is a real robot behind its ROS graph: the node, the driver, its cameras.
func (c *Config) openROS(ctx context.Context, log *slog.Logger) (*rig, error) {
	node, err := c.openNode(ctx, "viad", log)
	if err != nil {
		return nil, err
	}
	d, err := c.openDriver(ctx, node, log)
	if err != nil {
		return nil, errors.Join(err, node.Close())
	}
	eyes, err := c.openEyes(ctx, node, log)
	if err != nil {
		return nil, errors.Join(err, d.Close(), node.Close())
	}
	return realRig(d, node, eyes, log), nil
}

// realRig is a robot of steel: its driver, its cameras and the node that they are seen through.
func realRig(d driver, node ros.Node, eyes []eye, log *slog.Logger) *rig {
	r := &rig{body: d, clock: robot.WallClock{}}
	for _, e := range eyes {
		r.sources = append(r.sources, e)
	}
	r.run = func(ctx context.Context) error {
		parts := append(make([]part, 0, 1+len(eyes)), part{"driver", d.Run})
		for _, e := range eyes {
			parts = append(parts, part{e.Info().Name, e.Run})
		}
		return supervise(ctx, parts...)
	}
	r.close = func() {
		errs := append(make([]error, 0, 2+len(eyes)), d.Close())
		for _, e := range eyes {
			errs = append(errs, e.Close())
		}
		if err := errors.Join(append(errs, node.Close())...); err != nil {
			log.Warn("the robot's driver was closed with an error", "error", err)
		}
	}
	return r
}

// openNode joins the robot's graph under a name of ours.
func (c *Config) openNode(ctx context.Context, name string, log *slog.Logger) (ros.Node, error) {
	r := c.Robot.ROS
	distro, _ := cdr.ParseDistro(r.Distro)
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	switch r.Wire {
	case "rosbridge":
		trust, err := r.trusts()
		if err != nil {
			return nil, err
		}
		n, err := rosbridge.Dial(ctx, rosbridge.Config{URL: r.URL, TLS: trust, Node: "/" + name, Distro: distro, Urgent: c.urgent(), Log: log})
		if err != nil {
			return nil, fmt.Errorf("robot.ros: %w", err)
		}
		return n, nil
	case "ros1":
		n, err := ros1.Dial(ctx, ros1.Config{Master: r.Master, Name: "/" + name, Host: r.Host, Period: masterEvery, Log: log})
		if err != nil {
			return nil, fmt.Errorf("robot.ros: %w", err)
		}
		return n, nil
	}
	n, err := dds.Open(dds.Config{
		Node: name, Domain: r.Domain, Localhost: r.Localhost, Interfaces: r.Interfaces, Peers: r.Peers, Distro: distro, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("robot.ros: %w", err)
	}
	return n, nil
}

func (c *Config) openDriver(ctx context.Context, node ros.Node, log *slog.Logger) (driver, error) {
	if c.Robot.Model == "stretch4" {
		d, err := stretch.Open(ctx, c.stretch(node, log))
		if err != nil {
			return nil, err
		}
		return d, nil
	}
	r := c.Robot.ROS
	d, err := franka.Open(ctx, franka.Config{
		Node: node, Robot: franka.Kind(c.Robot.Model), Log: log, Namespace: r.Namespace, Controller: r.Controller, AutoRecover: r.AutoRecover,
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (c *Config) stretch(node ros.Node, log *slog.Logger) stretch.Config {
	return stretch.Config{
		Node: node, Log: log, Namespace: c.Robot.ROS.Namespace, Tool: "pg4", BaseUnguarded: c.Robot.ROS.BaseUnguarded,
		BaseSpeed: float64(c.Limits.BaseSpeed), BaseTurn: float64(c.Limits.BaseTurn),
	}
}

// urgent are the names that must not wait behind anything on a rosbridge.
func (c *Config) urgent() []string {
	if c.Robot.Driver == "ros" && c.Robot.Model == "stretch4" {
		return stretch.Config{Namespace: c.Robot.ROS.Namespace, Driver: "stretch_driver"}.Urgent()
	}
	return nil
}
