package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/msg/all"
	"viad/ros/rosbridge/local"
	"viad/ros/rosbridge/server"
)

// wild is a client that says what it likes.
type wild struct {
	t    *testing.T
	ctx  context.Context
	conn *websocket.Conn
}

// bridge is a server before a node, with status words so that a client hears of refusals.
func bridge(ctx context.Context, t *testing.T, n ros.Node, c server.Caveats) (connect func() *wild) {
	t.Helper()
	c.StatusWords = true
	s, err := server.NewServer(server.Options{Node: n, Types: all.New, Distro: cdr.Jazzy, Caveats: c})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	return func() *wild {
		t.Helper()
		conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(h.URL, "http"), nil)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetReadLimit(-1)
		t.Cleanup(func() { _ = conn.CloseNow() })
		return &wild{t, ctx, conn}
	}
}

func (w *wild) say(format string, a ...any) {
	w.t.Helper()
	if err := w.conn.Write(w.ctx, websocket.MessageText, fmt.Appendf(nil, format, a...)); err != nil {
		w.t.Fatal(err)
	}
}

// hears reads frames until one has the words.
func (w *wild) hears(words string) {
	w.t.Helper()
	for {
		_, b, err := w.conn.Read(w.ctx)
		if err != nil {
			w.t.Fatalf("waiting for %q: %v", words, err)
		}
		if strings.Contains(string(b), words) {
			return
		}
	}
}

// settled waits until everything that was said has been dealt with: operations are taken in order.
func (w *wild) settled() {
	w.t.Helper()
	w.say(`{"op":"settled?"}`)
	w.hears("Unknown operation: settled?")
}

// counter counts what is served and was not closed.
type counter struct {
	ros.Node
	open atomic.Int64
}

type counted struct {
	ros.Closer
	n *counter
}

func (c counted) Close() error {
	c.n.open.Add(-1)
	return c.Closer.Close()
}

func (n *counter) Serve(s ros.Service, f func(context.Context, msg.Message) (msg.Message, error)) (ros.Closer, error) {
	c, err := n.Node.Serve(s, f)
	n.open.Add(1)
	return counted{c, n}, err
}

func (n *counter) ServeAction(a ros.Action, h ros.ActionHandler) (ros.Closer, error) {
	c, err := n.Node.ServeAction(a, h)
	n.open.Add(1)
	return counted{c, n}, err
}

// What a client advertised twice goes with it all the same, and the newest is the one that is asked.
func TestAdvertisedTwice(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	n := &counter{Node: local.NewGraph().Node("/robot")}
	defer n.Close()
	connect := bridge(ctx, t, n, server.Caveats{})
	w := connect()
	for range 100 {
		w.say(`{"op":"advertise_service","service":"/mine","type":"std_srvs/srv/Trigger"}`)
		w.say(`{"op":"advertise_action","action":"/move","type":"control_msgs/action/FollowJointTrajectory"}`)
	}
	w.settled()
	if open := n.open.Load(); open != 2 {
		t.Errorf("%d servers for one service and one action", open)
	}
	caller := connect()
	caller.say(`{"op":"call_service","id":"1","service":"/mine"}`)
	_, b, err := w.conn.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var q struct{ Op, ID, Service string }
	if err := json.Unmarshal(b, &q); err != nil || q.Op != "call_service" {
		t.Fatalf("%s: %v", b, err)
	}
	w.say(`{"op":"service_response","id":%q,"service":"/mine","values":{"success":true,"message":"newest"},"result":true}`, q.ID)
	caller.hears("newest")
	if err := w.conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Fatal(err)
	}
	for n.open.Load() > 0 {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("its client has gone, and %d servers stay", n.open.Load())
		}
	}
}

// A topic keeps its type until it is given up.
func TestAdvertisedAsSomethingElse(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	n := local.NewGraph().Node("/robot")
	defer n.Close()
	w := bridge(ctx, t, n, server.Caveats{})()
	w.say(`{"op":"advertise","topic":"/x","type":"std_msgs/String"}`)
	w.say(`{"op":"advertise","topic":"/x","type":"std_msgs/msg/Bool"}`)
	w.hears("is advertised as std_msgs/msg/String already, not as std_msgs/msg/Bool")
	w.say(`{"op":"unadvertise","topic":"/x"}`)
	w.say(`{"op":"advertise","topic":"/x","type":"std_msgs/msg/Bool"}`)
	w.say(`{"op":"publish","topic":"/x","msg":{"data":true}}`)
	w.settled()
}

// refuser takes no subscription.
type refuser struct{ ros.Node }

func (refuser) Subscribe(ros.Topic, func(ros.Incoming)) (ros.Subscription, error) {
	return nil, errors.New("not here")
}

// What was refused leaves nothing behind, and neither does what no honest client says.
func TestNothingIsKeptOfRefusals(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := local.NewGraph().Node("/robot")
	defer n.Close()
	w := bridge(ctx, t, refuser{n}, server.Old())()
	w.settled()
	long := strings.Repeat("n", 8000)
	before := inUse()
	for i := range 3000 {
		w.say(`{"op":"subscribe","topic":"/%d/%s","type":"std_msgs/msg/String"}`, i, long)
		w.hears("not here")
		w.say(`{"op":"advertise_service","id":"%d%s","service":"/a","type":"std_srvs/srv/Trigger"}`, i, long)
		w.hears("is longer than 1024")
	}
	if grown := int64(inUse()) - int64(before); grown > 8<<20 {
		t.Errorf("%d bytes are kept", grown)
	}
	for _, bad := range []string{
		"", "null", "[]", "1", `"op"`, "{", `{"op":1}`, `{"op":null}`, `{"op":"publish"}`, `{"op":"subscribe"}`, `{"op":"advertise","topic":"/y"}`,
		`{"op":"publish","topic":"/x","msg":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`,
		`{"op":"publish","topic":"/x","msg":` + strings.Repeat(`{"a":`, 200000), `{"op":"call_service"}`, `{"op":"send_action_goal","id":"g"}`,
		`{"op":"cancel_action_goal","id":{"a":[]}}`, `{"op":"service_response","id":"nobody"}`, `{"op":"action_result","id":"nobody"}`,
		`{"op":"subscribe","topic":"/z","type":"std_msgs/String","queue_length":1e99}`, `{"op":"unsubscribe","topic":"/none"}`, "\x00\xff\xfe binary",
		`{"op":"subscribe","topic":"/z","type":"../../etc/passwd","fragment_size":-1,"throttle_rate":-5}`, `{"op":"advertise_action","action":"","type":"a/b"}`,
	} {
		w.say("%s", bad)
	}
	w.settled()
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
