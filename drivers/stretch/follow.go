package stretch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"viad/drivers/robot"
	"viad/drivers/stretch/course"
	"viad/ros"
	"viad/ros/msg/control_msgs"
)

// How a plan is followed.
const (
	renew     = 200 * time.Millisecond // between two goals for the arm
	leadSlide = 500 * time.Millisecond // how far ahead on the plan a goal reaches: lift and arm
	leadTurn  = 250 * time.Millisecond // the wrist, which goes to its goal at 7 rad/s where times are ignored
	againMost = 3                      // goals that are sent again at the end
	againWait = 400 * time.Millisecond // at rest, before it is sent again
)

// run is one motion.
type run struct {
	course.Course
	r      *Robot
	gen    Generation
	units  units
	driven time.Time // when the base was last told

	sentAt   time.Time
	final    bool // the newest goal is the plan's end
	again    int
	sending  bool
	which    int       // goals so far
	from     []float64 // joints when it began
	compared bool      // with what the driver says of them
	live     int       // the newest that was taken
	active   bool
	wait     sync.WaitGroup
	news     chan goalNews
}

// stage is where a goal is.
type stage int

const (
	goalTaken stage = iota
	goalNotTaken
	goalOver
	goalTold
)

// goalNews is what became of a goal.
type goalNews struct {
	which  int
	stage  stage
	status ros.GoalStatus
	result control_msgs.FollowJointTrajectory_Result
	err    error
	told   *control_msgs.FollowJointTrajectory_Feedback
}

// Follow leads the robot along the trajectory to its end.
func (r *Robot) Follow(ctx context.Context, t robot.Trajectory) error {
	m, err := r.admit(t)
	if err != nil {
		return err
	}
	ctx, done, err := r.begin(ctx, "a motion")
	if err != nil {
		return err
	}
	defer done()
	inner, cancel := context.WithCancel(ctx)
	defer func() { cancel(); m.wait.Wait() }() // results that nobody needs any more are not waited for
	if err := r.setModes(ctx, m.Moves); err != nil {
		return refused(err)
	}
	err = m.lead(inner)
	if m.Moves {
		err = errors.Join(err, r.standBase(ctx, m.gen))
	}
	if err != nil && m.which > 0 && !errors.Is(err, ErrHalted) { // Halt does that itself
		err = errors.Join(err, r.brake(ctx))
	}
	return err
}

func refused(err error) error { return fmt.Errorf("refused: %w", err) }

// admit checks everything that can be checked before anything moves.
func (r *Robot) admit(t robot.Trajectory) (*run, error) {
	r.mu.Lock()
	busy, doing, k := r.running != nil, r.doing, r.known
	r.mu.Unlock()
	if busy {
		return nil, fmt.Errorf("%w: %s", ErrBusy, doing)
	}
	s := r.State()
	if s.Mode != robot.ModeReady {
		return nil, fmt.Errorf("refused: the robot is %s: %s", s.Mode, s.Fault)
	}
	b := r.snapshot()
	if age := b.age(r.clock.Now()); age > staleJoints {
		return nil, fmt.Errorf("refused: the newest reading is %v old, limit %v", age.Round(time.Millisecond), staleJoints)
	}
	if err := t.Check(k.model, s); err != nil {
		return nil, refused(err)
	}
	if d := t.Duration(); d > robot.LongestGoal {
		return nil, fmt.Errorf("refused: the trajectory takes %v, limit %v", d, robot.LongestGoal)
	}
	m := &run{
		Course: course.New(t, k.model, tickTime, func(j int) time.Duration { return leadOf(k.generation, j) }),
		r:      r, gen: k.generation, units: unitsOf(k.generation), from: s.Q, news: make(chan goalNews, 8),
	}
	if m.Moves {
		if err := r.drivable(m.gen, r.clock.Now()); err != nil {
			return nil, refused(err)
		}
	}
	return m, nil
}

