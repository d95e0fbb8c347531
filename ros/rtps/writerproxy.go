package rtps

import "time"

// Times and bounds of a reader's side of reliability.
const (
	nackFirst    = 15 * time.Millisecond  // from a hole, or from the last piece that came, until it is asked for unbidden
	nackSlowest  = 500 * time.Millisecond // between questions for what does not come
	nackQuiet    = 8 * time.Millisecond   // the same is not asked for twice within
	lateBy       = 5 * time.Millisecond   // a timer that comes later than this was held up
	tailQuiet    = 3 * time.Millisecond   // pieces after the last that came are thought to be still on their way
	window       = 1024                   // samples kept that came before their turn
	mostParts    = 64                     // unfinished samples of one reliable writer
	mostLoose    = 4                      // and of a best effort one
	mostOpenings = 6                      // acknowledgements to a writer that says nothing
	openingFirst = 100 * time.Millisecond // and the time after the first, which doubles
	openingData  = 25 * time.Millisecond  // between them while samples wait for where to begin: a heartbeat was lost
	mostNacked   = 4                      // requests for pieces in one answer
)

// writerProxy is what a reader knows of one matched writer.
type writerProxy struct {
	guid     GUID
	remote   *remote
	peer     *peer
	vendor   VendorID
	to       *dest
	reliable bool

	next     int64             // all before it was delivered, is lost, or does not concern us
	last     int64             // the highest that is known to exist
	started  bool              // a sample or a heartbeat came
	baseline int64             // the last that existed when the first heartbeat came: gaps up to it are no losses
	stalled  bool              // the reader's queue has no room
	pend     map[int64]*Sample // came before its turn; nil will not come
	parts    []*assembly

	openings   int
	beats      uint32
	ackDue     bool
	nackAt     int64
	nackWait   int64
	nackedAt   int64
	nackedBase int64
	anew       anew // of its heartbeats, or of its samples when it is best effort
}

// onData takes a whole sample.
func (r *Reader) onData(in *incoming, _ *receiver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.byGUID[in.writer]
	if w == nil || !r.wants(w, in.seq) {
		return
	}
	ahead := w.reliable && (in.seq != w.next || r.full())
	if ahead && !r.reserve(w.peer, in.total) {
		return
	}
	s := r.take(in.total)
	copy(s.Payload, in.body)
	s.note(in)
	if ahead {
		s.reserved, s.peer = in.total, w.peer
	}
	r.accept(w, s)
}

// wants says whether a sample is one that did not come yet; a best effort writer may have begun anew.
func (r *Reader) wants(w *writerProxy, seq int64) bool {
	if !w.reliable && seq < w.next && w.anew.counts(seq, r.p.now()) {
		w.next = seq
	}
	return w.wants(seq)
}

// wants says whether a sample is one that did not come yet, and is not too far ahead to be kept.
func (w *writerProxy) wants(seq int64) bool {
	if seq < w.next || w.reliable && seq >= w.next+window {
		if seq > w.last && seq < lastSeq && w.reliable {
			w.last = seq
		}
		return false
	}
	_, dup := w.pend[seq]
	return !dup
}

// accept takes a whole sample that w wants.
func (r *Reader) accept(w *writerProxy, s *Sample) {
	seq := s.Seq
	if !w.reliable {
		if w.started && seq > w.next {
			r.lost += uint64(seq - w.next)
		}
		w.started, w.anew = true, anew{}
		w.next = seq + 1
		for len(w.parts) > 0 && w.parts[0].seq <= seq {
			r.dropPart(w, 0)
		}
		if r.full() {
			r.recycle(s)
			r.dropped++
			return
		}
		r.enqueue(s)
		return
	}
	w.last = max(w.last, seq)
	if seq == w.next && !r.full() {
		w.advance(seq + 1)
		r.dropPartOf(w, seq)
		r.enqueue(s)
	} else {
		r.dropPartOf(w, seq)
		w.pend[seq] = s
	}
	if len(w.pend) > 0 {
		r.drain(w)
	}
	r.armNack(w)
}

func (w *writerProxy) advance(next int64) {
	w.next = next
	w.nackWait = int64(nackFirst)
	w.nackAt = 0
}

