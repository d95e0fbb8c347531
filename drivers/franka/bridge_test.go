package franka

import (
	"context"
	"net"
	"testing"
	"time"

	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg/all"
	"viad/ros/rosbridge"
	"viad/ros/rosbridge/local"
	"viad/ros/rosbridge/server"
)

// bridged is a driver that reaches the double through a rosbridge server as it is now.
func bridged(t *testing.T, options ...option) *bench {
	t.Helper()
	graph := local.NewGraph()
	at, there := graph.Node("/rosbridge_websocket"), graph.Node("/franka_double")
	srv := must[*server.Server](t)(server.NewServer(server.Options{Node: at, Types: all.New, Distro: cdr.Jazzy, Caveats: server.New(), Log: logger(t)}))
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, n := range []ros.Node{at, there} {
			_ = n.Close()
		}
	})
	here := must[*rosbridge.Node](t)(rosbridge.Dial(t.Context(), rosbridge.Config{URL: "ws://" + l.Addr().String(), Node: "/viad", Log: logger(t)}))
	t.Cleanup(func() { _ = here.Close() })
	b := beginOn(t, there, here, FR3, options...)
	b.ready()
	return b
}

func TestRosbridge(t *testing.T) {
	b := bridged(t)
	tr := b.swing(0.4, 2*time.Second)
	if err := b.Follow(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if _, off := b.furthest(b.d.truth().Q, tr.Points[len(tr.Points)-1].Q); off > 0.002 {
		t.Errorf("%v from the goal", off)
	}
	if n := goals(b.d); n < 8 {
		t.Errorf("%d goals in 2 s", n)
	}
	for _, open := range []bool{false, true} {
		if err := b.Grip(t.Context(), robot.JawTarget{Open: open}); err != nil {
			t.Errorf("open %v: %v", open, err)
		}
	}
	if testing.Short() {
		return
	}
	t.Run("suite", func(t *testing.T) {
		robottest.CheckBody(t, func(t *testing.T) robottest.Subject {
			b := bridged(t)
			return robottest.Subject{Body: b, Clock: b.clock, Model: b.Model(), Machine: b.d.truth, Sever: func() { _ = b.n.Close() }}
		}, nil)
	})
}
