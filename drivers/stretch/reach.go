package stretch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/trajectory_msgs"
)

// reach sends the arm's next goal when it is due.
func (m *run) reach(ctx context.Context, b *reading, now time.Time) {
	if m.sending || m.active && m.r.holds() {
		return
	}
	end := m.S+leadTurn >= m.Plan.Duration() && m.S+leadSlide >= m.Plan.Duration()
	switch {
	case m.final: // once more for what came to rest short of it
		if m.again >= againMost || m.Calm.IsZero() || now.Sub(m.Calm) < againWait || now.Sub(m.sentAt) < againWait {
			return
		}
		m.again++
	case !m.sentAt.IsZero() && now.Sub(m.sentAt) < renew:
		return
	}
	g := m.goal(b)
	m.sentAt = now
	if g == nil { // a goal of where it is would not end
		m.final = m.final || end && m.S >= m.Plan.Duration()
		return
	}
	m.final = end
	m.send(ctx, g)
}

func (r *Robot) holds() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// leastOf is the least way, metres or radians, for which a joint is sent a goal: a goal of where it is would not end.
func leastOf(j robot.Joint) float64 {
	if j.Prismatic {
		return 0.0005
	}
	return 0.002
}

// goal is the next stretch of the plan for the joints that have a way to go; nil when none has.
func (m *run) goal(b *reading) *control_msgs.FollowJointTrajectory_Goal {
	var use []int
	for i, j := range m.Model.Joints {
		way := math.Abs(m.Plan.At(m.S + m.leadOf(i)).Q[i] - b.q[i])
		if way > leastOf(j) {
			use = append(use, i)
		}
	}
	if len(use) == 0 {
		return nil
	}
	g := new(control_msgs.FollowJointTrajectory_Goal)
	for _, i := range use {
		g.Trajectory.JointNames = append(g.Trajectory.JointNames, m.Model.Joints[i].Name)
	}
	point := func(at func(joint int) time.Duration, when time.Duration) {
		p := trajectory_msgs.JointTrajectoryPoint{TimeFromStart: wireDuration(when)}
		for _, i := range use {
			p.Positions = append(p.Positions, m.Plan.At(m.S + at(i)).Q[i]*m.units.signs[i])
		}
		g.Trajectory.Points = append(g.Trajectory.Points, p)
	}
	if m.gen == GenB { // it keeps to times
		const step = 100 * time.Millisecond
		for d := step; d <= leadSlide; d += step {
			point(func(int) time.Duration { return d }, d)
			if m.S+d >= m.Plan.Duration() {
				break
			}
		}
		return g
	}
	point(m.leadOf, leadSlide)
	p := &g.Trajectory.Points[0]
	for _, i := range use { // it takes its time from them, where it knows them: the joints stay together
		p.Velocities = append(p.Velocities, m.speedFor(i, b))
	}
	return g
}

// The least speeds that are asked for: what a servo's register would round to nothing means no limit at all.
const (
	slowSlide = 0.006 // m/s
	slowTurn  = 0.1   // rad/s
	haste     = 1.4   // of the speed that would do, so that the next goal finds it on its way
)

// speedFor is the speed in which a joint does its way in the time it has.
func (m *run) speedFor(joint int, b *reading) float64 {
	lead, least := m.leadOf(joint), slowTurn
	if joint <= jArm {
		least = slowSlide
	}
	way := math.Abs(m.Plan.At(m.S + lead).Q[joint] - b.q[joint])
	return math.Min(math.Max(haste*way/lead.Seconds(), least), m.Model.Joints[joint].Vel)
}

func wireDuration(d time.Duration) builtin_interfaces.Duration {
	return builtin_interfaces.Duration{Sec: int32(d / time.Second), Nanosec: uint32(d % time.Second)}
}

// send sends a goal beside the motion: a wire that is slow to accept holds nothing up.
func (m *run) send(ctx context.Context, g *control_msgs.FollowJointTrajectory_Goal) {
	m.which++
	n := goalNews{which: m.which}
	m.sending = true
	m.wait.Go(func() {
		tell := func(n goalNews) {
			select {
			case m.news <- n:
			case <-ctx.Done():
			}
		}
		goal, err := m.r.sendGoal(ctx, g, first(func(f *control_msgs.FollowJointTrajectory_Feedback) {
			tell(goalNews{which: n.which, stage: goalTold, told: f})
		}))
		if err != nil {
			n.stage, n.err = goalNotTaken, err
			tell(n)
			return
		}
		tell(n)
		n.stage = goalOver
		n.status, n.err = goal.Result(ctx, &n.result)
		tell(n)
	})
}

