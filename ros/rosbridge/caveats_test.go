package rosbridge_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/rosbridge"
	"viad/ros/rosbridge/server"
)

// One test for each way in which servers surprise their clients (reference/robots.md, 1.7).

// Closing the websocket does not cancel goals: what was on its way is Gone at once, and is cancelled as soon as a
// connection is there again.
func TestGoalsOutliveTheSocket(t *testing.T) {
	b := newBench(t, server.Caveats{GoalsOutliveSocket: true})
	m := b.moves()
	g := must[ros.Goal](t)(b.sends(b.dial()).Send(b.ctx, goalOf("left behind"), nil))
	take(b, m.started, "the goal")
	b.srv.Kick()
	if _, err := g.Result(b.ctx, resultOf()); !errors.As(err, new(*ros.Gone)) {
		t.Errorf("the result after the connection was lost: %v, want a *ros.Gone", err)
	}
	take(b, m.ended, "the goal's end: nobody waits for it any more")
}

// A server that was restarted knows no id: the action's own cancel service does.
func TestGoalOutlivesTheServer(t *testing.T) {
	b := newBench(t, server.Caveats{})
	m := b.moves()
	// The goal is another client's, sent through another server that dies with everything it knew.
	other := b.graph.Node("/other")
	defer other.Close() // it is a stand-in
	must[ros.Goal](t)(must[ros.Goaler](t)(other.ActionClient(follow())).Send(b.ctx, goalOf("orphan"), nil))
	take(b, m.started, "the goal")
	if err := b.sends(b.dial()).CancelAll(b.ctx); err != nil {
		t.Fatal(err)
	}
	take(b, m.ended, "the end of a goal that this client knows nothing of")
}

// Another client, and our own second socket, may not cancel by id: the service cancels this goal and no other.
func TestCancelOnlyOwn(t *testing.T) {
	b := newBench(t, server.Caveats{CancelOnlyOwn: true})
	m := b.moves()
	c := b.sends(b.dial())
	one := must[ros.Goal](t)(c.Send(b.ctx, goalOf("one"), nil))
	must[ros.Goal](t)(c.Send(b.ctx, goalOf("two"), nil))
	take(b, m.started, "one")
	take(b, m.started, "two")
	if err := one.Cancel(b.ctx); err != nil {
		t.Fatal(err)
	}
	if got := take(b, m.ended, "the end of the first goal"); got != "one" {
		t.Errorf("%q was cancelled", got)
	}
	if s, err := one.Result(b.ctx, resultOf()); err != nil || s != ros.GoalCanceled {
		t.Errorf("status %d, %v", s, err)
	}
	select {
	case got := <-m.ended:
		t.Errorf("%q was cancelled too", got)
	default:
	}
}

// A goal runs in the thread that reads the socket: cancel and stop travel the other one.
func TestGoalsBlockTheSocket(t *testing.T) {
	b := newBench(t, server.Caveats{GoalsBlock: true, ServicesBlock: true})
	m := b.moves()
	stopped := b.serves(stopService, nil)
	b.serves("/other", nil)
	n := b.dial(urgentStop)
	stop, other := b.calls(n, stopService), b.calls(n, "/other")
	if err := trigger(b.ctx, other); err != nil {
		t.Fatal(err)
	}
	g := must[ros.Goal](t)(b.sends(n).Send(b.ctx, goalOf("long"), nil))
	take(b, m.started, "the goal")
	// What is not urgent waits behind the goal, and its own context ends it.
	short, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	if err := trigger(short, other); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call behind the goal: %v; the server does not block as it should here", err)
	}
	if err := trigger(b.ctx, stop); err != nil {
		t.Errorf("the stop service: %v", err)
	}
	take(b, stopped, "the stop")
	if err := g.Cancel(b.ctx); err != nil {
		t.Fatal(err)
	}
	take(b, m.ended, "the goal's end")
	if s, err := g.Result(b.ctx, resultOf()); err != nil || s != ros.GoalCanceled {
		t.Errorf("status %d, %v", s, err)
	}
}

