package franka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/trajectory_msgs"
)

// run is one motion.
type run struct {
	path *path
	end  context.CancelCauseFunc
	wait sync.WaitGroup // for the results of its goals
	over chan goalEnd

	mu   sync.Mutex
	last piece // the newest that was sent
	sent int   // pieces so far
}

// goalEnd is how a goal of a run ended.
type goalEnd struct {
	which  int
	status ros.GoalStatus
	result control_msgs.FollowJointTrajectory_Result
	err    error
}

// Ends of a motion by measurement.
const (
	arrivedTol = 0.03 // rad: further from the end is not arrived, whatever the controller says
	restSpeed  = 0.02 // rad/s
	settleTime = time.Second
	lateMost   = 500 * time.Millisecond // of a motion behind its own time, in all
	lateMode   = 400 * time.Millisecond // a fault ends a goal before the robot's mode tells of it
)

// Follow sends the trajectory piece by piece until its end.
func (r *Robot) Follow(ctx context.Context, t robot.Trajectory) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m, err := r.start(t, cancel)
	if err != nil {
		return err
	}
	err = r.stream(ctx, m)
	cancel(err) // results of replaced goals are not waited for
	m.wait.Wait()
	r.mu.Lock()
	r.run, r.ended = nil, r.clock.Now()
	r.mu.Unlock()
	return err
}

// start checks everything that can be checked before anything moves.
func (r *Robot) start(t robot.Trajectory, end context.CancelCauseFunc) (*run, error) {
	r.mu.Lock()
	busy := r.run != nil || r.gripping || r.tending
	r.mu.Unlock()
	if busy {
		return nil, ErrBusy
	}
	s := r.State()
	if s.Mode != robot.ModeReady {
		return nil, fmt.Errorf("refused: the robot is %s: %s", s.Mode, s.Fault)
	}
	if age := r.clock.Now().Sub(s.Received); age > staleJoints {
		return nil, fmt.Errorf("refused: the newest joint reading is %v old, limit %v", age.Round(time.Millisecond), staleJoints)
	}
	if err := t.Check(r.model, s); err != nil {
		return nil, fmt.Errorf("refused: %w", err)
	}
	if d := t.Duration(); d > robot.LongestGoal {
		return nil, fmt.Errorf("refused: the trajectory takes %v, limit %v", d, robot.LongestGoal)
	}
	m := &run{path: newPath(t, s.Q, r.model), end: end, over: make(chan goalEnd, 8)}
	if err := r.admit(m.path); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run != nil || r.gripping || r.tending {
		return nil, ErrBusy
	}
	r.run = m
	return m, nil
}

// stream sends pieces, and looks at everything between them.
func (r *Robot) stream(ctx context.Context, m *run) error {
	if err := r.advance(ctx, m); err != nil {
		return r.leave(ctx, m, err)
	}
	began := m.newest().sent
	for {
		select {
		case <-ctx.Done():
			return r.leave(ctx, m, context.Cause(ctx))
		case e := <-m.over:
			if done, err := r.ending(ctx, m, e); done {
				return err
			}
			continue
		case <-r.clock.After(tickTime):
		}
		if err := r.healthy(); err != nil {
			return r.leave(ctx, m, err)
		}
		p, now := m.newest(), r.clock.Now()
		switch since := now.Sub(p.sent); {
		case p.final && since.Seconds() > p.end+goalTime+settleTime.Seconds():
			return r.arrived(ctx, m, fmt.Errorf("the controller did not end its goal %v after its time", settleTime))
		case !p.final && since.Seconds() >= p.end:
			return r.leave(ctx, m, heldUp(since))
		case !p.final && since >= renew:
			if late := now.Sub(began).Seconds() - p.timeAt(since); late > lateMost.Seconds() {
				return r.leave(ctx, m, fmt.Errorf("the goals came to the controller too late: %.1f s behind, limit %v", late, lateMost))
			}
			if err := r.advance(ctx, m); err != nil {
				return r.leave(ctx, m, r.whyRefused(ctx, err))
			}
		}
	}
}

// whyRefused is why a controller that was following refuses the next goal: a fault has taken it down, and the robot's mode
// tells of that a little later.
func (r *Robot) whyRefused(ctx context.Context, err error) error {
	var refused *ros.Rejected
	if !errors.As(err, &refused) {
		return err
	}
	why := err
	r.until(ctx, lateMode, func() bool { why = r.healthy(); return why != nil })
	if why == nil {
		return err
	}
	return why
}

