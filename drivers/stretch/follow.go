package stretch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/control_msgs"
)

// How a plan is followed.
const (
	renew     = 200 * time.Millisecond // between two goals for the arm
	leadSlide = 500 * time.Millisecond // how far ahead on the plan a goal reaches: lift and arm
	leadTurn  = 250 * time.Millisecond // the wrist, which goes to its goal at 7 rad/s where times are ignored
	waitMost  = 4 * time.Second        // that the plan waits in one piece for whoever is behind
	endMost   = 3 * time.Second        // after the plan's end
	againMost = 3                      // goals that are sent again at the end
	againWait = 400 * time.Millisecond // at rest, before it is sent again
	restTurn  = 0.01                   // rad/s that count as rest
	restSlide = 0.003                  // m/s
)

// hull is how far a joint may be off the plan before the plan waits for it; fine and good are what has arrived: fine is
// tried for, good is enough.
type hull struct{ behind, fine, good, least float64 }

func hullOf(joint int) hull {
	if joint <= jArm {
		return hull{0.03, 0.001, 0.003, 0.0005}
	}
	return hull{0.15, 0.004, 0.01, 0.002}
}

// baseHull is the same of the base, metres and radians.
func baseHull() (slide, turn hull) { return hull{0.04, 0.0015, 0.006, 0}, hull{0.08, 0.003, 0.01, 0} }

// run is one motion.
type run struct {
	r     *Robot
	t     robot.Trajectory
	gen   Generation
	units units
	model *robot.Model
	moves bool // the base is part of it

	s       time.Duration // the plan's own time
	last    time.Time     // of the last tick
	waited  time.Duration // in one piece
	endedAt time.Time     // when the plan's time was over
	calmAt  time.Time     // since when everything is at rest
	driven  time.Time     // when the base was last told

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
	if err := r.setModes(ctx, m.moves); err != nil {
		return refused(err)
	}
	err = m.lead(inner)
	if m.moves {
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
	busy, doing, k, guarded := r.running != nil, r.doing, r.known, r.guarded(r.clock.Now())
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
	m := &run{r: r, t: t, gen: k.generation, units: unitsOf(k.generation), model: k.model, from: s.Q, news: make(chan goalNews, 8)}
	for _, p := range t.Points {
		gap := p.Base.Mul(t.Points[0].Base.Inv())
		m.moves = m.moves || gap.Norm() > 1e-4 || math.Abs(geom.WrapAngle(p.Base.Yaw-t.Points[0].Base.Yaw)) > 1e-4
	}
	if m.moves && m.gen == GenB && !guarded && !r.config.BaseUnguarded {
		return nil, errors.New("refused: this driver repeats the base's last velocity for ever, and no guard is heard that would stop it if this daemon died: start the guard on the robot, or move without the base")
	}
	return m, nil
}

// lead goes through the plan.
func (m *run) lead(ctx context.Context) error {
	r := m.r
	tick := r.clock.Ticker(tickTime)
	defer tick.Stop()
	m.last = r.clock.Now()
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
		if err := m.advance(&b, now); err != nil {
			return err
		}
		if err := m.frozen(&b, now); err != nil {
			return err
		}
		if m.moves {
			if err := m.drive(ctx, &b, now); ctx.Err() != nil {
				return ended(ctx)
			} else if err != nil {
				return err
			}
		}
		m.reach(ctx, &b, now)
		if done, err := m.over(&b, now); done {
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

// advance lets the plan's time go on, unless something is behind.
func (m *run) advance(b *reading, now time.Time) error {
	dt := min(now.Sub(m.last), 3*tickTime)
	m.last = now
	end := m.t.Duration()
	if m.s >= end {
		return nil
	}
	who := m.behind(b)
	if who == "" {
		m.waited = 0
		if m.s = min(m.s+dt, end); m.s == end {
			m.endedAt = now
		}
		return nil
	}
	if m.waited += dt; m.waited > waitMost {
		return fmt.Errorf("%s does not follow: it has been behind the plan for %v; look what holds it", who, waitMost)
	}
	return nil
}

// behind names what is further from the plan than what it was told to do ahead of it.
func (m *run) behind(b *reading) string {
	at := m.t.At(m.s)
	for i, j := range m.model.Joints {
		ahead := m.t.At(m.s + m.leadOf(i)).Q[i]
		lo, hi := math.Min(at.Q[i], ahead), math.Max(at.Q[i], ahead)
		h := hullOf(i).behind
		if b.q[i] < lo-h || b.q[i] > hi+h {
			return j.Name
		}
	}
	if m.moves {
		slide, turn := baseHull()
		if e := baseError(at.Base, b.base); e.Norm() > slide.behind || math.Abs(e.Yaw) > turn.behind {
			return "the base"
		}
	}
	return ""
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
	for i, j := range m.model.Joints {
		off := math.Abs(m.t.At(m.s + m.leadOf(i)).Q[i] - b.q[i])
		if since := now.Sub(b.moved[i]); off > 2*hullOf(i).behind/3 && since > frozenAfter && m.waited > frozenAfter {
			return fmt.Errorf("%s reads %.4f for %.1f s while it is asked to move: its servo no longer answers, or something holds it; look at it before the next motion", j.Name, b.q[i], since.Seconds())
		}
	}
	return nil
}

// over says whether the motion has ended, by measurement alone.
func (m *run) over(b *reading, now time.Time) (bool, error) {
	if m.endedAt.IsZero() {
		return false, nil
	}
	if b.fast(restTurn, restSlide) {
		m.calmAt = time.Time{}
	} else if m.calmAt.IsZero() {
		m.calmAt = now
	}
	calm := !m.calmAt.IsZero() && now.Sub(m.calmAt) >= 5*tickTime
	who, _ := m.off(b, func(h hull) float64 { return h.fine })
	if calm && who == "" {
		return true, nil
	}
	if now.Sub(m.endedAt) < endMost {
		return false, nil
	}
	who, by := m.off(b, func(h hull) float64 { return h.good })
	switch {
	case who == "" && calm:
		return true, nil
	case who == "":
		return true, fmt.Errorf("the robot still moves %v after the end of the plan", endMost)
	}
	return true, fmt.Errorf("the plan is over and %s is measured %s from its end; look what holds it", who, by)
}

// off names what is further than that from the end.
func (m *run) off(b *reading, of func(hull) float64) (who, by string) {
	end := m.t.Points[len(m.t.Points)-1]
	for i, j := range m.model.Joints {
		if d := math.Abs(end.Q[i] - b.q[i]); d > of(hullOf(i)) {
			return j.Name, amount(d, j.Prismatic)
		}
	}
	if m.moves {
		slide, turn := baseHull()
		e := baseError(end.Base, b.base)
		if e.Norm() > of(slide) {
			return "the base", amount(e.Norm(), true)
		}
		if math.Abs(e.Yaw) > of(turn) {
			return "the base", amount(math.Abs(e.Yaw), false)
		}
	}
	return "", ""
}

func amount(d float64, metres bool) string {
	if metres {
		return fmt.Sprintf("%.1f mm", d*1e3)
	}
	return fmt.Sprintf("%.3f rad", d)
}
