package dds

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/rtps"
)

// What is looked at and said of a graph at most: a stranger can announce thousands of endpoints.
const (
	mostProblems = 200     // sentences
	mostPairs    = 1 << 20 // of others' endpoints on one topic
)

// Graph is what is known now. Topics and services that tools hide, such as those of actions, are among them.
func (n *Node) Graph(ctx context.Context) (ros.Graph, error) {
	if err := ctx.Err(); err != nil {
		return ros.Graph{}, err
	}
	if err := n.open(); err != nil {
		return ros.Graph{}, err
	}
	g := n.d.graph
	peers := n.d.p.Peers()
	all := n.d.p.Endpoints()

	g.mu.RLock()
	owner := map[rtps.GUID]string{}
	var nodes []string
	list := func(e []nodeEntities) (names []string) {
		for _, o := range e {
			names = append(names, o.full())
			for _, id := range append(slices.Clone(o.readers), o.writers...) {
				owner[id] = o.full()
			}
		}
		return names
	}
	nodes = append(nodes, list(g.ours)...)
	out := ros.Graph{}
	for _, p := range peers {
		i := ros.PeerInfo{GUID: p.Prefix.String(), Vendor: vendorName(p), Seen: p.Seen, Nodes: list(g.theirs[p.Prefix].nodes)}
		if d := g.peers[p.Prefix]; d != cdr.DistroUnknown {
			i.Distro = distroName(d, false)
		}
		for _, a := range p.Addrs {
			i.Addrs = append(i.Addrs, a.String())
		}
		nodes = append(nodes, i.Nodes...)
		out.Peers = append(out.Peers, i)
	}
	out.Problems = g.differences(all, owner)
	for _, e := range g.mine {
		all = append(all, e)
	}
	if g.clash != "" {
		out.Problems = append(out.Problems, g.clash)
	}
	if g.gidLen == 0 && len(peers) > 0 {
		out.Problems = append(out.Problems, "no peer has shown which distribution of ROS 2 it is, so that our own nodes are not shown to others; name the distribution (viad ros --distro, robot.ros.distro in a launch file)")
	}
	g.mu.RUnlock()

	slices.Sort(nodes)
	for i, name := range nodes {
		if i > 0 && nodes[i-1] == name && (i < 2 || nodes[i-2] != name) {
			out.Problems = append(out.Problems, fmt.Sprintf("there are several nodes named %s: tools and parameters cannot tell them apart; give each a name of its own", name))
		}
	}
	out.Nodes = slices.Compact(nodes)
	fill(&out, all, owner)
	slices.SortFunc(out.Peers, func(a, b ros.PeerInfo) int { return strings.Compare(a.GUID, b.GUID) })
	if refused := n.d.p.Stats().Refused; refused > 0 {
		out.Problems = append(out.Problems, fmt.Sprintf("%d announcements were not taken in: the domain has more participants, or one of them more endpoints, than are looked after here, and some are left out of everything that is shown; spread the nodes over several domains", refused))
	}
	for _, m := range n.d.p.Mismatches() {
		out.Problems = append(out.Problems, m.Why)
	}
	out.Problems = append(out.Problems, quarrels(all, owner, n.d.p.GUID().Prefix())...)
	slices.Sort(out.Problems)
	out.Problems = slices.Compact(out.Problems)
	if len(out.Problems) > mostProblems {
		out.Problems = append(out.Problems[:mostProblems], fmt.Sprintf("and %d more", len(out.Problems)-mostProblems))
	}
	return out, nil
}

func vendorName(p rtps.Peer) string {
	if p.Vendor == (rtps.VendorID{}) && userData(p.UserData, "wire") == "viad" {
		return "viad"
	}
	return p.Vendor.String()
}

