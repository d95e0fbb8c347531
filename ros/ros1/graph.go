package ros1

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/bluenviron/goroslib/v2/pkg/apimaster"

	"viad/ros"
)

// Graph implements ros.Node: what the master knows. It also knows nodes that died without a word.
func (n *Node) Graph(ctx context.Context) (ros.Graph, error) {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	state, err := n.master(ctx).GetSystemState()
	if err != nil {
		return ros.Graph{}, fmt.Errorf("the master at %s: %w", n.config.Master, err)
	}
	list, err := n.master(ctx).GetTopicTypes()
	if err != nil {
		return ros.Graph{}, fmt.Errorf("the master at %s: %w", n.config.Master, err)
	}
	kinds := make(map[string]string, len(list))
	for _, t := range list {
		kinds[t.Name] = t.Type
	}
	var g ros.Graph
	topics := make(map[string]*ros.TopicInfo)
	nodes := make(map[string]struct{})
	add := func(entries []apimaster.SystemStateEntry, to func(*ros.TopicInfo) *[]ros.EndpointInfo) {
		for _, e := range entries {
			t := topics[e.Name]
			if t == nil {
				t = &ros.TopicInfo{NameType: ros.NameType{Name: e.Name, Type: modern(kinds[e.Name], "msg")}}
				topics[e.Name] = t
			}
			for _, node := range e.Nodes {
				nodes[node] = struct{}{}
				*to(t) = append(*to(t), ros.EndpointInfo{Node: node, QoS: ros.Default()})
			}
		}
	}
	add(state.PublishedTopics, func(t *ros.TopicInfo) *[]ros.EndpointInfo { return &t.Publishers })
	add(state.SubscribedTopics, func(t *ros.TopicInfo) *[]ros.EndpointInfo { return &t.Subscribers })
	for _, t := range topics {
		g.Topics = append(g.Topics, *t)
		base, goal := strings.CutSuffix(t.Name, "/goal")
		kind, isAction := strings.CutSuffix(kinds[t.Name], "ActionGoal")
		if r := topics[base+"/result"]; goal && isAction && topics[base+"/status"] != nil && r != nil && len(r.Publishers) > 0 {
			g.Actions = append(g.Actions, ros.NameType{Name: base, Type: modern(kind, "action")})
		}
	}
	for _, e := range state.ProvidedServices {
		g.Services = append(g.Services, ros.NameType{Name: e.Name})
		for _, node := range e.Nodes {
			nodes[node] = struct{}{}
		}
	}
	n.serviceTypes(ctx, g.Services)
	for node := range nodes {
		g.Nodes = append(g.Nodes, node)
	}
	slices.Sort(g.Nodes)
	slices.SortFunc(g.Topics, func(a, b ros.TopicInfo) int { return strings.Compare(a.Name, b.Name) })
	byName := func(a, b ros.NameType) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(g.Services, byName)
	slices.SortFunc(g.Actions, byName)
	n.mu.Lock()
	feeds := values(n.feeds)
	n.mu.Unlock()
	for _, f := range feeds {
		g.Problems = append(g.Problems, f.troubles()...)
	}
	if k := n.links.state(); !k.Up {
		g.Problems = append(g.Problems, k.Why)
	}
	return g, nil
}

// serviceTypes asks each service for its type, eight at once: the master does not know it.
func (n *Node) serviceTypes(ctx context.Context, list []ros.NameType) {
	var all sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range list {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c := &caller{n: n, name: list[i].Name, sign: signature{md5: "*"}}
			if name, err := c.kind(ctx); err == nil {
				list[i].Type = modern(name, "srv")
			}
		})
	}
	all.Wait()
}
