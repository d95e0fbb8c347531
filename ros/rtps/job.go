package rtps

import "math/bits"

// job is what to send next to one reader: decided under the writer's lock, sent without it.
type job struct {
	kind jobKind
	to   *dest
	guid GUID
	c    *change

	fragSize int
	from     int // fragments [from, until)
	until    int
	picked   bool // only those of set, which counts from base
	base     int
	set      bitset256

	gapStart, gapBase int64

	beat        bool // a heartbeat rides along at the end
	final       bool
	first, last int64
	count       uint32
}

type jobKind uint8

const (
	jobBeat jobKind = iota
	jobGap
	jobData
	jobFragments
)

// pick finds the next thing to send, taking readers in turn. wait is how long until pacing lets more go; 0 is nothing
// to wait for.
func (w *Writer) pick(j *job, now int64) (ok bool, wait int64) {
	n := len(w.proxies)
	for i := range n {
		k := (w.turn + i) % n
		r := w.proxies[k]
		got, paced := w.pickFor(r, j, now)
		if got {
			w.turn = (k + 1) % n
			j.to, j.guid = r.to, r.guid
			if j.c != nil {
				j.c.refs++
			}
			return true, 0
		}
		if paced > 0 && (wait == 0 || paced < wait) {
			wait = paced
		}
	}
	return false, wait
}

func (w *Writer) pickFor(r *readerProxy, j *job, now int64) (ok bool, wait int64) {
	*j = job{fragSize: r.fragSize}
	if r.beat && r.reliable {
		r.beat = false
		j.kind = jobBeat
		w.ride(r, j, now, true)
		return true, 0
	}
	if r.hold > now && !r.synced {
		return false, 0 // see readerProxy.hold
	}
	if w.pickGap(r, j) {
		return true, 0
	}
	r.pace.fill(now)
	if r.pace.credit <= 0 {
		if r.nfrags > 0 || r.sent < w.seq || r.repair != (bitset256{}) {
			return false, r.pace.wait()
		}
		return false, 0
	}
	if r.frag == 0 && w.seq > r.sent+2 && w.hist.bytes > r.pace.burst {
		r.pace.quicken() // it waits: what does not go soon falls out of the history
	}
	return w.pickRepair(r, j, now) || w.pickFragments(r, j, now) || w.pickNew(r, j, now), 0
}

// gone says that a sample is not to be had for this reader any more, or never concerned it.
func (w *Writer) gone(r *readerProxy, c *change) bool {
	return c == nil || c.seq < r.first || c.expires != 0 && c.expires < w.p.now()
}

// pickGap tells a reliable reader which of what it waits for will not come. It is decided now and not when the sample
// fell out of the history: until the reader asks, or its turn comes, the sample may already have arrived.
func (w *Writer) pickGap(r *readerProxy, j *job) bool {
	if !r.reliable {
		return false
	}
	if r.repair != (bitset256{}) {
		i := lowest(&r.repair)
		seq := r.repairBase + int64(i)
		if w.gone(r, w.hist.find(seq)) {
			end := max(w.hist.next(seq+1, w.seq+1), min(r.first, w.seq+1), seq+1)
			for k := i; k < 256 && r.repairBase+int64(k) < end; k++ {
				r.repair.clear(k)
			}
			j.kind, j.gapStart, j.gapBase = jobGap, seq, end
			return true
		}
	}
	if next := r.sent + 1; next <= w.seq && w.gone(r, w.hist.find(next)) {
		end := max(w.hist.next(next+1, w.seq+1), next+1)
		j.kind, j.gapStart, j.gapBase = jobGap, next, end
		r.sent, r.frag = end-1, 0
		w.armBeat(r)
		return true
	}
	return false
}

