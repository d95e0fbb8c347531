package server

import (
	"context"
	"encoding/json"
	"time"

	"viad/ros"
)

// cancelFor bounds a cancel that nobody waits for.
const cancelFor = 5 * time.Second

type apiAsk struct {
	Topic   string `json:"topic"`
	Service string `json:"service"`
	Action  string `json:"action"`
	Node    string `json:"node"`
}

type (
	apiTopics struct {
		Topics []string `json:"topics"`
		Types  []string `json:"types"`
	}
	apiNodes struct {
		Nodes []string `json:"nodes"`
	}
	apiServices struct {
		Services []string `json:"services"`
	}
	apiActions struct {
		Servers []string `json:"action_servers"`
	}
	apiType struct {
		Type string `json:"type"`
	}
	apiPublishers struct {
		Publishers []string `json:"publishers"`
	}
	apiSubscribers struct {
		Subscribers []string `json:"subscribers"`
	}
	apiDetails struct {
		Subscribing []string `json:"subscribing"`
		Publishing  []string `json:"publishing"`
		Services    []string `json:"services"`
	}
	apiVersion struct {
		Version int    `json:"version"`
		Distro  string `json:"distro"`
	}
)

// rosapi is the node beside rosbridge_suite that tells of the graph.
func (s *Server) rosapi(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	var ask apiAsk
	if len(args) > 0 && args[0] == '{' {
		if err := json.Unmarshal(args, &ask); err != nil {
			return nil, err
		}
	}
	g, err := s.o.Node.Graph(ctx)
	if err != nil {
		return nil, err
	}
	a, err := s.tell(name, &ask, &g)
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

func (s *Server) tell(name string, ask *apiAsk, g *ros.Graph) (any, error) {
	switch name {
	case "topics":
		a := apiTopics{}
		for _, t := range g.Topics {
			a.Topics, a.Types = append(a.Topics, t.Name), append(a.Types, t.Type)
		}
		return a, nil
	case "nodes":
		return apiNodes{g.Nodes}, nil
	case "services":
		return apiServices{names(g.Services)}, nil
	case "action_servers":
		return apiActions{names(g.Actions)}, nil
	case "service_type":
		return apiType{typeOf(g.Services, ask.Service)}, nil
	case "action_type":
		return apiType{typeOf(g.Actions, ask.Action)}, nil
	case "publishers":
		p, _ := ends(g, ask.Topic)
		return apiPublishers{p}, nil
	case "subscribers":
		_, p := ends(g, ask.Topic)
		return apiSubscribers{p}, nil
	case "node_details":
		return details(g, ask.Node), nil
	case "get_ros_version":
		return apiVersion{2, s.o.Distro.String()}, nil
	default:
		return nil, suiteError("Service /rosapi/" + name + " does not exist")
	}
}

func names(of []ros.NameType) []string {
	out := make([]string, 0, len(of)) // never null
	for _, x := range of {
		out = append(out, x.Name)
	}
	return out
}

func typeOf(of []ros.NameType, name string) string {
	for _, x := range of {
		if x.Name == name {
			return x.Type
		}
	}
	return ""
}

func ends(g *ros.Graph, topic string) (publishers, subscribers []string) {
	publishers, subscribers = []string{}, []string{}
	for _, t := range g.Topics {
		if t.Name != topic {
			continue
		}
		for _, e := range t.Publishers {
			publishers = append(publishers, e.Node)
		}
		for _, e := range t.Subscribers {
			subscribers = append(subscribers, e.Node)
		}
	}
	return publishers, subscribers
}

func details(g *ros.Graph, node string) apiDetails {
	d := apiDetails{Subscribing: []string{}, Publishing: []string{}, Services: []string{}}
	for _, t := range g.Topics {
		for _, e := range t.Publishers {
			if e.Node == node {
				d.Publishing = append(d.Publishing, t.Name)
			}
		}
		for _, e := range t.Subscribers {
			if e.Node == node {
				d.Subscribing = append(d.Subscribing, t.Name)
			}
		}
	}
	return d
}
