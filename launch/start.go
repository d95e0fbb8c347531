package launch

import (
	"context"
	"errors"
	"fmt"
)

// Start lets a System live beside its caller: for benchmarks, and for tests from outside. It returns when the door is
// open; stop ends the System, gives back what New opened and returns what went wrong in either.
func (s *System) Start(ctx context.Context) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- s.Run(ctx, func() error { close(ready); return nil }) }()
	select {
	case <-ready:
		return func() error {
			cancel()
			return errors.Join(<-done, s.Close())
		}, nil
	case err := <-done:
		cancel()
		return nil, errors.Join(fmt.Errorf("the daemon did not start: %w", err), s.Close())
	}
}
