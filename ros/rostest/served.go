package rostest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
)

func notNumbers(t *testing.T, w Wire) {
	w.needs(t, NaN)
	ctx, here, there := w.bench(t, "nan")
	got := make(chan []float64, 1)
	must[ros.Subscription](t)(ros.Subscribe(here, "/rostest/nan", ros.Default(), func(m *std_msgs.Float64MultiArray, _ ros.Info) { got <- m.Data }))
	pub := must[ros.Publisher[*std_msgs.Float64MultiArray]](t)(ros.Advertise[std_msgs.Float64MultiArray](there, "/rostest/nan", ros.Default()))
	if err := pub.Ready(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := pub.Send(ctx, &std_msgs.Float64MultiArray{Data: []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}}); err != nil {
		t.Fatal(err)
	}
	g := take(ctx, t, got, "the numbers")
	if len(g) != 4 || !math.IsNaN(g[0]) || !math.IsInf(g[1], 1) || !math.IsInf(g[2], -1) || g[3] != 0 {
		t.Errorf("got %v, want NaN, +Inf, -Inf, 0", g)
	}
}

func setBool(name string) ros.Service {
	return ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response](name)
}

func answering(f func(ctx context.Context, on bool) (string, error)) func(context.Context, msg.Message) (msg.Message, error) {
	return func(ctx context.Context, request msg.Message) (msg.Message, error) {
		q, ok := request.(*std_srvs.SetBool_Request)
		if !ok {
			return nil, fmt.Errorf("a request is a %T", request)
		}
		s, err := f(ctx, q.Data)
		return &std_srvs.SetBool_Response{Success: q.Data, Message: s}, err
	}
}

func services(t *testing.T, w Wire) {
	ctx, here, there := w.bench(t, "services")
	for _, way := range []struct {
		name           string
		server, client ros.Node
	}{{"/rostest/service", there, here}, {"/rostest/ours", here, there}} {
		srv := must[ros.Closer](t)(way.server.Serve(setBool(way.name), answering(func(_ context.Context, on bool) (string, error) { return fmt.Sprint("set to ", on), nil })))
		c := must[ros.Caller](t)(way.client.Client(setBool(way.name)))
		if err := c.Ready(ctx); err != nil {
			t.Fatalf("%s: %v", way.name, err)
		}
		for _, on := range []bool{true, false, true} {
			var a std_srvs.SetBool_Response
			if err := c.Call(ctx, &std_srvs.SetBool_Request{Data: on}, &a); err != nil {
				t.Fatalf("%s: %v", way.name, err)
			}
			if a.Success != on || a.Message != fmt.Sprint("set to ", on) {
				t.Errorf("%s: asked for %v, got %+v", way.name, on, a)
			}
		}
		shut(t, c)
		shut(t, srv)
	}
}

// The answers of many calls find their callers, also of two clients, also out of order.
func callsTogether(t *testing.T, w Wire) {
	ctx, here, there := w.bench(t, "together")
	const many = 20
	var mu sync.Mutex
	waiting, all := 0, make(chan struct{})
	must[ros.Closer](t)(there.Serve(setBool("/rostest/together"), answering(func(ctx context.Context, on bool) (string, error) {
		mu.Lock()
		if waiting++; waiting == many {
			close(all)
		}
		mu.Unlock()
		if on { // half of them wait until all are there
			select {
			case <-all:
			case <-ctx.Done():
			}
		}
		return fmt.Sprint(on), nil
	})))
	clients := []ros.Caller{must[ros.Caller](t)(here.Client(setBool("/rostest/together"))), must[ros.Caller](t)(here.Client(setBool("/rostest/together")))}
	done := make(chan error, many)
	for i := range many {
		go func() {
			on := i%2 == 0
			var a std_srvs.SetBool_Response
			err := clients[i/2%2].Call(ctx, &std_srvs.SetBool_Request{Data: on}, &a)
			if err == nil && (a.Success != on || a.Message != fmt.Sprint(on)) {
				err = fmt.Errorf("call %d asked for %v and got %+v", i, on, a)
			}
			done <- err
		}()
	}
	for range many {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func absentService(t *testing.T, w Wire) {
	w.needs(t, AbsentCalls)
	_, here, _ := w.bench(t, "absent")
	c := must[ros.Caller](t)(here.Client(setBool("/rostest/nobody")))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := c.Call(ctx, &std_srvs.SetBool_Request{}, &std_srvs.SetBool_Response{})
	if a := (*ros.Absent)(nil); !errors.As(err, &a) || a.What == "" || a.Why == "" {
		t.Errorf("calling a service that nobody serves: %v, want a *ros.Absent that says what to check", err)
	}
}

func goneService(t *testing.T, w Wire) {
	w.needs(t, GoneServices)
	ctx, here, there := w.bench(t, "gone")
	called := make(chan struct{})
	srv := must[ros.Closer](t)(there.Serve(setBool("/rostest/gone"), answering(func(ctx context.Context, _ bool) (string, error) {
		close(called)
		<-ctx.Done()
		return "", ctx.Err()
	})))
	c := must[ros.Caller](t)(here.Client(setBool("/rostest/gone")))
	done := make(chan error, 1)
	go func() { done <- c.Call(ctx, &std_srvs.SetBool_Request{}, &std_srvs.SetBool_Response{}) }()
	take(ctx, t, called, "the request")
	shut(t, srv)
	if err := take(ctx, t, done, "the call's end after its server was closed"); !errors.As(err, new(*ros.Gone)) {
		t.Errorf("the server was closed during the call: %v, want a *ros.Gone", err)
	}
}

// A call whose context ends says so at once, and the next one works.
func callContext(t *testing.T, w Wire) {
	ctx, here, there := w.bench(t, "context")
	called, release := make(chan struct{}, 2), make(chan struct{})
	must[ros.Closer](t)(there.Serve(setBool("/rostest/context"), answering(func(ctx context.Context, on bool) (string, error) {
		called <- struct{}{}
		if on {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return "answered", nil
	})))
	c := must[ros.Caller](t)(here.Client(setBool("/rostest/context")))
	call, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Call(call, &std_srvs.SetBool_Request{Data: true}, &std_srvs.SetBool_Response{}) }()
	take(ctx, t, called, "the request")
	cancel()
	if err := take(ctx, t, done, "the call's end"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v, want context.Canceled", err)
	}
	close(release)
	var a std_srvs.SetBool_Response
	if err := c.Call(ctx, &std_srvs.SetBool_Request{}, &a); err != nil || a.Message != "answered" || a.Success {
		t.Errorf("the call after a cancelled one: %+v, %v", a, err)
	}
}
