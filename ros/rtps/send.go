package rtps

import (
	"net/netip"
	"time"
)

// drain sends what there is, until nothing is left that may go, at most jobs (0: without bound). The caller holds the
// token (w.sending), and gives it back by draining.
func (w *Writer) drain(jobs int) (wait int64) {
	var j job
	for n := 0; ; n++ {
		w.mu.Lock()
		if n > 0 {
			w.release(j.c)
		}
		full := jobs > 0 && n >= jobs
		ok := false
		if !full && !w.closed {
			ok, wait = w.pick(&j, w.p.now())
		}
		if !ok {
			w.prune()
			w.sending = false
			w.mu.Unlock()
			if full {
				return 1
			}
			return wait
		}
		w.mu.Unlock()
		w.perform(&j)
	}
}

// perform makes the job's datagrams and sends them, without lock.
func (w *Writer) perform(j *job) {
	m := &w.tx
	to := j.to.load()
	if !to.IsValid() {
		return
	}
	m.start(w.p.prefix)
	m.dest(j.guid.Prefix())
	entity := j.guid.Entity()
	switch j.kind {
	case jobBeat:
	case jobGap:
		m.gap(entity, w.id, j.gapStart, j.gapBase, &bitset256{})
	case jobData:
		m.stamp(j.c.stamp)
		m.data(entity, w.id, j.c)
	case jobFragments:
		m.stamp(j.c.stamp)
		w.performFragments(m, j, entity)
		return
	}
	if j.beat {
		m.heartbeat(entity, w.id, j.first, j.last, j.count, j.final)
	}
	w.p.send(m.b, to)
}

func (w *Writer) performFragments(m *message, j *job, entity EntityID) {
	head := len(m.b)
	to := j.to.load()
	last := j.until - 1
	if j.picked {
		for last > j.from && !j.set.has(last-j.base) {
			last--
		}
	}
	size := 0 // of the datagrams in w.train, which are all alike
	w.train = w.train[:0]
	for f := j.from; f <= last; f++ {
		if j.picked && !j.set.has(f-j.base) {
			continue
		}
		m.b = m.b[:head]
		m.dataFrag(entity, w.id, j.c, f, j.fragSize)
		if f < last && 2*len(m.b) <= mostTrain && w.p.cfg.Wire == nil {
			size = len(m.b)
			if w.train = append(w.train, m.b...); len(w.train)+size > mostTrain || len(w.train) >= 64*size {
				w.depart(size, to)
			}
			continue
		}
		w.depart(size, to)
		if f == last && j.beat {
			m.heartbeat(entity, w.id, j.first, j.last, j.count, j.final)
		}
		w.p.send(m.b, to)
	}
}

// mostTrain bounds the datagrams that the system is given at once.
const mostTrain = 60000

// depart sends datagrams of one size that lie one after the other: in one call where the system can, which costs a
// fraction of what each by itself does.
func (w *Writer) depart(size int, to netip.AddrPort) {
	if len(w.train) > size && w.p.net.sendTrain(w.train, size, to) {
		w.p.count.out.Add(uint64(len(w.train) / size))
		w.p.count.outBytes.Add(uint64(len(w.train)))
		w.train = w.train[:0]
		return
	}
	for b := w.train; len(b) > 0; b = b[size:] {
		w.p.send(b[:size], to)
	}
	w.train = w.train[:0]
}

// pump is the writer's own goroutine: it sends what Write left, what readers ask for again, and heartbeats.
func (w *Writer) pump() {
	for {
		select {
		case <-w.done:
			return
		case <-w.kick:
		}
		for {
			w.mu.Lock()
			busy := w.sending || w.closed
			if !busy {
				w.sending = true
			}
			w.mu.Unlock()
			if busy {
				break // whoever sends finds the rest
			}
			wait := w.drain(0)
			if wait == 0 {
				break
			}
			w.p.net.nap(time.Duration(min(wait, 2e6)))
		}
	}
}

func (w *Writer) poke() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}
