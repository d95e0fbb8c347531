package dds

import (
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
)

// The services and topics of an action have types that wrap its three parts. They are written here once for all
// actions; the type's hash, which differs for each, is not announced, which others accept.

// kind is what an action's types are named after: control_msgs/action/FollowJointTrajectory.
func actionKind(a ros.Action) (string, error) { return base(a.Goal().TypeName(), "_Goal") }

// wrap is a type that wraps a part of an action.
type wrap string

// TypeName is the full name.
func (w wrap) TypeName() string { return string(w) }

// TypeHash is not known.
func (wrap) TypeHash() string { return "" }

type sendGoalRequest struct {
	wrap
	id   ros.GoalID
	goal msg.Message
}

func (m *sendGoalRequest) MarshalCDR(w *cdr.Writer)   { w.Uint8s(m.id[:]); m.goal.MarshalCDR(w) }
func (m *sendGoalRequest) UnmarshalCDR(r *cdr.Reader) { r.Uint8s(m.id[:]); m.goal.UnmarshalCDR(r) }

type sendGoalResponse struct {
	wrap
	accepted bool
	sec      int32
	nanosec  uint32
}

func (m *sendGoalResponse) MarshalCDR(w *cdr.Writer) {
	w.Bool(m.accepted)
	w.Int32(m.sec)
	w.Uint32(m.nanosec)
}

func (m *sendGoalResponse) UnmarshalCDR(r *cdr.Reader) {
	m.accepted = r.Bool()
	m.sec = r.Int32()
	m.nanosec = r.Uint32()
}

type getResultRequest struct {
	wrap
	id ros.GoalID
}

func (m *getResultRequest) MarshalCDR(w *cdr.Writer)   { w.Uint8s(m.id[:]) }
func (m *getResultRequest) UnmarshalCDR(r *cdr.Reader) { r.Uint8s(m.id[:]) }

type getResultResponse struct {
	wrap
	status ros.GoalStatus
	result msg.Message
}

func (m *getResultResponse) MarshalCDR(w *cdr.Writer) {
	w.Int8(int8(m.status))
	m.result.MarshalCDR(w)
}

func (m *getResultResponse) UnmarshalCDR(r *cdr.Reader) {
	m.status = ros.GoalStatus(r.Int8())
	m.result.UnmarshalCDR(r)
}

type feedbackMessage struct {
	wrap
	id       ros.GoalID
	feedback msg.Message
}

func (m *feedbackMessage) MarshalCDR(w *cdr.Writer) { w.Uint8s(m.id[:]); m.feedback.MarshalCDR(w) }

func (m *feedbackMessage) UnmarshalCDR(r *cdr.Reader) { r.Uint8s(m.id[:]); m.feedback.UnmarshalCDR(r) }
