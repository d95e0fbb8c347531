package stage

import (
	"math"
	"time"

	"viad/drivers/robot"
)

// jawSlack is how far in metres a jaw may rest from fully open or closed and still count as there.
const jawSlack = 0.01

// between says that a jaw rests neither open nor closed nor on an object: a command was cut short, by a stop or by
// what was in its way. It is still said to be in the state before, and asking for that state is then no empty wish.
func (s *Stage) between(j robot.Jaw) bool {
	switch {
	case !j.Known || j.Holding:
		return false
	case j.Open:
		return j.Aperture < s.model.Jaw.Max-jawSlack
	}
	return j.Aperture > s.model.Jaw.Min+jawSlack
}

// jawMoves says whether a waypoint to w moves the jaw: to another state, or, when it was asked for, all the way to
// the state that a jaw halfway is said to be in.
func (s *Stage) jawMoves(w staged, l live) bool {
	return w.open != l.real.Open || w.jaw && s.between(l.state.Jaw)
}

// jawTime is how long the jaw takes, from where it is.
func (s *Stage) jawTime(wp robot.Waypoint, l live) time.Duration {
	j := s.model.Jaw
	if (wp.Kind != robot.KindJaw && wp.Kind != robot.KindPoseJaw) || !(j.Speed > 0) {
		return 0
	}
	to := j.Min
	if wp.Jaw.Open {
		to = j.Max
	}
	return time.Duration(math.Abs(to-l.state.Jaw.Aperture) / j.Speed * float64(time.Second))
}

func jaw(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}
