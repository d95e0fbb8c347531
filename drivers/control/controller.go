package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// Options are what a Controller is made of.
type Options struct {
	Body       robot.Body
	Kinematics *Kinematics
	Clock      robot.Clock
	Settings   Settings
}

// Controller plans for a body and follows plans with it: it is robot.Planner and robot.Robot.
type Controller struct {
	*Planner
	body  robot.Body
	clock robot.Clock

	busy  chan struct{} // holds one token while a motion runs
	stops atomic.Uint64 // calls of Stop so far

	stopping atomic.Int32 // calls of Stop under way

	mu     sync.Mutex
	begun  uint64             // stops when the newest motion began
	asker  string             // who asked for the first stop since
	cancel context.CancelFunc // ends the running Follow or Grip
	lost   <-chan error       // a call into the body that did not return after its motion was over
}

var (
	_ robot.Robot    = (*Controller)(nil)
	_ robot.EStopper = (*Controller)(nil)
)

// Errors of Go that come before anything moves.
var (
	// ErrBusy: one motion at a time.
	ErrBusy = errors.New("not started: another motion is running; wait for it or stop it")
	// ErrMoved: the robot is not where the plan begins.
	ErrMoved = errors.New("not started: the robot has moved since the plan was made; plan again")
)

// New makes a controller. It starts nothing.
func New(o Options) (*Controller, error) {
	if o.Body == nil || o.Kinematics == nil || o.Clock == nil {
		return nil, errors.New("control: Body, Kinematics and Clock are needed")
	}
	p, err := NewPlanner(o.Kinematics, o.Settings)
	if err != nil {
		return nil, err
	}
	p.loose, _ = o.Body.(robot.Loose)
	return &Controller{Planner: p, body: o.Body, clock: o.Clock, busy: make(chan struct{}, 1)}, nil
}

// State is the body's newest reading.
func (c *Controller) State() robot.State { return c.body.State() }

// whole says that a reading is complete and can be one of this robot.
func (c *Controller) whole(s robot.State) bool {
	if !s.Complete(c.kin.Model()) {
		return false
	}
	i, _ := s.Implausible(c.kin.Model())
	return i < 0
}

// Kinematics is the robot's geometry.
func (c *Controller) Kinematics() *Kinematics { return c.kin }

// Go follows the plan and returns after standstill was measured, or could not be. An error means that
// nothing was moved by this call.
func (c *Controller) Go(ctx context.Context, plan robot.Plan) (robot.Outcome, error) {
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	default:
		return robot.Outcome{}, ErrBusy
	}
	c.mu.Lock()
	stops := c.stops.Load()
	c.begun = stops
	c.mu.Unlock()
	if err := c.mayStart(ctx); err != nil {
		return robot.Outcome{}, err
	}
	now := c.clock.Now() // read first: between two readings a fast clock may go on
	before := c.body.State()
	if err := c.matches(before, now, plan); err != nil {
		return robot.Outcome{}, err
	}
	m := newMotion(c, plan, before, stops)
	if !m.start.Before(m.deadline) {
		return robot.Outcome{}, errors.New("not started: the plan's deadline has passed")
	}
	end := m.run(ctx)
	if end.notStarted != nil {
		return robot.Outcome{}, fmt.Errorf("not started: %w", end.notStarted)
	}
	return m.conclude(context.WithoutCancel(ctx), end), nil
}

func (c *Controller) mayStart(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("not started: %w", context.Cause(ctx))
	}
	if c.stopping.Load() > 0 {
		return errors.New("not started: a stop is under way")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		select {
		case <-c.lost:
			c.lost = nil
		default:
			return errors.New("not started: the robot's driver has not returned from the last motion; stop, and look at the driver")
		}
	}
	return nil
}

// matches says whether a plan may begin from s, read just after now.
func (c *Controller) matches(s robot.State, now time.Time, plan robot.Plan) error {
	model := c.kin.Model()
	if !c.whole(s) {
		return errors.New("not started: the measured state is missing, incomplete or not of this robot")
	}
	if age := now.Sub(s.Received); age.Abs() > c.set.StateAge {
		return fmt.Errorf("not started: the newest state is %v old, limit %v", age.Round(time.Millisecond), c.set.StateAge)
	}
	if s.Mode != robot.ModeReady {
		return fmt.Errorf("not started: the robot is %s%s", s.Mode, colon(s.Fault))
	}
	if !plan.From.Complete(model) {
		return errors.New("not started: the plan was not made by a planner for this robot")
	}
	a, b := c.kin.Tool(s.Base, s.Q), c.kin.Tool(plan.From.Base, plan.From.Q)
	if d, r := a.Dist(b), a.Angle(b); !(d <= c.set.MovedPos && r <= c.set.MovedRot) {
		return fmt.Errorf("%w (tool %.1f mm and %.2f degrees, limits %.1f mm and %.2f degrees)",
			ErrMoved, d*1e3, geom.Deg(r), c.set.MovedPos*1e3, geom.Deg(c.set.MovedRot))
	}
	for i, j := range model.Joints {
		tol := c.set.MovedJoint
		if j.Prismatic {
			tol = c.set.MovedSlide
		}
		if d := math.Abs(s.Q[i] - plan.From.Q[i]); !(d <= tol) {
			return fmt.Errorf("%w (%s by %.4f, limit %.4f)", ErrMoved, j.Name, d, tol)
		}
	}
	return nil
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

// hold registers what ends the running call into the body, for Stop. It reports false, and cancels at
// once, when a Stop came since the motion began.
func (c *Controller) hold(cancel context.CancelFunc, stops uint64) bool {
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	if c.stops.Load() != stops {
		cancel()
		return false
	}
	return true
}

// release waits for the call into the body to return, and remembers it if it does not. It returns what the body said.
func (c *Controller) release(cancel context.CancelFunc, done <-chan error) error {
	cancel()
	ok, said := c.await(done, c.set.StopTime)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = nil
	if !ok {
		c.lost = done
	}
	return said
}

// await receives from done, with patience on the robot's clock; false when nothing came.
func (c *Controller) await(done <-chan error, patience time.Duration) (ok bool, said error) {
	select {
	case said = <-done:
		return true, said
	default:
	}
	tick := c.clock.Ticker(c.set.Tick)
	defer tick.Stop()
	for left := c.countdown(patience); ; {
		select {
		case said = <-done:
			return true, said
		case <-tick.C():
			if left.tick() {
				return false, nil
			}
		}
	}
}