// heldUp says that the arm has braked to rest because no goal came. It does not go on from there: too much may have
// happened meanwhile.
func heldUp(since time.Duration) error {
	return &Condition{
		Trouble: TroubleShort, What: fmt.Sprintf("no goal was renewed for %v, limit %v, and the arm braked on its path: this daemon, its computer or the network was held up", since.Round(time.Millisecond), horizon),
		Next: "plan anew from where it is",
	}
}

// timeAt is the path's own time so long after the piece was sent.
func (p piece) timeAt(since time.Duration) float64 {
	s, _, _ := p.at(since.Seconds())
	return s
}

func (m *run) newest() piece {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// advance sends the next piece.
func (r *Robot) advance(ctx context.Context, m *run) error {
	last := m.newest()
	p := m.path.next(last, r.clock.Now(), r.model)
	patience := acceptTime
	if last.sent.IsZero() {
		patience = readyTime
	}
	goal, err := r.send(ctx, m.path, p, patience)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.last = p
	m.sent++
	which := m.sent
	m.mu.Unlock()
	m.wait.Go(func() {
		e := goalEnd{which: which}
		e.status, e.err = goal.Result(ctx, &e.result)
		select {
		case m.over <- e:
		case <-ctx.Done():
		}
	})
	return nil
}

// send sends one piece and waits until it is accepted, no longer than patience.
func (r *Robot) send(ctx context.Context, p *path, n piece, patience time.Duration) (ros.Goal, error) {
	ctx, cancel := r.within(ctx, patience)
	defer cancel()
	return r.sendGoal(ctx, r.goal(p.points(n)))
}

func (r *Robot) sendGoal(ctx context.Context, g *control_msgs.FollowJointTrajectory_Goal) (ros.Goal, error) {
	goal, err := r.trajectory.Send(ctx, g, nil)
	var gone *ros.Gone
	var refused *ros.Rejected
	switch {
	case err == nil:
		return goal, nil
	case errors.As(err, &gone):
		return nil, unknown(gone)
	case errors.As(err, &refused):
		return nil, fmt.Errorf("%w; look whether %s is active, and at its log", refused, r.config.Controller)
	case context.Cause(ctx) != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("%s did not accept a goal in time: %w", r.config.Controller, err)
}

// goalTime is how many seconds a goal may take longer than its trajectory; unset, a controller waits for ever.
const goalTime = 0.5

// goal is a message with tolerances of its own, since the stock controller has none, and without a stamp: now.
func (r *Robot) goal(at []float64, points []sample) *control_msgs.FollowJointTrajectory_Goal {
	g := new(control_msgs.FollowJointTrajectory_Goal)
	g.Trajectory.JointNames = r.names.joints
	for i, p := range points {
		g.Trajectory.Points = append(g.Trajectory.Points, trajectory_msgs.JointTrajectoryPoint{
			Positions: p.q, Velocities: p.v, Accelerations: p.a, TimeFromStart: wireDuration(at[i]),
		})
	}
	for _, name := range r.names.joints {
		g.PathTolerance = append(g.PathTolerance, control_msgs.JointTolerance{Name: name, Position: r.config.PathTolerance})
		g.GoalTolerance = append(g.GoalTolerance, control_msgs.JointTolerance{Name: name, Position: r.config.GoalTolerance})
	}
	g.GoalTimeTolerance = wireDuration(goalTime)
	return g
}

func wireDuration(s float64) builtin_interfaces.Duration {
	whole, part := math.Modf(s)
	return builtin_interfaces.Duration{Sec: int32(whole), Nanosec: uint32(part * 1e9)}
}

// healthy says why a motion may not go on.
func (r *Robot) healthy() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.linkDown(); c != nil {
		return c
	}
	now := r.clock.Now()
	if age := now.Sub(r.joints.received); age > staleJoints || r.joints.q == nil {
		return deadNode(fmt.Sprintf("no complete joint reading for %v, limit %v", age.Round(time.Millisecond), staleJoints))
	}
	if age := now.Sub(r.status.received); age > staleState {
		return deadNode(fmt.Sprintf("nothing of the robot's state for %v, limit %v", age.Round(time.Millisecond), staleState))
	}
	if _, c := ofMode(&r.status, true); c != nil {
		return c
	}
	if c := r.joints.doubtful(now); c != nil {
		return c
	}
	return nil
}

// ending judges the end of a goal; done says that it ends the motion.
func (r *Robot) ending(ctx context.Context, m *run, e goalEnd) (done bool, err error) {
	m.mu.Lock()
	newest, final := e.which == m.sent, m.last.final
	m.mu.Unlock()
	violated := e.result.ErrorCode == control_msgs.FollowJointTrajectory_Result_PATH_TOLERANCE_VIOLATED ||
		e.result.ErrorCode == control_msgs.FollowJointTrajectory_Result_GOAL_TOLERANCE_VIOLATED
	var gone *ros.Gone
	switch {
	case ctx.Err() != nil:
		return true, r.leave(ctx, m, context.Cause(ctx))
	case errors.As(e.err, &gone):
		return true, r.leave(ctx, m, unknown(gone))
	case violated && e.err == nil && e.status != ros.GoalSucceeded:
		return true, r.leave(ctx, m, r.violation(m, e.result))
	case !newest: // replaced
		return false, nil
	case e.err != nil:
		return true, r.leave(ctx, m, e.err)
	case e.status == ros.GoalSucceeded && !final: // it came to the end of its braking
		return true, r.leave(ctx, m, heldUp(r.clock.Now().Sub(m.newest().sent)))
	case e.status == ros.GoalSucceeded:
		return true, r.arrived(ctx, m, nil)
	case e.status == ros.GoalCanceled:
		return true, r.leave(ctx, m, &Condition{Trouble: TroubleShort, What: "the goal was cancelled, and not by this driver", Next: "look which other program commands the arm"})
	}
	r.until(ctx, lateMode, func() bool { err = r.healthy(); return err != nil })
	if err != nil {
		return true, r.leave(ctx, m, err)
	}
	return true, r.leave(ctx, m, &Condition{
		Trouble: TroubleShort, What: fmt.Sprintf("the controller gave the motion up (code %d, %q)", e.result.ErrorCode, e.result.ErrorString),
		Next: "look at the log of " + r.config.Controller,
	})
}

// violation names the joint that is furthest off, by measurement.
func (r *Robot) violation(m *run, res control_msgs.FollowJointTrajectory_Result) error {
	j, _, _ := r.snapshot()
	p := m.newest()
	want := m.path.at(p.timeAt(r.clock.Now().Sub(p.sent))).q
	worst, off := r.furthest(j.q, want)
	return &Condition{
		Trouble: TroubleShort,
		What: fmt.Sprintf("the controller stopped the arm short of its goal: a joint left its tolerance (path %.2f rad, goal %.2f rad; %s is %.3f rad from where it should be; %q)",
			r.config.PathTolerance, r.config.GoalTolerance, worst, off, res.ErrorString),
		Next: "look what it pushes against",
	}
}

func (r *Robot) furthest(q, want []float64) (name string, off float64) {
	for i := range min(len(q), len(want)) {
		if d := math.Abs(q[i] - want[i]); d >= off {
			name, off = r.model.Joints[i].Name, d
		}
	}
	return name, off
}

// arrived judges by measured joints, a little later: "succeeded" is no evidence, and neither is a missing word.
func (r *Robot) arrived(ctx context.Context, m *run, doubt error) error {
	want := m.path.at(m.path.length.Seconds()).q
	ok := r.until(ctx, settleTime, func() bool {
		j, _, _ := r.snapshot()
		_, off := r.furthest(j.q, want)
		return j.q != nil && off <= arrivedTol && fastest(j.qd) <= restSpeed && r.clock.Now().Sub(j.received) < staleJoints
	})
	if ok {
		return nil
	}
	if ctx.Err() != nil {
		return r.leave(ctx, m, context.Cause(ctx))
	}
	if err := r.healthy(); err != nil {
		return err
	}
	j, _, _ := r.snapshot()
	worst, off := r.furthest(j.q, want)
	return &Condition{
		Trouble: TroubleShort, cause: doubt,
		What: fmt.Sprintf("the motion ended, but %s is measured %.3f rad from its goal (allowed %.3f)", worst, off, arrivedTol),
		Next: "look what holds it",
	}
}

// leave ends a motion early: the arm brakes on its path, and what cannot be braked so is cancelled. When Halt was the
// cause, Halt does that.
func (r *Robot) leave(ctx context.Context, m *run, why error) error {
	if errors.Is(why, ErrHalted) || m.newest().sent.IsZero() || nobodyThere(why) {
		return why
	}
	if errors.Is(why, context.Canceled) || errors.Is(why, context.DeadlineExceeded) {
		why = fmt.Errorf("ended before its end: %w", why)
	}
	ctx, cancel := r.within(context.WithoutCancel(ctx), haltTime)
	defer cancel()
	if err := r.brake(ctx, m); err != nil {
		why = errors.Join(why, r.cancelAll(ctx))
	}
	return why
}

// nobodyThere says that there is nobody to ask for braking: the arm brakes by itself, within Deadman.
func nobodyThere(why error) bool {
	var gone *ros.Gone
	var absent *ros.Absent
	var c *Condition
	return errors.As(why, &gone) || errors.As(why, &absent) || errors.As(why, &c) && c.Trouble == TroubleLink
}
