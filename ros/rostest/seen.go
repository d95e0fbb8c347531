package rostest

import (
	"context"
	"slices"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg/std_msgs"
)

func graph(t *testing.T, w Wire) {
	ctx, here, there := w.bench(t, "graph")
	must[ros.Publisher[*std_msgs.String]](t)(ros.Advertise[std_msgs.String](there, "/rostest/seen", ros.Default()))
	must[ros.Closer](t)(there.Serve(setBool("/rostest/served"), answering(func(context.Context, bool) (string, error) { return "", nil })))
	wantAction := !slices.Contains(w.Cannot, Actions)
	if wantAction {
		must[ros.Closer](t)(there.ServeAction(follow("/rostest/done"), follower(make(chan ros.GoalID, 1))))
	}
	has := func(l []ros.NameType, name, typ string) bool {
		return slices.Contains(l, ros.NameType{Name: name, Type: typ})
	}
	for {
		g, err := here.Graph(ctx)
		if err != nil {
			t.Fatal(err)
		}
		topic := slices.ContainsFunc(g.Topics, func(i ros.TopicInfo) bool {
			return i.NameType == ros.NameType{Name: "/rostest/seen", Type: "std_msgs/msg/String"} && len(i.Publishers) == 1
		})
		served := has(g.Services, "/rostest/served", "std_srvs/srv/SetBool") && (!wantAction || has(g.Actions, "/rostest/done", "control_msgs/action/FollowJointTrajectory"))
		node := slices.Contains(g.Nodes, there.Name()) && slices.Contains(g.Nodes, here.Name())
		if (topic || slices.Contains(w.Cannot, GraphTopics)) && (served || slices.Contains(w.Cannot, GraphServed)) && (node || slices.Contains(w.Cannot, GraphNodes)) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the graph lacks something (topic %v, served %v, nodes %v): %+v", topic, served, node, g)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func links(t *testing.T, w Wire) {
	w.needs(t, LinkEvents)
	ctx, here, there := w.bench(t, "links")
	events := make(chan ros.Link, 64)
	stop := here.Links(func(l ros.Link) { events <- l })
	defer stop()
	for !take(ctx, t, events, "the link to come up").Up {
	}
	if w.Break != nil {
		w.Break(t)
	} else {
		shut(t, there)
	}
	for {
		if l := take(ctx, t, events, "the link to go down"); !l.Up {
			if l.Why == "" || l.At.IsZero() {
				t.Errorf("a link that is down says %+v: no reason or no time", l)
			}
			return
		}
	}
}

func closedNode(t *testing.T, w Wire) {
	ctx, here, _ := w.bench(t, "closed")
	pub := must[ros.Publisher[*std_msgs.String]](t)(ros.Advertise[std_msgs.String](here, "/rostest/closed", ros.Default()))
	shut(t, here)
	if err := here.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if err := pub.Send(ctx, &std_msgs.String{}); err == nil {
		t.Error("a closed node publishes")
	}
	if _, err := ros.Advertise[std_msgs.String](here, "/rostest/closed", ros.Default()); err == nil {
		t.Error("a closed node makes publishers")
	}
	if _, err := here.Client(setBool("/rostest/closed")); err == nil {
		t.Error("a closed node makes clients")
	}
}
