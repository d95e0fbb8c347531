package launch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"viad/drivers/stretch"
	"viad/drivers/urdf"
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/msg/all"
	"viad/ros/ros1"
	"viad/ros/rosbridge/server"
	"viad/sim"
	simwire "viad/sim/wire"
)

// twinCommand runs a twin behind the robot's own ROS face: what a launch file of a real robot connects to.
type twinCommand struct {
	Robot      string   `arg:"" enum:"franka,panda,stretch4" help:"franka (an FR3, ROS 2), panda (ROS 1) or stretch4 (ROS 2)."`
	Generation string   `default:"A" enum:"A,A2,B" help:"Which of the Stretch 4's drivers is shown: A, A2 (for A') or B."`
	Serial     string   `help:"A stretch4 on its serial ports: pseudo-terminals with their names in this folder; over ROS come its cameras alone." type:"path" placeholder:"DIR"`
	Rosbridge  string   `help:"Address at which a rosbridge stands in front of it, for example 127.0.0.1:9090." placeholder:"HOST:PORT"`
	Seed       int64    `default:"1" help:"Where things stand."`
	Domain     int      `env:"ROS_DOMAIN_ID" help:"ROS 2 domain, 0 to 232."`
	Network    bool     `help:"Be seen on the network, not on this host alone."`
	Distro     string   `default:"jazzy" help:"The ROS 2 distribution that it shows."`
	Master     string   `default:"127.0.0.1:11311" help:"ROS 1 master, which must be running." placeholder:"HOST:PORT"`
	Rate       float64  `default:"4" help:"Pictures a second of each camera."`
	Cert       string   `help:"Certificate of the rosbridge, PEM; with --key it speaks TLS." type:"path" placeholder:"FILE"`
	Key        string   `help:"Key of the certificate, PEM." type:"path" placeholder:"FILE"`
	Fault      []string `help:"How the robot misbehaves; may be given again. An arm: ${arm_faults}. A stretch4: ${stretch_faults}. A stretch4 with --serial: ${serial_faults}. Each: ${camera_faults}." placeholder:"NAME"`
	Control    string   `help:"Unix socket at which viad twin-control looks behind the sensors, resets the world and switches faults while it runs." type:"path" placeholder:"FILE"`

	link *cable // of the robot to everybody else; nil when nobody can cut it
}

// Run runs until the process is told to end.
func (c *twinCommand) Run(ctx context.Context, s streams) (err error) {
	put, err := c.face()
	if err != nil {
		return err
	}
	if c.Control != "" {
		c.link = new(cable)
	}
	if (c.Cert == "") != (c.Key == "") || c.Cert != "" && c.Rosbridge == "" {
		return usageError{errors.New("--cert and --key go together, and with --rosbridge")}
	}
	if !(c.Rate > 0 && c.Rate <= 30) || c.Seed < 0 {
		return usageError{errors.New("--rate is above 0 and at most 30, --seed 0 or more")}
	}
	node, err := c.node(ctx, c.name())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	model, world, urdfOf, streams := "fr3", "tabletop", "fr3", simwire.FrankaStreams()
	switch c.Robot {
	case "panda":
		model, urdfOf = "panda", "panda"
	case "stretch4":
		model, world, urdfOf, streams = "stretch4", "room", "stretch4_pg4", simwire.StretchStreams()
	}
	text, err := urdf.Source(urdfOf)
	if err != nil {
		return startError{err}
	}
	tw, err := sim.NewTwin(sim.Options{Robot: model, World: world, Seed: uint64(c.Seed), Pace: sim.PaceReal})
	if err != nil {
		return startError{err}
	}
	defer tw.Close()
	face, err := put(tw, node, string(text))
	if err != nil {
		return startError{err}
	}
	defer func() { err = errors.Join(err, face.Close()) }()
	eyes, err := simwire.NewSensors(tw, node, time.Duration(float64(time.Second)/c.Rate), streams)
	if err != nil {
		return startError{err}
	}
	defer func() { err = errors.Join(err, eyes.Close()) }()
	for _, n := range c.Fault {
		switchCameras(eyes, n, true)
	}
	parts := []part{{"twin", tw.Run}, {"robot", face.Run}, {"cameras", eyes.Run}}
	if c.Rosbridge != "" {
		bridge, err := c.node(ctx, "rosbridge_websocket")
		if err != nil {
			return err
		}
		defer func() { _ = bridge.Close() }()
		serve, err := c.bridge(ctx, bridge)
		if err != nil {
			return startError{err}
		}
		parts = append(parts, part{"rosbridge", serve})
	}
	if c.Control != "" {
		desk, err := listenTwin(ctx, c.Control, c.desk(tw, face, eyes))
		if err != nil {
			return startError{err}
		}
		parts = append(parts, part{"control", desk.Run})
	}
	if err := c.said(s.out); err != nil {
		return err
	}
	return supervise(ctx, parts...)
}

