package stretch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"viad/drivers/robot"
)

const (
	offsetWarn   = 50 * time.Millisecond
	batteryLow   = 0.15
	guardSilence = 500 * time.Millisecond
)

// live are the facts that may change at any time. It needs mu.
func (r *Robot) live(now time.Time) []robot.Fact {
	s := &r.status
	var out []robot.Fact
	say := func(name, value, bad string) { out = append(out, robot.Fact{Name: name, Value: value, Bad: bad}) }
	if !r.resting(now) { // homing and stowing block the driver, and its readings with it
		r.liveReading(now, say)
	}
	r.liveMode(now, say)
	switch {
	case r.rehome:
		say("homed", "interrupted", "a runstop came while the robot homed, so that what it took for its ends is not to be believed: an operator lets it home again with the task \"home\"")
	case s.homed.v:
		say("homed", "yes", "")
	default:
		say("homed", "no", "the robot is not homed: clear what is around it, then an operator lets it home with the task \"home\"")
	}
	say("runstopped", map[bool]string{false: "no", true: "yes"}[s.runstopped.v], map[bool]string{true: runstopWords}[s.runstopped.v])
	r.liveOwner(now, say)
	if s.battery.known() {
		v, words := fmt.Sprintf("%.0f %%", s.battery.v*100), ""
		if s.battery.v > 0 && s.battery.v < batteryLow {
			v += ", low: charge it soon"
		}
		say("battery", v, words)
	}
	if r.offset.known { // nothing that is sent has a stamp, so that it bars nothing
		v := r.offset.least.Round(time.Millisecond).String()
		if r.offset.least.Abs() > offsetWarn {
			v += ": the clocks differ; look at chrony on both machines, since pictures and transforms are matched by stamps"
		}
		say("clock offset", v, "")
	}
	if r.known.generation == GenB {
		v, warn := r.guardWords(now)
		out = append(out, robot.Fact{Name: "base guard", Value: v, Warn: warn})
	}
	return out
}

func (r *Robot) liveReading(now time.Time, say func(name, value, bad string)) {
	age := r.reading.age(now).Round(10 * time.Millisecond)
	switch {
	case r.reading.q == nil:
		say("readings", "incomplete", "joint_states lack a joint of the arm or have one that is no number: look at the robot's servos; a lost one is reported so")
	case age > staleJoints+100*time.Millisecond:
		say("readings", "old", fmt.Sprintf("nothing new of the robot's joints or odometry for %v, limit %v: look at the network and at stretch_driver", age, staleJoints))
	case r.reading.doubtful(now) != "":
		say("readings", "contradictory", r.reading.doubtful(now))
	default:
		say("readings", "fresh", "")
	}
}

func (r *Robot) liveMode(now time.Time, say func(name, value, bad string)) {
	m, bad := r.status.mode, ""
	switch m.v {
	case modeTeleop, modeGamepad:
		bad = fmt.Sprintf("the robot is in mode %s, so somebody drives it by hand: nothing is taken from them; let them end it, then set the mode to %s", m.v, r.restMode())
	case modeHoming, modeStowing:
		if now.Sub(m.at) >= homingMost {
			bad = fmt.Sprintf("the robot has been %s for more than %v: look at it, press the runstop if it hangs, and restart stretch_driver", m.v, homingMost)
		}
	case modePosition, modeVelocity, modeNavigation, modeActive, modeRunstopped:
	default:
		bad = fmt.Sprintf("the robot's mode is %q, which is not known: set it to %s", m.v, r.restMode())
	}
	say("mode", m.v, bad)
}

func (r *Robot) restMode() string {
	if r.known.generation == GenB {
		return modeActive
	}
	return modeNavigation
}

// liveOwner tells who else drives the robot.
func (r *Robot) liveOwner(now time.Time, say func(name, value, bad string)) {
	s := &r.status
	if l := s.lease; l.known() {
		name, bad := strings.TrimSpace(l.v.holder), ""
		ours := name == "" || strings.EqualFold(name, "none") || l.v.expired ||
			slices.ContainsFunc(r.config.Holders, func(h string) bool { return strings.Contains(name, h) })
		if !ours {
			bad = fmt.Sprintf("%s holds the robot's body server, not the driver that is asked: end that program; it is not taken away by force", name)
		}
		say("lease", name, bad)
	}
	if !s.strange.IsZero() && now.Sub(s.strange) > strangeAfter {
		say("commander", "somebody else", "the robot moves and this daemon has not asked for it: end the other program, or wait until it is done")
	} else {
		say("commander", "this daemon alone", "")
	}
}

func (r *Robot) guarded(now time.Time) bool {
	return r.status.guard.known() && now.Sub(r.status.guard.at) < guardSilence
}

func (r *Robot) guardWords(now time.Time) (value, warn string) {
	switch {
	case r.guarded(now):
		return "heard", ""
	case r.config.BaseUnguarded:
		return "none, and the launch file allows it", "if this daemon dies while the base moves, this driver goes on for ever: stand by the runstop"
	}
	return "none", "the base does not move, since this driver would go on for ever if this daemon died: start the guard on the robot"
}
