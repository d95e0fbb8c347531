package interop

import (
	"context"

	"viad/ros"
	"viad/ros/msg"
)

// NodeSide is a ros.Node as a Side.
type NodeSide struct{ ros.Node }

type nodeSubscription struct{ ros.Subscription }

func (s nodeSubscription) Missed() (lost, dropped uint64) {
	c := s.Stats()
	return c.Lost, c.Dropped
}

type nodePublisher struct{ ros.Outlet }

// Flush does nothing: a node says with Ready who is there, and waits for nobody afterwards.
func (nodePublisher) Flush(context.Context) error { return nil }

// Subscribe is Side.Subscribe: the message is decoded into again and again.
func (n NodeSide) Subscribe(k Kind, topic string, q ros.QoS, f func(msg.Message)) (Subscription, error) {
	m := k.New()
	s, err := n.Node.Subscribe(ros.Topic{Name: "/" + topic, QoS: q, New: k.New}, func(in ros.Incoming) {
		if in.Decode(m) != nil {
			m = k.New() // which Check finds wrong, so that it is counted
		}
		f(m)
	})
	return nodeSubscription{s}, err
}

// Advertise is Side.Advertise.
func (n NodeSide) Advertise(k Kind, topic string, q ros.QoS) (Publisher, error) {
	o, err := n.Node.Advertise(ros.Topic{Name: "/" + topic, QoS: q, New: k.New})
	return nodePublisher{o}, err
}
