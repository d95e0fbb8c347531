package rtps

import (
	"context"
	"errors"
	"fmt"
)

// Matched are the readers that get what is written.
func (w *Writer) Matched() []Endpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Endpoint, 0, len(w.proxies))
	for _, r := range w.proxies {
		out = append(out, r.remote.Endpoint)
	}
	return out
}

// Resent counts what was sent again because a reader asked for it: whole samples, and pieces of large ones.
func (w *Writer) Resent() (samples, pieces int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.resent, w.resentFragments
}

// Synced says whether the reader is sure to get what is written from now on. A best effort one is as soon as it is
// matched, as far as one can be.
func (w *Writer) Synced(reader GUID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.byGUID[reader]
	return r != nil && r.synced
}

// Acked says whether the reader has acknowledged the sample of that number.
func (w *Writer) Acked(reader GUID, seq int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.byGUID[reader]
	return r != nil && r.acked >= seq
}

// WaitSynced waits for at least n matched readers, and until all that are matched are synced: a sample that is written
// earlier, to a reader that does not know the writer yet, can be lost for good.
func (w *Writer) WaitSynced(ctx context.Context, n int) error {
	return w.waitFor(ctx, func() error {
		synced := 0
		for _, r := range w.proxies {
			if r.synced {
				synced++
			}
		}
		if len(w.proxies) >= n && synced == len(w.proxies) {
			return nil
		}
		return fmt.Errorf("%s: %d readers of %d wanted are matched, %d of them have answered", w.topic, len(w.proxies), n, synced)
	})
}

// WaitAcked waits until all reliable readers that are matched have acknowledged all that was written before.
func (w *Writer) WaitAcked(ctx context.Context) error {
	w.mu.Lock()
	upto := w.seq
	for _, r := range w.proxies {
		if r.reliable && r.acked < upto {
			r.beat = true
		}
	}
	w.mu.Unlock()
	w.poke()
	return w.waitFor(ctx, func() error {
		for _, r := range w.proxies {
			if r.reliable && r.acked < upto {
				return fmt.Errorf("%s: reader %v has acknowledged %d of %d samples", w.topic, r.guid, r.acked, upto)
			}
		}
		return nil
	})
}

// waitFor waits until there is no error of f, which is called with the lock.
func (w *Writer) waitFor(ctx context.Context, f func() error) error {
	for {
		w.mu.Lock()
		if w.closed {
			w.mu.Unlock()
			return ErrClosed
		}
		err := f()
		if err == nil {
			w.mu.Unlock()
			return nil
		}
		ch := w.watch()
		w.mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
