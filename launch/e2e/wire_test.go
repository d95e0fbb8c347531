package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"viad/interface/operator"
	"viad/interface/tool/door"
	"viad/launch"
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/ros/msg/all"
	"viad/ros/ros1"
	"viad/ros/rosbridge/server"
	"viad/sim"
	"viad/sim/wire"
)

var (
	cells = flag.String("cells", "franka-dds", "which wires the task is run over: franka-dds, franka-rosbridge, panda-ros1, stretch-dds-a, stretch-dds-b, stretch-rosbridge, stretch-serial; all")
	pics  = flag.Duration("pictures", 250*time.Millisecond, "period of the cameras on the wire")
)

// cell is a robot of a launch file whose nodes are a twin's, on one wire.
type cell struct {
	name, file, model string
	gen               wire.Generation // of a Stretch's driver
	// there is the robot's node; it may change the file to where it is.
	there func(t *testing.T, c *launch.Config, domain int) ros.Node
}

func matrix() []cell {
	return []cell{
		{"franka-dds", "franka.yaml", "fr3", "", onDDS},
		{"franka-rosbridge", "franka.yaml", "fr3", "", onBridge},
		{"panda-ros1", "panda-ros1.yaml", "panda", "", onROS1},
		{"stretch-dds-a", "stretch4.yaml", "stretch4", wire.GenerationA, onDDS},
		{"stretch-dds-b", "stretch4.yaml", "stretch4", wire.GenerationB, onDDS},
		{"stretch-rosbridge", "stretch4.yaml", "stretch4", wire.GenerationA, onBridge},
		{"stretch-serial", "stretch4-serial.yaml", "stretch4", "", onDDS},
	}
}

// TestStackOnTheWire: the job of TestStackCubes through driver and wire, at the wall's pace.
func TestStackOnTheWire(t *testing.T) {
	for _, c := range matrix() {
		if *cells != "all" && !strings.Contains(","+*cells+",", ","+c.name+",") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			d, token := c.start(t)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
			defer cancel()
			client, err := dialMCPGo(ctx, d.sys.MCP(), token)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.close() }()
			a := agent{t: t, ctx: ctx, c: client}
			if c.model == "stretch4" {
				m := &mobile{agent: a}
				m.fetch()
				assertInBox(t, d)
				a = m.agent
			} else {
				f := &tabletop{a}
				f.stack(red, green)
				assertStacked(t, d)
				a = f.agent
			}
			t.Logf("%-18s %3d calls %4.0f s", c.name, a.calls, time.Since(began).Seconds())
		})
	}
}

func (c cell) start(t *testing.T) (d daemon, token string) {
	t.Helper()
	cfg, err := launch.Read("../" + c.file)
	if err != nil {
		t.Fatal(err)
	}
	domain, release, err := interop.Domain()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	cfg.Robot.ROS.BaseUnguarded = c.gen == wire.GenerationB // nobody guards it here
	token = "viad_test_0123456789012345678901234567890123456789"
	cfg.StateDir, cfg.Listen.Address, cfg.Robot.ROS.Domain = t.TempDir(), "127.0.0.1:0", domain
	cfg.Tokens.List = cfg.Tokens.List[:1]
	cfg.Tokens.List[0].Hash = door.Hash(token)
	there := c.there(t, cfg, domain)
	d.twin = c.twinBehind(t, cfg, there)

	o := launch.Options{}
	if *verbose {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if d.sys, err = launch.New(ctx, cfg, o); err != nil {
		t.Fatal(err)
	}
	stop, err := d.sys.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
	socket := filepath.Join(cfg.StateDir, operator.SocketName)
	ready(ctx, t, socket)
	if _, err := operator.Ask(ctx, socket, operator.OpArm); err != nil {
		t.Fatal(err)
	}
	return d, token
}

// ready waits until the robot says so, as the person does who arms it.
func ready(ctx context.Context, t *testing.T, socket string) {
	t.Helper()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		a, err := operator.Ask(ctx, socket, operator.OpStatus)
		if err != nil {
			t.Fatal(err)
		}
		if a.Status.Mode == "ready" {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the robot is not ready: %s %s", a.Status.Mode, a.Status.Fault)
		}
	}
}

// face is a robot on its wire.
type face interface {
	Run(ctx context.Context) error
	Close() error
}

