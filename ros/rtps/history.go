package rtps

// change is one sample of a writer's, from when it is written until nobody needs it.
type change struct {
	seq      int64
	stamp    wireTime
	expires  int64 // of Participant.now; 0 is never
	buf      *buffer
	payload  []byte
	related  bool
	dispose  bool // the end of an instance: payload is its key
	identity SampleIdentity
	key      [16]byte // with dispose
	refs     int      // the history, and a send that is under way; under the writer's lock
}

func (c *change) inline() bool { return c.related || c.dispose }

// fragments is how many pieces of size bytes the sample makes; 0 when it goes whole.
func (c *change) fragments(size int) int {
	if len(c.payload) <= size {
		return 0
	}
	return (len(c.payload) + size - 1) / size
}

// history is a writer's samples by sequence number, oldest first. Some numbers may be absent.
type history struct {
	ring  []*change
	head  int
	n     int
	bytes int
}

func (h *history) at(i int) *change { return h.ring[(h.head+i)%len(h.ring)] }

func (h *history) first() *change {
	if h.n == 0 {
		return nil
	}
	return h.at(0)
}

func (h *history) push(c *change) {
	if h.n == len(h.ring) {
		grown := make([]*change, max(16, 2*len(h.ring)))
		for i := range h.n {
			grown[i] = h.at(i)
		}
		h.ring, h.head = grown, 0
	}
	h.ring[(h.head+h.n)%len(h.ring)] = c
	h.n++
	h.bytes += len(c.payload)
}

func (h *history) pop() *change {
	c := h.ring[h.head]
	h.ring[h.head] = nil
	h.head = (h.head + 1) % len(h.ring)
	h.n--
	h.bytes -= len(c.payload)
	return c
}

// search gives the place of the first sample whose number is seq or more.
func (h *history) search(seq int64) int {
	if h.n == 0 || h.at(0).seq >= seq {
		return 0
	}
	if d := seq - h.at(0).seq; d < int64(h.n) && h.at(int(d)).seq == seq {
		return int(d) // none absent before it, as almost always
	}
	lo, hi := 0, h.n
	for lo < hi {
		if mid := (lo + hi) / 2; h.at(mid).seq < seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (h *history) find(seq int64) *change {
	if i := h.search(seq); i < h.n && h.at(i).seq == seq {
		return h.at(i)
	}
	return nil
}

// next gives the number of the first sample that is there at or after seq; end when there is none.
func (h *history) next(seq, end int64) int64 {
	if i := h.search(seq); i < h.n {
		return h.at(i).seq
	}
	return end
}

// remove takes a sample from anywhere.
func (h *history) remove(seq int64) *change {
	i := h.search(seq)
	if i >= h.n || h.at(i).seq != seq {
		return nil
	}
	c := h.at(i)
	for ; i < h.n-1; i++ {
		h.ring[(h.head+i)%len(h.ring)] = h.at(i + 1)
	}
	h.ring[(h.head+h.n-1)%len(h.ring)] = nil
	h.n--
	h.bytes -= len(c.payload)
	return c
}
