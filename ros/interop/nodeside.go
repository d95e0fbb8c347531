package interop

import (
	"context"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
)

// NodeSide is a ros.Node as a Side.
type NodeSide struct {
	ros.Node
	// Borrow leaves the bytes of a picture where they came, in place of copying them into the message.
	Borrow bool
}

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
	m, r := k.New(), cdr.NewReader(nil, cdr.Humble)
	r.Borrow(true)
	decode := func(in ros.Incoming) error {
		raw, ok := in.(interface{ Payload() []byte })
		if !ok || !n.Borrow {
			return in.Decode(m)
		}
		r.Reset(raw.Payload(), cdr.Humble)
		m.UnmarshalCDR(r)
		return r.Err()
	}
	s, err := n.Node.Subscribe(ros.Topic{Name: "/" + topic, QoS: q, New: k.New}, func(in ros.Incoming) {
		if decode(in) != nil {
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
