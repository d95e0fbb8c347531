package ros1

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/msg"
)

// goaler implements ros.Goaler.
type goaler struct {
	n      *Node
	action ros.Action
	stop   context.CancelFunc
	once   sync.Once

	goal, cancel             *outlet
	status, feedback, result *subscription

	mu     sync.Mutex
	closed bool
	goals  map[string]*goal
	wake   chan struct{} // a new goal is to be watched
}

// goal implements ros.Goal.
type goal struct {
	g        *goaler
	id       ros.GoalID
	wire     string
	server   string // the node that has it
	report   func(msg.Message)
	accepted chan struct{}
	done     chan struct{}

	// below: goaler's mu
	state    goalState
	taken    bool
	ended    time.Time // when a status said so first
	missing  time.Time // since when the server is not connected
	listed   bool
	finished bool
	payload  []byte
	err      error
}

const (
	serverGrace = time.Second     // a server that is away no longer than this is still there
	resultGrace = 3 * time.Second // so long a result may come after the status that announces it

	feedbackGrace = 20 * time.Millisecond

	// rospy answers the header of a connection a moment before it publishes on it; a result in between would be lost.
	settled = 200 * time.Millisecond
)

// ActionClient implements ros.Node.
func (n *Node) ActionClient(action ros.Action) (ros.Goaler, error) {
	t, err := n.actionTopics(action)
	if err != nil {
		return nil, err
	}
	ctx, stop := n.scope()
	g := &goaler{n: n, action: action, stop: stop, goals: make(map[string]*goal), wake: make(chan struct{}, 1)}
	var errs [5]error
	some := ros.QoS{Reliable: true, Depth: 100}
	g.status, errs[0] = n.subscribe(t.name+"/status", t.status, some, g.handle(g.onStatus))
	g.feedback, errs[1] = n.subscribe(t.name+"/feedback", t.feedback, some, g.handle(g.onFeedback))
	g.result, errs[2] = n.subscribe(t.name+"/result", t.result, ros.QoS{Reliable: true, KeepAll: true, Depth: 100}, g.handle(g.onResult))
	g.goal, errs[3] = n.advertise(t.name+"/goal", t.goal, some)
	g.cancel, errs[4] = n.advertise(t.name+"/cancel", t.cancel, some)
	if err := errors.Join(errs[:]...); err != nil {
		stop()
		closeAll(g.status, g.feedback, g.result, g.goal, g.cancel)
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.shut {
		stop()
		return nil, errClosed
	}
	n.wg.Go(func() { g.watch(ctx) })
	return g, nil
}

// handle counts what cannot be read.
func (g *goaler) handle(f func(packet) error) func(*subscription) func(packet) {
	return func(s *subscription) func(packet) {
		return func(p packet) {
			if err := f(p); err != nil {
				s.counter.malformed.Add(1)
				g.n.log.Warn("an actionlib message could not be read", "action", g.action.Name, "from", p.from, "err", err)
			}
		}
	}
}

// server is a node that has all five topics of the action connected, "" when none has.
func (g *goaler) server() string {
	for _, s := range g.status.f.callers() {
		if slices.Contains(g.feedback.f.callers(), s) && slices.Contains(g.result.f.callers(), s) &&
			slices.Contains(g.goal.e.peers(), s) && slices.Contains(g.cancel.e.peers(), s) {
			return s
		}
	}
	return ""
}

// Ready implements ros.Goaler.
func (g *goaler) Ready(ctx context.Context) error {
	_, err := g.find(ctx)
	return err
}

func (g *goaler) find(ctx context.Context) (string, error) {
	for {
		a, b, c := g.status.f.changes(), g.feedback.f.changes(), g.result.f.changes()
		d, e := g.goal.e.changes(), g.cancel.e.changes()
		var settle <-chan time.Time
		if s := g.server(); s != "" {
			wait := max(settled-time.Since(g.feedback.f.since(s)), settled-time.Since(g.result.f.since(s)))
			if wait <= 0 {
				return s, nil
			}
			settle = time.After(wait)
		}
		select {
		case <-settle:
		case <-a:
		case <-b:
		case <-c:
		case <-d:
		case <-e:
		case <-ctx.Done():
			return "", &ros.Absent{What: "the action " + g.action.Name, Why: fmt.Sprintf(
				"status comes from %v, result from %v, and goals are taken by %v; a server has to be in all of them (%v)",
				g.status.f.callers(), g.result.f.callers(), g.goal.e.peers(), ctx.Err(),
			)}
		}
	}
}

func (e *emitter) changes() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

// Send implements ros.Goaler. The goal carries no time of its own, so that the server gives it its own: with the clock
// of another machine it would be taken for one from before the last cancel. When ctx ends first, the goal is cancelled.
func (g *goaler) Send(ctx context.Context, m msg.Message, feedback func(msg.Message)) (ros.Goal, error) {
	server, err := g.find(ctx)
	if err != nil {
		return nil, err
	}
	o := &goal{g: g, server: server, report: feedback, accepted: make(chan struct{}), done: make(chan struct{})}
	if _, err := rand.Read(o.id[:]); err != nil {
		return nil, err
	}
	o.wire = g.n.name + "-" + hex.EncodeToString(o.id[:])
	f, err := frame(func(b []byte) ([]byte, error) {
		return g.n.types.encode(putGoalID(putHeader(b), rosTime{}, o.wire), m)
	})
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil, fmt.Errorf("the client of %s is closed", g.action.Name)
	}
	g.goals[o.wire] = o
	g.mu.Unlock()
	g.rouse()
	if err := g.goal.send(ctx, f); err != nil {
		g.finish(o, goalState{}, nil, err)
		return nil, err
	}
	select {
	case <-o.accepted:
		return o, nil
	case <-o.done:
		return o.refused()
	case <-ctx.Done():
		_ = o.Cancel(context.WithoutCancel(ctx)) // nobody holds it any more
		return nil, fmt.Errorf("the server of %s did not say whether it takes the goal, which was cancelled: %w", g.action.Name, ctx.Err())
	}
}

