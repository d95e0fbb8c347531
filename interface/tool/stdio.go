package tool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"viad/interface/tool/door"
)

// maxLine bounds one message on stdio in bytes, as the door bounds a request.
const maxLine = door.DefaultMaxBody

// waitingLines is how many messages are read ahead, so that a stop behind others is seen.
const waitingLines = 1024

// lastAnswers is how long a client may take, once the service ends, to read what is on the way to it.
const lastAnswers = 5 * time.Second

// ServeStdio speaks MCP over in and out until in ends, ctx does, or out takes nothing more. Every call is made
// as who. Nothing else may write to out.
func (s *Server) ServeStdio(ctx context.Context, who door.Principal, in io.Reader, out io.Writer) error {
	// A client that dies closes the pipe; the next write must be an error that is handled, not the end of the
	// process before the robot is stopped.
	signal.Ignore(syscall.SIGPIPE)
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	ctx = door.With(ctx, who)
	sv := server.NewStdioServer(s.mcp)
	for _, opt := range []server.StdioOption{
		server.WithErrorLogger(slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)),
		server.WithWorkerPoolSize(100), // with the library's five, stop waits behind other calls
	} {
		opt(sv)
	}
	to := &lockedWriter{w: out, gone: gone}
	from := &intake{s: s, out: to, lines: make(chan []byte, waitingLines)}
	go from.read(ctx, in)
	ended := make(chan error, 1)
	go func() { ended <- sv.Listen(ctx, from, to) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case err = <-ended:
		case <-time.After(lastAnswers): // a client that reads nothing keeps whoever writes to it
			return errors.New("the client reads no answers: some of the last are lost")
		}
	}
	var dead *writeError
	switch {
	case errors.As(context.Cause(ctx), &dead):
		return fmt.Errorf("the client takes no answers any more: %w", dead.err)
	case err != nil && ctx.Err() == nil:
		return err
	}
	return nil
}

// writeError is a client that takes no answers.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }

// lockedWriter writes whole messages, and ends the service when they are not taken: a client that cannot be
// told how a motion ended counts as gone.
type lockedWriter struct {
	mu   sync.Mutex
	w    io.Writer
	gone context.CancelCauseFunc
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.w.Write(b)
	if err != nil {
		l.gone(&writeError{err})
	}
	return n, err
}

// intake reads messages ahead of the library. What is no message is answered here and goes no further, and so is
// stop: with the library it would wait behind whatever was sent before.
type intake struct {
	s     *Server
	out   io.Writer
	lines chan []byte
	rest  []byte
}

// Read gives the next bytes of the stream.
func (t *intake) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		line, ok := <-t.lines
		if !ok {
			return 0, io.EOF
		}
		t.rest = line
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

func (t *intake) read(ctx context.Context, in io.Reader) {
	defer close(t.lines)
	r := bufio.NewReader(in)
	for {
		line, long, err := cut(r)
		if line = t.take(ctx, line, long); line != nil {
			select {
			case t.lines <- line:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.s.log.Warn("stdio: reading ended", "err", err)
			}
			return
		}
	}
}

// take answers what is no message, and returns what is one.
func (t *intake) take(ctx context.Context, line []byte, long bool) []byte {
	if len(bytes.TrimSpace(line)) == 0 && !long {
		return nil
	}
	line = quoteOdd(line)
	e, bad := t.s.open(line)
	if long {
		bad = &fault{code: notRequest, id: idIn(line), why: fmt.Sprintf("the message is longer than %d bytes: nothing was called", maxLine)}
	}
	if bad != nil {
		t.s.log.Warn("message refused", "why", bad.why)
		t.sent(bad.write(t.out))
		return nil
	}
	if e.tool == stopName && !e.modern {
		go t.stop(ctx, e)
		return nil
	}
	return line
}

// stop carries out a call of stop, and answers it.
func (t *intake) stop(ctx context.Context, e envelope) {
	for _, d := range t.s.defs {
		if d.name != stopName {
			continue
		}
		c := &call{s: t.s, def: d, at: t.s.o.Clock.Now(), began: time.Now(), raw: e.arguments, requestID: string(e.id)}
		r := c.answer(ctx)
		t.s.finish(ctx, c, r)
		b, err := json.Marshal(struct {
			Version string              `json:"jsonrpc"`
			ID      json.RawMessage     `json:"id"`
			Result  *mcp.CallToolResult `json:"result"`
		}{"2.0", e.id, r.result()})
		if err == nil {
			_, err = t.out.Write(append(b, '\n'))
		}
		t.sent(err)
	}
}

// sent notes that an answer did not reach who is gone.
func (t *intake) sent(err error) {
	if err != nil {
		t.s.log.Debug("answer not sent", "err", err)
	}
}

// idIn is the id of a message of which only the start was kept, null when it is not in that.
func idIn(b []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return json.RawMessage("null")
	}
	for {
		name, err := d.Token()
		if err != nil {
			return json.RawMessage("null")
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return json.RawMessage("null")
		}
		if name == "id" && len(v) <= maxID {
			return v
		}
	}
}

// cut reads one line with its end; of a longer one than maxLine only the start is kept.
func cut(r *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if room := maxLine - len(line); len(part) > room {
			part, long = part[:room], true
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}
