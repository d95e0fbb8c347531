package bus

import (
	"math"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/stretch/course"
)

// view is what was measured last, in the Model's order and units.
type view struct {
	q, qd  [joints]float64
	known  [joints]bool
	parts  [joints]measured
	base   geom.SE2
	twist  geom.SE2
	baseAt time.Time // zero: never
	jaw    robot.Jaw
	jawAt  time.Time
}

// look collects what was measured. It needs mu.
func (r *Robot) look() view {
	v := view{base: r.odometry.base, twist: r.odometry.twist, baseAt: r.odometry.at}
	for i := liftAxis; i <= armAxis; i++ {
		a := &r.axes[i]
		v.q[i], v.qd[i] = a.status.Pos*a.units.metre, a.status.Vel*a.units.metre
		v.known[i], v.parts[i] = !a.seen.at.IsZero(), a.seen
	}
	for i := range gripServo {
		s, j := &r.wrist.each[i], firstTurn+i
		v.q[j], v.qd[j] = 0+turn(i)*s.reading.Position, 0+turn(i)*s.reading.Velocity // no -0
		v.known[j], v.parts[j] = !s.seen.at.IsZero() && s.reading.Calibrated, s.seen
	}
	v.jaw, v.jawAt = r.jaw(), r.wrist.each[gripServo].seen.at
	return v
}

// whole says that every joint and the base were measured.
func (v *view) whole() bool {
	for _, k := range v.known {
		if !k {
			return false
		}
	}
	return !v.baseAt.IsZero()
}

// oldest is the time of the oldest part, zero when one is missing.
func (v *view) oldest() time.Time {
	t := v.baseAt
	for i, p := range v.parts {
		if !v.known[i] {
			return time.Time{}
		}
		if p.at.Before(t) {
			t = p.at
		}
	}
	return t
}

// fast says that something moves faster than that, rad/s and m/s.
func (v *view) fast(turn, slide float64) bool {
	for i, s := range v.qd {
		limit := turn
		if i <= armAxis {
			limit = slide
		}
		if v.known[i] && math.Abs(s) > limit {
			return true
		}
	}
	return v.twist.Norm() > slide || math.Abs(v.twist.Yaw) > turn
}

// measured is the view as a course takes it.
func (v *view) measured() course.Measured {
	return course.Measured{Q: v.q[:], Base: v.base, Fast: v.fast(course.RestTurn, course.RestSlide), Read: v.oldest()}
}

// What tells an empty jaw from one that holds something.
const (
	jawEmpty = 0.004 // m of aperture
	jawRest  = 0.004 // m/s
)

// jaw needs mu.
func (r *Robot) jaw() robot.Jaw {
	s := &r.wrist.each[gripServo]
	if s.seen.at.IsZero() || !s.reading.Calibrated {
		return robot.Jaw{}
	}
	j := robot.Jaw{Known: true, Aperture: r.wrist.grip.aperture(s.reading.Position)}
	const step = 1e-3 // rad, for the slope
	j.Speed = (r.wrist.grip.aperture(s.reading.Position+step) - j.Aperture) / step * s.reading.Velocity
	if math.Abs(j.Speed) < 5e-4 {
		j.Speed = 0
	}
	j.Aperture = math.Max(j.Aperture, 0) // fingers that press on one another
	j.Open = j.Aperture > r.model.Jaw.Max/2
	if r.jawOpen != nil {
		j.Open = *r.jawOpen
		j.Holding = !j.Open && !r.gripping && math.Abs(j.Speed) < jawRest && j.Aperture > r.model.Jaw.Min+jawEmpty
	}
	return j
}

// State is the newest reading, and what the driver makes of the robot. Its age is that of its oldest part.
func (r *Robot) State() robot.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.look()
	s := robot.State{Seq: r.seq, Changed: r.changed, HasBase: !v.baseAt.IsZero(), Base: v.base, BaseV: v.twist, Jaw: v.jaw}
	if v.whole() {
		s.Q, s.QD = append([]float64(nil), v.q[:]...), append([]float64(nil), v.qd[:]...)
		s.Received = v.oldest()
		s.Stamp = s.Received
	}
	s.Mode, s.Fault = r.mode(r.clock.Now())
	return s
}

// mode is what the driver says of the robot now. It needs mu.
func (r *Robot) mode(now time.Time) (robot.Mode, string) {
	for _, l := range r.links {
		if !l.up {
			if l.why == "" {
				return robot.ModeUnknown, "the robot's ports are being opened: wait until its facts are complete"
			}
			return robot.ModeFaulted, l.why
		}
	}
	if r.runstopped() {
		return robot.ModeRunstopped, r.runstopWords()
	}
	if bad := r.bad(now); bad != "" {
		return robot.ModeFaulted, bad
	}
	if r.running != nil {
		return robot.ModeMoving, ""
	}
	return robot.ModeReady, ""
}

// Speeds of a robot that moves by itself.
const (
	strangeTurn  = 0.05 // rad/s
	strangeSlide = 0.01 // m/s
)

// watchStrange needs mu. A robot that is pushed while it is runstopped is no runaway.
func (r *Robot) watchStrange(now time.Time) {
	v := r.look()
	if r.runstopped() || r.running != nil || now.Sub(r.ended) < ownAfter || !v.fast(strangeTurn, strangeSlide) {
		r.strange = time.Time{}
	} else if r.strange.IsZero() {
		r.strange = now
	}
}

// snapshot is what was measured last.
func (r *Robot) snapshot() view {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.look()
}
