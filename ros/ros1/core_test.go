package ros1

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// needs skips a test whose programs are not installed; where CI says that they are, it fails.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := os.Stat("/usr/bin/" + p); err != nil {
			missing(t, p+" is not installed: apt-get install python3-roslaunch python3-rostopic python3-rosservice python3-actionlib python3-std-msgs python3-sensor-msgs python3-std-srvs")
		}
	}
}

func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("VIAD_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// core is a roscore of Debian on a port of its own.
type core struct {
	port int
	dir  string
	cmd  *exec.Cmd
}

func startCore(t *testing.T) *core {
	t.Helper()
	needs(t, "roscore")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &core{port: l.Addr().(*net.TCPAddr).Port, dir: t.TempDir()} //nolint:forcetypeassert // it is
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c.start(t)
	t.Cleanup(c.kill)
	return c
}

func (c *core) addr() string { return fmt.Sprintf("127.0.0.1:%d", c.port) }

func (c *core) env() []string {
	return append(os.Environ(), "ROS_MASTER_URI=http://"+c.addr(), "ROS_IP=127.0.0.1", "ROS_HOME="+c.dir, "ROS_LOG_DIR="+c.dir,
		"PYTHONUNBUFFERED=1", "HOME="+c.dir)
}

func (c *core) start(t *testing.T) {
	t.Helper()
	c.cmd = exec.Command("/usr/bin/roscore", "-p", fmt.Sprint(c.port))
	c.cmd.Env, c.cmd.SysProcAttr = c.env(), &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // also in a cleanup
	defer cancel()
	for {
		if s, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.addr()); err == nil {
			_ = s.Close()
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("roscore does not start")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// kill ends roscore and its children, which it puts into groups of their own, without a word to anybody.
func (c *core) kill() {
	_ = syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL)
	_ = c.cmd.Wait()            // killed
	for len(c.children()) > 0 { // one that was just forked becomes another program meanwhile
		for _, pid := range c.children() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// children are the processes of this core: those of its kind that have its folder in their environment.
func (c *core) children() (out []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // none is none
	for _, d := range dirs {
		env, err := os.ReadFile(filepath.Join(d, "environ"))
		if err != nil || !strings.Contains(string(env), "ROS_HOME="+c.dir+"\x00") {
			continue
		}
		cmd, err := os.ReadFile(filepath.Join(d, "cmdline"))
		pid, bad := strconv.Atoi(filepath.Base(d))
		for _, kind := range []string{"/roscore\x00", "/rosmaster\x00", "/rosout\x00"} {
			if err == nil && bad == nil && strings.Contains(string(cmd), kind) {
				out = append(out, pid)
			}
		}
	}
	return out
}

// node dials a node.
func (c *core) node(t *testing.T, name string) *Node {
	t.Helper()
	n, err := Dial(t.Context(), Config{Master: c.addr(), Name: "/" + name, Host: "127.0.0.1", Period: 100 * time.Millisecond, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func quiet() *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.DiscardHandler)
}

// program is one of Debian's, with what it prints.
type program struct {
	cmd   *exec.Cmd
	lines chan string
	once  sync.Once
}

func (c *core) run(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command("/usr/bin/"+args[0], args[1:]...), lines: make(chan string, 1000)}
	p.cmd.Env, p.cmd.SysProcAttr = c.env(), &syscall.SysProcAttr{Setpgid: true}
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var read sync.WaitGroup
	read.Go(func() {
		s := bufio.NewScanner(out)
		for s.Scan() {
			select {
			case p.lines <- s.Text():
			default:
			}
		}
	})
	read.Go(func() { _ = p.cmd.Wait(); _ = in.Close() })
	t.Cleanup(func() { p.kill(); read.Wait() })
	return p
}

func (p *program) kill() {
	p.once.Do(func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
}

// wants reads the program's output up to a line that has the text.
func (p *program) wants(t *testing.T, text string) {
	t.Helper()
	late := time.After(20 * time.Second)
	var seen []string
	for {
		select {
		case l := <-p.lines:
			seen = append(seen, l)
			if strings.Contains(l, text) {
				return
			}
		case <-late:
			t.Fatalf("%v did not print %q but\n%s", p.cmd.Args, text, strings.Join(seen, "\n"))
		}
	}
}

// bare is what a message needs that never sees CDR.
type bare struct{}

func (bare) TypeHash() string         { return "" }
func (bare) MarshalCDR(*cdr.Writer)   {}
func (bare) UnmarshalCDR(*cdr.Reader) {}

// actionlib's own test action, which ROS 2 does not have.
type (
	testGoal struct {
		bare
		Goal int32
	}
	testResult struct {
		bare
		Result int32
	}
	testFeedback struct {
		bare
		Feedback int32
	}
)

func (*testGoal) TypeName() string     { return "actionlib/action/Test_Goal" }
func (*testResult) TypeName() string   { return "actionlib/action/Test_Result" }
func (*testFeedback) TypeName() string { return "actionlib/action/Test_Feedback" }

func testAction(name string) ros.Action {
	return ros.ActionOf[testGoal, testResult, testFeedback](name)
}

type textMsg struct {
	bare
	Data string
}

func (*textMsg) TypeName() string { return "std_msgs/msg/String" }

func texts(name string, qos ros.QoS) ros.Topic {
	return ros.Topic{Name: name, QoS: qos, New: func() msg.Message { return new(textMsg) }}
}

// hear subscribes to texts.
func hear(t *testing.T, n ros.Node, name string, qos ros.QoS) (<-chan string, ros.Subscription) {
	t.Helper()
	got := make(chan string, 1000)
	s, err := n.Subscribe(texts(name, qos), func(in ros.Incoming) {
		var m textMsg
		if err := in.Decode(&m); err != nil {
			t.Error(err)
		}
		got <- m.Data
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, s
}

func take[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(15 * time.Second):
		t.Fatalf("waited in vain for %s", what)
		return *new(T)
	}
}

func ready(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func advertise(t *testing.T, n ros.Node, name string, qos ros.QoS) ros.Outlet {
	t.Helper()
	o, err := n.Advertise(texts(name, qos))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func say(t *testing.T, o ros.Outlet, s string) {
	t.Helper()
	if err := o.Publish(t.Context(), &textMsg{Data: s}); err != nil {
		t.Fatal(err)
	}
}

// linkOf follows the link of a node.
func linkOf(t *testing.T, n ros.Node) func(up bool) ros.Link {
	t.Helper()
	events := make(chan ros.Link, 100)
	t.Cleanup(n.Links(func(l ros.Link) { events <- l }))
	return func(up bool) ros.Link {
		t.Helper()
		for {
			if l := take(t, events, fmt.Sprint("the link to be up: ", up)); l.Up == up {
				return l
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
