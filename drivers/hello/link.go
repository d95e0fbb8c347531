package hello

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"viad/drivers/serial"
)

// Port is an open serial port; *serial.Port is one.
type Port interface {
	// Read waits for at least one byte.
	Read(context.Context, []byte) (int, error)
	Write(context.Context, []byte) error
	// Flush drops what has come and was not read.
	Flush()
}

// Patience with a line.
const (
	rpcTime   = time.Second            // for a whole call
	quietTime = 10 * time.Millisecond  // of silence, after which nothing late is on its way
	drainMost = 100 * time.Millisecond // of waiting for that silence
)

// Ways of chunking.
type version int

const (
	v0 version = iota
	v1
)

// First bytes of frames.
const (
	v0Start       = 100
	v0StartAck    = 101
	v0SendMore    = 102
	v0SendMoreAck = 103
	v0SendLast    = 104
	v0SendLastAck = 105
	v0Get         = 106
	v0GetMore     = 107
	v0GetLast     = 108
	v1PushMore    = 201 // the first of several
	v1PushOnly    = 202
	v1PushNext    = 203
	v1PushLast    = 204
	v1PushAck     = 205
	v1PullFirst   = 206
	v1PullNext    = 207
	v1PullMore    = 208
	v1PullLast    = 209
	v0Block       = 32
	v1Block       = 58
	replyBlocks   = 18
	requestMost   = 1024
	replyMost     = replyBlocks * blockMost
	readAtOnce    = 256
)

// Counters are what a line has seen since it was opened.
type Counters struct {
	Calls    uint64 // remote procedures
	Timeouts uint64 // no answer in time
	CRC      uint64 // frames whose check did not match, or whose COBS was broken
	Strange  uint64 // answers to another question, or out of order
	Late     uint64 // bytes that nobody waited for
}

