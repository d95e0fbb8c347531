package wire

import (
	"context"
	"math"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/trajectory_msgs"
)

// Codes of a goal's end. Preempted is the driver's own number.
const (
	codeFine      = control_msgs.FollowJointTrajectory_Result_SUCCESSFUL
	codeInvalid   = control_msgs.FollowJointTrajectory_Result_INVALID_GOAL
	codeJoints    = control_msgs.FollowJointTrajectory_Result_INVALID_JOINTS
	codeLate      = control_msgs.FollowJointTrajectory_Result_PATH_TOLERANCE_VIOLATED
	codePreempted = int32(-6)
)

const (
	pollTime    = 20 * time.Millisecond // trajectory_server.loop_rate
	doneWrist   = 0.5                   // rad: generation A's test of wrist and gripper
	doneSlides  = 0.01                  // m: generation B's of lift and arm
	restSpeed   = 0.01                  // per second: settled
	rangeMargin = 1e-3                  // a goal beyond the range by more than that is dropped
)

// ended is why a goal ended from outside.
type ended struct {
	code int32
	why  string
}

// following is a goal that runs.
type following struct {
	g       *control_msgs.FollowJointTrajectory_Goal
	end     chan ended // capacity 1
	joints  []int      // of the point that is under way
	moves   [wrists]int
	shifts  bool
	pinches bool
}

// end ends the running goal.
func (w *Stretch) end(code int32, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finish(code, why)
}

func (w *Stretch) finish(code int32, why string) {
	if w.run != nil {
		w.run.end <- ended{code, why}
		w.run = nil
	}
}

func (w *Stretch) serveGoals() error {
	return w.keep(w.node.ServeAction(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback](
		"/follow_joint_trajectory", // relative to the driver's own namespace, which is the root
	), ros.ActionHandler{Accept: w.acceptable, Run: w.follow}))
}

// acceptable: a robot that is not homed takes no goal, nor does one in another mode. Which modes generation A takes goals
// in is not known: position, and navigation unless PositionOnly. In generation B each joint has a mode of its own. A goal
// that is taken ends the one before it.
func (w *Stretch) acceptable(m msg.Message) bool {
	g, is := m.(*control_msgs.FollowJointTrajectory_Goal)
	if !is {
		return false
	}
	code, _ := w.wellFormed(g) // one that is not is taken, and ends at once
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.takes(g) {
		return false
	}
	r := &following{g: g, end: make(chan ended, 1)}
	if code == codeFine {
		w.finish(codePreempted, "another goal came")
		w.run = r
	}
	w.begun.put(g, r)
	return true
}

// takes needs mu.
func (w *Stretch) takes(g *control_msgs.FollowJointTrajectory_Goal) bool {
	if w.unhomed {
		return false
	}
	if w.gen != GenerationB {
		return w.present() == modePosition || w.present() == modeNavigation && !w.faults.PositionOnly
	}
	for _, n := range g.Trajectory.JointNames {
		if mode, has := w.each[w.alias(n)]; has && mode != modePosition {
			return false
		}
	}
	return w.present() == modeActive
}

func (w *Stretch) follow(ctx context.Context, _ ros.GoalID, m msg.Message, feedback func(msg.Message)) (msg.Message, ros.GoalStatus) {
	res := &control_msgs.FollowJointTrajectory_Result{}
	r, ok := w.begun.take(m)
	if !ok {
		res.ErrorCode, res.ErrorString = codeInvalid, "the driver has lost the goal"
		return res, ros.GoalAborted
	}
	if res.ErrorCode, res.ErrorString = w.wellFormed(r.g); res.ErrorCode != codeFine {
		return res, ros.GoalAborted
	}
	defer func() {
		w.mu.Lock()
		if w.run == r {
			w.run = nil
		}
		w.mu.Unlock()
	}()
	over, status := w.points(ctx, r, feedback)
	res.ErrorCode, res.ErrorString = over.code, over.why
	return res, status
}

