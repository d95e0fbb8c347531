package server_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/msg/all"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
	"viad/ros/rosbridge/local"
	"viad/ros/rosbridge/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// roslib runs testdata/roslib/client.mjs, with the protocol's own JavaScript client from npm, against url.
func roslib(ctx context.Context, t *testing.T, url string) <-chan line {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "client.mjs"} {
		b, err := os.ReadFile(filepath.Join("testdata", "roslib", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(ctx, "npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		if os.Getenv("VIAD_CI") == "" {
			t.Skipf("roslib cannot be had from npm (%v), so that the server is not proven against it here: install nodejs 20 and npm\n%s", err, out)
		}
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	// It ends when its input does, after the test's context.
	run := exec.CommandContext(context.WithoutCancel(ctx), "node", "client.mjs", url)
	run.Dir = dir
	run.Stderr = t.Output()
	in, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan line, 256)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := bufio.NewScanner(out); s.Scan(); {
			var l line
			if err := json.Unmarshal(s.Bytes(), &l); err != nil {
				t.Errorf("%v: %s", err, s.Bytes())
			}
			lines <- l
		}
	}()
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		<-done
		if err := run.Wait(); err != nil {
			t.Errorf("node: %v", err)
		}
	})
	return lines
}

// line is one result of the client.
type line struct {
	Step  string          `json:"step"`
	Value json.RawMessage `json:"value"`
}

const long = "long"

func follow(name string) ros.Action {
	return ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback](name)
}

func jointOf(m msg.Message) string {
	if g, ok := m.(*control_msgs.FollowJointTrajectory_Goal); ok && len(g.Trajectory.JointNames) > 0 {
		return g.Trajectory.JointNames[0]
	}
	return ""
}

