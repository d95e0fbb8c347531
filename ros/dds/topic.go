package dds

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/rtps"
)

// subscription is a ros.Subscription.
type subscription struct {
	n         *Node
	r         *rtps.Reader
	once      sync.Once
	malformed atomic.Uint64
}

// incoming is a ros.Incoming; one is used again for every message of a subscription.
type incoming struct {
	s      *subscription
	sample *rtps.Sample
	codec  cdr.Reader
	names  map[rtps.GUID]string // of writers, made once
}

// mostNames bounds the names of writers that one subscription keeps.
const mostNames = 256

// Subscribe makes a reader of the topic.
func (n *Node) Subscribe(topic ros.Topic, f func(ros.Incoming)) (ros.Subscription, error) {
	if err := checkName(topic.Name); err != nil {
		return nil, err
	}
	m := topic.New()
	typ, err := ddsType(m.TypeName())
	if err != nil {
		return nil, err
	}
	s := &subscription{n: n}
	in := &incoming{s: s, names: map[rtps.GUID]string{}}
	q := toWire(topic.QoS)
	s.r, err = n.newReader(rtps.ReaderConfig{Topic: topicPrefix + topic.Name, Type: typ, QoS: q, UserData: n.hash(m), Queue: q.Depth}, func(x *rtps.Sample) {
		in.sample = x
		f(in)
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", topic.Name, err)
	}
	n.d.graph.means(s.r.GUID(), m.TypeHash())
	if err := n.keep(s); err != nil {
		return nil, joined(err, n.closeReader(s.r))
	}
	return s, nil
}

func joined(err, other error) error {
	if other == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, other)
}

// Info says how the message came.
func (in *incoming) Info() ros.Info {
	x := in.sample
	name, ok := in.names[x.Writer]
	if !ok {
		if len(in.names) >= mostNames {
			clear(in.names)
		}
		name = hexGUID(x.Writer)
		in.names[x.Writer] = name
	}
	return ros.Info{Received: x.Received, Source: x.Source, Seq: x.Seq, Publisher: name}
}

// Decode reads the message.
func (in *incoming) Decode(m msg.Message) error {
	in.codec.Reset(in.sample.Payload, in.s.n.d.graph.of(in.sample.Writer.Prefix()))
	m.UnmarshalCDR(&in.codec)
	if err := in.codec.Err(); err != nil {
		in.s.malformed.Add(1)
		return err
	}
	return nil
}

// Payload is the message as it came, header first, valid within the function only.
func (in *incoming) Payload() []byte { return in.sample.Payload }

// Publishers counts the matched writers.
func (s *subscription) Publishers() int { return len(s.r.Matched()) }

// Stats counts since the start.
func (s *subscription) Stats() ros.Stats {
	received, lost, dropped := s.r.Stats()
	return ros.Stats{Received: received, Lost: lost, Dropped: dropped, Malformed: s.malformed.Load()}
}

// Close ends the subscription; it may be called from its function.
func (s *subscription) Close() (err error) {
	s.once.Do(func() {
		s.n.drop(s)
		err = s.n.closeReader(s.r)
	})
	return err
}

// outlet is a ros.Outlet.
type outlet struct {
	n    *Node
	name string
	typ  string // ROS
	dds  string
	w    *rtps.Writer
	turn chan struct{} // holds one token: a mutex that a context can be waited with
	enc  cdr.Writer    // of who has the turn
	once sync.Once
}

// Advertise makes a writer of the topic.
func (n *Node) Advertise(topic ros.Topic) (ros.Outlet, error) {
	if err := checkName(topic.Name); err != nil {
		return nil, err
	}
	m := topic.New()
	typ, err := ddsType(m.TypeName())
	if err != nil {
		return nil, err
	}
	o := &outlet{n: n, name: topic.Name, typ: m.TypeName(), dds: typ, turn: make(chan struct{}, 1)}
	o.w, err = n.newWriter(rtps.WriterConfig{Topic: topicPrefix + topic.Name, Type: typ, QoS: toWire(topic.QoS), UserData: n.hash(m)})
	if err != nil {
		return nil, fmt.Errorf("advertise %s: %w", topic.Name, err)
	}
	n.d.graph.means(o.w.GUID(), m.TypeHash())
	if err := n.keep(o); err != nil {
		return nil, joined(err, n.closeWriter(o.w))
	}
	return o, nil
}

// Publish writes the message. The buffer that it is encoded into is used again.
func (o *outlet) Publish(ctx context.Context, m msg.Message) error {
	if t := m.TypeName(); t != o.typ {
		return fmt.Errorf("publish on %s: the message is a %s, the topic has %s", o.name, t, o.typ)
	}
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("publish on %s: %w", o.name, ctx.Err())
	}
	defer func() { <-o.turn }()
	o.enc.Reset(o.enc.Bytes()[:0], o.n.d.graph.distro())
	m.MarshalCDR(&o.enc)
	if err := o.enc.Err(); err != nil {
		return fmt.Errorf("publish on %s: %w", o.name, err)
	}
	if _, err := o.w.Write(ctx, o.enc.Bytes(), nil); err != nil {
		return fmt.Errorf("publish on %s: %w", o.name, err)
	}
	return nil
}

// Ready waits until n readers are sure to get what is published next.
func (o *outlet) Ready(ctx context.Context, n int) error {
	err := o.w.WaitSynced(ctx, n)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		return fmt.Errorf("%s: %w", o.name, err)
	}
	return fmt.Errorf("%d subscribers of %s are wanted, %d are there: %s: %w", n, o.name, o.Subscribers(), o.n.absence(topicPrefix+o.name, o.dds, true), ctx.Err())
}

// Subscribers counts the matched readers.
func (o *outlet) Subscribers() int { return len(o.w.Matched()) }

// Close ends the publisher.
func (o *outlet) Close() (err error) {
	o.once.Do(func() {
		o.n.drop(o)
		err = o.n.closeWriter(o.w)
	})
	return err
}
