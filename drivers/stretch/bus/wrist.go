package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"viad/drivers/feetech"
	"viad/drivers/serial"
	"viad/drivers/stretch"
)

// The servo bus.
const (
	wristBaud  = 1000000
	answerTime = 50 * time.Millisecond // of a servo: what it needs is 12 ms, the rest is for a busy computer
	holdSpeed  = 0.5                   // rad/s, that a joint comes back with to where it was told to hold
	turnAccel  = 12.0                  // rad/s^2, the most that the robot's own body asks of a servo
	gripAccel  = 6.0
	gripSpeed  = 3.0 // rad/s, half of the most that the robot's own body asks of a gripper: it brakes within a quarter of a second
	creep      = 0.05
)

// servo is one servo's newest reading. It is under the Robot's mu.
type servo struct {
	joint   feetech.Joint
	dev     *feetech.Servo // nil: not there
	reading feetech.Reading
	seen    measured
	missed  string // why the newest look failed, empty when it did not
}

// wrist are the servos of wrist and gripper.
type wrist struct {
	r      *Robot
	bus    *feetech.Bus // nil: not there
	each   [servos]servo
	grip   gripper
	counts feetech.Counts // of the newest look
}

func (w *wrist) greet(ctx context.Context, p *serial.Port) error {
	b := feetech.NewBus(p, feetech.Config{Timeout: answerTime + w.r.config.Patience/5})
	g, err := w.findGripper(ctx, b)
	if err != nil {
		return err
	}
	m, err := stretch.Model(g.tool)
	if err != nil {
		return err
	}
	var each [servos]servo
	for i := range each {
		j := g.joint
		if i != gripServo {
			j = wristJoint(i, m)
		}
		each[i] = servo{joint: j, dev: feetech.NewServo(b, j)}
		if each[i].reading, err = each[i].dev.Read(ctx); err != nil {
			return fmt.Errorf("%s: %w", j.Name, err)
		}
		now := w.r.clock.Now()
		each[i].seen = measured{now, now}
	}
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.bus, w.each, w.grip, w.r.model = b, each, g, m
	return nil
}

// findGripper asks which gripper is there.
func (w *wrist) findGripper(ctx context.Context, b *feetech.Bus) (gripper, error) {
	want := w.r.config.Tool
	var errs []error
	for _, tool := range []string{toolPG4, toolSG4} {
		g, err := gripperOf(tool)
		if err != nil {
			return gripper{}, err
		}
		err = b.Ping(ctx, g.joint.ID)
		var faulted *feetech.Faulted
		if err != nil && !errors.As(err, &faulted) {
			if tool == want || want == "" {
				errs = append(errs, err)
			}
			continue
		}
		if want != "" && want != tool {
			errs = append(errs, fmt.Errorf("the robot has the gripper %s, the launch file says %s: change one of them", tool, want))
			continue
		}
		return g, nil
	}
	return gripper{}, fmt.Errorf("no gripper is found: %w", errors.Join(errs...))
}

// look reads every servo. One that fails does not keep the others from being read.
func (w *wrist) look(ctx context.Context) error {
	var errs []error
	for i := range w.each {
		r, err := w.each[i].dev.Read(ctx)
		now := w.r.clock.Now()
		w.r.mu.Lock()
		s := &w.each[i]
		if err == nil {
			if r.Ticks != s.reading.Ticks {
				s.seen.moved = now
			}
			if r.Ticks != s.reading.Ticks || r.Velocity != s.reading.Velocity {
				w.r.changed = now
			}
			s.reading, s.seen.at, s.missed = r, now, ""
			w.r.seq++
		} else {
			s.missed = err.Error()
			errs = append(errs, err)
		}
		w.r.watchStrange(now)
		w.r.mu.Unlock()
		if errors.As(err, new(*serial.Unplugged)) {
			return err
		}
	}
	c := w.bus.Counts()
	w.r.mu.Lock()
	w.counts = c
	w.r.mu.Unlock()
	if len(errs) == servos {
		return errors.Join(errs...)
	}
	return nil // who is silent is told by the age of its reading
}

func (w *wrist) lost() { w.bus = nil }

