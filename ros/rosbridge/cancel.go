package rosbridge

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"viad/ros"
)

// decodeInto reads one of this package's own structures with the same rules as messages.
func (n *Node) decodeInto(d *jsonDecoder, into any) error {
	if err := d.value(reflect.ValueOf(into).Elem()); err != nil {
		return fmt.Errorf("rosbridge: %w", err)
	}
	return nil
}

// Cancel asks until it is heard: until the action's cancel service has taken it, or the status topic or a result says
// that the goal is being cancelled or over. All of it travels on the second socket.
//
// Where the goal's id on the robot is not known and cancelling by the id on this wire shows no effect in time, every goal
// of the action is cancelled: a cancel that does nothing is the greater harm.
func (g *goal) Cancel(ctx context.Context) error {
	return g.cancel(ctx, func(round int) (bool, error) {
		return g.cancelOnce(ctx, round > 0) // the status topic may be about to say the id
	})
}

// cancel asks until it is heard; once asks one time.
func (g *goal) cancel(ctx context.Context, once func(round int) (taken bool, err error)) error {
	if g.cancelling() {
		return nil
	}
	var last error
	var no *ros.Rejected
	for round, refused := 0, 0; ; round++ {
		taken, err := once(round)
		if taken || g.cancelling() {
			return nil
		}
		// The service also refuses what is being cancelled already, by the id: then the status is about to say so.
		if errors.As(err, &no) {
			if refused++; refused == 2 {
				return no
			}
		}
		if err != nil {
			last = err
		}
		g.mu.Lock()
		changed := g.changed
		g.mu.Unlock()
		t := time.NewTimer(g.n.cfg.CancelEvery)
		select {
		case <-t.C:
		case <-changed:
		case <-g.done:
		case <-g.n.stopped:
			t.Stop()
			return errClosed
		case <-ctx.Done():
			t.Stop()
			if last == nil {
				last = errors.New("the robot shows no effect")
			}
			return fmt.Errorf("rosbridge: cancelling a goal of %s is not confirmed (%w): %w", g.action.name, last, ctx.Err())
		}
		t.Stop()
	}
}

// cancelling says whether the goal has been heard to end or to be about to. A goal whose owner has given up is not
// finished on the robot because of that.
func (g *goal) cancelling() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.status >= ros.GoalCanceling || (g.finished && g.end.err == nil)
}

// cancelOnce asks once in both ways; all says whether every goal may be cancelled when the id is not known. taken says
// that there is nothing more to do.
func (g *goal) cancelOnce(ctx context.Context, all bool) (taken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*g.n.cfg.CancelEvery)
	defer cancel()
	o := begin("cancel_action_goal").text("id", g.id).text("action", g.action.name).end()
	if err := g.n.urgent.send(ctx, o, true); err != nil {
		return false, err
	}
	g.mu.Lock()
	uuid := g.uuid
	g.mu.Unlock()
	if uuid == nil {
		if !all {
			return false, nil
		}
		uuid = new([16]byte)
	}
	r, err := g.n.cancelService(ctx, g.action.name, *uuid)
	if err != nil {
		return false, err
	}
	switch r.Code {
	case cancelRejected:
		return false, &ros.Rejected{Action: g.action.name, Why: "it will not cancel"}
	case cancelUnknown, cancelOver:
		// It is over, or was never taken: a result has come or will.
		return *uuid != [16]byte{}, nil
	default:
		return len(r.Canceling) > 0, nil
	}
}

// abandonAll is how many rounds of abandon may cancel every goal of an action.
const abandonAll = 3

// abandon cancels a goal that nobody waits for any more, for a while: rosbridge lets goals run on when the socket closes.
// It must not end what was sent after it: every goal is cancelled only in the beginning, and while this node has no other.
func (n *Node) abandon(g *goal) {
	go n.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, n.cfg.CancelFor)
		defer cancel()
		err := g.cancel(ctx, func(round int) (bool, error) {
			if round == 0 || round > abandonAll {
				return g.cancelOnce(ctx, false)
			}
			select {
			case g.action.turn <- struct{}{}: // no goal is sent meanwhile
				defer func() { <-g.action.turn }()
				return g.cancelOnce(ctx, !n.runs(g.action.name))
			default:
				return g.cancelOnce(ctx, false)
			}
		})
		if err != nil {
			n.storm.warn("a goal was left behind and could not be cancelled", "action", g.action.name, "why", err)
		}
	})
}

