package tool

import (
	"context"
	"errors"
	"sync"
)

// keptRuns is how many executions are remembered for repeats and lost replies.
const keptRuns = 16

// errHangup ends a motion whose request is gone, when the operator chose so.
var errHangup = errors.New("the request that carried the motion ended")

// errStopped ends an execute that has not begun to move when somebody calls stop.
var errStopped = errors.New("stopped on request")

// errClosed ends a motion when the daemon stops.
var errClosed = errors.New("the daemon is stopping")

// run is one execution. What is below the line may be read once done is closed.
type run struct {
	id       uint64
	who      string
	key      string // request that asked for it
	session  string
	cancel   context.CancelCauseFunc
	done     chan struct{}
	carriers int  // requests that wait for it; guarded by runs.mu
	told     bool // a reply with its result reached the client; guarded by runs.mu

	reply *reply // guarded by runs.mu again once the last carrier has left
}

func (r *run) finished() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// moved reports, of a finished run, whether the robot was asked to move.
func (r *run) moved() bool { return r.reply != nil && r.reply.report != nil }

// runs keeps an execution to exactly once: by the request that asked, and by whether its reply arrived.
type runs struct {
	mu     sync.Mutex
	next   uint64
	kept   []*run // oldest first
	shut   bool
	active sync.WaitGroup
}

func newRuns() *runs { return &runs{} }

// why a call got an earlier run.
type why string

const (
	fresh     why = ""
	sameCall  why = "the same request was delivered before"
	lostReply why = "the first reply was not delivered"
)

// claim is the run that this call stands for: an earlier one when the request is a repeat, else a new one
// that the caller must start.
func (rs *runs) claim(ctx context.Context, c *call) (*run, context.Context, why) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	key := c.key()
	for i := len(rs.kept) - 1; i >= 0; i-- {
		if r := rs.kept[i]; r.key == key {
			r.carriers++
			return r, nil, sameCall
		}
	}
	if r := rs.lost(c.who.Name); r != nil {
		r.carriers++
		return r, nil, lostReply
	}
	rs.next++
	r := &run{id: rs.next, who: c.who.Name, key: key, session: c.session, done: make(chan struct{}), carriers: 1}
	ctx, r.cancel = context.WithCancelCause(ctx)
	if rs.shut {
		r.cancel(errClosed)
	}
	rs.active.Add(1)
	rs.kept = append(rs.kept, r)
	if len(rs.kept) > keptRuns {
		rs.kept = append([]*run(nil), rs.kept[1:]...)
	}
	return r, ctx, fresh
}

// lost is the newest run of who when its result did not reach them: finished and moved, or running with
// nobody waiting. Callers hold mu.
func (rs *runs) lost(who string) *run {
	for i := len(rs.kept) - 1; i >= 0; i-- {
		r := rs.kept[i]
		if r.who != who {
			continue
		}
		if r.told || r.carriers > 0 || r.finished() && !r.moved() {
			return nil
		}
		return r
	}
	return nil
}

// result is the newest finished result of who that was never delivered, nil when there is none.
func (rs *runs) result(who string) *run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.lost(who); r != nil && r.finished() {
		return r
	}
	return nil
}

// end stores the result of a run and wakes whoever waits. A run that was refused leaves its number to the next.
func (rs *runs) end(r *run, rep *reply) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.reply = rep
	r.shed()
	if !r.moved() && r.id == rs.next {
		rs.next--
	}
	close(r.done)
	r.cancel(nil)
	rs.active.Done()
}

// leave takes a carrier away. told says that it left with the result in hand. It reports whether the run
// is now on its own.
func (rs *runs) leave(r *run, told bool) (alone bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.carriers--
	r.told = r.told || told
	if r.finished() {
		r.shed()
	}
	return r.carriers <= 0 && !r.finished()
}

// shed lets go, once the run is over and nobody carries it, of what its pictures were drawn from: a scene is ten times
// as large as its pictures, and a repeat needs these alone. Callers hold mu.
func (r *run) shed() {
	if r.carriers > 0 || r.reply == nil || r.reply.shown == nil {
		return
	}
	kept := *r.reply
	kept.shown = nil
	r.reply = &kept
}

// tell marks a result as delivered by other means.
func (rs *runs) tell(r *run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.told = true
}

// forget drops the keys of who's requests without a session: a new client of the same principal counts its
// request ids from the start again.
func (rs *runs) forget(who string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.kept {
		if r.who == who && r.session == "" {
			r.key = ""
		}
	}
}

// ofSession are the unfinished runs that came over a session.
func (rs *runs) ofSession(session string) []*run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var out []*run
	for _, r := range rs.kept {
		if session != "" && r.session == session && !r.finished() {
			out = append(out, r)
		}
	}
	return out
}

// abort ends the contexts of runs that have not begun to move; a motion under way is the stage's to stop.
func (rs *runs) abort(cause error, moving func() bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.kept {
		if !r.finished() && !moving() {
			r.cancel(cause)
		}
	}
}

// shutdown ends the context of what runs, and of what is still to come; it reports whether anything ran.
func (rs *runs) shutdown() (ran bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.shut = true
	for _, r := range rs.kept {
		ran = ran || !r.finished()
		r.cancel(errClosed)
	}
	return ran
}

// key tells one request of one client from every other.
func (c *call) key() string {
	if c.requestID == "" {
		return ""
	}
	return c.who.Name + "\x00" + c.session + "\x00" + c.requestID
}
