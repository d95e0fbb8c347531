package tf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of what publishers can make a buffer keep.
const (
	mostFrames  = 4096
	mostSamples = 16384 // of one frame
	mostDeep    = 256   // links from a frame to the root
)

// oldRun is how many transforms in a row may be older than all history before the publisher's clock is taken to have been
// set back, as a simulation does when it starts anew.
const oldRun = 10

// Options are a buffer's.
type Options struct {
	// History is how long transforms are kept behind the newest of the same frame; 0 is 10 s.
	History time.Duration
	// Beyond is how much newer than the newest transform a time may be that is asked for; the newest is then given as it
	// is. 0 allows nothing, as tf2 does.
	Beyond time.Duration
}

// Buffer is the tree. It is safe for concurrent use.
type Buffer struct {
	o    Options
	mu   sync.RWMutex
	tree map[string]*track // by child
	news chan struct{}     // closed at the next change
}

// track is the past of one frame.
type track struct {
	parent string
	static bool
	past   []Transform // by time, oldest first
	old    int         // how many in a row were too old
}

// New is an empty buffer.
func New(o Options) *Buffer {
	if o.History <= 0 {
		o.History = 10 * time.Second
	}
	return &Buffer{o: o, tree: map[string]*track{}, news: make(chan struct{})}
}

// Unknown says that two frames are not connected.
type Unknown struct {
	Target, Source string
	Why            string
}

func (e *Unknown) Error() string {
	return fmt.Sprintf("where %s is in %s is not known: %s", e.Source, e.Target, e.Why)
}

// OutOfTime says that a link between two frames is not known at the time.
type OutOfTime struct {
	Parent, Child string
	Asked         time.Time
	From, To      time.Time // what is known of the link
}

