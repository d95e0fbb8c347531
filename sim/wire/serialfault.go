package wire

import (
	"math/rand/v2"
	"sync"
	"time"
)

// SerialFaults are how the robot on its serial wires misbehaves, and what it is like. All can be changed while it runs, but
// for Stepper, Power, LongNames, Tool and Unhomed, which are how it starts.
type SerialFaults struct {
	Seed uint64 // of what happens by chance

	Stepper   string // protocol of the stepper boards: p7 or p8, "" is p8; another is one that nobody knows
	Power     string // protocol of the power board: p8 to p13, "" is p12
	LongNames bool   // the boards' firmware strings are the longer ones, in 30 bytes and not in 20
	Tool      string // "" is the parallel gripper (servo 24); the compliant one has servo 23
	Unhomed   bool   // no board and no servo is homed

	NoSync     bool // commands are not held until the power board's sync
	NoWatchdog bool // the boards let a velocity go on for ever

	DriverFault string // a stepper's port: its motor driver has a fault, and it is in SAFETY

	Tilt       bool // the base is tilted by 12 degrees, to the front
	LowBattery bool // 8 percent are left, and the power board engages the runstop

	DropReplies float64 // share of the servos' replies that never come
	Silent      byte    // a servo that does not answer; 0: none
	Frozen      byte    // a servo that repeats its last reading; 0: none
	Overload    byte    // a servo in its overload protection; 0: none

	Lines []LineFault
}

// LineFault is what happens to the bytes of one port. The shares are per byte.
type LineFault struct {
	Port                  string // as hello-motor-lift; "" is every port
	Flip, Duplicate, Drop float64
	Delay                 time.Duration // that an answer comes late
	Requests              bool          // also to bytes that the robot is sent, not only to its answers
}

// weather is what happens to the bytes of a port.
type weather struct {
	port   string
	faults func() SerialFaults
	mu     sync.Mutex
	seed   uint64
	dice   *rand.Rand
}

// clear lets chance begin anew, as a port does that is plugged again.
func (w *weather) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dice = nil
}

func (w *weather) in(b []byte) []byte {
	for _, l := range w.lines() {
		if l.Requests {
			b = w.spoil(l, b)
		}
	}
	return b
}

// out is what comes of an answer, and how late.
func (w *weather) out(b []byte) (late time.Duration, said []byte) {
	if len(b) == 0 {
		return 0, nil
	}
	for _, l := range w.lines() {
		b = w.spoil(l, b)
		late += l.Delay
	}
	return late, b
}

func (w *weather) lines() (mine []LineFault) {
	f := w.faults()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dice == nil || w.seed != f.Seed {
		w.seed, w.dice = f.Seed, rand.New(rand.NewPCG(f.Seed, checksumOf(w.port)))
	}
	for _, l := range f.Lines {
		if l.Port == "" || l.Port == w.port {
			mine = append(mine, l)
		}
	}
	return mine
}

func checksumOf(s string) uint64 { return uint64(checksum([]byte(s))) }

func (w *weather) spoil(l LineFault, b []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if w.dice.Float64() < l.Drop {
			continue
		}
		if w.dice.Float64() < l.Flip {
			c ^= 1 << w.dice.IntN(8)
		}
		out = append(out, c)
		if w.dice.Float64() < l.Duplicate {
			out = append(out, c)
		}
	}
	return out
}
