package rtps

// assembly is a sample of which not all pieces came yet.
type assembly struct {
	seq     int64
	s       *Sample
	size    int // of a fragment
	n, left int // fragments, and how many are missing
	high    int // one more than the highest that came
	got     []uint64
	at      int64 // when the last piece came
}

func (a *assembly) has(i int) bool { return a.got[i/64]&(1<<(i%64)) != 0 }

// onFragment takes one or more pieces of a sample.
func (r *Reader) onFragment(in *incoming, x *receiver) {
	n := (in.total + in.size - 1) / in.size
	if int64(in.first) > int64(n) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.byGUID[in.writer]
	if w == nil || !r.wants(w, in.seq) {
		return
	}
	a := r.part(w, in, n)
	if a == nil {
		return
	}
	a.at = r.p.now()
	body := in.body
	for i := int(in.first) - 1; i < n && len(body) > 0; i++ {
		want := min(in.size, in.total-i*in.size)
		if len(body) < want {
			break // cut short: as if it had not come
		}
		if !a.has(i) {
			copy(a.s.Payload[i*in.size:], body[:want])
			a.got[i/64] |= 1 << (i % 64)
			a.left--
			a.high = max(a.high, i+1)
		}
		body = body[want:]
	}
	x.ahead = a.left * a.size
	if a.left == 0 {
		s := a.s
		a.s = nil
		s.note(in)
		r.dropPartOf(w, in.seq)
		r.accept(w, s)
		return
	}
	if in.related {
		a.s.note(in)
	}
	if w.reliable {
		w.last = max(w.last, in.seq)
		r.armNack(w)
	}
}

// part finds the unfinished sample that a piece belongs to, or begins one if there is room.
func (r *Reader) part(w *writerProxy, in *incoming, n int) *assembly {
	for _, a := range w.parts {
		if a.seq == in.seq {
			if a.size != in.size || len(a.s.Payload) != in.total {
				r.p.count.malformed.Add(1)
				return nil
			}
			return a
		}
	}
	if w.reliable && len(w.parts) >= mostParts {
		r.p.count.overBudget.Add(1)
		return nil
	}
	if !w.reliable && len(w.parts) >= mostLoose {
		r.dropPart(w, 0)
	}
	cost := in.total + n/8
	if !r.reserve(w.peer, cost) {
		return nil
	}
	var a *assembly
	if k := len(r.spareParts); k > 0 {
		a, r.spareParts = r.spareParts[k-1], r.spareParts[:k-1]
	} else {
		a = &assembly{}
	}
	s := r.take(in.total)
	s.note(in)
	s.reserved, s.peer = cost, w.peer
	words := (n + 63) / 64
	got := a.got
	if cap(got) < words {
		got = make([]uint64, words)
	}
	got = got[:words]
	clear(got)
	*a = assembly{seq: in.seq, s: s, size: in.size, n: n, left: n, got: got}
	at := len(w.parts)
	for at > 0 && w.parts[at-1].seq > a.seq {
		at--
	}
	w.parts = append(w.parts, nil)
	copy(w.parts[at+1:], w.parts[at:])
	w.parts[at] = a
	return a
}

func (r *Reader) dropPart(w *writerProxy, i int) {
	a := w.parts[i]
	w.parts = append(w.parts[:i], w.parts[i+1:]...)
	r.recycle(a.s)
	a.s = nil
	if cap(a.got) <= 1<<10 && len(r.spareParts) < 16 {
		r.spareParts = append(r.spareParts, a)
	}
}

func (r *Reader) dropPartOf(w *writerProxy, seq int64) {
	for i, a := range w.parts {
		if a.seq == seq {
			r.dropPart(w, i)
			return
		}
	}
}