// fill sorts the endpoints into topics, services and actions.
func fill(out *ros.Graph, all []rtps.Endpoint, owner map[rtps.GUID]string) {
	topics := map[ros.NameType]*ros.TopicInfo{}
	served := map[ros.NameType]int{} // how many servers
	acted := map[ros.NameType]struct{}{}
	for _, e := range all {
		if name, ok := strings.CutPrefix(e.Topic, topicPrefix+"/"); ok {
			k := ros.NameType{Name: "/" + name, Type: rosType(e.Type)}
			t := topics[k]
			if t == nil {
				t = &ros.TopicInfo{NameType: k}
				topics[k] = t
			}
			i := ros.EndpointInfo{Node: owner[e.GUID], GUID: hexGUID(e.GUID), QoS: fromWire(e.QoS)}
			if e.Writer {
				t.Publishers = append(t.Publishers, i)
			} else {
				t.Subscribers = append(t.Subscribers, i)
			}
			continue
		}
		name, ok := half(e.Topic, requestPrefix, "Request")
		if !ok || e.Writer {
			continue // the reader of requests is the server
		}
		typ := strings.TrimSuffix(rosType(e.Type), "_Request")
		served[ros.NameType{Name: name, Type: typ}]++
		if action, ok := strings.CutSuffix(name, "/_action/send_goal"); ok {
			acted[ros.NameType{Name: action, Type: strings.TrimSuffix(typ, "_SendGoal")}] = struct{}{}
		}
	}
	byName := func(a, b ros.NameType) int { return strings.Compare(a.Name+" "+a.Type, b.Name+" "+b.Type) }
	for _, k := range slices.SortedFunc(maps.Keys(topics), byName) {
		t := topics[k]
		for _, l := range [][]ros.EndpointInfo{t.Publishers, t.Subscribers} {
			slices.SortFunc(l, func(a, b ros.EndpointInfo) int { return strings.Compare(a.Node+a.GUID, b.Node+b.GUID) })
		}
		out.Topics = append(out.Topics, *t)
	}
	out.Services = slices.SortedFunc(maps.Keys(served), byName)
	out.Actions = slices.SortedFunc(maps.Keys(acted), byName)
	for k, count := range served {
		if count > 1 && !strings.Contains(k.Name, "/_action/") {
			out.Problems = append(out.Problems, fmt.Sprintf("%d servers offer the service %s: each gets every request, and the first answer counts", count, k.Name))
		}
	}
}

// quarrels are the pairs of others' endpoints that never talk; those with ours the participant reports itself.
func quarrels(all []rtps.Endpoint, owner map[rtps.GUID]string, ours rtps.GUIDPrefix) (out []string) {
	type sides struct{ writers, readers []rtps.Endpoint }
	byTopic := map[string]*sides{}
	for _, e := range all {
		if e.GUID.Prefix() == ours {
			continue
		}
		t := byTopic[e.Topic]
		if t == nil {
			t = new(sides)
			byTopic[e.Topic] = t
		}
		if e.Writer {
			t.writers = append(t.writers, e)
		} else {
			t.readers = append(t.readers, e)
		}
	}
	who := func(e rtps.Endpoint, what string) string {
		if n := owner[e.GUID]; n != "" {
			return what + " of " + n
		}
		return what + " " + hexGUID(e.GUID)
	}
	pairs := 0
	for _, topic := range slices.Sorted(maps.Keys(byTopic)) {
		name, _ := strings.CutPrefix(topic, topicPrefix)
		for _, w := range byTopic[topic].writers {
			for _, r := range byTopic[topic].readers {
				if pairs++; pairs > mostPairs || len(out) >= mostProblems {
					return out
				}
				if why := quarrel(w, r); why != "" {
					out = append(out, fmt.Sprintf("%s: the %s and the %s do not talk: %s", name, who(w, "publisher"), who(r, "subscriber"), why))
				}
			}
		}
	}
	return out
}

// quarrel says why a writer and a reader do not suit each other.
func quarrel(w, r rtps.Endpoint) string {
	switch {
	case w.Type != r.Type:
		return fmt.Sprintf("one has the type %s, the other %s", rosType(w.Type), rosType(r.Type))
	case r.QoS.Reliable && !w.QoS.Reliable:
		return "it publishes best effort, reliable is asked for; subscribe best effort (sensor data)"
	case r.QoS.TransientLocal && !w.QoS.TransientLocal:
		return "it publishes volatile, transient local is asked for; subscribe volatile"
	case r.QoS.Deadline > 0 && (w.QoS.Deadline == 0 || w.QoS.Deadline > r.QoS.Deadline):
		return fmt.Sprintf("a deadline of %v is asked for and not promised", r.QoS.Deadline)
	}
	return ""
}
