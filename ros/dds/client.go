package dds

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/rtps"
)

// style is how an answer is tied to its request.
type style uint8

const (
	styleUnknown style = iota
	styleInline        // related sample identity in inline QoS: rmw_fastrtps, and ours
	styleHeader        // 16 bytes in front of the body: rmw_cyclonedds
)

// mark is in the user data of our participants: our vendor id is the one of nobody, which others may have too. Ours
// speak the inline style to each other.
const mark = "wire=viad;"

// styleOf is the style of a participant, by its vendor.
func styleOf(p rtps.Peer) style {
	switch {
	case p.Vendor == rtps.VendorFastDDS:
		return styleInline
	case p.Vendor == rtps.VendorCyclone:
		return styleHeader
	case p.Vendor == rtps.VendorID{} && userData(p.UserData, "wire") == "viad":
		return styleInline
	}
	return styleUnknown
}

// call is a request that waits for its answer.
type call struct {
	response msg.Message
	servers  []rtps.GUID // the request readers that it went to and that are still there
	distro   cdr.Distro
	seq      int64      // of the request on the wire
	done     chan error // holds one
}

type callKey struct {
	style style
	seq   int64
}

// client is a ros.Caller.
type client struct {
	n              *Node
	what           string // "service /runstop"
	request, reply string // DDS topics
	reqType        string // DDS
	reqROS, ansROS string
	w              *rtps.Writer
	r              *rtps.Reader
	id             uint64
	deaf           func()
	up             chan struct{} // closed when all is there: an answer to another can come before
	once           sync.Once

	mu     sync.Mutex
	closed bool
	seq    int64
	calls  map[callKey]*call
	warned bool
}

// Client makes a client of a service.
func (n *Node) Client(s ros.Service) (ros.Caller, error) {
	c, err := n.client("service "+s.Name, s.Name, s.Request(), s.Response())
	if err != nil {
		return nil, err
	}
	return c, nil
}

// newID is the id of a client or server in user data.
func newID() (id [16]byte, err error) {
	_, err = rand.Read(id[:])
	return id, err
}

