package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"viad/drivers/feetech"
	"viad/drivers/geom"
	"viad/drivers/hello"
	"viad/drivers/serial"
	"viad/drivers/stretch/course"
)

// step sends the next stretch of the plan when it is due.
func (m *run) step(ctx context.Context, v *view, now time.Time) error {
	if now.Sub(m.stepAt) < stepEvery {
		return nil
	}
	m.stepAt = now
	err := m.send(ctx, v, now)
	switch {
	case err == nil:
		m.fails = 0
		m.steps++
		return nil
	case ctx.Err() != nil:
		return ended(ctx)
	}
	var refusal *feetech.Refused
	var faulted *feetech.Faulted
	var gone *serial.Unplugged
	if m.fails++; m.fails >= failsMost || errors.As(err, &refusal) || errors.As(err, &faulted) || errors.As(err, &gone) {
		return err
	}
	m.asked, m.final = [joints]time.Time{}, [joints]bool{} // all of it again
	m.r.log.Warn("a step of a motion did not go out whole", "why", err)
	return nil
}

func (m *run) send(ctx context.Context, v *view, now time.Time) error {
	r := m.r
	if err := r.take(ctx); err != nil {
		return err
	}
	defer r.give()
	o, turns := orders{}, map[int]feetech.Goal{}
	for i := range m.Model.Joints {
		goal, speed, ok := m.goal(i, v.q[i], now)
		if !ok {
			continue
		}
		m.goals[i], m.speeds[i], m.asked[i] = goal, speed, now
		if i <= armAxis {
			o[i] = r.axes[i].slideTo(goal, speed, m.Model.Joints[i].Acc)
			continue
		}
		servo := i - firstTurn
		turns[servo] = feetech.Goal{Position: turn(servo) * goal, Speed: speed, Accel: math.Min(turnAccel, m.Model.Joints[i].Acc)}
	}
	switch {
	case m.Moves:
		maps.Copy(o, r.roll(m.drive(v, now)))
	case m.steps == 0: // the arm's motion must not push the base away
		maps.Copy(o, holdWheels())
	}
	m.expect(o, now)
	done := make(chan error, 1)
	go func() {
		if len(turns) == 0 {
			done <- nil
			return
		}
		done <- r.wrist.goals(ctx, turns)
	}()
	var err error
	if len(o) > 0 {
		err = r.order(ctx, o)
	}
	return errors.Join(err, <-done)
}

// goal is where a joint shall be sent, and how fast: to the plan's place some time ahead, with the plan's speed and what
// brings it back to the plan. Nothing when it has been asked for that already.
func (m *run) goal(i int, q float64, now time.Time) (x, speed float64, ok bool) {
	j := m.Model.Joints[i]
	least := slowTurn
	if j.Prismatic {
		least = slowSlide
	}
	at, soon := m.Plan.At(m.S), m.Plan.At(m.S+delay)
	x = m.Plan.At(m.S + lead).Q[i]
	v := soon.QD[i] + gain*(at.Q[i]-q)
	way := x - q
	if ended := m.S >= m.Plan.Duration(); ended {
		if m.final[i] && (now.Sub(m.asked[i]) < endSpeed || math.Abs(way) < course.Of(j).Fine) {
			return 0, 0, false
		}
		m.final[i] = true
		v = way / endSpeed.Seconds()
	} else if v*way < 0 || m.Waited > 0 { // it turns round before then, is ahead of the plan, or waits for another
		x, v = soon.Q[i], gain*(at.Q[i]-q)
	}
	// A joint that starts past its limit is on its way in.
	x, speed = math.Min(math.Max(x, j.Min), j.Max), math.Min(math.Max(math.Abs(v), least), j.Vel)
	if same := x == m.goals[i] && math.Abs(speed-m.speeds[i]) < least; same && !m.asked[i].IsZero() && !m.final[i] {
		return 0, 0, false
	}
	return x, speed, true
}