// A service that is slow holds up what follows on its socket, but not what is urgent.
func TestServicesBlockTheSocket(t *testing.T) {
	b := newBench(t, server.Caveats{ServicesBlock: true})
	release := make(chan struct{})
	homing := b.serves("/home_the_robot", release)
	b.serves(stopService, nil)
	n := b.dial(urgentStop)
	home, stop := b.calls(n, "/home_the_robot"), b.calls(n, stopService)
	done := make(chan error, 1)
	go func() { done <- trigger(b.ctx, home) }()
	take(b, homing, "homing")
	if err := trigger(b.ctx, stop); err != nil {
		t.Errorf("the stop service behind homing: %v", err)
	}
	close(release)
	if err := take(b, done, "the end of homing"); err != nil {
		t.Error(err)
	}
}

// A refused goal gets no result in old versions: our own timer ends the wait.
func TestRejectedGoalHangs(t *testing.T) {
	b := newBench(t, server.Caveats{RejectedHangs: true})
	b.moves()
	c := b.sends(b.dial(func(c *rosbridge.Config) { c.AcceptTimeout = 100 * time.Millisecond }))
	g, err := c.Send(b.ctx, goalOf("refuse"), nil)
	if !errors.As(err, new(*ros.Gone)) || !strings.Contains(err.Error(), "100ms") {
		t.Errorf("a goal that was refused without a word: %v, %v", g, err)
	}
}

func TestRejectedGoal(t *testing.T) {
	b := newBench(t, server.Caveats{})
	b.moves()
	if g, err := b.sends(b.dial()).Send(b.ctx, goalOf("refuse"), nil); !errors.As(err, new(*ros.Rejected)) {
		t.Errorf("a refused goal: %v, %v", g, err)
	}
}

// Old versions send a goal to nobody and wait for ever: it is not sent.
func TestMissingServer(t *testing.T) {
	b := newBench(t, server.Caveats{MissingHangs: true})
	ctx, cancel := context.WithTimeout(b.ctx, 100*time.Millisecond)
	defer cancel()
	g, err := b.sends(b.dial()).Send(ctx, goalOf("into the void"), nil)
	if !errors.As(err, new(*ros.Absent)) {
		t.Errorf("a goal for nobody: %v, %v", g, err)
	}
}

// A cancel that comes before the goal is accepted is dropped: it is repeated until it shows.
func TestEarlyCancelIsRepeated(t *testing.T) {
	b := newBench(t, server.Caveats{EarlyCancelLost: true, GoalsOutliveSocket: true})
	m := b.moves()
	c := b.sends(b.dial())
	if err := c.Ready(b.ctx); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.ctx, 500*time.Millisecond)
	defer cancel()
	if g, err := c.Send(ctx, goalOf("hold"), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a goal that is not accepted in time: %v, %v", g, err)
	}
	close(m.hold) // only now the server takes it
	take(b, m.started, "the goal that came late")
	take(b, m.ended, "its end: who sent it has given up")
}

// The result of a cancelled goal lacks its status: the status topic has it.
func TestResultWithoutStatus(t *testing.T) {
	b := newBench(t, server.Caveats{NoStatus: true})
	m := b.moves()
	g := must[ros.Goal](t)(b.sends(b.dial()).Send(b.ctx, goalOf("x"), nil))
	take(b, m.started, "the goal")
	if err := g.Cancel(b.ctx); err != nil {
		t.Fatal(err)
	}
	s, err := g.Result(b.ctx, resultOf())
	if err != nil || (s != ros.GoalCanceled && s != ros.GoalUnknown) {
		t.Errorf("status %d, %v: want canceled, or unknown when the topic was later than the result", s, err)
	}
}

// Ids are this node's alone, so that an answer that carries another is nobody's.
func TestWrongIDs(t *testing.T) {
	b := newBench(t, server.Caveats{WrongIDs: true})
	b.serves("/x", nil)
	c := b.calls(b.dial(func(c *rosbridge.Config) { c.Distro, c.Urgent = cdr.Jazzy, []string{"/x"} }), "/x") // nothing but the call
	ctx, cancel := context.WithTimeout(b.ctx, 100*time.Millisecond)
	defer cancel()
	if err := trigger(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an answer with a wrong id was taken: %v", err)
	}
}

