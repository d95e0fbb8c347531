// Package msg is what a ROS message is. The messages themselves are generated into the packages below it, one for each
// ROS package, from the definitions in defs.
package msg

import "viad/ros/cdr"

// Message is one ROS message, or one half of a service, or one part of an action.
type Message interface {
	// TypeName is the full ROS 2 name: "sensor_msgs/msg/JointState", "std_srvs/srv/Trigger_Request",
	// "control_msgs/action/FollowJointTrajectory_Goal".
	TypeName() string
	// TypeHash is the RIHS01 hash of the type ("RIHS01_" and 64 hex digits) as Iron and later announce it.
	TypeHash() string
	// MarshalCDR appends the message without the four byte header; an error sticks to w.
	MarshalCDR(w *cdr.Writer)
	// UnmarshalCDR reads the message; an error sticks to r. Slices that m already has are used again where they are
	// large enough.
	UnmarshalCDR(r *cdr.Reader)
}

// Ptr ties a message type to its pointer, which has the methods.
type Ptr[T any] interface {
	*T
	Message
}
