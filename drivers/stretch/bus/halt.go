package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"viad/drivers/geom"
	"viad/drivers/hello"
	"viad/drivers/robot"
)

// How often a stop is sent: a zero velocity thrice, and any of them until it was heard.
const (
	zeros     = 3
	mostTimes = 3
)

// Halt ends what runs, by one rung: the base to zero with lift, arm and wrist braking; the same once more; everything held
// where it is measured; the runstop. A rung that did not reach every board, or of which nothing can be seen, is an error.
func (r *Robot) Halt(ctx context.Context, rung robot.Rung) error {
	r.interrupt(ErrHalted)
	ctx, cancel := r.within(ctx, haltTime)
	defer cancel()
	var err error
	switch rung {
	case robot.RungZeroVelocity, robot.RungCancel:
		err = r.brake(ctx)
	case robot.RungHold:
		err = r.hold(ctx)
	case robot.RungPower:
		return r.cut(ctx)
	default:
		err = fmt.Errorf("no rung %d", rung)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", rung, err)
	}
	v := r.snapshot()
	if d := r.clock.Now().Sub(v.oldest()); d > staleGoing+r.config.Patience {
		return fmt.Errorf("%s was sent, but nothing has been heard of a part of the robot for %v: it is not known whether it was heard", rung, d.Round(10*time.Millisecond))
	}
	return nil
}

// brake stops the base and lets everything else come to rest where it can.
func (r *Robot) brake(ctx context.Context) error {
	return r.stop(ctx, func() orders {
		o := r.roll(geom.SE2{})
		m := r.Model()
		for i := liftAxis; i <= armAxis; i++ {
			o[i] = r.axes[i].brake(m.Joints[i].Acc)
		}
		return o
	}, zeros)
}

// hold makes every motor hold where it is at this moment.
func (r *Robot) hold(ctx context.Context) error {
	return r.stop(ctx, func() orders {
		o := holdWheels()
		o[liftAxis], o[armAxis] = hello.Command{Mode: hello.ModeHold}, hello.Command{Mode: hello.ModeHold}
		return o
	}, 1)
}

// stop sends orders to the boards and holds the wrist, whoever fails. Steppers that are runstopped are free already.
func (r *Robot) stop(ctx context.Context, make func() orders, times int) error {
	if err := r.take(ctx); err != nil {
		return err
	}
	defer r.give()
	done := r.holdWrist(ctx)
	var err error
	for n, heard := 0, false; n < times || !heard && n < mostTimes; n++ {
		r.mu.Lock()
		free := r.runstopped()
		r.mu.Unlock()
		if free || ctx.Err() != nil {
			break
		}
		e := r.order(ctx, make())
		if errors.Is(e, errNoSync) {
			e = errors.Join(e, r.letGo(ctx))
		}
		if heard = heard || e == nil; !heard {
			err = e
		} else {
			err = nil
		}
	}
	return errors.Join(err, <-done)
}

// holdWrist holds the servos beside what else is done. The gripper, when it is at rest, keeps what it holds.
func (r *Robot) holdWrist(ctx context.Context) <-chan error {
	which := []int{yawServo, pitchServo, rollServo}
	r.mu.Lock()
	if r.gripping || math.Abs(r.jaw().Speed) > jawRest {
		which = append(which, gripServo)
	}
	r.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		within, cancel := r.within(ctx, haltTime)
		defer cancel()
		done <- r.wrist.hold(within, which...)
	}()
	return done
}

// letGo is for boards that wait for a motor sync that does not come: safety needs none. The wheels roll out; lift and arm
// end at their last goal, as they would fall out of hand otherwise.
func (r *Robot) letGo(ctx context.Context) error {
	within, cancel := r.within(context.WithoutCancel(ctx), sendTime+r.config.Patience)
	defer cancel()
	var errs []error
	for i := omni0; i < axes; i++ {
		errs = append(errs, r.axes[i].command(within, hello.Command{Mode: hello.ModeSafety}))
	}
	return errors.Join(errs...)
}

// cut engages the runstop. The steppers let go: the arm and the wheels are free, the lift floats, the wrist holds.
func (r *Robot) cut(ctx context.Context) error {
	r.mu.Lock()
	p := r.power.board
	r.power.ours = r.power.ours || !r.runstopped()
	r.mu.Unlock()
	r.log.Warn("runstop: wheels and arm are let go, the lift floats")
	held := r.holdWrist(ctx)
	err := errors.New("the power board is not there")
	if p != nil {
		err = p.Runstop(ctx)
	}
	on := r.until(ctx, haltTime, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.runstopped()
	})
	if on {
		return <-held
	}
	if err == nil {
		err = errors.New("the power board took the runstop and does not say that it is on")
	}
	return fmt.Errorf("runstop: %w; press the button on the robot", errors.Join(err, <-held))
}
