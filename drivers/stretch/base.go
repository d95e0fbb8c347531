package stretch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"viad/drivers/geom"
	"viad/drivers/stretch/course"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/std_msgs"
)

// The base's stream.
const (
	driveEvery = 40 * time.Millisecond // 25 Hz; the robot's firmware waits a second
	gainBase   = 2.5                   // per second
	zeros      = 3                     // sent at an end
)

// drive tells the base its velocity: that of the plan, and what brings it back to it.
func (m *run) drive(ctx context.Context, b *reading, now time.Time) error {
	if now.Sub(m.driven) < driveEvery {
		return nil
	}
	m.driven = now
	at := m.Plan.At(m.S)
	e := course.BaseError(at.Base, b.base)
	sin, cos := math.Sincos(b.base.Yaw)
	v := geom.SE2{X: gainBase * e.X, Y: gainBase * e.Y, Yaw: gainBase * e.Yaw}
	if m.Waited == 0 && m.S < m.Plan.Duration() {
		v.X += cos*at.BaseV.X + sin*at.BaseV.Y
		v.Y += -sin*at.BaseV.X + cos*at.BaseV.Y
		v.Yaw += at.BaseV.Yaw
	}
	c := &m.r.config
	k := math.Max(1, math.Max(v.Norm()/c.BaseSpeed, math.Abs(v.Yaw)/c.BaseTurn))
	return m.r.tell(ctx, geom.SE2{X: v.X / k, Y: v.Y / k, Yaw: v.Yaw / k}, true)
}

// tell publishes one velocity, and to a guard that there will be another.
func (r *Robot) tell(ctx context.Context, v geom.SE2, more bool) error {
	ctx, cancel := r.within(ctx, staleJoints)
	defer cancel()
	if err := r.alive.Send(ctx, &std_msgs.Bool{Data: more}); err != nil {
		return fmt.Errorf("the guard cannot be told that the base is driven: %w", err)
	}
	t := new(geometry_msgs.Twist)
	t.Linear.X, t.Linear.Y, t.Angular.Z = v.X, v.Y, v.Yaw
	if err := r.velocity.Send(ctx, t); err != nil {
		return fmt.Errorf("a velocity of the base could not be sent: %w", err)
	}
	return nil
}

// standBase ends the base's stream: zero three times, and where the driver repeats what it heard last, until the base is
// measured at rest.
func (r *Robot) standBase(ctx context.Context, gen Generation) error {
	ctx = context.WithoutCancel(ctx)
	if r.velocity.Outlet == nil {
		return errors.New("there is nothing to send velocities with")
	}
	var last error
	rest := func() bool {
		b := r.snapshot()
		return b.twist.Norm() <= course.RestSlide && math.Abs(b.twist.Yaw) <= course.RestTurn && b.age(r.clock.Now()) < staleJoints
	}
	for i := 0; i < zeros || gen == GenB && i < 50 && !rest(); i++ {
		if i > 0 {
			r.until(ctx, tickTime, func() bool { return false })
		}
		last = r.tell(ctx, geom.SE2{}, false)
	}
	if gen == GenB && last == nil && !rest() {
		return errors.New("the base is not measured at rest after it was told zero for a second: use the runstop")
	}
	return last
}
