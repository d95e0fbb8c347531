package dds

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/msg/action_msgs"
	"viad/ros/rtps"
)

const (
	// resultKept is how long the result of a goal that has ended is kept for who asks late.
	resultKept = 15 * time.Minute
	// mostGoals bounds the goals that a server keeps; the oldest that have ended go first, and more are refused.
	mostGoals = 1024
	// mostWaiting bounds who waits for the result of one goal.
	mostWaiting = 64
)

// actionServer serves an action.
type actionServer struct {
	n        *Node
	a        ros.Action
	h        ros.ActionHandler
	what     string
	kind     string
	services []*server
	feedback *rtps.Writer
	status   *rtps.Writer
	run      scope
	once     sync.Once

	mu     sync.Mutex
	closed bool
	goals  map[ros.GoalID]*served
	order  []ros.GoalID // as they were accepted
}

// served is one goal.
type served struct {
	id       ros.GoalID
	accepted time.Time
	status   ros.GoalStatus
	cancel   context.CancelFunc
	result   msg.Message // when it has ended
	ended    time.Time
	waiting  []*request // for the result
}

func (o *served) over() bool { return o.status >= ros.GoalSucceeded }

// ServeAction serves an action.
func (n *Node) ServeAction(a ros.Action, h ros.ActionHandler) (ros.Closer, error) {
	if err := checkName(a.Name); err != nil {
		return nil, err
	}
	if h.Run == nil {
		return nil, errors.New("an action server without Run can do nothing")
	}
	kind, err := actionKind(a)
	if err != nil {
		return nil, err
	}
	s := &actionServer{n: n, a: a, h: h, what: "action " + a.Name, kind: kind, goals: map[ros.GoalID]*served{}}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := n.keep(s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.tell()
	return s, nil
}

// open makes the topics first: who sees the services finds them.
func (s *actionServer) open() (err error) {
	sub := s.a.Name + "/_action/"
	typ, err := ddsType(s.kind + "_FeedbackMessage")
	if err != nil {
		return err
	}
	if s.feedback, err = s.n.newWriter(rtps.WriterConfig{Topic: topicPrefix + sub + "feedback", Type: typ, QoS: rtps.QoS{Reliable: true, Depth: 100}}); err != nil {
		return err
	}
	m := new(action_msgs.GoalStatusArray)
	if typ, err = ddsType(m.TypeName()); err != nil {
		return err
	}
	if s.status, err = s.n.newWriter(rtps.WriterConfig{Topic: topicPrefix + sub + "status", Type: typ, QoS: graphQoS, UserData: s.n.hash(m)}); err != nil {
		return err
	}
	add := func(name string, req func() msg.Message, resp msg.Message, f func(*request)) {
		if err != nil {
			return
		}
		var v *server
		if v, err = s.n.serve(s.what, sub+name, req, resp, f); err == nil {
			s.services = append(s.services, v)
		}
	}
	add("cancel_goal", func() msg.Message { return new(action_msgs.CancelGoal_Request) }, new(action_msgs.CancelGoal_Response), s.onCancel)
	add("get_result", func() msg.Message { return &getResultRequest{wrap: wrap(s.kind + "_GetResult_Request")} }, s.response(0, nil), s.onResult)
	add("send_goal", func() msg.Message {
		return &sendGoalRequest{wrap: wrap(s.kind + "_SendGoal_Request"), goal: s.a.Goal()}
	}, &sendGoalResponse{wrap: wrap(s.kind + "_SendGoal_Response")}, s.onGoal)
	return err
}

func (s *actionServer) response(status ros.GoalStatus, result msg.Message) msg.Message {
	if result == nil {
		result = s.a.Result()
	}
	return &getResultResponse{wrap: wrap(s.kind + "_GetResult_Response"), status: status, result: result}
}

// reply answers in a goroutine: the requester's reader may have to be waited for.
func (s *actionServer) reply(q *request, m msg.Message) {
	s.run.run(func(ctx context.Context) {
		if err := q.answer(ctx, m); err != nil && ctx.Err() == nil {
			s.n.d.log.Warn("an answer was not sent", "what", s.what, "error", err)
		}
	})
}

// onGoal takes or refuses a goal.
func (s *actionServer) onGoal(q *request) {
	m, ok := q.message.(*sendGoalRequest)
	if !ok {
		return
	}
	now := time.Now()
	a := &sendGoalResponse{wrap: wrap(s.kind + "_SendGoal_Response"), sec: int32(now.Unix()), nanosec: uint32(now.Nanosecond())} //nolint:gosec // ROS's time
	if s.h.Accept != nil && !s.h.Accept(m.goal) {
		s.reply(q, a)
		return
	}
	o := &served{id: m.id, accepted: now, status: ros.GoalAccepted}
	s.mu.Lock()
	a.accepted = s.enter(o)
	s.mu.Unlock()
	if !a.accepted {
		s.n.d.log.Warn("a goal was refused: its id is taken, or there are too many", "what", s.what)
		s.reply(q, a)
		return
	}
	s.tell()
	started := s.run.run(func(ctx context.Context) {
		if err := q.answer(ctx, a); err != nil {
			s.n.d.log.Warn("the acceptance of a goal was not sent", "what", s.what, "error", err)
		}
		s.execute(ctx, o, m.goal)
	})
	if !started {
		s.mu.Lock()
		delete(s.goals, o.id)
		s.mu.Unlock()
	}
}

// enter keeps a goal, and lets old ones go. Holds mu.
func (s *actionServer) enter(o *served) bool {
	if s.goals[o.id] != nil || s.closed {
		return false
	}
	s.order = slices.DeleteFunc(s.order, func(id ros.GoalID) bool {
		old := s.goals[id]
		if old == nil || old.over() && (len(s.goals) >= mostGoals || time.Since(old.ended) > resultKept) {
			delete(s.goals, id)
			return true
		}
		return false
	})
	if len(s.goals) >= mostGoals {
		return false
	}
	s.goals[o.id] = o
	s.order = append(s.order, o.id)
	return true
}

// execute runs a goal to its end.
func (s *actionServer) execute(ctx context.Context, o *served, goal msg.Message) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	o.cancel = cancel
	if o.status == ros.GoalCanceling {
		cancel() // it was asked for before we came here
	} else {
		o.status = ros.GoalExecuting
	}
	s.mu.Unlock()
	s.tell()
	result, status := s.h.Run(ctx, o.id, goal, func(m msg.Message) { s.feed(ctx, o.id, m) })
	if status < ros.GoalSucceeded || status > ros.GoalAborted {
		s.n.d.log.Error("an action's function ended with a status that is no end; the goal counts as aborted", "what", s.what, "status", int(status))
		status = ros.GoalAborted
	}
	if result == nil {
		result = s.a.Result()
	}
	s.settle(o, result, status)
}

