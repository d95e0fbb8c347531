package franka

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
	"viad/ros/ros1"
)

// core starts a roscore of Debian on a port of its own, and returns its address and what kills it.
func core(t *testing.T) (addr string, kill func()) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/roscore"); err != nil {
		if os.Getenv("VIAD_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("roscore is not installed: apt-get install python3-roslaunch")
	}
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	dir := t.TempDir()
	cmd := exec.Command("/usr/bin/roscore", "-p", port)
	cmd.Env = append(os.Environ(), "ROS_MASTER_URI=http://127.0.0.1:"+port, "ROS_IP=127.0.0.1", "ROS_HOME="+dir, "ROS_LOG_DIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // it ends its children, which are in groups of their own
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		children(dir)
	})
	addr = "127.0.0.1:" + port
	kill = func() { _ = cmd.Process.Kill(); children(dir) }
	for range 1000 {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return addr, kill
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatal("roscore does not start")
	return "", nil
}

// children ends what a core left behind: processes that have its folder in their environment.
func children(dir string) {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		env, err := os.ReadFile(filepath.Join(p, "environ"))
		if err != nil || !strings.Contains(string(env), "ROS_HOME="+dir+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(p)); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func node1(t *testing.T, addr, name string) *ros1.Node {
	t.Helper()
	n := must[*ros1.Node](t)(ros1.Dial(t.Context(), ros1.Config{Master: addr, Name: name, Host: "127.0.0.1", Period: 100 * time.Millisecond, Log: logger(t)}))
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func startPanda(t *testing.T, addr string, options ...option) *bench {
	t.Helper()
	b := beginOn(t, node1(t, addr, "/panda_double"), node1(t, addr, "/viad"), Panda, options...)
	b.ready()
	return b
}

func TestPanda(t *testing.T) {
	addr, kill := core(t)
	t.Run("moves, grips, recovers", func(t *testing.T) {
		b := startPanda(t, addr)
		tr := b.swing(0.3, 2*time.Second)
		if err := b.Follow(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
		if _, off := b.furthest(b.d.truth().Q, tr.Points[len(tr.Points)-1].Q); off > 0.002 {
			t.Errorf("%v from the goal", off)
		}
		for _, open := range []bool{false, true} {
			if err := b.Grip(t.Context(), robot.JawTarget{Open: open}); err != nil {
				t.Errorf("open %v: %v", open, err)
			}
		}
		b.d.reflex(modeReflex, "cartesian_reflex")
		b.says(robot.ModeFaulted, "cartesian reflex")
		if err := b.Do(t.Context(), taskRecover); err != nil {
			t.Fatal(err)
		}
		b.ready()
	})
	t.Run("stop of the hand is an action", func(t *testing.T) {
		b := startPanda(t, addr, with(func(d *double) { d.object, d.f.handHangs = 0.05, true }))
		b.refused(b.Grip(t.Context(), robot.JawTarget{}), "did not end")
		if n := get(b.d, func(d *double) int { return d.stops }); n != 1 {
			t.Errorf("%d stops", n)
		}
	})
	t.Run("suite", func(t *testing.T) {
		if testing.Short() {
			t.Skip("the suite over ROS 1 takes a minute")
		}
		robottest.CheckBody(t, func(t *testing.T) robottest.Subject {
			b := startPanda(t, addr)
			return robottest.Subject{Body: b, Clock: b.clock, Model: b.Model(), Machine: b.d.truth, Sever: func() { _ = b.n.Close() }}
		}, nil)
	})
	t.Run("roscore dies in mid-motion", func(t *testing.T) { // the last: it takes the core with it
		b := startPanda(t, addr)
		tr := b.swing(0.4, 3*time.Second)
		done := b.follow(tr)
		b.moves()
		kill()
		killed := b.clock.Now()
		// Connections between nodes do not go through it; but who comes or goes is not told any more.
		if err := <-done; err == nil || !strings.Contains(err.Error(), "the master at "+addr+" does not answer") {
			t.Errorf("Follow: %v", err)
		}
		if took := b.clock.Now().Sub(killed); took > b.Deadman()+time.Second {
			t.Errorf("noticed after %v", took)
		}
		b.says(robot.ModeUnknown, "the link to the robot is down", "master")
	})
}