func (n *Node) client(what, name string, request, response msg.Message) (*client, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	reqType, err := ddsType(request.TypeName())
	if err != nil {
		return nil, err
	}
	ansType, err := ddsType(response.TypeName())
	if err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	c := &client{
		n: n, what: what, request: requestPrefix + name + "Request", reply: replyPrefix + name + "Reply", reqType: reqType,
		reqROS: request.TypeName(), ansROS: response.TypeName(), id: binary.LittleEndian.Uint64(id[:]), calls: map[callKey]*call{}, up: make(chan struct{}),
	}
	defer close(c.up)
	mark := "clientid=" + dotted(id) + ";"
	c.r, err = n.newReader(rtps.ReaderConfig{Topic: c.reply, Type: ansType, QoS: serviceQoS, UserData: append([]byte(mark), n.hash(response)...)}, c.answer)
	if err != nil {
		return nil, err
	}
	c.w, err = n.newWriter(rtps.WriterConfig{Topic: c.request, Type: reqType, QoS: requestQoS(), UserData: append([]byte(mark), n.hash(request)...)})
	if err != nil {
		return nil, joined(err, n.closeReader(c.r))
	}
	c.deaf = n.d.hear(c.event)
	if err := n.keep(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// event notices that a server has gone.
func (c *client) event(e rtps.Event) {
	if e.Kind != rtps.Unmatched || e.Ours != c.w.GUID() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, x := range c.calls {
		x.servers = slices.DeleteFunc(x.servers, func(g rtps.GUID) bool { return g == e.Endpoint.GUID })
		if len(x.servers) == 0 {
			c.finish(k, x, &ros.Gone{What: c.what, Why: "its request reader left the graph"})
		}
	}
}

// finish ends a call. Holds mu.
func (c *client) finish(k callKey, x *call, err error) {
	delete(c.calls, k)
	x.done <- err
}

// answer takes a sample of the reply topic, which all clients of the service share.
func (c *client) answer(s *rtps.Sample) {
	if <-c.up; c.w == nil {
		return // it could not be made
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.Related != nil {
		if g := s.Related.Writer; g == c.r.GUID() || g == c.w.GUID() {
			c.decode(callKey{styleInline, s.Related.Seq}, s, false)
		}
		return
	}
	if p, ok := c.n.d.p.Peer(s.Writer.Prefix()); !ok || styleOf(p) != styleHeader || len(s.Payload) < 20 {
		return
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if s.Payload[1] == 0 {
		order = binary.BigEndian
	}
	if order.Uint64(s.Payload[4:]) == c.id {
		c.decode(callKey{styleHeader, int64(order.Uint64(s.Payload[12:]))}, s, true) //nolint:gosec // as it was sent
	}
}

// decode reads the answer into the response of its call. Holds mu, which keeps the response the call's.
func (c *client) decode(k callKey, s *rtps.Sample, header bool) {
	x := c.calls[k]
	if x == nil {
		return // its caller has given up, or it was a second server's
	}
	r := cdr.NewReader(s.Payload, x.distro)
	if header {
		r.Uint64()
		r.Int64()
	}
	x.response.UnmarshalCDR(r)
	err := r.Err()
	if err != nil {
		err = fmt.Errorf("the answer of %s cannot be read: %w", c.what, err)
	}
	c.finish(k, x, err)
}

// servers are the request readers that are sure to get a request and whose participant can answer us, and how they
// want it; in a fixed order, so that the first stays the first.
func (c *client) servers() (list []rtps.GUID, how style, err error) {
	replies := c.r.Matched()
	for _, e := range c.w.Matched() {
		if !c.w.Synced(e.GUID) || !slices.ContainsFunc(replies, func(r rtps.Endpoint) bool { return r.GUID.Prefix() == e.GUID.Prefix() }) {
			continue
		}
		list = append(list, e.GUID)
	}
	slices.SortFunc(list, func(a, b rtps.GUID) int { return cmp.Compare(string(a[:]), string(b[:])) })
	for _, g := range list {
		p, ok := c.n.d.p.Peer(g.Prefix())
		if !ok {
			continue // it has just gone
		}
		s := styleOf(p)
		if s == styleUnknown {
			return nil, styleUnknown, &ros.Unsupported{
				Wire: "DDS", What: fmt.Sprintf("calling %s, which is served by a participant of %s", c.what, p.Vendor),
				Instead: "only rmw_cyclonedds, rmw_fastrtps and viad are known to match answers in a known way, and a wrong guess can exhaust the server's memory: go through rosbridge",
			}
		}
		if how != styleUnknown && how != s {
			return nil, styleUnknown, &ros.Unsupported{
				Wire: "DDS", What: fmt.Sprintf("calling %s, which servers of two middlewares offer at the same time", c.what),
				Instead: "a request would reach both and one would misread it: stop one of them",
			}
		}
		how = s
	}
	return list, how, nil
}

// ready waits for servers.
func (c *client) ready(ctx context.Context) (list []rtps.GUID, how style, err error) {
	for {
		next := c.n.d.next()
		list, how, err = c.servers()
		if err != nil || len(list) > 0 && how != styleUnknown {
			return list, how, err
		}
		c.mu.Lock()
		closed := c.closed
		c.mu.Unlock()
		if closed {
			return nil, how, errClosed
		}
		if err := c.wait(ctx, next); err != nil {
			return nil, how, err
		}
	}
}

// wait waits for something that may have made a server ready.
func (c *client) wait(ctx context.Context, next <-chan struct{}) error {
	if m := c.w.Matched(); len(m) > 0 && slices.ContainsFunc(m, func(e rtps.Endpoint) bool { return !c.w.Synced(e.GUID) }) {
		// The answer to our first heartbeat is no event of discovery, but the writer knows.
		sync, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.w.WaitSynced(sync, 1) // the loop looks for itself
		}()
		defer func() { cancel(); <-done }()
		select {
		case <-done:
		case <-next:
		case <-ctx.Done():
			return &absentError{&ros.Absent{What: c.what, Why: c.why()}, ctx.Err()}
		}
		return nil
	}
	// It may have answered since the caller looked, which nothing would tell us.
	if list, how, err := c.servers(); err != nil || len(list) > 0 && how != styleUnknown {
		return nil // the caller looks again, and tells
	}
	select {
	case <-next:
		return nil
	case <-ctx.Done():
		return &absentError{&ros.Absent{What: c.what, Why: c.why()}, ctx.Err()}
	}
}

// absentError is a *ros.Absent that was noticed when a context ended.
type absentError struct {
	absent *ros.Absent
	ctx    error
}

func (e *absentError) Error() string   { return e.absent.Error() }
func (e *absentError) Unwrap() []error { return []error{e.absent, e.ctx} }

func (c *client) why() string {
	if len(c.w.Matched()) > 0 && len(c.r.Matched()) == 0 {
		return "its request half is there and its reply half is not"
	}
	return c.n.absence(c.request, c.reqType, true)
}

// Ready waits until a server is sure to get a request.
func (c *client) Ready(ctx context.Context) error {
	_, _, err := c.ready(ctx)
	return err
}

// Call sends the request and waits for the answer.
func (c *client) Call(ctx context.Context, request, response msg.Message) error {
	if request.TypeName() != c.reqROS || response.TypeName() != c.ansROS {
		return fmt.Errorf("call of %s: %s and %s are given, its types are %s and %s", c.what, request.TypeName(), response.TypeName(), c.reqROS, c.ansROS)
	}
	list, how, err := c.ready(ctx)
	if err != nil {
		return err
	}
	return c.ask(ctx, list, how, request, response)
}

// again is Call to a server that was there a moment ago: when it is not there any more, it is gone and not waited for.
func (c *client) again(ctx context.Context, request, response msg.Message) error {
	list, how, err := c.servers()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return &ros.Gone{What: c.what, Why: "its request reader left the graph"}
	}
	return c.ask(ctx, list, how, request, response)
}

func (c *client) ask(ctx context.Context, list []rtps.GUID, how style, request, response msg.Message) error {
	k, x, err := c.send(ctx, list, how, request, response)
	if err != nil {
		return fmt.Errorf("call of %s: %w", c.what, err)
	}
	lost, why := time.NewTimer(requestLife+ackTime), error(nil)
	defer lost.Stop()
	for waiting := true; waiting; {
		select {
		case err := <-x.done:
			return err
		case <-lost.C:
			if waiting = c.delivered(x); !waiting {
				why = &ros.Gone{What: c.what, Why: fmt.Sprintf("nobody has acknowledged the request within %v, and it is not delivered any later", requestLife)}
			}
		case <-ctx.Done():
			waiting, why = false, ctx.Err()
		}
	}
	c.mu.Lock()
	delete(c.calls, k) // from here on the response is the caller's again
	c.mu.Unlock()
	select {
	case err := <-x.done: // it came just then
		return err
	default:
	}
	if errors.As(why, new(*ros.Gone)) {
		return why
	}
	return fmt.Errorf("%s has not answered; whether it acts is not known: %w", c.what, why)
}

// delivered says whether one of the servers has the request for sure.
func (c *client) delivered(x *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(x.servers, func(g rtps.GUID) bool { return c.w.Acked(g, x.seq) })
}

// send writes the request. The lock is held until the call can be found by its number, which the wire gives.
func (c *client) send(ctx context.Context, list []rtps.GUID, how style, request, response msg.Message) (callKey, *call, error) {
	x := &call{response: response, servers: list, done: make(chan error, 1), distro: c.n.d.graph.of(list[0].Prefix())}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return callKey{}, nil, errClosed
	}
	if len(list) > 1 && !c.warned {
		c.warned = true
		c.n.d.log.Warn("several servers of one name: all get the request, and the first answer counts", "what", c.what, "servers", len(list))
	}
	w := cdr.NewWriter(nil, x.distro)
	var related *rtps.SampleIdentity
	if how == styleHeader {
		c.seq++
		w.Uint64(c.id)
		w.Int64(c.seq)
	} else {
		related = &rtps.SampleIdentity{Writer: c.r.GUID(), Seq: rtps.SeqUnknown}
	}
	request.MarshalCDR(w)
	if err := w.Err(); err != nil {
		return callKey{}, nil, err
	}
	seq, err := c.w.Write(ctx, w.Bytes(), related)
	if err != nil {
		return callKey{}, nil, err
	}
	x.seq = seq
	k := callKey{how, seq}
	if how == styleHeader {
		k.seq = c.seq
	}
	c.calls[k] = x
	// Who left between the look and now has been told of already.
	now := c.w.Matched()
	x.servers = slices.DeleteFunc(slices.Clone(list), func(g rtps.GUID) bool {
		return !slices.ContainsFunc(now, func(e rtps.Endpoint) bool { return e.GUID == g })
	})
	if len(x.servers) == 0 {
		c.finish(k, x, &ros.Gone{What: c.what, Why: "its request reader left the graph"})
	}
	return k, x, nil
}

// Close ends the client; calls that wait end.
func (c *client) Close() (err error) {
	c.once.Do(func() {
		c.n.drop(c)
		c.deaf()
		c.mu.Lock()
		c.closed = true
		for k, x := range c.calls {
			c.finish(k, x, fmt.Errorf("the client of %s was closed; whether the server acts is not known", c.what))
		}
		c.mu.Unlock()
		err = errors.Join(c.n.closeWriter(c.w), c.n.closeReader(c.r))
		c.n.d.changed()
	})
	return err
}
