package control

import (
	"fmt"
	"math"
	"time"

	"viad/drivers/robot"
)

// What an exact reading is.
const (
	exactTo    = 1e-6 // radians or metres: nearer than this to the command a motor does not come, nor an encoder
	speedOf    = 0.01 // per second: a command slower than this tells nothing
	exactSpeed = 1e-5 // per second
	lagStep    = 10 * time.Millisecond
	lagMost    = 300 * time.Millisecond // how late an echo may come
	lagNegAt   = -20 * time.Millisecond // and how early, by the clocks' grain
	refinings  = 3
)

// compare judges one new reading against what was commanded, at the time of the reading.
func (m *motion) compare(s robot.State) {
	f, t := &m.followed, m.plan.Traj
	if len(t.Points) == 0 || !s.Received.After(m.compared) {
		return
	}
	m.compared = s.Received
	el := s.Received.Sub(m.watch.start)
	if el < 0 || el > t.Duration() {
		return
	}
	f.Apart = max(f.Apart, m.lag(s, el))
	if fastest(t.At(el)) < speedOf {
		return
	}
	f.Readings++
	if f.Exact < f.Readings-1 { // one reading with noise settles it
		return
	}
	lag, ok := exact(t, s, el)
	if !ok {
		return
	}
	f.Exact++
	f.Lag = max(f.Lag, lag)
}

func fastest(p robot.Point) float64 {
	v := math.Max(p.BaseV.Norm(), math.Abs(p.BaseV.Yaw))
	for _, q := range p.QD {
		v = math.Max(v, math.Abs(q))
	}
	return v
}

// exact says whether s is, without any noise, a point of the commanded path not long before el, or its end. The lag is
// free, so that what moves along one coordinate alone is always somewhere on the path: there the speed must agree too.
func exact(t robot.Trajectory, s robot.State, el time.Duration) (lag time.Duration, ok bool) {
	if off(t.At(t.Duration()), s) <= exactTo {
		return 0, true
	}
	best, at := math.Inf(1), time.Duration(0)
	for d := lagNegAt; d <= lagMost; d += lagStep {
		if o := off(t.At(el-d), s); o < best {
			best, at = o, d
		}
	}
	for range refinings { // of the lag, by the fastest coordinate
		p := t.At(el - at)
		gap, v := 0.0, 0.0
		for i, q := range p.QD {
			if math.Abs(q) > math.Abs(v) {
				gap, v = p.Q[i]-s.Q[i], q
			}
		}
		for _, b := range [][3]float64{{p.Base.X, s.Base.X, p.BaseV.X}, {p.Base.Y, s.Base.Y, p.BaseV.Y}, {p.Base.Yaw, s.Base.Yaw, p.BaseV.Yaw}} {
			if math.Abs(b[2]) > math.Abs(v) {
				gap, v = b[0]-b[1], b[2]
			}
		}
		if v == 0 {
			break
		}
		at += time.Duration(gap / v * float64(time.Second))
	}
	p := t.At(el - at)
	return at, off(p, s) <= exactTo && (moving(p) > 1 || offSpeed(p, s) <= exactSpeed)
}

// moving is how many coordinates move at p.
func moving(p robot.Point) (n int) {
	for _, v := range append([]float64{p.BaseV.X, p.BaseV.Y, p.BaseV.Yaw}, p.QD...) {
		if math.Abs(v) >= speedOf {
			n++
		}
	}
	return n
}

// offSpeed is the largest difference of any speed from the command, per second. The base's measured speed is in its own
// frame, its command in that of odometry: their amounts are compared.
func offSpeed(p robot.Point, s robot.State) float64 {
	d := math.Max(math.Abs(p.BaseV.Norm()-s.BaseV.Norm()), math.Abs(p.BaseV.Yaw-s.BaseV.Yaw))
	for i, v := range p.QD {
		d = math.Max(d, math.Abs(v-s.QD[i]))
	}
	return d
}

// off is the largest distance of any coordinate from the command, radians or metres.
func off(p robot.Point, s robot.State) float64 {
	d := math.Max(math.Hypot(p.Base.X-s.Base.X, p.Base.Y-s.Base.Y), math.Abs(p.Base.Yaw-s.Base.Yaw))
	for i, q := range p.Q {
		d = math.Max(d, math.Abs(q-s.Q[i]))
	}
	return d
}

// soonest is the shortest time in which the machine could go from where it was to the end of the trajectory, by its
// own limits of speed and acceleration and not by the plan's: some drivers go at a pace of their own.
func (m *motion) soonest() time.Duration {
	t := m.plan.Traj
	if len(t.Points) == 0 {
		return 0
	}
	end, most := t.Points[len(t.Points)-1], 0.0
	for i, j := range m.c.kin.model.Joints {
		d := math.Abs(end.Q[i] - m.before.Q[i])
		if ramp := j.Vel * j.Vel / j.Acc; d > ramp {
			most = math.Max(most, d/j.Vel+j.Vel/j.Acc)
		} else {
			most = math.Max(most, 2*math.Sqrt(d/j.Acc))
		}
	}
	return time.Duration(most * float64(time.Second))
}

// tooSoon says so when the readings were at the goal before any machine could be: it is the command that is read.
func (m *motion) tooSoon() string {
	if m.watch.there <= 0 {
		return ""
	}
	goal := m.goal()
	from := m.c.kin.Tool(m.before.Base, m.before.Q)
	if from.Dist(goal) < 4*m.c.set.SettlePos && from.Angle(goal) < 4*m.c.set.SettleRot {
		return "" // near from the beginning
	}
	if least := m.soonest(); m.watch.there < least/2 {
		return fmt.Sprintf("the readings were at the goal after %.2f s, which the robot cannot reach in less than %.2f s: its driver echoes its commands",
			m.watch.there.Seconds(), least.Seconds())
	}
	return ""
}

// countdown is patience on a clock that may jump: it is over when the clock says so, or when as many ticks were
// received as fit into it. Ticks may be missed, and then the clock decides.
type countdown struct {
	clock robot.Clock
	end   time.Time
	ticks int
}

func (c *Controller) countdown(d time.Duration) countdown {
	return countdown{clock: c.clock, end: c.clock.Now().Add(d), ticks: int(d/c.set.Tick) + 2}
}

// took is the time since the start, by ticks when the clock went back meanwhile.
func (m *motion) took() time.Duration {
	if d := m.c.clock.Now().Sub(m.start); d >= 0 {
		return d
	}
	return time.Duration(m.looks) * m.c.set.Tick
}

// tick counts one tick and reports whether that was the last.
func (d *countdown) tick() bool {
	d.ticks--
	return d.ticks <= 0 || !d.clock.Now().Before(d.end)
}
