package rosbridge

import (
	"fmt"
	"strings"
	"time"
)

const (
	maxPartial   = 16               // messages that are incomplete at one time
	maxFragments = 1 << 16          // of one message
	maxID        = 256              // bytes of a fragment's id
	partialFor   = 10 * time.Second // then an incomplete message is given up
)

// assembler puts fragments together again. It holds at most maxBytes of them, whatever is announced.
type assembler struct {
	maxBytes int
	held     int
	partial  map[string]*partial
}

type partial struct {
	parts []string
	total int
	have  int
	bytes int
	since time.Time
}

// add takes a fragment and returns the whole when it was the last one missing.
func (a *assembler) add(f *frame, now time.Time) ([]byte, error) {
	a.expire(now)
	if f.id == "" || !f.fragmentNums || f.total < 1 || f.total > maxFragments || f.num < 0 || f.num >= f.total {
		return nil, fmt.Errorf("fragment %d of %d with id %.40q makes no sense", f.num, f.total, f.id)
	}
	p := a.partial[f.id]
	if p == nil {
		if len(a.partial) >= maxPartial {
			return nil, fmt.Errorf("more than %d messages are in fragments at once", maxPartial)
		}
		if a.partial == nil {
			a.partial = map[string]*partial{}
		}
		if len(f.id) > maxID {
			return nil, fmt.Errorf("a fragment's id has %d bytes", len(f.id))
		}
		p = &partial{since: now, total: f.total}
		a.partial[f.id] = p
	}
	if f.total != p.total {
		a.drop(f.id)
		return nil, fmt.Errorf("the fragments of id %.40q are %d, and then %d", f.id, p.total, f.total)
	}
	// The list grows with what came, not with what is announced.
	for len(p.parts) <= f.num {
		if f.num-len(p.parts) > 1024 {
			a.drop(f.id)
			return nil, fmt.Errorf("fragment %d came when %d were there", f.num, len(p.parts))
		}
		p.parts = append(p.parts, "")
	}
	if p.parts[f.num] != "" || f.data == "" {
		a.drop(f.id)
		return nil, fmt.Errorf("fragment %d of id %.40q came twice or is empty", f.num, f.id)
	}
	if a.held+len(f.data) > a.maxBytes {
		a.drop(f.id)
		return nil, fmt.Errorf("fragments hold more than %d bytes", a.maxBytes)
	}
	p.parts[f.num] = f.data
	p.have++
	p.bytes += len(f.data)
	a.held += len(f.data)
	if p.have < f.total {
		return nil, nil
	}
	a.drop(f.id)
	return []byte(strings.Join(p.parts, "")), nil
}

func (a *assembler) drop(id string) {
	if p := a.partial[id]; p != nil {
		a.held -= p.bytes
		delete(a.partial, id)
	}
}

func (a *assembler) expire(now time.Time) {
	for id, p := range a.partial {
		if now.Sub(p.since) > partialFor {
			a.drop(id)
		}
	}
}
