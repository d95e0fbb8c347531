package launch

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// stopTime bounds every stop in wall time. The robot's own clock bounds it more tightly, but a twin's stands
// still once its physics has failed, and a person who presses stop must get an answer even then.
const stopTime = 15 * time.Second

var errSilent = errors.New("the robot did not answer in time")

// inTime runs a stop that goes on when whoever asked for it is gone. One that does not come back is left
// behind, and that is an error.
func inTime(ctx context.Context, stop func(context.Context) error) error {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- stop(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errSilent
	}
}

func withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), stopTime)
}

// replies counts requests that are being answered, so that a shutdown can let them end.
type replies struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n falls to 0, while somebody waits
}

// count wraps a handler.
func (r *replies) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.n++
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.n--; r.n == 0 && r.idle != nil {
				close(r.idle)
				r.idle = nil
			}
		}()
		next.ServeHTTP(w, req)
	})
}

// wait returns when nothing is being answered, or after d.
func (r *replies) wait(d time.Duration) {
	r.mu.Lock()
	if r.n == 0 {
		r.mu.Unlock()
		return
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(d):
	}
}
