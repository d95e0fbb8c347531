package rtps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrClosed is the answer of a writer, reader or participant that was closed.
var ErrClosed = errors.New("rtps: closed")

// mostKept bounds the number of samples that a KeepAll writer keeps for readers that lag.
const mostKept = 16384

// Writer sends samples to all matched readers. It may be used by many goroutines.
type Writer struct {
	p           *Participant
	id          EntityID
	topic, typ  string
	qos         QoS
	userData    []byte
	announcedAs int64 // the sample of discovery that announced us
	kick        chan struct{}
	done        chan struct{}
	tx          message // of whoever holds the token
	train       []byte  // as well

	mu      sync.Mutex
	closed  bool
	sending bool // the token: who set it sends, and nobody else
	seq     int64
	hist    history
	spare   []*change
	proxies []*readerProxy
	byGUID  map[GUID]*readerProxy
	turn    int
	beats   uint32
	changed chan struct{} // closed when something changes that somebody waits for; nil when nobody does

	resent, resentFragments int
}

func newWriter(p *Participant, id EntityID, c *WriterConfig) *Writer {
	q := c.QoS
	if !q.KeepAll {
		q.Depth = max(q.Depth, 1)
	} else {
		q.Depth = 0
	}
	return &Writer{
		p: p, id: id, topic: c.Topic, typ: c.Type, qos: q, userData: c.UserData,
		kick: make(chan struct{}, 1), done: make(chan struct{}), byGUID: map[GUID]*readerProxy{},
	}
}

// GUID names the writer in the domain.
func (w *Writer) GUID() GUID { return w.p.prefix.GUID(w.id) }

// Write sends a sample, which begins with its CDR header, and gives its number, counted from 1. The payload is the
// caller's again when it returns. With KeepAll it waits while readers lag by more than the limits allow, until ctx
// ends; without, the oldest sample that is kept gives way, whether or not all have it. related becomes the sample's
// related identity.
func (w *Writer) Write(ctx context.Context, payload []byte, related *SampleIdentity) (seq int64, err error) {
	if len(payload) < 4 || len(payload) > w.p.limits.Sample {
		return 0, fmt.Errorf("write to %s: a sample of %d bytes is outside 4..%d (Limits.Sample)", w.topic, len(payload), w.p.limits.Sample)
	}
	w.mu.Lock()
	for !w.closed && !w.room(len(payload)) {
		ch := w.watch()
		w.mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return 0, fmt.Errorf("write to %s: readers have not acknowledged enough to make room: %w", w.topic, ctx.Err())
		}
		w.mu.Lock()
	}
	if w.closed {
		w.mu.Unlock()
		return 0, ErrClosed
	}
	c := w.take(payload)
	if related != nil {
		c.related, c.identity = true, *related
	}
	return w.commit(c), nil
}

// commit adds the sample and sends it, if nobody else is sending already, and gives its number. It is called with the
// lock, and gives it up; c may be another sample's by then.
func (w *Writer) commit(c *change) int64 {
	w.seq++
	seq := w.seq
	c.seq = seq
	c.refs = 1
	w.makeRoom(len(c.payload))
	w.hist.push(c)
	mine := !w.sending && len(w.proxies) > 0
	if mine {
		w.sending = true
	} else if len(w.proxies) == 0 {
		w.prune()
	}
	jobs := 2*len(w.proxies) + 4
	w.mu.Unlock()
	if mine && w.drain(jobs) != 0 {
		w.poke()
	}
	return seq
}

// take makes a change of the payload.
func (w *Writer) take(payload []byte) *change {
	var c *change
	if n := len(w.spare); n > 0 {
		c, w.spare = w.spare[n-1], w.spare[:n-1]
	} else {
		c = &change{}
	}
	buf := w.p.pool.get(len(payload))
	copy(buf.b, payload)
	*c = change{buf: buf, payload: buf.b, stamp: toWire(time.Now())}
	if w.qos.Lifespan > 0 {
		c.expires = w.p.now() + int64(w.qos.Lifespan)
	}
	return c
}

