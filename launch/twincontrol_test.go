package launch

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/ros/msg"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
)

// running is a viad twin of this process with its control socket.
type running struct {
	t      *testing.T
	socket string
	domain int
}

// twinRuns starts viad twin as the command line does and waits until its socket answers.
func twinRuns(t *testing.T, args ...string) *running {
	t.Helper()
	domain, release, err := interop.Domain()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	r := &running{t, filepath.Join(t.TempDir(), "twin.sock"), domain}
	ctx, cancel := context.WithCancel(context.Background())
	var out, complaints strings.Builder
	done := make(chan int, 1)
	args = append([]string{"twin"}, append(args, "--domain", fmt.Sprint(domain), "--control", r.socket)...)
	go func() { done <- run(ctx, args, streams{strings.NewReader(""), &out, &complaints}) }()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != ExitOK {
			t.Errorf("exit code %d: %s", code, complaints.String())
		}
		if _, err := os.Stat(r.socket); err == nil {
			t.Error("the socket is left behind")
		}
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(r.socket); err == nil {
			return r
		}
		select {
		case code := <-done:
			done <- code
			t.Fatalf("ended with %d: %s", code, complaints.String())
		case <-tick.C:
		}
	}
}

// ask is viad twin-control; it returns what it prints.
func (r *running) ask(args ...string) string {
	r.t.Helper()
	said, code := r.tell(args...)
	if code != ExitOK {
		r.t.Fatalf("twin-control %v: %d, %s", args, code, said)
	}
	return said
}

func (r *running) tell(args ...string) (string, int) {
	var out, complaints strings.Builder
	code := run(r.t.Context(), append([]string{"twin-control", r.socket}, args...), streams{strings.NewReader(""), &out, &complaints})
	return out.String() + complaints.String(), code
}

func (r *running) truth() (m twinTruth) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.ask("truth")), &m); err != nil {
		r.t.Fatal(err)
	}
	return m
}

// listener keeps the newest of a topic, and how many came.
type listener[T any] struct {
	mu  sync.Mutex
	n   int
	got T
}

func (l *listener[T]) put(m T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n, l.got = l.n+1, m
}

func (l *listener[T]) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

func (l *listener[T]) last() T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got
}

// until waits for what is told, ten seconds at most.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick, end := time.NewTicker(10*time.Millisecond), time.After(10*time.Second)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("never: %s", what)
		}
	}
}

