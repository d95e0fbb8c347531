package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// motion is one run of one plan.
type motion struct {
	c        *Controller
	plan     robot.Plan
	stops    uint64
	before   robot.State
	start    time.Time // of Go
	deadline time.Time
	left     countdown   // the same, counted in ticks: a clock that jumps back does not lengthen a motion
	good     robot.State // the newest complete reading
	watch    watch
	followed robot.Followed
	looked   time.Time     // of the last look; zero before the first of a call
	held     time.Duration // the longest that a look was late by more than the state may be old
	heldAt   time.Time     // when that look came
	looks    int           // ticks so far
	compared time.Time     // of the newest reading that was compared with the command
}

// ending is why a motion is over. The zero value is "it came to its end": measured joints say the rest.
type ending struct {
	cut        bool         // must be stopped
	stopped    bool         // Stop was called: its ladder is at work
	result     robot.Result // what a cut means if the goal was not reached
	why        string
	said       string // by the driver
	short      bool   // say how far from the goal it came to rest
	settled    bool   // seen at rest at the goal
	frozen     bool   // readings cannot be believed
	held       bool   // this process was held up before
	notStarted error  // the body refused and nothing moved
}

func newMotion(c *Controller, plan robot.Plan, before robot.State, stops uint64) *motion {
	now := c.clock.Now()
	m := &motion{c: c, plan: plan, stops: stops, before: before, start: now, good: before, deadline: plan.Deadline}
	if limit := now.Add(c.set.Deadline); m.deadline.IsZero() || m.deadline.After(limit) {
		m.deadline = limit
	}
	m.left = c.countdown(m.deadline.Sub(now))
	return m
}

// run does the arm's part, then the jaw's.
func (m *motion) run(ctx context.Context) ending {
	var end ending
	kind := m.plan.Waypoint.Kind
	if len(m.plan.Traj.Points) > 0 {
		end = m.call(ctx, m.watchArm, func(ctx context.Context) error { return m.c.body.Follow(ctx, m.plan.Traj) })
		if end.cut || end.notStarted != nil {
			return end
		}
	}
	if kind != robot.KindJaw && kind != robot.KindPoseJaw {
		return end
	}
	if kind == robot.KindPoseJaw && !end.settled {
		end.why = join(end.why, "the jaw was not moved")
		return end
	}
	return m.call(ctx, m.watchJaw, func(ctx context.Context) error { return m.c.body.Grip(ctx, m.plan.Waypoint.Jaw) })
}

// call runs one call into the body beside a watch that looks at every tick.
func (m *motion) call(ctx context.Context, look func(robot.State, time.Time) (ending, bool), f func(context.Context) error) ending {
	c := m.c
	inner, cut := context.WithCancelCause(ctx)
	cancel := func() { cut(errCut) }
	defer cancel()
	if !c.hold(cancel, m.stops) {
		return m.stopped()
	}
	m.watch, m.looked = newWatch(c.clock.Now(), m.good), time.Time{}
	done := make(chan error, 1)
	go func() { done <- f(inner) }()
	tick := c.clock.Ticker(c.set.Tick)
	end, over := ending{}, false
	for !over {
		select {
		case err := <-done:
			done <- err // release takes it again
			if end, over = m.returned(ctx, err); !over {
				m.watch.returned = c.clock.Now()
				end, over = m.settle(ctx, tick, look), true
			}
		case <-tick.C():
			end, over = m.look(ctx, look)
		case <-ctx.Done():
			end, over = m.ended(ctx), true
		}
	}
	tick.Stop()
	return explain(end, c.release(cancel, done), context.Cause(inner)) // it changes no result: measured joints have spoken
}

// errCut is the cause with which control ends a call into the body.
var errCut = errors.New("ended by control")

// explain adds what the driver knows of a cut, which may be the reason of what was measured. That it was ended is none, and
// of a daemon that was held up it only knows that too.
func explain(end ending, said, cause error) ending {
	own := said != nil && !errors.Is(said, cause) && !errors.Is(said, robot.ErrHalted) && said.Error() != context.Canceled.Error()
	if !end.cut || end.stopped || end.held || !own {
		return end
	}
	var more []string
	for line := range strings.SplitSeq(said.Error(), "\n") { // of joined errors
		if !strings.Contains(end.why, line) {
			more = append(more, line)
		}
	}
	if len(more) > 0 {
		end.said = "the robot's driver says: " + strings.Join(more, "; ")
	}
	return end
}

// settle goes on looking after the body has returned.
func (m *motion) settle(ctx context.Context, tick robot.Ticker, look func(robot.State, time.Time) (ending, bool)) ending {
	for {
		select {
		case <-tick.C():
			if end, over := m.look(ctx, look); over {
				return end
			}
		case <-ctx.Done():
			return m.ended(ctx)
		}
	}
}

func (m *motion) ended(ctx context.Context) ending {
	if m.c.stops.Load() != m.stops {
		return m.stopped()
	}
	why := "whoever asked for it is gone"
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		why = cause.Error()
	}
	return ending{cut: true, result: robot.ResultStoppedShort, why: "stopped because " + why + "; the robot holds where it stopped"}
}

// stopped is the end by a stop, which names who asked for it.
func (m *motion) stopped() ending {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	return ending{cut: true, stopped: true, result: robot.ResultStoppedShort, why: "stopped by " + m.c.asker}
}

