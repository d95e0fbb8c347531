// Package rostest is the contract of ros.Node as tests: what every wire must do, run between two nodes of one graph. A
// wire says what it cannot do; everything else is asked of it.
package rostest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
)

// Feature is something that a wire may be unable to do.
type Feature string

// What a wire can declare that it cannot do.
const (
	Latched      Feature = "latched topics"                             // late joiners get what is kept
	Drops        Feature = "the newest messages for a slow function"    // the oldest are dropped, and counted
	Counts       Feature = "counting who is matched"                    // Publishers, Subscribers
	AbsentCalls  Feature = "saying that nobody serves"                  // *ros.Absent
	GoneServices Feature = "noticing that a service's server went away" // *ros.Gone while a call waits
	GoneActions  Feature = "noticing that an action's server went away" // *ros.Gone while a goal runs
	Rejection    Feature = "telling that a goal was refused"            // *ros.Rejected
	CancelAll    Feature = "cancelling all goals"                       // Goaler.CancelAll
	GoalState    Feature = "telling canceled from aborted"              // the status that Result returns
	LinkEvents   Feature = "link events"                                // Links: up, and down after Break
	GraphTopics  Feature = "topics in the graph"                        // with their types
	GraphServed  Feature = "services and actions in the graph"          // with their types
	GraphNodes   Feature = "nodes in the graph"                         // by full name
	Actions      Feature = "actions"                                    // at all
	NaN          Feature = "numbers that are not"                       // NaN and the infinities in a message
)

// Wire is what the suite runs on: two ends of one graph. Here is the wire under test; There may be another one, or the
// same. Each call opens a new node, which the suite closes.
type Wire struct {
	Here, There func(t *testing.T, name string) ros.Node
	// Cannot is what Here cannot do.
	Cannot []Feature
	// Break cuts what connects Here, which must then report its link as down; nil closes There.
	Break func(t *testing.T)
	// Patience bounds every wait; 0 is 10 s.
	Patience time.Duration
}

func (w Wire) needs(t *testing.T, f Feature) {
	t.Helper()
	if slices.Contains(w.Cannot, f) {
		t.Skipf("this wire cannot do %s", f)
	}
}

// Run runs the whole suite.
func Run(t *testing.T, w Wire) {
	if w.Patience == 0 {
		w.Patience = 10 * time.Second
	}
	for _, c := range []struct {
		name string
		f    func(*testing.T, Wire)
	}{
		{"topics in order, both ways", topicsInOrder},
		{"what a message holds arrives", contents},
		{"numbers that are not", notNumbers},
		{"latched", latched},
		{"slow function", slowFunction},
		{"closing one end of many", closing},
		{"services", services},
		{"calls at the same time", callsTogether},
		{"absent service", absentService},
		{"gone service", goneService},
		{"calls end with their context", callContext},
		{"actions", actions},
		{"refused goal", refusedGoal},
		{"goals that end badly", badEnd},
		{"cancel", cancelGoal},
		{"cancel all", cancelAll},
		{"gone action server", goneAction},
		{"graph", graph},
		{"link", links},
		{"closed node", closedNode},
	} {
		t.Run(c.name, func(t *testing.T) { c.f(t, w) })
	}
}

// bench is what a test works with: both nodes, and a context that bounds its waits.
func (w Wire) bench(t *testing.T, name string) (ctx context.Context, here, there ros.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), w.Patience)
	t.Cleanup(cancel)
	there = w.There(t, name+"_there")
	t.Cleanup(func() { shut(t, there) })
	here = w.Here(t, name+"_here")
	t.Cleanup(func() { shut(t, here) })
	return ctx, here, there
}

type closer interface{ Close() error }

func shut(t *testing.T, c closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
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

func take[T any](ctx context.Context, t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("waited in vain for %s", what)
		return *new(T)
	}
}

