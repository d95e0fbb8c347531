package dds_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/msg"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/std_srvs"
	"viad/ros/rtps"
)

// stranger is a participant of nobody's middleware.
func stranger(t *testing.T, domain int) *rtps.Participant {
	t.Helper()
	p, err := rtps.Open(rtps.Config{Domain: domain, Localhost: true, UserData: []byte("enclave=/;")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

var (
	reliable = rtps.QoS{Reliable: true, Depth: 10}
	trigger  = ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response]
)

const (
	requestType = "std_srvs::srv::dds_::Trigger_Request_"
	replyType   = "std_srvs::srv::dds_::Trigger_Response_"
)

// How a server of unknown make matches answers is not guessed: it is not asked anything.
func TestUnknownServerIsNotAsked(t *testing.T) {
	p := stranger(t, 44)
	var asked atomic.Int32
	if _, err := p.NewWriter(rtps.WriterConfig{Topic: "rr/odd/triggerReply", Type: replyType, QoS: reliable}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.NewReader(rtps.ReaderConfig{Topic: "rq/odd/triggerRequest", Type: requestType, QoS: reliable}, func(*rtps.Sample) { asked.Add(1) }); err != nil {
		t.Fatal(err)
	}
	n := open(t, dds.Config{Node: "viad", Domain: 44})
	c, err := n.Client(trigger("/odd/trigger"))
	if err != nil {
		t.Fatal(err)
	}
	var a std_srvs.Trigger_Response
	err = c.Call(deadline(t), &std_srvs.Trigger_Request{}, &a)
	if u := (*ros.Unsupported)(nil); !errors.As(err, &u) || !strings.Contains(err.Error(), "rosbridge") {
		t.Errorf("calling a server of unknown make: %v", err)
	}
	if asked.Load() != 0 {
		t.Error("it was asked all the same")
	}
}

// A client of unknown make is answered when it says itself how (related sample identity), and else not.
func TestUnknownClient(t *testing.T) {
	n := open(t, dds.Config{Node: "viad", Domain: 45})
	var served atomic.Int32
	if _, err := n.Serve(trigger("/trigger"), func(context.Context, msg.Message) (msg.Message, error) {
		served.Add(1)
		return &std_srvs.Trigger_Response{Success: true, Message: "stopped"}, nil
	}); err != nil {
		t.Fatal(err)
	}
	p, ctx := stranger(t, 45), deadline(t)
	type reply struct {
		payload []byte
		related rtps.SampleIdentity
	}
	got := make(chan reply, 4)
	r, err := p.NewReader(rtps.ReaderConfig{Topic: "rr/triggerReply", Type: replyType, QoS: reliable}, func(s *rtps.Sample) {
		if s.Related != nil {
			got <- reply{bytes.Clone(s.Payload), *s.Related}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := p.NewWriter(rtps.WriterConfig{Topic: "rq/triggerRequest", Type: requestType, QoS: reliable})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WaitSynced(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(ctx, []byte{0, 1, 0, 0, 0}, nil); err != nil {
		t.Fatal(err)
	}
	seq, err := w.Write(ctx, []byte{0, 1, 0, 0, 0}, &rtps.SampleIdentity{Writer: r.GUID(), Seq: rtps.SeqUnknown})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case a := <-got:
		want := []byte{0, 1, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 's', 't', 'o', 'p', 'p', 'e', 'd', 0}
		if a.related != (rtps.SampleIdentity{Writer: r.GUID(), Seq: seq}) || !bytes.Equal(a.payload, want) {
			t.Errorf("answer %x to %+v; want %x to %v, %d", a.payload, a.related, want, r.GUID(), seq)
		}
	case <-ctx.Done():
		t.Fatal("no answer")
	}
	if served.Load() != 1 {
		t.Errorf("%d requests were served; the one that does not say how to answer should not be", served.Load())
	}
}

// Of several servers all get the request; the graph says so.
func TestSeveralServers(t *testing.T) {
	here := open(t, dds.Config{Node: "viad", Domain: 46})
	for _, name := range []string{"one", "two"} {
		n := open(t, dds.Config{Node: name, Domain: 46})
		if _, err := n.Serve(trigger("/twice"), func(context.Context, msg.Message) (msg.Message, error) {
			return &std_srvs.Trigger_Response{Success: true}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx := deadline(t)
	c, err := here.Client(trigger("/twice"))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		var a std_srvs.Trigger_Response
		if err := c.Call(ctx, &std_srvs.Trigger_Request{}, &a); err != nil || !a.Success {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	for {
		g, err := here.Graph(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(g.Problems, "\n"), "2 servers offer the service /twice") {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("problems: %q", g.Problems)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A client says what is there instead of what it looked for.
func TestAbsenceInWords(t *testing.T) {
	there, here := open(t, dds.Config{Node: "robot", Domain: 47}), open(t, dds.Config{Node: "viad", Domain: 47})
	if _, err := there.Serve(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response]("/runstop"), func(context.Context, msg.Message) (msg.Message, error) {
		return nil, errors.New("not called")
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	c, err := here.Client(trigger("/runstop"))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Ready(ctx)
	if !errors.As(err, new(*ros.Absent)) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the type std_srvs/srv/SetBool_Request, ours is std_srvs/srv/Trigger_Request") {
		t.Errorf("a service of another type: %v", err)
	}
}

// Messages of a fixed size cost no allocation, from Publish to the subscriber's function.
func TestFixedSizeAllocatesNothing(t *testing.T) {
	there, here := open(t, dds.Config{Node: "robot", Domain: 48, Distro: cdr.Humble}), open(t, dds.Config{Node: "viad", Domain: 48, Distro: cdr.Humble})
	ctx := deadline(t)
	var sum float64
	got := make(chan struct{}, 1)
	if _, err := ros.SubscribeInto(here, "/cmd_vel", ros.Default(), func(m *geometry_msgs.Twist, _ ros.Info) {
		sum += m.Linear.X
		got <- struct{}{}
	}); err != nil {
		t.Fatal(err)
	}
	pub, err := ros.Advertise[geometry_msgs.Twist](there, "/cmd_vel", ros.Default())
	if err != nil {
		t.Fatal(err)
	}
	if err := pub.Ready(ctx, 1); err != nil {
		t.Fatal(err)
	}
	m := &geometry_msgs.Twist{}
	m.Linear.X = 0.25
	once := func() {
		if err := pub.Send(ctx, m); err != nil {
			t.Error(err)
		}
		<-got
	}
	for range 200 {
		once()
	}
	const many = 2000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range many {
		once()
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	per := float64(after.Mallocs-before.Mallocs) / many
	t.Logf("%.3f allocations and %v per message, there and back to the publisher", per, took/many)
	if per > 0.1 && !raceEnabled { // discovery goes on beside it; the race detector makes pools forget
		t.Errorf("%.3f allocations per message, want none", per)
	}
	if sum != 0.25*(many+200) {
		t.Errorf("the sum of what came is %v", sum)
	}
}