// The server gives up after its own time unless told otherwise: the call says how long its context lasts.
func TestServiceTimeout(t *testing.T) {
	b := newBench(t, server.Caveats{ServiceTimeout: 20 * time.Millisecond})
	release := make(chan struct{})
	called := b.serves("/home_the_robot", release)
	c := b.calls(b.dial(), "/home_the_robot")
	done := make(chan error, 1)
	go func() { done <- trigger(b.ctx, c) }()
	take(b, called, "homing")
	select {
	case err := <-done:
		t.Fatalf("the call ended early: %v", err)
	case <-time.After(100 * time.Millisecond): // five times what the server would wait by itself
	}
	close(release)
	if err := take(b, done, "the answer"); err != nil {
		t.Error(err)
	}
	// A call without an end is given an hour, and one whose time is up says so in its own words.
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Millisecond)
	defer cancel()
	hold := b.serves("/hold", make(chan struct{}))
	if err := trigger(ctx, b.calls(b.dial(), "/hold")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call past its time: %v", err)
	}
	take(b, hold, "the call")
}

// The subscriber's QoS was chosen from the publishers of then: a silent topic that has publishers is subscribed again.
func TestDeafToLaterPublishers(t *testing.T) {
	b := newBench(t, server.Caveats{DeafToLater: true})
	got := b.hears(b.dial(), "/late")
	b.says(b.robot, "/late", "hello", got)
}

// The server serves a topic raw to all of its clients or to none: a silent one is asked for in the other encoding.
func TestFirstEncodingWins(t *testing.T) {
	b := newBench(t, server.Caveats{FirstEncoding: true})
	scans := func(n *rosbridge.Node) <-chan *sensor_msgs.LaserScan {
		c := make(chan *sensor_msgs.LaserScan, 64)
		must[ros.Subscription](t)(ros.Subscribe(n, "/scan", ros.SensorData(), func(m *sensor_msgs.LaserScan, _ ros.Info) {
			select {
			case c <- m:
			default:
			}
		}))
		return c
	}
	page := b.dial(func(c *rosbridge.Config) { c.Encodings = map[string]rosbridge.Encoding{"/scan": rosbridge.JSON} })
	theirs := scans(page)
	p := must[ros.Publisher[*sensor_msgs.LaserScan]](t)(ros.Advertise[sensor_msgs.LaserScan](b.robot, "/scan", ros.SensorData()))
	if err := p.Ready(b.ctx, 1); err != nil {
		t.Fatal(err)
	}
	ours := scans(b.dial())
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		if err := p.Send(b.ctx, &sensor_msgs.LaserScan{Ranges: []float32{1.5}}); err != nil {
			t.Fatal(err)
		}
		select {
		case m := <-ours:
			tick.Stop()
			if len(m.Ranges) != 1 || m.Ranges[0] != 1.5 {
				t.Errorf("got %+v", m)
			}
			take(b, theirs, "the page's own scans")
			return
		case <-tick.C:
		case <-b.ctx.Done():
			t.Fatal("nothing came in either encoding")
		}
	}
}

// A stamp that is zero is left out of what is published, and the robot's clock is filled in; a goal's stays zero.
func TestStampIsTheRobots(t *testing.T) {
	b := newBench(t, server.Caveats{FillStamps: true})
	got := make(chan int32, 8)
	must[ros.Subscription](t)(ros.Subscribe(b.robot, "/pose", ros.Default(), func(m *geometry_msgs.PoseStamped, _ ros.Info) { got <- m.Header.Stamp.Sec }))
	n := b.dial()
	p := must[ros.Publisher[*geometry_msgs.PoseStamped]](t)(ros.Advertise[geometry_msgs.PoseStamped](n, "/pose", ros.Default()))
	if err := p.Ready(b.ctx, 1); err != nil {
		t.Fatal(err)
	}
	var m geometry_msgs.PoseStamped
	m.Pose.Orientation.W = 1
	for _, sec := range []int32{0, 17} {
		m.Header.Stamp.Sec = sec
		if err := p.Send(b.ctx, &m); err != nil {
			t.Fatal(err)
		}
		s := take(b, got, "the pose")
		if now := int32(time.Now().Unix()); (sec == 0 && (s < now-5 || s > now+5)) || (sec != 0 && s != sec) {
			t.Errorf("sent the stamp %d, the robot has %d", sec, s)
		}
	}
	mv := b.moves()
	g := must[ros.Goal](t)(b.sends(n).Send(b.ctx, goalOf("x"), nil))
	if s := take(b, mv.stamps, "the goal"); s != 0 {
		t.Errorf("the goal's stamp is %d, not the zero that means now", s)
	}
	if err := g.Cancel(b.ctx); err != nil {
		t.Error(err)
	}
}

