package ros1

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/msg"
)

const (
	statusPeriod = 200 * time.Millisecond // as actionlib's own servers
	keepListed   = 5 * time.Second        // so long a goal stays in the list after its end
)

// goalServer serves an action.
type goalServer struct {
	n      *Node
	action ros.Action
	server ros.ActionHandler
	open   func() (context.Context, context.CancelFunc)
	stop   context.CancelFunc
	once   sync.Once

	status, feedback, result *outlet
	goal, cancel             *subscription

	mu         sync.Mutex
	closed     bool
	made       int
	lastCancel rosTime
	goals      map[string]*served
	order      []string
}

// served is one goal; its state is under the server's mu.
type served struct {
	state  goalState
	id     ros.GoalID
	ended  time.Time
	cancel context.CancelFunc
}

// ServeAction implements ros.Node.
func (n *Node) ServeAction(action ros.Action, server ros.ActionHandler) (ros.Closer, error) {
	t, err := n.actionTopics(action)
	if err != nil {
		return nil, err
	}
	if server.Run == nil {
		return nil, fmt.Errorf("the server of %s has no Run", action.Name)
	}
	ctx, stop := n.scope()
	s := &goalServer{
		n: n, action: action, server: server, stop: stop, goals: make(map[string]*served),
		open: func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
	}
	var errs [5]error
	some := ros.QoS{Reliable: true, Depth: 100}
	s.status, errs[0] = n.advertise(t.name+"/status", t.status, ros.QoS{Reliable: true, Transient: true, Depth: 50})
	s.feedback, errs[1] = n.advertise(t.name+"/feedback", t.feedback, some)
	s.result, errs[2] = n.advertise(t.name+"/result", t.result, some)
	s.goal, errs[3] = n.subscribe(t.name+"/goal", t.goal, ros.QoS{Reliable: true, KeepAll: true, Depth: 100}, s.handle(s.onGoal))
	s.cancel, errs[4] = n.subscribe(t.name+"/cancel", t.cancel, ros.QoS{Reliable: true, KeepAll: true, Depth: 100}, s.handle(s.onCancel))
	if err := errors.Join(errs[:]...); err != nil {
		stop()
		closeAll(s.status, s.feedback, s.result, s.goal, s.cancel)
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.shut {
		stop()
		return nil, errClosed
	}
	n.wg.Go(func() { s.tell(ctx) })
	return s, nil
}

func (s *goalServer) handle(f func(packet) error) func(*subscription) func(packet) {
	return func(sub *subscription) func(packet) {
		return func(p packet) {
			if err := f(p); err != nil {
				sub.counter.malformed.Add(1)
				s.n.log.Warn("an actionlib message could not be read", "action", s.action.Name, "from", p.from, "err", err)
			}
		}
	}
}

// tell publishes the list of goals five times a second.
func (s *goalServer) tell(ctx context.Context) {
	tick := time.NewTicker(statusPeriod)
	defer tick.Stop()
	for {
		s.mu.Lock()
		s.publishStatus()
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// publishStatus forgets the goals that ended long ago and publishes the rest; mu is held.
func (s *goalServer) publishStatus() {
	order := s.order[:0]
	for _, id := range s.order {
		if g := s.goals[id]; !g.ended.IsZero() && time.Since(g.ended) > keepListed {
			delete(s.goals, id)
			continue
		}
		order = append(order, id)
	}
	s.order = order
	s.publish(s.status, func(b []byte) ([]byte, error) {
		b = putUint(putHeader(b), 4, uint64(len(s.order)))
		for _, id := range s.order {
			b = putGoalState(b, s.goals[id].state)
		}
		return b, nil
	})
}

func (s *goalServer) publish(o *outlet, fill func([]byte) ([]byte, error)) {
	f, err := frame(fill)
	if err == nil {
		err = o.send(context.Background(), f) // it waits for nothing: the outlets keep the last
	}
	if err != nil {
		s.n.log.Debug("an actionlib message was not sent", "topic", o.e.topic, "err", err)
	}
}

func (s *goalServer) onGoal(p packet) error {
	r := &reader{b: p.data}
	r.header()
	stamp, id := r.goalID()
	if r.err != nil {
		return r.err
	}
	m := s.action.Goal()
	err := s.n.types.decode(r.b, m, true)

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if id == "" {
		s.made++
		id = s.n.name + "-" + strconv.Itoa(s.made) + "-" + strconv.FormatInt(time.Now().UnixNano(), 10)
	}
	if _, twice := s.goals[id]; twice {
		return nil
	}
	early := !stamp.zero() && !stamp.after(s.lastCancel)
	if stamp.zero() {
		stamp = now()
	}
	g := &served{state: goalState{stamp: stamp, id: id, status: pending}, id: goalID(id)}
	s.goals[id] = g
	s.order = append(s.order, id)
	switch {
	case err != nil:
		s.conclude(g, rejected, "the goal could not be read: "+err.Error(), nil)
		return err
	case early:
		s.conclude(g, recalled, "its stamp is not after the last cancel", nil)
	case !s.accepts(m):
		s.conclude(g, rejected, "the server does not take this goal", nil)
	default:
		ctx, cancel := s.open()
		g.state.status, g.cancel = active, cancel
		s.publishStatus()
		s.n.wg.Go(func() { s.run(ctx, g, m) })
	}
	return nil
}

// accepts asks the handler, which may look at the server meanwhile.
func (s *goalServer) accepts(m msg.Message) bool {
	if s.server.Accept == nil {
		return true
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.server.Accept(m)
}

func (s *goalServer) run(ctx context.Context, g *served, m msg.Message) {
	defer g.cancel()
	result, status := s.server.Run(ctx, g.id, m, func(feedback msg.Message) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !g.ended.IsZero() {
			return
		}
		s.publish(s.feedback, func(b []byte) ([]byte, error) {
			return s.n.types.encode(putGoalState(putHeader(b), g.state), feedback)
		})
	})
	s.feedback.e.drain() // a client that gets the result first throws feedback away
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conclude(g, ending(status), "", result)
}

// ending is how a Run's end reads on the wire; anything but success and a cancel is an abort.
func ending(status ros.GoalStatus) uint8 {
	if status == ros.GoalSucceeded {
		return succeeded
	}
	if status == ros.GoalCanceled {
		return preempted
	}
	return aborted
}

// conclude ends a goal and publishes its result; mu is held.
func (s *goalServer) conclude(g *served, wire uint8, text string, result msg.Message) {
	g.state.status, g.state.text, g.ended = wire, text, time.Now()
	if s.closed { // to its clients the server is gone
		return
	}
	if result == nil {
		result = s.action.Result()
	}
	f, err := frame(func(b []byte) ([]byte, error) { return s.n.types.encode(putGoalState(putHeader(b), g.state), result) })
	if err != nil {
		s.n.log.Error("a result could not be written; an empty one is sent and the goal aborted", "action", s.action.Name, "err", err)
		g.state.status, g.state.text = aborted, err.Error()
		f, err = frame(func(b []byte) ([]byte, error) {
			return s.n.types.encode(putGoalState(putHeader(b), g.state), s.action.Result())
		})
	}
	if err == nil {
		err = s.result.send(context.Background(), f)
	}
	if err != nil {
		s.n.log.Warn("a result was not sent", "action", s.action.Name, "err", err)
	}
	s.publishStatus()
}

// onCancel cancels as actionlib does: everything, or one goal, or all up to a time.
func (s *goalServer) onCancel(p packet) error {
	r := &reader{b: p.data}
	stamp, id := r.goalID()
	if r.err != nil {
		return r.err
	}
	s.mu.Lock()
	var hit []*served
	for _, g := range s.goals {
		all := id == "" && stamp.zero()
		before := !stamp.zero() && !g.state.stamp.after(stamp)
		if (all || before || g.state.id == id) && g.state.status == active {
			hit = append(hit, g)
		}
	}
	if stamp.after(s.lastCancel) {
		s.lastCancel = stamp
	}
	s.mu.Unlock()
	for _, g := range hit {
		if s.server.Cancel != nil && !s.server.Cancel(g.id) {
			continue
		}
		s.mu.Lock()
		if g.state.status == active {
			g.state.status = preempting
			s.publishStatus()
		}
		s.mu.Unlock()
		g.cancel()
	}
	return nil
}

// Close implements ros.Closer: the goals are cancelled, and to their clients the server is gone.
func (s *goalServer) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		closeAll(s.goal, s.cancel, s.status, s.feedback, s.result)
		s.stop()
	})
	return nil
}
