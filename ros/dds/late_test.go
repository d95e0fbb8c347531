package dds_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"viad/ros/dds"
	"viad/ros/interop"
	"viad/ros/msg"
	"viad/ros/msg/std_srvs"
	"viad/ros/rtps"

	"viad/ros"
)

// What was asked for while nothing came through, by callers that have given up since, is not done when the link is back;
// what is asked then is.
func TestARequestDoesNotComeLate(t *testing.T) {
	domain, release, err := interop.Domain()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var mute atomic.Bool
	var asked atomic.Int32
	robot := open(t, dds.Config{Node: "robot", Domain: domain, Wire: func(rtps.Datagram) bool { return !mute.Load() }})
	viad := open(t, dds.Config{Node: "viad", Domain: domain})
	for _, name := range []string{"/runstop", "/other"} {
		if _, err := robot.Serve(trigger(name), func(context.Context, msg.Message) (msg.Message, error) {
			asked.Add(1)
			return &std_srvs.Trigger_Response{Success: true}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(c ros.Caller, most time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		return c.Call(ctx, &std_srvs.Trigger_Request{}, &std_srvs.Trigger_Response{})
	}
	c, err := viad.Client(trigger("/runstop"))
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(c, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	mute.Store(true)
	for range 3 {
		if err := ask(c, 500*time.Millisecond); err == nil {
			t.Error("answered over a wire on which nothing comes through")
		}
	}
	began := time.Now()
	if err := ask(c, 20*time.Second); err == nil || !strings.Contains(err.Error(), "nobody has acknowledged the request within 1s") || time.Since(began) > 5*time.Second {
		t.Errorf("a request that was not delivered ended after %v with %v", time.Since(began), err)
	}
	mute.Store(false)
	if err := ask(c, 10*time.Second); err != nil {
		t.Errorf("after the link is back: %v", err)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the server was asked %d times, want 2: before and after", n)
	}
}
