package kill

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"viad/drivers/franka"
	"viad/drivers/stretch"
	"viad/drivers/stretch/bus"
	"viad/drivers/urdf"
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/ros/ros1"
	"viad/ros/rtps"
	"viad/sim"
	"viad/sim/wire"
)

// cell is a robot behind one wire.
type cell struct {
	name, file, model string
	gen               wire.Generation // of a Stretch's driver
	wire              string          // dds, rosbridge, ros1, serial
}

func cells() []cell {
	return []cell{
		{"franka-dds", "franka.yaml", "fr3", "", "dds"},
		{"franka-rosbridge", "franka.yaml", "fr3", "", "rosbridge"},
		{"panda-ros1", "panda-ros1.yaml", "panda", "", "ros1"},
		{"stretch-dds-a", "stretch4.yaml", "stretch4", wire.GenerationA, "dds"},
		{"stretch-dds-b", "stretch4.yaml", "stretch4", wire.GenerationB, "dds"},
		{"stretch-rosbridge", "stretch4.yaml", "stretch4", wire.GenerationA, "rosbridge"},
		{"stretch-serial", "stretch4-serial.yaml", "stretch4", "", "serial"},
	}
}

func (c cell) mobile() bool { return c.model == "stretch4" }

// deadman is what the cell's driver states.
func (c cell) deadman() time.Duration {
	switch {
	case c.wire == "serial":
		return new(bus.Robot).Deadman()
	case c.mobile():
		return new(stretch.Robot).Deadman()
	}
	return new(franka.Robot).Deadman()
}

// machine is the robot: a twin that stays, and the programs on its computer, which can be killed.
type machine struct {
	cell
	t      *testing.T
	domain int
	twin   *sim.Twin
	mute   atomic.Bool // no datagram of its DDS comes or goes
	core   *core       // ROS 1
	bridge *bridge
	ports  string // folder of the serial ports
	boards *wire.Serial
	node   *split
	stop   func() error // of the robot's programs; nil while they are dead
}

// face is the robot's nodes.
type face interface {
	Run(ctx context.Context) error
	Close() error
}

// start puts the robot there and returns the settings by which a launch file finds it.
func (c cell) start(t *testing.T) (*machine, settings) {
	t.Helper()
	m := &machine{cell: c, t: t}
	s := m.wires()
	world := "tabletop"
	if c.mobile() {
		world = "room"
	}
	tw, err := sim.NewTwin(sim.Options{Robot: c.model, World: world, Seed: 1, Pace: sim.PaceReal, Light: true})
	if err != nil {
		t.Fatal(err)
	}
	m.twin = tw
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- tw.Run(ctx) }()
	t.Cleanup(func() {
		if err := m.down(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, sim.ErrOver) {
			t.Error(err)
		}
		tw.Close()
	})
	if err := m.up(); err != nil {
		t.Fatal(err)
	}
	if c.gen == wire.GenerationB {
		m.guard()
	}
	return m, s
}

// wires makes what lies between the robot and the daemon.
func (m *machine) wires() settings {
	m.t.Helper()
	if m.wire == "ros1" {
		m.core = newCore(m.t)
		return settings{{"master", m.core.addr}, {"host", "127.0.0.1"}}
	}
	domain, release, err := interop.Domain()
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(release)
	m.domain = domain
	if m.wire == "rosbridge" {
		m.bridge = newBridge(m.t, m.dds)
		return settings{{"wire", "rosbridge"}, {"url", "ws://" + m.bridge.cable.addr()}}
	}
	set := settings{{"domain", fmt.Sprint(domain)}}
	if m.wire == "serial" { // its cameras are ROS nodes
		m.ports = m.t.TempDir()
		set = append(set, [2]string{"dir", m.ports})
	}
	return set
}

func (m *machine) dds(name string) (ros.Node, error) {
	if m.gen == wire.GenerationB {
		return m.onDDS(name, guardHere, guardHere)
	}
	return m.onDDS(name, 0, -1)
}

// onDDS is a node on the robot's computer. When the network is silent, only what is for or of the computer's own
// participants from first to last comes through.
func (m *machine) onDDS(name string, first, last int) (ros.Node, error) {
	// What DDS calls participant i of a domain has the ports 7400 + 250 domain + 10 + 2i and the next.
	base := 7400 + 250*m.domain + 10
	return dds.Open(dds.Config{
		Node: name, Domain: m.domain, Localhost: true, Distro: cdr.Jazzy,
		Wire: func(d rtps.Datagram) bool {
			port := int(d.Addr.Port())
			return !m.mute.Load() || port >= base+2*first && port <= base+2*last+1
		},
	})
}

// guardHere is the guard's participant: the third on the robot's computer, after the driver's and that of the actions.
const guardHere = 2

// guard runs what a driver needs beside it whose velocities go on for ever.
func (m *machine) guard() {
	m.t.Helper()
	node, err := m.onDDS("viad_guard", 0, guardHere-1)
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- stretch.Guard(ctx, stretch.Config{Node: node}) }()
	m.t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, node.Close()); err != nil {
			m.t.Error(err)
		}
	})
}

// open is a node on the robot's computer.
func (m *machine) open(name string) (ros.Node, error) {
	if m.wire != "ros1" {
		return m.dds(name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return ros1.Dial(ctx, ros1.Config{Master: m.core.addr, Name: "/" + name, Host: "127.0.0.1"})
}

// up starts the robot's programs.
func (m *machine) up() error {
	actions := func() (ros.Node, error) { return m.open("actions") }
	node, err := m.open("stretch_driver") // parameters are served under a node's own name
	if err != nil {
		return err
	}
	other, err := actions()
	if err != nil {
		return errors.Join(err, node.Close())
	}
	m.node = &split{Node: node, open: actions, other: other}
	model, streams := m.model, wire.FrankaStreams()
	if m.mobile() {
		model, streams = "stretch4_pg4", wire.StretchStreams()
	}
	text, err := urdf.Source(model)
	if err != nil {
		return err
	}
	robot, err := m.face(string(text))
	if err != nil {
		return errors.Join(err, m.node.Close())
	}
	eyes, err := wire.NewSensors(m.twin, m.node, *pics, streams)
	if err != nil {
		return errors.Join(err, robot.Close(), m.node.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- robot.Run(ctx) }()
	go func() { ended <- eyes.Run(ctx) }()
	m.stop = func() error {
		cancel()
		return errors.Join(<-ended, <-ended, eyes.Close(), robot.Close(), m.node.Close())
	}
	return nil
}

// face puts the twin on its wire.
func (m *machine) face(text string) (face, error) {
	switch {
	case m.wire == "serial":
		boards, err := wire.NewSerial(m.twin, m.ports, wire.SerialFaults{})
		m.boards = boards
		return boards, err
	case m.mobile():
		return wire.NewStretch(m.twin, m.node, m.gen, text, wire.StretchFaults{})
	}
	return wire.NewFranka(m.twin, m.node, text, wire.Faults{})
}

// down kills them.
func (m *machine) down() error {
	if m.stop == nil {
		return nil
	}
	err := m.stop()
	m.stop = nil
	if errors.Is(err, sim.ErrOver) {
		return nil
	}
	return err
}
