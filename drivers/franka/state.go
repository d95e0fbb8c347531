package franka

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/franka_ros1_msgs"
	"viad/ros/msg/sensor_msgs"
)

// reading is the newest of the joints. A message that lacks a joint, or has a number that is none, is a reading without
// joints.
type reading struct {
	q, qd    []float64 // never written to again
	lack     string    // what is wrong with a reading that has no joints
	received time.Time
	again    time.Time // when they came again after a gap
	stamp    time.Time
	changed  time.Time
	raw      time.Time // when the arm's own topic last came: the merged one counts only without it
	seq      uint64
	strange  time.Time // since when it moves without a command of ours; zero: it does not
	leapt    time.Time // when a reading last contradicted the one before it; zero: never
	leap     string    // how
}

// hand is the newest of the fingers.
type hand struct {
	aperture, speed float64
	received        time.Time
	changed         time.Time // when the aperture last changed: a failed read is published again with a new stamp
	steady          float64   // the aperture that counts as unchanged
	homed           bool      // it has shown an aperture that only a homed hand shows
	open            bool      // the last command that ended plausibly
	known           bool
}

// status is the newest of the robot's own state.
type status struct {
	mode          uint8
	current, last []string // names of the error flags that are set
	rate          float64  // of the commands that arrived, of the last hundred; 0 without motion
	force         float64  // N at the hand
	received      time.Time
	reflexes      []time.Time // of the last minute
	latched       bool        // a reflex or a user stop was seen, and the robot has not driven since
}

// offset is how the sender's clock differs from ours: the least that a message seemed to take.
type offset struct {
	least time.Duration
	known bool
}

func (o *offset) add(stamp, received time.Time) {
	if stamp.UnixNano() == 0 || received.IsZero() {
		return
	}
	if d := received.Sub(stamp); !o.known || d < o.least {
		o.least, o.known = d, true
	}
}

func stampOf(t builtin_interfaces.Time) time.Time { return time.Unix(int64(t.Sec), int64(t.Nanosec)) }

func (r *Robot) onMeasured(m *sensor_msgs.JointState, i ros.Info) { r.onJoints(m, i, true) }
func (r *Robot) onMerged(m *sensor_msgs.JointState, i ros.Info)   { r.onJoints(m, i, false) }

// onJoints takes the arm's joints by name, in any order.
func (r *Robot) onJoints(m *sensor_msgs.JointState, info ros.Info, raw bool) {
	q, qd, ours, lack := pick(m, r.names.joints)
	if !ours {
		return
	}
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	b := &r.joints
	switch {
	case raw:
		b.raw = now
	case now.Sub(b.raw) < staleJoints:
		return
	}
	stamp := stampOf(m.Header.Stamp)
	r.offset.add(stamp, info.Received)
	if !slices.Equal(q, b.q) || !slices.Equal(qd, b.qd) {
		b.changed = now
	}
	if now.Sub(b.received) > staleJoints {
		b.again = now
	} else {
		b.watchLeap(q, qd, now)
	}
	b.q, b.qd, b.lack, b.received, b.stamp = q, qd, lack, now, stamp
	b.seq++
	r.watchStrange(now)
}

// catchUp is how long readings that come again after a gap may be of before it: what a network or a stopped process has
// kept is delivered at once, each of them as if it were new.
const catchUp = 150 * time.Millisecond

// caughtUp says that the newest reading is of now, as far as can be known: a place to hold at.
func (r *Robot) caughtUp() bool {
	j, _, _ := r.snapshot()
	now := r.clock.Now()
	return j.q != nil && now.Sub(j.received) <= staleJoints && now.Sub(j.again) >= catchUp
}

// Speeds and times of an arm that is moved by somebody else.
const (
	strangeSpeed = 0.05 // rad/s
	strangeAfter = 200 * time.Millisecond
	ownAfter     = 1500 * time.Millisecond // after a motion of ours
)

func (r *Robot) watchStrange(now time.Time) {
	b := &r.joints
	if r.run != nil || now.Sub(r.ended) < ownAfter || fastest(b.qd) < strangeSpeed {
		b.strange = time.Time{}
	} else if b.strange.IsZero() {
		b.strange = now
	}
}

func fastest(v []float64) (most float64) {
	for _, x := range v {
		most = math.Max(most, math.Abs(x))
	}
	return most
}

// pick takes positions and speeds by name. ours is false when the message has none of the names: it is of another part.
// lack says what is wrong with the first joint that is not whole; then there are no positions.
func pick(m *sensor_msgs.JointState, names []string) (q, qd []float64, ours bool, lack string) {
	q, qd = make([]float64, len(names)), make([]float64, len(names))
	for k, name := range names {
		i := slices.Index(m.Name, name)
		ours = ours || i >= 0
		bad := ""
		switch {
		case i < 0:
			bad = "is missing"
		case i >= len(m.Position) || i >= len(m.Velocity):
			bad = "has no position or no speed"
		case !finite(m.Position[i]) || !finite(m.Velocity[i]):
			bad = "is not a number"
		case slices.Contains(m.Name[i+1:], name):
			bad = "is there twice, and one of them is of something else"
		default:
			q[k], qd[k] = m.Position[i], m.Velocity[i]
		}
		if bad != "" && lack == "" {
			lack = name + " " + bad
		}
	}
	if lack != "" {
		return nil, nil, ours, lack
	}
	return q, qd, ours, ""
}

// lackWords say why an arm that has not all joints may not move.
func lackWords(lack string) string {
	return "the joint readings are not whole: " + lack + "; look at the controller that publishes them, nothing moves until they are"
}

