package interop

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/rtps"
)

// Side is our end of a proof: a bare participant of package rtps, or a ros.Node over it.
type Side interface {
	Subscribe(k Kind, topic string, q ros.QoS, f func(msg.Message)) (Subscription, error)
	Advertise(k Kind, topic string, q ros.QoS) (Publisher, error)
	Close() error
}

// Subscription is a subscription on our side.
type Subscription interface {
	Close() error
	Publishers() int
	// Missed are samples that are known not to have come, and those that came and were not handed on.
	Missed() (lost, dropped uint64)
}

// Publisher is a publisher on our side.
type Publisher interface {
	Close() error
	Ready(ctx context.Context, n int) error
	Publish(ctx context.Context, m msg.Message) error
	// Flush waits until all reliable subscribers have everything.
	Flush(ctx context.Context) error
}

// Wire is a bare participant as a Side.
type Wire struct{ *rtps.Participant }

type wireSubscription struct{ *rtps.Reader }

func (s wireSubscription) Publishers() int { return len(s.Matched()) }

func (s wireSubscription) Missed() (lost, dropped uint64) {
	_, lost, dropped = s.Stats()
	return lost, dropped
}

// Subscribe is Side.Subscribe: the message is decoded into again and again, and its bytes are the payload's.
func (w Wire) Subscribe(k Kind, topic string, q ros.QoS, f func(msg.Message)) (Subscription, error) {
	m, in := k.New(), cdr.NewReader(nil, cdr.Humble)
	in.Borrow(true)
	r, err := w.NewReader(rtps.ReaderConfig{Topic: "rt/" + topic, Type: k.Type, QoS: wireQoS(q)}, func(s *rtps.Sample) {
		in.Reset(s.Payload, cdr.Humble)
		m.UnmarshalCDR(in)
		if in.Err() != nil {
			m = k.New() // which Check finds wrong, so that it is counted
		}
		f(m)
	})
	return wireSubscription{r}, err
}

type wirePublisher struct {
	*rtps.Writer
	out cdr.Writer
}

func (p *wirePublisher) Ready(ctx context.Context, n int) error { return p.WaitSynced(ctx, n) }

func (p *wirePublisher) Flush(ctx context.Context) error { return p.WaitAcked(ctx) }

func (p *wirePublisher) Publish(ctx context.Context, m msg.Message) error {
	p.out.Reset(p.out.Bytes()[:0], cdr.Humble)
	m.MarshalCDR(&p.out)
	if err := p.out.Err(); err != nil {
		return err
	}
	_, err := p.Write(ctx, p.out.Bytes(), nil)
	return err
}

// Advertise is Side.Advertise.
func (w Wire) Advertise(k Kind, topic string, q ros.QoS) (Publisher, error) {
	wr, err := w.NewWriter(rtps.WriterConfig{Topic: "rt/" + topic, Type: k.Type, QoS: wireQoS(q)})
	return &wirePublisher{Writer: wr}, err
}

func wireQoS(q ros.QoS) rtps.QoS {
	depth := q.Depth
	if depth == 0 {
		depth = 10
	}
	return rtps.QoS{Reliable: q.Reliable, TransientLocal: q.Transient, KeepAll: q.KeepAll, Depth: depth, Deadline: q.Deadline}
}

// Flow is a stream of samples from one side to the other.
type Flow struct {
	Kind  Kind
	Topic string
	QoS   ros.QoS
	Size  int
	Count int
	Rate  float64 // per second, 0 is as fast as they go
	// Settle is how long a publisher waits behind the first match. A best effort publisher cannot know whether the other side
	// has found it too; a reliable one needs no waiting.
	Settle time.Duration
}

// Args are the peer's options for this flow.
func (f Flow) Args() []string {
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	depth := f.QoS.Depth
	switch {
	case f.QoS.KeepAll:
		depth = 0
	case depth == 0:
		depth = 10
	}
	return []string{
		"type=" + f.Kind.Name, "topic=" + f.Topic, fmt.Sprintf("reliable=%d", flag(f.QoS.Reliable)), fmt.Sprintf("transient=%d", flag(f.QoS.Transient)),
		fmt.Sprintf("depth=%d", depth), fmt.Sprintf("size=%d", f.Size), fmt.Sprintf("count=%d", f.Count), fmt.Sprintf("rate=%g", f.Rate),
		fmt.Sprintf("settle=%g", f.Settle.Seconds()*1000), fmt.Sprintf("deadline=%g", f.QoS.Deadline.Seconds()),
	}
}

// Receive subscribes to a flow; what comes is counted.
func Receive(s Side, f Flow) (*Tally, Subscription, error) {
	t := NewTally(f.Count)
	sub, err := s.Subscribe(f.Kind, f.Topic, f.QoS, func(m msg.Message) { t.Add(f.Kind, m, f.Size) })
	return t, sub, err
}

// Transmit publishes a flow to n subscribers and waits until reliable ones have all of it.
func Transmit(ctx context.Context, s Side, f Flow, n int) (Publisher, error) {
	p, err := s.Advertise(f.Kind, f.Topic, f.QoS)
	if err != nil {
		return nil, err
	}
	if err := p.Ready(ctx, n); err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for %d subscribers of %s: %w", n, f.Topic, err), p.Close())
	}
	if err := send(ctx, p, f); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func send(ctx context.Context, p Publisher, f Flow) error {
	m := f.Kind.New()
	var tick <-chan time.Time
	if f.Rate > 0 {
		t := time.NewTicker(time.Duration(float64(time.Second) / f.Rate))
		defer t.Stop()
		tick = t.C
	}
	if f.Settle > 0 {
		select {
		case <-time.After(f.Settle):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for i := range f.Count {
		f.Kind.Fill(m, int64(i), time.Now(), f.Size)
		if err := p.Publish(ctx, m); err != nil {
			return fmt.Errorf("publishing sample %d of %s: %w", i, f.Topic, err)
		}
		if tick == nil {
			continue
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if !f.QoS.Reliable {
		return nil
	}
	if err := p.Flush(ctx); err != nil {
		return fmt.Errorf("waiting for the acknowledgements of %s: %w", f.Topic, err)
	}
	return nil
}

// Dropper is for rtps.Config.Wire: it drops one datagram in Every, chosen by a hash of the count, in each direction.
type Dropper struct {
	PerThousand uint64
	count       atomic.Uint64
	dropped     atomic.Uint64
}

// Keep is the hook.
func (d *Dropper) Keep(rtps.Datagram) bool {
	n := d.count.Add(1)
	n *= mix
	n ^= n >> 29
	n *= 0xBF58476D1CE4E5B9
	if n>>32%1000 >= d.PerThousand {
		return true
	}
	d.dropped.Add(1)
	return false
}

// Dropped is how many datagrams were dropped, of how many.
func (d *Dropper) Dropped() (dropped, of uint64) { return d.dropped.Load(), d.count.Load() }
