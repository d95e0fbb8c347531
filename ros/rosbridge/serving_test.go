package rosbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
	"viad/ros/rosbridge"
	"viad/ros/rosbridge/server"
)

// An action that we serve: feedback, result, cancelling, what Accept refuses, and what Cancel refuses.
func TestServingAnAction(t *testing.T) {
	b := newBench(t, server.New())
	n := b.dial()
	running, release := make(chan ros.GoalID, 4), make(chan struct{})
	var stubborn ros.GoalID
	var mu sync.Mutex
	must[ros.Closer](t)(n.ServeAction(follow(), ros.ActionHandler{
		Accept: func(m msg.Message) bool {
			return m.(*control_msgs.FollowJointTrajectory_Goal).Trajectory.JointNames[0] != "refuse"
		},
		Cancel: func(id ros.GoalID) bool {
			mu.Lock()
			defer mu.Unlock()
			if id == stubborn {
				close(release)
				return false
			}
			return true
		},
		Run: func(ctx context.Context, id ros.GoalID, m msg.Message, feedback func(msg.Message)) (msg.Message, ros.GoalStatus) {
			r := resultOf()
			switch m.(*control_msgs.FollowJointTrajectory_Goal).Trajectory.JointNames[0] {
			case "feedback":
				feedback(&control_msgs.FollowJointTrajectory_Feedback{JointNames: []string{"half way"}})
				r.ErrorString = "there"
				return r, ros.GoalSucceeded
			case "stubborn":
				mu.Lock()
				stubborn = id
				mu.Unlock()
				running <- id
				<-release
				if ctx.Err() != nil {
					return r, ros.GoalCanceled
				}
				r.ErrorString = "finished all the same"
				return r, ros.GoalSucceeded
			}
			running <- id
			<-ctx.Done()
			r.ErrorString = "stopped"
			return r, ros.GoalCanceled
		},
	}))
	c := b.sends(b.robot)
	for _, x := range []struct {
		goal   string
		cancel bool
		status ros.GoalStatus
		words  string
	}{
		{"feedback", false, ros.GoalSucceeded, "there"},
		{"wait", true, ros.GoalCanceled, "stopped"},
		{"stubborn", true, ros.GoalSucceeded, "finished all the same"},
		{"refuse", false, ros.GoalAborted, ""},
	} {
		heard := make(chan string, 4)
		g := must[ros.Goal](t)(c.Send(b.ctx, goalOf(x.goal), func(m msg.Message) {
			heard <- m.(*control_msgs.FollowJointTrajectory_Feedback).JointNames[0]
		}))
		if x.cancel {
			take(b, running, x.goal)
			if err := g.Cancel(b.ctx); err != nil {
				t.Error(err)
			}
		}
		r := resultOf()
		if s, err := g.Result(b.ctx, r); err != nil || s != x.status || r.ErrorString != x.words {
			t.Errorf("%s: status %d, %q, %v, want %d and %q", x.goal, s, r.ErrorString, err, x.status, x.words)
		}
		if x.goal == "feedback" {
			if s := take(b, heard, "feedback"); s != "half way" {
				t.Errorf("feedback %q", s)
			}
		}
	}
	// The connection that would carry the result is cut: the goal is stopped here, and aborted there.
	g := must[ros.Goal](t)(c.Send(b.ctx, goalOf("wait"), nil))
	take(b, running, "the goal")
	b.srv.Kick()
	if s, err := g.Result(b.ctx, resultOf()); err == nil && s != ros.GoalAborted {
		t.Errorf("a goal whose server was cut off: status %d", s)
	}
}

// A service of ours that fails is answered with words, and our node goes on serving after the connection was cut.
func TestServingAService(t *testing.T) {
	b := newBench(t, server.Caveats{})
	n := b.dial()
	must[ros.Closer](t)(n.Serve(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response]("/ours"),
		func(_ context.Context, m msg.Message) (msg.Message, error) {
			if m.(*std_srvs.SetBool_Request).Data {
				return nil, errors.New("the arm is in the way")
			}
			return &std_srvs.SetBool_Response{Success: true}, nil
		}))
	c := must[ros.Caller](t)(b.robot.Client(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response]("/ours")))
	var a std_srvs.SetBool_Response
	if err := c.Call(b.ctx, &std_srvs.SetBool_Request{Data: true}, &a); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("a service that fails: %+v, %v", a, err)
	}
	for range 2 {
		for { // while the connection is cut nobody serves it, or its server goes away in the middle
			ctx, cancel := context.WithTimeout(b.ctx, time.Second)
			err := c.Call(ctx, &std_srvs.SetBool_Request{}, &a)
			cancel()
			if err == nil && a.Success {
				break
			}
			if b.ctx.Err() != nil {
				t.Fatal(err)
			}
		}
		b.srv.Kick()
	}
}

