package ros1

import (
	"context"
	"errors"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg"
)

// theirServer is one of actionlib's: it counts up to the goal, waits for a cancel at -1, aborts at -2.
const theirServer = `
import rospy, actionlib
from actionlib.msg import TestAction, TestResult, TestFeedback
def run(g):
    if g.goal == -1:
        while not s.is_preempt_requested():
            rospy.sleep(0.01)
        s.set_preempted(TestResult(-1), "as you wish")
        return
    if g.goal == -2:
        s.set_aborted(TestResult(-2), "it broke")
        return
    for i in range(g.goal):
        s.publish_feedback(TestFeedback(i))
    s.set_succeeded(TestResult(g.goal))
rospy.init_node('their_server')
s = actionlib.SimpleActionServer('/count', TestAction, run, auto_start=False)
s.start()
print('serving')
rospy.spin()
`

// theirClient asks ours to count, then starts a long goal and cancels it.
const theirClient = `
import rospy, actionlib
from actionlib.msg import TestAction, TestGoal
rospy.init_node('their_client')
c = actionlib.SimpleActionClient('/ours', TestAction)
c.wait_for_server()
c.send_goal(TestGoal(3), feedback_cb=lambda f: print('feedback', f.feedback))
c.wait_for_result()
print('ended', c.get_state(), c.get_result().result)
c.send_goal(TestGoal(-3))
c.wait_for_result()
print('ended', c.get_state(), c.get_goal_status_text())
c.send_goal(TestGoal(-1))
rospy.sleep(0.5)
c.cancel_goal()
c.wait_for_result()
print('ended', c.get_state(), c.get_result().result)
`

func counter(running chan<- ros.GoalID) ros.ActionHandler {
	of := func(m msg.Message) int32 { return m.(*testGoal).Goal }
	return ros.ActionHandler{
		Accept: func(m msg.Message) bool {
			<-time.After(50 * time.Millisecond) // actionlib's client forgets a goal that is answered while it sends it
			return of(m) != -3
		},
		Run: func(ctx context.Context, id ros.GoalID, m msg.Message, feedback func(msg.Message)) (msg.Message, ros.GoalStatus) {
			if of(m) == -1 {
				running <- id
				<-ctx.Done()
				return &testResult{Result: -1}, ros.GoalCanceled
			}
			for i := range of(m) {
				feedback(&testFeedback{Feedback: i})
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond): // actionlib's client loses what comes with the result
				}
			}
			return &testResult{Result: of(m)}, ros.GoalSucceeded
		},
	}
}

func TestActionlibServer(t *testing.T) {
	c := startCore(t)
	needsActionlib(t)
	n := c.node(t, "viad")
	p := c.run(t, "python3", "-c", theirServer)
	p.wants(t, "serving")
	g, err := n.ActionClient(testAction("/count"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := ready(t)
	if err := g.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	var heard []int32
	count := send(t, g, 4, func(m msg.Message) { heard = append(heard, m.(*testFeedback).Feedback) })
	ends(t, count, ros.GoalSucceeded, 4)
	if len(heard) != 4 || heard[3] != 3 {
		t.Errorf("feedback %v", heard)
	}
	ends(t, send(t, g, -2, nil), ros.GoalAborted, -2)
	long := send(t, g, -1, nil)
	if err := long.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	ends(t, long, ros.GoalCanceled, -1)

	// After a cancel of everything the next goal is taken, whatever the clocks say.
	all := send(t, g, -1, nil)
	if err := g.CancelAll(ctx); err != nil {
		t.Fatal(err)
	}
	ends(t, all, ros.GoalCanceled, -1)
	ends(t, send(t, g, 2, nil), ros.GoalSucceeded, 2)

	lost := send(t, g, -1, nil)
	p.kill()
	var r testResult
	if s, err := lost.Result(ctx, &r); !errors.As(err, new(*ros.Gone)) {
		t.Errorf("the server was killed: %d, %v, want a *ros.Gone", s, err)
	}
	c.run(t, "python3", "-c", theirServer).wants(t, "serving")
	ends(t, send(t, g, 2, nil), ros.GoalSucceeded, 2)
}

func TestActionlibClient(t *testing.T) {
	c := startCore(t)
	needsActionlib(t)
	n := c.node(t, "viad")
	if _, err := n.ServeAction(testAction("/ours"), counter(make(chan ros.GoalID, 9))); err != nil {
		t.Fatal(err)
	}
	p := c.run(t, "python3", "-c", theirClient)
	p.wants(t, "feedback 2")
	p.wants(t, "ended 3 3")
	p.wants(t, "ended 5 the server does not take this goal")
	p.wants(t, "ended 2 -1")
}

func needsActionlib(t *testing.T) {
	t.Helper()
	needs(t, "python3")
	dirs := "/usr/lib/python3/dist-packages/actionlib/msg"
	if !exists(dirs) {
		missing(t, "python3-actionlib is not installed")
	}
}

func send(t *testing.T, g ros.Goaler, goal int32, feedback func(msg.Message)) ros.Goal {
	t.Helper()
	o, err := g.Send(ready(t), &testGoal{Goal: goal}, feedback)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func ends(t *testing.T, g ros.Goal, status ros.GoalStatus, result int32) {
	t.Helper()
	var r testResult
	s, err := g.Result(ready(t), &r)
	if err != nil || s != status || r.Result != result {
		t.Errorf("the goal ended with %d, %d, %v; want %d, %d", s, r.Result, err, status, result)
	}
}

// A goal whose Send was given up is cancelled, so that nothing runs that nobody holds.
func TestSendGivenUp(t *testing.T) {
	c := startCore(t)
	n, other := c.node(t, "viad"), c.node(t, "other")
	asked, cancelled := make(chan struct{}), make(chan struct{})
	hold := make(chan struct{})
	h := counter(nil)
	h.Accept = func(msg.Message) bool { close(asked); <-hold; return true }
	h.Run = func(ctx context.Context, _ ros.GoalID, _ msg.Message, _ func(msg.Message)) (msg.Message, ros.GoalStatus) {
		<-ctx.Done()
		close(cancelled)
		return nil, ros.GoalCanceled
	}
	if _, err := other.ServeAction(testAction("/slow"), h); err != nil {
		t.Fatal(err)
	}
	g, err := n.ActionClient(testAction("/slow"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := g.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { <-asked; cancel() }()
	if _, err := g.Send(ctx, &testGoal{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a Send given up: %v", err)
	}
	close(hold)
	take(t, cancelled, "the goal that nobody holds to be cancelled")
}