// release gives back a reference.
func (w *Writer) release(c *change) {
	if c == nil {
		return
	}
	if c.refs--; c.refs == 0 {
		w.p.pool.put(c.buf)
		c.buf, c.payload = nil, nil
		if len(w.spare) < 64 {
			w.spare = append(w.spare, c)
		}
	}
}

// room says whether a sample of n bytes may be added without loss.
func (w *Writer) room(n int) bool {
	if !w.qos.KeepAll || w.qos.TransientLocal {
		return true // makeRoom drops the oldest
	}
	return w.hist.n == 0 || w.hist.n < mostKept && w.hist.bytes+n <= w.p.limits.Unacknowledged
}

// makeRoom drops what is over depth or limits.
func (w *Writer) makeRoom(n int) {
	for w.hist.n > 0 {
		over := w.qos.Depth > 0 && w.hist.n >= w.qos.Depth
		if !over && w.hist.n < mostKept && w.hist.bytes+n <= w.p.limits.Unacknowledged {
			return
		}
		w.release(w.hist.pop())
	}
}

// prune drops what no reader needs any more.
func (w *Writer) prune() {
	if w.qos.TransientLocal {
		return
	}
	all := w.seq
	for _, r := range w.proxies {
		if r.reliable {
			all = min(all, r.acked)
		} else {
			all = min(all, r.sent)
		}
	}
	for w.hist.n > 0 && w.hist.first().seq <= all {
		w.release(w.hist.pop())
	}
	w.tell()
}

// withdraw takes a sample out of the history of a builtin writer, and says that its instance is no more.
func (w *Writer) withdraw(seq int64, key GUID, payload []byte) {
	w.mu.Lock()
	if c := w.hist.remove(seq); c != nil {
		w.release(c)
	}
	if w.closed {
		w.mu.Unlock()
		return
	}
	for w.hist.n > 0 && w.hist.first().dispose && w.hist.n > 1024 {
		w.release(w.hist.pop())
	}
	c := w.take(payload)
	c.dispose, c.key = true, key
	w.commit(c)
}

