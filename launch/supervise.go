package launch

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// part is a long-lived thing of the daemon: Run blocks until ctx ends or it cannot go on.
type part struct {
	name string
	run  func(context.Context) error
}

// errDone is how a part ends the daemon in peace.
var errDone = errors.New("done")

// supervise runs all parts until ctx ends or one of them fails; then it ends the others and waits for
// them. Parts end in the reverse order of the list, each after the one that leans on it, so that the robot
// is the last to go. The error is the first failure, with the part's name.
func supervise(ctx context.Context, parts ...part) error {
	stop, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	ends := make([]context.CancelFunc, len(parts))
	done := make([]chan struct{}, len(parts))
	var mu sync.Mutex
	var errs []error
	for i, p := range parts {
		own, end := context.WithCancel(context.WithoutCancel(ctx))
		ends[i], done[i] = end, make(chan struct{})
		go func() {
			defer close(done[i])
			err := p.run(own)
			if err == nil && own.Err() == nil {
				err = errors.New("ended by itself")
			}
			if errors.Is(err, errDone) {
				failed(err)
				return
			}
			if err != nil && !(errors.Is(err, context.Canceled) && own.Err() != nil) {
				err = fmt.Errorf("%s: %w", p.name, err)
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
				failed(err)
			}
		}()
	}
	<-stop.Done()
	for i := len(parts) - 1; i >= 0; i-- {
		ends[i]()
		<-done[i]
	}
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(errs...)
}
