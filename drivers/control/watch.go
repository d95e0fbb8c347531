package control

import (
	"fmt"
	"math"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// What counts as progress between two readings.
const (
	progressPos   = 0.002 // metres of tool or base
	progressRot   = 0.01  // radians of tool, base or joint
	progressSlide = 0.001 // metres of a prismatic joint
	// asked is how many such amounts must have been commanded before their absence means anything.
	asked = 3
	// frozenTime: readings that keep their values this long while motion is commanded are not believed.
	frozenTime = time.Second
	frozenCut  = 400 * time.Millisecond // the same, when something else has already ended the motion
)

// watch is what is remembered from tick to tick of one call into the body.
type watch struct {
	start    time.Time     // when the body was called
	returned time.Time     // when it returned without an error; zero before
	refAt    time.Time     // when ref was taken
	ref      robot.State   // the reading that progress is measured from
	last     robot.State   // the reading before this one
	first    robot.State   // the one before the first of those that were at rest
	calm     int           // readings in a row that were at rest
	there    time.Duration // from the start until a reading was at the goal; 0 before
}

func newWatch(now time.Time, s robot.State) watch {
	return watch{start: now, refAt: now, ref: s, last: s}
}

// moved says whether b is at least k times the amounts of progress away from a.
func (watch) moved(k *Kinematics, a, b robot.State, times float64) bool {
	return apartBy(k, a.Base, a.Q, b.Base, b.Q) >= times
}

// apartBy is the distance of two configurations in amounts of progress.
func apartBy(k *Kinematics, ba geom.SE2, qa []float64, bb geom.SE2, qb []float64) float64 {
	ta, tb := k.Tool(ba, qa), k.Tool(bb, qb)
	d := math.Max(ta.Dist(tb)/progressPos, ta.Angle(tb)/progressRot)
	d = math.Max(d, math.Hypot(ba.X-bb.X, ba.Y-bb.Y)/progressPos)
	d = math.Max(d, math.Abs(ba.Yaw-bb.Yaw)/progressRot)
	for i, j := range k.model.Joints {
		unit := progressRot
		if j.Prismatic {
			unit = progressSlide
		}
		d = math.Max(d, math.Abs(qa[i]-qb[i])/unit)
	}
	return d
}

// calmer counts readings at rest in a row. A reading is new when it was received later than the last one.
func (w *watch) calmer(c *Controller, s robot.State) {
	switch d := s.Received.Sub(w.last.Received); {
	case d == 0:
		return
	case d < 0: // the clock jumped back, or the reading is older than the wait
		w.last, w.calm = s, 0
		return
	}
	if w.calm == 0 {
		w.first = w.last
	}
	if c.atRest(w.first, s) {
		w.calm++
	} else {
		w.calm = 0
	}
	w.last = s
}

// commanded is how far, in amounts of progress, the plan moves between two times.
func (m *motion) commanded(from, to time.Time) float64 {
	t := m.plan.Traj
	if len(t.Points) == 0 {
		return 0
	}
	a, b := t.At(from.Sub(m.watch.start)), t.At(to.Sub(m.watch.start))
	return apartBy(m.c.kin, a.Base, a.Q, b.Base, b.Q)
}

// frozen says that the readings stopped changing while they should have: a driver that repeats itself.
// After the body has returned, a robot that stands where it was left is no wonder, unless the reading
// says that it moves or nothing has changed since the start.
func (m *motion) frozen(now time.Time) bool {
	since := m.good.Changed
	if m.held > 0 && now.Sub(m.heldAt) < frozenCut { // of the time when nobody looked nothing is known
		now = m.heldAt.Add(-m.held)
	}
	if now.Sub(since) < frozenCut || m.commanded(since, now) < asked {
		return false
	}
	return m.watch.returned.IsZero() || since.Before(m.watch.start) || !m.c.slow(m.good)
}

// watchArm judges one tick of a running trajectory.
func (m *motion) watchArm(s robot.State, now time.Time) (ending, bool) {
	c, w := m.c, &m.watch
	w.calmer(c, s)
	if w.moved(c.kin, w.ref, s, 1) {
		w.ref, w.refAt = s, now
	}
	pos, rot := m.fromGoal(s)
	there := pos <= c.set.SettlePos && rot <= c.set.SettleRot
	el := now.Sub(w.start)
	if there && w.there == 0 {
		w.there = el
	}
	cut := func(r robot.Result, why string) (ending, bool) {
		return ending{cut: true, result: r, why: why, short: true, frozen: m.frozen(now)}, true
	}
	rise := s.Contact - m.before.Contact
	switch {
	case c.set.ContactStop > 0 && rise > c.set.ContactStop:
		return cut(robot.ResultContact, fmt.Sprintf("contact of %.0f N ended the motion, limit %.0f N above the start", s.Contact, c.set.ContactStop))
	case there && w.calm >= c.set.RestTicks && !w.returned.IsZero():
		if why := m.tooSoon(); why != "" {
			return ending{cut: true, result: robot.ResultUnknown, why: why, frozen: true}, true
		}
		return ending{settled: true}, true
	case !w.returned.IsZero():
		if now.Sub(w.returned) > c.set.SettleTime {
			return cut(robot.ResultStoppedShort, fmt.Sprintf("not at the goal %v after the motion ended", c.set.SettleTime))
		}
		return ending{}, false
	case there && w.calm >= c.set.RestTicks && el > m.plan.Traj.Duration()+c.set.SettleTime:
		return ending{settled: true}, true // the driver keeps waiting; the joints have arrived
	case m.frozen(now) && now.Sub(s.Changed) >= frozenTime:
		end, _ := cut(robot.ResultUnknown, fmt.Sprintf("joint readings have not changed for %v while motion was commanded", now.Sub(s.Changed).Round(10*time.Millisecond)))
		return end, true
	case now.Sub(w.refAt) > c.set.StallTime && !there && (el > m.plan.Traj.Duration() || m.commanded(w.refAt, now) >= asked):
		return cut(robot.ResultStoppedShort, fmt.Sprintf("stalled: commanded to move, but no progress for %v", c.set.StallTime))
	}
	if d := m.lag(s, el); d > c.set.FollowError {
		return cut(robot.ResultStoppedShort, fmt.Sprintf("the tool was %.0f mm from where the plan has it, limit %.0f mm", d*1e3, c.set.FollowError*1e3))
	}
	return ending{}, false
}

// lag is the distance in metres between the tool and where the plan has it.
func (m *motion) lag(s robot.State, el time.Duration) float64 {
	pt := m.plan.Traj.At(el)
	return m.c.kin.Tool(s.Base, s.Q).Dist(m.c.kin.Tool(pt.Base, pt.Q))
}

// watchJaw judges one tick of a moving jaw. It is over when the jaw is at rest and the body has returned.
func (m *motion) watchJaw(s robot.State, now time.Time) (ending, bool) {
	c, w := m.c, &m.watch
	if s.Received.After(w.last.Received) {
		if math.Abs(s.Jaw.Aperture-w.last.Jaw.Aperture) < 2e-4 && math.Abs(s.Jaw.Speed) < 1e-3 {
			w.calm++
		} else {
			w.calm, w.refAt = 0, now
		}
		w.last = s
	}
	switch {
	case !w.returned.IsZero() && w.calm >= c.set.RestTicks:
		return ending{settled: true}, true
	case !w.returned.IsZero() && now.Sub(w.returned) > c.set.SettleTime:
		return ending{cut: true, result: robot.ResultStoppedShort, why: "the jaw did not come to rest: look again before the next motion"}, true
	case w.returned.IsZero() && now.Sub(w.refAt) > c.set.JawTime:
		return ending{cut: true, result: robot.ResultStoppedShort, why: fmt.Sprintf("the jaw has not moved for %v and its driver did not return: look what its fingers press against, move away from it, then try again", c.set.JawTime)}, true
	}
	return ending{}, false
}
