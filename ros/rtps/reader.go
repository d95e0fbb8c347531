package rtps

import (
	"slices"
	"sync"
	"time"
)

// Reader gives the samples of all matched writers to a function.
type Reader struct {
	p           *Participant
	id          EntityID
	topic, typ  string
	qos         QoS
	userData    []byte
	announcedAs int64 // the sample of discovery that announced us
	f           func(*Sample)
	limit       int // samples that wait for f
	wake        chan struct{}

	mu         sync.Mutex
	closed     bool
	byGUID     map[GUID]*writerProxy
	queue      samples
	queued     int // bytes
	stalled    bool
	spare      []*Sample
	spareParts []*assembly
	keys       []int64
	acks       uint32 // of all acknowledgements, to whomever: who is forgotten and found again must not take them for old

	received, lost, dropped uint64
}

// keepAllQueue is how many samples wait for a KeepAll reader's function, if its configuration does not say.
const keepAllQueue = 1024

func newReader(p *Participant, id EntityID, c *ReaderConfig, f func(*Sample)) *Reader {
	q := c.QoS
	limit := c.Queue
	if q.KeepAll {
		q.Depth = 0
		if limit <= 0 {
			limit = keepAllQueue
		}
	} else {
		q.Depth = max(q.Depth, 1)
		if limit <= 0 {
			limit = q.Depth
		}
	}
	return &Reader{
		p: p, id: id, topic: c.Topic, typ: c.Type, qos: q, userData: c.UserData, f: f, limit: limit,
		wake: make(chan struct{}, 1), byGUID: map[GUID]*writerProxy{},
	}
}

// GUID names the reader in the domain.
func (r *Reader) GUID() GUID { return r.p.prefix.GUID(r.id) }

// Keep makes Payload, and the sample, the function's own for as long as it wants.
func (s *Sample) Keep() { s.kept = true }

// samples is a queue.
type samples struct {
	ring    []*Sample
	head, n int
}

