package rostest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/control_msgs"
)

func follow(name string) ros.Action {
	return ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback](name)
}

func goalOf(names ...string) *control_msgs.FollowJointTrajectory_Goal {
	g := new(control_msgs.FollowJointTrajectory_Goal)
	g.Trajectory.JointNames = names
	return g
}

func resultOf(code int32, words string) *control_msgs.FollowJointTrajectory_Result {
	return &control_msgs.FollowJointTrajectory_Result{ErrorCode: code, ErrorString: words}
}

// follower is a server that does what the first joint name of the goal says: a number of feedbacks and then the result;
// "wait" until it is cancelled, "abort", or "refuse".
func follower(running chan<- ros.GoalID) ros.ActionHandler {
	word := func(m msg.Message) string {
		if g, ok := m.(*control_msgs.FollowJointTrajectory_Goal); ok && len(g.Trajectory.JointNames) > 0 {
			return g.Trajectory.JointNames[0]
		}
		return ""
	}
	return ros.ActionHandler{
		Accept: func(g msg.Message) bool { return word(g) != "refuse" },
		Run: func(ctx context.Context, id ros.GoalID, g msg.Message, feedback func(msg.Message)) (msg.Message, ros.GoalStatus) {
			switch w := word(g); w {
			case "wait":
				running <- id
				<-ctx.Done()
				return resultOf(-7, "cancelled on the way"), ros.GoalCanceled
			case "abort":
				return resultOf(-4, "a joint is stuck"), ros.GoalAborted
			default:
				n, err := strconv.Atoi(w)
				if err != nil {
					return resultOf(-1, err.Error()), ros.GoalAborted
				}
				for i := range n {
					feedback(&control_msgs.FollowJointTrajectory_Feedback{JointNames: []string{strconv.Itoa(i)}})
				}
				return resultOf(int32(n), "done"), ros.GoalSucceeded //nolint:gosec // small
			}
		},
	}
}

// doing is both ends of an action.
func (w Wire) doing(t *testing.T, name string) (ctx context.Context, c ros.Goaler, srv ros.Closer, running chan ros.GoalID) {
	t.Helper()
	w.needs(t, Actions)
	ctx, here, there := w.bench(t, name)
	running = make(chan ros.GoalID, 8)
	srv = must[ros.Closer](t)(there.ServeAction(follow("/rostest/"+name), follower(running)))
	c = must[ros.Goaler](t)(here.ActionClient(follow("/rostest/" + name)))
	if err := c.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx, c, srv, running
}

func actions(t *testing.T, w Wire) {
	ctx, c, _, _ := w.doing(t, "follow")
	for range 3 {
		var came []string
		goal := must[ros.Goal](t)(c.Send(ctx, goalOf("5"), func(m msg.Message) {
			if f, ok := m.(*control_msgs.FollowJointTrajectory_Feedback); ok {
				came = append(came, f.JointNames...)
			}
		}))
		for range 2 { // the result may be asked for again
			var r control_msgs.FollowJointTrajectory_Result
			s, err := goal.Result(ctx, &r)
			if err != nil || s != ros.GoalSucceeded || r.ErrorCode != 5 || r.ErrorString != "done" {
				t.Fatalf("result %+v, status %d, %v; want 5, done, %d", r, s, err, ros.GoalSucceeded)
			}
		}
		if s := goal.Status(); s != ros.GoalSucceeded {
			t.Errorf("status %d after the result, want %d", s, ros.GoalSucceeded)
		}
		// Feedback that was sent before the result has been handed on when the result is.
		if want := []string{"0", "1", "2", "3", "4"}; !slices.Equal(came, want) {
			t.Errorf("feedback %q, want %q", came, want)
		}
		if goal.ID() == (ros.GoalID{}) {
			t.Error("a goal has no id")
		}
	}
}

func refusedGoal(t *testing.T, w Wire) {
	w.needs(t, Rejection)
	ctx, c, _, _ := w.doing(t, "refuse")
	g, err := c.Send(ctx, goalOf("refuse"), nil)
	if !errors.As(err, new(*ros.Rejected)) {
		t.Errorf("a refused goal: %v, %v; want a *ros.Rejected", g, err)
	}
	again := must[ros.Goal](t)(c.Send(ctx, goalOf("0"), nil))
	if s, err := again.Result(ctx, &control_msgs.FollowJointTrajectory_Result{}); err != nil || s != ros.GoalSucceeded {
		t.Errorf("the goal after a refused one: status %d, %v", s, err)
	}
}

func badEnd(t *testing.T, w Wire) {
	ctx, c, _, _ := w.doing(t, "abort")
	g := must[ros.Goal](t)(c.Send(ctx, goalOf("abort"), nil))
	var r control_msgs.FollowJointTrajectory_Result
	if s, err := g.Result(ctx, &r); err != nil || s != ros.GoalAborted || r.ErrorCode != -4 || r.ErrorString != "a joint is stuck" {
		t.Errorf("an aborted goal: %+v, status %d, %v", r, s, err)
	}
}

func (w Wire) canceled(ctx context.Context, t *testing.T, g ros.Goal) {
	t.Helper()
	var r control_msgs.FollowJointTrajectory_Result
	s, err := g.Result(ctx, &r)
	if err != nil {
		t.Fatalf("the result of a cancelled goal: %v", err)
	}
	if !slices.Contains(w.Cannot, GoalState) && (s != ros.GoalCanceled || r.ErrorCode != -7) {
		t.Errorf("a cancelled goal: %+v, status %d, want -7 and %d", r, s, ros.GoalCanceled)
	}
}

func cancelGoal(t *testing.T, w Wire) {
	ctx, c, _, running := w.doing(t, "cancel")
	g, other := must[ros.Goal](t)(c.Send(ctx, goalOf("wait"), nil)), must[ros.Goal](t)(c.Send(ctx, goalOf("wait"), nil))
	take(ctx, t, running, "the first goal")
	take(ctx, t, running, "the second goal")
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := g.Result(short, &control_msgs.FollowJointTrajectory_Result{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the result of a running goal: %v, want the context's end", err)
	}
	if err := g.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	w.canceled(ctx, t, g)
	if s := other.Status(); s == ros.GoalCanceled || s == ros.GoalCanceling {
		t.Errorf("the other goal has status %d though only the first was cancelled", s)
	}
	if err := other.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	w.canceled(ctx, t, other)
}

func cancelAll(t *testing.T, w Wire) {
	w.needs(t, CancelAll)
	ctx, c, _, running := w.doing(t, "cancel_all")
	goals := []ros.Goal{must[ros.Goal](t)(c.Send(ctx, goalOf("wait"), nil)), must[ros.Goal](t)(c.Send(ctx, goalOf("wait"), nil))}
	for range goals {
		take(ctx, t, running, "a goal")
	}
	if err := c.CancelAll(ctx); err != nil {
		t.Fatal(err)
	}
	for _, g := range goals {
		w.canceled(ctx, t, g)
	}
}

func goneAction(t *testing.T, w Wire) {
	w.needs(t, GoneActions)
	ctx, c, srv, running := w.doing(t, "gone_action")
	g := must[ros.Goal](t)(c.Send(ctx, goalOf("wait"), nil))
	take(ctx, t, running, "the goal")
	done := make(chan error, 1)
	go func() {
		_, err := g.Result(ctx, &control_msgs.FollowJointTrajectory_Result{})
		done <- err
	}()
	shut(t, srv)
	if err := take(ctx, t, done, "the end of a goal whose server was closed"); !errors.As(err, new(*ros.Gone)) {
		t.Errorf("the server was closed: %v, want a *ros.Gone", err)
	}
}