// NaN comes as null, or bare: the message is malformed and counted, never 0, and the next one comes.
func TestNaNIsNoNumber(t *testing.T) {
	for _, c := range []struct {
		name    string
		caveats server.Caveats
	}{{"null", server.Caveats{}}, {"bare", server.Caveats{BareNaN: true}}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.caveats)
			got := make(chan []float64, 8)
			sub := must[ros.Subscription](t)(ros.Subscribe(b.dial(), "/joint_states", ros.Default(), func(m *sensor_msgs.JointState, _ ros.Info) { got <- m.Effort }))
			p := must[ros.Publisher[*sensor_msgs.JointState]](t)(ros.Advertise[sensor_msgs.JointState](b.robot, "/joint_states", ros.Default()))
			if err := p.Ready(b.ctx, 1); err != nil {
				t.Fatal(err)
			}
			for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 4} {
				if err := p.Send(b.ctx, &sensor_msgs.JointState{Name: []string{"j"}, Effort: []float64{1, v}}); err != nil {
					t.Fatal(err)
				}
			}
			if g := take(b, got, "the message without NaN"); len(g) != 2 || g[1] != 4 {
				t.Errorf("got %v, want only the last message", g)
			}
			if s := sub.Stats(); s.Malformed != 3 || s.Received != 4 {
				t.Errorf("stats %+v, want 3 of 4 malformed", s)
			}
		})
	}
}

// A number that JSON cannot write is not sent either.
func TestNaNIsNotPublished(t *testing.T) {
	b := newBench(t, server.Caveats{})
	p := must[ros.Publisher[*std_msgs.Float64]](t)(ros.Advertise[std_msgs.Float64](b.dial(), "/x", ros.Default()))
	if err := p.Send(b.ctx, &std_msgs.Float64{Data: math.NaN()}); err == nil || !strings.Contains(err.Error(), "NaN") {
		t.Errorf("publishing NaN: %v", err)
	}
}

// A server from before 2.0 has no actions: it says so, or nothing.
func TestNoActions(t *testing.T) {
	for _, words := range []bool{true, false} {
		b := newBench(t, server.Caveats{NoActions: true, StatusWords: words})
		b.moves()
		n := b.dial(func(c *rosbridge.Config) { c.AcceptTimeout = 100 * time.Millisecond })
		g, err := b.sends(n).Send(b.ctx, goalOf("x"), nil)
		var unsupported *ros.Unsupported
		if words && (!errors.As(err, &unsupported) || unsupported.Instead == "") {
			t.Errorf("a goal that the server does not know: %v, %v", g, err)
		}
		graph, graphErr := n.Graph(b.ctx)
		if said := strings.Contains(strings.Join(graph.Problems, " "), "Unknown operation"); graphErr != nil || said != words {
			t.Errorf("what the server said: %q, %v", graph.Problems, graphErr)
		}
		if !words && !errors.As(err, new(*ros.Gone)) {
			t.Errorf("a goal that the server does not know and does not say so: %v, %v", g, err)
		}
	}
}

// Without rosapi nothing is known of the graph, and everything else works.
func TestNoRosapi(t *testing.T) {
	b := newBench(t, server.Caveats{NoRosapi: true})
	b.serves("/x", nil)
	m := b.moves()
	n := b.dial()
	if err := trigger(b.ctx, b.calls(n, "/x")); err != nil {
		t.Error(err)
	}
	if err := trigger(b.ctx, b.calls(n, "/nobody")); !errors.As(err, new(*ros.Absent)) {
		t.Errorf("a service that nobody serves: %v", err)
	}
	g := must[ros.Goal](t)(b.sends(n).Send(b.ctx, goalOf("x"), nil))
	take(b, m.started, "the goal")
	if err := g.Cancel(b.ctx); err != nil {
		t.Error(err)
	}
	take(b, m.ended, "the goal's end")
	graph, err := n.Graph(b.ctx)
	if err != nil || len(graph.Problems) == 0 || !strings.Contains(strings.Join(graph.Problems, " "), "rosapi") {
		t.Errorf("the graph without rosapi: %+v, %v", graph, err)
	}
}

