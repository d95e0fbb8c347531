package feetech

import "fmt"

// Registers of a servo. Those below 40 outlive a power cut and are only read.
const (
	regModel       = 3
	regMode        = 33
	regTorque      = 40 // the switch; goals begin at the next
	regGoal        = 41 // acceleration, position (2), PWM (2), speed (2)
	regFlags       = 50 // one bit: the offset is valid. Lost with the power
	regOffset      = 52
	regPosition    = 56
	regVelocity    = 58
	regLoad        = 60
	regVoltage     = 62
	regTemperature = 63
	regFault       = 65
	regMoving      = 66
	regCurrent     = 69

	regLast = 70
)

// goalBytes is how long a goal is: a shorter one could leave an older speed in force, or none.
const goalBytes = 7

// allowed is the rule of what may be written.
func allowed(id, reg byte, data []byte) error {
	switch {
	case id >= broadcast:
		return &Refused{ID: id, Rule: "no servo has this id; every servo would obey"}
	case reg == regTorque && len(data) == 1 && data[0] <= 1:
		return nil
	case reg == regGoal && len(data) == goalBytes:
		return goalAllowed(id, data)
	}
	return &Refused{ID: id, Rule: fmt.Sprintf("%d bytes are not written to register %d: only the torque switch (40: 0 or 1) and a whole goal (41 to 47) are", len(data), reg)}
}

// goalAllowed keeps zeros that mean "no limit" off the bus.
func goalAllowed(id byte, data []byte) error {
	speed := word(data[5:])
	switch {
	case data[0] == 0:
		return &Refused{ID: id, Rule: "a goal with acceleration 0 would move without a limit of acceleration"}
	case data[0] > maxAccel:
		return &Refused{ID: id, Rule: fmt.Sprintf("a goal's acceleration is at most %d, not %d", maxAccel, data[0])}
	case speed == 0 || speed&(1<<15) != 0:
		return &Refused{ID: id, Rule: fmt.Sprintf("a goal with speed %#04x would move without a limit of speed", speed)}
	case data[3] != 0 || data[4] != 0:
		return &Refused{ID: id, Rule: "a goal of a position has no PWM in it"}
	}
	return nil
}

// maxAccel is the largest acceleration that the register takes.
const maxAccel = 254

// word is a little-endian number.
func word(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }

// signed reads sign and magnitude, with the sign in the given bit.
func signed(w uint16, bit int) int {
	sign := uint16(1) << bit
	if w&sign != 0 {
		return -int(w &^ sign & (sign - 1))
	}
	return int(w & (sign - 1))
}

// unsigned is what signed reads, for |v| below the sign bit.
func unsigned(v, bit int) uint16 {
	if v < 0 {
		return uint16(-v) | 1<<bit
	}
	return uint16(v)
}
