package local

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/action_msgs"
)

// action is a server, with its goals.
type action struct {
	n       *Node
	a       ros.Action
	h       ros.ActionHandler
	gone    chan struct{}
	once    sync.Once
	closers []ros.Closer
	status  ros.Outlet

	mu    sync.Mutex
	goals []*goal
}

type goal struct {
	act    *action
	id     ros.GoalID
	at     time.Time
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	status ros.GoalStatus
	result []byte
	lost   bool // ended by the closing of its server: what it says then is no result
}

// ServeAction serves an action, with its status topic and its cancel service.
func (n *Node) ServeAction(a ros.Action, h ros.ActionHandler) (ros.Closer, error) {
	act := &action{n: n, a: a, h: h, gone: make(chan struct{})}
	var err error
	act.status, err = n.Advertise(ros.Topic{
		Name: a.Name + "/_action/status", QoS: ros.Latched(), New: func() msg.Message { return new(action_msgs.GoalStatusArray) },
	})
	if err != nil {
		return nil, err
	}
	srv, err := n.serve(ros.ServiceOf[action_msgs.CancelGoal_Request, action_msgs.CancelGoal_Response](a.Name+"/_action/cancel_goal"), act.cancelService, false)
	if err != nil {
		return nil, err
	}
	act.closers = []ros.Closer{act.status, srv}
	n.g.mu.Lock()
	if n.g.actions[a.Name] != nil {
		n.g.mu.Unlock()
		return nil, fmt.Errorf("local: the action %s is served", a.Name)
	}
	n.g.actions[a.Name] = act
	n.g.change()
	n.g.mu.Unlock()
	return act, n.keep(act)
}

func (a *action) Close() error {
	var err error
	a.once.Do(func() {
		close(a.gone)
		a.n.g.mu.Lock()
		if a.n.g.actions[a.a.Name] == a {
			delete(a.n.g.actions, a.a.Name)
			a.n.g.change()
		}
		a.n.g.mu.Unlock()
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, g := range a.goals {
			g.cancel()
		}
		for _, c := range a.closers {
			if e := c.Close(); e != nil {
				err = e
			}
		}
	})
	return err
}

func (g *goal) set(s ros.GoalStatus) {
	g.mu.Lock()
	g.status = s
	g.mu.Unlock()
	g.act.tell()
}

// tell publishes where all goals are.
func (a *action) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list action_msgs.GoalStatusArray
	for _, g := range a.goals {
		g.mu.Lock()
		var s action_msgs.GoalStatus
		s.GoalInfo.GoalId.Uuid = g.id
		s.GoalInfo.Stamp.Sec = int32(g.at.Unix())
		s.Status = int8(g.status)
		g.mu.Unlock()
		list.StatusList = append(list.StatusList, s)
	}
	_ = a.status.Publish(context.Background(), &list) // it fails only when the server is closed
}

func (a *action) cancelService(_ context.Context, m msg.Message) (msg.Message, error) {
	q, ok := m.(*action_msgs.CancelGoal_Request)
	if !ok {
		return nil, fmt.Errorf("local: a %T", m)
	}
	id := ros.GoalID(q.GoalInfo.GoalId.Uuid)
	r := &action_msgs.CancelGoal_Response{ReturnCode: 2}
	a.mu.Lock()
	goals := append([]*goal(nil), a.goals...)
	a.mu.Unlock()
	for _, g := range goals {
		if id != (ros.GoalID{}) && id != g.id {
			continue
		}
		if r.ReturnCode == 2 {
			r.ReturnCode = 0
		}
		if g.tryCancel() {
			var info action_msgs.GoalInfo
			info.GoalId.Uuid = g.id
			r.GoalsCanceling = append(r.GoalsCanceling, info)
		} else if id != (ros.GoalID{}) {
			r.ReturnCode = 1
			select {
			case <-g.done:
				r.ReturnCode = 3
			default:
			}
		}
	}
	if id == (ros.GoalID{}) {
		r.ReturnCode = 0
	}
	return r, nil
}