// drain hands on what has its turn now.
func (r *Reader) drain(w *writerProxy) {
	for {
		s, ok := w.pend[w.next]
		if !ok {
			return
		}
		if s != nil && r.full() {
			w.stalled, r.stalled = true, true
			return
		}
		delete(w.pend, w.next)
		r.dropPartOf(w, w.next)
		w.advance(w.next + 1)
		if s != nil {
			r.enqueue(s)
		}
	}
}

// skip goes on to a sample: what is missing before it will not come, and counts as lost above the baseline.
func (r *Reader) skip(w *writerProxy, to int64) {
	if to <= w.next {
		return
	}
	lose := func(end int64) {
		if from := max(w.next, w.baseline+1); w.started && end > from {
			r.lost += uint64(end - from)
		}
	}
	for _, seq := range r.sortedBelow(w, to) {
		s := w.pend[seq]
		if s != nil && r.full() {
			w.stalled, r.stalled = true, true
			return // the writer will say it again
		}
		lose(seq)
		delete(w.pend, seq)
		w.advance(seq + 1)
		if s != nil {
			r.enqueue(s)
		}
	}
	lose(to)
	w.advance(to)
	for i := 0; i < len(w.parts); {
		if w.parts[i].seq < to {
			r.dropPart(w, i)
		} else {
			i++
		}
	}
	r.drain(w)
}

// onHeartbeat learns what the writer has, and answers with what is missing of it. reborn says that the writer has begun
// anew.
func (r *Reader) onHeartbeat(writer GUID, first, last int64, count uint32, final bool, x *receiver) (reborn bool) {
	r.mu.Lock()
	w := r.byGUID[writer]
	if w == nil || !w.reliable {
		r.mu.Unlock()
		return false
	}
	old, less := w.beats != 0 && int32(count-w.beats) <= 0, last < w.next-1
	if old || less { // overtaken on its way, or the writer has begun anew
		believed := w.anew.counts(int64(count), r.p.now())
		if !believed || less || r.topic == "" { // discovery may say other things under the same numbers
			r.mu.Unlock()
			return believed
		}
	}
	w.beats, w.anew = count, anew{}
	if !w.started {
		w.baseline = last
		r.skip(w, first)
		w.started = true
		w.nackAt = 0
	} else {
		r.skip(w, first)
	}
	w.last = max(w.last, last)
	missing := r.answer(w, &x.out, true)
	to := w.to.load()
	r.armNack(w)
	r.mu.Unlock()
	if missing || !final {
		r.p.send(x.out.b, to)
	}
	return false
}

// onHeartbeatFrag learns how many pieces of a sample there are so far.
func (r *Reader) onHeartbeatFrag(writer GUID, seq int64, _ uint32, _ *receiver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.byGUID[writer]
	if w == nil || !w.reliable || seq < w.next || seq >= w.next+window {
		return
	}
	w.last = max(w.last, seq)
	r.armNack(w) // the pieces are asked for when they stop coming
}

// onGap learns what will not come: [start, base), and base+i for each bit.
func (r *Reader) onGap(writer GUID, start, base int64, set *bitset256, _ *receiver) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.byGUID[writer]
	if w == nil || !w.reliable {
		return
	}
	if start <= w.next {
		r.skip(w, base)
	} else {
		for seq := start; seq < min(base, w.next+window); seq++ {
			r.wontCome(w, seq)
		}
	}
	for i := range set.span() {
		if set.has(i) {
			r.wontCome(w, base+int64(i))
		}
	}
	r.drain(w)
	r.armNack(w)
}

func (r *Reader) wontCome(w *writerProxy, seq int64) {
	if seq < w.next || seq >= w.next+window {
		return
	}
	if _, ok := w.pend[seq]; !ok {
		w.pend[seq] = nil
		r.dropPartOf(w, seq)
		if w.started && seq > w.baseline {
			r.lost++
		}
	}
}

// armNack makes the timer ask for what is missing, in case the writer never says that there is more.
func (r *Reader) armNack(w *writerProxy) {
	if waiting := len(w.pend)+len(w.parts) > 0; !w.started && w.reliable && (waiting || w.openings < mostOpenings) {
		at := r.p.now() + int64(openingFirst)<<min(w.openings, mostOpenings)
		if waiting {
			at = r.p.now() + int64(openingData)
		}
		if w.nackAt == 0 || at < w.nackAt {
			w.nackAt = at
		}
		r.p.alarm.by(w.nackAt)
		return
	}
	if !w.reliable || w.next > w.last || w.stalled {
		w.nackAt = 0
		return
	}
	if w.nackAt == 0 {
		w.nackAt = r.p.now() + w.nackWait
	}
	r.p.alarm.by(w.nackAt)
}

