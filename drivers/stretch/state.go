package stretch

import (
	"math"
	"slices"
	"strings"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/stretch/course"
	"viad/ros"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/diagnostic_msgs"
	"viad/ros/msg/nav_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
)

// reading is the newest of what is measured. A message that lacks a joint, or has a number that is none, is a reading
// without joints: missing is missing.
type reading struct {
	seq         uint64
	q, qd       []float64 // Model order and units; never written to again
	received    time.Time
	stamp       time.Time
	changed     time.Time         // when anything last changed
	moved       [joints]time.Time // when each joint's number last changed
	fingers     [2]float64        // of the wire
	jaw         bool              // there are fingers
	apart       [2]float64        // the last two apertures
	apartAt     [2]time.Time      // and their times
	jawSpeed    float64           // of the aperture
	base, twist geom.SE2
	odometry    time.Time // when it came; zero: never
	stages      float64   // that the arm was read with
	leapt       time.Time // when a reading last contradicted the one before it; zero: never
	leap        string    // how
}

// heard is a value that came, and when.
type heard[T any] struct {
	v  T
	at time.Time // zero: never
}

func (h heard[T]) known() bool { return !h.at.IsZero() }

// status is the newest of what the driver says of the robot.
type status struct {
	homed, runstopped, guard heard[bool]
	mode, tool, description  heard[string]
	lease                    heard[lease]
	battery                  heard[float64] // 0 to 1
	strange                  time.Time      // since when it moves without a command of ours; zero: it does not
}

// lease is who holds the body server.
type lease struct {
	holder  string
	expired bool
}

// offset is how the sender's clock differs from ours: the least that a message seemed to take.
type offset struct {
	least time.Duration
	known bool
}

func (o *offset) add(t builtin_interfaces.Time, received time.Time) {
	stamp := time.Unix(int64(t.Sec), int64(t.Nanosec))
	if stamp.UnixNano() == 0 || received.IsZero() {
		return
	}
	if d := received.Sub(stamp); !o.known || d < o.least {
		o.least, o.known = d, true
	}
}

// onJoints takes the joints by name, in any order.
func (r *Robot) onJoints(m *sensor_msgs.JointState, info ros.Info) {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offset.add(m.Header.Stamp, info.Received)
	u := r.units()
	if u.stages == 0 {
		u = unitsOf(GenAPrime) // before the handshake: only to see whether they come
	}
	p := pick(m, u)
	b := &r.reading
	if !slices.Equal(p.q, b.q) || !slices.Equal(p.qd, b.qd) || p.fingers != b.fingers {
		b.changed = now
	}
	b.leapJoints(p, u.stages, now)
	for i := range p.q {
		if len(b.q) != joints || b.q[i] != p.q[i] {
			b.moved[i] = now
		}
	}
	b.seq++
	b.q, b.qd, b.received, b.stamp = p.q, p.qd, now, time.Unix(int64(m.Header.Stamp.Sec), int64(m.Header.Stamp.Nanosec))
	b.fingers, b.jaw = p.fingers, p.jaw
	r.onJaw(now)
	r.watchStrange(now)
}

// jawWindow is the time over which the aperture's speed is taken: fingers are read in steps.
const jawWindow = 80 * time.Millisecond

func (r *Robot) onJaw(now time.Time) {
	b := &r.reading
	if !b.jaw {
		b.jawSpeed = 0
		return
	}
	a := r.aperture()
	if d := now.Sub(b.apartAt[1]); b.apartAt[1].IsZero() || d >= jawWindow {
		if !b.apartAt[1].IsZero() {
			b.jawSpeed = (a - b.apart[1]) / d.Seconds()
		}
		b.apart, b.apartAt = [2]float64{b.apart[1], a}, [2]time.Time{b.apartAt[1], now}
	}
}

// aperture is the measured one, between the limits of the jaw. It needs mu.
func (r *Robot) aperture() float64 {
	g, ok := unitsOf(r.known.generation).grip[r.known.tool]
	if !ok {
		return 0
	}
	return g.aperture(r.reading.fingers[0], r.reading.fingers[1])
}

// picked is one message in the Model's order and units.
type picked struct {
	q, qd   []float64
	speeds  bool // the message has speeds
	fingers [2]float64
	jaw     bool
}