// pickRepair sends again a whole sample that the reader has nothing of.
func (w *Writer) pickRepair(r *readerProxy, j *job, now int64) bool {
	if r.repair == (bitset256{}) {
		return false
	}
	i := lowest(&r.repair)
	c := w.hist.find(r.repairBase + int64(i))
	r.repair.clear(i)
	w.resent++
	if c.fragments(r.fragSize) > 0 {
		r.requestFragments(fragWork{seq: c.seq, whole: true})
		return w.pickFragments(r, j, now)
	}
	j.kind, j.c = jobData, c
	r.pace.credit -= len(c.payload)
	if r.repair == (bitset256{}) {
		w.ride(r, j, now, true)
	}
	return true
}

// pickFragments sends again pieces of a sample.
func (w *Writer) pickFragments(r *readerProxy, j *job, now int64) bool {
	for r.nfrags > 0 {
		f := &r.frags[0]
		c := w.hist.find(f.seq)
		if c == nil || f.seq <= r.acked {
			r.dropFragments(0)
			if c == nil {
				r.beat = true // its answer is a request, which a gap answers
			}
			continue
		}
		n := c.fragments(r.fragSize)
		j.kind, j.c = jobFragments, c
		if f.whole {
			j.from = f.next
			j.until = min(n, f.next+max(1, r.pace.credit/r.fragSize))
			f.next = j.until
		} else {
			j.picked, j.base, j.set = true, f.base, f.bits
			j.from, j.until = f.base, min(n, f.base+f.bits.span())
		}
		done := !f.whole || f.next >= n
		w.spend(r, j)
		if done {
			r.dropFragments(0)
			w.ride(r, j, now, true)
		}
		return true
	}
	return false
}

// pickNew sends what the reader was not sent yet.
func (w *Writer) pickNew(r *readerProxy, j *job, now int64) bool {
	for r.sent < w.seq {
		c := w.hist.find(r.sent + 1)
		if w.gone(r, c) {
			r.sent, r.frag = w.hist.next(r.sent+1, w.seq+1)-1, 0
			if c != nil {
				r.sent = c.seq
			}
			continue
		}
		n := c.fragments(r.fragSize)
		j.c = c
		if n == 0 {
			j.kind = jobData
			r.pace.credit -= len(c.payload)
			r.sent++
		} else {
			j.kind = jobFragments
			j.from = r.frag
			j.until = min(n, r.frag+max(1, r.pace.credit/r.fragSize))
			r.frag = j.until
			w.spend(r, j)
			if r.frag == n {
				r.sent, r.frag = r.sent+1, 0
			}
		}
		if r.sent == c.seq && r.reliable {
			w.ride(r, j, now, false)
		}
		return true
	}
	return false
}

func (w *Writer) spend(r *readerProxy, j *job) {
	n := j.until - j.from
	if j.picked {
		n = 0
		for _, word := range j.set {
			n += bits.OnesCount32(word)
		}
		w.resentFragments += n
	}
	r.pace.credit -= n * r.fragSize
}

// ride adds a heartbeat to the job. It asks for an answer if ask, or if none was asked for a while.
func (w *Writer) ride(r *readerProxy, j *job, now int64, ask bool) {
	if !r.reliable {
		return
	}
	behind := r.sent - r.acked
	ask = ask || now-r.askedAt >= int64(askEvery) || behind >= 32 || behind*2 >= int64(w.qos.Depth)
	j.beat, j.final = true, !ask
	if ask {
		r.askedAt = now
	}
	w.beats++
	j.count = w.beats
	j.first = max(w.hist.next(r.first, w.seq+1), r.first)
	j.last = max(r.sent, j.first-1)
	w.armBeat(r)
}

// armBeat makes the timer come for a heartbeat if the reader does not answer.
func (w *Writer) armBeat(r *readerProxy) {
	if r.beatAt == 0 {
		r.beatAt = w.p.now() + r.beatWait
	}
	w.p.alarm.by(r.beatAt)
}

func lowest(s *bitset256) int {
	for i, word := range s {
		if word != 0 {
			return 32*i + bits.LeadingZeros32(word)
		}
	}
	return 256
}