// drivable says why the base may not move, or not go on.
func (r *Robot) drivable(gen Generation, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gen != GenB || r.config.BaseUnguarded || r.guarded(now) {
		return nil
	}
	return errors.New("this driver repeats the base's last velocity for ever, and no guard is heard that would stop it if this daemon died: start the guard on the robot, or move without the base")
}

// lead goes through the plan.
func (m *run) lead(ctx context.Context) error {
	r := m.r
	tick := r.clock.Ticker(tickTime)
	defer tick.Stop()
	m.Begin(r.clock.Now())
	for {
		select {
		case <-ctx.Done():
			return ended(ctx)
		case n := <-m.news:
			if err := m.heard(ctx, n); err != nil {
				return err
			}
			continue
		case <-tick.C():
		}
		now := r.clock.Now()
		b := r.snapshot()
		if err := r.healthy(now); err != nil {
			return err
		}
		if m.Moves {
			if err := r.drivable(m.gen, now); err != nil {
				return err
			}
		}
		if err := m.Advance(b.measured(now), now); err != nil {
			return err
		}
		if err := m.frozen(&b, now); err != nil {
			return err
		}
		if m.Moves {
			if err := m.drive(ctx, &b, now); ctx.Err() != nil {
				return ended(ctx)
			} else if err != nil {
				return err
			}
		}
		m.reach(ctx, &b, now)
		if done, err := m.Over(b.measured(now), now); done {
			return err
		}
	}
}

func ended(ctx context.Context) error {
	why := context.Cause(ctx)
	if errors.Is(why, context.Canceled) || errors.Is(why, context.DeadlineExceeded) {
		return fmt.Errorf("ended before its end: %w", why)
	}
	return why
}

// healthy says why a motion may not go on.
func (r *Robot) healthy(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known.complete {
		return errors.New(r.known.words())
	}
	if r.status.runstopped.v || r.status.mode.v == modeRunstopped {
		return errors.New(runstopWords)
	}
	if age := r.reading.age(now); age > staleGoing || r.reading.q == nil {
		return fmt.Errorf("no complete reading of joints and odometry for %v, limit %v", age.Round(time.Millisecond), staleGoing)
	}
	for _, f := range r.live(now) {
		if f.Bad != "" {
			return errors.New(f.Bad)
		}
	}
	if m := r.status.mode.v; m == modeHoming || m == modeStowing || r.known.generation != GenB && m == modeVelocity {
		return fmt.Errorf("somebody set the robot's mode to %s during the motion", m)
	}
	return nil
}

func (m *run) leadOf(joint int) time.Duration { return leadOf(m.gen, joint) }

func leadOf(g Generation, joint int) time.Duration {
	if joint <= jArm || g == GenB {
		return leadSlide
	}
	return leadTurn
}

// Ahead is how far the arm's joints may be ahead of the plan, each by itself, where the robot's driver ignores times: as
// far as a goal reaches. nil where it keeps to them.
func (r *Robot) Ahead() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.known.generation; g == GenA || g == GenAPrime {
		out := make([]time.Duration, joints)
		for j := range out {
			out[j] = leadOf(g, j)
		}
		return out
	}
	return nil
}

// frozenAfter is how long a joint that should move may keep its number.
const frozenAfter = time.Second

// frozen finds a joint that reads the same number although it is asked to move: a lost servo's last value.
func (m *run) frozen(b *reading, now time.Time) error {
	if m.which == 0 {
		return nil
	}
	for i, j := range m.Model.Joints {
		off := math.Abs(m.Plan.At(m.S + m.leadOf(i)).Q[i] - b.q[i])
		if since := now.Sub(b.moved[i]); off > 2*course.Of(j).Behind/3 && since > frozenAfter && m.Waited > frozenAfter {
			return fmt.Errorf("%s reads %.4f for %.1f s while it is asked to move: its servo no longer answers, or something holds it; look at it before the next motion", j.Name, b.q[i], since.Seconds())
		}
	}
	return nil
}
