// Package msg is what a ROS message is. The messages themselves are generated into the packages below it, one for each
// ROS package, from the definitions in defs: field lists in ROS's own syntax, at the newest distribution's layout; what
// another distribution lays out differently is in defs/<distribution>. Package all makes a message by its name, package
// text prints and parses them.
//
// Go names: the package is the ROS package, the type the ROS type (services X_Request and X_Response; actions X_Goal,
// X_Result, X_Feedback and the wrappers X_SendGoal_Request ... X_FeedbackMessage), a field the CamelCase of its name,
// a constant X_NAME. uint8[], byte[] and char[] are []byte, fixed arrays are arrays, bounds are checked by the codec.
// encoding/json writes []byte as base64, refuses NaN, and writes an empty slice that is nil as null; package text has the
// JSON that rosbridge wants.
package msg

import "viad/ros/cdr"

//go:generate go run ./gen

// Message is one ROS message, or one half of a service, or one part of an action.
type Message interface {
	// TypeName is the full ROS 2 name: "sensor_msgs/msg/JointState", "std_srvs/srv/Trigger_Request",
	// "control_msgs/action/FollowJointTrajectory_Goal".
	TypeName() string
	// TypeHash is the RIHS01 hash of the type ("RIHS01_" and 64 hex digits) as Iron and later announce it, of the newest
	// distribution's layout.
	TypeHash() string
	// MarshalCDR appends the message without the four byte header; an error sticks to w.
	MarshalCDR(w *cdr.Writer)
	// UnmarshalCDR reads the message; an error sticks to r. Slices that m already has are used again where they are
	// large enough.
	UnmarshalCDR(r *cdr.Reader)
}

// Half is one half of a service. What a service's endpoints announce is the hash of the service, not of the half.
type Half interface {
	Message
	ServiceHash() string
}

// Part is the goal, the result or the feedback of an action.
type Part interface {
	Message
	ActionHashes() ActionHashes
}

// ActionHashes are the hashes that the endpoints of an action announce, beside those of action_msgs.
type ActionHashes struct {
	SendGoal  string // of the service
	GetResult string // of the service
	Feedback  string // of the topic's message
}

// Ptr ties a message type to its pointer, which has the methods.
type Ptr[T any] interface {
	*T
	Message
}