// wellFormed is what a goal must be. A joint that is not known is only warned of, but for generation B's strict mode.
func (w *Stretch) wellFormed(g *control_msgs.FollowJointTrajectory_Goal) (int32, string) {
	if g == nil || len(g.Trajectory.Points) == 0 {
		return codeInvalid, "no points"
	}
	for _, p := range g.Trajectory.Points {
		if len(p.Positions) != len(g.Trajectory.JointNames) {
			return codeInvalid, "a point has not as many positions as there are joints"
		}
	}
	if w.gen != GenerationB || !param(w, "trajectory_server.strict_mode", false) {
		return codeFine, ""
	}
	for i, n := range g.Trajectory.JointNames {
		j, known := w.joint(n)
		if !known && !isJaw(w.alias(n)) && n != shiftJoint {
			return codeJoints, "no joint " + n
		}
		for _, p := range g.Trajectory.Points {
			if known && outside(j, p.Positions[i]) {
				return codeInvalid, n + " is out of its range"
			}
		}
	}
	return codeFine, ""
}

// points takes the points one by one. To generation A their times mean nothing, their velocities are those to move with.
func (w *Stretch) points(ctx context.Context, r *following, feedback func(msg.Message)) (ended, ros.GoalStatus) {
	mode := "target_priority"
	if w.gen == GenerationB {
		mode = param(w, "trajectory_server.mode", mode)
	}
	began := w.twin.Clock().Now()
	for i, before := 0, began; i < len(r.g.Trajectory.Points); i++ {
		p := r.g.Trajectory.Points[i]
		at := began.Add(time.Duration(p.TimeFromStart.Sec)*time.Second + time.Duration(p.TimeFromStart.Nanosec))
		var due time.Time
		switch {
		case mode == "time_priority" && at.After(before):
			due = at
		case mode == "adaptive_velocity":
			w.slow(r, p.Positions, at.Sub(before))
		}
		w.aimNewest(r, p, before, due)
		e, status := w.wait(ctx, r, p, due, i+1 < len(r.g.Trajectory.Points), feedback)
		w.slow(r, nil, 0)
		if status != ros.GoalSucceeded {
			return e, status
		}
		before = at
	}
	return ended{}, ros.GoalSucceeded
}

// wait until a point is met, by each generation's test. One that is due at a time is not met before, and one that others
// follow then is over.
func (w *Stretch) wait(ctx context.Context, r *following, p trajectory_msgs.JointTrajectoryPoint, due time.Time, more bool, feedback func(msg.Message)) (ended, ros.GoalStatus) {
	t := w.twin.Clock().Ticker(pollTime)
	defer t.Stop()
	most, done := w.patience(), ctx.Done()
	began := w.twin.Clock().Now()
	if due.After(began) {
		began = due
	}
	for {
		select {
		case e := <-r.end:
			return e, statusOf(e.code)
		case <-done:
			if done = nil; w.fault().IgnoreCancel {
				continue
			}
			if !w.deaf() {
				w.body.mu.Lock()
				w.body.rest()
				w.body.mu.Unlock()
			}
			return ended{codePreempted, "cancelled"}, ros.GoalCanceled
		case now := <-t.C():
			feedback(w.progress(r, p, now))
			ripe := !now.Before(due)
			if ripe && (!due.IsZero() && more || w.met(r)) {
				return ended{}, ros.GoalSucceeded
			}
			if now.Sub(began) > most {
				return ended{codeLate, "timed out"}, ros.GoalAborted
			}
		}
	}
}

func statusOf(code int32) ros.GoalStatus {
	if code == codeFine {
		return ros.GoalSucceeded
	}
	return ros.GoalAborted
}

// patience is how long a point may take.
func (w *Stretch) patience() time.Duration {
	name, s := "action_timeout", 3.0
	if w.gen == GenerationB {
		name, s = "trajectory_server.timeout", 5.0
	}
	s = param(w, name, s)
	return time.Duration(s * float64(time.Second))
}

func outside(j int, x float64) bool {
	s := spans()[j]
	return !(x >= s.lo-rangeMargin && x <= s.hi+rangeMargin)
}

