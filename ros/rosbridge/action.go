package rosbridge

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"viad/ros"
	"viad/ros/msg"
)

// The messages of an action's own topics and services (action_msgs).
type (
	goalUUID struct {
		UUID [16]byte `json:"uuid"`
	}
	goalStamp struct {
		Sec     int32  `json:"sec"`
		Nanosec uint32 `json:"nanosec"`
	}
	goalInfo struct {
		ID    goalUUID  `json:"goal_id"`
		Stamp goalStamp `json:"stamp"`
	}
	goalState struct {
		Info   goalInfo `json:"goal_info"`
		Status int8     `json:"status"`
	}
	statusArray struct {
		List []goalState `json:"status_list"`
	}
	cancelRequest struct {
		Info goalInfo `json:"goal_info"`
	}
	cancelResponse struct {
		Code      int8       `json:"return_code"`
		Canceling []goalInfo `json:"goals_canceling"`
	}
)

// Status lists and cancelling are known to rosbridge by their names; here they are read by their fields alone.
const (
	statusType    = "action_msgs/msg/GoalStatusArray"
	maxKnownGoals = 512 // of other clients, whose ids are remembered
)

// goaler is a client of an action.
type goaler struct {
	n      *Node
	action ros.Action
	name   string
	typ    string
	closed atomic.Bool
	turn   chan struct{} // one goal at a time waits to be accepted, so that it can be told which one a new id is
	status *feedOfStatus
}

// ActionClient makes a client of an action. It also subscribes to the action's status topic: rosbridge does not say when
// a goal was accepted, and the status topic does.
func (n *Node) ActionClient(action ros.Action) (ros.Goaler, error) {
	if err := checkName("action", action.Name, action.Goal, action.Result, action.Feedback); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed
	}
	a := &goaler{
		n: n, action: action, name: action.Name,
		typ:  actionType(action.Goal().TypeName()),
		turn: make(chan struct{}, 1),
	}
	a.status = n.watchStatus(action.Name)
	return a, nil
}

// actionType is the action's own type, of which the goal's name is made.
func actionType(goal string) string { return strings.TrimSuffix(goal, "_Goal") }

// goal is one goal that was sent.
type goal struct {
	n        *Node
	action   *goaler
	id       string // on this wire
	own      ros.GoalID
	feedback func(msg.Message)

	mu       sync.Mutex
	status   ros.GoalStatus
	uuid     *[16]byte     // on the robot, once it is known
	sign     chan struct{} // closed at the first sign of life
	signed   bool
	changed  chan struct{} // closed and made new with each status
	done     chan struct{}
	finished bool
	end      outcome
	feedOnce []payload
	feedWake chan struct{}
	fed      chan struct{} // closed when the last feedback was handed on
}

// outcome is how a goal ended.
type outcome struct {
	p      payload
	status ros.GoalStatus
	err    error
}

// finish ends the goal once; it says whether this was it.
func (g *goal) finish(o outcome) bool {
	g.mu.Lock()
	if g.finished {
		g.mu.Unlock()
		return false
	}
	g.finished, g.end = true, o
	if o.err == nil {
		g.status = o.status
	}
	close(g.done)
	g.mu.Unlock()
	g.n.mu.Lock()
	delete(g.n.goals, g.id)
	g.n.mu.Unlock()
	return true
}

// alive notes a sign that the server has taken the goal.
func (g *goal) alive(s ros.GoalStatus) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.signed {
		g.signed = true
		close(g.sign)
	}
	// Where a goal is that was given up is still of interest: it is being cancelled.
	if s > g.status && (!g.finished || g.end.err != nil) {
		g.status = s
		close(g.changed)
		g.changed = make(chan struct{})
	}
}

func (a *goaler) Ready(ctx context.Context) error {
	return a.n.poll(ctx, func(ctx context.Context) (bool, error) {
		names, err := a.n.actionServers(ctx)
		return slices.Contains(names, a.name), err
	}, &ros.Absent{What: "action " + a.name, Why: "rosapi does not list it: is its node running, and its name right?"})
}

