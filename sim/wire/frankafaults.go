package wire

import "time"

// Faults are how the robot's side misbehaves; each was seen on real robots.
type Faults struct {
	IgnoreCancel   bool          // a cancelled goal goes on to its end
	SuccessEarly   bool          // a goal succeeds at once, and the arm goes on
	StaleHand      bool          // the hand's last width is published with new stamps
	Recovery       time.Duration // how long a recovery takes; 0 is 0.4 s
	UserStop       bool          // the user stop is pressed
	SilentJoints   bool          // joint states cease
	NaNJoint       bool          // the fourth joint is no number
	Unhomed        bool          // the hand was not homed since power-up
	Rival          string        // another controller that has the joints
	DeadController bool          // the controller's process has died: its topics, services and actions are gone
	LossyNetwork   bool          // 43 % of the commands arrive: shown, and two seconds after each start the robot gives up
	LostPackets    bool          // packets of the next motion are lost, which looks like a discontinuity
	StuckHand      bool          // a call to the hand does not return for 100 s and hears no cancel; its stop ends it
	HandLost       bool          // results of the hand say "not connected", though it moves
	EarlyRecovery  bool          // a recovery without a fault waits, and clears the next one
	HealthyStop    bool          // after a user stop was released all looks well, and nothing moves
	NotStarted     bool          // the controller says that it is active, and the robot is idle
	LateReflex     bool          // mode and flags tell of a reflex 1.5 s late
	SlowClock      bool          // the robot's clock is 10 s behind
	Guiding        bool          // somebody leads the arm by hand
	Locked         bool          // the brakes are closed
}

// switches are the faults by name.
func (f *Faults) switches() []faultSwitch {
	flag := func(name string, b *bool) faultSwitch { return faultSwitch{name, func(on bool) { *b = on }} }
	return []faultSwitch{
		flag("ignore-cancel", &f.IgnoreCancel), flag("success-early", &f.SuccessEarly), flag("stale-hand", &f.StaleHand),
		{"slow-recovery", func(on bool) { f.Recovery = map[bool]time.Duration{true: 16 * time.Second}[on] }},
		flag("user-stop", &f.UserStop), flag("silent-joints", &f.SilentJoints), flag("nan-joint", &f.NaNJoint),
		flag("unhomed", &f.Unhomed),
		{"rival", func(on bool) { f.Rival = map[bool]string{true: "somebody_elses_controller"}[on] }},
		flag("dead-controller", &f.DeadController), flag("lossy-network", &f.LossyNetwork), flag("lost-packets", &f.LostPackets),
		flag("stuck-hand", &f.StuckHand), flag("hand-lost", &f.HandLost), flag("early-recovery", &f.EarlyRecovery),
		flag("healthy-stop", &f.HealthyStop), flag("not-started", &f.NotStarted), flag("late-reflex", &f.LateReflex),
		flag("slow-clock", &f.SlowClock), flag("guiding", &f.Guiding), flag("locked", &f.Locked),
	}
}

type faultSwitch struct {
	name string
	set  func(on bool)
}

// Switch turns the fault of that name on or off; false says that there is none.
func (f *Faults) Switch(name string, on bool) bool {
	for _, s := range f.switches() {
		if s.name == name {
			s.set(on)
			return true
		}
	}
	return false
}

// FaultNames are the names that Faults.Switch knows.
func FaultNames() []string {
	all := new(Faults).switches()
	out := make([]string, 0, len(all))
	for _, s := range all {
		out = append(out, s.name)
	}
	return out
}

// skew is how far the robot's clock is off.
func (f *Faults) skew() time.Duration {
	if f.SlowClock {
		return -10 * time.Second
	}
	return 0
}

// mode is what a hand on the robot makes of it.
func (f *Faults) mode() (forced bool, mode uint8) {
	switch {
	case f.Locked:
		return true, modeOther
	case f.UserStop:
		return true, modeStopped
	case f.Guiding:
		return true, modeGuiding
	}
	return false, modeIdle
}