// sendGoal sends a goal and waits for its acceptance, with a time-out of our own.
func (r *Robot) sendGoal(ctx context.Context, g *control_msgs.FollowJointTrajectory_Goal, feedback func(msg.Message)) (ros.Goal, error) {
	within, cancel := r.within(ctx, acceptTime)
	defer cancel()
	goal, err := r.arm.Send(within, g, feedback)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = fmt.Errorf("the robot's driver did not say within %v whether it takes a goal: it may hang; look at stretch_driver (%w)", acceptTime, err)
	}
	return goal, err
}

// codePreempted is the driver's own result code.
const (
	codeInvalid   = control_msgs.FollowJointTrajectory_Result_INVALID_GOAL
	codeTimeout   = control_msgs.FollowJointTrajectory_Result_PATH_TOLERANCE_VIOLATED
	codePreempted = -6
)

// heard takes news of a goal; an error ends the motion. "Succeeded" is no evidence, and ends nothing.
func (m *run) heard(ctx context.Context, n goalNews) error {
	var refusal *ros.Rejected
	var gone *ros.Gone
	switch {
	case n.stage == goalTold:
		return m.told(n.told)
	case n.stage == goalTaken:
		m.sending, m.active, m.live = false, true, n.which
		return nil
	case n.err != nil && ctx.Err() != nil:
		return ended(ctx)
	case n.stage == goalNotTaken:
		m.sending = false
		if errors.As(n.err, &refusal) {
			return m.refused(ctx, n.err)
		}
		return fmt.Errorf("%w; what became of the goal is not known", n.err)
	case errors.As(n.err, &gone): // and no other goal will be taken
		return fmt.Errorf("%w; look whether stretch_driver still runs", n.err)
	case n.which != m.live: // it has been replaced
		return nil
	case m.sending: // it is being replaced: the next one will show what is the matter
		m.active = false
		return nil
	case n.err != nil:
		return fmt.Errorf("%w; what became of the goal is not known", n.err)
	}
	m.active = false
	if n.status == ros.GoalCanceled {
		return m.because(ctx, errors.New("the goal was cancelled, and not by this daemon: look which other program commands the robot"))
	}
	if n.status == ros.GoalSucceeded {
		return nil
	}
	switch n.result.ErrorCode {
	case codeInvalid:
		return m.refused(ctx, fmt.Errorf("the robot's driver will not do the goal: %s", n.result.ErrorString))
	case codePreempted:
		return m.because(ctx, errors.New("another program's goal took the place of this motion: end that program"))
	case codeTimeout: // also for a joint that is there, so that measurement decides
		m.final = false
		if m.again++; m.again > againMost {
			return fmt.Errorf("the robot's driver gave goals up as timed out %d times (%s): look what holds the robot", m.again, n.result.ErrorString)
		}
		return nil
	}
	return m.because(ctx, fmt.Errorf("the robot's driver gave the motion up (code %d, %q): look at its log", n.result.ErrorCode, n.result.ErrorString))
}

// because is the robot's own state where that is the reason for why: it is told on another topic, and may come later.
func (m *run) because(ctx context.Context, why error) error {
	var state error
	m.r.until(ctx, acceptTime/3, func() bool {
		state = m.r.healthy(m.r.clock.Now())
		return state != nil
	})
	if state != nil {
		return state
	}
	return why
}

// refused learns what may be the matter with a goal that was not taken, and tries it once more another way.
func (m *run) refused(ctx context.Context, why error) error {
	r := m.r
	r.mu.Lock()
	mode, held, arm := r.status.mode.v, r.held, r.armMode
	if m.active && !held {
		r.held = true // the goal before it still runs: it takes one at a time
	}
	r.mu.Unlock()
	m.final, m.sentAt = false, time.Time{}
	switch {
	case m.active && !held:
		return nil
	case m.gen != GenB && mode == modeNavigation && arm != modePosition:
		if m.Moves {
			return m.because(ctx, fmt.Errorf("%w; it may take goals of the arm in another mode than velocities of the base: move the base alone, then the arm", why))
		}
		r.mu.Lock()
		r.armMode = modePosition
		r.mu.Unlock()
		if err := r.setMode(ctx, modePosition); err != nil {
			return m.because(ctx, errors.Join(why, err))
		}
		return nil
	}
	return m.because(ctx, fmt.Errorf("%w; the robot says mode %s: look at stretch_driver's log", why, mode))
}
