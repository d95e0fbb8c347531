package feetech

import (
	"fmt"
	"math"
)

// ticksPerTurn is what the servo's encoder counts in one turn of its shaft.
const ticksPerTurn = 4096

// maxTicks is the largest magnitude of a position.
const maxTicks = 1<<15 - 1

// Deadband is the slowest speed of a joint (rad/s) that a goal may have: less would come out as 0 ticks/s or near it, and
// 0 is "no limit" to the servo.
const Deadband = 0.005

// Joint is a servo's place in a robot.
type Joint struct {
	ID       byte
	Name     string  // stands in errors
	Gear     float64 // turns of the servo per turn of the joint
	Reversed bool    // the joint turns against the servo
	// Zero is how many ticks the joint's zero is from where homing found its hard stop.
	Zero int
	// Min and Max (rad) bound goals. Range gives them and Zero for a joint that homes to its lower stop.
	Min, Max float64
}

// Range is the joint with its limits, and with its zero as far from the lower stop, where homing ends, as the lower limit is.
func (j Joint) Range(lower, upper float64) Joint {
	j.Min, j.Max = lower, upper
	j.Zero = -int(math.Trunc(lower*ticksPerTurn/(2*math.Pi))*j.Gear) * j.polarity()
	return j
}

func (j Joint) polarity() int {
	if j.Reversed {
		return -1
	}
	return 1
}

// perRadian is how many ticks of the servo a radian of the joint is, with its sign.
func (j Joint) perRadian() float64 {
	return float64(j.polarity()) * ticksPerTurn * j.Gear / (2 * math.Pi)
}

// Radians is where the joint is (rad) when its servo is at t ticks and homing found the stop at offset ticks.
func (j Joint) Radians(t, offset int) float64 {
	return float64(t-j.Zero-offset) / j.perRadian()
}

// Ticks is the servo's position for a joint's (rad), to the nearest tick.
func (j Joint) Ticks(rad float64, offset int) int {
	return int(math.Round(rad*j.perRadian())) + j.Zero + offset
}

// Speed is a velocity of the servo (ticks/s) as the joint's (rad/s).
func (j Joint) Speed(ticks int) float64 { return float64(ticks) / j.perRadian() }

// Slowest is the least speed of a goal (rad/s): Deadband, or what one tick per second is if that is more.
func (j Joint) Slowest() float64 { return max(Deadband, 1/math.Abs(j.perRadian())) }

// Accels are the least and the greatest acceleration of a goal (rad/s²): the register counts 100 ticks/s², 1 to 254.
func (j Joint) Accels() (least, most float64) {
	return accelTicks / math.Abs(j.perRadian()), maxAccel * accelTicks / math.Abs(j.perRadian())
}

// accelTicks is one unit of the acceleration register (ticks/s²).
const accelTicks = 100

// Goal is where a joint is to go, and how fast at most.
type Goal struct {
	Position float64 // rad
	Speed    float64 // rad/s, above zero whichever way it goes
	Accel    float64 // rad/s²
}

// encode is a goal as the registers 41 to 47 take it. What would come out as a zero is refused and never rounded up: a
// joint that was to creep must not run, and one that creeps faster than it was told is not what was checked. Speed and
// acceleration are rounded down.
func (j Joint) encode(g Goal, offset int) ([]byte, error) {
	if !(g.Position >= j.Min && g.Position <= j.Max) {
		return nil, j.refuse("position %.4f rad is outside %.4f to %.4f rad", g.Position, j.Min, j.Max)
	}
	scale := math.Abs(j.perRadian())
	speed := math.Floor(g.Speed*scale + rounding)
	if !(g.Speed >= Deadband && speed >= 1 && speed <= maxTicks) {
		return nil, j.refuse("speed %.4f rad/s is outside %.4f to %.1f rad/s; a slower goal would reach the servo as 0, which it takes for no limit", g.Speed, j.Slowest(), maxTicks/scale)
	}
	accel := math.Floor(g.Accel*scale/accelTicks + rounding)
	if !(accel >= 1 && accel <= maxAccel) {
		least, most := j.Accels()
		return nil, j.refuse("acceleration %.4f rad/s² is outside %.4f to %.2f rad/s²; less would reach the servo as 0, which it takes for no limit", g.Accel, least, most)
	}
	t := j.Ticks(g.Position, offset)
	if t < -maxTicks || t > maxTicks {
		return nil, j.refuse("position %.4f rad is %d ticks from the servo's zero; it counts to %d", g.Position, t, maxTicks)
	}
	p, v := unsigned(t, 15), uint16(speed)
	return []byte{byte(accel), byte(p), byte(p >> 8), 0, 0, byte(v), byte(v >> 8)}, nil
}

// rounding lets a value through that is a whole number of ticks but for the last bits of its arithmetic.
const rounding = 1e-6

func (j Joint) refuse(format string, args ...any) error {
	return &Refused{ID: j.ID, Rule: j.Name + ": " + fmt.Sprintf(format, args...)}
}
