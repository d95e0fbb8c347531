package server

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
)

// advert is a topic that a client publishes.
type advert struct {
	typ    string
	outlet ros.Outlet
	make   func() msg.Message
}

func (c *client) advertise(o *op) error {
	_, err := c.outlet(o.Topic, full(o.Type, "msg"), o.Latch, o.QueueSize)
	return err
}

// outlet is the publisher of a topic, made when it is new: reliable, kept for late joiners.
func (c *client) outlet(topic, typ string, latch bool, size int) (*advert, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outlets == nil {
		return nil, errors.New("closed")
	}
	if a := c.outlets[topic]; a != nil {
		if a.typ != typ {
			return nil, fmt.Errorf("%s is advertised as %s already, not as %s: unadvertise it first", topic, a.typ, typ)
		}
		return a, nil
	}
	mk, err := c.s.make(typ)
	if err != nil {
		return nil, err
	}
	if size <= 0 {
		size = 100
	}
	// The publisher of rosbridge_suite is transient local with a lifespan of a second, or latched for ever.
	out, err := c.s.o.Node.Advertise(ros.Topic{Name: topic, New: mk, QoS: ros.QoS{Reliable: true, Transient: latch, Depth: size}})
	if err != nil {
		return nil, err
	}
	a := &advert{typ: typ, outlet: out, make: mk}
	c.outlets[topic] = a
	return a, nil
}

func (c *client) unadvertise(o *op) error {
	c.mu.Lock()
	a := c.outlets[o.Topic]
	delete(c.outlets, o.Topic)
	c.mu.Unlock()
	if a == nil {
		return fmt.Errorf("%s was not advertised", o.Topic)
	}
	return a.outlet.Close()
}

func (c *client) publish(ctx context.Context, o *op) error {
	c.mu.Lock()
	a := c.outlets[o.Topic]
	c.mu.Unlock()
	if a == nil { // it registers by itself where the topic is known
		typ, err := c.s.topicType(ctx, o.Topic)
		if err != nil {
			return err
		}
		if a, err = c.outlet(o.Topic, typ, false, 0); err != nil {
			return err
		}
	}
	m := a.make()
	if err := fromJSON(o.Msg, m); err != nil {
		return err
	}
	if c.s.o.FillStamps {
		fillStamp(o.Msg, m, time.Now())
	}
	return a.outlet.Publish(ctx, m)
}

// topicSub is one topic of one client: all its subscriptions together.
type topicSub struct {
	topic string
	sub   ros.Subscription
	raw   bool
	mu    sync.Mutex
	asks  map[string]ask
	last  time.Time
}

// ask is one subscription as it was asked for.
type ask struct {
	throttle, queue, fragment int
	compression               string
}

func (t *topicSub) close(s *Server) {
	shut(t.sub)
	s.end(t)
}

// end takes back what begin noted.
func (s *Server) end(t *topicSub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.first[t.topic]; f.users > 1 {
		s.first[t.topic] = first{f.raw, f.users - 1}
	} else {
		delete(s.first, t.topic)
	}
}

// settings are what all the subscriptions of a topic come to.
func (t *topicSub) settings() (a ask) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun := false
	for _, x := range t.asks {
		if !begun {
			a, begun = x, true
			continue
		}
		a.throttle, a.queue = min(a.throttle, x.throttle), min(a.queue, x.queue)
		if x.fragment > 0 && (a.fragment == 0 || x.fragment < a.fragment) {
			a.fragment = x.fragment
		}
		a.compression = greater(a.compression, x.compression)
	}
	return a
}