// refused is what a goal comes to that ended before it was taken.
func (o *goal) refused() (ros.Goal, error) {
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	switch {
	case o.err != nil:
		return nil, o.err
	case o.state.status == rejected:
		return nil, &ros.Rejected{Action: o.g.action.Name, Why: o.state.text}
	default:
		return o, nil
	}
}

func (g *goaler) rouse() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// onStatus takes the list of one server's goals.
func (g *goaler) onStatus(p packet) error {
	list, err := goalStates(p.data)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range g.goals {
		if o.server != p.from {
			continue
		}
		i := slices.IndexFunc(list, func(s goalState) bool { return s.id == o.wire })
		switch {
		case i >= 0:
			o.listed = true
			o.note(list[i])
			if !o.ended.IsZero() && time.Since(o.ended) > resultGrace {
				o.fail("it says the goal has ended, and its result has not come")
			}
		case o.listed:
			o.fail("it does not list the goal any more; it may have been started anew")
		}
	}
	return nil
}

// note takes a newer state; mu is held.
func (o *goal) note(s goalState) {
	if o.finished || terminal(o.state.status) && !terminal(s.status) {
		return
	}
	o.state = s
	if terminal(s.status) && o.ended.IsZero() {
		o.ended = time.Now()
	}
	if !o.taken && s.status != pending && s.status != recalling && s.status != rejected && s.status != recalled {
		o.taken = true
		close(o.accepted)
	}
}

// fail ends the goal: its server is gone; mu is held.
func (o *goal) fail(why string) {
	o.end(o.state, nil, &ros.Gone{What: "the server " + o.server + " of the action " + o.g.action.Name, Why: why})
}

func (o *goal) end(s goalState, payload []byte, err error) {
	if o.finished {
		return
	}
	o.finished, o.state, o.payload, o.err = true, s, payload, err
	delete(o.g.goals, o.wire)
	close(o.done)
}

func (g *goaler) finish(o *goal, s goalState, payload []byte, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o.end(s, payload, err)
}

