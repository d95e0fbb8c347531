package sim

import (
	"math"
)

// servo is the robot's own joint controller: computed torque with feed-forward of the reference's speed
// and acceleration, gravity and friction compensated, an integral term for what the hand carries, and
// the drive's force limit last.
type servo struct {
	ref      []refPoint // per axis, where it should be now
	integral []float64  // per axis, as an acceleration
	off      []bool     // per axis, no force; nil: none is off
}

// refPoint is a reference's position, speed and acceleration.
type refPoint struct{ x, v, a float64 }

func newServo(p *plant) servo {
	s := servo{ref: make([]refPoint, len(p.axes)), integral: make([]float64, len(p.axes))}
	for i := range p.axes {
		s.ref[i].x, _ = p.axes[i].x(p.d.Qpos(), p.d.Qvel())
	}
	return s
}

func (s *servo) clone() servo {
	return servo{ref: append([]refPoint(nil), s.ref...), integral: append([]float64(nil), s.integral...)}
}

// hold keeps the measured pose from now on, with integral terms of before: a robot that has stopped on
// something does not go on pressing towards where it would have come to rest.
func (s *servo) hold(p *plant, integral []float64) {
	copy(s.integral, integral)
	for i := range p.axes {
		s.ref[i].x, _ = p.axes[i].x(p.d.Qpos(), p.d.Qvel())
	}
}

// drive commands every axis for one time step, between Step1 and Step2.
func (s *servo) drive(p *plant, dt float64) error {
	q, v := p.d.Qpos(), p.d.Qvel()
	for i := range p.axes {
		ax := &p.axes[i]
		x, xd := ax.x(q, v)
		w := ax.spec.omega
		e := s.ref[i].x - x
		s.integral[i] = clamp(s.integral[i]+w*w*2*e*dt, ax.spec.payl)
		acc := s.ref[i].a + w*w*e + 2*w*(s.ref[i].v-xd) + s.integral[i]
		for k, dof := range ax.dof {
			p.vec[dof] = acc * ax.coef[k]
		}
		p.sawMax[i] = math.Max(p.sawMax[i], math.Abs(xd))
	}
	if err := p.d.MulM(p.res, p.vec); err != nil {
		return err
	}
	bias, damp := p.d.Bias(), p.m.DofDamping()
	for i := range p.axes {
		ax := &p.axes[i]
		if s.off != nil && s.off[i] {
			ax.push(p.d, 0)
			continue
		}
		force := 0.0
		for k, dof := range ax.dof {
			force += ax.coef[k] * (p.res[dof] + bias[dof] + damp[dof]*v[dof])
		}
		ax.push(p.d, force)
	}
	return nil
}

// jawServo moves the aperture at a set speed with a limited force, and keeps pressing when it closed on something.
type jawServo struct {
	target float64
	ref    float64
	speed  float64
	still  int // consecutive steps at rest, arrived or blocked
	off    bool
}

const (
	jawStiff   = 2500.0 // N/m of aperture
	jawDamp    = 20.0   // N s/m of aperture
	jawRest    = 0.002  // m/s: below this the jaw is at rest
	jawPress   = 0.02   // m past shut that a closing jaw aims for, so that even a thin thing is gripped in full
	jawSettle  = 0.1    // s at rest before a motion counts as ended
	jawMoveMin = 0.06   // s that a motion is given before it can count as at rest
)

func (j *jawServo) drive(p *plant, dt float64) {
	x, xd := p.jaw.x(p.d.Qpos(), p.d.Qvel())
	if j.off {
		j.ref = x
		p.jaw.push(p.d, 0)
		return
	}
	lead := p.jaw.spec.force / jawStiff // a blocked jaw's reference does not run away
	step := clamp(j.target-j.ref, j.speed*dt)
	j.ref = math.Max(x-2*lead, math.Min(x+2*lead, j.ref+step))
	vref := step / dt
	bias, damp := p.d.Bias(), p.m.DofDamping()
	force := jawStiff*(j.ref-x) + jawDamp*(vref-xd)
	for k, dof := range p.jaw.dof {
		force += p.jaw.coef[k] * (bias[dof] + damp[dof]*p.d.Qvel()[dof])
	}
	p.jaw.push(p.d, force)
	arrived := j.ref == j.target || math.Abs(j.ref-x) > 0.9*lead // or blocked: nothing more will come
	if math.Abs(xd) < jawRest && arrived {
		j.still++
	} else {
		j.still = 0
	}
}

// step advances one time step under both servos.
func (p *plant) step(s *servo, j *jawServo) error {
	dt := float64(p.dt) * 1e-9
	if err := p.d.Step1(); err != nil {
		return err
	}
	if err := s.drive(p, dt); err != nil {
		return err
	}
	j.drive(p, dt)
	return p.d.Step2()
}
