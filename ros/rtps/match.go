package rtps

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// mostMismatches bounds the pairs of endpoints that are reported as not matching.
const mostMismatches = 4096

// matchWriter joins a writer of ours and a reader of another, if they suit each other. The lock is held.
func (p *Participant) matchWriter(w *Writer, q *peer, e *remote) {
	if e.Writer || w.topic == "" || w.topic != e.Topic {
		return
	}
	o := offer{typ: w.typ, qos: w.qos, xcdr1: true}
	if m := compare(o, e.offer(), "our writer", "their reader"); m != nil {
		p.mismatch(m, w.GUID(), q, e)
		return
	}
	if w.match(e, p.destOf(q, e)) {
		p.emit(Event{Kind: Matched, Peer: p.view(q), Endpoint: e.Endpoint, Ours: w.GUID()})
	}
}

// matchReader joins a reader of ours and a writer of another, if they suit each other. The lock is held.
func (p *Participant) matchReader(r *Reader, q *peer, e *remote) {
	if !e.Writer || r.topic == "" || r.topic != e.Topic {
		return
	}
	o := offer{typ: r.typ, qos: r.qos, xcdr1: true}
	if m := compare(e.offer(), o, "their writer", "our reader"); m != nil {
		p.mismatch(m, r.GUID(), q, e)
		return
	}
	if r.match(q, e, p.destOf(q, e)) {
		p.link(e.GUID, r)
		p.emit(Event{Kind: Matched, Peer: p.view(q), Endpoint: e.Endpoint, Ours: r.GUID()})
	}
}

// destOf is where an endpoint's traffic goes: its own locators if it announced some that are not its participant's.
func (p *Participant) destOf(q *peer, e *remote) *dest {
	own := slices.ContainsFunc(e.locators, func(a netip.AddrPort) bool { return !slices.Contains(q.info.Addrs, a) })
	if !own {
		return q.user
	}
	if e.own == nil {
		e.own = &dest{}
		from := q.user.load().Addr()
		if !from.IsValid() {
			from = q.meta.load().Addr()
		}
		e.own.choose(p, e.locators, from)
		if !e.own.load().IsValid() {
			return q.user
		}
	}
	return e.own
}

func (p *Participant) mismatch(m *Mismatch, ours GUID, q *peer, e *remote) {
	m.Topic, m.Ours, m.Theirs = e.Topic, ours, e.GUID
	key := [2]GUID{ours, e.GUID}
	if old, ok := p.mismatches[key]; ok && old == *m || !ok && len(p.mismatches) >= mostMismatches {
		return
	}
	p.mismatches[key] = *m
	p.emit(Event{Kind: Mismatched, Peer: p.view(q), Endpoint: e.Endpoint, Ours: ours, Mismatch: *m})
	if now := p.now(); now >= p.warnAt { // one line a second: a stranger can make thousands
		p.warnAt = now + int64(time.Second)
		p.log.Warn("rtps: endpoints of one topic do not match", "topic", m.Topic, "policy", m.Policy, "why", m.Why, "mismatches", len(p.mismatches))
	}
}

// Mismatches are the pairs of endpoints, ours and another's, of one topic, that will not talk.
func (p *Participant) Mismatches() []Mismatch {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return values(p.mismatches)
}

// unmatchOurs tells of the end of an endpoint of ours. The lock is held.
func (p *Participant) unmatchOurs(ours GUID, matched []Endpoint) {
	for _, e := range matched {
		if q := p.peers[e.GUID.Prefix()]; q != nil {
			p.emit(Event{Kind: Unmatched, Peer: p.view(q), Endpoint: e, Ours: ours})
		}
	}
	for k := range p.mismatches {
		if k[0] == ours {
			delete(p.mismatches, k)
		}
	}
}

// link and unlink keep which readers of ours a writer of another is for.
func (p *Participant) link(writer GUID, r *Reader) {
	if !slices.Contains(p.sources[writer], r) {
		p.sources[writer] = append(slices.Clone(p.sources[writer]), r)
	}
}

func (p *Participant) unlink(writer GUID, r *Reader) {
	rest := slices.DeleteFunc(slices.Clone(p.sources[writer]), func(o *Reader) bool { return o == r })
	if len(rest) == 0 {
		delete(p.sources, writer)
		return
	}
	p.sources[writer] = rest
}

// offer is one side of a possible match.
type offer struct {
	typ        string
	qos        QoS
	exclusive  bool
	xcdr1      bool
	partitions []string
}

func (e *remote) offer() offer {
	return offer{e.Type, e.QoS, e.exclusive, e.xcdr1, e.partitions}
}

// compare says why a writer does not suit a reader; nil is that it does. The policies are named as ROS names them.
func compare(w, r offer, writer, reader string) *Mismatch {
	no := func(policy, format string, a ...any) *Mismatch {
		return &Mismatch{Policy: policy, Why: fmt.Sprintf(format, a...)}
	}
	switch {
	case w.typ != r.typ:
		return no("type", "%s has the type %s and %s asks for %s: one of the two programs uses another message type", writer, w.typ, reader, r.typ)
	case r.qos.Reliable && !w.qos.Reliable:
		return no("reliability", "%s is best effort and %s asks for reliable: make the reader best effort, or the writer reliable", writer, reader)
	case r.qos.TransientLocal && !w.qos.TransientLocal:
		return no("durability", "%s is volatile and %s asks for transient local: make the reader volatile, or the writer transient local", writer, reader)
	case longer(w.qos.Deadline, r.qos.Deadline):
		return no("deadline", "%s promises a sample every %s and %s asks for one every %s: make the reader's deadline longer, or the writer's shorter",
			writer, period(w.qos.Deadline), reader, period(r.qos.Deadline))
	case longer(w.qos.Lease, r.qos.Lease):
		return no("liveliness", "%s promises a sign of life every %s and %s asks for one every %s: make the reader's lease longer, or the writer's shorter",
			writer, period(w.qos.Lease), reader, period(r.qos.Lease))
	case w.exclusive != r.exclusive:
		return no("ownership", "%s and %s disagree on exclusive ownership, which ROS does not use: make both shared", writer, reader)
	case !w.xcdr1 || !r.xcdr1:
		return no("representation", "%s and %s share no encoding: ours is XCDR1 alone, which the other must allow", writer, reader)
	case !sharePartition(w.partitions, r.partitions):
		return no("partition", "%s is in the partitions %q and %s in %q: ours are in the default one, and the other must be too", writer, w.partitions, reader, r.partitions)
	}
	return nil
}

// longer compares durations of which 0 is infinite.
func longer(a, b time.Duration) bool { return b != 0 && (a == 0 || a > b) }

func period(d time.Duration) string {
	if d == 0 {
		return "eternity"
	}
	return d.String()
}

// sharePartition knows the default partition and "*"; ours are always in the default one.
func sharePartition(a, b []string) bool {
	def := func(l []string) bool {
		return len(l) == 0 || slices.Contains(l, "") || slices.Contains(l, "*")
	}
	return def(a) && def(b)
}