// settle ends a goal and answers who waits for its result.
func (s *actionServer) settle(o *served, result msg.Message, status ros.GoalStatus) {
	// The feedback arrives before the result does, where the client acknowledges in time.
	ctx, cancel := context.WithTimeout(context.Background(), replyWait)
	_ = s.feedback.WaitAcked(ctx) // as far as it can be had
	cancel()
	s.mu.Lock()
	o.status, o.result, o.ended = status, result, time.Now()
	waiting := o.waiting
	o.waiting = nil
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return // the server is gone: its clients are told so by that
	}
	s.tell()
	for _, q := range waiting {
		s.reply(q, s.response(status, result))
	}
}

// feed publishes feedback.
func (s *actionServer) feed(ctx context.Context, id ros.GoalID, m msg.Message) {
	w := cdr.NewWriter(nil, s.n.d.graph.distro())
	(&feedbackMessage{id: id, feedback: m}).MarshalCDR(w)
	err := w.Err()
	if err == nil {
		_, err = s.feedback.Write(context.WithoutCancel(ctx), w.Bytes(), nil)
	}
	if err != nil && !errors.Is(err, rtps.ErrClosed) {
		s.n.d.log.Warn("feedback was not sent", "what", s.what, "error", err)
	}
}

// onResult answers when the goal has ended.
func (s *actionServer) onResult(q *request) {
	m, ok := q.message.(*getResultRequest)
	if !ok {
		return
	}
	s.mu.Lock()
	o := s.goals[m.id]
	if o != nil && !o.over() && len(o.waiting) < mostWaiting {
		o.waiting = append(o.waiting, q)
		s.mu.Unlock()
		return
	}
	a := s.response(ros.GoalUnknown, nil)
	if o != nil && o.over() {
		a = s.response(o.status, o.result)
	}
	s.mu.Unlock()
	s.reply(q, a)
}

