package dds

import (
	"context"
	"sync"
	"time"
)

// scope runs goroutines whose contexts end together.
type scope struct {
	mu      sync.Mutex
	ended   bool
	next    uint64
	cancels map[uint64]context.CancelFunc
	wg      sync.WaitGroup
}

// run starts f; false says that the scope has ended.
func (s *scope) run(f func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	if s.cancels == nil {
		s.cancels = map[uint64]context.CancelFunc{}
	}
	s.next++
	id := s.next
	s.cancels[id] = cancel
	s.wg.Go(func() {
		defer func() {
			s.mu.Lock()
			delete(s.cancels, id)
			s.mu.Unlock()
			cancel()
		}()
		f(ctx)
	})
	return true
}

// patience is how long Close waits for functions of the user's, which should end when their context does.
const patience = 3 * time.Second

// end ends all contexts and waits for the goroutines; false says that some did not end in time.
func (s *scope) end() bool {
	s.mu.Lock()
	s.ended = true
	for _, cancel := range s.cancels {
		cancel()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