func topicsInOrder(t *testing.T, w Wire) {
	ctx, here, there := w.bench(t, "order")
	const many = 50
	for _, way := range []struct {
		name     string
		from, to ros.Node
	}{{"/rostest/out", here, there}, {"/rostest/in", there, here}} {
		got := make(chan string, many)
		var seen []ros.Info
		sub := must[ros.Subscription](t)(ros.Subscribe(way.to, way.name, ros.QoS{Reliable: true, Depth: many}, func(m *std_msgs.String, i ros.Info) {
			seen = append(seen, i)
			got <- m.Data
		}))
		pub := must[ros.Publisher[*std_msgs.String]](t)(ros.Advertise[std_msgs.String](way.from, way.name, ros.QoS{Reliable: true, Depth: many}))
		if err := pub.Ready(ctx, 1); err != nil {
			t.Fatalf("%s: %v", way.name, err)
		}
		start := time.Now()
		for i := range many {
			if err := pub.Send(ctx, &std_msgs.String{Data: fmt.Sprintf("message %d: grüß Gott", i)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range many {
			if g, want := take(ctx, t, got, way.name), fmt.Sprintf("message %d: grüß Gott", i); g != want {
				t.Fatalf("%s: message %d is %q, want %q", way.name, i, g, want)
			}
		}
		if !slices.Contains(w.Cannot, Counts) && (pub.Subscribers() != 1 || sub.Publishers() != 1) {
			t.Errorf("%s: %d subscribers and %d publishers are matched, want 1 and 1", way.name, pub.Subscribers(), sub.Publishers())
		}
		shut(t, sub) // from here on seen is ours
		if i := seen[0]; i.Received.Before(start.Add(-time.Second)) || i.Received.After(time.Now().Add(time.Second)) {
			t.Errorf("%s: received at %v, which is not about now", way.name, i.Received)
		}
		if s := sub.Stats(); s.Received < many || s.Malformed != 0 {
			t.Errorf("%s: stats %+v after %d messages", way.name, s, many)
		}
		shut(t, pub)
	}
}

func contents(t *testing.T, w Wire) {
	ctx, here, there := w.bench(t, "contents")
	want := &sensor_msgs.JointState{
		Name: []string{"shoulder", "", "wrist"}, Position: []float64{1.5, -2.25e-300, 1e300}, Velocity: []float64{0, 0.1, -0.1}, Effort: []float64{},
	}
	want.Header.FrameId = "base_link"
	want.Header.Stamp.Sec, want.Header.Stamp.Nanosec = 1_700_000_000, 999_999_999
	for _, way := range []struct{ from, to ros.Node }{{here, there}, {there, here}} {
		got := make(chan *sensor_msgs.JointState, 1)
		sub := must[ros.Subscription](t)(ros.Subscribe(way.to, "/rostest/state", ros.Default(), func(m *sensor_msgs.JointState, _ ros.Info) { got <- m }))
		pub := must[ros.Publisher[*sensor_msgs.JointState]](t)(ros.Advertise[sensor_msgs.JointState](way.from, "/rostest/state", ros.Default()))
		if err := pub.Ready(ctx, 1); err != nil {
			t.Fatal(err)
		}
		if err := pub.Send(ctx, want); err != nil {
			t.Fatal(err)
		}
		g := take(ctx, t, got, "the joint state")
		if g.Header.Stamp != want.Header.Stamp || g.Header.FrameId != want.Header.FrameId || !slices.Equal(g.Name, want.Name) ||
			!slices.Equal(g.Position, want.Position) || !slices.Equal(g.Velocity, want.Velocity) || len(g.Effort) != 0 {
			t.Errorf("got  %+v\nwant %+v", g, want)
		}
		shut(t, pub)
		shut(t, sub)
	}
}

func latched(t *testing.T, w Wire) {
	w.needs(t, Latched)
	ctx, here, there := w.bench(t, "latched")
	pub := must[ros.Publisher[*std_msgs.String]](t)(ros.Advertise[std_msgs.String](there, "/rostest/latched", ros.Latched()))
	for _, s := range []string{"old", "new"} {
		if err := pub.Send(ctx, &std_msgs.String{Data: s}); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan string, 8)
	must[ros.Subscription](t)(ros.Subscribe(here, "/rostest/latched", ros.Latched(), func(m *std_msgs.String, _ ros.Info) { got <- m.Data }))
	if g := take(ctx, t, got, "what was latched"); g != "new" {
		t.Errorf("a late joiner got %q, want the newest", g)
	}
}

func slowFunction(t *testing.T, w Wire) {
	w.needs(t, Drops)
	ctx, here, there := w.bench(t, "slow")
	const many, depth = 200, 5
	hold, release, last := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	var got []string
	sub := must[ros.Subscription](t)(ros.Subscribe(here, "/rostest/slow", ros.QoS{Reliable: true, Depth: depth}, func(m *std_msgs.String, _ ros.Info) {
		once.Do(func() { close(hold); <-release })
		if got = append(got, m.Data); m.Data == "last" {
			close(last)
		}
	}))
	pub := must[ros.Publisher[*std_msgs.String]](t)(ros.Advertise[std_msgs.String](there, "/rostest/slow", ros.QoS{Reliable: true, Depth: many}))
	if err := pub.Ready(ctx, 1); err != nil {
		t.Fatal(err)
	}
	send := func(s string) {
		if err := pub.Send(ctx, &std_msgs.String{Data: s}); err != nil {
			t.Fatal(err)
		}
	}
	send("first")
	take(ctx, t, hold, "the first message")
	for i := range many {
		send(fmt.Sprint(i))
	}
	// All have come once the wire has counted them; the function still holds the first.
	for sub.Stats().Received < many+1 {
		select {
		case <-ctx.Done():
			t.Fatalf("only %+v of %d came while the function was slow: it holds the wire up", sub.Stats(), many+1)
		case <-time.After(5 * time.Millisecond):
		}
	}
	close(release)
	send("last")
	take(ctx, t, last, "the last message")
	shut(t, sub)
	if len(got) > depth+3 {
		t.Errorf("%d messages were handed on late, more than the depth of %d", len(got), depth)
	}
	if n := len(got); got[n-2] != fmt.Sprint(many-1) {
		t.Errorf("the newest waiting message was dropped: got %q", got)
	}
	if s := sub.Stats(); s.Dropped < many-depth-3 {
		t.Errorf("stats %+v: the dropped messages are not counted", s)
	}
}

func closing(t *testing.T, w Wire) {
	ctx, here, there := w.bench(t, "closing")
	got := make(chan string, 8)
	sub := func(name string) ros.Subscription {
		return must[ros.Subscription](t)(ros.Subscribe(here, "/rostest/closing", ros.Default(), func(*std_msgs.String, ros.Info) { got <- name }))
	}
	one, two := sub("one"), sub("two")
	pub := must[ros.Publisher[*std_msgs.String]](t)(ros.Advertise[std_msgs.String](there, "/rostest/closing", ros.Default()))
	if err := pub.Ready(ctx, 1); err != nil {
		t.Fatal(err)
	}
	shut(t, one)
	if err := one.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if err := pub.Ready(ctx, 1); err != nil {
		t.Fatal(err)
	}
	// That somebody is there may still be the closed one, where the news of it was lost and the other is not known yet.
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for g := ""; g == ""; {
		if err := pub.Send(ctx, &std_msgs.String{}); err != nil {
			t.Fatal(err)
		}
		select {
		case g = <-got:
			if g != "two" {
				t.Errorf("a closed subscription was called")
			}
		case <-again.C:
		case <-ctx.Done():
			t.Fatal("waited in vain for a message after one of two was closed")
		}
	}
	shut(t, two)
}