func outside(t *testing.T, domain int) *dds.Node {
	t.Helper()
	n, err := dds.Open(dds.Config{Node: "outside", Domain: domain, Localhost: true, Distro: cdr.Jazzy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// An arm's twin: its truth, resets, faults, its stop and its link, all through the socket and seen on the wire.
func TestTwinControlArm(t *testing.T) {
	r := twinRuns(t, "franka", "--rate", "10", "--fault", "stalled-cameras")
	if info, err := os.Stat(r.socket); err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	n := outside(t, r.domain)
	var joints listener[*sensor_msgs.JointState]
	var state listener[*franka_msgs.FrankaRobotState]
	var pictures listener[*sensor_msgs.Image]
	hear(t, n, "/franka/joint_states", &joints)
	hear(t, n, "/franka_robot_state_broadcaster/robot_state", &state)
	hear(t, n, "/camera/color/image_raw", &pictures)
	until(t, "joints", func() bool { return joints.count() > 5 && state.count() > 5 })

	is := r.truth()
	cube := is.Objects["red_cube"]
	if len(is.Objects) < 2 || len(is.Q) != 7 || !(cube.XYZ[2] > 0 && cube.XYZ[0] > 0.2) || math.Abs(norm4(cube.Quat)-1) > 1e-9 || len(is.Contacts) == 0 {
		t.Errorf("the truth is %+v", is)
	}
	for j, q := range joints.last().Position {
		if math.Abs(q-is.Q[j]) > 1e-3 {
			t.Errorf("joint %d is %v on the wire and %v in truth", j+1, q, is.Q[j])
		}
	}
	r.ask("reset", "7")
	seven := r.truth().Objects["red_cube"]
	r.ask("reset")
	if other := r.truth().Objects["red_cube"]; apart(other, seven) < 1e-3 {
		t.Errorf("a reset without a seed placed the cube at %v again", other.XYZ)
	}
	r.ask("reset", "7")
	if again := r.truth().Objects["red_cube"]; apart(again, seven) > 1e-6 {
		t.Errorf("the seed 7 places the cube at %v and at %v", seven.XYZ, again.XYZ)
	}

	if pictures.count() > 0 {
		t.Error("stalled cameras sent a picture")
	}
	r.ask("fault", "stalled-cameras", "off")
	until(t, "a picture", func() bool { return pictures.count() > 0 })

	r.ask("user-stop", "on")
	until(t, "the user stop", func() bool { return state.last().RobotMode == 5 })
	r.ask("runstop", "off")
	r.ask("fault", "nan-joint", "on")
	until(t, "a joint that is no number", func() bool { return math.IsNaN(joints.last().Position[3]) })
	r.ask("fault", "nan-joint", "off")
	until(t, "numbers again", func() bool { return !math.IsNaN(joints.last().Position[3]) })

	r.ask("cut")
	was, at := joints.count(), r.truth().Time
	until(t, "time to pass", func() bool { return r.truth().Time.Sub(at) > 500*time.Millisecond })
	if got := joints.count() - was; got > 3 {
		t.Errorf("%d joint states through a cut link", got)
	}
	r.ask("restore")
	was = joints.count()
	until(t, "joints again", func() bool { return joints.count() > was })
}

// A Stretch's twin: its runstop and its faults, and those that can be had from the start alone.
func TestTwinControlStretch(t *testing.T) {
	r := twinRuns(t, "stretch4", "--rate", "0.1")
	n := outside(t, r.domain)
	var stopped listener[*std_msgs.Bool]
	var joints listener[*sensor_msgs.JointState]
	if _, err := ros.Subscribe(n, "/is_runstopped", ros.Latched(), func(m *std_msgs.Bool, _ ros.Info) { stopped.put(m) }); err != nil {
		t.Fatal(err)
	}
	hear(t, n, "/joint_states", &joints)
	until(t, "the runstop's topic", func() bool { return stopped.count() > 0 && joints.count() > 0 })
	r.ask("runstop", "on")
	until(t, "the runstop", func() bool { return stopped.last().Data })
	r.ask("runstop", "off")
	until(t, "its release", func() bool { return !stopped.last().Data })
	r.ask("fault", "silent-joints", "on")
	was := 0
	until(t, "silence", func() bool {
		at := r.truth().Time
		was = joints.count()
		until(t, "time to pass", func() bool { return r.truth().Time.Sub(at) > 300*time.Millisecond })
		return joints.count() == was
	})
	r.ask("fault", "silent-joints", "off")
	until(t, "joints again", func() bool { return joints.count() > was })
	if said, code := r.tell("fault", "unhomed", "on"); code == ExitOK || !strings.Contains(said, "from the start alone") {
		t.Errorf("%d, %s", code, said)
	}
}

// A Stretch on its serial ports: cutting its link pulls every plug.
func TestTwinControlSerial(t *testing.T) {
	dir := t.TempDir()
	r := twinRuns(t, "stretch4", "--rate", "0.1", "--serial", dir)
	ports := func() int {
		found, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	all := ports()
	if all < 3 {
		t.Fatalf("%d ports in %s", all, dir)
	}
	for range 2 { // a second time it is cut already
		r.ask("cut")
	}
	if n := ports(); n != 0 {
		t.Errorf("%d ports are left", n)
	}
	r.ask("restore")
	if n := ports(); n != all {
		t.Errorf("%d ports are back, of %d", n, all)
	}
	r.ask("runstop", "on")
	r.ask("runstop", "off")
}

// What is wrong is refused in one line, and the next request is answered.
func TestTwinControlRefuses(t *testing.T) {
	r := twinRuns(t, "franka", "--rate", "0.1")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"dance"}, "there is no verb"},
		{[]string{"reset", "-1"}, "twin-control"},
		{[]string{"reset", "x"}, "whole number"},
		{[]string{"fault", "gremlins", "on"}, "there are ignore-cancel"},
		{[]string{"fault", "frozen-joints", "on"}, "no fault"},
		{[]string{"fault", "stale-hand"}, "NAME on|off"},
		{[]string{"fault", "stale-hand", "maybe"}, "on or off"},
		{[]string{"truth", "please"}, "arguments"},
	} {
		if said, code := r.tell(c.args...); code == ExitOK || !strings.Contains(said, c.want) && c.args[1] != "-1" {
			t.Errorf("%v: %d, %s", c.args, code, said)
		}
	}
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewScanner(conn)
	in.Buffer(nil, 1<<20)
	for _, line := range []string{"no json", `{"verb": "truth"}`} {
		if _, err := fmt.Fprintln(conn, line); err != nil {
			t.Fatal(err)
		}
		var a twinAnswer
		if !in.Scan() || json.Unmarshal(in.Bytes(), &a) != nil || a.OK != (line[0] == '{') || a.OK != (a.Error == "") {
			t.Errorf("%s: %s", line, in.Text())
		}
	}
	if _, err := listenTwin(t.Context(), r.socket, nil); err == nil || !strings.Contains(err.Error(), "another twin") {
		t.Errorf("a second twin took the socket: %v", err)
	}
	file := filepath.Join(t.TempDir(), "notes")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenTwin(t.Context(), file, nil); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file was taken for a socket: %v", err)
	}
}

// The help tells every fault that there is.
func TestTwinHelpNamesFaults(t *testing.T) {
	var out, complaints strings.Builder
	if code := run(t.Context(), []string{"twin", "--help"}, streams{strings.NewReader(""), &out, &complaints}); code != ExitOK {
		t.Fatalf("%d: %s", code, complaints.String())
	}
	said := strings.Fields(strings.NewReplacer(",", " ", ".", " ").Replace(out.String()))
	for _, n := range slices.Concat([]string{"dead-controller", "other-holder", "frozen-cameras"}, cameraFaults(), stretchFaultNames()) {
		if !slices.Contains(said, n) {
			t.Errorf("--help does not name %s", n)
		}
	}
}

func hear[T any, P msg.Ptr[T]](t *testing.T, n ros.Node, topic string, l *listener[P]) {
	t.Helper()
	if _, err := ros.Subscribe(n, topic, ros.SensorData(), func(m P, _ ros.Info) { l.put(m) }); err != nil {
		t.Fatal(err)
	}
}

func norm4(q [4]float64) float64 { return math.Hypot(math.Hypot(q[0], q[1]), math.Hypot(q[2], q[3])) }

func apart(a, b twinPose) float64 {
	return math.Hypot(math.Hypot(a.XYZ[0]-b.XYZ[0], a.XYZ[1]-b.XYZ[1]), a.XYZ[2]-b.XYZ[2])
}