// A cancel by id that has no effect, and a goal whose id on the robot is not known: every goal of the action is cancelled.
func TestCancelOfAGoalThatIsNotKnown(t *testing.T) {
	b := newBench(t, server.Caveats{CancelIgnored: true})
	m := b.moves()
	g := must[ros.Goal](t)(b.sends(b.dial()).Send(b.ctx, goalOf("x"), nil))
	take(b, m.started, "the goal")
	rosbridge.ForgetRobotID(g)
	if err := g.Cancel(b.ctx); err != nil {
		t.Error(err)
	}
	take(b, m.ended, "the goal's end")
}

// All the ways of 2024 at once.
func TestOldServer(t *testing.T) {
	b := newBench(t, server.Old())
	m := b.moves()
	b.serves(stopService, nil)
	n := b.dial(urgentStop)
	g := must[ros.Goal](t)(b.sends(n).Send(b.ctx, goalOf("x"), nil))
	take(b, m.started, "the goal")
	if err := trigger(b.ctx, b.calls(n, stopService)); err != nil {
		t.Error(err)
	}
	if err := g.Cancel(b.ctx); err != nil {
		t.Error(err)
	}
	if s, err := g.Result(b.ctx, resultOf()); err != nil || (s != ros.GoalCanceled && s != ros.GoalUnknown) {
		t.Errorf("status %d, %v", s, err)
	}
}

// Goals that ran before, and one of somebody else that still runs, are not taken for ours.
func TestOldGoalsAreNotOurs(t *testing.T) {
	b := newBench(t, server.Caveats{CancelOnlyOwn: true})
	m := b.moves()
	theirs := b.graph.Node("/other")
	defer theirs.Close()
	other := b.sends(theirs)
	over := must[ros.Goal](t)(other.Send(b.ctx, goalOf("over"), nil))
	if err := over.Cancel(b.ctx); err != nil {
		t.Fatal(err)
	}
	take(b, m.ended, "the end of the old goal")
	running := must[ros.Goal](t)(other.Send(b.ctx, goalOf("theirs"), nil))
	for range 2 {
		take(b, m.started, "a goal")
	}
	g := must[ros.Goal](t)(b.sends(b.dial()).Send(b.ctx, goalOf("ours"), nil))
	take(b, m.started, "our goal")
	if s := g.Status(); s >= ros.GoalCanceling {
		t.Errorf("our goal has status %d of another", s)
	}
	if err := g.Cancel(b.ctx); err != nil {
		t.Fatal(err)
	}
	if s := take(b, m.ended, "the end of our goal"); s != "ours" {
		t.Errorf("%q was cancelled", s)
	}
	if s := running.Status(); s >= ros.GoalCanceling {
		t.Errorf("their goal has status %d", s)
	}
	if err := running.Cancel(b.ctx); err != nil {
		t.Error(err)
	}
}

// A goal that was refused without a word is given up and cancelled; what is sent after it goes on.
func TestGivingUpEndsNothingElse(t *testing.T) {
	b := newBench(t, server.Caveats{RejectedHangs: true})
	m := b.moves()
	c := b.sends(b.dial(func(c *rosbridge.Config) {
		c.AcceptTimeout, c.CancelEvery, c.CancelFor = 500*time.Millisecond, 5*time.Millisecond, 200*time.Millisecond
	}))
	if _, err := c.Send(b.ctx, goalOf("refuse"), nil); !errors.As(err, new(*ros.Gone)) {
		t.Fatal(err)
	}
	g := must[ros.Goal](t)(c.Send(b.ctx, goalOf("next"), nil))
	take(b, m.started, "the next goal")
	ctx, cancel := context.WithTimeout(b.ctx, 300*time.Millisecond) // longer than CancelFor
	defer cancel()
	if s, err := g.Result(ctx, resultOf()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the goal after one that was given up ended: status %d, %v", s, err)
	}
	if err := g.Cancel(b.ctx); err != nil {
		t.Error(err)
	}
}
