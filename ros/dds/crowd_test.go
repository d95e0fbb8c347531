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
	"viad/ros/msg/std_msgs"
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

// A publisher whose type has our name and another definition is matched, as DDS does; that it is another is told.
func TestAnotherDefinition(t *testing.T) {
	domain, ctx := free(t), deadline(t)
	p := stranger(t, domain)
	m := &std_msgs.String{}
	typ := "std_msgs::msg::dds_::String_"
	for topic, hash := range map[string]string{"/same": m.TypeHash(), "/other": "RIHS01_" + strings.Repeat("0", 64), "/humble": ""} {
		var data []byte
		if hash != "" {
			data = []byte("typehash=" + hash + ";")
		}
		if _, err := p.NewWriter(rtps.WriterConfig{Topic: "rt" + topic, Type: typ, QoS: reliable, UserData: data}); err != nil {
			t.Fatal(err)
		}
	}
	n := open(t, dds.Config{Node: "viad", Domain: domain})
	var subs []ros.Subscription
	for _, topic := range []string{"/same", "/other", "/humble"} {
		s, err := ros.Subscribe(n, topic, ros.Default(), func(*std_msgs.String, ros.Info) {})
		if err != nil {
			t.Fatal(err)
		}
		subs = append(subs, s)
	}
	told := func(matched int) (words []string) {
		t.Helper()
		for {
			have := 0
			for _, s := range subs {
				have += s.Publishers()
			}
			g, err := n.Graph(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if have == matched {
				for _, w := range g.Problems {
					if strings.Contains(w, "another definition") {
						words = append(words, w)
					}
				}
				return words
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("%d are matched", have)
			}
		}
	}
	if w := told(3); len(w) != 1 || !strings.HasPrefix(w[0], "/other: the publisher ") || !strings.Contains(w[0], "std_msgs/msg/String") {
		t.Errorf("the problems are %q", w)
	}
	if err := subs[1].Close(); err != nil {
		t.Fatal(err)
	}
	if w := told(2); len(w) != 0 {
		t.Errorf("nobody reads it any more, and the problems are %q", w)
	}
}
