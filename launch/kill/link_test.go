package kill

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg/all"
	"viad/ros/rosbridge/server"
)

// bridge is a rosbridge behind a cable.
type bridge struct {
	cable *cable
	open  func(name string) (ros.Node, error)
	addr  string
	stop  func() error // nil while it is dead
}

func newBridge(t *testing.T, open func(string) (ros.Node, error)) *bridge {
	t.Helper()
	b := &bridge{open: open, addr: freeAddr(t)}
	if err := b.up(); err != nil {
		t.Fatal(err)
	}
	b.cable = newCable(t, b.addr)
	t.Cleanup(func() {
		if err := b.down(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bridge) up() error {
	node, err := b.open("rosbridge_websocket")
	if err != nil {
		return err
	}
	srv, err := server.NewServer(server.Options{Node: node, Types: all.New, Distro: cdr.Jazzy, Caveats: server.New()})
	if err != nil {
		return errors.Join(err, node.Close())
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", b.addr)
	if err != nil {
		return errors.Join(err, node.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	b.stop = func() error {
		cancel()
		return errors.Join(<-done, node.Close())
	}
	return nil
}

func (b *bridge) down() error {
	if b.stop == nil {
		return nil
	}
	err := b.stop()
	b.stop = nil
	return err
}

// cable carries TCP connections to a server, until it is cut.
type cable struct {
	to   string
	l    net.Listener
	wait sync.WaitGroup

	mu    sync.Mutex
	state string // "": whole; cut: connections are reset and refused; silent: nothing comes through
	conns map[net.Conn]struct{}
	news  chan struct{} // closed when state changes
}

func newCable(t *testing.T, to string) *cable {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{to: to, l: l, conns: map[net.Conn]struct{}{}, news: make(chan struct{})}
	c.wait.Go(c.accept)
	t.Cleanup(func() {
		_ = l.Close()
		c.set("cut")
		c.wait.Wait()
	})
	return c
}

func (c *cable) addr() string { return c.l.Addr().String() }

func (c *cable) set(state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
	close(c.news)
	c.news = make(chan struct{})
	if state != "silent" { // what was held up is not delivered later: such connections are dead
		for n := range c.conns {
			if tcp, ok := n.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = n.Close()
		}
		c.conns = map[net.Conn]struct{}{}
	}
}

func (c *cable) accept() {
	for {
		in, err := c.l.Accept()
		if err != nil {
			return
		}
		c.wait.Go(func() { c.carry(in) })
	}
}

// carry lives with one connection.
func (c *cable) carry(in net.Conn) {
	defer in.Close()
	if !c.keep(in) {
		return
	}
	out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", c.to)
	if err != nil {
		return
	}
	defer out.Close()
	if !c.keep(out) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { c.pump(in, out) })
	both.Go(func() { c.pump(out, in) })
	both.Wait()
}

func (c *cable) keep(n net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == "cut" {
		return false
	}
	c.conns[n] = struct{}{}
	return true
}

func (c *cable) pump(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !c.whole() {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// whole waits while the cable is silent; false says that it was.
func (c *cable) whole() bool {
	for waited := false; ; waited = true {
		c.mu.Lock()
		state, news := c.state, c.news
		c.mu.Unlock()
		if state != "silent" {
			return !waited
		}
		<-news
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// core is Debian's roscore.
type core struct {
	t    *testing.T
	addr string
	cmd  *exec.Cmd
	said *log
}

func newCore(t *testing.T) *core {
	t.Helper()
	if _, err := exec.LookPath("/usr/bin/roscore"); err != nil {
		if os.Getenv("VIAD_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no roscore: apt-get install python3-roslaunch")
	}
	c := &core{t: t, addr: freeAddr(t)}
	if err := c.up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Signal(syscall.SIGINT) // it ends its children itself
		_ = c.cmd.Wait()
	})
	return c
}

// up starts it and waits until it answers.
func (c *core) up() error {
	_, port, _ := net.SplitHostPort(c.addr)
	c.said = &log{}
	c.cmd = exec.CommandContext(context.Background(), "/usr/bin/roscore", "-p", port)
	c.cmd.Env = append(os.Environ(), "ROS_MASTER_URI=http://"+c.addr, "ROS_IP=127.0.0.1", "ROS_LOG_DIR="+c.t.TempDir())
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.WaitDelay = c.said, c.said, 5*time.Second
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); ; <-tick.C {
		n, err := net.DialTimeout("tcp", c.addr, time.Second)
		if err == nil {
			return n.Close()
		}
		if time.Now().After(end) {
			return errors.New("roscore does not come up: " + c.said.String())
		}
	}
}

// kill kills it and what it started: its master and its rosout, which are in sessions of their own.
func (c *core) kill() error {
	pid := c.cmd.Process.Pid
	kids, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return err
	}
	err = c.cmd.Process.Kill()
	for _, f := range strings.Fields(string(kids)) {
		kid, e := strconv.Atoi(f)
		if e == nil {
			e = syscall.Kill(kid, syscall.SIGKILL)
		}
		err = errors.Join(err, e)
	}
	_ = c.cmd.Wait() // it was killed
	return err
}
