package dds_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/ros/msg/control_msgs"
	"viad/ros/rtps"
)

func free(t *testing.T) int {
	t.Helper()
	d, release, err := interop.Domain()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return d
}

// A graph with millions of pairs that do not suit each other is told of all the same, in bounded time and words.
func TestQuarrelsOfACrowd(t *testing.T) {
	domain, ctx := free(t), deadline(t)
	n := open(t, dds.Config{Node: "viad", Domain: domain})
	p := stranger(t, domain)
	const crowd = 1800
	for range crowd {
		w, err := p.NewWriter(rtps.WriterConfig{Topic: "rt/market", Type: replyType})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		r, err := p.NewReader(rtps.ReaderConfig{Topic: "rt/market", Type: requestType, QoS: reliable}, func(*rtps.Sample) {})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
	}
	for {
		start := time.Now()
		g, err := n.Graph(ctx)
		if err != nil {
			t.Fatal(err)
		}
		took, seen := time.Since(start), 0
		for _, x := range g.Topics {
			seen += len(x.Publishers) + len(x.Subscribers)
		}
		if took > time.Second {
			t.Fatalf("the graph of %d endpoints took %v", seen, took)
		}
		if seen == 2*crowd {
			if len(g.Problems) < 100 || len(g.Problems) > 250 {
				t.Errorf("%d problems", len(g.Problems))
			}
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%d endpoints are seen", seen)
		}
	}
}

// Who is left out for lack of room is no secret.
func TestTooManyAreTold(t *testing.T) {
	domain, ctx := free(t), deadline(t)
	n := open(t, dds.Config{Node: "viad", Domain: domain, Limits: rtps.Limits{Peers: 1}})
	stranger(t, domain)
	stranger(t, domain)
	for {
		g, err := n.Graph(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Peers) == 1 && strings.Contains(strings.Join(g.Problems, "\n"), "were not taken in") {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%d peers, and %q", len(g.Peers), g.Problems)
		}
	}
}

// A server that answers for the result while the goal is under way has not ended it.
func TestResultThatIsNoEnd(t *testing.T) {
	domain, ctx := free(t), deadline(t)
	p, err := rtps.Open(rtps.Config{Domain: domain, Localhost: true, UserData: []byte("enclave=/;wire=viad;")})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	kind := "control_msgs::action::dds_::FollowJointTrajectory_"
	serve := func(name, typ string, answer []byte) {
		w, err := p.NewWriter(rtps.WriterConfig{Topic: "rr/lie/_action/" + name + "Reply", Type: typ + "_Response_", QoS: reliable})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.NewReader(rtps.ReaderConfig{Topic: "rq/lie/_action/" + name + "Request", Type: typ + "_Request_", QoS: reliable}, func(s *rtps.Sample) {
			if err := w.WaitSynced(ctx, 1); err != nil {
				t.Error(err)
			}
			if _, err := w.Write(context.WithoutCancel(ctx), answer, &rtps.SampleIdentity{Writer: s.Related.Writer, Seq: s.Seq}); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.NewWriter(rtps.WriterConfig{Topic: "rt/lie/_action/feedback", Type: kind + "FeedbackMessage_", QoS: reliable}); err != nil {
		t.Fatal(err)
	}
	serve("cancel_goal", "action_msgs::srv::dds_::CancelGoal", nil)
	serve("send_goal", kind+"SendGoal", []byte{0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	const executing = 2
	serve("get_result", kind+"GetResult", []byte{0, 1, 0, 0, executing, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})

	n := open(t, dds.Config{Node: "viad", Domain: domain, Distro: cdr.Humble})
	c, err := n.ActionClient(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback]("/lie"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := c.Send(ctx, &control_msgs.FollowJointTrajectory_Goal{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	status, err := g.Result(ctx, &control_msgs.FollowJointTrajectory_Result{})
	if err == nil || !strings.Contains(err.Error(), "is no end") || status >= ros.GoalSucceeded {
		t.Errorf("status %v, %v", status, err)
	}
}
