package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/camera"
	"viad/drivers/franka"
	"viad/drivers/geom"
	"viad/drivers/lidar"
	"viad/drivers/robot"
	"viad/drivers/sensor"
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
	return stretch.Config{Node: node, Log: log, Namespace: c.Robot.ROS.Namespace, Tool: "pg4", BaseUnguarded: c.Robot.ROS.BaseUnguarded}
}

// urgent are the names that must not wait behind anything on a rosbridge.
func (c *Config) urgent() []string {
	if c.Robot.Model == "stretch4" {
		return stretch.Config{Namespace: c.Robot.ROS.Namespace, Driver: "stretch_driver"}.Urgent()
	}
	return nil
}

// eye is a real camera or lidar with a life of its own.
type eye interface {
	sensor.Source
	Run(ctx context.Context) error
	Close() error
}

// openEyes opens the cameras of the launch file, and waits for what each must know first.
func (c *Config) openEyes(ctx context.Context, node ros.Node, log *slog.Logger) ([]eye, error) {
	ctx, cancel := context.WithTimeout(ctx, cameraTime)
	defer cancel()
	eyes := make([]eye, 0, len(c.Cameras))
	for _, m := range c.Cameras {
		e, err := m.open(ctx, node, log)
		if err != nil {
			for _, e := range eyes {
				err = errors.Join(err, e.Close())
			}
			return nil, err
		}
		eyes = append(eyes, e)
	}
	return eyes, nil
}

// open opens one of them. A lidar's frame is that of its body, a camera's the optical one.
func (m Camera) open(ctx context.Context, node ros.Node, log *slog.Logger) (eye, error) {
	within := [2]float64{float64(m.Near), float64(m.Far)}
	if m.Points != "" {
		e, err := lidar.Open(ctx, lidar.Config{
			Node: node, Log: log, Name: m.Name, Points: m.Points, Mount: sensor.Mount{Link: m.Link, Pose: m.body()},
			Range: within, Sigma: float64(m.Noise), Latency: m.Latency.D(),
		})
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	optical := geom.Pose{R: geom.FromAxes(r3.Vec{Y: -1}, r3.Vec{Z: -1})}
	e, err := camera.Open(ctx, camera.Config{
		Node: node, Log: log, Name: m.Name, Color: m.Color, Depth: m.Depth, Infos: m.Info,
		Mount: sensor.Mount{Link: m.Link, Pose: m.body().Mul(optical)}, Range: within, Sigma: float64(m.Noise), Latency: m.Latency.D(),
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// cameraTime is what cameras are given to show themselves at the start.
const cameraTime = 15 * time.Second

// body is where the sensor's body is (x where it looks, y left, z up) in its link's frame.
func (m Camera) body() geom.Pose {
	return geom.Pose{
		P: r3.Vec{X: float64(m.Position[0]), Y: float64(m.Position[1]), Z: float64(m.Position[2])},
		R: geom.RPY(float64(m.Turn[0]), float64(m.Turn[1]), float64(m.Turn[2])),
	}
}
