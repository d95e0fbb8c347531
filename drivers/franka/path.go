package franka

import (
	"math"
	"time"

	"viad/drivers/robot"
)

// A piece of a motion as it is sent.
const (
	horizon   = 400 * time.Millisecond // what a goal covers before it brakes
	renew     = 150 * time.Millisecond // after which the next goal replaces it
	lead      = 100 * time.Millisecond // to a goal's first point: the controller blends to it from where it is
	spacing   = 50 * time.Millisecond  // between the points of a goal
	brakeMost = 500 * time.Millisecond // braking on the path after the horizon
	brakeMin  = 100 * time.Millisecond
	transport = 100 * time.Millisecond // of a goal to the controller
	rampTime  = 0.2                    // seconds, for getting up to speed again after a delay
)

// sample is one instant of a motion.
type sample struct{ q, v, a []float64 }

// path is a trajectory by its own time, joined to the joints as they were measured at its start.
type path struct {
	traj   robot.Trajectory
	length time.Duration
	begin  []float64 // measured at the start
	gap    []float64 // measured minus planned there
	blend  float64   // seconds over which the gap is closed
}

// newPath joins t to the measured joints q. The gap is closed slowly enough to stay within a share of the accelerations.
func newPath(t robot.Trajectory, q []float64, m *robot.Model) *path {
	p := &path{traj: t, length: t.Duration(), begin: q, gap: make([]float64, len(q)), blend: 0.3}
	for i := range q {
		p.gap[i] = q[i] - t.Points[0].Q[i]
		p.blend = math.Max(p.blend, math.Sqrt(5.8*math.Abs(p.gap[i])/(0.2*m.Joints[i].Acc)))
	}
	p.blend = math.Min(p.blend, p.length.Seconds())
	return p
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func duration(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// accSpan is half the time over which an acceleration is measured: knots have speeds, and cubics between them jump.
const accSpan = 0.02

// at is the path at its own time s, with speeds and accelerations as if it went at full rate.
func (p *path) at(s float64) sample {
	end := p.length.Seconds()
	s = math.Max(0, math.Min(s, end))
	pt := p.traj.At(duration(s))
	out := sample{q: pt.Q, v: pt.QD, a: make([]float64, len(pt.Q))}
	lo, hi := math.Max(0, s-accSpan), math.Min(end, s+accSpan)
	if s > 0 && s < end {
		before, after := p.traj.At(duration(lo)), p.traj.At(duration(hi))
		for i := range out.a {
			out.a[i] = (after.QD[i] - before.QD[i]) / (hi - lo)
		}
	}
	if s < p.blend {
		x := s / p.blend
		w := 1 - x*x*x*(10-15*x+6*x*x)
		wv := -30 * x * x * (1 - 2*x + x*x) / p.blend
		wa := -60 * x * (1 - 3*x + 2*x*x) / p.blend / p.blend
		for i, g := range p.gap {
			out.q[i] += g * w
			out.v[i] += g * wv
			out.a[i] += g * wa
		}
	}
	return out
}

// brakeTime is how many seconds it takes to brake from v with a share of the acceleration a, by the rate of a profile.
func brakeTime(v, a, share float64) float64 { return 1.5 * math.Abs(v) / (a * share) }

// profile is how a path is gone along: its own time s as a function of the seconds since a goal was sent. The rate goes
// from rate to 1 in ramp seconds, and from 1 to 0 in brake seconds after the cruise.
type profile struct {
	s0, rate, ramp, cruise, brake float64
}

// ease is the rate's change by its part x, its integral and its derivative.
func ease(x float64) (integral, value, slope float64) {
	x = math.Max(0, math.Min(x, 1))
	return x*x*x - x*x*x*x/2, x * x * (3 - 2*x), 6 * x * (1 - x)
}

// at is the path's time, its rate and the change of the rate, tau seconds after the goal was sent.
func (f profile) at(tau float64) (s, rate, change float64) {
	tau = math.Max(0, tau)
	s = f.s0
	if f.ramp > 0 && f.rate < 1 {
		i, v, d := ease(tau / f.ramp)
		up := math.Min(tau, f.ramp)
		s += up*f.rate + (1-f.rate)*f.ramp*i
		rate = f.rate + (1-f.rate)*v
		change = (1 - f.rate) * d / f.ramp
		if tau > f.ramp {
			s += math.Min(tau, f.cruise) - f.ramp
			change = 0
		}
	} else {
		s, rate = s+math.Min(tau, f.cruise)*f.rate, f.rate
	}
	if tau > f.cruise {
		x := (tau - f.cruise) / f.brake
		i, v, d := ease(x)
		top := rate
		s += top * (math.Min(tau-f.cruise, f.brake) - f.brake*i)
		rate = top * (1 - v)
		change = -top * d / f.brake
	}
	return s, rate, change
}

// until is when the path's time s is come to, without braking.
func (f profile) until(s float64) float64 {
	f.cruise = math.Inf(1)
	lo, hi := 0.0, math.Max(0, s-f.s0)+f.ramp
	for hi-lo > 1e-9 {
		mid := (lo + hi) / 2
		if t, _, _ := f.at(mid); t < s {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// piece is one goal: a profile on the path, and when it was sent.
type piece struct {
	profile
	sent  time.Time
	final bool    // it ends at the end of the path
	end   float64 // seconds from sent to rest
}

// next is the piece that goes on from where the last one is at now. The zero time of last means the beginning.
func (p *path) next(last piece, now time.Time, m *robot.Model) piece {
	n := piece{profile: profile{rate: 1, cruise: horizon.Seconds()}, sent: now}
	if !last.sent.IsZero() {
		n.s0, n.rate, _ = last.at(now.Sub(last.sent).Seconds())
	}
	if n.rate < 0.999 {
		n.ramp = rampTime
	} else {
		n.rate = 1
	}
	toEnd := n.until(p.length.Seconds())
	if toEnd <= n.cruise {
		n.final, n.cruise, n.end = true, math.Max(toEnd, lead.Seconds()), math.Max(toEnd, lead.Seconds())
		n.brake = brakeMin.Seconds()
		return n
	}
	s, _, _ := n.at(n.cruise)
	n.brake = p.braking(s, m, brakeShare)
	n.end = n.cruise + n.brake
	return n
}

// braking is how long the rate takes from 1 to 0 from the path's time s on.
func (p *path) braking(s float64, m *robot.Model, share float64) float64 {
	t := brakeMin.Seconds()
	pt := p.at(s)
	for i, j := range m.Joints {
		t = math.Max(t, brakeTime(pt.v[i], j.Acc, share))
	}
	return math.Min(t, brakeMost.Seconds())
}

// stop is the piece that brakes at once from where last is at now.
func (p *path) stop(last piece, now time.Time, m *robot.Model) piece {
	s, rate, _ := last.at(now.Sub(last.sent).Seconds())
	ahead := lead.Seconds() / 2 // until the goal is there
	n := piece{profile: profile{s0: s, rate: rate, cruise: ahead}, sent: now}
	n.brake = p.braking(s+rate*ahead, m, 1)
	n.end = n.cruise + n.brake
	return n
}

// points are the instants of a piece that are sent, by their time from its start; the last is at rest.
func (p *path) points(n piece) (at []float64, out []sample) {
	step := spacing.Seconds()
	first := math.Min(lead.Seconds(), n.end)
	for tau := first; tau < n.end-step/2; tau += step {
		s, rate, change := n.at(tau)
		pt := p.at(s)
		for i := range pt.q {
			pt.a[i] = pt.a[i]*rate*rate + pt.v[i]*change
			pt.v[i] *= rate
		}
		at, out = append(at, tau), append(out, pt)
	}
	s, _, _ := n.at(n.end)
	if n.final {
		s = p.length.Seconds()
	}
	pt := p.at(s)
	return append(at, n.end), append(out, sample{pt.q, make([]float64, len(pt.q)), make([]float64, len(pt.q))})
}