func (g *goaler) onFeedback(p packet) error {
	r := &reader{b: p.data}
	r.header()
	s := r.goalState()
	if r.err != nil {
		return r.err
	}
	g.mu.Lock()
	o := g.goals[s.id]
	if o != nil {
		o.note(s)
	}
	g.mu.Unlock()
	if o == nil || o.report == nil {
		return nil
	}
	m := g.action.Feedback()
	if err := g.n.types.decode(r.b, m, false); err != nil {
		return err
	}
	o.report(m)
	return nil
}

func (g *goaler) onResult(p packet) error {
	r := &reader{b: p.data}
	r.header()
	s := r.goalState()
	if r.err != nil {
		return r.err
	}
	g.mu.Lock()
	o := g.goals[s.id]
	g.mu.Unlock()
	if o == nil {
		return nil
	}
	if o.report != nil {
		g.hearOut()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	o.note(s)
	o.end(s, r.b, nil)
	return nil
}

// hearOut lets the feedback that was sent before a result be handed on first: it comes on another connection, and
// nothing on the wire tells the order.
func (g *goaler) hearOut() {
	time.Sleep(feedbackGrace)
	ctx, cancel := context.WithTimeout(context.Background(), 10*feedbackGrace)
	defer cancel()
	g.feedback.queue.empty(ctx)
}

// watch ends the goals whose server is gone.
func (g *goaler) watch(ctx context.Context) {
	for {
		change := g.status.f.changes()
		var again <-chan time.Time
		if g.lookForServers() {
			again = time.After(serverGrace / 2)
		}
		select {
		case <-ctx.Done():
			return
		case <-change:
		case <-g.wake:
		case <-again:
		}
	}
}

// lookForServers says whether one is away and has to be looked at again.
func (g *goaler) lookForServers() (away bool) {
	there := g.status.f.callers()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range g.goals {
		switch {
		case slices.Contains(there, o.server):
			o.missing = time.Time{}
		case o.missing.IsZero():
			o.missing, away = time.Now(), true
		case time.Since(o.missing) < serverGrace:
			away = true
		default:
			o.fail("its connection is lost")
		}
	}
	return away
}

// CancelAll implements ros.Goaler.
func (g *goaler) CancelAll(ctx context.Context) error {
	if _, err := g.find(ctx); err != nil {
		return err
	}
	return g.sendCancel(ctx, "")
}

func (g *goaler) sendCancel(ctx context.Context, id string) error {
	f, err := frame(func(b []byte) ([]byte, error) { return putGoalID(b, rosTime{}, id), nil })
	if err != nil {
		return err
	}
	return g.cancel.send(ctx, f)
}

// Close implements ros.Goaler.
func (g *goaler) Close() error {
	g.once.Do(func() {
		g.mu.Lock()
		g.closed = true
		for _, o := range g.goals {
			o.end(o.state, nil, fmt.Errorf("the client of %s is closed; what becomes of the goal is not known", g.action.Name))
		}
		g.mu.Unlock()
		g.stop()
		closeAll(g.goal, g.cancel, g.status, g.feedback, g.result)
	})
	return nil
}

// ID implements ros.Goal.
func (o *goal) ID() ros.GoalID { return o.id }

// Status implements ros.Goal.
func (o *goal) Status() ros.GoalStatus {
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	return meaning(o.state.status)
}

// Cancel implements ros.Goal.
func (o *goal) Cancel(ctx context.Context) error {
	select {
	case <-o.done:
		return nil
	default:
	}
	if !slices.Contains(o.g.cancel.e.peers(), o.server) {
		return &ros.Gone{What: "the server " + o.server + " of the action " + o.g.action.Name, Why: "nobody takes the cancel"}
	}
	return o.g.sendCancel(ctx, o.wire)
}

// Result implements ros.Goal.
func (o *goal) Result(ctx context.Context, m msg.Message) (ros.GoalStatus, error) {
	select {
	case <-o.done:
	case <-ctx.Done():
		return o.Status(), fmt.Errorf("the goal of %s has not ended: %w", o.g.action.Name, ctx.Err())
	}
	o.g.mu.Lock()
	payload, err, status := o.payload, o.err, meaning(o.state.status)
	o.g.mu.Unlock()
	if err != nil {
		return ros.GoalUnknown, err
	}
	return status, o.g.n.types.decode(payload, m, false)
}
