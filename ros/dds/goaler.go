package dds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/msg/action_msgs"
	"viad/ros/msg/unique_identifier_msgs"
	"viad/ros/rtps"
)

// goaler is a ros.Goaler.
type goaler struct {
	n        *Node
	a        ros.Action
	what     string
	kind     string
	send     *client
	results  *client
	cancels  *client
	feedback *rtps.Reader
	status   *rtps.Reader
	run      scope
	once     sync.Once

	handled atomic.Uint64 // feedback messages that went through
	flushed chan struct{} // told after each of them

	mu    sync.Mutex
	goals map[ros.GoalID]*goal // that have not ended
}

// goal is a ros.Goal.
type goal struct {
	g        *goaler
	id       ros.GoalID
	feedback func(msg.Message)
	status   atomic.Int32
	done     chan struct{} // closed at the end; then err, final and payload hold
	err      error
	final    ros.GoalStatus
	payload  []byte // of the result
	distro   cdr.Distro
}

// ActionClient makes a client of an action.
func (n *Node) ActionClient(a ros.Action) (ros.Goaler, error) {
	if err := checkName(a.Name); err != nil {
		return nil, err
	}
	kind, err := actionKind(a)
	if err != nil {
		return nil, err
	}
	g := &goaler{n: n, a: a, what: "action " + a.Name, kind: kind, flushed: make(chan struct{}, 1), goals: map[ros.GoalID]*goal{}}
	if err := g.open(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if err := n.keep(g); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *goaler) open() (err error) {
	sub := g.a.Name + "/_action/"
	// First what listens: the endpoints of a node are announced in order, so that a server that is sure to get a goal also
	// knows of the readers of its feedback.
	typ, err := ddsType(g.kind + "_FeedbackMessage")
	if err != nil {
		return err
	}
	q := rtps.QoS{Reliable: true, Depth: 100}
	if g.feedback, err = g.n.newReader(rtps.ReaderConfig{Topic: topicPrefix + sub + "feedback", Type: typ, QoS: q, Queue: 1000}, g.onFeedback); err != nil {
		return err
	}
	m := new(action_msgs.GoalStatusArray)
	if typ, err = ddsType(m.TypeName()); err != nil {
		return err
	}
	q.TransientLocal = true
	if g.status, err = g.n.newReader(rtps.ReaderConfig{Topic: topicPrefix + sub + "status", Type: typ, QoS: q, UserData: g.n.hash(m)}, g.onStatus); err != nil {
		return err
	}
	if g.send, err = g.n.client(g.what, sub+"send_goal", &sendGoalRequest{wrap: wrap(g.kind + "_SendGoal_Request")}, &sendGoalResponse{wrap: wrap(g.kind + "_SendGoal_Response")}); err != nil {
		return err
	}
	if g.results, err = g.n.client(g.what, sub+"get_result", &getResultRequest{wrap: wrap(g.kind + "_GetResult_Request")}, &getResultResponse{wrap: wrap(g.kind + "_GetResult_Response")}); err != nil {
		return err
	}
	g.cancels, err = g.n.client(g.what, sub+"cancel_goal", new(action_msgs.CancelGoal_Request), new(action_msgs.CancelGoal_Response))
	return err
}

// onFeedback hands feedback to its goal.
func (g *goaler) onFeedback(s *rtps.Sample) {
	defer func() {
		g.handled.Add(1)
		select {
		case g.flushed <- struct{}{}:
		default:
		}
	}()
	m := &feedbackMessage{feedback: g.a.Feedback()}
	r := cdr.NewReader(s.Payload, g.n.d.graph.of(s.Writer.Prefix()))
	m.UnmarshalCDR(r)
	if err := r.Err(); err != nil {
		g.n.d.log.Warn("feedback cannot be read", "what", g.what, "error", err)
		return
	}
	g.mu.Lock()
	o := g.goals[m.id]
	g.mu.Unlock()
	if o != nil && o.feedback != nil {
		o.feedback(m.feedback)
	}
}

func (g *goaler) onStatus(s *rtps.Sample) {
	var m action_msgs.GoalStatusArray
	r := cdr.NewReader(s.Payload, g.n.d.graph.of(s.Writer.Prefix()))
	m.UnmarshalCDR(r)
	if r.Err() != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range m.StatusList {
		if o := g.goals[ros.GoalID(l.GoalInfo.GoalId.Uuid)]; o != nil {
			o.advance(ros.GoalStatus(l.Status))
		}
	}
}

// advance takes a newer status; they only grow.
func (o *goal) advance(s ros.GoalStatus) {
	for {
		was := o.status.Load()
		if int32(s) <= was || s > ros.GoalAborted || o.status.CompareAndSwap(was, int32(s)) {
			return
		}
	}
}

// Ready waits until the server is sure to get a goal and everything about it.
func (g *goaler) Ready(ctx context.Context) error {
	for _, c := range []*client{g.send, g.results, g.cancels} {
		if err := c.Ready(ctx); err != nil {
			return err
		}
	}
	for len(g.feedback.Matched()) == 0 {
		next := g.n.d.next()
		if len(g.feedback.Matched()) > 0 {
			break
		}
		select {
		case <-next:
		case <-ctx.Done():
			return &absentError{&ros.Absent{What: g.what, Why: "its services are there, its feedback is not"}, ctx.Err()}
		}
	}
	return nil
}

// Send sends a goal and waits until it is accepted.
func (g *goaler) Send(ctx context.Context, m msg.Message, feedback func(msg.Message)) (ros.Goal, error) {
	if t := m.TypeName(); t != g.kind+"_Goal" {
		return nil, fmt.Errorf("%s: the goal is a %s, the action has %s_Goal", g.what, t, g.kind)
	}
	if err := g.Ready(ctx); err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	o := &goal{g: g, id: id, feedback: feedback, done: make(chan struct{})}
	g.mu.Lock()
	g.goals[o.id] = o // before it is sent: feedback may overtake the answer
	g.mu.Unlock()
	req := &sendGoalRequest{wrap: wrap(g.kind + "_SendGoal_Request"), id: o.id, goal: m}
	a := &sendGoalResponse{wrap: wrap(g.kind + "_SendGoal_Response")}
	if err := g.send.Call(ctx, req, a); err != nil {
		g.forget(o)
		return nil, err
	}
	if !a.accepted {
		g.forget(o)
		return nil, &ros.Rejected{Action: g.a.Name}
	}
	o.advance(ros.GoalAccepted)
	if !g.run.run(o.fetch) {
		g.forget(o)
		return nil, errClosed
	}
	return o, nil
}

func (g *goaler) forget(o *goal) {
	g.mu.Lock()
	delete(g.goals, o.id)
	g.mu.Unlock()
}

// fetch asks for the result, which the server gives when there is one.
func (o *goal) fetch(ctx context.Context) {
	a := &getResultResponse{wrap: wrap(o.g.kind + "_GetResult_Response"), result: o.g.a.Result()}
	err := o.g.results.again(ctx, &getResultRequest{wrap: wrap(o.g.kind + "_GetResult_Request"), id: o.id}, a)
	if err == nil && a.status == ros.GoalUnknown {
		err = fmt.Errorf("%s does not know the goal any more: its result has expired, or the server was started anew", o.g.what)
	}
	if err == nil && (a.status < ros.GoalSucceeded || a.status > ros.GoalAborted) && a.status != ros.GoalUnknown {
		err = fmt.Errorf("%s answers the request for the result with the status %d, which is no end: whether the goal still runs is not known", o.g.what, a.status)
	}
	if err == nil {
		o.distro = o.g.n.d.graph.distro()
		w := cdr.NewWriter(nil, o.distro)
		a.result.MarshalCDR(w)
		o.payload, err = w.Bytes(), w.Err()
		o.final = a.status
		o.advance(a.status)
	}
	o.g.flush(ctx)
	o.err = err
	o.g.forget(o)
	close(o.done)
}

// flush waits until the feedback that has come by now is handed on: what was sent before the result is told before it.
func (g *goaler) flush(ctx context.Context) {
	t := time.NewTimer(time.Second) // the functions must not block; if one does, the result does not wait for it
	defer t.Stop()
	received, _, dropped := g.feedback.Stats()
	for {
		_, _, now := g.feedback.Stats()
		if g.handled.Load()+max(now, dropped) >= received {
			return
		}
		select {
		case <-g.flushed:
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// CancelAll asks for the end of every goal of the server.
func (g *goaler) CancelAll(ctx context.Context) error {
	return g.cancel(ctx, g.cancels.Call, ros.GoalID{}, "all goals")
}

func (g *goaler) cancel(ctx context.Context, call func(ctx context.Context, request, response msg.Message) error, id ros.GoalID, which string) error {
	q := new(action_msgs.CancelGoal_Request) // no stamp: whenever they were accepted
	q.GoalInfo.GoalId = unique_identifier_msgs.UUID{Uuid: id}
	var a action_msgs.CancelGoal_Response
	if err := call(ctx, q, &a); err != nil {
		return err
	}
	switch a.ReturnCode {
	case action_msgs.CancelGoal_Response_ERROR_NONE, action_msgs.CancelGoal_Response_ERROR_GOAL_TERMINATED:
		return nil
	case action_msgs.CancelGoal_Response_ERROR_REJECTED:
		return fmt.Errorf("the server of %s refuses to cancel %s", g.what, which)
	case action_msgs.CancelGoal_Response_ERROR_UNKNOWN_GOAL_ID:
		return fmt.Errorf("the server of %s does not know %s: it was started anew, or the goal has expired", g.what, which)
	}
	return fmt.Errorf("the server of %s answers the cancelling of %s with the code %d", g.what, which, a.ReturnCode)
}

// Close ends the client; goals go on at the server.
func (g *goaler) Close() (err error) {
	g.once.Do(func() {
		g.n.drop(g)
		errs := []error{g.n.closeReader(g.feedback), g.n.closeReader(g.status)}
		for _, c := range []*client{g.send, g.results, g.cancels} {
			if c != nil {
				errs = append(errs, c.Close())
			}
		}
		g.run.end()
		err = errors.Join(errs...)
	})
	return err
}

// ID is the goal's id.
func (o *goal) ID() ros.GoalID { return o.id }

// Status is the newest that was heard.
func (o *goal) Status() ros.GoalStatus { return ros.GoalStatus(o.status.Load()) } //nolint:gosec // at most 6

// Cancel asks for the goal's end.
func (o *goal) Cancel(ctx context.Context) error {
	return o.g.cancel(ctx, o.g.cancels.again, o.id, "the goal")
}

// Result waits for the end.
func (o *goal) Result(ctx context.Context, m msg.Message) (ros.GoalStatus, error) {
	select {
	case <-o.done:
	case <-ctx.Done():
		select {
		case <-o.done:
		default:
			return o.Status(), fmt.Errorf("the goal of %s has not ended: %w", o.g.what, ctx.Err())
		}
	}
	if o.err != nil {
		return o.Status(), o.err
	}
	if t, want := m.TypeName(), o.g.kind+"_Result"; t != want {
		return o.final, fmt.Errorf("%s: the result is read into a %s, the action has %s", o.g.what, t, want)
	}
	r := cdr.NewReader(o.payload, o.distro)
	m.UnmarshalCDR(r)
	return o.final, r.Err()
}
