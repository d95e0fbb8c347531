package wire

import (
	"sync"

	"viad/ros/msg"
)

// accepted keeps what was begun for goals when they were accepted, until their turn to run comes: goals begin in the order
// in which they are accepted, and the goroutines that run them come in any. The zero value is ready.
type accepted[T any] struct {
	mu sync.Mutex
	of map[msg.Message]T
}

// mostAccepted bounds goals that were accepted and never run, as when their server has ended just then.
const mostAccepted = 64

func (a *accepted[T]) put(goal msg.Message, begun T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil || len(a.of) >= mostAccepted {
		a.of = map[msg.Message]T{}
	}
	a.of[goal] = begun
}

func (a *accepted[T]) take(goal msg.Message) (begun T, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	begun, ok = a.of[goal]
	delete(a.of, goal)
	return begun, ok
}