// Send sends a goal and waits for the first sign that it was taken: its id on the status topic, feedback, or its end. No
// sign within Config.AcceptTimeout is an error, and the goal is cancelled.
func (a *goaler) Send(ctx context.Context, m msg.Message, feedback func(msg.Message)) (ros.Goal, error) {
	if a.closed.Load() {
		return nil, fmt.Errorf("rosbridge: the client of the action %s is closed", a.name)
	}
	args, err := a.n.codec.encode(m, false)
	if err != nil {
		return nil, err
	}
	// Always asked: an old rosbridge sends the goal into the void and then waits for its result for ever.
	if err := a.Ready(ctx); err != nil {
		return nil, err
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := a.status.settled(ctx); err != nil {
		return nil, err
	}
	g, err := a.newGoal(feedback)
	if err != nil {
		return nil, err
	}
	a.status.expect(g)
	defer a.status.expect(nil)
	o := begin("send_action_goal").text("id", g.id).text("action", a.name).text("action_type", a.typ).
		raw("args", args).bool("feedback", true)
	if err := a.n.data.send(ctx, o.end(), true); err != nil {
		g.finish(outcome{err: err})
		if ctx.Err() != nil || errors.Is(err, errLost) { // it may have been written
			a.n.abandon(g)
		}
		return nil, err
	}
	if err := a.accepted(ctx, g); err != nil {
		return nil, err
	}
	a.n.spawn(g.watch)
	return g, nil
}

func (a *goaler) newGoal(feedback func(msg.Message)) (*goal, error) {
	g := &goal{
		n: a.n, action: a, id: a.n.id("goal"), feedback: feedback,
		sign: make(chan struct{}), changed: make(chan struct{}), done: make(chan struct{}), feedWake: make(chan struct{}, 1),
		fed: make(chan struct{}),
	}
	if _, err := rand.Read(g.own[:]); err != nil {
		return nil, fmt.Errorf("rosbridge: %w", err)
	}
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	switch {
	case a.n.closed:
		return nil, errClosed
	case len(a.n.goals) >= maxPending:
		return nil, fmt.Errorf("rosbridge: %d goals run already", maxPending)
	}
	a.n.goals[g.id] = g
	a.n.wg.Go(g.deliver)
	return g, nil
}

// accepted waits for the first sign of the goal.
func (a *goaler) accepted(ctx context.Context, g *goal) error {
	tctx, cancel := context.WithTimeout(ctx, a.n.cfg.AcceptTimeout)
	defer cancel()
	select {
	case <-g.sign:
		return nil
	case <-g.done:
		g.mu.Lock()
		end := g.end
		g.mu.Unlock()
		if end.err != nil {
			return end.err
		}
		g.alive(ros.GoalAccepted)
		return nil // it was over at once
	case <-a.n.stopped:
		return errClosed
	case <-tctx.Done():
	}
	err := ctx.Err()
	if err == nil {
		err = &ros.Gone{What: "action " + a.name, Why: fmt.Sprintf(
			"no status, feedback or result of the goal within %v: it is being cancelled", a.n.cfg.AcceptTimeout,
		)}
	}
	if g.finish(outcome{err: err}) {
		a.n.abandon(g)
	}
	return err
}

// watch looks whether the server is still there while the goal runs.
func (g *goal) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-g.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	gone := g.n.untilGone(ctx, func(ctx context.Context) (bool, error) {
		names, err := g.n.actionServers(ctx)
		return slices.Contains(names, g.action.name), err
	})
	if gone {
		g.finish(outcome{err: &ros.Gone{What: "action " + g.action.name, Why: "the robot no longer lists its server"}})
	}
}

const maxFeedback = 64 // that wait; then the oldest is dropped

func (n *Node) feedback(f *frame) {
	n.mu.Lock()
	g := n.goals[f.id]
	n.mu.Unlock()
	if g == nil {
		n.strays.Add(1)
		return
	}
	g.alive(ros.GoalExecuting)
	g.mu.Lock()
	if len(g.feedOnce) == maxFeedback {
		g.feedOnce = slices.Delete(g.feedOnce, 0, 1)
	}
	g.feedOnce = append(g.feedOnce, f.msg)
	g.mu.Unlock()
	select {
	case g.feedWake <- struct{}{}:
	default:
	}
}

