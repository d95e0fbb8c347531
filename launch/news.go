package launch

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// news writes without making anybody wait. A terminal that is paused, or a pipe that nobody reads, blocks whoever
// writes to it, and with the log that would be the stop as well. What does not fit is dropped, and counted.
type news struct {
	w       io.Writer
	lines   chan []byte
	dropped atomic.Int64
	shut    chan struct{}
	done    chan struct{}
}

const (
	waitingNews = 4096            // writes
	lastNews    = 1 * time.Second // for what is left at the end
)

func newNews(w io.Writer) *news {
	n := &news{w: w, lines: make(chan []byte, waitingNews), shut: make(chan struct{}), done: make(chan struct{})}
	go n.run()
	return n
}

// Write takes b and returns at once.
func (n *news) Write(b []byte) (int, error) {
	select {
	case n.lines <- append([]byte(nil), b...):
	default:
		n.dropped.Add(1)
	}
	return len(b), nil
}

func (n *news) run() {
	defer close(n.done)
	for {
		select {
		case b := <-n.lines:
			n.put(b)
		case <-n.shut:
			for len(n.lines) > 0 {
				n.put(<-n.lines)
			}
			return
		}
	}
}

// put writes one piece. When that fails nobody reads any more, and there is nobody to be told.
func (n *news) put(b []byte) {
	if lost := n.dropped.Swap(0); lost > 0 {
		_, _ = fmt.Fprintf(n.w, "... %d lines were not written: nobody read this for a while\n", lost)
	}
	_, _ = n.w.Write(b)
}

// close writes what is left, as long as it is taken.
func (n *news) close() {
	close(n.shut)
	select {
	case <-n.done:
	case <-time.After(lastNews):
	}
}
