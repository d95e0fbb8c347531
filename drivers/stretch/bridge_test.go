package stretch

import (
	"context"
	"net"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/ros/cdr"
	"viad/ros/msg/all"
	"viad/ros/rosbridge"
	"viad/ros/rosbridge/server"
)

// over puts a rosbridge server in front of a double and a driver at its socket. cut closes the socket for good.
func over(t *testing.T, gen Generation, change func(*server.Caveats)) (b *bench, cut func()) {
	t.Helper()
	on := domain(t)
	d := newDouble(t, node(t, "stretch_driver", on), gen, nil)
	bridge := node(t, "rosbridge_websocket", on)
	caveats := server.New()
	caveats.DeafToLater = false
	change(&caveats)
	s := must[*server.Server](t)(server.NewServer(server.Options{Node: bridge, Types: all.New, Distro: cdr.Jazzy, Depth: 1000, Caveats: caveats, Log: logger(t)}))
	var lc net.ListenConfig
	l := must[net.Listener](t)(lc.Listen(t.Context(), "tcp", "127.0.0.1:0"))
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); s.Close(); <-served })
	c := Config{Log: logger(t), BaseUnguarded: true}
	n := must[*rosbridge.Node](t)(rosbridge.Dial(t.Context(), rosbridge.Config{URL: "ws://" + l.Addr().String(), Log: logger(t), Urgent: c.Urgent()}))
	c.Node = n
	b = &bench{t: t, d: d, n: n, domain: on}
	b.Robot = must[*Robot](t)(Open(context.Background(), c))
	run, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(run) }()
	t.Cleanup(func() {
		stop()
		<-done
		_ = b.Close()
		_ = n.Close()
	})
	b.wait("ready", func(s robot.State) bool { return s.Mode == robot.ModeReady && s.Complete(b.Model()) })
	return b, func() { _ = n.Close() }
}

// Goals outlive the client on rosbridge, cancels may be dropped, goals may block the socket: the robot halts all the same,
// within what Deadman says, since no goal reaches far.
func TestField36Bridge(t *testing.T) {
	t.Parallel()
	for _, g := range []Generation{GenA, GenB} {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			b, cut := over(t, g, func(*server.Caveats) {})
			p := b.plan(4*time.Second, geom.SE2{X: 0.2, Y: -0.1, Yaw: 0.3}, 0.2, 0.15, 0.4, 0.3, -0.3)
			if err := b.Follow(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			b.arrived(p)
			moving := b.follow(b.plan(5*time.Second, geom.SE2{}, 0.3))
			if err := b.Halt(t.Context(), robot.RungHold); err != nil {
				t.Error(err)
			}
			_ = b.ends(moving)
			b.rests(time.Second)
			moving = b.follow(b.plan(5*time.Second, geom.SE2{}, 0.2, -0.1))
			b.until(t.Context(), time.Second, func() bool { return false })
			cut()
			if err := b.ends(moving); err == nil {
				t.Error("a motion without a wire ends well")
			}
			b.rests(b.Deadman())
		})
	}
	t.Run("cancels are dropped", func(t *testing.T) {
		t.Parallel()
		b, _ := over(t, GenA, func(c *server.Caveats) { c.CancelIgnored, c.CancelOnlyOwn, c.RejectedHangs = true, true, true })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Follow(ctx, b.plan(4*time.Second, geom.SE2{}, 0.4)) }()
		b.wait("moving", func(s robot.State) bool { return len(s.QD) > 0 && s.QD[0] > 0.1 })
		cancel()
		if err := b.ends(done); err == nil {
			t.Error("a motion that was ended says that it arrived")
		}
		b.rests(1500 * time.Millisecond)
		b.d.set(func(d *double) { d.f.reject = true })
		if err := b.Follow(t.Context(), b.plan(time.Second, geom.SE2{}, 0.05)); err == nil {
			t.Error("a goal that nobody accepted arrives")
		}
	})
}
