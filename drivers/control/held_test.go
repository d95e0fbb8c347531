package control

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
)

// napping is a body under a process that is stopped for a while, as by SIGSTOP: nobody looks, and the first reading
// afterwards is the last one of before. The machine brakes by itself meanwhile.
type napping struct {
	*robottest.Body
	clock robot.Clock
	at    time.Time
	nap   time.Duration

	mu     sync.Mutex
	napped bool
	old    int // looks that see the reading of before
	was    robot.State
}

func (n *napping) State() robot.State {
	s := n.Body.State()
	n.mu.Lock()
	sleeps := !n.napped && !n.clock.Now().Before(n.at)
	n.napped = n.napped || sleeps
	n.mu.Unlock()
	if sleeps {
		_ = n.Halt(context.Background(), robot.RungZeroVelocity) // that it ends the motion is what is wanted
		<-n.clock.After(n.nap)
		n.mu.Lock()
		n.old, n.was = 2, s
		n.mu.Unlock()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.old > 0 {
		n.old--
		return n.was
	}
	return s
}

// A process that was stopped in mid-motion says so when it goes on, and what it measures then is believed.
func TestHeldUp(t *testing.T) { synctest.Test(t, heldUp) }

func heldUp(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.SpeedScale = 0.3 })
	p := r.plan(tenCM)
	b := &napping{Body: r.body, clock: r.clock, at: r.clock.Now().Add(500 * time.Millisecond), nap: 3 * time.Second}
	c, err := New(Options{Body: b, Kinematics: r.c.kin, Clock: r.clock, Settings: r.c.set})
	if err != nil {
		t.Fatal(err)
	}
	r.c = c
	o := r.run(p)
	r.expect(o, robot.ResultStoppedShort, robot.StopConfirmed, "this daemon was held up for 3s")
}

// gone is a body whose driver knows why a motion did not go on, and says it late.
type gone struct {
	*robottest.Body
	clock robot.Clock
}

func (g *gone) Follow(ctx context.Context, _ robot.Trajectory) error {
	<-ctx.Done()
	<-g.clock.After(100 * time.Millisecond)
	return errors.New("the action server went away")
}

// What the driver says of a motion that was cut is told beside what was measured.
func TestDriversWordsOfACut(t *testing.T) { synctest.Test(t, driversWords) }

func driversWords(t *testing.T) {
	r := newRig(t, nil)
	p := r.plan(tenCM)
	c, err := New(Options{Body: &gone{r.body, r.clock}, Kinematics: r.c.kin, Clock: r.clock, Settings: r.c.set})
	if err != nil {
		t.Fatal(err)
	}
	r.c = c
	o := r.run(p)
	if !strings.Contains(o.Why, "from the goal; the robot's driver says: the action server went away") {
		t.Errorf("%v: %q", o.Result, o.Why)
	}
}
