package bus

import (
	"fmt"
	"slices"
	"time"

	"viad/drivers/feetech"
	"viad/drivers/hello"
	"viad/drivers/robot"
)

// Facts are what was found out about every port, and what is watched since.
func (r *Robot) Facts() []robot.Fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []robot.Fact
	for _, l := range r.links {
		f := robot.Fact{Name: l.name, Value: "not open", Bad: l.why}
		switch {
		case l.up:
			f.Value = l.path
		case l.why == "":
			f.Bad = "it is being opened: wait"
		}
		list = append(list, f)
	}
	if r.runstopped() {
		list = append(list, robot.Fact{Name: "runstop", Value: "on", Bad: r.runstopWords()})
	} else if r.links[powerLink].up {
		list = append(list, robot.Fact{Name: "runstop", Value: "off"})
	}
	return append(list, r.live(r.clock.Now())...)
}

// bad is the words of the first bad fact of those that are watched, empty when all are well. It needs mu.
func (r *Robot) bad(now time.Time) string {
	live := r.live(now)
	i := slices.IndexFunc(live, func(f robot.Fact) bool { return f.Bad != "" })
	if i < 0 {
		return ""
	}
	return live[i].Bad
}

const homeWords = "is not homed since it was switched on: stop this daemon, clear everything within the arm's reach and home the robot with its own tool (stretch_robot_home), then start this daemon again"

// live are the facts that are watched. It needs mu.
func (r *Robot) live(now time.Time) []robot.Fact {
	var f []robot.Fact
	for i := range r.axes {
		if r.links[i].up {
			f = append(f, r.axes[i].facts(now)...)
		}
	}
	if r.links[powerLink].up {
		f = append(f, r.power.facts(now)...)
	}
	if r.links[wristLink].up {
		f = append(f, r.wrist.facts(now)...)
	}
	if !r.strange.IsZero() && now.Sub(r.strange) > strangeTime {
		f = append(f, robot.Fact{Name: "at rest", Value: "it moves", Bad: "the robot moves although nothing was asked of it: somebody pushes it, or something gives way; wait until it stands still"})
	}
	return f
}

// age is a bad fact of a reading that is too old.
func age(who string, at, now time.Time, most time.Duration) string {
	if d := now.Sub(at); d > most {
		return fmt.Sprintf("%s has not been read for %v, limit %v: look at its cable", who, d.Round(10*time.Millisecond), most)
	}
	return ""
}

func counted(c hello.Counters) string {
	return fmt.Sprintf("%d calls, %d without an answer, %d with a wrong check, %d answers to something else, %d late", c.Calls, c.Timeouts, c.CRC, c.Strange, c.Late)
}

// facts of one stepper. It needs mu.
func (a *axis) facts(now time.Time) []robot.Fact {
	name, s := a.units.name, a.status
	list := []robot.Fact{
		{Name: name + " firmware", Value: fmt.Sprintf("%s on %s", a.info.Firmware, a.info.Variant)},
		{Name: name + " control", Value: s.Mode.String(), Bad: age("the "+name, a.seen.at, now, staleGoing+a.r.config.Patience)},
	}
	if a.board != nil {
		list = append(list, robot.Fact{Name: name + " line", Value: counted(a.board.Counters())})
	}
	if a.units.metre != 0 {
		homed := robot.Fact{Name: name + " homed", Value: yes(s.Diag.Has(hello.DiagHomed))}
		if !s.Diag.Has(hello.DiagHomed) {
			homed.Bad = "the " + name + " " + homeWords
		}
		list = append(list, homed)
	} else {
		list = append(list, robot.Fact{Name: name + " watchdog", Value: onOff(a.flash.Has(hello.ConfigWatchdog))})
	}
	list = append(list, robot.Fact{Name: name + " sync mode", Value: onOff(s.Diag.Has(hello.DiagSyncMode))})
	if s.Diag.Has(hello.DiagDriverFault) {
		list = append(list, robot.Fact{Name: name + " motor driver", Value: "fault", Bad: fmt.Sprintf("the motor driver of the %s reports a fault: switch the robot off and on, and look at the motor's cable", name)})
	}
	return list
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// facts of the power board. It needs mu.
func (p *power) facts(now time.Time) []robot.Fact {
	s := p.status
	list := []robot.Fact{
		{Name: "power firmware", Value: fmt.Sprintf("%s on %s", p.info.Firmware, p.info.Variant), Bad: age("the power board", p.at, now, stalePower+p.r.config.Patience)},
		{Name: "battery", Value: fmt.Sprintf("%d %%, %.1f V, %.1f A", s.Charge, s.Voltage, s.Current)},
	}
	if p.board != nil {
		list = append(list, robot.Fact{Name: "power line", Value: counted(p.board.Counters())})
	}
	for _, x := range []struct {
		bit        hello.PowerState
		name, says string
	}{
		{hello.PowerLowCharge, "battery charge", "the battery is nearly empty: charge it"},
		{hello.PowerTilted, "tilt", "the robot stands askew: look under its wheels before it moves"},
		{hello.PowerHandCurrent, "current of the end of the arm", "the end of the arm draws too much current, and its power may be cut: look what holds wrist or gripper, then switch the robot off and on"},
	} {
		if s.State.Has(x.bit) {
			list = append(list, robot.Fact{Name: x.name, Value: "alert", Bad: x.says})
		}
	}
	return list
}

// facts of the servos. It needs mu.
func (w *wrist) facts(now time.Time) []robot.Fact {
	c := w.counts
	list := append(make([]robot.Fact, 0, 2+servos),
		robot.Fact{Name: "tool", Value: w.grip.tool},
		robot.Fact{Name: "servo line", Value: fmt.Sprintf("%d questions, %d without an answer, %d with a wrong sum, %d answers to something else", c.Asked, c.Timeouts, c.BadSums, c.Resyncs+c.Strays)})
	for i := range w.each {
		s := &w.each[i]
		r := s.reading
		f := robot.Fact{Name: s.joint.Name, Value: fmt.Sprintf("homed %s, torque %s, %.0f degrees Celsius, %.1f V", yes(r.Calibrated), onOff(r.Torque), r.Celsius, r.Voltage)}
		switch {
		case now.Sub(s.seen.at) > staleGoing+w.r.config.Patience:
			f.Bad = age("the servo of "+s.joint.Name, s.seen.at, now, staleGoing+w.r.config.Patience)
			if s.missed != "" {
				f.Bad += " (" + s.missed + ")"
			}
		case r.Fault != 0:
			f.Bad = s.joint.Name + ": " + (&feetech.Faulted{ID: s.joint.ID, Fault: r.Fault}).Error()
		case !r.Calibrated:
			f.Bad = s.joint.Name + " " + homeWords
		case r.Mode != feetech.ModePosition:
			f.Bad = fmt.Sprintf("the servo of %s is in mode %d, in which it does not go to positions: another program left it so; home the robot with its own tool", s.joint.Name, r.Mode)
		}
		list = append(list, f)
	}
	return list
}
