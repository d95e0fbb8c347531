package ros

import (
	"context"
	"time"

	"viad/ros/msg"
)

// Node is one node in a ROS graph, whichever the wire. Names are absolute ("/joint_states"); types are ROS 2 names, also
// on ROS 1, where the node maps them. All methods are safe for concurrent use. Closing the node ends everything that it
// made; what is made can also be closed by itself.
type Node interface {
	// Name is the node's own full name, "/ns/name".
	Name() string
	// Wire is "dds", "rosbridge" or "ros1".
	Wire() string

	// Subscribe calls f for each message, in order, in one goroutine of the subscription; f does not hold the wire up: when
	// it is slow, the oldest waiting messages beyond the depth are dropped and counted.
	Subscribe(topic Topic, f func(Incoming)) (Subscription, error)
	// Advertise makes a publisher.
	Advertise(topic Topic) (Outlet, error)

	// Client makes a client of a service.
	Client(service Service) (Caller, error)
	// Serve answers a service until it is closed; f runs in a goroutine for each request and its context ends with the node.
	// An error of f is logged, and answered where the wire knows how (rosbridge, ROS 1); on DDS no answer is sent.
	Serve(service Service, f func(ctx context.Context, request msg.Message) (msg.Message, error)) (Closer, error)

	// ActionClient makes a client of an action.
	ActionClient(action Action) (Goaler, error)
	// ServeAction serves an action until it is closed.
	ServeAction(action Action, server ActionHandler) (Closer, error)

	// Graph is what is known now of nodes, topics, services and actions.
	Graph(ctx context.Context) (Graph, error)
	// Links watches the connection: f is told the present state first, then every change, in order. On DDS the link is up
	// while any other participant is known.
	Links(f func(Link)) (stop func())

	Close() error
}

// Closer ends one thing that a node made.
type Closer interface{ Close() error }

// QoS is what a topic promises and what is asked of it.
type QoS struct {
	Reliable  bool
	Transient bool          // transient local: late joiners get what is kept
	KeepAll   bool          // nothing is dropped: publishing waits
	Depth     int           // kept when not KeepAll; 0 is 10
	Deadline  time.Duration // 0 is none
}

// Default is reliable, volatile, keep the last 10: rmw's default profile.
func Default() QoS { return QoS{Reliable: true, Depth: 10} }

// SensorData is best effort, volatile, keep the last 5; it reads from any publisher.
func SensorData() QoS { return QoS{Depth: 5} }

// Latched is reliable, transient local, keep the last 1: /tf_static, /robot_description, the state topics of Stretch 4.
func Latched() QoS { return QoS{Reliable: true, Transient: true, Depth: 1} }

// Topic names a topic, its type and its QoS. New makes an empty message of the type.
type Topic struct {
	Name string
	QoS  QoS
	New  func() msg.Message
}

// Service names a service and makes the halves of it.
type Service struct {
	Name     string
	Request  func() msg.Message
	Response func() msg.Message
}

// Action names an action and makes its parts.
type Action struct {
	Name     string
	Goal     func() msg.Message
	Result   func() msg.Message
	Feedback func() msg.Message
}

// Info is how a message came.
type Info struct {
	Received  time.Time // by our clock, when it was complete here
	Source    time.Time // by the publisher's clock; zero where the wire does not say
	Seq       int64     // of this publisher, 0 where the wire does not say
	Publisher string    // GUID in hex, or the node's name; "" where the wire does not say
}

// Incoming is one message that came. It is valid only within the function that gets it.
type Incoming interface {
	Info() Info
	// Decode reads the message into m, whose slices are used again where they are large enough.
	Decode(m msg.Message) error
}

// Subscription is a running subscription.
type Subscription interface {
	Closer
	// Publishers is how many publishers are matched now; -1 where the wire does not say.
	Publishers() int
	// Stats counts since the start.
	Stats() Stats
}

// Stats counts the messages of a subscription.
type Stats struct {
	Received  uint64 // came, also what was then dropped
	Dropped   uint64 // came and were not handed on: the function was slow
	Lost      uint64 // the wire says they were sent and did not come
	Malformed uint64 // came and could not be decoded
}

