package stretch

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"viad/drivers/stretch/course"
	"viad/ros"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/nav_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
)

// The Guard's times.
const (
	guardEvery = 50 * time.Millisecond
	guardLapse = 250 * time.Millisecond // of a driving daemon
	guardZeros = 2 * time.Second        // at least so long
)

// Guard is the base's dead-man for a driver that repeats the last velocity for ever. It runs in a process of its own, best
// on the robot's computer, with a node of its own, and says that it is there; when a daemon that drives falls silent, it
// tells the base zero until the base is measured at rest. It runs until ctx ends.
func Guard(ctx context.Context, c Config) error {
	if err := c.fill(); err != nil {
		return err
	}
	g := &guard{config: c, names: c.names()}
	made, err := g.open()
	defer func() {
		for _, m := range made {
			_ = m.Close()
		}
	}()
	if err != nil {
		return err
	}
	tick := c.Clock.Ticker(guardEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
		if err := g.here.Send(ctx, &std_msgs.Bool{Data: true}); err != nil && ctx.Err() == nil {
			c.Log.Warn("the guard cannot say that it is there", "why", err)
		}
		if g.lapsed() {
			g.halt(ctx)
		}
	}
}

type guard struct {
	config   Config
	names    names
	here     ros.Publisher[*std_msgs.Bool]
	velocity ros.Publisher[*geometry_msgs.Twist]
	stop     ros.Caller

	mu      sync.Mutex
	driving bool
	at      time.Time
	rest    bool
	restAt  time.Time
}

func (g *guard) open() (made []ros.Closer, err error) {
	n, one := g.config.Node, ros.QoS{Reliable: true, Depth: 1}
	keep := func(c ros.Closer, e error) {
		if err = errors.Join(err, e); e == nil {
			made = append(made, c)
		}
	}
	var e error
	g.here, e = ros.Advertise[std_msgs.Bool](n, g.names.guard, one)
	keep(g.here, e)
	g.velocity, e = ros.Advertise[geometry_msgs.Twist](n, g.names.velocity, one)
	keep(g.velocity, e)
	g.stop, e = n.Client(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response](g.names.stop))
	keep(g.stop, e)
	s, e := ros.Subscribe(n, g.names.alive, ros.SensorData(), func(m *std_msgs.Bool, _ ros.Info) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.driving, g.at = m.Data, g.config.Clock.Now()
	})
	keep(s, e)
	s, e = ros.Subscribe(n, g.names.odometry, ros.SensorData(), func(m *nav_msgs.Odometry, _ ros.Info) {
		t := m.Twist.Twist
		g.mu.Lock()
		defer g.mu.Unlock()
		g.rest = math.Hypot(t.Linear.X, t.Linear.Y) <= course.RestSlide && math.Abs(t.Angular.Z) <= course.RestTurn
		g.restAt = g.config.Clock.Now()
	})
	keep(s, e)
	return made, err
}

func (g *guard) lapsed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.driving && g.config.Clock.Now().Sub(g.at) > guardLapse
}

// halt tells the base zero until it is at rest, and asks the driver to stop the robot beside that.
func (g *guard) halt(ctx context.Context) {
	c := g.config
	c.Log.Error("the daemon that drives the base fell silent: the base is stopped")
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	wait.Go(func() { _ = g.stop.Call(ctx, new(std_srvs.Trigger_Request), new(std_srvs.Trigger_Response)) }) // some answer with an error when they acted
	tick := c.Clock.Ticker(tickTime)
	defer tick.Stop()
	for began := c.Clock.Now(); ; {
		if err := g.velocity.Send(ctx, new(geometry_msgs.Twist)); err != nil && ctx.Err() == nil {
			c.Log.Error("the guard cannot stop the base: use the runstop", "why", err)
		}
		now := c.Clock.Now()
		g.mu.Lock()
		back := g.driving && now.Sub(g.at) <= guardLapse
		still := g.rest && now.Sub(g.restAt) < guardLapse && now.Sub(began) > guardZeros
		if still || back {
			g.driving = g.driving && back
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
	}
}