func pick(m *sensor_msgs.JointState, u units) picked {
	p := picked{speeds: len(m.Velocity) > 0}
	at := func(name string) (q, v float64, ok bool) {
		i := slices.Index(m.Name, name)
		if i < 0 || i >= len(m.Position) || !finite(m.Position[i]) || slices.Contains(m.Name[i+1:], name) {
			return 0, 0, false // also of two, since one of them is of something else
		}
		if i < len(m.Velocity) {
			v = m.Velocity[i]
		}
		return m.Position[i], v, finite(v)
	}
	q, qd, whole := make([]float64, joints), make([]float64, joints), true
	for _, s := range stageNames() {
		x, v, ok := at(s)
		whole = whole && ok
		q[jArm] += x * u.stages
		qd[jArm] += v * u.stages
	}
	for j, name := range map[int]string{jLift: "lift_joint", jYaw: "wrist_yaw_joint", jPitch: "wrist_pitch_joint", jRoll: "wrist_roll_joint"} {
		x, v, ok := at(name)
		whole = whole && ok
		q[j], qd[j] = x*u.signs[j], v*u.signs[j]
	}
	if whole {
		p.q, p.qd = q, qd
	}
	for _, n := range [][2]string{
		{"gripper_finger_left_joint", "gripper_finger_right_joint"}, {"finger_left_joint", "finger_right_joint"}, {"finger_left", "finger_right"},
	} {
		l, _, okL := at(n[0])
		x, _, okR := at(n[1])
		if okL && okR {
			p.fingers, p.jaw = [2]float64{l, x}, true
			return p
		}
	}
	if x, _, ok := at("parallel_gripper_joint"); ok { // the whole aperture
		p.fingers, p.jaw = [2]float64{x / 2, x / 2}, true
	}
	return p
}

func finite(x float64) bool { return x-x == 0 }

func (r *Robot) onOdometry(m *nav_msgs.Odometry, _ ros.Info) {
	now, q := r.clock.Now(), m.Pose.Pose.Orientation
	yaw := math.Atan2(2*(q.W*q.Z+q.X*q.Y), 1-2*(q.Y*q.Y+q.Z*q.Z))
	base := geom.SE2{X: m.Pose.Pose.Position.X, Y: m.Pose.Pose.Position.Y, Yaw: yaw}
	twist := geom.SE2{X: m.Twist.Twist.Linear.X, Y: m.Twist.Twist.Linear.Y, Yaw: m.Twist.Twist.Angular.Z}
	if !base.Finite() || !twist.Finite() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := &r.reading
	if !b.odometry.IsZero() { // without jumps by whole turns
		base.Yaw = b.base.Yaw + geom.WrapAngle(base.Yaw-b.base.Yaw)
	}
	if base != b.base || twist != b.twist {
		b.changed = now
	}
	b.leapBase(base, twist, now)
	b.base, b.twist, b.odometry = base, twist, now
	b.seq++
	r.watchStrange(now)
}

func (r *Robot) onBattery(m *sensor_msgs.BatteryState, _ ros.Info) {
	r.keep(func(s *status, now time.Time) { s.battery = heard[float64]{float64(m.Percentage), now} })
}

func (r *Robot) keep(f func(s *status, now time.Time)) {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.status, now)
}

func (r *Robot) onHomed(m *std_msgs.Bool, _ ros.Info) {
	r.keep(func(s *status, now time.Time) { s.homed = heard[bool]{m.Data, now} })
}

func (r *Robot) onGuard(m *std_msgs.Bool, _ ros.Info) {
	r.keep(func(s *status, now time.Time) { s.guard = heard[bool]{m.Data, now} })
}

func (r *Robot) onRunstopped(m *std_msgs.Bool, _ ros.Info) {
	r.keep(func(s *status, now time.Time) {
		if m.Data {
			r.stoppedHoming(s.mode.v)
		}
		s.runstopped = heard[bool]{m.Data, now}
	})
}

// stoppedHoming needs mu. What a joint has found as its end is not to be believed.
func (r *Robot) stoppedHoming(mode string) {
	if mode == modeHoming || r.homing {
		r.rehome, r.broken = true, true
	}
}

func (r *Robot) onMode(m *std_msgs.String, _ ros.Info) {
	r.keep(func(s *status, now time.Time) {
		if m.Data == modeRunstopped {
			r.stoppedHoming(s.mode.v)
		}
		if m.Data != s.mode.v || !s.mode.known() {
			s.mode = heard[string]{m.Data, now} // since when
		}
	})
}

func (r *Robot) onTool(m *std_msgs.String, _ ros.Info) {
	r.keep(func(s *status, now time.Time) { s.tool = heard[string]{m.Data, now} })
}

func (r *Robot) onDescription(m *std_msgs.String, _ ros.Info) {
	r.keep(func(s *status, now time.Time) { s.description = heard[string]{m.Data, now} })
}

