package wire

import (
	"errors"
	"math"
	"strings"

	"viad/ros"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/sensor_msgs"
)

// deadband of generation B: a servo's speed that small would be written as 0, which means no limit.
const deadband = 0.005

func cutJointMode(name string) (string, bool) { return strings.CutPrefix(name, "joint_mode.") }

// listen takes the topics of commands. None is read with a time-out, in no generation.
func (w *Stretch) listen() error {
	drop := func(s ros.Subscription, err error) error { return w.keep(s, err) }
	err := drop(ros.Subscribe(w.node, "/cmd_vel", ros.Default(), func(m *geometry_msgs.Twist, _ ros.Info) {
		if w.in(modeNavigation, modeVelocity, modeActive) && !w.deaf() {
			w.body.velocity(m.Linear.X, m.Linear.Y, m.Angular.Z)
		}
	}))
	if w.gen == GenerationB {
		return errors.Join(err,
			drop(ros.Subscribe(w.node, "/joint_position_cmd", ros.Default(), func(m *sensor_msgs.JointState, _ ros.Info) { w.goTo(m) })),
			drop(ros.Subscribe(w.node, "/joint_velocity_cmd", ros.Default(), func(m *sensor_msgs.JointState, _ ros.Info) { w.goWith(m) })))
	}
	return errors.Join(err, drop(ros.Subscribe(w.node, "/joint_vel", ros.Default(), func(m *control_msgs.JointJog, _ ros.Info) { w.nudge(m) })))
}

// ready: the joint is in this mode of its own and the driver in its.
func (w *Stretch) ready(joint, mode string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.present() == modeActive && w.each[joint] == mode && !w.unhomed
}

// goTo is joint_position_cmd: what is out of range is dropped.
func (w *Stretch) goTo(m *sensor_msgs.JointState) {
	for i := range min(len(m.Name), len(m.Position)) {
		n, x := w.alias(m.Name[i]), m.Position[i]
		if !w.ready(n, modePosition) || w.deaf() {
			continue
		}
		j, known := w.joint(n)
		w.body.mu.Lock()
		switch {
		case known && !outside(j, x):
			g := &w.body.joint[j]
			g.aim(math.Max(g.lo, math.Min(g.hi, x)))
		case isJaw(n):
			w.body.jaw = w.aperture(x)
		}
		w.body.mu.Unlock()
	}
}

// goWith is joint_velocity_cmd: the driver repeats it every 0.2 s for ever.
func (w *Stretch) goWith(m *sensor_msgs.JointState) {
	for i := range min(len(m.Name), len(m.Velocity)) {
		j, known := w.joint(m.Name[i])
		if !known || !w.ready(m.Name[i], modeVelocity) || w.deaf() {
			continue
		}
		v := m.Velocity[i]
		if !(math.Abs(v) >= deadband) {
			v = 0
		}
		w.body.mu.Lock()
		w.body.joint[j].turn(v, w.body.now)
		w.body.mu.Unlock()
	}
}

// nudge is joint_vel of generations A and A': lift and arm move with a velocity, which the steppers' watchdog ends; the
// wrist takes the number as a way to go, and the gripper three hundred times the number as a goal.
func (w *Stretch) nudge(m *control_msgs.JointJog) {
	if !w.in(modeVelocity) && (w.gen != GenerationAPrime || !w.in(modeNavigation)) || w.deaf() {
		return
	}
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	for i := range min(len(m.JointNames), len(m.Velocities)) {
		x := m.Velocities[i]
		j, known := w.joint(m.JointNames[i])
		switch {
		case !(math.Abs(x) < 1e6): // no number
		case known && j <= arm5:
			w.body.joint[j].turn(x, w.body.now)
		case known:
			g := &w.body.joint[j]
			g.aim(math.Max(g.lo, math.Min(g.hi, g.target+x)))
		case isJaw(m.JointNames[i]) && w.gen == GenerationA && w.tool == toolCompliant:
			w.body.jaw = w.aperture(fullPercent * x)
		case isJaw(m.JointNames[i]):
			w.body.jaw = w.aperture(x)
		}
	}
}
