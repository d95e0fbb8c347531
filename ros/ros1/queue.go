package ros1

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// packet is one message that waits.
type packet struct {
	data     []byte
	from     string
	seq      int64
	received time.Time
	shared   bool // others read the same bytes
}

// queue keeps the newest depth packets; with all it keeps every one and makes the sender wait instead.
type queue struct {
	mu     sync.Mutex
	waits  []packet
	depth  int
	all    bool
	busy   bool // a packet is being worked on
	closed bool
	change chan struct{}
}

func newQueue(depth int, all bool) *queue {
	return &queue{depth: max(depth, 1), all: all, change: make(chan struct{})}
}

func (q *queue) bell() {
	close(q.change)
	q.change = make(chan struct{})
}

// push adds p and says how many older ones were dropped for it.
func (q *queue) push(p packet) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0
	}
	q.waits = append(q.waits, p)
	for !q.all && len(q.waits) > q.depth {
		q.waits[0] = packet{}
		q.waits = q.waits[1:]
		dropped++
	}
	q.bell()
	return dropped
}

// pushAll adds p when there is room.
func (q *queue) pushAll(ctx context.Context, p packet) error {
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return nil // the subscriber went
		}
		if len(q.waits) < q.depth {
			q.waits = append(q.waits, p)
			q.bell()
			q.mu.Unlock()
			return nil
		}
		change := q.change
		q.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("a subscriber does not read: %w", ctx.Err())
		}
	}
}

// pop waits for the oldest packet; it says no when the queue is closed or ctx ends. A closed queue gives out what is
// left of a sender, which matters for the last word of a publisher.
func (q *queue) pop(ctx context.Context) (packet, bool) {
	for {
		q.mu.Lock()
		if q.busy {
			q.busy = false
			q.bell()
		}
		if ctx.Err() != nil {
			q.mu.Unlock()
			return packet{}, false
		}
		if len(q.waits) > 0 {
			p := q.waits[0]
			q.waits[0] = packet{}
			q.waits = q.waits[1:]
			q.busy = true
			q.bell()
			q.mu.Unlock()
			return p, true
		}
		if q.closed {
			q.mu.Unlock()
			return packet{}, false
		}
		change := q.change
		q.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return packet{}, false
		}
	}
}

// empty waits until nothing waits and nothing is being worked on.
func (q *queue) empty(ctx context.Context) {
	for {
		q.mu.Lock()
		if len(q.waits) == 0 && !q.busy || q.closed {
			q.mu.Unlock()
			return
		}
		change := q.change
		q.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return
		}
	}
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		q.bell()
	}
}