// face puts a twin on the wire that the launch file names.
func (c cell) face(t *testing.T, cfg *launch.Config, tw *sim.Twin, there ros.Node, urdf string) (face, error) {
	t.Helper()
	switch {
	case cfg.Robot.Driver == "serial":
		// The boards of a robot answer when they are asked, each on its own. Here they wait with the daemon for a turn on few
		// processors: threads in plenty let the system choose, which prefers those that wait for a line.
		before := runtime.GOMAXPROCS(max(24, runtime.GOMAXPROCS(0)))
		t.Cleanup(func() { runtime.GOMAXPROCS(before) })
		cfg.Robot.Serial.Dir = t.TempDir()
		return wire.NewSerial(tw, cfg.Robot.Serial.Dir, wire.SerialFaults{})
	case c.model == "stretch4":
		return wire.NewStretch(tw, there, c.gen, urdf, wire.StretchFaults{})
	}
	return wire.NewFranka(tw, there, urdf, wire.Faults{})
}

// twinBehind puts a twin on its wire, and its cameras on that of a node.
func (c cell) twinBehind(t *testing.T, cfg *launch.Config, there ros.Node) *sim.Twin {
	t.Helper()
	world, text, streams := "tabletop", c.model, wire.FrankaStreams()
	if c.model == "stretch4" {
		world, text, streams = "room", "stretch4_pg4", wire.StretchStreams()
	}
	tw, err := sim.NewTwin(sim.Options{Robot: c.model, World: world, Seed: uint64(*from), Pace: sim.PaceReal, Light: true})
	if err != nil {
		t.Fatal(err)
	}
	urdf, err := os.ReadFile("../../drivers/urdf/models/" + text + ".urdf")
	if err != nil {
		t.Fatal(err)
	}
	face, err := c.face(t, cfg, tw, there, string(urdf))
	if err != nil {
		t.Fatal(err)
	}
	eyes, err := wire.NewSensors(tw, there, *pics, streams)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	for _, run := range []func(context.Context) error{tw.Run, face.Run, eyes.Run} {
		go func() { ended <- run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range 3 {
			if err := <-ended; err != nil && !errors.Is(err, sim.ErrOver) {
				t.Error(err)
			}
		}
		if err := errors.Join(eyes.Close(), face.Close()); err != nil {
			t.Error(err)
		}
		tw.Close()
	})
	return tw
}

func onDDS(t *testing.T, _ *launch.Config, domain int) ros.Node {
	t.Helper()
	n, err := dds.Open(dds.Config{Node: "stretch_driver", Domain: domain, Localhost: true, Distro: cdr.Jazzy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// onBridge puts a rosbridge server in front of the robot's nodes, with the habits of a new one.
func onBridge(t *testing.T, c *launch.Config, domain int) ros.Node {
	t.Helper()
	robot, bridge := onDDS(t, c, domain), onDDS(t, c, domain)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.NewServer(server.Options{Node: bridge, Types: all.New, Distro: cdr.Jazzy})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); <-done })
	c.Robot.ROS.Wire, c.Robot.ROS.URL = "rosbridge", "ws://"+l.Addr().String()
	return robot
}

// onROS1 starts Debian's roscore.
func onROS1(t *testing.T, c *launch.Config, _ int) ros.Node {
	t.Helper()
	if _, err := exec.LookPath("/usr/bin/roscore"); err != nil {
		if os.Getenv("VIAD_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no roscore: apt-get install python3-roslaunch")
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	master := l.Addr().String()
	_, port, _ := net.SplitHostPort(master)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	core := exec.CommandContext(context.Background(), "/usr/bin/roscore", "-p", port)
	core.Env = append(os.Environ(), "ROS_MASTER_URI=http://"+master, "ROS_IP=127.0.0.1", "ROS_LOG_DIR="+t.TempDir())
	core.Stdout, core.Stderr, core.SysProcAttr = &said, &said, &syscall.SysProcAttr{Setpgid: true}
	if err := core.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = core.Process.Signal(syscall.SIGINT) // it ends its children itself
		_ = core.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		n, err := ros1.Dial(ctx, ros1.Config{Master: master, Name: "/robot", Host: "127.0.0.1", Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			tick.Stop()
			t.Cleanup(func() { _ = n.Close() })
			c.Robot.ROS.Master, c.Robot.ROS.Host = master, "127.0.0.1"
			return n
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(fmt.Errorf("no roscore: %w\n%s", err, said.String()))
		}
	}
}