func (w *Writer) watch() <-chan struct{} {
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

func (w *Writer) tell() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// match adds a reader, or learns its new announcement. It is called with the participant's lock.
func (w *Writer) match(e *remote, to *dest) (added bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	if r := w.byGUID[e.GUID]; r != nil {
		r.remote = e
		return false
	}
	r := &readerProxy{
		guid: e.GUID, remote: e, to: to, reliable: w.qos.Reliable && e.QoS.Reliable, fragSize: to.fragment(&w.p.cfg),
		first: w.seq + 1, beatWait: int64(beatUnsynced), pace: newPace(to.near.Load(), w.p.now()),
	}
	if w.qos.TransientLocal && e.QoS.TransientLocal {
		r.first = w.hist.next(1, w.seq+1)
	} else if r.reliable {
		r.hold = w.p.now() + int64(holdFor)
	}
	r.acked, r.sent = r.first-1, r.first-1
	r.synced = !r.reliable
	w.byGUID[e.GUID] = r
	w.proxies = append(w.proxies, r)
	if r.reliable {
		r.beat = true
		w.armBeat(r)
	}
	w.tell()
	w.poke()
	return true
}

// unmatch forgets a reader.
func (w *Writer) unmatch(g GUID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.byGUID[g]
	if r == nil {
		return false
	}
	delete(w.byGUID, g)
	w.proxies = slices.DeleteFunc(w.proxies, func(p *readerProxy) bool { return p == r })
	w.turn = 0
	w.prune()
	w.tell()
	return true
}

// onAckNack learns what a reader has, [..base), and what it misses. One that has less than it had forgot us for a while, or
// was started anew: it gets again what there still is.
func (w *Writer) onAckNack(from GUID, base int64, missing *bitset256, count uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.byGUID[from]
	if r == nil || !r.reliable || base < 0 {
		return
	}
	now := w.p.now()
	if r.acks > 0 && int32(count-r.count) <= 0 && !r.anew.counts(int64(count), now) {
		return
	}
	r.count, r.anew = count, anew{}
	w.sync(r, base)
	if base > w.seq+1 {
		return // it acknowledges what was never written
	}
	if has := max(base, r.first) - 1; has < r.acked {
		r.acked = has
		r.beat, r.beats, r.beatWait, r.beatAt = true, 0, int64(beatUnacked), 0
		w.armBeat(r)
		w.poke()
	}
	if base-1 > r.acked {
		if c := w.hist.find(base - 1); c != nil && len(c.payload) > paceLarge {
			r.pace.quicken()
		}
		r.acked = base - 1
		if r.sent < r.acked {
			r.sent, r.frag = r.acked, 0
		}
		r.forget()
		r.beats, r.beatWait, r.beatAt = 0, int64(beatUnacked), 0
		if r.acked < w.seq {
			w.armBeat(r)
		}
		w.prune()
		w.tell()
	}
	if r.request(base, missing, now) {
		w.poke()
	}
}

// sync decides whether the reader is known to take what is written from now on.
//
// An acknowledgement alone does not say so. A reader may send them before it has seen any heartbeat of ours, as Cyclone
// does every so often until one comes; and a volatile Cyclone reader starts, with a writer of another vendor, at the
// *newest* sample that the first heartbeat it sees tells of. If all heartbeats until then were lost, the first is the one
// that rides with the first sample, and that sample is skipped for good and acknowledged all the same: this is how one
// sample in sixty went missing under loss while everything seemed acknowledged. So heartbeats go on until an
// acknowledgement that can only answer one: it names a first sample that only the heartbeat could tell (base over 1), or
// it is the second, which comes within a round trip of the heartbeat that the first one causes. Until then samples wait,
// for a second at most, so that a program that writes as soon as it sees a match loses nothing either.
func (w *Writer) sync(r *readerProxy, base int64) {
	if r.synced {
		return
	}
	r.acks++
	if r.acks >= 2 || base > 1 && base >= r.first {
		r.synced = true
		r.acks = 2
		r.beatWait, r.beats = int64(beatUnacked), 0
		w.tell()
		w.poke()
		return
	}
	r.beat = true
	w.poke()
}

// onNackFrag learns which pieces of a sample a reader misses: base+i, counted from 1.
func (w *Writer) onNackFrag(from GUID, seq int64, base uint32, missing *bitset256) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.byGUID[from]
	if r == nil || !r.reliable || seq > r.sent || seq <= r.acked || base < 1 {
		return // or still on its way for the first time
	}
	c := w.hist.find(seq)
	if w.gone(r, c) {
		r.request(seq, &bitset256{1 << 31}, w.p.now())
		w.poke()
		return
	}
	if int64(base) > int64(c.fragments(r.fragSize)) || *missing == (bitset256{}) {
		return
	}
	r.pace.slow(w.p.now())
	if r.requestFragments(fragWork{seq: seq, base: int(base) - 1, bits: *missing}) {
		w.poke()
	}
}

// tick makes heartbeats due. It gives when it wants to be called again.
func (w *Writer) tick(now int64) (next int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next = never
	if !w.qos.Reliable || w.closed {
		return next
	}
	for _, r := range w.proxies {
		if !r.reliable || r.synced && r.acked >= w.seq {
			r.beatAt = 0
			continue
		}
		if r.beatAt == 0 {
			r.beatAt = now + r.beatWait
		}
		if now >= r.beatAt {
			r.beat = true
			if r.beats++; r.beats > beatsAtFirst || r.synced && r.beats > 4 {
				r.beatWait = min(2*r.beatWait, int64(beatSlowest))
			}
			r.beatAt = now + r.beatWait
			w.poke()
		}
		next = min(next, r.beatAt)
	}
	return next
}

// Close takes the writer back: matched readers are told. What was not acknowledged is not sent again.
func (w *Writer) Close() error {
	w.p.dropWriter(w)
	return nil
}

// shut ends the writer's goroutine.
func (w *Writer) shut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	close(w.done)
	w.tell()
	for w.hist.n > 0 {
		w.release(w.hist.pop())
	}
}
