package ros1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/msgs/actionlib_msgs"

	"viad/ros"
	"viad/ros/msg"
)

// actionlib is five topics below the action's name. goroslib's own client and server of it are not used: they cannot tell
// whether the server is still there, know no context, give the goal the clock of the client's machine, and name the
// types of the topics "goroslib/Msg".

// The states of a goal on the wire.
const (
	pending    = actionlib_msgs.GoalStatus_PENDING
	active     = actionlib_msgs.GoalStatus_ACTIVE
	preempted  = actionlib_msgs.GoalStatus_PREEMPTED
	succeeded  = actionlib_msgs.GoalStatus_SUCCEEDED
	aborted    = actionlib_msgs.GoalStatus_ABORTED
	rejected   = actionlib_msgs.GoalStatus_REJECTED
	preempting = actionlib_msgs.GoalStatus_PREEMPTING
	recalling  = actionlib_msgs.GoalStatus_RECALLING
	recalled   = actionlib_msgs.GoalStatus_RECALLED
	lost       = actionlib_msgs.GoalStatus_LOST
)

// meaning is what a state on the wire is in ROS 2. A rejected goal has none there: Send returns a *ros.Rejected; a
// lost one neither: Result returns a *ros.Gone.
func meaning(wire uint8) ros.GoalStatus {
	switch wire {
	case active:
		return ros.GoalExecuting
	case preempting, recalling:
		return ros.GoalCanceling
	case preempted, recalled:
		return ros.GoalCanceled
	case succeeded:
		return ros.GoalSucceeded
	case aborted, rejected:
		return ros.GoalAborted
	default: // pending, lost
		return ros.GoalUnknown
	}
}

func terminal(wire uint8) bool {
	switch wire {
	case preempted, succeeded, aborted, rejected, recalled, lost:
		return true
	default:
		return false
	}
}

// rosTime is a time on the wire.
type rosTime struct{ sec, nsec uint32 }

func now() rosTime {
	t := time.Now()
	return rosTime{uint32(t.Unix()), uint32(t.Nanosecond())}
}

func (t rosTime) zero() bool { return t == rosTime{} }

func (t rosTime) after(u rosTime) bool { return t.sec > u.sec || t.sec == u.sec && t.nsec > u.nsec }

func (r *reader) time() rosTime { return rosTime{uint32(r.uint(4)), uint32(r.uint(4))} }

func putTime(b []byte, t rosTime) []byte {
	return putUint(putUint(b, 4, uint64(t.sec)), 4, uint64(t.nsec))
}

// goalState is actionlib_msgs/GoalStatus.
type goalState struct {
	stamp  rosTime
	id     string
	status uint8
	text   string
}

func (r *reader) header() {
	r.uint(4)
	r.time()
	r.text()
}

func putHeader(b []byte) []byte { return putText(putTime(putUint(b, 4, 0), now()), "") }

func (r *reader) goalID() (stamp rosTime, id string) {
	stamp = r.time()
	return stamp, r.text()
}

func putGoalID(b []byte, stamp rosTime, id string) []byte { return putText(putTime(b, stamp), id) }

func (r *reader) goalState() goalState {
	var s goalState
	s.stamp, s.id = r.goalID()
	s.status = uint8(r.uint(1))
	s.text = r.text()
	return s
}

func putGoalState(b []byte, s goalState) []byte {
	return putText(append(putGoalID(b, s.stamp, s.id), s.status), s.text)
}

// goalStates reads actionlib_msgs/GoalStatusArray.
func goalStates(b []byte) ([]goalState, error) {
	r := &reader{b: b}
	r.header()
	out := make([]goalState, r.count(17))
	for i := range out {
		out[i] = r.goalState()
	}
	return out, r.err
}

// goalID is ours for an id on the wire: the one that a client like this wrote, or a hash of what another wrote.
func goalID(id string) (g ros.GoalID) {
	if n := len(id) - 2*len(g); n > 0 && id[n-1] == '-' {
		if b, err := hex.DecodeString(id[n:]); err == nil {
			copy(g[:], b)
			return g
		}
	}
	h := sha256.Sum256([]byte(id))
	copy(g[:], h[:])
	return g
}

// actionTopics are the names and the types of an action's topics.
type actionTopics struct {
	name                                   string
	goal, cancel, status, feedback, result signature
}

func (n *Node) actionTopics(a ros.Action) (actionTopics, error) {
	t := actionTopics{name: a.Name}
	if err := checkName(a.Name); err != nil {
		return t, err
	}
	var whole part
	for i, m := range []func() msg.Message{a.Goal, a.Result, a.Feedback} {
		p, _, err := n.types.of(m())
		if err != nil {
			return t, err
		}
		if i > 0 && p.whole != whole.whole {
			return t, fmt.Errorf("%s: its parts are of %s and of %s", a.Name, rosName(whole.whole), rosName(p.whole))
		}
		whole = p
	}
	var err error
	if t.goal, t.result, t.feedback, err = whole.action(); err != nil {
		return t, err
	}
	if t.cancel, err = sign("actionlib_msgs/GoalID", actionlib_msgs.GoalID{}); err != nil {
		return t, err
	}
	t.status, err = sign("actionlib_msgs/GoalStatusArray", actionlib_msgs.GoalStatusArray{})
	return t, err
}

// closeAll closes what there is of a half made thing or of a whole one.
func closeAll(all ...ros.Closer) {
	for _, c := range all {
		switch v := c.(type) { // a typed nil is what was not made
		case *outlet:
			if v != nil {
				_ = v.Close() // it never fails
			}
		case *subscription:
			if v != nil {
				_ = v.Close()
			}
		}
	}
}
