package rosbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/cdr"
)

// What rosapi is asked, and what it answers. It is a node of its own beside the rosbridge server, and may be missing.
type (
	askNothing struct{}
	askName    struct {
		Topic   string `json:"topic,omitempty"`
		Service string `json:"service,omitempty"`
		Action  string `json:"action,omitempty"`
		Node    string `json:"node,omitempty"`
	}
	saysTopics struct {
		Topics []string `json:"topics"`
		Types  []string `json:"types"`
	}
	saysList struct {
		Nodes       []string `json:"nodes"`
		Services    []string `json:"services"`
		Actions     []string `json:"action_servers"`
		Publishers  []string `json:"publishers"`
		Subscribers []string `json:"subscribers"`
	}
	saysType struct {
		Type string `json:"type"`
	}
	saysNode struct {
		Subscribing []string `json:"subscribing"`
		Publishing  []string `json:"publishing"`
	}
	saysVersion struct {
		Version int    `json:"version"`
		Distro  string `json:"distro"`
	}
)

// errNoRosapi says that rosapi does not answer this: the node is not there, or too old.
var errNoRosapi = errors.New("the robot has no rosapi that says so: start rosapi_node beside the rosbridge server")

// rosapi asks one thing.
func rosapi[A any](ctx context.Context, n *Node, service string, ask any) (A, error) {
	var answer A
	args, err := json.Marshal(ask)
	if err != nil {
		return answer, fmt.Errorf("rosbridge: %w", err)
	}
	f, err := n.call(ctx, n.data, "/rosapi/"+service, args)
	if errors.Is(err, context.DeadlineExceeded) {
		return answer, fmt.Errorf("rosbridge: the robot did not answer rosapi/%s in time: its rosbridge server or rosapi_node hangs, or the link is slow: look on the robot with ros2 node list, or give it longer: %w", service, err)
	}
	if err != nil {
		return answer, err
	}
	if f.hasResult && !f.result {
		var absent *ros.Absent
		if err := failed("/rosapi/"+service, f.words); !errors.As(err, &absent) {
			return answer, err
		}
		return answer, errNoRosapi
	}
	if err := json.Unmarshal(f.msg.raw, &answer); err != nil {
		return answer, fmt.Errorf("rosbridge: rosapi/%s answered what it should not: %w", service, err)
	}
	return answer, nil
}

func (n *Node) publishers(ctx context.Context, topic string) ([]string, error) {
	a, err := rosapi[saysList](ctx, n, "publishers", askName{Topic: topic})
	return a.Publishers, err
}

func (n *Node) subscribers(ctx context.Context, topic string) ([]string, error) {
	a, err := rosapi[saysList](ctx, n, "subscribers", askName{Topic: topic})
	return a.Subscribers, err
}

func (n *Node) serviceType(ctx context.Context, service string) (string, error) {
	a, err := rosapi[saysType](ctx, n, "service_type", askName{Service: service})
	return a.Type, err
}

func (n *Node) actionServers(ctx context.Context) ([]string, error) {
	a, err := rosapi[saysList](ctx, n, "action_servers", askNothing{})
	return a.Actions, err
}

// learnDistro asks which distribution the robot runs, because cbor-raw carries layouts that differ.
func (n *Node) learnDistro(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	a, err := rosapi[saysVersion](ctx, n, "get_ros_version", askNothing{})
	if err != nil {
		n.storm.warn("the robot's distribution is not known; set it", "why", err)
		return
	}
	if d, ok := cdr.ParseDistro(a.Distro); ok {
		n.learnt.Store(uint32(d))
	}
}

// poll asks again and again until it is so; lacking is the error when ctx ends first. Without rosapi nothing can be
// known, and it returns: what follows will say.
func (n *Node) poll(ctx context.Context, ask func(context.Context) (bool, error), lacking error) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		ok, err := ask(ctx)
		var gone *ros.Gone
		switch {
		case ok || errors.Is(err, errNoRosapi):
			return nil
		case err != nil && !errors.As(err, &gone):
			if ctx.Err() != nil {
				return fmt.Errorf("%w; or the robot does not say: %w", lacking, err)
			}
			return err
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("%w: %w", lacking, ctx.Err())
		}
	}
}

// untilGone returns true when what was there is not listed any more, twice in a row; false when ctx ends or the robot
// does not say.
func (n *Node) untilGone(ctx context.Context, listed func(context.Context) (bool, error)) bool {
	for missing := 0; sleep(ctx, n.cfg.Watch); {
		there, err := listed(ctx)
		switch {
		case errors.Is(err, errNoRosapi):
			return false
		case err != nil: // no answer is no evidence
		case there:
			missing = 0
		default:
			if missing++; missing == 2 {
				return true
			}
		}
	}
	return false
}

const (
	maxAsked   = 256 // nodes and services whose details one Graph asks for
	askingAtOf = 8   // at one time
)