// What is left out of an operation differs between versions: every setting is written. Commands are not latched, and the
// queue of one that is best effort is one.
func TestEverySettingIsExplicit(t *testing.T) {
	b := newBench(t, server.Caveats{})
	b.stop()
	type sent struct {
		Op          string `json:"op"`
		Topic       string `json:"topic"`
		ID          string `json:"id"`
		Latch       *bool  `json:"latch"`
		QueueSize   *int   `json:"queue_size"`
		Throttle    *int   `json:"throttle_rate"`
		Queue       *int   `json:"queue_length"`
		Compression string `json:"compression"`
		Fragment    *int   `json:"fragment_size"`
	}
	frames := make(chan sent, 256)
	b.opt.Trace = func(f []byte) {
		var s sent
		if err := json.Unmarshal(f, &s); err != nil {
			t.Errorf("%v: %s", err, f)
		}
		frames <- s
	}
	b.up(b.addr)
	n := b.dial(func(c *rosbridge.Config) {
		c.Throttle = map[string]time.Duration{"/image": 250 * time.Millisecond}
		c.FragmentSize = 1 << 20
	})
	must[ros.Publisher[*std_msgs.String]](t)(ros.Advertise[std_msgs.String](n, "/command", ros.SensorData()))
	must[ros.Subscription](t)(ros.Subscribe(n, "/image", ros.SensorData(), func(*sensor_msgs.Image, ros.Info) {}))
	for seen := 0; seen < 2; {
		f := take(b, frames, "what is advertised and subscribed")
		switch f.Op {
		case "advertise":
			seen++
			if f.Latch == nil || *f.Latch || f.QueueSize == nil || *f.QueueSize != 1 || f.ID == "" {
				t.Errorf("advertised with %+v", f)
			}
		case "subscribe":
			seen++
			if f.Throttle == nil || *f.Throttle != 250 || f.Queue == nil || *f.Queue != 5 || f.Compression != "cbor-raw" || f.Fragment == nil || *f.Fragment != 1<<20 {
				t.Errorf("subscribed with %+v", f)
			}
		}
	}
}

// Two clients with one name: the server has one table for both, and their ids do not meet.
func TestTwoClients(t *testing.T) {
	b := newBench(t, server.New())
	m := b.moves()
	one, two := b.sends(b.dial()), b.sends(b.dial())
	first := must[ros.Goal](t)(one.Send(b.ctx, goalOf("one"), nil))
	second := must[ros.Goal](t)(two.Send(b.ctx, goalOf("two"), nil))
	if err := second.Cancel(b.ctx); err != nil {
		t.Fatal(err)
	}
	if s := take(b, m.ended, "the end of the second"); s != "two" {
		t.Errorf("%q was cancelled", s)
	}
	if s := first.Status(); s >= ros.GoalCanceling {
		t.Errorf("the other client's goal has status %d", s)
	}
	if err := first.Cancel(b.ctx); err != nil {
		t.Error(err)
	}
}

// A server that sends rubbish costs bounded memory and nothing else.
func TestHostileServer(t *testing.T) {
	const rounds = 300
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		ctx, cancel := context.WithCancel(r.Context())
		go func() { // what the client says is of no interest
			defer cancel()
			for {
				if _, _, err := c.Read(ctx); err != nil {
					return
				}
			}
		}()
		big := strings.Repeat("x", 20000)
		for i := range rounds {
			for _, f := range []string{
				"{", "null", `{"op":"publish"}`, `{"op":"publish","topic":"/t","msg":` + strings.Repeat("[", 10000) + `}`,
				fmt.Sprintf(`{"op":"fragment","id":"%d","num":0,"total":65536,"data":"%s"}`, i, big),
				fmt.Sprintf(`{"op":"action_feedback","id":"%d","action":"/a","values":{}}`, i),
				fmt.Sprintf(`{"op":"action_result","id":"%d","action":"/a","values":{},"result":true}`, i),
				fmt.Sprintf(`{"op":"send_action_goal","id":"%d","action":"/a","args":{}}`, i),
				fmt.Sprintf(`{"op":"call_service","id":"%d","service":"/s%d","args":{}}`, i, i),
				fmt.Sprintf(`{"op":"status","level":"error","msg":"%s"}`, big), fmt.Sprintf(`{"op":"op%d"}`, i),
				fmt.Sprintf(`{"op":"publish","topic":"/t","msg":{"data":%d}}`, i),
			} {
				if c.Write(ctx, websocket.MessageText, []byte(f)) != nil {
					return
				}
			}
			if c.Write(ctx, websocket.MessageBinary, []byte{0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}) != nil {
				return
			}
		}
		_ = c.Write(ctx, websocket.MessageText, []byte(`{"op":"publish","topic":"/t","msg":{"data":"last"}}`))
		<-ctx.Done()
	}))
	defer h.Close()
	b := &bench{t: t}
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	n, err := rosbridge.Dial(b.ctx, rosbridge.Config{URL: "ws" + strings.TrimPrefix(h.URL, "http"), Distro: cdr.Jazzy, MaxIn: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	got := make(chan string, 16)
	sub := must[ros.Subscription](t)(ros.Subscribe(n, "/t", ros.Default(), func(m *std_msgs.String, _ ros.Info) { got <- m.Data }))
	if s := take(b, got, "the only message that is one"); s != "last" {
		t.Errorf("got %q", s)
	}
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	if mem.HeapAlloc > 64<<20 {
		t.Errorf("%d MB are held", mem.HeapAlloc>>20)
	}
	t.Logf("%+v, %.1f MB held", sub.Stats(), float64(mem.HeapAlloc)/(1<<20))
}