func (r *Robot) onLease(m *diagnostic_msgs.DiagnosticStatus, _ ros.Info) {
	var l lease
	for _, kv := range m.Values {
		switch kv.Key {
		case "lease_holder":
			l.holder = kv.Value
		case "lease_expired":
			l.expired = strings.EqualFold(kv.Value, "true")
		}
	}
	r.keep(func(s *status, now time.Time) { s.lease = heard[lease]{l, now} })
}

// Speeds and times of a robot that is moved by somebody else.
const (
	strangeJoint = 0.05 // rad/s
	strangeSlide = 0.01 // m/s
	strangeAfter = 300 * time.Millisecond
	ownAfter     = 1500 * time.Millisecond // after a motion of ours
)

// watchStrange needs mu.
func (r *Robot) watchStrange(now time.Time) {
	s := &r.status
	off := s.runstopped.v || s.mode.v == modeHoming || s.mode.v == modeStowing // pushed by hand, or by itself
	if off || r.running != nil || now.Sub(r.ended) < ownAfter || !r.reading.fast(strangeJoint, strangeSlide) {
		s.strange = time.Time{}
	} else if s.strange.IsZero() {
		s.strange = now
	}
}

// fast says that something moves faster than that, rad/s and m/s.
func (b *reading) fast(turn, slide float64) bool {
	for i, v := range b.qd {
		limit := turn
		if i <= jArm {
			limit = slide
		}
		if math.Abs(v) > limit {
			return true
		}
	}
	return b.twist.Norm() > slide || math.Abs(b.twist.Yaw) > turn
}

// measured is the reading as a course takes it.
func (b *reading) measured(now time.Time) course.Measured {
	return course.Measured{Q: b.q, Base: b.base, Fast: b.fast(course.RestTurn, course.RestSlide), Read: now.Add(-b.age(now))}
}

// snapshot is a copy of what was measured last.
func (r *Robot) snapshot() reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reading
}

// age is the age of the older of joints and odometry.
func (b *reading) age(now time.Time) time.Duration {
	return max(now.Sub(b.received), now.Sub(b.odometry))
}

// State is the newest reading, and what the driver makes of the robot.
func (r *Robot) State() robot.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, b := r.clock.Now(), &r.reading
	s := robot.State{
		Seq: b.seq, Received: b.received, Stamp: b.stamp, Changed: b.changed, Q: slices.Clone(b.q), QD: slices.Clone(b.qd),
		HasBase: !b.odometry.IsZero(), Base: b.base, BaseV: b.twist,
	}
	if b.odometry.Before(s.Received) && s.HasBase && now.Sub(b.odometry) > staleJoints {
		s.Received = b.odometry // as old as its oldest part
	}
	if r.known.generation != GenUnknown {
		s.Jaw = r.jaw()
	}
	s.Mode, s.Fault = r.mode(now)
	return s
}

// What tells an empty jaw from one that holds something.
const (
	jawEmpty = 0.004 // m of aperture
	jawRest  = 0.004 // m/s
)

// jaw needs mu.
func (r *Robot) jaw() robot.Jaw {
	if !r.reading.jaw {
		return robot.Jaw{}
	}
	j := robot.Jaw{Known: true, Aperture: r.aperture(), Speed: r.reading.jawSpeed}
	if math.Abs(j.Speed) < 5e-4 {
		j.Speed = 0
	}
	j.Open = j.Aperture > r.known.model.Jaw.Max/2
	if r.jawOpen != nil {
		j.Open = *r.jawOpen
		j.Holding = !j.Open && !r.gripping && math.Abs(j.Speed) < jawRest && j.Aperture > r.known.model.Jaw.Min+jawEmpty
	}
	return j
}

// mode is what the driver says of the robot now. It needs mu.
func (r *Robot) mode(now time.Time) (robot.Mode, string) {
	s := &r.status
	if !r.known.complete {
		if r.reading.received.IsZero() && r.known.bad == "" {
			return robot.ModeUnknown, "the robot is being looked for: nothing has come of it yet"
		}
		return robot.ModeFaulted, r.known.words()
	}
	if s.runstopped.v || s.mode.v == modeRunstopped {
		return robot.ModeRunstopped, runstopWords
	}
	if r.resting(now) { // also one that is not homed: it is at it
		return robot.ModeMoving, "the robot is " + s.mode.v + ": wait until it is done"
	}
	for _, f := range r.live(now) {
		if f.Bad != "" {
			return robot.ModeFaulted, f.Bad
		}
	}
	if r.running != nil {
		return robot.ModeMoving, ""
	}
	return robot.ModeReady, ""
}

const runstopWords = "the runstop is engaged; look why, make the robot safe, then an operator releases it with the task \"release\" or the button on the robot"
