package feetech

import (
	"fmt"
	"strings"
	"time"
)

// Fault are the fault bits of a servo: register 65, and the status byte of every answer.
type Fault byte

// The bits of a Fault.
const (
	FaultVoltage  Fault = 1
	FaultSensor   Fault = 2
	FaultHeat     Fault = 4
	FaultCurrent  Fault = 8
	FaultOverload Fault = 32
)

// String names every bit that is set; empty when none is.
func (f Fault) String() string {
	var words []string
	for bit := Fault(1); bit != 0; bit <<= 1 {
		if f&bit == 0 {
			continue
		}
		switch bit {
		case FaultVoltage:
			words = append(words, "supply voltage out of range")
		case FaultSensor:
			words = append(words, "angle sensor")
		case FaultHeat:
			words = append(words, "too hot")
		case FaultCurrent:
			words = append(words, "too much current")
		case FaultOverload:
			words = append(words, "overload")
		default:
			words = append(words, fmt.Sprintf("unknown bit %d", byte(bit)))
		}
	}
	return strings.Join(words, ", ")
}

// Faulted says that a servo answered and reports a fault of its own. It may have gone limp.
type Faulted struct {
	ID    byte
	Fault Fault
}

func (e *Faulted) Error() string {
	return fmt.Sprintf("servo %d reports %s: look at the joint, let it cool or free it, and have an operator restart the servo", e.ID, e.Fault)
}

// NoReply says that a servo did not answer, or not in a way that can be believed.
type NoReply struct {
	ID      byte
	Tries   int
	Within  time.Duration // of each try
	Garbled bool          // something came, but no answer to this
}

func (e *NoReply) Error() string {
	what := "does not answer"
	if e.Garbled {
		what = "is not understood: what comes over the bus is disturbed"
	}
	return fmt.Sprintf("servo %d %s (%s of %s): check its cable, its power and that nothing else drives the bus", e.ID, what, times(e.Tries), e.Within)
}

func times(n int) string {
	if n == 1 {
		return "1 try"
	}
	return fmt.Sprintf("%d tries", n)
}

// NotWritten says that a register does not hold what was written; it was read back.
type NotWritten struct {
	ID, Reg   byte
	Want, Got []byte
}

func (e *NotWritten) Error() string {
	return fmt.Sprintf("servo %d did not take what was written to register %d (% x; it holds % x): nothing was repeated; read the joint before it is asked again", e.ID, e.Reg, e.Want, e.Got)
}

// Unverified says that the answer to a write was lost and reading back failed too: whether the servo obeys the new value
// or the one before is not known.
type Unverified struct {
	ID, Reg byte
	Err     error // of the reading back
}

func (e *Unverified) Error() string {
	return fmt.Sprintf("it is not known whether servo %d took what was written to register %d: %v", e.ID, e.Reg, e.Err)
}

func (e *Unverified) Unwrap() error { return e.Err }

// Unsure says that two readings of a servo, one right after the other, contradict each other.
type Unsure struct {
	ID   byte
	What string
}

func (e *Unsure) Error() string {
	return fmt.Sprintf("servo %d gave two readings that contradict each other (%s): the bus is disturbed; check its cable", e.ID, e.What)
}

// Refused says that a value was not sent, and which rule forbids it.
type Refused struct {
	ID   byte
	Rule string // a sentence with the value and the limit
}

func (e *Refused) Error() string { return fmt.Sprintf("servo %d: %s", e.ID, e.Rule) }
