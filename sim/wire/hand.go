package wire

import (
	"math"
	"time"

	"viad/sim"
)

// The Franka hand: its opening in metres, and what its server takes for granted.
const (
	handMost  = 0.08
	handSpeed = 0.1   // m/s, the server's default
	handNear  = 0.005 // m, the server's default epsilon
)

// hand is the gripper: one motion at a time, as its library has it.
type hand struct {
	homed  bool
	width  float64 // measured
	target float64
	speed  float64
	since  time.Time
	rest   int           // steps at rest
	moving chan error    // capacity 1; nil when it does not move
	halted chan struct{} // closed by the next stop
	shown  float64       // what is published
}

func (h *hand) start(width float64) {
	if h.moving != nil {
		h.moving <- errStopped
		h.moving = nil
	}
	h.width, h.target, h.shown = width, width, width
}

// step is one physics step of the hand.
func (h *hand) step(width, speed float64, now time.Time) sim.JawDrive {
	h.width = width
	if h.since.IsZero() {
		h.since = now
	}
	if math.Abs(speed) < 0.002 {
		h.rest++
	} else {
		h.rest = 0
	}
	if h.moving != nil && now.Sub(h.since) > 100*time.Millisecond && h.rest > 50 {
		h.moving <- nil
		h.moving = nil
	}
	return sim.JawDrive{Aperture: h.target, Speed: math.Max(h.speed, 0.01)}
}

// move goes to a width. Nothing else moves it meanwhile.
func (h *hand) move(to, speed float64, now time.Time) (done <-chan error, halted <-chan struct{}) {
	h.target, h.speed, h.since, h.rest = to, speed, now, 0
	h.moving = make(chan error, 1)
	return h.moving, h.halted
}

func (h *hand) stop() {
	close(h.halted)
	h.halted = make(chan struct{})
	if h.moving != nil {
		h.moving <- errStopped
		h.moving = nil
		h.target = h.width
	}
}
