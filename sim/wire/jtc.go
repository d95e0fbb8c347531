package wire

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/control_msgs"
)

const (
	jtcSuccess = control_msgs.FollowJointTrajectory_Result_SUCCESSFUL
	jtcInvalid = control_msgs.FollowJointTrajectory_Result_INVALID_GOAL
	jtcPath    = control_msgs.FollowJointTrajectory_Result_PATH_TOLERANCE_VIOLATED
	jtcGoal    = control_msgs.FollowJointTrajectory_Result_GOAL_TOLERANCE_VIOLATED
	stillSpeed = 0.01 // rad/s: stopped_velocity_tolerance of the trajectory controller
)

// run is a goal being followed.
type run struct {
	path  spline
	began time.Time
	lim   limits
	held  bool        // stopped by an empty trajectory, and not told
	done  chan ending // capacity 2, for one that was told too early
}

// ending is how a goal ends; the status follows from the code unless it says otherwise.
type ending struct {
	code   int32
	text   string
	status ros.GoalStatus
}

// end ends the running goal.
func (a *arm) end(e ending) {
	if a.run == nil {
		return
	}
	if e.status == ros.GoalUnknown {
		e.status = ros.GoalAborted
		if e.code == jtcSuccess {
			e.status = ros.GoalSucceeded
		}
	}
	if e.code == jtcSuccess && e.status == ros.GoalSucceeded {
		n := len(a.joints)
		a.rest = knot{q: a.run.path[len(a.run.path)-1].q, v: make([]float64, n), a: make([]float64, n)}
	}
	a.run.done <- e
	a.run = nil
}

// follow judges the running goal, which wants the arm to be at want.
func (a *arm) follow(t time.Duration, want knot) {
	for j, most := range a.run.lim.path {
		if most > 0 && math.Abs(want.q[j]-a.q[j]) > most {
			a.end(ending{code: jtcPath, text: "Aborted due to path tolerance violation"})
			return
		}
	}
	if t < a.run.path.end() {
		return
	}
	met := true
	for j, most := range a.run.lim.goal {
		met = met && (most == 0 || math.Abs(want.q[j]-a.q[j]) <= most) && math.Abs(a.v[j]) < stillSpeed
	}
	late := a.run.lim.late
	switch {
	case met:
		a.end(ending{code: jtcSuccess, text: "Goal successfully reached!"})
	case late > 0 && t > a.run.path.end()+late:
		a.end(ending{code: jtcGoal, text: "Aborted due to goal_time_tolerance exceeding"})
	}
}

// plan is the goal as the controller would follow it from now on; an error is why it rejects it.
func (a *arm) plan(g *control_msgs.FollowJointTrajectory_Goal) (spline, error) {
	if !a.listens() {
		return nil, errors.New("the controller is not running")
	}
	return newSpline(&g.Trajectory, a.joints, a.want, a.now.Add(a.faults.skew()), a.build.one)
}

// start makes a goal the running one, from where the controller wants to be. A nil run with no error was over at once.
func (a *arm) start(g *control_msgs.FollowJointTrajectory_Goal) (*run, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path, err := a.plan(g)
	if err != nil {
		return nil, err
	}
	if a.run == nil {
		a.moves = a.now
	}
	replaced := ending{code: jtcInvalid, text: "Current goal cancelled due to new incoming action."}
	if a.build.one {
		replaced = ending{code: jtcSuccess, status: ros.GoalCanceled}
	}
	a.end(replaced)
	a.rest = knot{}
	if len(path) == 0 { // franka_ros: stop
		return nil, nil //nolint:nilnil // as it says
	}
	a.run = &run{path: path, began: a.now, lim: a.tolerances(g), done: make(chan ending, 2)}
	if a.faults.SuccessEarly {
		a.run.done <- ending{code: jtcSuccess, status: ros.GoalSucceeded, text: "Goal successfully reached!"}
	}
	return a.run, nil
}

// cancel holds, when r still runs.
func (a *arm) cancel(r *run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run == r {
		a.run = nil
	}
}

// obey is a trajectory that came on the topic: nobody hears how it ends. An empty one stops the arm, and the goal that
// runs is not told.
func (a *arm) obey(g *control_msgs.FollowJointTrajectory_Goal) {
	if len(g.Trajectory.Points) > 0 {
		_, _ = a.start(g) // a wrong one is dropped
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run != nil {
		a.run.held = true
	}
}

// limits are a goal's tolerances per joint: 0 is not watched.
type limits struct {
	path, goal []float64
	late       time.Duration // after the end until the goal must be met; 0: for ever
}

// tolerances are the goal's over the controller's own: 0 takes those, below 0 takes none.
func (a *arm) tolerances(g *control_msgs.FollowJointTrajectory_Goal) limits {
	l := limits{path: make([]float64, len(a.joints)), goal: make([]float64, len(a.joints)), late: a.build.late}
	for j := range l.goal {
		l.goal[j] = a.build.goal
	}
	set := func(to []float64, from []control_msgs.JointTolerance) {
		for _, t := range from {
			if i := slices.Index(a.joints, t.Name); i >= 0 && t.Position != 0 {
				to[i] = math.Max(0, t.Position)
			}
		}
	}
	set(l.path, g.PathTolerance)
	set(l.goal, g.GoalTolerance)
	if d := time.Duration(g.GoalTimeTolerance.Sec)*time.Second + time.Duration(g.GoalTimeTolerance.Nanosec); d != 0 {
		l.late = max(0, d)
	}
	return l
}

// acceptable is the trajectory controller's look at a goal, which begins when it is taken.
func (w *Franka) acceptable(m msg.Message) bool {
	g, is := m.(*control_msgs.FollowJointTrajectory_Goal)
	if !is {
		return false
	}
	r, err := w.arm.start(g)
	if err == nil {
		w.begun.put(g, r)
	}
	return err == nil
}

// followed is a goal from its acceptance to its end.
func (w *Franka) followed(ctx context.Context, _ ros.GoalID, m msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
	res := &control_msgs.FollowJointTrajectory_Result{}
	r, ok := w.begun.take(m)
	if !ok {
		res.ErrorCode, res.ErrorString = jtcInvalid, "the controller has lost the goal"
		return res, ros.GoalAborted
	}
	if r == nil {
		return res, ros.GoalSucceeded
	}
	cancelled := ctx.Done()
	for {
		select {
		case e := <-r.done:
			res.ErrorCode, res.ErrorString = e.code, e.text
			return res, e.status
		case <-cancelled:
			if !w.arm.fault().IgnoreCancel {
				w.arm.cancel(r)
				return res, ros.GoalCanceled
			}
			cancelled = nil
		}
	}
}