func finite(x float64) bool { return x-x == 0 }

// onHand takes the aperture: each finger is half of it.
func (r *Robot) onHand(m *sensor_msgs.JointState, _ ros.Info) {
	a, found := 0.0, 0
	for _, f := range r.names.fingers {
		if i := slices.Index(m.Name, f); i >= 0 && i < len(m.Position) && finite(m.Position[i]) {
			a += m.Position[i]
			found++
		}
	}
	if found == 0 {
		return
	}
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &r.hand
	if found != len(r.names.fingers) {
		h.known = false
		return
	}
	if dt := now.Sub(h.received).Seconds(); h.known && dt > 0 {
		h.speed = (a - h.aperture) / math.Max(dt, 0.01)
	}
	if !h.known {
		h.open, h.speed, h.changed = a > r.model.Jaw.Max/2, 0, now
	}
	if math.Abs(a-h.steady) > 2e-4 {
		h.steady, h.changed = a, now
	}
	h.aperture, h.received, h.known = a, now, true
	h.homed = h.homed || a > homedAbove
}

// homedAbove is an aperture that a hand which was not homed since it got power does not show.
const homedAbove = 5e-4 // m

func (r *Robot) onStateTwo(m *franka_msgs.FrankaRobotState, _ ros.Info) {
	f := m.OFExtHatK.Wrench.Force
	r.onStatus(status{
		mode: m.RobotMode, current: flags(m.CurrentErrors), last: flags(m.LastMotionErrors), rate: m.ControlCommandSuccessRate,
		force: math.Sqrt(f.X*f.X + f.Y*f.Y + f.Z*f.Z),
	})
}

func (r *Robot) onStateOne(m *franka_ros1_msgs.FrankaState, _ ros.Info) {
	f := m.OFExtHatK
	r.onStatus(status{
		mode: m.RobotMode, current: flags(m.CurrentErrors), last: flags(m.LastMotionErrors), rate: m.ControlCommandSuccessRate,
		force: math.Sqrt(f[0]*f[0] + f[1]*f[1] + f[2]*f[2]),
	})
}

func (r *Robot) onStatus(s status) {
	s.received = r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.status
	s.reflexes = slices.DeleteFunc(slices.Clone(was.reflexes), func(t time.Time) bool { return s.received.Sub(t) > time.Minute })
	if s.mode == modeReflex && (was.received.IsZero() || was.mode != modeReflex) {
		s.reflexes = append(s.reflexes, s.received)
	}
	s.latched = s.mode == modeReflex || s.mode == modeUserStop || was.latched && s.mode != modeMove
	if s.mode != was.mode || was.received.IsZero() {
		r.log.Info("robot mode", "from", modeName(was.mode), "to", modeName(s.mode), "errors", strings.Join(s.last, ", "))
	}
	if !finite(s.force) {
		s.force = 0
	}
	r.status = s
}

// flags are the names of the flags that are set in a message of flags.
func flags(m any) (out []string) {
	v := reflect.ValueOf(m)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Bool && f.Bool() {
			out = append(out, v.Type().Field(i).Tag.Get("json"))
		}
	}
	return out
}

// State is the newest reading.
func (r *Robot) State() robot.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	s := robot.State{
		Seq: r.joints.seq, Received: r.joints.received, Stamp: r.joints.stamp, Changed: r.joints.changed,
		Q: slices.Clone(r.joints.q), QD: slices.Clone(r.joints.qd), HasBase: true, Contact: r.status.force,
	}
	h := r.hand
	if h.known && now.Sub(h.received) < staleHand {
		s.Jaw = robot.Jaw{
			Known: true, Aperture: math.Max(0, h.aperture), Speed: h.speed, Open: h.open,
			Holding: !h.open && h.aperture > emptyBelow && now.Sub(h.changed) > handRest,
		}
		if now.Sub(h.changed) > handRest {
			s.Jaw.Speed = 0
		}
	}
	s.Mode, s.Fault = r.modeNow(now)
	return s
}

// modeNow is the mode with its words. It needs mu.
func (r *Robot) modeNow(now time.Time) (robot.Mode, string) {
	if c := r.linkDown(); c != nil {
		return robot.ModeUnknown, c.Error()
	}
	if r.status.received.IsZero() || now.Sub(r.status.received) > staleState || now.Sub(r.joints.received) > staleState {
		if r.facts.bad != "" {
			return robot.ModeUnknown, r.facts.bad
		}
		return robot.ModeUnknown, deadNode("nothing is heard of the robot's state").Error()
	}
	m, c := ofMode(&r.status, r.facts.active)
	if c == nil {
		if c = r.joints.doubtful(now); c != nil {
			m = robot.ModeFaulted
		}
	}
	switch {
	case c != nil && (c.Trouble != TroubleNotDriven || r.facts.complete):
		return m, c.Error()
	case !r.facts.complete:
		return robot.ModeUnknown, r.facts.words()
	case r.facts.bad != "":
		return robot.ModeFaulted, r.facts.bad
	case r.joints.lack != "":
		return robot.ModeFaulted, lackWords(r.joints.lack)
	case r.run != nil || r.gripping || r.tending:
		return robot.ModeMoving, ""
	case !r.joints.strange.IsZero() && now.Sub(r.joints.strange) > strangeAfter:
		return robot.ModeMoving, strangeWords
	}
	return robot.ModeReady, ""
}

const strangeWords = "the arm moves and not by our command: another program or a hand moves it; find it and stop it, nothing is taken from it by force"