func (e *OutOfTime) Error() string {
	what, by := "older than the oldest", e.From.Sub(e.Asked)
	if e.Asked.After(e.To) {
		what, by = "newer than the newest", e.Asked.Sub(e.To)
	}
	return fmt.Sprintf("the link from %s to %s is asked for at %.3f s, which is %v %s that is known (%.3f to %.3f s)",
		e.Parent, e.Child, seconds(e.Asked), by, what, seconds(e.From), seconds(e.To))
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// frame is a name as the tree has it; the slash in front is ROS 1's.
func frame(s string) string { return strings.TrimPrefix(s, "/") }

// Set adds a transform. It is refused when it holds what is no number or no rotation, when it would close a loop, and when
// it is older than the history. A frame that gets another parent loses its past.
func (b *Buffer) Set(t Transform) error {
	t.Parent, t.Child = frame(t.Parent), frame(t.Child)
	if err := t.check(); err != nil {
		return err
	}
	t.Rotation = unit(t.Rotation)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.set(t); err != nil {
		return err
	}
	close(b.news)
	b.news = make(chan struct{})
	return nil
}

func (b *Buffer) set(t Transform) error {
	k := b.tree[t.Child]
	if k == nil || k.parent != t.Parent {
		if err := b.mayHang(t); err != nil {
			return err
		}
		k = &track{parent: t.Parent}
		b.tree[t.Child] = k
	}
	if t.Static || k.static {
		k.static, k.past = t.Static, append(k.past[:0], t)
		return nil
	}
	if n := len(k.past); n > 0 && k.past[n-1].Time.Sub(t.Time) > b.o.History {
		if k.old++; k.old < oldRun {
			return fmt.Errorf("the transform from %s to %s is %v older than the newest one; %v are kept", t.Parent, t.Child, k.past[n-1].Time.Sub(t.Time), b.o.History)
		}
		k.past = k.past[:0]
	}
	k.old = 0
	i, same := slices.BinarySearchFunc(k.past, t, func(a, b Transform) int { return a.Time.Compare(b.Time) })
	if same {
		k.past[i] = t
		return nil
	}
	k.past = slices.Insert(k.past, i, t)
	oldest := k.past[len(k.past)-1].Time.Add(-b.o.History)
	drop := max(0, len(k.past)-mostSamples)
	for drop < len(k.past) && k.past[drop].Time.Before(oldest) {
		drop++
	}
	k.past = slices.Delete(k.past, 0, drop)
	return nil
}

// mayHang says whether the child may hang on the parent. Holds mu.
func (b *Buffer) mayHang(t Transform) error {
	if b.tree[t.Child] == nil && len(b.tree) >= mostFrames {
		return fmt.Errorf("there are %d frames already; %s is not added", mostFrames, t.Child)
	}
	way := []string{t.Child, t.Parent}
	for at := t.Parent; b.tree[at] != nil; {
		at = b.tree[at].parent
		if way = append(way, at); at == t.Child {
			return fmt.Errorf("the frames would be a loop: %s", strings.Join(way, " < "))
		}
		if len(way) > mostDeep {
			return fmt.Errorf("frame %s hangs on more than %d links", t.Child, mostDeep)
		}
	}
	return nil
}

// Clear forgets everything.
func (b *Buffer) Clear() {
	b.mu.Lock()
	clear(b.tree)
	b.mu.Unlock()
}

// Frames are the links of the tree, sorted by child; of each, the newest transform.
func (b *Buffer) Frames() []Transform {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := make([]Transform, 0, len(b.tree))
	for _, k := range b.tree {
		out = append(out, k.past[len(k.past)-1])
	}
	slices.SortFunc(out, func(a, c Transform) int { return strings.Compare(a.Child, c.Child) })
	return out
}

// Lookup is where source is in target at a time: it takes points given in source to target. The zero time is the newest
// at which all links between them are known. An error is an *Unknown or an *OutOfTime.
func (b *Buffer) Lookup(target, source string, at time.Time) (Transform, error) {
	target, source = frame(target), frame(source)
	b.mu.RLock()
	defer b.mu.RUnlock()
	up, down, err := b.path(target, source)
	if err != nil {
		return Transform{}, err
	}
	if at.IsZero() {
		at = b.newest(append(slices.Clone(up), down...))
	}
	sum := func(start string, links []string) (Transform, error) {
		t := Transform{Parent: start, Child: start, Static: true}
		t.Rotation.Real = 1
		for _, child := range links {
			l, err := b.tree[child].at(at, b.o.Beyond)
			if err != nil {
				return t, err
			}
			t = l.Then(t)
		}
		return t, nil
	}
	from, err := sum(source, up)
	if err != nil {
		return Transform{}, err
	}
	to, err := sum(target, down)
	if err != nil {
		return Transform{}, err
	}
	out := to.Inverse().Then(from)
	out.Parent, out.Child, out.Time = target, source, at
	return out, nil
}

// path are the links from source up to where both meet, and from target up to there, by their children. Holds mu.
func (b *Buffer) path(target, source string) (up, down []string, err error) {
	ups, downs := b.toRoot(source), b.toRoot(target)
	for _, f := range []struct {
		name string
		way  []string
	}{{source, ups}, {target, downs}} {
		if len(f.way) == 1 && !b.isParent(f.name) {
			return nil, nil, &Unknown{target, source, fmt.Sprintf("nobody has published a frame %s; %d frames are known", f.name, len(b.tree))}
		}
	}
	for i, f := range ups {
		if j := slices.Index(downs, f); j >= 0 {
			return ups[:i], downs[:j], nil
		}
	}
	a, c := ups[len(ups)-1], downs[len(downs)-1]
	return nil, nil, &Unknown{target, source, fmt.Sprintf("they are in two trees: %s hangs on %s, %s hangs on %s, and nobody publishes the link between %s and %s", source, a, target, c, a, c)}
}

func (b *Buffer) isParent(name string) bool {
	for _, k := range b.tree {
		if k.parent == name {
			return true
		}
	}
	return false
}

// toRoot is the frame and all that it hangs on. Holds mu.
func (b *Buffer) toRoot(f string) []string {
	way := []string{f}
	for k := b.tree[f]; k != nil && len(way) <= mostDeep; k = b.tree[k.parent] {
		way = append(way, k.parent)
	}
	return way
}

// newest is the newest time at which all links are known; zero when all are static. Holds mu.
func (b *Buffer) newest(links []string) (at time.Time) {
	for _, child := range links {
		k := b.tree[child]
		if n := k.past[len(k.past)-1].Time; !k.static && (at.IsZero() || n.Before(at)) {
			at = n
		}
	}
	return at
}

// at is the link at a time.
func (k *track) at(at time.Time, beyond time.Duration) (Transform, error) {
	n := len(k.past)
	last := k.past[n-1]
	if k.static {
		return last, nil
	}
	i, same := slices.BinarySearchFunc(k.past, at, func(t Transform, at time.Time) int { return t.Time.Compare(at) })
	switch {
	case same:
		return k.past[i], nil
	case i == n && at.Sub(last.Time) <= beyond:
		return last, nil
	case i == 0 || i == n:
		return Transform{}, &OutOfTime{Parent: k.parent, Child: last.Child, Asked: at, From: k.past[0].Time, To: last.Time}
	}
	a, b := k.past[i-1], k.past[i]
	return between(a, b, float64(at.Sub(a.Time))/float64(b.Time.Sub(a.Time))), nil
}

// Wait is Lookup as soon as it can be answered; when ctx ends before, the error says what was missing. A time that is
// older than all that is kept is not waited for.
func (b *Buffer) Wait(ctx context.Context, target, source string, at time.Time) (Transform, error) {
	for {
		b.mu.RLock()
		news := b.news
		b.mu.RUnlock()
		t, err := b.Lookup(target, source, at)
		if err == nil {
			return t, nil
		}
		if o := (*OutOfTime)(nil); errors.As(err, &o) && o.Asked.Before(o.From) && !at.IsZero() {
			return t, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return t, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}
