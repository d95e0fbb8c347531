package ros

import "fmt"

// Gone says that the other side went away while it was waited for.
type Gone struct {
	What string // "service /runstop", "action /follow_joint_trajectory"
	Why  string
}

func (e *Gone) Error() string {
	return fmt.Sprintf("%s went away before it answered (%s): whether it acted is not known, read the state again", e.What, e.Why)
}

// Absent says that nobody serves what was asked for.
type Absent struct {
	What string
	Why  string // what was seen instead, and what to check
}

func (e *Absent) Error() string { return fmt.Sprintf("nobody serves %s: %s", e.What, e.Why) }

// Rejected says that an action server refused a goal.
type Rejected struct {
	Action string
	Why    string // the server's words, where the wire has any
}

func (e *Rejected) Error() string {
	if e.Why == "" {
		return fmt.Sprintf("the server of %s refused the goal; it gives no reason on this wire", e.Action)
	}
	return fmt.Sprintf("the server of %s refused the goal: %s", e.Action, e.Why)
}

// Unsupported says that this wire cannot do what was asked.
type Unsupported struct {
	Wire, What, Instead string
}

func (e *Unsupported) Error() string {
	return fmt.Sprintf("%s is not possible over %s; %s", e.What, e.Wire, e.Instead)
}