// onCancel cancels what the request names: a goal, all goals accepted until a time, both, or all.
func (s *actionServer) onCancel(q *request) {
	m, ok := q.message.(*action_msgs.CancelGoal_Request)
	if !ok {
		return
	}
	id := ros.GoalID(m.GoalInfo.GoalId.Uuid)
	stamp := time.Unix(int64(m.GoalInfo.Stamp.Sec), int64(m.GoalInfo.Stamp.Nanosec))
	until := m.GoalInfo.Stamp.Sec != 0 || m.GoalInfo.Stamp.Nanosec != 0
	every := id == ros.GoalID{} && !until
	a := new(action_msgs.CancelGoal_Response)
	s.mu.Lock()
	named := s.goals[id]
	switch {
	case id == ros.GoalID{} || until:
	case named == nil:
		a.ReturnCode = action_msgs.CancelGoal_Response_ERROR_UNKNOWN_GOAL_ID
	case named.over():
		a.ReturnCode = action_msgs.CancelGoal_Response_ERROR_GOAL_TERMINATED
	}
	var chosen []*served
	for _, gid := range s.order {
		o := s.goals[gid]
		if o != nil && !o.over() && (every || gid == id || until && !o.accepted.After(stamp)) {
			chosen = append(chosen, o)
		}
	}
	s.mu.Unlock()
	refused := false
	for _, o := range chosen {
		if s.h.Cancel != nil && !s.h.Cancel(o.id) {
			refused = true
			continue
		}
		s.mu.Lock()
		if !o.over() {
			o.status = ros.GoalCanceling
			if o.cancel != nil {
				o.cancel()
			}
			a.GoalsCanceling = append(a.GoalsCanceling, o.info())
		}
		s.mu.Unlock()
	}
	if refused && len(a.GoalsCanceling) == 0 {
		a.ReturnCode = action_msgs.CancelGoal_Response_ERROR_REJECTED
	}
	s.tell()
	s.reply(q, a)
}

func (o *served) info() (i action_msgs.GoalInfo) {
	i.GoalId.Uuid = o.id
	i.Stamp.Sec = int32(o.accepted.Unix()) //nolint:gosec // ROS's time ends in 2038
	i.Stamp.Nanosec = uint32(o.accepted.Nanosecond())
	return i
}

// tell publishes the states of all goals.
func (s *actionServer) tell() {
	s.mu.Lock()
	defer s.mu.Unlock() // so that an older state does not come last
	m := new(action_msgs.GoalStatusArray)
	for _, id := range s.order {
		if o := s.goals[id]; o != nil {
			m.StatusList = append(m.StatusList, action_msgs.GoalStatus{GoalInfo: o.info(), Status: int8(o.status)})
		}
	}
	if s.closed {
		return
	}
	w := cdr.NewWriter(nil, s.n.d.graph.distro())
	m.MarshalCDR(w)
	if _, err := s.status.Write(context.Background(), w.Bytes(), nil); err != nil && !errors.Is(err, rtps.ErrClosed) {
		s.n.d.log.Warn("the states of goals were not published", "what", s.what, "error", err)
	}
}

// Close ends the server: the contexts of goals end.
func (s *actionServer) Close() (err error) {
	s.once.Do(func() {
		s.n.drop(s)
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		errs := make([]error, 0, len(s.services)+2)
		for _, v := range s.services {
			errs = append(errs, v.Close())
		}
		errs = append(errs, s.n.closeWriter(s.feedback), s.n.closeWriter(s.status))
		if !s.run.end() {
			s.n.d.log.Warn("a goal goes on though its server was closed and its context has ended", "what", s.what)
		}
		err = errors.Join(errs...)
	})
	return err
}
