package robottest

import (
	"context"
	"time"

	"viad/drivers/robot"
)

func (c *checker) deadman() {
	if d := c.Body.Deadman(); d <= 0 || d > 2*time.Second {
		c.Errorf("Deadman is %v, must be stated and at most 2 s", d)
	}
}

// severed starts a motion that the machine could follow for seconds and cuts the link in the middle of it.
func (c *checker) severed() (end robot.Trajectory, followed <-chan error) {
	c.Helper()
	if c.Sever == nil || c.Machine == nil {
		c.Skip("this subject has no link that a test could cut")
	}
	t := c.nudge(3, 6*time.Second)
	done := make(chan error, 1)
	go func() { done <- c.Body.Follow(context.Background(), t) }()
	c.untilMoving()
	c.sleep(time.Second) // into the middle, where it is fast
	if c.still(c.Machine()) {
		c.Fatal("the machine does not move in the middle of its trajectory")
	}
	c.Sever()
	return t, done
}

// severs holds the body to its own word: Deadman after the daemon is gone the machine stands still, and stays so.
func (c *checker) severs() {
	t, done := c.severed()
	cut := c.Clock.Now()
	c.sleep(c.Body.Deadman())
	a := c.Machine()
	if !c.still(a) {
		c.Fatalf("%v after the link was cut, Deadman %v, the machine still moves: %v", c.Clock.Now().Sub(cut), c.Body.Deadman(), a.QD)
	}
	c.sleep(2 * time.Second)
	b := c.Machine()
	if d := c.apart(a.Q, b.Q); !c.still(b) || d > 0.005 {
		c.Errorf("the machine went on by %v after it had stopped", d)
	}
	if d := c.apart(b.Q, t.Points[len(t.Points)-1].Q); d < 0.01 {
		c.Error("the trajectory was finished all the same")
	}
	if err := c.ends("a severed Follow", done); err == nil {
		c.Error("a severed Follow returned nil")
	}
}

// ages holds the readings to the truth: what no longer comes in grows old or goes missing, and nothing claims to move
// the machine.
func (c *checker) ages() {
	_, done := c.severed()
	c.sleep(maxAge + 200*time.Millisecond)
	if s := c.Body.State(); s.Complete(c.Model) && c.Clock.Now().Sub(s.Received) <= maxAge {
		c.Errorf("a reading is %v old although none can have come for %v", c.Clock.Now().Sub(s.Received), maxAge+200*time.Millisecond)
	}
	for r := robot.RungZeroVelocity; r <= robot.RungHold; r++ {
		ctx, cancel := robot.WithTimeout(context.Background(), c.Clock, time.Second)
		if err := c.timed("Halt", func() error { return c.Body.Halt(ctx, r) }); err == nil {
			c.Errorf("Halt %v of a severed machine says that it was heard", r)
		}
		cancel()
	}
	if err := c.ends("a severed Follow", done); err == nil {
		c.Error("a severed Follow returned nil")
	}
	if err := c.timed("Follow", func() error { return c.Body.Follow(context.Background(), c.nudge(1, time.Second)) }); err == nil {
		c.Error("a severed body followed")
	}
}
