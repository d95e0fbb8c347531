package dds

import (
	"context"
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

// mostRequests bounds the functions of one service that run at the same time; more requests wait in the reader.
const mostRequests = 64

// replyWait is how long an answer waits for the reader that it is for, as Cyclone's middleware does.
const replyWait = 100 * time.Millisecond

// server answers the requests of one service.
type server struct {
	n         *Node
	what      string
	topic     string // DDS topic of the requests
	r         *rtps.Reader
	w         *rtps.Writer
	run       scope
	done      chan struct{}
	up        chan struct{} // closed when all is there: a request can come before
	once      sync.Once
	respROS   string
	newReq    func() msg.Message
	onRequest func(*request)
}

// request is one request and how it wants to be answered.
type request struct {
	s       *server
	message msg.Message
	how     style
	writer  rtps.GUID // that wrote the request
	related rtps.SampleIdentity
	client  uint64 // header style
	seq     int64
	distro  cdr.Distro
}

// Serve answers a service.
func (n *Node) Serve(s ros.Service, f func(context.Context, msg.Message) (msg.Message, error)) (ros.Closer, error) {
	slots := make(chan struct{}, mostRequests)
	what := "service " + s.Name
	v, err := n.serve(what, s.Name, s.Request, s.Response(), func(q *request) {
		select {
		case slots <- struct{}{}:
		case <-q.s.done:
			return
		}
		if !q.s.run.run(func(ctx context.Context) {
			defer func() { <-slots }()
			a, err := f(ctx, q.message)
			if err == nil && ctx.Err() != nil {
				return
			}
			if err == nil {
				err = q.answer(ctx, a)
			}
			if err != nil && ctx.Err() == nil {
				n.d.log.Warn("a request is not answered: this wire has no words for an error", "what", what, "error", err)
			}
		}) {
			<-slots
		}
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// serve makes the two halves of a service; f is called in the reader's goroutine.
func (n *Node) serve(what, name string, newReq func() msg.Message, response msg.Message, f func(*request)) (*server, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	q := newReq()
	reqType, err := ddsType(q.TypeName())
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
	s := &server{n: n, what: what, topic: requestPrefix + name + "Request", respROS: response.TypeName(), newReq: newReq, onRequest: f, done: make(chan struct{}), up: make(chan struct{})}
	defer close(s.up)
	data := "serviceid=" + dotted(id) + ";"
	// The reply half comes first: who sees the request half finds the other one.
	s.w, err = n.newWriter(rtps.WriterConfig{Topic: replyPrefix + name + "Reply", Type: ansType, QoS: serviceQoS, UserData: append([]byte(data), n.hash(response)...)})
	if err != nil {
		return nil, err
	}
	s.r, err = n.newReader(rtps.ReaderConfig{Topic: s.topic, Type: reqType, QoS: serviceQoS, UserData: append([]byte(data), n.hash(q)...)}, s.request)
	if err != nil {
		return nil, joined(err, n.closeWriter(s.w))
	}
	if err := n.keep(s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// request takes a sample of the request topic.
func (s *server) request(x *rtps.Sample) {
	<-s.up
	q, err := s.read(x)
	if err != nil {
		s.n.d.log.Warn("a request cannot be answered", "what", s.what, "from", hexGUID(x.Writer), "error", err)
		return
	}
	s.onRequest(q)
}

func (s *server) read(x *rtps.Sample) (*request, error) {
	prefix := x.Writer.Prefix()
	q := &request{s: s, message: s.newReq(), writer: x.Writer, distro: s.n.d.graph.of(prefix)}
	p, ok := s.n.d.p.Peer(prefix)
	if !ok {
		return nil, errors.New("the participant that asks is not known")
	}
	q.how = styleOf(p)
	if q.how == styleUnknown && x.Related != nil {
		q.how = styleInline // it says itself how
	}
	r := cdr.NewReader(x.Payload, q.distro)
	switch q.how {
	case styleHeader:
		q.client, q.seq = r.Uint64(), r.Int64()
	case styleInline:
		q.related = rtps.SampleIdentity{Writer: x.Writer, Seq: x.Seq}
		if x.Related != nil && x.Related.Writer != (rtps.GUID{}) {
			q.related.Writer = x.Related.Writer
		}
	default:
		return nil, fmt.Errorf("it comes from a participant of %s, whose way of matching answers is not known", p.Vendor)
	}
	q.message.UnmarshalCDR(r)
	return q, r.Err()
}

// answer waits for the reader that the answer is for, for a while, and writes it.
func (q *request) answer(ctx context.Context, m msg.Message) error {
	if m == nil || m.TypeName() != q.s.respROS {
		return fmt.Errorf("the answer is a %T, not a %s", m, q.s.respROS)
	}
	w := cdr.NewWriter(nil, q.distro)
	var related *rtps.SampleIdentity
	if q.how == styleHeader {
		w.Uint64(q.client)
		w.Int64(q.seq)
	} else {
		related = &q.related
	}
	m.MarshalCDR(w)
	if err := w.Err(); err != nil {
		return err
	}
	if err := q.meet(ctx); err != nil {
		return err
	}
	_, err := q.s.w.Write(ctx, w.Bytes(), related)
	return err
}

// meet waits until the reader of the answer knows our writer; after a while the answer is written all the same.
func (q *request) meet(ctx context.Context) error {
	deadline, cancel := context.WithTimeout(ctx, replyWait)
	defer cancel()
	for {
		next := q.s.n.d.next()
		g, matched := q.reader()
		if matched && q.s.w.Synced(g) {
			return nil
		}
		if matched {
			_ = q.s.w.WaitSynced(deadline, 1) // looked at above and below
			if q.s.w.Synced(g) || deadline.Err() != nil {
				return ctx.Err()
			}
		}
		select {
		case <-next:
		case <-deadline.Done():
			return ctx.Err()
		}
	}
}

// reader finds the reply reader of who asked: by its GUID if the request says it, by the client's id in its user data,
// or the only one of its participant.
func (q *request) reader() (rtps.GUID, bool) {
	matched := q.s.w.Matched()
	for _, e := range matched {
		if e.GUID == q.related.Writer {
			return e.GUID, true
		}
	}
	id := ""
	for _, e := range q.s.r.Matched() {
		if e.GUID == q.writer {
			id = userData(e.UserData, "clientid")
		}
	}
	prefix := q.writer.Prefix()
	of := slices.DeleteFunc(matched, func(e rtps.Endpoint) bool {
		return e.GUID.Prefix() != prefix || id != "" && userData(e.UserData, "clientid") != id
	})
	if len(of) == 0 {
		return rtps.GUID{}, false
	}
	return of[0].GUID, true
}

// Close ends the service: functions that run see their context end, and their answers are not sent.
func (s *server) Close() (err error) {
	s.once.Do(func() {
		s.n.drop(s)
		close(s.done)
		err = errors.Join(s.n.closeReader(s.r), s.n.closeWriter(s.w))
		if !s.run.end() {
			s.n.d.log.Warn("a function goes on though its service was closed and its context has ended", "what", s.what)
		}
	})
	return err
}