// tryCancel says whether the goal is being cancelled now.
func (g *goal) tryCancel() bool {
	g.mu.Lock()
	over := g.status >= ros.GoalSucceeded
	g.mu.Unlock()
	if over || (g.act.h.Cancel != nil && !g.act.h.Cancel(g.id)) {
		return false
	}
	g.mu.Lock()
	if g.status < ros.GoalCanceling {
		g.status = ros.GoalCanceling
	}
	g.mu.Unlock()
	g.act.tell()
	g.cancel()
	return true
}

type goaler struct {
	n *Node
	a ros.Action
}

// ActionClient makes a client of an action.
func (n *Node) ActionClient(a ros.Action) (ros.Goaler, error) {
	return &goaler{n, a}, n.keep(nothing{})
}

func (c *goaler) Close() error { return nil }

func (c *goaler) Ready(ctx context.Context) error {
	if err := c.n.g.until(ctx, c.n, func() bool { return c.n.g.actions[c.a.Name] != nil }); err != nil {
		return &ros.Absent{What: "action " + c.a.Name, Why: err.Error()}
	}
	return nil
}

func (c *goaler) Send(ctx context.Context, m msg.Message, feedback func(msg.Message)) (ros.Goal, error) {
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	c.n.g.mu.Lock()
	act := c.n.g.actions[c.a.Name]
	c.n.g.mu.Unlock()
	if act == nil {
		return nil, &ros.Absent{What: "action " + c.a.Name}
	}
	q := act.a.Goal()
	if err := through(m, q); err != nil {
		return nil, err
	}
	if act.h.Accept != nil && !act.h.Accept(q) {
		return nil, &ros.Rejected{Action: c.a.Name}
	}
	g := &goal{act: act, at: time.Now(), done: make(chan struct{}), status: ros.GoalAccepted}
	if _, err := rand.Read(g.id[:]); err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.cancel = cancel
	act.mu.Lock()
	act.goals = append(act.goals, g)
	act.mu.Unlock()
	act.tell()
	go g.run(run, q, feedback)
	return &handle{c, g}, nil
}

func (g *goal) run(ctx context.Context, m msg.Message, feedback func(msg.Message)) {
	defer g.cancel()
	g.mu.Lock()
	canceling := g.status == ros.GoalCanceling
	g.mu.Unlock()
	if !canceling {
		g.set(ros.GoalExecuting)
	}
	result, status := g.act.h.Run(ctx, g.id, m, func(fb msg.Message) {
		copied := g.act.a.Feedback()
		if feedback != nil && through(fb, copied) == nil {
			feedback(copied)
		}
	})
	b, err := bytesOf(result)
	if err != nil {
		status = ros.GoalAborted
	}
	g.mu.Lock()
	g.result = b
	select {
	case <-g.act.gone:
		g.lost = true
	default:
	}
	g.mu.Unlock()
	g.set(status)
	close(g.done)
}

// handle is a client's view of a goal.
type handle struct {
	c *goaler
	g *goal
}

func (h *handle) ID() ros.GoalID { return h.g.id }

func (h *handle) Status() ros.GoalStatus {
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	return h.g.status
}

func (h *handle) Cancel(context.Context) error {
	if !h.g.tryCancel() && h.Status() < ros.GoalSucceeded {
		return &ros.Rejected{Action: h.c.a.Name, Why: "it will not cancel"}
	}
	return nil
}

func (h *handle) Result(ctx context.Context, m msg.Message) (ros.GoalStatus, error) {
	gone := &ros.Gone{What: "action " + h.c.a.Name, Why: "its server was closed"}
	select {
	case <-h.g.done:
	case <-h.g.act.gone:
		return ros.GoalUnknown, gone
	case <-h.c.n.done:
		return ros.GoalUnknown, errClosed
	case <-ctx.Done():
		return ros.GoalUnknown, ctx.Err()
	}
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	if h.g.lost {
		return ros.GoalUnknown, gone
	}
	return h.g.status, read(h.g.result, m)
}

// CancelAll asks for every goal.
func (c *goaler) CancelAll(ctx context.Context) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	c.n.g.mu.Lock()
	act := c.n.g.actions[c.a.Name]
	c.n.g.mu.Unlock()
	if act == nil {
		return &ros.Absent{What: "action " + c.a.Name}
	}
	_, err := act.cancelService(ctx, new(action_msgs.CancelGoal_Request))
	return err
}