// returned judges what the body returned: an error before anything moved is a refusal.
func (m *motion) returned(ctx context.Context, err error) (ending, bool) {
	if err == nil {
		return ending{}, false
	}
	if ctx.Err() != nil || m.c.stops.Load() != m.stops {
		return m.ended(ctx), true
	}
	now := m.c.clock.Now()
	m.late(now)
	// A command may have gone out before the connection broke: only readings from after the error say that
	// nothing moves.
	still := m.c.standstill(refusedIn)
	s := m.c.body.State()
	if m.c.whole(s) {
		m.good = s
	}
	if still && !m.watch.moved(m.c.kin, m.before, m.good, 0.2) && m.jawStill() && healthy(s) {
		return ending{notStarted: err}, true
	}
	end := ending{cut: true, result: robot.ResultStoppedShort, why: "the robot's driver ended the motion: " + strings.ReplaceAll(err.Error(), "\n", "; ")}
	if !healthy(s) {
		end.result = robot.ResultFaulted
		end.why = fmt.Sprintf("the robot is %s%s", s.Mode, colon(s.Fault))
	}
	return m.heldUp(end, now), true
}

// refusedIn is how long a driver's refusal may wait for readings that bear it out.
const refusedIn = 400 * time.Millisecond

func (m *motion) jawStill() bool {
	return math.Abs(m.good.Jaw.Aperture-m.before.Jaw.Aperture) < 5e-4
}

func healthy(s robot.State) bool { return s.Mode == robot.ModeReady || s.Mode == robot.ModeMoving }

// look is what every tick checks, whatever moves.
func (m *motion) look(ctx context.Context, more func(robot.State, time.Time) (ending, bool)) (ending, bool) {
	c, now := m.c, m.c.clock.Now()
	if ctx.Err() != nil || c.stops.Load() != m.stops {
		return m.ended(ctx), true
	}
	s := c.body.State()
	if c.whole(s) {
		m.good = s
		m.compare(s)
	}
	m.looks++
	m.late(now)
	end, over := m.judge(s, now, more)
	if over && end.cut {
		end = m.heldUp(end, now)
	}
	return end, over
}

// late notes that nobody looked for longer than a state may be old: the process was stopped, or starved. On a clock that
// leaps that can be, and is no reason by itself.
func (m *motion) late(now time.Time) {
	if d := now.Sub(m.looked); !m.looked.IsZero() && d > m.c.set.StateAge {
		m.held, m.heldAt = d, now
	}
	m.looked = now
}

// heldUp names that as the reason of a cut that follows it. Nothing is known to be wrong with the robot, so that what is
// measured from now on decides.
func (m *motion) heldUp(end ending, now time.Time) ending {
	if m.held == 0 || now.Sub(m.heldAt) > m.c.set.StallTime {
		return end
	}
	end.held = true
	end.why = fmt.Sprintf("this daemon was held up for %v (limit %v) and ended the motion: look where the robot is, then stage and execute anew; %s",
		m.held.Round(10*time.Millisecond), m.c.set.StateAge, end.why)
	stale := now.Sub(m.good.Received) > m.c.set.StateAge // and so is what the robot says of itself
	if end.result == robot.ResultUnknown || end.result == robot.ResultFaulted && stale {
		end.result = robot.ResultStoppedShort
	}
	return end
}

func (m *motion) judge(s robot.State, now time.Time, more func(robot.State, time.Time) (ending, bool)) (ending, bool) {
	c := m.c
	capped := m.left.tick()
	cut := func(r robot.Result, why string) (ending, bool) {
		return ending{cut: true, result: r, why: why, short: r == robot.ResultStoppedShort, frozen: m.frozen(now)}, true
	}
	switch {
	case s.Mode == robot.ModeFaulted || s.Mode == robot.ModeRunstopped:
		return cut(robot.ResultFaulted, fmt.Sprintf("the robot is %s%s", s.Mode, colon(s.Fault)))
	case capped:
		return cut(robot.ResultStoppedShort, fmt.Sprintf("stopped at the %s s cap on motions", strconv.FormatFloat(math.Round(m.deadline.Sub(m.start).Seconds()*10)/10, 'f', -1, 64)))
	case now.Sub(m.good.Received).Abs() > c.set.StateAge:
		return cut(robot.ResultUnknown, fmt.Sprintf("no complete joint state for %v, limit %v", now.Sub(m.good.Received).Round(time.Millisecond), c.set.StateAge))
	}
	return more(m.good, now)
}

// remaining is ", 12 mm and 3.0 degrees from the goal".
func (m *motion) remaining() string {
	if len(m.plan.Traj.Points) == 0 {
		return ""
	}
	d, r := m.fromGoal(m.good)
	return fmt.Sprintf(", %.0f mm and %.1f degrees from the goal", d*1e3, geom.Deg(r))
}

func (m *motion) fromGoal(s robot.State) (pos, rot float64) {
	t := m.c.kin.Tool(s.Base, s.Q)
	goal := m.goal()
	pos, rot = t.Dist(goal), t.Angle(goal)
	if m.plan.Waypoint.Kind == robot.KindBase {
		pos = math.Max(pos, math.Hypot(s.Base.X-m.plan.EndBase.X, s.Base.Y-m.plan.EndBase.Y))
		rot = math.Max(rot, math.Abs(geom.WrapAngle(s.Base.Yaw-m.plan.EndBase.Yaw)))
	}
	return pos, rot
}

// goal is the tool pose that decides arrival: what was asked for, not what was planned.
func (m *motion) goal() geom.Pose {
	switch m.plan.Waypoint.Kind {
	case robot.KindPose, robot.KindPoseJaw:
		return m.plan.Waypoint.Tool
	case robot.KindBase:
		return m.plan.End
	default:
		return m.plan.Start
	}
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	if a == "" {
		return b
	}
	return a + "; " + b
}
