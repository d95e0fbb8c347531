package robottest

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"viad/drivers/robot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func model() *robot.Model {
	return &robot.Model{
		Name: "two joints", Mobile: true,
		Joints: []robot.Joint{
			{Name: "slide", Prismatic: true, Min: 0, Max: 1, Vel: 0.5, Acc: 1},
			{Name: "turn", Min: -2, Max: 2, Vel: 2, Acc: 5},
		},
		Jaw: robot.JawSpec{Max: 0.08, Speed: 0.1, Force: 20},
	}
}

func TestFakeBodyInBubble(t *testing.T) {
	CheckBody(t, func(*testing.T) Subject {
		b := NewBody(model(), robot.WallClock{}, nil)
		return Subject{Body: b, Clock: robot.WallClock{}, Model: model(), Sever: b.Sever, Machine: b.Machine}
	}, synctest.Test)
}

func TestFakeBodyOnClock(t *testing.T) {
	CheckBody(t, func(t *testing.T) Subject {
		c := NewClock(t)
		b := NewBody(model(), c, nil)
		return Subject{Body: b, Clock: c, Model: model(), Sever: b.Sever, Machine: b.Machine}
	}, nil)
}

// Time stands still while nobody waits, never passes an unread tick, and an abandoned After holds nobody up.
func TestClock(t *testing.T) {
	c := NewClock(t)
	tick := c.Ticker(time.Second)
	c.After(time.Hour) // abandoned
	if at := <-tick.C(); at.Sub(epoch) != time.Second {
		t.Errorf("first tick at %v", at)
	}
	for range 100 {
		breathe(time.Second)
	}
	if d := c.Since(); d > 2*time.Second {
		t.Errorf("time passed an unread tick: %v", d)
	}
	<-tick.C()
	<-tick.C()
	tick.Stop()
	tick.Stop()
	<-c.After(2 * time.Hour)
	if d := c.Since(); d < 2*time.Hour {
		t.Errorf("only %v passed", d)
	}
	for range 100 {
		breathe(time.Second)
	}
	if a, b := c.Since(), c.Since(); a != b || a > 2*time.Hour+4*time.Second {
		t.Errorf("time passes with nobody waiting: %v, %v", a, b)
	}
}

func TestManualClock(t *testing.T) {
	c := NewManualClock()
	tick, after := c.Ticker(time.Second), c.After(1500*time.Millisecond)
	c.Advance(999 * time.Millisecond)
	select {
	case <-tick.C():
		t.Error("early tick")
	default:
	}
	c.Advance(time.Second)
	if at := <-tick.C(); at.Sub(epoch) != time.Second {
		t.Errorf("tick at %v", at)
	}
	if at := <-after; at.Sub(epoch) != 1500*time.Millisecond {
		t.Errorf("after at %v", at)
	}
	c.Close()
}
