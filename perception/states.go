package perception

import (
	"errors"
	"fmt"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// errIncomplete is what a state with missing or non-finite joints, base or jaw comes to.
var errIncomplete = errors.New("robot state incomplete: joints, base or jaw are missing or not finite; nothing can be placed without them")

// states is a ring of complete states in order of their receive time.
type states struct {
	model *robot.Model
	buf   []robot.State
	next  int // where the next one goes
	n     int
}

func newStates(m *robot.Model, size int) *states {
	return &states{model: m, buf: make([]robot.State, size)}
}

// at is the i-th oldest.
func (r *states) at(i int) *robot.State {
	return &r.buf[(r.next-r.n+i+2*len(r.buf))%len(r.buf)]
}

// add keeps a state. A time that runs backwards (a clock that jumped) empties the ring, and so does a robot that is
// elsewhere without having moved there (a twin that was reset): the old states say nothing about what comes now, and
// nothing was ever between them and it.
func (r *states) add(s robot.State) error {
	if !s.Complete(r.model) {
		return errIncomplete
	}
	if i, past := s.Implausible(r.model); i >= 0 {
		return fmt.Errorf("robot state is not of this robot: %s is read %.3f past its limit; nothing can be placed with it", r.model.Joints[i].Name, past)
	}
	if r.n > 0 {
		last := r.at(r.n - 1)
		if s.Received.Before(last.Received) || jumped(r.model, last, &s) {
			r.n = 0
		} else if s.Received.Equal(last.Received) {
			*last = s
			return nil
		}
	}
	r.buf[r.next] = s
	r.next = (r.next + 1) % len(r.buf)
	r.n = min(r.n+1, len(r.buf))
	return nil
}

// How far a robot may come between two states: twice what its joints can do, and what is generous for any base.
const (
	jumpSlack = 0.02 // rad or m
	baseSpeed = 2.0  // m/s
	baseTurn  = 4.0  // rad/s
)

// jumped reports that no motion leads from a to b.
func jumped(m *robot.Model, a, b *robot.State) bool {
	dt := b.Received.Sub(a.Received).Seconds()
	for i, j := range m.Joints {
		if d := b.Q[i] - a.Q[i]; !(d <= 2*j.Vel*dt+jumpSlack && d >= -2*j.Vel*dt-jumpSlack) {
			return true
		}
	}
	by := a.Base.Inv().Mul(b.Base)
	turn := geom.WrapAngle(by.Yaw)
	return !(by.Norm() <= baseSpeed*dt+jumpSlack && turn <= baseTurn*dt+jumpSlack && turn >= -baseTurn*dt-jumpSlack)
}

// config is what places every link.
type config struct {
	base     geom.SE2
	q        []float64
	aperture float64
}

func configOf(s *robot.State) config {
	return config{base: s.Base, q: s.Q, aperture: s.Jaw.Aperture}
}

// when is the robot's configuration at t: linear between the two states around it, carried on by the measured
// speeds for up to gap where there is a state on one side only. Farther away is an error, never a guess.
func (r *states) when(t time.Time, gap time.Duration) (config, error) {
	if r.n == 0 {
		return config{}, errIncomplete
	}
	lo, hi := 0, r.n // first state after t
	for lo < hi {
		if m := (lo + hi) / 2; r.at(m).Received.After(t) {
			hi = m
		} else {
			lo = m + 1
		}
	}
	if lo == 0 || lo == r.n {
		return extended(r.at(min(lo, r.n-1)), t, gap)
	}
	a, b := r.at(lo-1), r.at(lo)
	if b.Received.Sub(a.Received) <= 2*gap || sameConfig(a, b) {
		return between(a, b, t), nil
	}
	if b.Received.Sub(t) < t.Sub(a.Received) {
		a = b
	}
	return extended(a, t, gap)
}

// extended is the configuration at t by one state near t.
func extended(s *robot.State, t time.Time, gap time.Duration) (config, error) {
	d := t.Sub(s.Received)
	if d.Abs() > gap {
		return config{}, fmt.Errorf("the nearest robot state is %v from the exposure, limit %v", d.Abs().Round(time.Millisecond), gap)
	}
	return carried(s, d), nil
}

// carried is s moved on by its speeds for d.
func carried(s *robot.State, d time.Duration) config {
	c := configOf(s)
	if d == 0 {
		return c
	}
	sec := d.Seconds()
	c.q = make([]float64, len(s.Q))
	for i := range c.q {
		c.q[i] = s.Q[i] + sec*s.QD[i]
	}
	c.base = s.Base.Mul(geom.SE2{X: sec * s.BaseV.X, Y: sec * s.BaseV.Y, Yaw: sec * s.BaseV.Yaw})
	c.aperture += sec * s.Jaw.Speed
	return c
}

// between interpolates two states.
func between(a, b *robot.State, t time.Time) config {
	w := float64(t.Sub(a.Received)) / float64(b.Received.Sub(a.Received))
	c := config{q: make([]float64, len(a.Q)), aperture: a.Jaw.Aperture + w*(b.Jaw.Aperture-a.Jaw.Aperture)}
	for i := range c.q {
		c.q[i] = a.Q[i] + w*(b.Q[i]-a.Q[i])
	}
	c.base = geom.SE2{
		X:   a.Base.X + w*(b.Base.X-a.Base.X),
		Y:   a.Base.Y + w*(b.Base.Y-a.Base.Y),
		Yaw: a.Base.Yaw + w*geom.WrapAngle(b.Base.Yaw-a.Base.Yaw),
	}
	return c
}

// sameConfig reports that nothing moved between two states beyond 1 mrad, 1 mm.
func sameConfig(a, b *robot.State) bool {
	x, y := configOf(a), configOf(b)
	return x.near(y)
}

func (c config) near(o config) bool {
	for i := range c.q {
		if d := c.q[i] - o.q[i]; d > 1e-3 || d < -1e-3 {
			return false
		}
	}
	yaw := geom.WrapAngle(c.base.Yaw - o.base.Yaw)
	jaw := c.aperture - o.aperture
	return c.base.Inv().Mul(o.base).Norm() < 1e-3 && yaw < 1e-3 && yaw > -1e-3 && jaw < 1e-3 && jaw > -1e-3
}
