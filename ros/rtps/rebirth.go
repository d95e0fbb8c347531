package rtps

import "time"

// A program that is started again usually has another GUID. Some have the same: microcontrollers that make it from their
// address, and old versions that make it from the process number, which in a container is always the same. When it died
// without a goodbye, nothing but its numbers tells: they begin anew, and would be taken for repetitions of old ones for as
// long as it lives, since every datagram of it is a sign of life.

// rebornAfter is how long numbers must count upwards anew, with none that continues the old ones, until they are believed:
// datagrams that were overtaken on their way come for a moment only.
const rebornAfter = time.Second

// anew watches numbers that should have been higher.
type anew struct {
	n           int
	last, since int64
}

// counts notes a number that is too low, and says whether they count anew.
func (a *anew) counts(v, now int64) bool {
	switch {
	case a.n == 0 || v < a.last:
		*a = anew{1, v, now}
	case v > a.last: // the same comes by several ways
		a.n, a.last = a.n+1, v
	}
	return a.n >= 3 && now-a.since >= int64(rebornAfter)
}

// reborn forgets a participant that has lost its memory, and takes it for a new one.
func (p *Participant) reborn(prefix GUIDPrefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.peers[prefix]
	if q == nil || p.closed {
		return
	}
	p.log.Warn("rtps: a participant was started anew with the GUID that it had before, and is taken for a new one", "peer", prefix)
	d := spdpData{info: q.info, meta: q.locators, user: q.info.Addrs, builtin: q.builtin}
	from := q.meta.load()
	p.dropPeer(q)
	p.learnPeer(&d, from)
}