// Graph is what rosapi says. Without rosapi it is empty, and Problems says why.
func (n *Node) Graph(ctx context.Context) (ros.Graph, error) {
	var g ros.Graph
	topics, err := rosapi[saysTopics](ctx, n, "topics", askNothing{})
	if errors.Is(err, errNoRosapi) {
		g.Problems = append(n.problems(), errNoRosapi.Error())
		return g, nil
	}
	if err != nil {
		return g, err
	}
	nodes, err := rosapi[saysList](ctx, n, "nodes", askNothing{})
	if err != nil {
		return g, err
	}
	services, err := rosapi[saysList](ctx, n, "services", askNothing{})
	if err != nil {
		return g, err
	}
	g.Nodes = nodes.Nodes
	slices.Sort(g.Nodes)
	g.Topics = topicList(topics)
	g.Problems = n.problems()
	if err := n.actionList(ctx, &g); err != nil {
		return g, err
	}
	if err := n.ends(ctx, &g); err != nil {
		return g, err
	}
	return g, n.serviceList(ctx, &g, services.Services)
}

func hidden(name string) bool { return strings.Contains(name, "/_") }

func topicList(a saysTopics) []ros.TopicInfo {
	var out []ros.TopicInfo
	for i, name := range a.Topics {
		if !hidden(name) && i < len(a.Types) {
			out = append(out, ros.TopicInfo{NameType: ros.NameType{Name: name, Type: a.Types[i]}})
		}
	}
	slices.SortFunc(out, func(a, b ros.TopicInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (n *Node) actionList(ctx context.Context, g *ros.Graph) error {
	names, err := n.actionServers(ctx)
	if errors.Is(err, errNoRosapi) {
		g.Problems = append(g.Problems, "this rosapi does not list action servers")
		return nil
	}
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		a, err := rosapi[saysType](ctx, n, "action_type", askName{Action: name})
		if err != nil && !errors.Is(err, errNoRosapi) {
			return err
		}
		g.Actions = append(g.Actions, ros.NameType{Name: name, Type: a.Type})
	}
	return nil
}

// ends asks each node what it publishes and subscribes to.
func (n *Node) ends(ctx context.Context, g *ros.Graph) error {
	at := map[string]int{}
	for i, t := range g.Topics {
		at[t.Name] = i
	}
	var mu sync.Mutex
	return each(g, g.Nodes, "nodes", func(node string) error {
		a, err := rosapi[saysNode](ctx, n, "node_details", askName{Node: node})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, t := range a.Publishing {
			if i, ok := at[t]; ok {
				g.Topics[i].Publishers = append(g.Topics[i].Publishers, ros.EndpointInfo{Node: node})
			}
		}
		for _, t := range a.Subscribing {
			if i, ok := at[t]; ok {
				g.Topics[i].Subscribers = append(g.Topics[i].Subscribers, ros.EndpointInfo{Node: node})
			}
		}
		return nil
	})
}

func (n *Node) serviceList(ctx context.Context, g *ros.Graph, names []string) error {
	names = slices.DeleteFunc(names, hidden)
	slices.Sort(names)
	var mu sync.Mutex
	types := map[string]string{}
	err := each(g, names, "services", func(name string) error {
		typ, err := n.serviceType(ctx, name)
		mu.Lock()
		types[name] = typ
		mu.Unlock()
		return err
	})
	for _, name := range names {
		g.Services = append(g.Services, ros.NameType{Name: name, Type: types[name]})
	}
	return err
}

// each calls f with the first of the names, a few at one time.
func each(g *ros.Graph, names []string, what string, f func(string) error) error {
	if len(names) > maxAsked {
		g.Problems = append(g.Problems, fmt.Sprintf("only the first %d of %d %s were asked for details", maxAsked, len(names), what))
		names = names[:maxAsked]
	}
	var wg sync.WaitGroup
	errs := make([]error, len(names))
	turn := make(chan struct{}, askingAtOf)
	for i, name := range names {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			errs[i] = f(name)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, errNoRosapi) {
			return err
		}
	}
	return nil
}

// problems are what this side has seen go wrong.
func (n *Node) problems() []string {
	var out []string
	if strays := n.strays.Load(); strays > 0 {
		out = append(out, fmt.Sprintf("%d frames came that belong to nothing this node asked", strays))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	out = append(out, n.said...)
	for _, fd := range n.feeds {
		var bad uint64
		for _, s := range fd.subs {
			bad += s.malformed.Load()
		}
		if bad > 0 {
			out = append(out, fmt.Sprintf("%d messages of %s were malformed (%s)", bad, fd.topic, fd.enc))
		}
		if !fd.got {
			out = append(out, fmt.Sprintf("nothing has come on %s since it was subscribed", fd.topic))
		}
	}
	slices.Sort(out)
	return out
}