// Outlet is a publisher.
type Outlet interface {
	Closer
	// Publish hands the message to the wire. It waits only when a KeepAll or full reliable history holds it up.
	Publish(ctx context.Context, m msg.Message) error
	// Ready waits until at least n subscribers are matched and can be sure to get what is published next: a command
	// published before that can be lost for good. On rosbridge, which cannot tell, it waits for the topic to be known.
	Ready(ctx context.Context, n int) error
	// Subscribers is how many are matched now; -1 where the wire does not say.
	Subscribers() int
}

// Caller is a client of a service.
type Caller interface {
	Closer
	// Ready waits until a server is there and sure to get a request.
	Ready(ctx context.Context) error
	// Call sends the request and waits for the answer; it waits for Ready first. When the server goes away in between
	// the error is a *Gone; whether the request was acted on is then unknown.
	Call(ctx context.Context, request, response msg.Message) error
}

// GoalID is the id of a goal; on ROS 1 the wire's string is made from it.
type GoalID [16]byte

// GoalStatus is where a goal is; the numbers are action_msgs/msg/GoalStatus.
type GoalStatus int8

// The states of a goal.
const (
	GoalUnknown GoalStatus = iota
	GoalAccepted
	GoalExecuting
	GoalCanceling
	GoalSucceeded
	GoalCanceled
	GoalAborted
)

// Goaler is a client of an action.
type Goaler interface {
	Closer
	// Ready waits until a server is there and sure to get a goal.
	Ready(ctx context.Context) error
	// Send sends a goal and waits until the server has accepted it; a refused goal is a *Rejected. feedback may be nil; it
	// is called in order and must not block.
	Send(ctx context.Context, goal msg.Message, feedback func(msg.Message)) (Goal, error)
	// CancelAll asks the server to cancel every goal, also of other clients.
	CancelAll(ctx context.Context) error
}

// Goal is one goal that a server has accepted.
type Goal interface {
	ID() GoalID
	// Status is the newest status that was heard.
	Status() GoalStatus
	// Cancel asks for it; the goal ends when Result says so. A server may refuse.
	Cancel(ctx context.Context) error
	// Result waits for the end and reads the result into m. When the server goes away the error is a *Gone. It may be
	// called again.
	Result(ctx context.Context, m msg.Message) (GoalStatus, error)
}

// ActionHandler is the server of an action.
type ActionHandler struct {
	// Accept says whether a goal is taken; nil takes all.
	Accept func(goal msg.Message) bool
	// Cancel says whether a cancel request is taken; nil takes all.
	Cancel func(id GoalID) bool
	// Run runs in a goroutine of the goal; ctx ends when the goal is cancelled or the server closes. It returns the result
	// and GoalSucceeded, GoalCanceled or GoalAborted.
	Run func(ctx context.Context, id GoalID, goal msg.Message, feedback func(msg.Message)) (msg.Message, GoalStatus)
}

// Link is the state of the connection to the graph.
type Link struct {
	Up  bool
	Why string // why it is down, or what it is connected to
	At  time.Time
}

// Graph is what is known of a ROS graph.
type Graph struct {
	Nodes    []string
	Topics   []TopicInfo
	Services []NameType
	Actions  []NameType
	Peers    []PeerInfo // DDS only
	Problems []string   // sentences: QoS mismatches, name clashes, what is missing
}

// NameType is a name and its type.
type NameType struct{ Name, Type string }

// TopicInfo is a topic and who is on it.
type TopicInfo struct {
	NameType
	Publishers  []EndpointInfo
	Subscribers []EndpointInfo
}

// EndpointInfo is one publisher or subscriber.
type EndpointInfo struct {
	Node string // "" when not known
	GUID string
	QoS  QoS
}

// PeerInfo is a DDS participant.
type PeerInfo struct {
	GUID   string
	Vendor string // "eProsima Fast DDS", "Eclipse Cyclone DDS", or the number
	Distro string // "humble", "iron or later", "" when not known
	Nodes  []string
	Addrs  []string
	Seen   time.Time
}
