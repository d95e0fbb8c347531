package rtps

import (
	"math/bits"
	"sync"
)

// pool keeps buffers of samples for use again, so that a steady stream allocates nothing and the garbage collector is
// not fed a megabyte per picture. It holds at most limit bytes; more is left to the collector.
type pool struct {
	mu    sync.Mutex
	free  [27][]*buffer // by class: a buffer of class c has 256<<c bytes
	held  int
	limit int
}

type buffer struct {
	b     []byte
	class int8
}

func classOf(n int) int {
	if n <= 256 {
		return 0
	}
	return bits.Len(uint(n-1)) - 8
}

// get gives a buffer of n bytes, whose contents are anything.
func (p *pool) get(n int) *buffer {
	c := classOf(n)
	if c >= len(p.free) {
		return &buffer{b: make([]byte, n), class: -1}
	}
	p.mu.Lock()
	if l := len(p.free[c]); l > 0 {
		b := p.free[c][l-1]
		p.free[c] = p.free[c][:l-1]
		p.held -= 256 << c
		p.mu.Unlock()
		b.b = b.b[:n]
		return b
	}
	p.mu.Unlock()
	return &buffer{b: make([]byte, n, 256<<c), class: int8(c)}
}

func (p *pool) put(b *buffer) {
	if b == nil || b.class < 0 {
		return
	}
	p.mu.Lock()
	if size := 256 << b.class; p.held+size <= p.limit {
		p.free[b.class] = append(p.free[b.class], b)
		p.held += size
	}
	p.mu.Unlock()
}