// drive is the base's next velocity, in its own frame: that of the plan, and what brings it back to it.
func (m *run) drive(v *view, now time.Time) geom.SE2 {
	if now.Sub(v.baseAt) > staleGoing {
		return geom.SE2{} // nobody sees where it goes
	}
	at, soon := m.Plan.At(m.S), m.Plan.At(m.S+delay)
	e := course.BaseError(at.Base, v.base)
	out := geom.SE2{X: gain * e.X, Y: gain * e.Y, Yaw: gain * e.Yaw}
	if m.Waited == 0 && m.S < m.Plan.Duration() {
		sin, cos := math.Sincos(v.base.Yaw)
		out.X += cos*soon.BaseV.X + sin*soon.BaseV.Y
		out.Y += -sin*soon.BaseV.X + cos*soon.BaseV.Y
		out.Yaw += soon.BaseV.Yaw
	}
	c := &m.r.config
	k := math.Max(1, math.Max(out.Norm()/c.BaseSpeed, math.Abs(out.Yaw)/c.BaseTurn))
	return geom.SE2{X: out.X / k, Y: out.Y / k, Yaw: out.Yaw / k}
}

// note remembers what was before the motion.
func (m *run) note() {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	for i := range m.contact {
		m.contact[i] = m.r.axes[i].status.Contacts
	}
}

// expect remembers what boards were told.
func (m *run) expect(o orders, now time.Time) {
	for i, c := range o {
		if m.commAt[i].IsZero() || m.modes[i] != c.Mode {
			m.modes[i], m.commAt[i] = c.Mode, now
		}
		if i < omni0 {
			continue
		}
		switch w := &m.rolling[i-omni0]; {
		case math.Abs(c.V) < wheelSlow:
			*w = time.Time{}
		case w.IsZero():
			*w = now
		}
	}
}

// wheelSlow is the speed of a wheel's motor (rad/s) below which it may stand: 12 mm/s of the wheel.
const wheelSlow = 0.7

// obeyTime is how long a board may take to be in the mode that it was told.
const obeyTime = 300 * time.Millisecond

// syncTime is how long a command may seem to wait for the motor sync: each new one waits for a moment, and is what is seen
// of the board when readings are sparse.
const syncTime = 800 * time.Millisecond

// obeyed says what stopped a motor: a contact, a watchdog, a motor sync that did not come.
func (m *run) obeyed(now time.Time) error {
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	for i := range m.r.axes {
		a := &m.r.axes[i]
		s, name := a.status, a.units.name
		if s.Contacts != m.contact[i] && s.Mode == hello.ModeSafety && m.steps > 0 {
			return fmt.Errorf("the %s met something and stopped by itself: look what it is, then move away from it", name)
		}
		if m.commAt[i].IsZero() || now.Sub(m.commAt[i]) < obeyTime+m.r.config.Patience {
			continue
		}
		switch {
		case !a.waits.IsZero() && now.Sub(a.waits) > syncTime+m.r.config.Patience:
			return fmt.Errorf("the %s waits for the motor sync, which does not reach it: look at the cable between the power board and the motors' boards", name)
		case s.Mode != m.modes[i] && a.waits.IsZero():
			return fmt.Errorf("the %s is in mode %q although it was told %q: it fell out of control, or the runstop is on; look at its facts", name, s.Mode, m.modes[i])
		}
	}
	return nil
}

// frozenAfter is how long a number may stay the same of something that should move.
const frozenAfter = time.Second

// frozen finds what reads the same number although it is asked to move: a lost servo's last value, a blocked wheel.
func (m *run) frozen(v *view, now time.Time) error {
	if m.steps == 0 {
		return nil
	}
	for i, j := range m.Model.Joints {
		off := math.Abs(m.Plan.At(m.S + lead).Q[i] - v.q[i])
		if since := now.Sub(v.parts[i].moved); off > 2*course.Of(j).Behind/3 && since > frozenAfter && m.Waited > frozenAfter {
			return fmt.Errorf("%s reads %.4f for %.1f s while it is asked to move: its servo or board no longer measures, or something holds it; look at it before the next motion", j.Name, v.q[i], since.Seconds())
		}
	}
	m.r.mu.Lock()
	defer m.r.mu.Unlock()
	for i, w := range m.rolling {
		a := &m.r.axes[omni0+i]
		if since := now.Sub(a.seen.moved); !w.IsZero() && now.Sub(w) > frozenAfter && since > frozenAfter {
			return fmt.Errorf("the %s reads the same angle for %.1f s while it is asked to turn: its board no longer measures, or something holds the wheel; look at it before the next motion", a.units.name, since.Seconds())
		}
	}
	return nil
}
