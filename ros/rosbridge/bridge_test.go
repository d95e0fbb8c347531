package rosbridge_test

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/msg/all"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
	"viad/ros/rosbridge"
	"viad/ros/rosbridge/local"
	"viad/ros/rosbridge/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a robot in memory, a rosbridge server in front of it, and what a test needs to cut in between.
type bench struct {
	t     *testing.T
	ctx   context.Context
	graph *local.Graph
	robot *local.Node // whose services, actions and topics the test makes
	addr  string
	opt   server.Options

	mu   sync.Mutex
	srv  *server.Server
	down func()
}

func newBench(t *testing.T, c server.Caveats) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	b := &bench{t: t, ctx: ctx, graph: local.NewGraph()}
	b.robot = b.graph.Node("/robot")
	bridge := b.graph.Node("/rosbridge_websocket")
	b.opt = options(t, bridge, c)
	b.up("127.0.0.1:0")
	t.Cleanup(func() {
		b.stop()
		for _, n := range []ros.Node{bridge, b.robot} {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return b
}

func options(t *testing.T, node ros.Node, c server.Caveats) server.Options {
	return server.Options{Node: node, Types: all.New, Distro: cdr.Jazzy, Depth: 1000, Caveats: c, Log: logTo(t)}
}

// up starts the server; on the same address it is the one that was stopped.
func (b *bench) up(addr string) {
	b.t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(b.ctx, "tcp", addr)
	if err != nil {
		b.t.Fatal(err)
	}
	b.addr = l.Addr().String()
	srv, err := server.NewServer(b.opt)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(ctx, l); err != nil {
			b.t.Error(err)
		}
	}()
	b.mu.Lock()
	b.srv, b.down = srv, func() { cancel(); <-done }
	b.mu.Unlock()
}

func (b *bench) stop() {
	b.mu.Lock()
	down := b.down
	b.down = func() {}
	b.mu.Unlock()
	down()
}

// dial is a client with short timers.
func (b *bench) dial(change ...func(*rosbridge.Config)) *rosbridge.Node {
	b.t.Helper()
	cfg := rosbridge.Config{
		URL: "ws://" + b.addr, Node: "/viad", Log: logTo(b.t), RetryMin: 10 * time.Millisecond, Watch: 20 * time.Millisecond,
		Silent: 50 * time.Millisecond, AcceptTimeout: 5 * time.Second, CancelEvery: 20 * time.Millisecond,
	}
	for _, f := range change {
		f(&cfg)
	}
	n, err := rosbridge.Dial(b.ctx, cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := n.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return n
}

// logTo keeps a test's log until the test ends.
func logTo(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func take[T any](b *bench, c <-chan T, what string) T {
	b.t.Helper()
	select {
	case v := <-c:
		return v
	case <-b.ctx.Done():
		b.t.Fatalf("waited in vain for %s", what)
		return *new(T)
	}
}

const arm = "/arm/follow_joint_trajectory"

func follow() ros.Action {
	return ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback](arm)
}

func goalOf(name string) *control_msgs.FollowJointTrajectory_Goal {
	g := new(control_msgs.FollowJointTrajectory_Goal)
	g.Trajectory.JointNames = []string{name}
	return g
}

func resultOf() *control_msgs.FollowJointTrajectory_Result {
	return new(control_msgs.FollowJointTrajectory_Result)
}

// mover is an action server whose goals run until they are cancelled.
type mover struct {
	started, ended chan string // the goal's name
	hold           chan struct{}
	stamps         chan int32
}

// moves serves the arm: a goal named "refuse" is refused, "hold" is accepted only when hold is closed, the others run
// until they are cancelled.
func (b *bench) moves() *mover {
	b.t.Helper()
	m := &mover{started: make(chan string, 16), ended: make(chan string, 16), hold: make(chan struct{}), stamps: make(chan int32, 16)}
	name := func(x msg.Message) string {
		return x.(*control_msgs.FollowJointTrajectory_Goal).Trajectory.JointNames[0]
	}
	must[ros.Closer](b.t)(b.robot.ServeAction(follow(), ros.ActionHandler{
		Accept: func(g msg.Message) bool {
			if name(g) == "hold" {
				<-m.hold
			}
			return name(g) != "refuse"
		},
		Run: func(ctx context.Context, _ ros.GoalID, g msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
			m.stamps <- g.(*control_msgs.FollowJointTrajectory_Goal).Trajectory.Header.Stamp.Sec
			m.started <- name(g)
			<-ctx.Done()
			m.ended <- name(g)
			return resultOf(), ros.GoalCanceled
		},
	}))
	return m
}

func (b *bench) sends(n ros.Node) ros.Goaler {
	b.t.Helper()
	return must[ros.Goaler](b.t)(n.ActionClient(follow()))
}

const stopService = "/stop_the_robot"

// stops serves a trigger that answers when release is closed, at once if it is nil; called hears of each call.
func (b *bench) serves(name string, release <-chan struct{}) (called chan struct{}) {
	b.t.Helper()
	called = make(chan struct{}, 64)
	must[ros.Closer](b.t)(b.robot.Serve(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response](name),
		func(ctx context.Context, _ msg.Message) (msg.Message, error) {
			called <- struct{}{}
			if release != nil {
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			return &std_srvs.Trigger_Response{Success: true, Message: "done"}, nil
		}))
	return called
}

func (b *bench) calls(n ros.Node, name string) ros.Caller {
	b.t.Helper()
	return must[ros.Caller](b.t)(n.Client(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response](name)))
}

func trigger(ctx context.Context, c ros.Caller) error {
	var a std_srvs.Trigger_Response
	err := c.Call(ctx, &std_srvs.Trigger_Request{}, &a)
	return err
}

func urgentStop(c *rosbridge.Config) { c.Urgent = append(c.Urgent, stopService) }

// hears subscribes to a topic of strings.
func (b *bench) hears(n ros.Node, topic string) <-chan string {
	b.t.Helper()
	got := make(chan string, 256)
	must[ros.Subscription](b.t)(ros.Subscribe(n, topic, ros.QoS{Reliable: true, Depth: 256}, func(m *std_msgs.String, _ ros.Info) { got <- m.Data }))
	return got
}

// says publishes a string again and again until it has come.
func (b *bench) says(n ros.Node, topic, words string, got <-chan string) {
	b.t.Helper()
	p := must[ros.Publisher[*std_msgs.String]](b.t)(ros.Advertise[std_msgs.String](n, topic, ros.Default()))
	defer p.Close() // the node may be closed
	var seen []string
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		if err := p.Send(b.ctx, &std_msgs.String{Data: words}); err != nil && b.ctx.Err() != nil {
			b.t.Fatal(err)
		}
		select {
		case g := <-got:
			if g == words {
				tick.Stop()
				return
			}
			seen = append(seen, g)
		case <-tick.C:
		case <-b.ctx.Done():
			b.t.Fatalf("%q did not come on %s; %q did", words, topic, slices.Compact(seen))
		}
	}
}
