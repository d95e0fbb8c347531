package interop

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/std_srvs"
)

func triggerOf() ros.Service {
	return ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response]("/peer/trigger")
}

func setOf() ros.Service {
	return ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response]("/peer/set")
}

// TestServiceClient calls the services of each vendor, which correlate in their own way.
func TestServiceClient(t *testing.T) {
	for _, v := range Vendors {
		t.Run(string(v), func(t *testing.T) {
			ctx := budget(t, 20*time.Second)
			d := domain(t)
			n := node(t, d)
			trigger, err := n.Client(triggerOf())
			must(t, err)
			defer func() { check(t, trigger.Close()) }()
			set, err := n.Client(setOf())
			must(t, err)
			defer func() { check(t, set.Close()) }()
			peer(t, Setup{Vendor: v, Mode: "serve", Domain: d, Args: []string{"gid=24", "node=server"}})
			for i := 1; i <= 20; i++ {
				var a std_srvs.Trigger_Response
				must(t, trigger.Call(ctx, &std_srvs.Trigger_Request{}, &a))
				if want := fmt.Sprintf("stopped %d", i); !a.Success || a.Message != want {
					t.Fatalf("trigger answered %+v, want success and %q", a, want)
				}
				var s std_srvs.SetBool_Response
				on := i%2 == 0
				must(t, set.Call(ctx, &std_srvs.SetBool_Request{Data: on}, &s))
				if want := map[bool]string{true: "on", false: "off"}[on]; s.Success != on || s.Message != want {
					t.Fatalf("set answered %+v to %v, want %q", s, on, want)
				}
			}
		})
	}
}

// TestServiceServer answers the clients of each vendor, both at once.
func TestServiceServer(t *testing.T) {
	ctx := budget(t, 30*time.Second)
	d := domain(t)
	n := node(t, d)
	var calls atomic.Int64
	a, err := n.Serve(triggerOf(), func(context.Context, msg.Message) (msg.Message, error) {
		return &std_srvs.Trigger_Response{Success: true, Message: fmt.Sprintf("call %d", calls.Add(1))}, nil
	})
	must(t, err)
	defer func() { check(t, a.Close()) }()
	b, err := n.Serve(setOf(), func(_ context.Context, q msg.Message) (msg.Message, error) {
		on := q.(*std_srvs.SetBool_Request).Data
		return &std_srvs.SetBool_Response{Success: on, Message: fmt.Sprint(on)}, nil
	})
	must(t, err)
	defer func() { check(t, b.Close()) }()
	for _, v := range Vendors {
		peer(t, Setup{Vendor: v, Mode: "call", Domain: d, Args: []string{"count=10", "gid=24", "node=client"}})
	}
	var peers []*Peer
	for _, v := range Vendors {
		peers = append(peers, peer(t, Setup{Vendor: v, Mode: "call", Domain: d, Args: []string{"count=10"}}))
	}
	for _, p := range peers {
		if e := event(ctx, t, p, "called"); e.N != 20 || e.Answered != 20 {
			t.Errorf("%s: %d of %d calls were answered", p.name, e.Answered, e.N)
		}
		for i, e := range p.Events("answer") {
			on := i/2%2 == 0
			if i%2 == 1 && (e.Success != on || e.Message != fmt.Sprint(on)) {
				t.Errorf("%s: set answered %v %q, want %v", p.name, e.Success, e.Message, on)
			}
			if i%2 == 0 && !e.Success {
				t.Errorf("%s: trigger answered %+v", p.name, e)
			}
		}
	}
}

// TestServerLost loses the server while a call waits: the caller learns that it is not known whether it acted.
func TestServerLost(t *testing.T) {
	for _, v := range Vendors {
		t.Run(string(v), func(t *testing.T) {
			ctx := budget(t, 20*time.Second)
			d := domain(t)
			n := node(t, d)
			trigger, err := n.Client(triggerOf())
			must(t, err)
			defer func() { check(t, trigger.Close()) }()
			p := peer(t, Setup{Vendor: v, Mode: "serve", Domain: d, Lease: 3})
			must(t, trigger.Ready(ctx))
			must(t, p.cmd.Process.Signal(syscall.SIGSTOP)) // it takes nothing any more
			var a std_srvs.Trigger_Response
			done := make(chan error, 1)
			go func() { done <- trigger.Call(ctx, &std_srvs.Trigger_Request{}, &a) }()
			select {
			case err := <-done:
				t.Fatalf("a stopped server answered: %v", err)
			case <-time.After(200 * time.Millisecond):
			}
			must(t, p.Kill())
			err = <-done
			var gone *ros.Gone
			if !errors.As(err, &gone) {
				t.Fatalf("the call ended with %v, want a *ros.Gone", err)
			}
			t.Log(err)
			again := peer(t, Setup{Vendor: v, Mode: "serve", Domain: d, Lease: 3})
			_ = again
			// Until the lease of the old one is over it counts as there: a call may be made to it alone.
			for err = errors.New("not called"); err != nil; {
				if err = trigger.Call(ctx, &std_srvs.Trigger_Request{}, &a); err != nil && !errors.As(err, &gone) {
					t.Fatal(err)
				}
			}
		})
	}
}
