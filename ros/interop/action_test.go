package interop

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/trajectory_msgs"
)

func followOf() ros.Action {
	return ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback]("/follow_joint_trajectory")
}

// goalOf is a way of n points for two joints, whose positions sum to 0.75 for three.
func goalOf(n int) *control_msgs.FollowJointTrajectory_Goal {
	g := new(control_msgs.FollowJointTrajectory_Goal)
	g.Trajectory.JointNames = []string{"fr3_joint1", "fr3_joint2"}
	for i := range n {
		x := float64(i)
		g.Trajectory.Points = append(g.Trajectory.Points, trajectory_msgs.JointTrajectoryPoint{
			Positions: []float64{0.5 * x, -0.25 * x}, TimeFromStart: builtin_interfaces.Duration{Sec: int32(i)},
		})
	}
	g.GoalTolerance = []control_msgs.JointTolerance{{Name: "fr3_joint1", Position: 0.01}}
	return g
}

// TestActionClient drives an action server of each vendor: to the end, cancelled, and refused.
func TestActionClient(t *testing.T) {
	for _, v := range Vendors {
		t.Run(string(v), func(t *testing.T) {
			ctx := budget(t, 30*time.Second)
			d := domain(t)
			n := node(t, d)
			c, err := n.ActionClient(followOf())
			must(t, err)
			defer func() { check(t, c.Close()) }()
			p := peer(t, Setup{Vendor: v, Mode: "serve-action", Domain: d, Args: []string{"steps=5", "period=30"}})
			must(t, c.Ready(ctx))

			t.Run("done", func(t *testing.T) {
				var heard atomic.Int64
				g, err := c.Send(ctx, goalOf(3), func(m msg.Message) {
					f := m.(*control_msgs.FollowJointTrajectory_Feedback)
					if n := heard.Add(1); len(f.Actual.Positions) != 1 || f.Actual.Positions[0] != float64(n) {
						t.Errorf("feedback %d has positions %v", n, f.Actual.Positions)
					}
				})
				must(t, err)
				var r control_msgs.FollowJointTrajectory_Result
				status, err := g.Result(ctx, &r)
				must(t, err)
				if status != ros.GoalSucceeded || r.ErrorString != "done 5" || heard.Load() != 5 {
					t.Errorf("ended %d %q after %d feedbacks, want %d \"done 5\" after 5", status, r.ErrorString, heard.Load(), ros.GoalSucceeded)
				}
				e := event(ctx, t, p, "goal")
				if e.Joints != 2 || e.Points != 3 || e.Sum != 0.75 || e.Tolerance != 1 || e.ID != fmt.Sprintf("%x", g.ID()) {
					t.Errorf("the server read the goal as %+v", e)
				}
			})
			t.Run("cancelled", func(t *testing.T) {
				first := make(chan struct{}, 100)
				g, err := c.Send(ctx, goalOf(3), func(msg.Message) { first <- struct{}{} })
				must(t, err)
				<-first
				must(t, g.Cancel(ctx))
				var r control_msgs.FollowJointTrajectory_Result
				status, err := g.Result(ctx, &r)
				must(t, err)
				if status != ros.GoalCanceled {
					t.Errorf("ended %d %q, want cancelled", status, r.ErrorString)
				}
			})
			t.Run("refused", func(t *testing.T) {
				_, err := c.Send(ctx, goalOf(0), nil)
				var rejected *ros.Rejected
				if !errors.As(err, &rejected) {
					t.Errorf("a goal without points ended with %v, want a *ros.Rejected", err)
				}
			})
		})
	}
}

// TestActionServer serves the same action to a client of each vendor.
func TestActionServer(t *testing.T) {
	for _, v := range Vendors {
		t.Run(string(v), func(t *testing.T) {
			ctx := budget(t, 40*time.Second)
			d := domain(t)
			n := node(t, d)
			s, err := n.ServeAction(followOf(), ros.ActionHandler{
				Accept: func(m msg.Message) bool {
					return len(m.(*control_msgs.FollowJointTrajectory_Goal).Trajectory.Points) > 0
				},
				Run: follow,
			})
			must(t, err)
			defer func() { check(t, s.Close()) }()
			for _, c := range []struct {
				args   string
				status ros.GoalStatus
				text   string
			}{{"points=3", ros.GoalSucceeded, "done"}, {"cancel=2", ros.GoalCanceled, "cancelled"}} {
				p := peer(t, Setup{Vendor: v, Mode: "send-goal", Domain: d, Args: []string{c.args}})
				r := event(ctx, t, p, "result")
				if r.Status != int(c.status) || r.Text != c.text {
					t.Errorf("%s: the client got %d %q, want %d %q", c.args, r.Status, r.Text, c.status, c.text)
				}
				if c.status == ros.GoalSucceeded && r.Feedback != 5 {
					t.Errorf("the client heard %d feedbacks of 5", r.Feedback)
				}
				statuses := p.Events("status")
				if len(statuses) == 0 {
					t.Errorf("%s: the client heard no status", c.args)
				}
				check(t, p.Close())
			}
			p := peer(t, Setup{Vendor: v, Mode: "send-goal", Domain: d, Args: []string{"points=0"}})
			if a := event(ctx, t, p, "accepted"); a.Accepted {
				t.Error("a goal without points was accepted")
			}
		})
	}
}

// follow gives five feedbacks, one each 30 ms, and is done.
func follow(ctx context.Context, _ ros.GoalID, goal msg.Message, feedback func(msg.Message)) (msg.Message, ros.GoalStatus) {
	t := goal.(*control_msgs.FollowJointTrajectory_Goal).Trajectory
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for i := 1; i <= 6; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &control_msgs.FollowJointTrajectory_Result{ErrorString: "cancelled"}, ros.GoalCanceled
		}
		if i <= 5 {
			f := &control_msgs.FollowJointTrajectory_Feedback{JointNames: t.JointNames}
			f.Actual.Positions = []float64{float64(i)}
			feedback(f)
		}
	}
	return &control_msgs.FollowJointTrajectory_Result{ErrorString: "done"}, ros.GoalSucceeded
}