// robot serves what the client asks for.
func robot(t *testing.T, n ros.Node) {
	t.Helper()
	_, err := n.Serve(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response]("/set"), func(_ context.Context, m msg.Message) (msg.Message, error) {
		q, ok := m.(*std_srvs.SetBool_Request)
		return &std_srvs.SetBool_Response{Success: ok && q.Data, Message: "grüß Gott"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.ServeAction(follow("/arm"), ros.ActionHandler{
		Accept: func(m msg.Message) bool { return jointOf(m) != "refuse" },
		Run: func(ctx context.Context, _ ros.GoalID, m msg.Message, feedback func(msg.Message)) (msg.Message, ros.GoalStatus) {
			feedback(&control_msgs.FollowJointTrajectory_Feedback{JointNames: []string{"on the way"}})
			if jointOf(m) == long {
				<-ctx.Done()
				return &control_msgs.FollowJointTrajectory_Result{ErrorString: "stopped"}, ros.GoalCanceled
			}
			return &control_msgs.FollowJointTrajectory_Result{ErrorString: "there"}, ros.GoalSucceeded
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func publish[T any, P msg.Ptr[T]](ctx context.Context, t *testing.T, n ros.Node, topic string, m P) {
	t.Helper()
	p, err := ros.Advertise[T, P](n, topic, ros.Default())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Ready(ctx, 1); err != nil {
		t.Fatalf("nobody subscribes to %s: %v", topic, err)
	}
	if err := p.Send(ctx, m); err != nil {
		t.Fatal(err)
	}
}

// The server is understood by roslib, and understands it: topics in three encodings, services and actions both ways,
// failures, cancelling, rosapi.
func TestRoslib(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	g := local.NewGraph()
	n, bridge := g.Node("/robot"), g.Node("/rosbridge_websocket")
	robot(t, n)
	words, poses := make(chan string, 1), make(chan *geometry_msgs.PoseStamped, 1)
	if _, err := ros.Subscribe(n, "/from_js", ros.Default(), func(m *std_msgs.String, _ ros.Info) { words <- m.Data }); err != nil {
		t.Fatal(err)
	}
	if _, err := ros.Subscribe(n, "/pose_from_js", ros.Default(), func(m *geometry_msgs.PoseStamped, _ ros.Info) { poses <- m }); err != nil {
		t.Fatal(err)
	}
	srv, err := server.NewServer(server.Options{Node: bridge, Types: all.New, Distro: cdr.Jazzy, Caveats: server.New()})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Close()
		h.Close()
		for _, x := range []ros.Node{n, bridge} {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	// The publishers are there first, as a server needs that chooses its QoS once.
	for _, topic := range []string{"/chatter", "/raw"} {
		if _, err := ros.Advertise[std_msgs.String](n, topic, ros.Default()); err != nil {
			t.Fatal(err)
		}
	}
	advertised(t, n)
	lines := roslib(ctx, t, "ws"+strings.TrimPrefix(h.URL, "http"))

	publish(ctx, t, n, "/chatter", &std_msgs.String{Data: "hello, \"js\" \u00fc\U0001f916"})
	publish(ctx, t, n, "/joint_states", &sensor_msgs.JointState{Effort: []float64{1, math.NaN()}})
	scan := &sensor_msgs.LaserScan{Ranges: []float32{1.5, float32(math.NaN())}}
	scan.Header.FrameId = "laser"
	publish(ctx, t, n, "/scan", scan)
	publish(ctx, t, n, "/image", &sensor_msgs.Image{Data: []byte{0, 1, 254, 255}})
	publish(ctx, t, n, "/raw", &std_msgs.String{Data: "raw"})
	want := map[string]string{
		"connected": `true`,
		"heard":     `"hello, \"js\" ü🤖"`,
		"joints":    `[1,null]`,
		"scan":      `[1.5,"NaN","laser","Float32Array"]`,
		"image":     `"` + base64.StdEncoding.EncodeToString([]byte{0, 1, 254, 255}) + `"`,
		"raw":       `"` + hex.EncodeToString([]byte("\x00\x01\x00\x00\x04\x00\x00\x00raw\x00")) + `"`,
		"answer":    `{"success":true,"message":"grüß Gott"}`,
		"nobody":    `"Service /nobody does not exist"`,
		"feedback":  `["on the way"]`,
		"result":    `"there"`,
		"refused":   `"GoalError: Action status unknown: Action goal was rejected"`,
		"cancelled": `"failed GoalError: Action was canceled: {\"error_code\":0,\"error_string\":\"stopped\"}"`,
		"type":      `"std_srvs/srv/SetBool"`,
		"topics":    "/chatter",
		"actions":   "/arm",
	}
	for len(want) > 0 {
		select {
		case l := <-lines:
			w, ok := want[l.Step]
			delete(want, l.Step)
			if ok && string(l.Value) != w && (w[0] != '/' || !strings.Contains(string(l.Value), `"`+w+`"`)) {
				t.Errorf("%s: roslib has %s, want %s", l.Step, l.Value, w)
			}
			if !ok && l.Step == "error" {
				t.Errorf("roslib: %s", l.Value)
			}
		case <-ctx.Done():
			t.Fatalf("roslib never said %v", want)
		}
	}
	if s := <-words; s != "hello from js" {
		t.Errorf("the robot heard %q", s)
	}
	if p := <-poses; p.Header.FrameId != "map" || p.Pose.Position.X != 1.5 || time.Since(time.Unix(int64(p.Header.Stamp.Sec), 0)) > time.Hour {
		t.Errorf("the robot has the pose %+v: without a stamp it gets the robot's", p)
	}
	jsServes(ctx, t, n)
}

func advertised(t *testing.T, n ros.Node) {
	t.Helper()
	_, e1 := ros.Advertise[sensor_msgs.JointState](n, "/joint_states", ros.Default())
	_, e2 := ros.Advertise[sensor_msgs.LaserScan](n, "/scan", ros.Default())
	_, e3 := ros.Advertise[sensor_msgs.Image](n, "/image", ros.Default())
	if err := errors.Join(e1, e2, e3); err != nil {
		t.Fatal(err)
	}
}

// jsServes calls what roslib serves through the server.
func jsServes(ctx context.Context, t *testing.T, n ros.Node) {
	t.Helper()
	c, err := n.Client(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response]("/js"))
	if err != nil {
		t.Fatal(err)
	}
	var a std_srvs.SetBool_Response
	if err := c.Call(ctx, &std_srvs.SetBool_Request{Data: true}, &a); err != nil || !a.Success || a.Message != "js was asked" {
		t.Errorf("the service in js: %+v, %v", a, err)
	}
	act, err := n.ActionClient(follow("/js_arm"))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		goal   string
		status ros.GoalStatus
		words  string
	}{{"short", ros.GoalSucceeded, "js did it"}, {long, ros.GoalCanceled, "js stopped"}} {
		heard := make(chan []string, 1)
		m := new(control_msgs.FollowJointTrajectory_Goal)
		m.Trajectory.JointNames = []string{x.goal}
		g, err := act.Send(ctx, m, func(f msg.Message) {
			if fb, ok := f.(*control_msgs.FollowJointTrajectory_Feedback); ok {
				heard <- fb.JointNames
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if fb := <-heard; !slices.Equal(fb, []string{"js at work"}) {
			t.Errorf("feedback %q", fb)
		}
		if x.goal == long {
			if err := g.Cancel(ctx); err != nil {
				t.Error(err)
			}
		}
		var r control_msgs.FollowJointTrajectory_Result
		if s, err := g.Result(ctx, &r); err != nil || s != x.status || r.ErrorString != x.words {
			t.Errorf("the action in js: status %d, %q, %v", s, r.ErrorString, err)
		}
	}
}
