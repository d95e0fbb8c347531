package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"viad/drivers/geom"
	"viad/drivers/hello"
)

// orders are commands for some of the axes.
type orders map[int]hello.Command

// take waits until commands of somebody else are out, so that a stop's are the last.
func (r *Robot) take(ctx context.Context) error {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return ended(ctx)
	}
	if ctx.Err() != nil { // both were there
		r.give()
		return ended(ctx)
	}
	return nil
}

func (r *Robot) give() { r.turn <- struct{}{} }

// order sends commands to boards, all at once, and the motor sync for those that wait for it. It needs the turn.
func (r *Robot) order(ctx context.Context, o orders) error {
	ctx, cancel := r.within(ctx, sendTime+r.config.Patience)
	defer cancel()
	var wait sync.WaitGroup
	errs := make([]error, axes+1)
	for i, c := range o {
		wait.Go(func() {
			if err := r.axes[i].command(ctx, c); err != nil {
				errs[i] = fmt.Errorf("the %s was not told: %w", r.axes[i].units.name, err)
			}
		})
	}
	wait.Wait()
	r.mu.Lock()
	inSync, p := false, r.power.board
	for i := range o {
		inSync = inSync || r.axes[i].status.Diag.Has(hello.DiagSyncMode)
	}
	r.mu.Unlock()
	if inSync {
		errs[axes] = syncWith(ctx, p)
	}
	return errors.Join(errs...)
}

// errNoSync says that boards were told and wait for ever.
var errNoSync = errors.New("the motor sync could not be sent, so that boards wait with what they were told")

func syncWith(ctx context.Context, p *hello.Power) error {
	if p == nil {
		return fmt.Errorf("%w: the power board is not there", errNoSync)
	}
	if err := p.Sync(ctx); err != nil {
		return fmt.Errorf("%w: %w", errNoSync, err)
	}
	return nil
}

func (a *axis) command(ctx context.Context, c hello.Command) error {
	a.r.mu.Lock()
	b := a.board
	a.r.mu.Unlock()
	if b == nil {
		return errors.New("its board is not there")
	}
	c.Stiffness, c.FeedForward = 1, a.units.carrying
	c.ContactPos, c.ContactNeg, c.SensePos, c.SenseNeg = contactCurrent, -contactCurrent, contactSense, contactSense
	return b.Command(ctx, c)
}

// slideTo sends lift or arm to a place (m), no faster than speed (m/s).
func (a *axis) slideTo(x, speed, accel float64) hello.Command {
	k := a.units.metre
	return hello.Command{Mode: hello.ModePositionTrajectory, X: x / k, V: speed / k, A: accel / k}
}

// brake lets lift or arm come to rest by its own profile, as soon as that can. One that is not homed, whose numbers mean
// nothing, holds at once.
func (a *axis) brake(accel float64) hello.Command {
	a.r.mu.Lock()
	s := a.status
	a.r.mu.Unlock()
	if !s.Diag.Has(hello.DiagHomed) {
		return hello.Command{Mode: hello.ModeHold}
	}
	x, v := s.Pos*a.units.metre, s.Vel*a.units.metre
	rest := x + v*math.Abs(v)/(2*accel)
	return a.slideTo(rest, math.Max(math.Abs(v), slowSlide), accel)
}

// roll turns the wheels so that the base has a velocity in its own frame (m/s, rad/s). Their accelerations bring them there
// together, so that the base does not turn meanwhile.
func (r *Robot) roll(v geom.SE2) orders {
	r.mu.Lock()
	now := r.odometry.speed
	r.mu.Unlock()
	want := wheels(v)
	most := 0.0
	for i := range want {
		most = math.Max(most, math.Abs(want[i]-now[i]))
	}
	o := orders{}
	for i, u := range want {
		accel := wheelMost
		if most > 1e-6 {
			accel = math.Max(wheelMost*math.Abs(u-now[i])/most, wheelMost/20)
		}
		o[omni0+i] = hello.Command{Mode: hello.ModeVelocityTrajectory, V: u, A: accel}
	}
	return o
}

// holdWheels keeps the base where it is.
func holdWheels() orders {
	o := orders{}
	for i := omni0; i < axes; i++ {
		o[i] = hello.Command{Mode: hello.ModeHold}
	}
	return o
}
