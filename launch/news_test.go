package launch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"viad/interface/operator"
)

// paused is a terminal that takes nothing until it goes on.
type paused struct {
	goOn chan struct{}
	mu   sync.Mutex
	b    bytes.Buffer
}

func (p *paused) Write(b []byte) (int, error) {
	<-p.goOn
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func TestNewsMakeNobodyWait(t *testing.T) {
	p := &paused{goOn: make(chan struct{})}
	n := newNews(p)
	const more = 100
	for i := range waitingNews + more {
		line := fmt.Appendf(nil, "line %d\n", i)
		if _, err := n.Write(line); err != nil {
			t.Fatal(err)
		}
		copy(line, "XXXX") // what was handed over is kept
	}
	close(p.goOn)
	n.close()
	<-n.done
	text := p.b.String()
	var lost int
	for line := range strings.Lines(text) {
		if _, err := fmt.Sscanf(line, "... %d lines were not written", &lost); err == nil {
			break
		}
	}
	// One line may have been in the writer's hand already.
	if kept := strings.Count(text, "line "); lost < more-1 || lost+kept != waitingNews+more || strings.Contains(text, "X") {
		t.Errorf("%d lines kept, %d told as lost, of %d:\n%.300s", kept, lost, waitingNews+more, text)
	}
}

// TestAPausedTerminalHoldsNothingUp: the log goes into a pipe that nobody reads, and then into one that has no reader.
func TestAPausedTerminalHoldsNothingUp(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := launchInto(t, "twin-franka.yaml", w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a := connect(t, p.url, p.token)
	fill := func() {
		t.Helper()
		for range 700 { // a line of more than 100 bytes each, into a pipe of 64 KiB
			a.must("camera_get_pose", nil)
		}
	}
	ask := func(op operator.Op) {
		t.Helper()
		began := time.Now()
		ans, err := operator.Ask(t.Context(), filepath.Join(p.state, socketName), op)
		if took := time.Since(began); err != nil || !ans.OK || took > 5*time.Second {
			t.Errorf("%s: %+v, %v after %v", op, ans, err, took)
		}
	}
	fill()
	ask(operator.OpStop)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	fill()
	ask(operator.OpStop)
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil { // the terminal is gone altogether
		t.Fatal(err)
	}
	<-p.rest
	if err := p.cmd.Wait(); err != nil || time.Since(began) > 15*time.Second {
		t.Errorf("exit: %v after %v", err, time.Since(began))
	}
	if _, err := os.Stat(filepath.Join(p.state, socketName)); err == nil {
		t.Error("it did not end as it should: its socket is left")
	}
}