func (q *samples) push(s *Sample) {
	if q.n == len(q.ring) {
		grown := make([]*Sample, max(8, 2*len(q.ring)))
		for i := range q.n {
			grown[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = s
	q.n++
}

func (q *samples) pop() *Sample {
	s := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return s
}

// take makes a sample with room for n bytes. The lock is held.
func (r *Reader) take(n int) *Sample {
	var s *Sample
	if k := len(r.spare); k > 0 {
		s, r.spare = r.spare[k-1], r.spare[:k-1]
	} else {
		s = &Sample{}
	}
	buf := r.p.pool.get(n)
	*s = Sample{buf: buf, Payload: buf.b}
	return s
}

// note copies what came beside the payload.
func (s *Sample) note(in *incoming) {
	s.Writer, s.Seq, s.Source = in.writer, in.seq, in.stamp.time()
	s.gone, s.keyed, s.key = in.gone, in.keyed, in.key
	if in.related {
		s.identity = in.ident
		s.Related = &s.identity
	}
}

// recycle makes the sample's memory free for use again. The lock is held.
func (r *Reader) recycle(s *Sample) {
	if s == nil {
		return
	}
	r.unreserve(s)
	if s.kept {
		return
	}
	r.p.pool.put(s.buf)
	*s = Sample{}
	if len(r.spare) < 64 {
		r.spare = append(r.spare, s)
	}
}

// reserve takes n bytes of what a peer may make us keep beside the queues.
func (r *Reader) reserve(q *peer, n int) bool {
	most := int64(r.p.limits.Reassembly)
	if q.reassembly.Add(int64(n)) > most || r.p.reassembly.Add(int64(n)) > 4*most {
		if q.reassembly.Add(-int64(n))+int64(n) <= most {
			r.p.reassembly.Add(-int64(n))
		}
		r.p.count.overBudget.Add(1)
		return false
	}
	return true
}

func (r *Reader) unreserve(s *Sample) {
	if s.reserved > 0 {
		s.peer.reassembly.Add(-int64(s.reserved))
		r.p.reassembly.Add(-int64(s.reserved))
		s.reserved = 0
	}
}

// full says that no sample may be added without loss, to a reader that must not lose any.
func (r *Reader) full() bool {
	return r.qos.KeepAll && r.queue.n > 0 && (r.queue.n >= r.limit || r.queued >= r.p.limits.Reassembly)
}

// enqueue hands a sample to the function's goroutine. The lock is held.
func (r *Reader) enqueue(s *Sample) {
	r.unreserve(s)
	if len(s.Payload) == 0 || s.gone && r.topic != "" {
		r.recycle(s) // the end of an instance, which a topic without key does not have
		return
	}
	if !r.qos.KeepAll && r.queue.n >= r.limit {
		old := r.queue.pop()
		r.queued -= len(old.Payload)
		r.recycle(old)
		r.dropped++
	}
	s.Received = time.Now()
	r.received++
	r.queue.push(s)
	r.queued += len(s.Payload)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// deliver is the goroutine that the function runs in.
func (r *Reader) deliver() {
	for range r.wake {
		for {
			s, ok := r.next()
			if !ok {
				return
			}
			if s == nil {
				break
			}
			r.f(s)
			r.mu.Lock()
			r.recycle(s)
			r.mu.Unlock()
		}
	}
}

// next takes a sample off the queue; ok is false when the reader was closed.
func (r *Reader) next() (s *Sample, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false
	}
	if r.queue.n == 0 {
		return nil, true
	}
	s = r.queue.pop()
	r.queued -= len(s.Payload)
	if r.stalled {
		r.stalled = false
		for _, w := range r.byGUID {
			if w.stalled {
				w.stalled = false
				r.drain(w)
				w.ackDue = true
			}
		}
		r.p.alarm.by(r.p.now())
	}
	return s, true
}

// match adds a writer, or learns its new announcement. It is called with the participant's lock.
func (r *Reader) match(q *peer, e *remote, to *dest) (added bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if w := r.byGUID[e.GUID]; w != nil {
		w.remote = e
		return false
	}
	w := &writerProxy{
		guid: e.GUID, remote: e, peer: q, vendor: q.info.Vendor, to: to, reliable: r.qos.Reliable && e.QoS.Reliable, next: 1,
		pend: map[int64]*Sample{}, nackWait: int64(nackFirst),
	}
	r.byGUID[e.GUID] = w
	if w.reliable {
		w.ackDue = true // before any heartbeat: the writer may be waiting to hear of us
		r.p.alarm.by(r.p.now())
	}
	return true
}

// unmatch forgets a writer. What it wrote and waits for the function still goes there.
func (r *Reader) unmatch(g GUID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.byGUID[g]
	if w == nil {
		return false
	}
	delete(r.byGUID, g)
	r.forget(w)
	return true
}

func (r *Reader) forget(w *writerProxy) {
	for seq, s := range w.pend {
		r.recycle(s)
		delete(w.pend, seq)
	}
	for len(w.parts) > 0 {
		r.dropPart(w, 0)
	}
}

// Matched are the writers whose samples come.
func (r *Reader) Matched() []Endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Endpoint, 0, len(r.byGUID))
	for _, w := range r.byGUID {
		out = append(out, w.remote.Endpoint)
	}
	return out
}

// Stats counts samples: received in full; lost on the way, as far as can be told; and dropped because the function was
// too slow for the queue.
func (r *Reader) Stats() (received, lost, dropped uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received, r.lost, r.dropped
}

// Close takes the reader back: matched writers are told. The function is not called again, but a call that is under way
// may still be running.
func (r *Reader) Close() error {
	r.p.dropReader(r)
	return nil
}

func (r *Reader) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	for _, w := range r.byGUID {
		r.forget(w)
	}
	clear(r.byGUID)
	for r.queue.n > 0 {
		r.recycle(r.queue.pop())
	}
	close(r.wake)
}

// sortedBelow gives the numbers of what came out of order and lies below end.
func (r *Reader) sortedBelow(w *writerProxy, end int64) []int64 {
	r.keys = r.keys[:0]
	for seq := range w.pend {
		if seq < end {
			r.keys = append(r.keys, seq)
		}
	}
	slices.Sort(r.keys)
	return r.keys
}
