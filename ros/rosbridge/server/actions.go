package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"viad/ros"
	"viad/ros/msg"
)

// goal is a goal that a client sent.
type goal struct {
	c      *client
	accept chan struct{} // closed when the goal is accepted or never will be
	mu     sync.Mutex
	g      ros.Goal
}

func (g *goal) cancelNow() {
	g.mu.Lock()
	x := g.g
	g.mu.Unlock()
	if x == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cancelFor)
	defer cancel()
	_ = x.Cancel(ctx) // the client that could be told has gone
}

func (s *Server) action(name, typ string) (ros.Action, error) {
	typ = full(typ, "action")
	a := ros.Action{Name: name}
	for part, into := range map[string]*func() msg.Message{"_Goal": &a.Goal, "_Result": &a.Result, "_Feedback": &a.Feedback} {
		mk, err := s.make(typ + part)
		if err != nil {
			return a, err
		}
		*into = mk
	}
	return a, nil
}

func (c *client) sendGoal(ctx context.Context, o *op) {
	// Goals that outlive their socket also outlive its context.
	run := ctx
	if c.s.o.GoalsOutliveSocket {
		var cancel context.CancelFunc
		run, cancel = context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			select {
			case <-c.s.run:
				cancel()
			case <-stop:
			}
		}()
	}
	g := &goal{c: c, accept: make(chan struct{})}
	c.s.mu.Lock()
	c.s.goals[o.key()] = g
	c.s.mu.Unlock()
	a, err := c.runGoal(run, ctx, o, g)
	c.s.mu.Lock()
	if c.s.goals[o.key()] == g { // another goal may have come with the same id
		delete(c.s.goals, o.key())
	}
	c.s.mu.Unlock()
	a.Op, a.ID, a.Action = "action_result", c.idFor(o), o.Action
	if err != nil {
		var rejected *ros.Rejected
		if errors.As(err, &rejected) {
			err = suiteError("Action goal was rejected")
			if c.s.o.RejectedHangs {
				<-run.Done()
				return
			}
		}
		a.Values, a.Status, a.Result = words(err.Error()), ptr(0), ptr(false)
	}
	c.reply(ctx, a)
}

// runGoal sends the goal and waits for its end. ctx is the goal's, conn the connection's, which carries the feedback.
func (c *client) runGoal(ctx, conn context.Context, o *op, g *goal) (answer, error) {
	var once sync.Once
	accepted := func() { once.Do(func() { close(g.accept) }) }
	defer accepted()
	act, err := c.s.action(o.Action, o.ActionType)
	if err != nil {
		return answer{}, err
	}
	m := act.Goal()
	if err := fromJSON(o.Args, m); err != nil {
		return answer{}, err
	}
	graph, err := c.s.o.Node.Graph(ctx)
	if err != nil {
		return answer{}, err
	}
	if !served(graph, o.Action) {
		if c.s.o.MissingHangs {
			<-ctx.Done()
		}
		return answer{}, suiteError("No action server available")
	}
	x, err := c.s.o.Node.ActionClient(act)
	if err != nil {
		return answer{}, err
	}
	defer shut(x)
	var feedback func(msg.Message)
	if o.Feedback {
		feedback = func(fb msg.Message) {
			c.reply(conn, answer{Op: "action_feedback", ID: c.idFor(o), Action: o.Action, Values: c.s.toJSON(fb)})
		}
	}
	taken, err := x.Send(ctx, m, feedback)
	if err != nil {
		return answer{}, err
	}
	g.mu.Lock()
	g.g = taken
	g.mu.Unlock()
	accepted()
	result := act.Result()
	status, err := taken.Result(ctx, result)
	if err != nil {
		return answer{}, err
	}
	a := answer{Values: c.s.toJSON(result), Result: ptr(true), Status: ptr(int(status))}
	if status == ros.GoalCanceled && c.s.o.NoStatus {
		a.Status = nil
	}
	return a, nil
}

func served(g ros.Graph, action string) bool {
	for _, a := range g.Actions {
		if a.Name == action {
			return true
		}
	}
	return false
}

func (c *client) cancelGoal(ctx context.Context, o *op) {
	if c.s.o.CancelIgnored {
		return
	}
	c.s.mu.Lock()
	g := c.s.goals[o.key()]
	c.s.mu.Unlock()
	if g == nil || (c.s.o.CancelOnlyOwn && g.c != c) {
		return
	}
	if !c.s.o.EarlyCancelLost {
		select {
		case <-g.accept:
		case <-ctx.Done():
			return
		}
	}
	g.cancelNow()
}

// actGoal is a goal of an action that a client serves.
type actGoal struct {
	feedback func(msg.Message)
	end      chan op // buffered
	lost     chan struct{}
	once     sync.Once
	act      ros.Action
}

func (g *actGoal) lose() { g.once.Do(func() { close(g.lost) }) }

func (c *client) advertiseAction(ctx context.Context, o *op) error {
	act, err := c.s.action(o.Action, o.Type)
	if err != nil {
		return err
	}
	typ := o.Type
	_ = drop(c, c.acting, o.Action) // the newest counts, as in rosbridge_suite
	x, err := c.s.o.Node.ServeAction(act, ros.ActionHandler{
		Run: func(run context.Context, _ ros.GoalID, m msg.Message, feedback func(msg.Message)) (msg.Message, ros.GoalStatus) {
			return c.act(run, ctx, act, typ, m, feedback)
		},
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.acting == nil {
		shut(x)
		return nil
	}
	c.acting[o.Action] = x
	return nil
}

// act has a client run a goal; run is the goal's context, conn the connection's.
func (c *client) act(run, conn context.Context, act ros.Action, typ string, m msg.Message, feedback func(msg.Message)) (msg.Message, ros.GoalStatus) {
	g := &actGoal{feedback: feedback, end: make(chan op, 1), lost: make(chan struct{}), act: act}
	c.mu.Lock()
	c.counter++
	id := words(fmt.Sprintf("action_goal:%s:%d", act.Name, c.counter))
	c.actGoals[string(id)] = g
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.actGoals, string(id))
		c.mu.Unlock()
	}()
	c.reply(conn, answer{Op: "send_action_goal", ID: id, Action: act.Name, Type: typ, Args: c.s.toJSON(m), Wants: true})
	canceled := run.Done()
	for {
		select {
		case o := <-g.end:
			result := act.Result()
			if o.Result == nil || !*o.Result || fromJSON(o.Values, result) != nil {
				return act.Result(), ros.GoalAborted
			}
			return result, ros.GoalStatus(o.Status) // a status
		case <-canceled:
			canceled = nil
			c.reply(conn, answer{Op: "cancel_action_goal", ID: id, Action: act.Name})
		case <-g.lost:
			return act.Result(), ros.GoalAborted
		case <-conn.Done():
			return act.Result(), ros.GoalAborted
		}
	}
}

func (c *client) acted(o *op) error {
	c.mu.Lock()
	g := c.actGoals[o.key()]
	c.mu.Unlock()
	if g == nil {
		return fmt.Errorf("unrecognized id %s", o.ID)
	}
	if o.Op == "action_result" {
		select {
		case g.end <- *o:
		default:
		}
		return nil
	}
	fb := g.act.Feedback()
	if err := fromJSON(o.Values, fb); err != nil {
		return err
	}
	g.feedback(fb)
	return nil
}
