package rtps

import "time"

// Times of a writer's side of reliability.
const (
	beatUnsynced = 20 * time.Millisecond // between heartbeats to a reader that has not answered one
	beatUnacked  = 50 * time.Millisecond // to one that has not acknowledged all
	beatSlowest  = time.Second           // to one that does not answer
	askEvery     = 5 * time.Millisecond  // heartbeats with data ask for an answer no more often than this
	repairQuiet  = 5 * time.Millisecond  // a sample that was just sent again is not, for this long
	holdFor      = time.Second           // samples wait for a first answer no longer
	beatsAtFirst = 100                   // heartbeats at the quick period, before they slow down
)

// readerProxy is what a writer knows of one matched reader.
type readerProxy struct {
	guid     GUID
	remote   *remote
	to       *dest
	reliable bool
	fragSize int

	first  int64 // the first sample that concerns it
	acked  int64 // all up to here are acknowledged
	sent   int64 // all up to here were sent once, or do not concern it
	frag   int   // fragments of sent+1 that went already
	synced bool
	hold   int64 // until then, or until it is synced, it gets heartbeats alone: see Writer.sync
	acks   int   // acknowledgements seen, up to 2
	count  uint32
	anew   anew // of its acknowledgements

	repair     bitset256 // samples asked for again: base+i
	repairBase int64
	frags      [8]fragWork // pieces asked for again
	nfrags     int
	recent     [16]repaired
	nrecent    int

	beat     bool // a heartbeat is wanted now
	beatAt   int64
	beatWait int64
	beats    int
	askedAt  int64
	pace     pace
}

// fragWork is pieces of one sample to be sent again: all from next, or those set in bits, which count from base.
type fragWork struct {
	seq   int64
	whole bool
	next  int
	base  int
	bits  bitset256
}

type repaired struct{ seq, at int64 }

// pace is a bucket of bytes that may be sent at once, which fills with time. A large sample that was sent as fast as a
// core can would overflow the other's socket buffer, 208 KiB by default on Linux, which is three datagrams of 60,000
// bytes, or ninety of 1,344; of a best effort sample nothing would arrive. Acknowledgements quicken the pace, a request
// for lost pieces halves it and keeps it below what went wrong.
type pace struct {
	credit int
	at     int64
	burst  int
	rate   int // bytes per second
	most   int // burst that caused no loss
	slowed int64

	leastBurst, leastRate int
}

// Where the pace begins, and its bounds: bytes at once, and per second.
const (
	paceNearBurst = 3 * fragmentNear
	paceNearRate  = 400 << 20
	paceFarBurst  = 48 << 10
	paceFarRate   = 64 << 20
	paceMostBurst = 2 << 20
	paceMostRate  = 1 << 30
	paceLarge     = 32 << 10              // samples from here on tell of the pace
	paceSlowEvery = 20 * time.Millisecond // losses closer together are one
)

func newPace(near bool, now int64) pace {
	p := pace{burst: paceFarBurst, rate: paceFarRate, leastBurst: paceFarBurst / 2, leastRate: paceFarRate / 4, most: paceMostBurst, at: now}
	if near {
		p.burst, p.rate = paceNearBurst, paceNearRate
		p.leastBurst, p.leastRate = fragmentNear, paceNearRate/4
	}
	p.credit = p.burst
	return p
}

func (p *pace) fill(now int64) {
	if p.credit >= p.burst {
		p.at = now
		return
	}
	if add := int(float64(now-p.at) / 1e9 * float64(p.rate)); add > 0 {
		p.credit = min(p.burst, p.credit+add)
		p.at = now
	}
}

// wait is how long until there is credit again.
func (p *pace) wait() int64 {
	return max(int64(float64(p.burst/2-p.credit)/float64(p.rate)*1e9), 1)
}

func (p *pace) slow(now int64) {
	if p.slowed != 0 && now-p.slowed < int64(paceSlowEvery) {
		return
	}
	p.slowed = now
	p.most = max(p.burst*3/4, p.leastBurst)
	p.burst = max(p.burst/2, p.leastBurst)
	p.rate = max(p.rate/2, p.leastRate)
	p.credit = min(p.credit, p.burst)
}

// quicken follows an acknowledgement of a large sample, or samples that wait to be sent.
func (p *pace) quicken() {
	p.rate = min(p.rate+p.rate/16, paceMostRate)
	p.most = min(p.most+p.most/64, paceMostBurst)
	p.burst = min(p.burst+p.burst/16, p.most)
}

// wasRepaired says whether the sample was sent again a moment ago, and notes that it is now if it was not.
func (r *readerProxy) wasRepaired(seq, now int64) bool {
	for i := range r.recent {
		if r.recent[i].seq == seq && r.recent[i].at != 0 && now-r.recent[i].at < int64(repairQuiet) {
			return true
		}
	}
	r.recent[r.nrecent%len(r.recent)] = repaired{seq, now}
	r.nrecent++
	return false
}

// request notes what a reader misses: bit i is sample base+i.
func (r *readerProxy) request(base int64, bits *bitset256, now int64) (any bool) {
	r.repairBase, r.repair = base, bitset256{}
	for i := range bits.span() {
		seq := base + int64(i)
		if !bits.has(i) || seq > r.sent || seq <= r.acked || r.wasRepaired(seq, now) {
			continue
		}
		r.repair.set(i)
		any = true
	}
	return any
}

func (r *readerProxy) requestFragments(f fragWork) bool {
	for i := range r.nfrags {
		if g := &r.frags[i]; g.seq == f.seq && (g.whole || !f.whole && g.base == f.base) {
			g.bits = f.bits
			return true
		}
	}
	if r.nfrags == len(r.frags) {
		return false // it will be asked for again
	}
	r.frags[r.nfrags] = f
	r.nfrags++
	return true
}

func (r *readerProxy) dropFragments(i int) {
	copy(r.frags[i:r.nfrags-1], r.frags[i+1:r.nfrags])
	r.nfrags--
}

// forget drops requests for what the reader has acknowledged since.
func (r *readerProxy) forget() {
	for i := 0; i < r.nfrags; {
		if r.frags[i].seq <= r.acked {
			r.dropFragments(i)
		} else {
			i++
		}
	}
}
