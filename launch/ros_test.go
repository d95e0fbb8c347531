package launch

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/msg"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
)

// rosRobot is a robot on a domain of this host: topics at 50 Hz, a service, an action, parameters.
func rosRobot(t *testing.T, domain int, distro cdr.Distro) *dds.Node {
	t.Helper()
	n, err := dds.Open(dds.Config{Node: "robot", Namespace: "/lab", Domain: domain, Localhost: true, Distro: distro})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := n.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	joints, err := ros.Advertise[sensor_msgs.JointState](n, "/joint_states", ros.Default())
	if err != nil {
		t.Fatal(err)
	}
	latched, err := ros.Advertise[std_msgs.String](n, "/robot_description", ros.Latched())
	if err != nil {
		t.Fatal(err)
	}
	if err := latched.Send(ctx, &std_msgs.String{Data: "<robot/>"}); err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		m := &sensor_msgs.JointState{Name: []string{"lift", "arm"}, Position: []float64{0.5, math.Pi}}
		for i := int32(0); ; i++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			m.Header.Stamp.Sec = i
			if joints.Send(ctx, m) != nil {
				return
			}
		}
	})
	serve := func(_ ros.Closer, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	serve(n.Serve(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response]("/runstop"), func(_ context.Context, q msg.Message) (msg.Message, error) {
		return &std_srvs.SetBool_Response{Success: true, Message: fmt.Sprint("runstop ", q.(*std_srvs.SetBool_Request).Data)}, nil
	}))
	serve(n.ServeAction(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback]("/follow"), ros.ActionHandler{
		Run: func(context.Context, ros.GoalID, msg.Message, func(msg.Message)) (msg.Message, ros.GoalStatus) {
			return nil, ros.GoalSucceeded
		},
	}))
	if _, err := ros.ServeParams(n, []ros.Declared{{Param: ros.P("speed", 0.25)}, {Param: ros.P("names", []string{"a", "b"})}}, nil); err != nil {
		t.Fatal(err)
	}
	return n
}

// viadROS runs viad ros and says what it prints.
func viadROS(t *testing.T, domain int, args ...string) (code int, out, complaints string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var o, e strings.Builder
	code = run(ctx, append(append([]string{"ros"}, args...), "--localhost", "--domain", fmt.Sprint(domain)), streams{strings.NewReader(""), &o, &e})
	return code, o.String(), e.String()
}

func TestRosCommands(t *testing.T) {
	rosRobot(t, 100, cdr.Humble)
	for _, c := range []struct {
		args string
		want []string // each a pattern
		code int
	}{
		{"topic list", []string{`(?m)^TOPIC +TYPE +PUB +SUB$`, `(?m)^/joint_states +sensor_msgs/msg/JointState +1 +0$`, `/robot_description +std_msgs/msg/String`}, ExitOK},
		{"topic list --json", []string{`"name": "/joint_states"`, `"node": "/lab/robot"`, `"qos": "reliable, volatile"`}, ExitOK},
		{"topic info /robot_description", []string{`publisher +/lab/robot +reliable, transient local +std_msgs/msg/String +[0-9a-f]{32}`}, ExitOK},
		{"topic echo /joint_states -n 2", []string{`name: \[lift, arm\]`, `position: \[0\.5, 3\.14159`, `(?s)---.*---`}, ExitOK},
		{"topic echo /robot_description -n 1 --json", []string{`^\{"data":".*robot/.*"\}\n$`}, ExitOK},
		{"topic echo /joint_state -n 1 --wait 1s", []string{`there is no topic /joint_state among \d+; perhaps /joint_states: viad ros topic list`}, ExitFailed},
		{"topic hz /joint_states --for 2s", []string{`(?m)^(4[0-9]|5[0-9])\.\d+ Hz  gaps: least`}, ExitOK},
		{"node list", []string{`(?m)^/lab/robot$`}, ExitOK},
		{"service list", []string{`(?m)^/runstop +std_srvs/srv/SetBool$`}, ExitOK},
		{"service call /runstop {data:\u00a0true}", []string{`success: true\nmessage: "?runstop true`}, ExitOK},
		{"service call /runstop {dat:\u00a0true}", []string{`the request is no std_srvs/srv/SetBool: .*dat`}, ExitUsage},
		{"service call /runstp {} --wait 1s", []string{`nobody serves /runstp among \d+ services`}, ExitFailed},
		{"action list", []string{`(?m)^/follow +control_msgs/action/FollowJointTrajectory$`}, ExitOK},
		{"param list /lab/robot", []string{`(?m)^names +string array +\["a", "b"\]$`, `(?m)^speed +double +0.25$`}, ExitOK},
		{"param set /lab/robot speed 0.5", []string{`^speed = 0.5\n$`}, ExitOK},
		{"param get /lab/robot speed", []string{`^0.5\n$`}, ExitOK},
		{"param set /lab/robot speed fast", []string{`/lab/robot refuses speed = fast: .*it is a double, not a string`}, ExitFailed},
		{"doctor", []string{`distribution +learnt from peers: humble`, `viad +humble +/lab/robot +127\.0\.0\.1:\d+`, `[+-]0\.00\d s \(\d+ samples\)`, `no problem was found`}, ExitOK},
		{"doctor --domain 0x", []string{`--domain`}, ExitUsage},
		{"topic list --distro foxi", []string{`--distro foxi is not known`}, ExitUsage},
		{"topic list --wire rosbridge", []string{`needs --url`}, ExitUsage},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := strings.Fields(strings.ReplaceAll(c.args, "\u00a0", "@"))
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "@", " ")
			}
			code, out, complaints := viadROS(t, 100, args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, w := range c.want {
				if !regexp.MustCompile(w).MatchString(out) && !regexp.MustCompile(w).MatchString(complaints) {
					t.Errorf("nothing matches %q in\n%s%s", w, out, complaints)
				}
			}
			if n := strings.Count(complaints, "\n"); n > 1 {
				t.Errorf("%d lines of complaint:\n%s", n, complaints)
			}
		})
	}
}