func greater(a, b string) string {
	order := []string{"", "none", "png", "cbor", "cbor-raw"}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

func (c *client) subscribe(ctx context.Context, o *op) error {
	a := ask{o.ThrottleRate, o.QueueLength, o.FragmentSize, o.Compression}
	c.mu.Lock()
	t := c.subs[o.Topic]
	c.mu.Unlock()
	if t != nil {
		t.mu.Lock()
		t.asks[o.key()] = a
		t.mu.Unlock()
		return nil
	}
	typ := full(o.Type, "msg")
	if typ == "" {
		var err error
		if typ, err = c.s.topicType(ctx, o.Topic); err != nil {
			return err
		}
	}
	mk, err := c.s.make(typ)
	if err != nil {
		return err
	}
	t = &topicSub{topic: o.Topic, raw: a.compression == "cbor-raw", asks: map[string]ask{o.key(): a}}
	deaf := c.s.o.DeafToLater && !c.s.published(ctx, o.Topic)
	served := c.s.begin(t)
	t.sub, err = c.s.o.Node.Subscribe(ros.Topic{Name: o.Topic, New: mk, QoS: c.s.qos(ctx, o.Topic, a.queue)}, func(in ros.Incoming) {
		if !deaf && served {
			c.pass(ctx, t, in, mk())
		}
	})
	if err != nil {
		c.s.end(t)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subs == nil {
		t.close(c.s)
		return nil
	}
	c.subs[o.Topic] = t
	return nil
}

// begin notes the topic's subscription and says whether it will be served in the encoding it asks for.
func (s *Server) begin(t *topicSub) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.first[t.topic]
	if !ok {
		f.raw = t.raw
	}
	f.users++
	s.first[t.topic] = f
	return !s.o.FirstEncoding || f.raw == t.raw
}

// maxQueue bounds the messages of one topic that wait for a slow client, whatever it asks for.
const maxQueue = 4096

// qos is what the publishers of now offer. When there are none the subscriber of rosbridge_suite is best effort, and what
// a publisher says before it is known here is lost.
func (s *Server) qos(ctx context.Context, topic string, queue int) ros.QoS {
	q := ros.QoS{Depth: min(max(queue, s.o.Depth), maxQueue), Reliable: !s.o.DeafToLater}
	g, err := s.o.Node.Graph(ctx)
	if err != nil {
		return q
	}
	for _, t := range g.Topics {
		if t.Name != topic {
			continue
		}
		for i, p := range t.Publishers {
			q.Reliable = (q.Reliable || i == 0) && p.QoS.Reliable
			q.Transient = q.Transient || p.QoS.Transient
		}
		q.Transient = q.Transient && q.Reliable
	}
	return q
}

func (s *Server) published(ctx context.Context, topic string) bool {
	g, err := s.o.Node.Graph(ctx)
	return err == nil && slices.ContainsFunc(g.Topics, func(t ros.TopicInfo) bool { return t.Name == topic && len(t.Publishers) > 0 })
}

func (c *client) unsubscribe(o *op) error {
	c.mu.Lock()
	t := c.subs[o.Topic]
	if t == nil {
		c.mu.Unlock()
		return nil
	}
	t.mu.Lock()
	if len(o.ID) == 0 {
		clear(t.asks)
	}
	delete(t.asks, o.key())
	empty := len(t.asks) == 0
	t.mu.Unlock()
	if empty {
		delete(c.subs, o.Topic)
	}
	c.mu.Unlock()
	if empty {
		t.close(c.s)
	}
	return nil
}

// pass hands one message to the client.
func (c *client) pass(ctx context.Context, t *topicSub, in ros.Incoming, m msg.Message) {
	a := t.settings()
	now := time.Now()
	if a.throttle > 0 && now.Sub(t.last) < time.Duration(a.throttle)*time.Millisecond {
		return
	}
	t.last = now
	if err := in.Decode(m); err != nil {
		c.say(ctx, nil, err.Error())
		return
	}
	b, binary, err := c.s.encode(t.topic, a.compression, m, now)
	if err != nil {
		c.say(ctx, nil, err.Error())
		return
	}
	if a.fragment > 0 && len(b) > a.fragment && !binary {
		c.fragment(ctx, b, a.fragment)
		return
	}
	c.send(ctx, b, binary)
}

func (s *Server) encode(topic, compression string, m msg.Message, now time.Time) (b []byte, binary bool, err error) {
	if compression != "cbor" && compression != "cbor-raw" {
		b = append([]byte(`{"op": "publish", "topic": `), strconv.Quote(topic)...)
		b = append(append(b, `, "msg": `...), s.toJSON(m)...)
		return append(b, '}'), false, nil
	}
	b = cborText(cborText(head(nil, 5, 3), "op"), "publish")
	b = cborText(cborText(cborText(b, "topic"), topic), "msg")
	if compression == "cbor" {
		return toCBOR(b, reflect.ValueOf(m).Elem()), true, nil
	}
	w := cdr.NewWriter(nil, s.o.Distro)
	m.MarshalCDR(w)
	if err := w.Err(); err != nil {
		return nil, false, err
	}
	b = cborInt(cborText(head(b, 5, 3), "secs"), now.Unix())
	b = cborInt(cborText(b, "nsecs"), int64(now.Nanosecond()))
	return cborBytes(cborText(b, "bytes"), w.Bytes()), true, nil
}

// fragment cuts a frame, at characters.
func (c *client) fragment(ctx context.Context, b []byte, size int) {
	var parts []string
	for s := []rune(string(b)); len(s) > 0; s = s[min(size, len(s)):] {
		parts = append(parts, string(s[:min(size, len(s))]))
	}
	c.mu.Lock()
	c.fragments++
	id := c.fragments
	c.mu.Unlock()
	for i, p := range parts {
		c.reply(ctx, fragmentOp{Op: "fragment", ID: strconv.Itoa(id), Data: p, Num: i, Total: len(parts)})
	}
}

type fragmentOp struct {
	Op    string `json:"op"`
	ID    string `json:"id"`
	Data  string `json:"data"`
	Num   int    `json:"num"`
	Total int    `json:"total"`
}