// bridge listens for a rosbridge's clients.
func (c *twinCommand) bridge(ctx context.Context, node ros.Node) (func(context.Context) error, error) {
	distro, _ := cdr.ParseDistro(c.Distro)
	srv, err := server.NewServer(server.Options{Node: node, Types: all.New, Distro: distro})
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Rosbridge)
	if err != nil {
		return nil, err
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	}
	return func(ctx context.Context) error { return srv.Serve(ctx, l) }, nil
}

// name is what the robot's own node is called.
func (c *twinCommand) name() string {
	if c.Serial != "" {
		return "cameras"
	}
	return map[string]string{"franka": "franka", "panda": "panda", "stretch4": "stretch_driver"}[c.Robot]
}

// face makes what puts a robot on its wire, by the flags.
func (c *twinCommand) face() (func(*sim.Twin, ros.Node, string) (face, error), error) {
	if c.Serial != "" {
		return c.serialFace()
	}
	if c.Robot == "stretch4" {
		f, err := c.stretchFaults()
		gen := map[string]simwire.Generation{"A": simwire.GenerationA, "A2": simwire.GenerationAPrime, "B": simwire.GenerationB}[c.Generation]
		return func(tw *sim.Twin, node ros.Node, text string) (face, error) {
			return simwire.NewStretch(tw, node, gen, text, f)
		}, err
	}
	f, err := c.faults()
	return func(tw *sim.Twin, node ros.Node, text string) (face, error) {
		return simwire.NewFranka(tw, node, text, f)
	}, err
}

// face is what a robot on its wire has in common with others.
type face interface {
	Run(ctx context.Context) error
	Close() error
}

func (c *twinCommand) said(w io.Writer) error {
	where := fmt.Sprintf("ROS 2 domain %d, this host alone", c.Domain)
	file := "launch/franka.yaml"
	if c.Network {
		where = fmt.Sprintf("ROS 2 domain %d, on every network of this host", c.Domain)
	}
	if c.Robot == "stretch4" {
		file = "launch/stretch4.yaml"
	}
	if c.Rosbridge != "" {
		where += ", and a rosbridge at " + map[bool]string{true: "wss://", false: "ws://"}[c.Cert != ""] + c.Rosbridge
	}
	look := fmt.Sprintf("viad ros topic list --localhost --domain %d", c.Domain)
	if c.Serial != "" {
		where, file = c.serialSaid()+where, "launch/stretch4-serial.yaml"
	}
	if c.Robot == "panda" {
		where, file = "ROS 1 master "+c.Master, "launch/panda-ros1.yaml"
		look = "ROS_MASTER_URI=http://" + c.Master + " rostopic list"
	}
	_, err := fmt.Fprintf(w, "a %s in physics, seed %d, on its own wire: %s\n  look     %s\n  drive    viad run %s\n", c.Robot, c.Seed, where, look, file)
	if err == nil && c.Control != "" {
		_, err = fmt.Fprintf(w, "  control  viad twin-control %s truth\n", c.Control)
	}
	return err
}

func (c *twinCommand) node(ctx context.Context, name string) (ros.Node, error) {
	log := slog.New(slog.DiscardHandler)
	if c.Robot == "panda" {
		ctx, cancel := context.WithTimeout(ctx, reachTime)
		defer cancel()
		n, err := ros1.Dial(ctx, ros1.Config{Master: c.Master, Name: "/" + name, Log: log})
		if err != nil {
			return nil, startError{err}
		}
		return n, nil
	}
	distro, ok := cdr.ParseDistro(c.Distro)
	if !ok || c.Domain < 0 || c.Domain > rosDomains {
		return nil, usageError{fmt.Errorf("--distro %s or --domain %d is not known", c.Distro, c.Domain)}
	}
	n, err := dds.Open(dds.Config{Node: name, Domain: c.Domain, Localhost: !c.Network, Distro: distro, Log: log, Wire: c.link.wire()})
	if err != nil {
		return nil, startError{err}
	}
	return n, nil
}

// guardCommand is the dead-man of a Stretch's base, for a driver that repeats the last velocity for ever.
type guardCommand struct{ fileArgument }

// Run runs until the process is told to end.
func (c *guardCommand) Run(ctx context.Context, s streams) (err error) {
	cfg, err := Read(c.File)
	if err != nil {
		return usageError{err}
	}
	if cfg.Robot.Model != "stretch4" || cfg.Robot.Driver != "ros" {
		return usageError{errors.New("only a Stretch over ROS has a base to guard")}
	}
	log := cfg.logger(s.err)
	node, err := cfg.openNode(ctx, "viad_guard", log)
	if err != nil {
		return startError{err}
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	fmt.Fprintf(s.out, "guarding the base of a Stretch over %s: it is told to stop when viad has driven it and falls silent\n", node.Wire())
	return stretch.Guard(ctx, cfg.stretch(node, log))
}
