package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// noted is a Desk that notes what it was asked.
type noted struct {
	mu  sync.Mutex
	did []Op
}

func (n *noted) do(op Op) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.did = append(n.did, op)
	return "done", nil
}

func (n *noted) take() []Op {
	n.mu.Lock()
	defer n.mu.Unlock()
	did := n.did
	n.did = nil
	return did
}

func (n *noted) Status() Status {
	_, _ = n.do(OpStatus)
	return Status{}
}
func (n *noted) Stop(context.Context, string) (string, error)             { return n.do(OpStop) }
func (n *noted) EStop(context.Context, string) (string, error)            { return n.do(OpEStop) }
func (n *noted) Clear(context.Context, string) (string, error)            { return n.do(OpClear) }
func (n *noted) Arm(context.Context, string) (string, error)              { return n.do(OpArm) }
func (n *noted) Disarm(context.Context, string) (string, error)           { return n.do(OpDisarm) }
func (n *noted) TakeOver(context.Context, string, string) (string, error) { return n.do(OpTakeOver) }
func (n *noted) Health() Health                                           { return Health{} }
func (n *noted) Do(context.Context, string, string) (string, error)       { return n.do(OpDo) }
func (n *noted) Free(context.Context, string) (string, error)             { return n.do(OpFree) }

// FuzzConversation: every line that is sent is answered once, and what the desk is asked is what the lines that were
// answered with ok ask for, and nothing else.
func FuzzConversation(f *testing.F) {
	for _, s := range []string{
		`{"v":1,"id":1,"op":"stop"}` + "\n", `{"v":1,"id":1,"op":"stop"}` + "\n" + `{"v":1,"id":2,"op":"takeover","name":"a"}`,
		`{"v":1e9}`, "\n\r\n", `{"v":1,"id":1,"op":"arm"}{"v":1,"id":2,"op":"arm"}`, `{"v":1,"id":1,"op":"arm","op":"stop"}`, `{"V":1,"ID":1,"OP":"stop"}`,
		`{"v":1,"id":18446744073709551616,"op":"stop"}`, `{"v":1,"op":"\u0061rm"}`, "\xff\xfe{}", `[{"v":1,"op":"arm"}]`, `{"v":1,"id":1,"op":"arm"} x`, strings.Repeat("[", 10000),
		`{"v":1,"id":1,"op":"free","name":"x"}`, `{"v":1,"id":1,"op":"status"}` + "\n" + `{"v":1,"id":1,"op":"clear"}`, `{"v":1,"id":1,"op":"disarm"}` + "\r\n", `null`,
	} {
		f.Add([]byte(s))
	}
	d := &noted{}
	path := filepath.Join(f.TempDir(), SocketName)
	srv, err := Listen(path, d)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, sent []byte) {
		if len(sent) > maxLine/2 {
			return
		}
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(sent); err != nil {
			t.Fatal(err)
		}
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(sent, []byte("\n"))
		if len(sent) > 0 && sent[len(sent)-1] != '\n' {
			lines++
		}
		answers, good := 0, 0
		for line := range bytes.Lines(got) {
			var a Answer
			if err := json.Unmarshal(line, &a); err != nil || a.V != Version || a.OK == (a.Error != "") {
				t.Errorf("answer %q: %v", line, err)
			}
			answers++
			if a.OK {
				good++
			}
		}
		did := d.take()
		if answers != lines || len(did) != good {
			t.Errorf("%d lines, %d answers, %d of them ok; done: %v", lines, answers, good, did)
		}
		for _, op := range did {
			// The desk's own word stands in a line, or somebody has spelt it otherwise, which JSON allows.
			if !slices.Contains(Ops(), op) || !bytes.Contains(sent, []byte(op)) && !bytes.Contains(sent, []byte(`\u`)) {
				t.Errorf("%s was done, and nobody asked for it", op)
			}
		}
	})
}

// FuzzAnswer: whatever answers at a socket, viactl gets an answer to its own question, or an error.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"v":1,"id":1,"ok":true,"note":"stopped, confirmed"}` + "\n", `{"v":2,"id":1,"ok":true}` + "\n", `{"v":1,"id":9,"ok":true}` + "\n" + `{"v":1,"id":1,"ok":false,"error":"no"}`,
		"", "\n", "HTTP/1.1 400 Bad Request\r\n\r\n", `{"v":1,"id":1,"ok":true,"status":null}`, `{"v":1,"id":1,"ok":true,"status":{"moving":7}}`, strings.Repeat("x", maxLine+1),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		here, there := net.Pipe()
		go func() {
			_, _ = there.Read(make([]byte, maxLine)) // the question
			_, _ = there.Write(said)                 // viactl may have heard enough
			_ = there.Close()
		}()
		a, err := exchange(here, Request{V: Version, ID: 1, Op: OpStop})
		if err := here.Close(); err != nil {
			t.Error(err)
		}
		if err == nil && (a.ID != 1 || a.V != Version || len(said) == 0) {
			t.Errorf("%q is taken for %+v", said, a)
		}
	})
}
