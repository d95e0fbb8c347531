package safety

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a Memory that a test sees into.
type memory struct {
	mu   sync.Mutex
	kept []string
	fail error
	wait <-chan struct{} // Keep returns after it
}

func (m *memory) Keep(latch string) error {
	if m.wait != nil {
		<-m.wait
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail == nil {
		m.kept = append(m.kept, latch)
	}
	return m.fail
}

func (m *memory) has() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.kept)
}

// The power rung does not wait for a disk, and no e-stop is answered before the disk has it.
func TestEStopIsKeptBeforeItIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := make(chan struct{})
		mem := &memory{wait: disk}
		b := newBench(t, func(o *Options) { o.Memory = mem })
		asked := make(chan struct{})
		b.robot.stops = func(context.Context) error { close(asked); return nil }
		done := make(chan error, 1)
		go func() { done <- b.guard.EStop(context.Background(), "anna") }()
		<-asked // while the disk does not answer
		if b.guard.Latched() != "e-stop: anna" || ruleOf(b.guard.Ready()) != RuleLatch {
			t.Errorf("latched %q, ready %v", b.guard.Latched(), b.guard.Ready())
		}
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("the e-stop was answered (%v) before it was kept", err)
		default:
		}
		if b.log.count("latched") != 0 {
			t.Error("the log says that it is latched before it was kept")
		}
		close(disk)
		if err := <-done; err != nil || !slices.Equal(mem.has(), []string{"e-stop: anna"}) {
			t.Errorf("%v, kept %q", err, mem.has())
		}
		b.guard.ClearLatch("anna")
		if !slices.Equal(mem.has(), []string{"e-stop: anna", ""}) {
			t.Errorf("kept %q", mem.has())
		}
	})
}

// Every latch is kept, the first reason of each; what could not be kept is said, and tried again by the next e-stop.
func TestLatchIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := &memory{fail: errors.New("no space left on device")}
		b := newBench(t, func(o *Options) { o.Memory = mem })
		b.robot.stops = func(context.Context) error { return errors.New("joint 3 still moves") }
		if err := b.guard.Stop(t.Context()); err == nil {
			t.Fatal("confirmed")
		}
		if s := b.guard.Status(); s.Latched == "" || s.Unkept != "no space left on device" {
			t.Errorf("%+v", s)
		}
		mem.mu.Lock()
		mem.fail = nil
		mem.mu.Unlock()
		_ = b.guard.EStop(t.Context(), "anna")
		if s := b.guard.Status(); s.Unkept != "" || !slices.Equal(mem.has(), []string{s.Latched}) || s.Latched != "stop NOT confirmed: use the e-stop" {
			t.Errorf("%+v, kept %q", s, mem.has())
		}
		_ = b.guard.EStop(t.Context(), "anna")
		if len(mem.has()) != 1 {
			t.Errorf("kept %q", mem.has())
		}
	})
}

// A guard that comes up latched is not armed by the launch file, and an operator frees it as from any latch.
func TestComesUpLatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := &memory{}
		b := newBench(t, func(o *Options) { o.Memory, o.Latched = mem, "e-stop: anna (before this start)" })
		if s := b.guard.Status(); s.Armed || s.Latched != "e-stop: anna (before this start)" || b.log.count("latched") != 1 {
			t.Errorf("%+v", s)
		}
		if _, err := b.guard.Go(t.Context(), b.plan()); refusal(err) != RuleLatch {
			t.Errorf("got %v", err)
		}
		if err := b.guard.Arm("anna"); refusal(err) != RuleLatch || len(mem.has()) != 0 {
			t.Errorf("%v, kept %q", err, mem.has())
		}
		b.guard.ClearLatch("anna")
		if _, err := b.guard.Go(t.Context(), b.plan()); refusal(err) != RuleArmed || !slices.Equal(mem.has(), []string{""}) {
			t.Errorf("%v, kept %q", err, mem.has())
		}
		if err := b.guard.Arm("anna"); err != nil {
			t.Fatal(err)
		}
		<-b.clock.After(time.Millisecond)
		if _, err := b.guard.Go(t.Context(), b.plan()); err != nil {
			t.Error(err)
		}
	})
}
