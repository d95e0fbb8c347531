package ros

import (
	"context"

	"viad/ros/msg"
)

// Subscribe is Node.Subscribe with a type: each message is decoded into a new T, which f may keep. What cannot be decoded
// is counted in the subscription's stats and not handed on.
//
//	ros.Subscribe(n, "/joint_states", ros.SensorData(), func(m *sensor_msgs.JointState, info ros.Info) { ... })
func Subscribe[T any, P msg.Ptr[T]](n Node, topic string, qos QoS, f func(P, Info)) (Subscription, error) {
	return n.Subscribe(Topic{Name: topic, QoS: qos, New: maker[T, P]()}, func(in Incoming) {
		m := P(new(T))
		if in.Decode(m) == nil {
			f(m, in.Info())
		}
	})
}

// SubscribeInto is Subscribe with one message that is used again for each: f must not keep it or its slices. With
// messages of a fixed size nothing is allocated.
func SubscribeInto[T any, P msg.Ptr[T]](n Node, topic string, qos QoS, f func(P, Info)) (Subscription, error) {
	m := P(new(T))
	return n.Subscribe(Topic{Name: topic, QoS: qos, New: maker[T, P]()}, func(in Incoming) {
		if in.Decode(m) == nil {
			f(m, in.Info())
		}
	})
}

// Publisher is an Outlet for one type.
type Publisher[P msg.Message] struct{ Outlet }

// Send publishes m.
func (p Publisher[P]) Send(ctx context.Context, m P) error { return p.Publish(ctx, m) }

// Advertise is Node.Advertise with a type: ros.Advertise[geometry_msgs.Twist](n, "/cmd_vel", ros.Default()).
func Advertise[T any, P msg.Ptr[T]](n Node, topic string, qos QoS) (Publisher[P], error) {
	o, err := n.Advertise(Topic{Name: topic, QoS: qos, New: maker[T, P]()})
	return Publisher[P]{o}, err
}

// ServiceOf describes a service by the two halves of its type:
// ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response]("/stop_the_robot").
func ServiceOf[Q, A any, PQ msg.Ptr[Q], PA msg.Ptr[A]](name string) Service {
	return Service{Name: name, Request: maker[Q, PQ](), Response: maker[A, PA]()}
}

// ActionOf describes an action by the three parts of its type.
func ActionOf[G, R, F any, PG msg.Ptr[G], PR msg.Ptr[R], PF msg.Ptr[F]](name string) Action {
	return Action{Name: name, Goal: maker[G, PG](), Result: maker[R, PR](), Feedback: maker[F, PF]()}
}

func maker[T any, P msg.Ptr[T]]() func() msg.Message { return func() msg.Message { return P(new(T)) } }
