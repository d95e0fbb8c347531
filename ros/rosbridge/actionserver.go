package rosbridge

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"sync"

	"viad/ros"
	"viad/ros/msg"
)

// actionServer serves an action through the rosbridge server, which accepts every goal and every cancelling on its own.
type actionServer struct {
	n       *Node
	action  ros.Action
	handler ros.ActionHandler
	ann     *announcement
	once    sync.Once
	busy    chan struct{}

	mu    sync.Mutex
	epoch uint64 // counts connections: the server begins its ids anew
	goals map[string]*servedGoal
}

type servedGoal struct {
	id     ros.GoalID
	wire   string
	cancel chan struct{}
	once   sync.Once
}

func (g *servedGoal) stop() { g.once.Do(func() { close(g.cancel) }) }

// ServeAction serves an action. The rosbridge server has accepted a goal before we hear of it: one that Accept refuses
// ends as aborted.
func (n *Node) ServeAction(action ros.Action, handler ros.ActionHandler) (ros.Closer, error) {
	if err := checkName("action", action.Name, action.Goal, action.Result, action.Feedback); err != nil {
		return nil, err
	}
	if handler.Run == nil {
		return nil, fmt.Errorf("rosbridge: the action %s has no Run", action.Name)
	}
	a := &actionServer{n: n, action: action, handler: handler, goals: map[string]*servedGoal{}, busy: make(chan struct{}, maxServing)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed
	}
	if n.actions[action.Name] != nil {
		return nil, fmt.Errorf("rosbridge: this node serves the action %s already", action.Name)
	}
	n.actions[action.Name] = a
	do := begin("advertise_action").text("action", action.Name).text("type", actionType(action.Goal().TypeName())).end()
	a.ann = n.data.want(do, begin("unadvertise_action").text("action", action.Name).end())
	return a, nil
}

func (a *actionServer) Close() error {
	a.once.Do(func() {
		a.n.mu.Lock()
		if a.n.actions[a.action.Name] == a {
			delete(a.n.actions, a.action.Name)
		}
		a.n.mu.Unlock()
		a.n.data.drop(a.ann)
		a.dropGoals()
	})
	return nil
}

// dropGoals stops what runs: the connection that would carry its result is gone.
func (a *actionServer) dropGoals() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epoch++
	for id, g := range a.goals {
		g.stop()
		delete(a.goals, id)
	}
}

func (n *Node) goalCame(_ context.Context, sock *socket, f *frame) {
	n.mu.Lock()
	a := n.actions[f.action]
	n.mu.Unlock()
	if a == nil {
		n.strays.Add(1)
		n.storm.warn("a goal came for an action that is not served here", "action", clip(f.action))
		return
	}
	select {
	case a.busy <- struct{}{}:
	default:
		n.storm.warn("a goal was dropped: as many run as may", "action", clip(f.action), "running", maxServing)
		return
	}
	a.mu.Lock()
	sum := sha256.Sum256([]byte(n.prefix + strconv.FormatUint(a.epoch, 10) + f.id))
	g := &servedGoal{wire: f.id, cancel: make(chan struct{})}
	copy(g.id[:], sum[:])
	a.goals[f.id] = g
	a.mu.Unlock()
	p := f.msg
	go n.spawn(func(ctx context.Context) {
		defer func() { <-a.busy }()
		a.run(ctx, sock, g, p)
	})
}

func (n *Node) cancelCame(f *frame) {
	n.mu.Lock()
	a := n.actions[f.action]
	n.mu.Unlock()
	if a == nil {
		n.strays.Add(1)
		return
	}
	a.mu.Lock()
	g := a.goals[f.id]
	a.mu.Unlock()
	if g == nil {
		return // it is over
	}
	if a.handler.Cancel == nil || a.handler.Cancel(g.id) {
		g.stop()
	}
}

func (a *actionServer) run(ctx context.Context, sock *socket, g *servedGoal, p payload) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-g.cancel:
			cancel()
		case <-ctx.Done():
		}
	}()
	o := a.outcome(ctx, sock, g, p)
	a.mu.Lock()
	mine := a.goals[g.wire] == g
	if mine {
		delete(a.goals, g.wire)
	}
	a.mu.Unlock()
	if !mine {
		return // of a connection that is over
	}
	// Also a cancelled goal's result must go.
	sctx, stop := context.WithTimeout(context.WithoutCancel(ctx), a.n.cfg.WriteTimeout)
	defer stop()
	if err := sock.send(sctx, o, false); err != nil {
		a.n.storm.warn("a result could not be sent", "action", a.action.Name, "why", err)
	}
}

func (a *actionServer) outcome(ctx context.Context, sock *socket, g *servedGoal, p payload) []byte {
	o := begin("action_result").text("id", g.wire).text("action", a.action.Name)
	refuse := func(why string) []byte {
		a.n.storm.warn("a goal ends as aborted", "action", a.action.Name, "why", why)
		return o.raw("values", []byte("{}")).int("status", int64(ros.GoalAborted)).bool("result", false).end()
	}
	m := a.action.Goal()
	if err := a.n.decode(payloadOr(p), m); err != nil {
		return refuse(err.Error())
	}
	if a.handler.Accept != nil && !a.handler.Accept(m) {
		return refuse("Accept refused it, and this wire cannot refuse")
	}
	result, status := a.handler.Run(ctx, g.id, m, func(fb msg.Message) { a.feedback(ctx, sock, g, fb) })
	if result == nil {
		result = a.action.Result()
	}
	body, err := a.n.codec.encode(result, false)
	if err != nil {
		return refuse(err.Error())
	}
	return o.raw("values", body).int("status", int64(status)).bool("result", true).end()
}

func (a *actionServer) feedback(ctx context.Context, sock *socket, g *servedGoal, m msg.Message) {
	body, err := a.n.codec.encode(m, false)
	if err == nil {
		err = sock.send(ctx, begin("action_feedback").text("id", g.wire).text("action", a.action.Name).raw("values", body).end(), false)
	}
	if err != nil && ctx.Err() == nil {
		a.n.storm.warn("feedback could not be sent", "action", a.action.Name, "why", err)
	}
}
