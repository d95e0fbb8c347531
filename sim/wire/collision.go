package wire

import (
	"math"
	"slices"
	"time"
)

// touch is what the control box takes for a contact (low) and for a collision (high): torques of the joints, and forces
// and torques on the hand.
type touch struct {
	torqueLow, torqueHigh [7]float64
	forceLow, forceHigh   [6]float64
}

// build is what an FR3 and a Panda differ in.
type build struct {
	one       bool // franka_ros, on ROS 1
	fast      fastest
	low, high [7]float64 // rad
	acc       [7]float64 // rad/s^2 that commands may ask for
	jerk      [7]float64 // rad/s^3
	touch     touch
	goal      float64 // rad: the trajectory controller's own tolerance; 0 is none
	late      time.Duration
}

func buildFR3() build {
	b := build{
		fast: fastFR3,
		low:  [7]float64{-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159},
		high: [7]float64{2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159},
		// What the robot itself begins with is not known; these are of Franka's own examples.
		touch: touch{
			[7]float64{25, 25, 22, 20, 19, 17, 14},
			[7]float64{35, 35, 32, 30, 29, 27, 24},
			[6]float64{30, 30, 30, 25, 25, 25},
			[6]float64{40, 40, 40, 35, 35, 35},
		},
	}
	for j := range b.acc {
		b.acc[j], b.jerk[j] = 10, 5000
	}
	return b
}

func buildPanda() build {
	t, f := [7]float64{20, 20, 18, 18, 16, 14, 12}, [6]float64{20, 20, 20, 25, 25, 25} // franka_control_node.yaml
	return build{
		one: true, fast: fastPanda,
		low:   [7]float64{-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973},
		high:  [7]float64{2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973},
		acc:   [7]float64{15, 7.5, 10, 12.5, 15, 20, 20},
		jerk:  [7]float64{7500, 3750, 5000, 6250, 7500, 10000, 10000},
		touch: touch{t, t, f, f},
		goal:  0.05, late: 500 * time.Millisecond,
	}
}

// cycle is the control box's own period, in which a command may change by so much. The stock controllers do not pass
// commands on as they are: on an FR3 they make torques of them, on a Panda a limiter takes the edges off. So only what is
// soft times beyond the limits trips.
const (
	cycle = 1e-3
	soft  = 4.0
)

// rough says which rule of the control box the next command breaks; "" is none. It sees positions and judges what they
// make of speed and acceleration.
func (a *arm) rough(next knot, dt float64) string {
	for j, q := range next.q {
		v := (q - a.want.q[j]) / dt
		acc := (v - a.cmdV[j]) / dt
		switch {
		case q < a.build.low[j] || q > a.build.high[j]:
			return flagRange
		case math.Abs(acc) > soft*a.build.acc[j]:
			return flagJolt
		case math.Abs(acc-a.cmdA[j]) > soft*a.build.jerk[j]*cycle:
			return flagJerk
		}
	}
	return ""
}

// feel makes of the force on the hand what the joints feel. The twin tells how large it is and not where it points: it
// counts as upwards, as of a table.
func (a *arm) feel() {
	a.tau = [7]float64{}
	if a.force > 1 && len(a.q) == len(a.tau) {
		for j, c := range jacobian([7]float64(a.q)) {
			a.tau[j] = c.Z * a.force
		}
	}
}

// thresholds are others while the arm accelerates.
func (a *arm) thresholds() touch {
	if slices.ContainsFunc(a.want.a, func(x float64) bool { return math.Abs(x) > 0.1 }) {
		return a.touch[1]
	}
	return a.touch[0]
}

// collides is the flag of a collision, or "".
func (a *arm) collides() string {
	t := a.thresholds()
	if a.force > slices.Min(t.forceHigh[:3]) {
		return flagForce
	}
	for j, most := range t.torqueHigh {
		if math.Abs(a.tau[j]) > most {
			return flagTorque
		}
	}
	return ""
}

// touches says what the state shows of contacts and collisions: of the hand, and of each joint.
func (a *arm) touches() (contact, collision bool, joints, hits [7]float64) {
	t := a.thresholds()
	contact, collision = a.force > slices.Min(t.forceLow[:3]), a.force > slices.Min(t.forceHigh[:3])
	for j, x := range a.tau {
		if math.Abs(x) > t.torqueLow[j] {
			joints[j] = 1
		}
		if math.Abs(x) > t.torqueHigh[j] {
			hits[j] = 1
		}
	}
	return contact, collision, joints, hits
}