// The doctor names what is wrong: clashing names, QoS that does not suit, and nobody at all.
func TestRosDoctorNamesWhatIsWrong(t *testing.T) {
	rosRobot(t, 101, cdr.Jazzy)
	twin, err := dds.Open(dds.Config{Node: "robot", Namespace: "/lab", Domain: 101, Localhost: true})
	if err != nil {
		t.Fatal(err)
	}
	defer twin.Close()
	if _, err := ros.Subscribe(twin, "/joint_states", ros.Latched(), func(*sensor_msgs.JointState, ros.Info) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := twin.Domain().WaitDistro(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, out, complaints := viadROS(t, 101, "doctor")
	if code != ExitFailed || !strings.Contains(complaints, "problems were found; the report names each") {
		t.Errorf("exit code %d: %s", code, complaints)
	}
	for _, w := range []string{"there are several nodes named /lab/robot", "/joint_states: the publisher of /lab/robot and the subscriber of /lab/robot do not talk: it publishes volatile, transient local is asked for", "iron or later"} {
		if !strings.Contains(out, w) {
			t.Errorf("the doctor does not say %q:\n%s", w, out)
		}
	}
	code, out, complaints = viadROS(t, 102, "doctor", "--wait", "200ms")
	first, _, _ := strings.Cut(out[strings.Index(out, "problems:"):], ";")
	if code != ExitFailed || !strings.Contains(first, "only this host is looked at") || strings.Contains(out, "firewall") || !strings.Contains(out, "ROS_DOMAIN_ID") || !strings.Contains(complaints, "nobody else was found in domain 102") {
		t.Errorf("alone: %d\n%s%s", code, out, complaints)
	}
	far := &rosDoctor{}
	far.Wire, far.Domain = "dds", 102
	if words := strings.Join(far.troubles(ros.Graph{}, &doctorReport{}), "\n"); !strings.Contains(words, "UDP ports 32900 to 33149") || strings.Contains(words, "--localhost") {
		t.Errorf("alone on a network: %s", words)
	}
}

// The environment that ROS itself takes is taken.
func TestRosEnvironment(t *testing.T) {
	rosRobot(t, 103, cdr.Humble)
	t.Setenv("ROS_DOMAIN_ID", "103")
	t.Setenv("ROS_LOCALHOST_ONLY", "1")
	t.Setenv("ROS_STATIC_PEERS", "127.0.0.1;127.0.0.2")
	var o, e strings.Builder
	if code := run(t.Context(), []string{"ros", "node", "list"}, streams{strings.NewReader(""), &o, &e}); code != ExitOK || o.String() != "/lab/robot\n" {
		t.Errorf("exit code %d, %q, %s", code, o.String(), e.String())
	}
}

// parses says whether the command line takes the arguments.
func parses(args []string) bool {
	var c commands
	p, err := kong.New(&c, kong.Name("viad"), faultVars(), kong.Exit(func(int) {}))
	if err != nil {
		return false
	}
	_, err = p.Parse(args)
	return err == nil
}

// Every viad command of docs/ros.md is one that the command line has.
func TestRosDocCommands(t *testing.T) {
	b, err := os.ReadFile("../docs/ros.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^viad ros .*$`).FindAllString(string(b), -1)
	if len(lines) < 12 {
		t.Fatalf("only %d commands in docs/ros.md", len(lines))
	}
	for _, l := range lines {
		args := strings.Fields(regexp.MustCompile(`'[^']*'`).ReplaceAllString(l, "x"))
		if !parses(args[1:]) {
			t.Errorf("docs/ros.md shows a command that there is not: %s", l)
		}
	}
	for _, w := range []string{"SROS2", "discovery server", "shared memory", "Zenoh"} {
		if !strings.Contains(string(b), w) {
			t.Errorf("docs/ros.md does not say whether %s is supported", w)
		}
	}
	if !slices.ContainsFunc(lines, func(s string) bool { return strings.Contains(s, "doctor") }) {
		t.Error("docs/ros.md does not show the doctor")
	}
}
