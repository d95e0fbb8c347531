package tool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"viad/interface/stage"
	"viad/interface/tool/door"
)

// pipe is a client on the other end of stdio.
type pipe struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	raw io.Closer         // the client's end of out
	got map[string]string // answers that nobody has asked for yet
}

func (r *rig) stdio(t *testing.T) (*pipe, chan error) {
	t.Helper()
	ir, iw := io.Pipe()
	or, ow := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := r.s.ServeStdio(context.Background(), door.Principal{Name: "local", Role: door.Driver}, ir, ow)
		done <- err
		if err := ow.Close(); err != nil {
			t.Error(err)
		}
	}()
	p := &pipe{t, iw, bufio.NewReader(or), or, map[string]string{}}
	p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	p.answer("0")
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return p, done
}

func (p *pipe) send(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, s+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// answer is the line that answers a request id; answers come in any order, notifications are passed over.
func (p *pipe) answer(id string) string {
	p.t.Helper()
	for p.got[id] == "" {
		line, err := p.out.ReadString('\n')
		if err != nil {
			p.t.Fatal(err)
		}
		var m struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			p.t.Fatalf("%q is no message: %v", line, err)
		}
		p.got[string(m.ID)] = line
	}
	line := p.got[id]
	delete(p.got, id)
	return line
}

func (p *pipe) call(id, name, args string) reply {
	p.t.Helper()
	p.send(toolCall(id, name, args))
	r, err := parseWire(p.answer(id))
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func TestStdio(t *testing.T) {
	r := newRig(t, stage.Face3D, setup{stage: stopNow})
	p, done := r.stdio(t)
	if got := p.call("1", "gripper_translate", `{"d_x":1e400}`); !got.bad || !strings.Contains(got.text(), `d_x must be a plain number in metres, got "1e400", limit -0.1 to 0.1 m`) {
		t.Errorf("got %s", got.text())
	}
	p.call("2", "gripper_translate", `{"d_x":0.1}`)
	release := r.held()
	defer release()
	p.send(toolCall("3", "execute_waypoint", `{}`))
	r.began(t)
	for i := range 20 { // more than the library's five workers
		p.send(toolCall(fmt.Sprint(100+i), "execute_waypoint", `{"no":1}`))
	}
	if got := p.call("4", "stop", `{}`); got.bad {
		t.Errorf("stop: %s", got.text())
	}
	res, err := parseWire(p.answer("3"))
	if err != nil || res.bad || !strings.Contains(res.text(), "stopped on request") {
		t.Errorf("execute: %v %s", err, res.text())
	}
	if err := p.in.Close(); err != nil {
		t.Error(err)
	}
	go func() { // what is still on its way
		if _, err := io.Copy(io.Discard, p.out); err != nil {
			t.Error(err)
		}
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAStdioClientThatDiesStopsItsMotion(t *testing.T) {
	r := newRig(t, stage.Face2D, setup{stage: stopNow})
	p, done := r.stdio(t)
	p.call("1", "nav_translate", `{"dx_m":0.1}`)
	release := r.held()
	defer release()
	p.send(toolCall("2", "execute_waypoint", `{}`))
	r.began(t)
	if err := p.in.Close(); err != nil {
		t.Error(err)
	}
	go func() {
		if _, err := io.Copy(io.Discard, p.out); err != nil {
			t.Error(err)
		}
	}()
	soon(t, "the motion stops", func() bool { return !r.st.Snapshot().Moving })
	if err := <-done; err != nil {
		t.Error(err)
	}
	if last := r.st.Snapshot().Last; last == nil || last.Outcome.Why != "the request ended" {
		t.Errorf("last %+v", last)
	}
}

// TestAStdioClientThatReadsNothingHoldsNothingUp: the service ends without it.
func TestAStdioClientThatReadsNothingHoldsNothingUp(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 5 s")
	}
	r := newRig(t, stage.Face3D)
	ir, iw := io.Pipe()
	or, ow := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.s.ServeStdio(ctx, door.Principal{Name: "local", Role: door.Driver}, ir, ow) }()
	for i := range 3 {
		if _, err := io.WriteString(iw, toolCall(fmt.Sprint(i), "screenshot", `{}`)+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.ReadFull(or, make([]byte, 1)); err != nil { // an answer is under way, and then nobody reads on
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "reads no answers") {
		t.Errorf("got %v", err)
	}
	for _, c := range []io.Closer{iw, or} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