// tick asks for what does not come, and sends acknowledgements that are due. It gives when it wants to be called again.
func (r *Reader) tick(now int64, out *message) (next int64) {
	for {
		r.mu.Lock()
		var due *writerProxy
		next = never
		for _, w := range r.byGUID {
			if w.ackDue {
				due = w
				break
			}
			if w.nackAt == 0 {
				continue
			}
			if now < w.nackAt {
				next = min(next, w.nackAt)
				continue
			}
			if now > w.nackAt+int64(lateBy) {
				w.nackAt = now + int64(lateBy) // this process had no turn: what is missing may lie in the socket
				next = min(next, w.nackAt)
				continue
			}
			// Pieces of what is missing are coming. Later samples say nothing of it: they may never cease.
			if a := w.find(w.next); a != nil && now < a.at+int64(nackFirst)/2 && w.nackWait == int64(nackFirst) {
				w.nackAt = a.at + int64(nackFirst)/2
				next = min(next, w.nackAt)
				continue
			}
			due = w
			break
		}
		if due == nil {
			r.mu.Unlock()
			return next
		}
		if !due.ackDue {
			due.nackWait = min(2*due.nackWait, int64(nackSlowest))
		}
		if !due.started {
			due.openings++
		}
		due.ackDue = false
		due.nackAt = 0
		r.answer(due, out, false)
		r.armNack(due)
		to := due.to.load()
		r.mu.Unlock()
		r.p.send(out.b, to)
	}
}

// answer makes the datagram that says what came and what is missing. asked is when a heartbeat called for it.
func (r *Reader) answer(w *writerProxy, out *message, asked bool) (missing bool) {
	now := r.p.now()
	out.start(r.p.prefix)
	out.dest(w.guid.Prefix())
	var set bitset256
	pieces := 0
	end := min(w.last, w.next+255)
	again := w.nackedBase == w.next && now-w.nackedAt < int64(nackQuiet)
	if !w.stalled && !(asked && again) {
		for seq := w.next; seq <= end; seq++ {
			if _, ok := w.pend[seq]; ok {
				continue
			}
			if a := w.find(seq); a == nil {
				set.set(int(seq - w.next))
			} else if pieces < mostNacked {
				pieces += r.askPieces(w, a, out, now, mostNacked-pieces)
			}
		}
	}
	missing = pieces > 0 || set != bitset256{}
	if missing {
		w.nackedBase, w.nackedAt = w.next, now
	}
	r.acks++
	base, final := w.next, !missing
	if !w.started {
		base, final, set = w.opening(), false, bitset256{} // with a bit set Fast DDS does not take it for a question
	}
	out.ackNack(r.id, w.guid.Entity(), base, &set, r.acks, final)
	return missing
}

// opening is the number in an acknowledgement before anything was heard of the writer, which asks for a heartbeat. Fast
// DDS answers at once to 0 alone, and otherwise with its period of 3 s; to the specification and to others 0 is no number.
func (w *writerProxy) opening() int64 {
	if w.vendor == VendorFastDDS {
		return 0
	}
	return 1
}

func (w *writerProxy) find(seq int64) *assembly {
	for _, a := range w.parts {
		if a.seq == seq {
			return a
		}
	}
	return nil
}

// askPieces asks for missing pieces of a sample, at most most times 256.
func (r *Reader) askPieces(w *writerProxy, a *assembly, out *message, now int64, most int) (asked int) {
	end := a.n
	if now-a.at < int64(tailQuiet) {
		end = a.high
	}
	for i := 0; i < end && asked < most; {
		if a.has(i) {
			i++
			continue
		}
		var set bitset256
		base := i
		for ; i < end && i < base+256; i++ {
			if !a.has(i) {
				set.set(i - base)
			}
		}
		r.acks++
		out.nackFrag(r.id, w.guid.Entity(), a.seq, uint32(base+1), &set, r.acks)
		asked++
	}
	return asked
}