// deliver calls the feedback function, in order, until the goal is over and all was handed on.
func (g *goal) deliver() {
	defer close(g.fed)
	for {
		over := false
		select {
		case <-g.feedWake:
		case <-g.done:
			over = true
		case <-g.n.stopped:
			return
		}
		g.mu.Lock()
		ps := g.feedOnce
		g.feedOnce = nil
		g.mu.Unlock()
		for _, p := range ps {
			m := g.action.action.Feedback()
			if err := g.n.decode(p, m); err != nil {
				g.n.storm.warn("feedback was malformed and not handed on", "action", g.action.name, "why", err)
			} else if g.feedback != nil {
				g.feedback(m)
			}
		}
		if over {
			return
		}
	}
}

// result ends a goal, in the words of whichever version the server is.
func (n *Node) result(f *frame) {
	n.mu.Lock()
	g := n.goals[f.id]
	n.mu.Unlock()
	if g == nil || (f.action != "" && f.action != g.action.name) {
		n.strays.Add(1)
		n.storm.warn("a result came for a goal that nobody waits for", "action", clip(f.action), "id", clip(f.id))
		return
	}
	g.mu.Lock()
	heard, signed := g.status, g.signed
	g.mu.Unlock()
	if f.hasResult && !f.result {
		g.finish(outcome{err: goalFailed(g.action.name, f.words, signed)})
		return
	}
	o := outcome{p: payloadOr(f.msg)}
	switch {
	case f.hasStatus && f.status >= 0 && f.status <= int(ros.GoalAborted):
		o.status = ros.GoalStatus(f.status) // 0 to 6
	case heard >= ros.GoalSucceeded: // a cancelled goal's result may lack it
		o.status = heard
	default:
		o.status = ros.GoalUnknown
	}
	g.finish(o)
}

// goalFailed is what the words of a server mean that has no result to give.
func goalFailed(action, words string, taken bool) error {
	switch {
	case strings.Contains(words, "rejected"):
		return &ros.Rejected{Action: action, Why: words}
	case strings.Contains(words, "No action server"):
		return &ros.Absent{What: "action " + action, Why: "rosbridge says: " + words}
	case taken:
		return &ros.Gone{What: "action " + action, Why: words}
	default:
		return &Failed{What: "a goal of " + action, Words: words}
	}
}

func (g *goal) ID() ros.GoalID { return g.own }

func (g *goal) Status() ros.GoalStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.status
}

func (g *goal) Result(ctx context.Context, m msg.Message) (ros.GoalStatus, error) {
	select {
	case <-g.fed: // after the last feedback
	case <-g.n.stopped:
		return ros.GoalUnknown, errClosed
	case <-ctx.Done():
		return ros.GoalUnknown, fmt.Errorf("rosbridge: the action %s has no result yet: %w", g.action.name, ctx.Err())
	}
	g.mu.Lock()
	end := g.end
	g.mu.Unlock()
	if end.err != nil {
		return ros.GoalUnknown, end.err
	}
	return end.status, g.n.decode(end.p, m)
}

// CancelAll asks the action's own service, which cancels every goal of every client.
func (a *goaler) CancelAll(ctx context.Context) error {
	r, err := a.n.cancelService(ctx, a.name, [16]byte{})
	if err != nil {
		return err
	}
	if r.Code == cancelRejected {
		return &ros.Rejected{Action: a.name, Why: "it will not cancel"}
	}
	return nil
}

func (a *goaler) Close() error {
	if !a.closed.Swap(true) {
		a.n.unwatchStatus(a.status)
	}
	return nil
}

// The return codes of CancelGoal.
const (
	cancelRejected = 1
	cancelUnknown  = 2
	cancelOver     = 3
)

// cancelService calls <action>/_action/cancel_goal on the second socket; a zero id is all goals.
func (n *Node) cancelService(ctx context.Context, action string, uuid [16]byte) (cancelResponse, error) {
	var r cancelResponse
	args, err := json.Marshal(cancelRequest{Info: goalInfo{ID: goalUUID{UUID: uuid}}})
	if err != nil {
		return r, fmt.Errorf("rosbridge: %w", err)
	}
	service := action + "/_action/cancel_goal"
	f, err := n.call(ctx, n.urgent, service, args)
	if err != nil {
		return r, err
	}
	if f.hasResult && !f.result {
		return r, failed(service, f.words)
	}
	d := jsonDecoder{c: &n.codec, s: scanner{b: payloadOr(f.msg).raw}}
	return r, n.decodeInto(&d, &r)
}