// LineError is a call that did not come through: what arrived, if anything, is dropped.
type LineError struct {
	Call string // "status"
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("hello: %s: %v", e.Call, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// ErrSilent says that a board gave no answer within its time.
var ErrSilent = errors.New("the board gave no answer in time: look at its cable and its power")

// errStrange is an answer that belongs to something else.
var errStrange = errors.New("the answer belongs to another question")

// link makes calls over a port, one at a time.
type link struct {
	port    Port
	version version
	turn    chan struct{} // holds one token: whose turn it is
	dirty   bool          // a call broke off: what is on the line is of no use
	in      []byte        // read and not yet used

	calls, timeouts, crc, strange, late atomic.Uint64
}

func newLink(p Port) *link {
	l := &link{port: p, turn: make(chan struct{}, 1), dirty: true}
	l.turn <- struct{}{}
	return l
}

func (l *link) counters() Counters {
	return Counters{l.calls.Load(), l.timeouts.Load(), l.crc.Load(), l.strange.Load(), l.late.Load()}
}

// push sends a request that sets something, pull one that asks; both have a reply, whose first byte is that of the
// request plus one. The reply comes without that byte.
func (l *link) push(ctx context.Context, name string, request []byte) ([]byte, error) {
	return l.call(ctx, name, request, l.pushV1)
}

func (l *link) pull(ctx context.Context, name string, request []byte) ([]byte, error) {
	return l.call(ctx, name, request, l.pullV1)
}

type exchange func(context.Context, []byte) ([]byte, error)

func (l *link) call(ctx context.Context, name string, request []byte, inV1 exchange) ([]byte, error) {
	if n := len(request); n < 1 || n > requestMost {
		return nil, fmt.Errorf("hello: %s: a request has 1 to %d bytes, not %d", name, requestMost, n)
	}
	select {
	case <-l.turn:
	case <-ctx.Done():
		return nil, &LineError{name, ctx.Err()}
	}
	defer func() { l.turn <- struct{}{} }()
	within, cancel := context.WithTimeout(ctx, rpcTime)
	defer cancel()
	l.calls.Add(1)
	l.clear(within)
	do := inV1
	if l.version == v0 {
		do = l.exchangeV0
	}
	reply, err := do(within, request)
	if err == nil && (len(reply) < 1 || reply[0] != request[0]+1) {
		err = errStrange
	}
	if err != nil {
		l.dirty = true
		return nil, &LineError{name, l.count(ctx, err)}
	}
	return reply[1:], nil
}

// count sorts an error for the counters.
func (l *link) count(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errCRC), errors.Is(err, errCOBS), errors.Is(err, errShort), errors.Is(err, errLong):
		l.crc.Add(1)
	case errors.Is(err, errStrange):
		l.strange.Add(1)
	case errors.Is(err, serial.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.timeouts.Add(1)
		return ErrSilent
	}
	return err
}

// clear drops what a call before this one left on the line, and after a broken one waits until nothing more comes: a late
// answer must not be taken for one to this call.
func (l *link) clear(ctx context.Context) {
	late := len(l.in)
	l.in = l.in[:0]
	if l.dirty {
		end, cancel := context.WithTimeout(ctx, drainMost)
		defer cancel()
		for {
			quiet, stop := context.WithTimeout(end, quietTime)
			var b [readAtOnce]byte
			n, err := l.port.Read(quiet, b[:])
			stop()
			late += n
			if err != nil {
				break
			}
		}
	}
	l.port.Flush()
	l.dirty = false
	if late > 0 {
		l.late.Add(1)
	}
}

func (l *link) send(ctx context.Context, kind byte, content []byte) error {
	b, err := frame(append([]byte{kind}, content...))
	if err != nil {
		return err
	}
	return l.port.Write(ctx, b)
}

// receive is the next frame's content.
func (l *link) receive(ctx context.Context) (kind byte, content []byte, err error) {
	var b [readAtOnce]byte
	for {
		for i, x := range l.in {
			if x == 0 {
				whole := append([]byte(nil), l.in[:i]...)
				l.in = append(l.in[:0], l.in[i+1:]...)
				c, err := unframe(whole)
				if err != nil {
					return 0, nil, err
				}
				return c[0], c[1:], nil
			}
		}
		if len(l.in) >= frameMost {
			return 0, nil, errLong
		}
		n, err := l.port.Read(ctx, b[:])
		if err != nil {
			return 0, nil, err
		}
		l.in = append(l.in, b[:n]...)
	}
}

// answered waits for a frame of that kind.
func (l *link) answered(ctx context.Context, want byte) ([]byte, error) {
	kind, content, err := l.receive(ctx)
	if err == nil && kind != want {
		err = fmt.Errorf("%w: a frame of kind %d instead of %d", errStrange, kind, want)
	}
	return content, err
}

// gather collects the blocks of a reply, asking for each after the first with ask.
func (l *link) gather(ctx context.Context, more, last byte, ask func() error) ([]byte, error) {
	var reply []byte
	for range replyBlocks {
		kind, content, err := l.receive(ctx)
		if err != nil {
			return nil, err
		}
		reply = append(reply, content...)
		switch kind {
		case last:
			return reply, nil
		case more:
			if err := ask(); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%w: a frame of kind %d instead of %d or %d", errStrange, kind, more, last)
		}
	}
	return nil, fmt.Errorf("%w: more than %d blocks", errStrange, replyBlocks)
}

func (l *link) pushV1(ctx context.Context, request []byte) ([]byte, error) {
	for at := 0; ; {
		n := min(v1Block, len(request)-at)
		first, last := at == 0, at+n == len(request)
		kind := byte(v1PushNext)
		switch {
		case first && last:
			kind = v1PushOnly
		case first:
			kind = v1PushMore
		case last:
			kind = v1PushLast
		}
		if err := l.send(ctx, kind, request[at:at+n]); err != nil {
			return nil, err
		}
		reply, err := l.answered(ctx, v1PushAck)
		if err != nil || last {
			return reply, err
		}
		at += n
	}
}

func (l *link) pullV1(ctx context.Context, request []byte) ([]byte, error) {
	if len(request) > v1Block {
		return nil, fmt.Errorf("a question has at most %d bytes, not %d", v1Block, len(request))
	}
	if err := l.send(ctx, v1PullFirst, request); err != nil {
		return nil, err
	}
	return l.gather(ctx, v1PullMore, v1PullLast, func() error { return l.send(ctx, v1PullNext, request) })
}

func (l *link) exchangeV0(ctx context.Context, request []byte) ([]byte, error) {
	if err := l.send(ctx, v0Start, nil); err != nil {
		return nil, err
	}
	if _, err := l.answered(ctx, v0StartAck); err != nil {
		return nil, err
	}
	for at := 0; at < len(request); {
		n := min(v0Block, len(request)-at)
		kind, ack := byte(v0SendMore), byte(v0SendMoreAck)
		if at+n == len(request) {
			kind, ack = v0SendLast, v0SendLastAck
		}
		if err := l.send(ctx, kind, request[at:at+n]); err != nil {
			return nil, err
		}
		if _, err := l.answered(ctx, ack); err != nil {
			return nil, err
		}
		at += n
	}
	ask := func() error { return l.send(ctx, v0Get, nil) }
	if err := ask(); err != nil {
		return nil, err
	}
	return l.gather(ctx, v0GetMore, v0GetLast, ask)
}