// takeHold switches the torque of the wrist on where it is: the robot's own body server leaves it off when it stops. The
// goal is set before: a servo obeys the one that it has.
func (w *wrist) takeHold(ctx context.Context, which ...int) error {
	for _, i := range which {
		w.r.mu.Lock()
		here, b, s := w.bus != nil, w.bus, w.each[i]
		w.r.mu.Unlock()
		if !here {
			return errors.New("the servo bus is not there")
		}
		if s.reading.Torque {
			continue
		}
		name := s.joint.Name
		r, err := s.dev.Read(ctx)
		if err == nil && r.Fault != 0 {
			err = &feetech.Faulted{ID: s.joint.ID, Fault: r.Fault}
		}
		if err == nil {
			err = b.Write(ctx, s.joint.ID, feetech.RegisterGoal, here7(s.joint, r.Ticks))
		}
		if err == nil {
			err = s.dev.Torque(ctx, true)
		}
		if err == nil {
			r, err = s.dev.Read(ctx)
		}
		if err == nil && !r.Torque {
			err = errors.New("its torque is off although it was switched on: look at its errors and its power")
		}
		if err != nil {
			return fmt.Errorf("%s cannot take hold: %w", name, err)
		}
		w.r.log.Info("a joint of the wrist takes hold where it is", "joint", name)
		now := w.r.clock.Now()
		w.r.mu.Lock()
		w.each[i].reading, w.each[i].seen.at = r, now
		w.r.mu.Unlock()
	}
	return nil
}

// here7 is a goal at a position that was read, as its seven registers have it: slow, and in the servo's own ticks, as it
// may be outside of the joint's limits.
func here7(j feetech.Joint, ticks int) []byte {
	scale := float64(4096) * j.Gear / (2 * math.Pi)
	speed := uint16(holdSpeed * scale)
	at := uint16(ticks)
	if ticks < 0 {
		at = uint16(-ticks) | 1<<15
	}
	return []byte{byte(gripAccel * scale / 100), byte(at), byte(at >> 8), 0, 0, byte(speed), byte(speed >> 8)}
}

// goals sends goals to several servos at once.
func (w *wrist) goals(ctx context.Context, goals map[int]feetech.Goal) error {
	w.r.mu.Lock()
	b := w.bus
	each := w.each
	w.r.mu.Unlock()
	if b == nil {
		return errors.New("the servo bus is not there")
	}
	var data []feetech.Data
	for i := range servos {
		g, ok := goals[i]
		if !ok {
			continue
		}
		d, err := each[i].dev.Encode(g)
		if err != nil {
			return err
		}
		data = append(data, d)
	}
	return b.SyncWrite(ctx, feetech.RegisterGoal, data)
}

// hold makes servos hold where they are measured. Those without torque have nothing to hold with.
func (w *wrist) hold(ctx context.Context, which ...int) error {
	w.r.mu.Lock()
	there, each := w.bus != nil, w.each
	w.r.mu.Unlock()
	if !there {
		return errors.New("the servo bus is not there, so that the wrist goes on to its last goal, at most 0.4 s away")
	}
	var errs []error
	for i := range servos {
		if !slices.Contains(which, i) {
			continue
		}
		s := each[i]
		got, err := s.dev.Read(ctx) // where it is now
		if err == nil && got.Torque {
			err = brakeServo(ctx, s, got)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.joint.Name, err))
		}
	}
	return errors.Join(errs...)
}

// brakeServo lets a servo come to rest where it can; one that is slow, or not homed, holds where it is.
func brakeServo(ctx context.Context, s servo, got feetech.Reading) error {
	v := got.Velocity
	if !got.Calibrated || math.Abs(v) < creep {
		return s.dev.Hold(ctx, holdSpeed, turnAccel)
	}
	rest := got.Position + v*math.Abs(v)/(2*turnAccel)
	rest = math.Min(math.Max(rest, s.joint.Min), s.joint.Max) // an end of its range stops it anyway
	return s.dev.Go(ctx, feetech.Goal{Position: rest, Speed: math.Max(math.Abs(v), holdSpeed), Accel: turnAccel})
}
