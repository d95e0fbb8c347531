package wire

import (
	"math"
	"time"

	"viad/sim"
)

// handMost is the Franka hand's opening in metres.
const handMost = 0.08

// hand is the gripper: one blocking motion at a time, as its library has it.
type hand struct {
	homed  bool
	width  float64 // measured
	target float64
	speed  float64
	since  time.Time
	rest   int        // steps at rest
	moving chan error // capacity 1; nil when it does not move
	shown  float64    // what is published
}

func (h *hand) start(width float64) { h.width, h.target, h.shown = width, width, width }

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

// go to a width; what ran before is stopped.
func (h *hand) move(to, speed float64, now time.Time) <-chan error {
	h.stop()
	h.target, h.speed, h.since, h.rest = to, speed, now, 0
	h.moving = make(chan error, 1)
	return h.moving
}

func (h *hand) stop() {
	if h.moving != nil {
		h.moving <- errStopped
		h.moving = nil
		h.target = h.width
	}
}