// aimNewest aims for a goal that no newer one has replaced: the goroutines of two goals come in any order.
func (w *Stretch) aimNewest(r *following, p trajectory_msgs.JointTrajectoryPoint, begin, due time.Time) {
	w.aiming.Lock()
	defer w.aiming.Unlock()
	w.mu.Lock()
	newest := w.run == r
	w.mu.Unlock()
	if newest {
		w.aim(r, p, begin, due)
	}
}

// aim sets the targets of a point, with a time when it is due at one. What is out of range is dropped, never clipped; the goal goes on without it.
func (w *Stretch) aim(r *following, p trajectory_msgs.JointTrajectoryPoint, begin, due time.Time) {
	x := p.Positions
	r.joints, r.shifts, r.pinches = r.joints[:0], false, false
	deaf := w.deaf()
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	for i, n := range r.g.Trajectory.JointNames {
		j, known := w.joint(n)
		switch {
		case known && !outside(j, x[i]):
			g := &w.body.joint[j]
			r.joints = append(r.joints, j)
			if r.moves[j] = g.moves; g.running {
				r.moves[j]-- // one that moves already has started
			}
			if to := math.Max(g.lo, math.Min(g.hi, x[i])); !deaf && due.IsZero() {
				g.aim(to)
			} else if !deaf {
				g.follow(to, begin, due)
			}
			if !deaf && w.gen != GenerationB && i < len(p.Velocities) {
				g.asked = math.Abs(p.Velocities[i])
			}
		case n == shiftJoint && !deaf:
			r.shifts = true
			w.body.ahead(x[i])
		case isJaw(w.alias(n)):
			r.pinches = true
			if !deaf {
				w.body.jaw = w.aperture(x[i])
			}
		}
	}
}

// slow gives each joint the speed with which it takes as long as the point's time says; without positions, its own again.
func (w *Stretch) slow(r *following, to []float64, in time.Duration) {
	all := spans()
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	for i, n := range r.g.Trajectory.JointNames {
		j, known := w.joint(n)
		if !known {
			continue
		}
		g := &w.body.joint[j]
		if g.v = all[j].v; to != nil && in > 0 {
			g.v = math.Max(1e-3, math.Min(g.v, math.Abs(to[i]-g.x)/in.Seconds()))
		}
	}
}

// where the goal's joints are now.
func (w *Stretch) where(r *following) []float64 {
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	out := make([]float64, len(r.g.Trajectory.JointNames))
	for i, n := range r.g.Trajectory.JointNames {
		if j, known := w.joint(n); known {
			out[i] = w.body.q[j]
		}
	}
	return out
}

// met: in generation A lift and arm must have started and stopped since, the wrist be within half a radian, the wheels
// stand; in B each joint be within its tolerance.
func (w *Stretch) met(r *following) bool {
	settle, fine := false, 0.05
	slides := doneSlides
	if w.gen == GenerationB {
		settle = param(w, "trajectory_server.settle_before_return", false)
		fine = param(w, "trajectory_server.default_tolerance", fine)
		slides = param(w, "trajectory_server.tolerance.lift_joint", slides)
	}
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	b := w.body
	all := !r.shifts || !b.shift.running
	for _, k := range r.joints {
		g := &b.joint[k]
		off := math.Abs(b.q[k] - g.target)
		switch {
		case w.gen == GenerationB:
			near := off < fine
			if k <= arm5 {
				near = off < slides
			}
			all = all && near && (!settle || math.Abs(b.v[k]) < restSpeed)
		case k <= arm5:
			all = all && !g.running && g.moves > r.moves[k]
		default:
			all = all && off < doneWrist
		}
	}
	return all && (w.gen == GenerationB || !r.pinches || math.Abs(w.finger(b.width)-w.finger(math.Max(0, b.jaw))) < doneWrist)
}

func (w *Stretch) progress(r *following, p trajectory_msgs.JointTrajectoryPoint, now time.Time) msg.Message {
	m := &control_msgs.FollowJointTrajectory_Feedback{Header: stamp(now), JointNames: r.g.Trajectory.JointNames, Desired: p}
	m.Actual.Positions = w.where(r)
	m.Error.Positions = make([]float64, len(p.Positions))
	for i := range p.Positions {
		m.Error.Positions[i] = p.Positions[i] - m.Actual.Positions[i]
	}
	return m
}
