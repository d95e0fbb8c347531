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
	acc       [7]float64 // rad/s^2 that its limiter lets through; 0: it has none
	touch     touch
	goal      float64 // rad: the trajectory controller's own tolerance; 0 is none
	late      time.Duration
}

func buildFR3() build {
	return build{
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
}

func buildPanda() build {
	t, f := [7]float64{20, 20, 18, 18, 16, 14, 12}, [6]float64{20, 20, 20, 25, 25, 25} // franka_control_node.yaml
	return build{
		one: true, fast: fastPanda,
		low:   [7]float64{-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973},
		high:  [7]float64{2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973},
		acc:   [7]float64{15, 7.5, 10, 12.5, 15, 20, 20},
		touch: touch{t, t, f, f},
		goal:  0.05, late: 500 * time.Millisecond,
	}
}

// What the next command may jump by. The control box's own limits (10 rad/s^2, 5 rad/s^2 within its millisecond) are for
// commands that reach it as they are. Those of the stock controller of an FR3 become torques: what is steep passes, and a
// jump trips. On a Panda a limiter takes the edges off.
const (
	joltMost = 60.0 // rad/s^2
	jerkMost = 25.0 // rad/s^2 from one step to the next
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
		case a.build.acc[j] > 0:
		case math.Abs(acc) > joltMost:
			return flagJolt
		case math.Abs(acc-a.cmdA[j]) > jerkMost:
			return flagJerk
		}
	}
	return ""
}

// limited is the next command as franka_ros' limiter passes it on: no joint accelerates more than it may, and what lags
// behind catches up, no faster than it can brake.
func (a *arm) limited(next knot, dt float64) knot {
	out := knot{q: slices.Clone(next.q), v: slices.Clone(next.v), a: slices.Clone(next.a)}
	for j, most := range a.build.acc[:len(next.q)] {
		v := (next.q[j] - a.want.q[j]) / dt
		if most == 0 || math.Abs(v-a.cmdV[j]) <= most*dt {
			continue
		}
		lag := next.q[j] - a.want.q[j] - next.v[j]*dt
		v = next.v[j] + math.Copysign(math.Sqrt(most*math.Abs(lag)), lag)
		v = a.cmdV[j] + math.Max(-most*dt, math.Min(most*dt, v-a.cmdV[j]))
		out.q[j], out.v[j], out.a[j] = a.want.q[j]+v*dt, v, (v-a.cmdV[j])/dt
	}
	return out
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