// runs says whether a goal of the action runs for this node.
func (n *Node) runs(action string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.goals {
		if g.action.name == action {
			return true
		}
	}
	return false
}

// statusWait is how long the first goal of a client waits for the status of the goals before it; a server that has had
// none says nothing.
const statusWait = 200 * time.Millisecond

// settled waits for the first status list, so that the goals on it are not taken for new ones.
func (fs *feedOfStatus) settled(ctx context.Context) error {
	select {
	case <-fs.first:
		return nil
	default:
	}
	if err := fs.feed.socket.announced(ctx, fs.feed.ann); err != nil {
		return err
	}
	t := time.NewTimer(statusWait)
	defer t.Stop()
	select {
	case <-fs.first:
	case <-t.C:
		fs.once.Do(func() { close(fs.first) })
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// feedOfStatus listens to an action's status topic, for all clients of the action in this node.
type feedOfStatus struct {
	n     *Node
	topic string
	sub   *subscription
	feed  *feed
	first chan struct{} // closed when the first list has come, or none will
	once  sync.Once

	mu       sync.Mutex
	seen     map[[16]byte]bool
	order    [][16]byte
	expected *goal
	goals    map[[16]byte]*goal
}

// watchStatus is called with the node's mutex held.
func (n *Node) watchStatus(action string) *feedOfStatus {
	topic := action + "/_action/status"
	fs := &feedOfStatus{n: n, topic: topic, first: make(chan struct{}), seen: map[[16]byte]bool{}, goals: map[[16]byte]*goal{}}
	fd := n.feeds[topic] // of another client of the action: JSON too, see Subscribe
	if fd == nil {
		fd = n.newFeed(topic, statusType, ros.Latched(), JSON)
	}
	fs.feed = fd
	fs.sub = n.addSubscription(fd, 1024, func(in ros.Incoming) { fs.came(in) })
	return fs
}

func (n *Node) unwatchStatus(fs *feedOfStatus) { _ = fs.sub.Close() } // it returns nil

// expect says which goal a new id will belong to; nil is none.
func (fs *feedOfStatus) expect(g *goal) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.expected = g
}

func (fs *feedOfStatus) came(in ros.Incoming) {
	var list statusArray
	p := in.(*incoming).p // our own subscription
	d := jsonDecoder{c: &fs.n.codec, s: scanner{b: p.raw}}
	if err := fs.n.decodeInto(&d, &list); err != nil {
		fs.n.storm.warn("an action's status was malformed", "topic", fs.topic, "why", err)
		return
	}
	defer fs.once.Do(func() { close(fs.first) })
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var fresh []goalState
	for _, s := range list.List {
		if id := s.Info.ID.UUID; !fs.seen[id] {
			fs.remember(id)
			if s.Status < int8(ros.GoalSucceeded) { // what is over when it is first heard of is old
				fresh = append(fresh, s)
			}
		}
	}
	// One new id while one goal waits to be accepted is that goal. More than one could be anybody's.
	if g := fs.expected; g != nil && len(fresh) == 1 {
		fs.expected = nil
		id := fresh[0].Info.ID.UUID
		fs.goals[id] = g
		g.mu.Lock()
		g.uuid = &id
		g.mu.Unlock()
	}
	for _, s := range list.List {
		g := fs.goals[s.Info.ID.UUID]
		if g == nil {
			continue
		}
		g.alive(ros.GoalStatus(s.Status))
		if s.Status >= int8(ros.GoalSucceeded) {
			delete(fs.goals, s.Info.ID.UUID)
		}
	}
}

func (fs *feedOfStatus) remember(id [16]byte) {
	fs.seen[id] = true
	fs.order = append(fs.order, id)
	if len(fs.order) > maxKnownGoals {
		delete(fs.seen, fs.order[0])
		delete(fs.goals, fs.order[0])
		fs.order = fs.order[1:]
	}
}
