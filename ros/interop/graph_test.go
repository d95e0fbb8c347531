package interop

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg/std_msgs"
)

// TestGraph is read by graphs of both forms. A message of the wrong form would make a Humble node on Cyclone throw; the peers
// report whatever they cannot read to the last byte as a fault, which fails the test.
func TestGraph(t *testing.T) {
	for _, v := range Vendors {
		for _, gid := range []int{24, 16} {
			t.Run(fmt.Sprintf("%s/%d", v, gid), func(t *testing.T) {
				ctx := budget(t, 20*time.Second)
				d := domain(t)
				n := node(t, d)
				p := peer(t, Setup{Vendor: v, Mode: "graph", Domain: d, Args: []string{fmt.Sprintf("gid=%d", gid), "node=their_node"}})
				pub, err := ros.Advertise[std_msgs.String](n, "/ours", ros.Default())
				must(t, err)
				defer func() { check(t, pub.Close()) }()
				sub, err := ros.Subscribe(n, "/peer_chatter", ros.Default(), func(*std_msgs.String, ros.Info) {})
				must(t, err)
				defer func() { check(t, sub.Close()) }()

				ours := func(n GraphNode) bool {
					return "/"+n.Name == nodeName && n.NS == "/" && n.Writers >= 1 && n.Readers >= 1
				}
				e, err := p.Await(ctx, func(e Event) bool { return e.Ev == "graph" && slices.ContainsFunc(e.Nodes, ours) })
				must(t, err)
				t.Logf("the peer reads %+v", e.Nodes)
				theirs(ctx, t, n)
			})
		}
	}
}

// theirs waits until our graph has the peer's node on its topic.
func theirs(ctx context.Context, t *testing.T, n ros.Node) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		g, err := n.Graph(ctx)
		must(t, err)
		i := slices.IndexFunc(g.Topics, func(i ros.TopicInfo) bool { return i.Name == "/peer_chatter" })
		if slices.Contains(g.Nodes, "/their_node") && i >= 0 && len(g.Topics[i].Publishers) == 1 && g.Topics[i].Publishers[0].Node == "/their_node" {
			if got := g.Topics[i].Type; got != "std_msgs/msg/String" {
				t.Errorf("/peer_chatter has type %q", got)
			}
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("our graph has not the peer's node on its topic: %+v", g)
		}
	}
}

// TestGraphBeforeKnown has nobody to learn the form from: nothing is published, because the wrong form would do harm.
func TestGraphBeforeKnown(t *testing.T) {
	for _, v := range Vendors {
		t.Run(string(v), func(t *testing.T) {
			ctx := budget(t, 20*time.Second)
			d := domain(t)
			node(t, d)
			// A peer that reads the graph in one form but says nothing that the form could be learnt from.
			p := peer(t, Setup{Vendor: v, Mode: "graph", Domain: d, Args: []string{"gid=24", "silent=1"}})
			_, err := p.Await(ctx, func(e Event) bool { return e.Ev == "matched" && e.Topic == "ros_discovery_info" })
			must(t, err)
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
			}
			if got := p.Events("graph"); len(got) > 0 {
				t.Errorf("the graph was published before its form was known: %+v", got)
			}
		})
	}
}
