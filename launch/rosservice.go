package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"

	"viad/ros"
	"viad/ros/msg"
	rostext "viad/ros/msg/text"
)

type (
	rosNodeList    struct{ rosFlags }
	rosServiceList struct {
		rosFlags
		All bool `short:"a" help:"Hidden ones too, such as those of actions."`
	}
	rosServiceCall struct {
		Service string `arg:"" help:"For example /runstop."`
		Request string `arg:"" optional:"" default:"{}" help:"The request in YAML or JSON: '{data: true}'."`
		rosFlags
		Type string `help:"Its type; otherwise the graph says it." placeholder:"TYPE"`
	}
	rosActionList struct{ rosFlags }
	rosParamList  struct {
		Node string `arg:"" help:"The node's full name, for example /arm."`
		rosFlags
	}
	rosParamGet struct {
		Node string `arg:"" help:"The node's full name."`
		Name string `arg:"" help:"The parameter."`
		rosFlags
	}
	rosParamSet struct {
		Node  string `arg:"" help:"The node's full name."`
		Name  string `arg:"" help:"The parameter."`
		Value string `arg:"" help:"true, 3, 0.5, text, [1, 2, 3]; 1.0 is a double, 1 an integer."`
		rosFlags
	}
)

type nameJSON struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
}

func (f *rosFlags) printNames(s streams, g ros.Graph, what string, list []ros.NameType) error {
	if f.JSON {
		out := make([]nameJSON, len(list))
		for i, n := range list {
			out[i] = nameJSON{n.Name, n.Type}
		}
		return errors.Join(printJSON(s.out, out), f.alone(g))
	}
	if err := f.alone(g); err != nil {
		return err
	}
	rows := [][]string{{what, "TYPE"}}
	for _, n := range list {
		rows = append(rows, []string{n.Name, n.Type})
	}
	return table(s.out, rows)
}

// Run lists nodes.
func (c *rosNodeList) Run(ctx context.Context, s streams) error {
	return c.with(ctx, &s, func(ctx context.Context, n ros.Node) error {
		g, err := c.look(ctx, n, nil)
		if err != nil {
			return err
		}
		if c.JSON {
			return errors.Join(printJSON(s.out, append([]string{}, g.Nodes...)), c.alone(g))
		}
		if err := c.alone(g); err != nil {
			return err
		}
		return lines(s.out, g.Nodes)
	})
}

// Run lists services.
func (c *rosServiceList) Run(ctx context.Context, s streams) error {
	return c.with(ctx, &s, func(ctx context.Context, n ros.Node) error {
		g, err := c.look(ctx, n, nil)
		if err != nil {
			return err
		}
		return c.printNames(s, g, "SERVICE", slices.DeleteFunc(g.Services, func(t ros.NameType) bool { return !c.All && hidden(t.Name) }))
	})
}

// Run lists actions.
func (c *rosActionList) Run(ctx context.Context, s streams) error {
	return c.with(ctx, &s, func(ctx context.Context, n ros.Node) error {
		g, err := c.look(ctx, n, nil)
		if err != nil {
			return err
		}
		return c.printNames(s, g, "ACTION", g.Actions)
	})
}

// typeOf waits for a service and says its type.
func (f *rosFlags) typeOf(ctx context.Context, n ros.Node, name string) (string, error) {
	var typ string
	g, err := f.look(ctx, n, func(g ros.Graph) bool {
		for _, s := range g.Services {
			if s.Name == name {
				typ = s.Type
			}
		}
		return typ != ""
	})
	if err != nil || typ != "" {
		return typ, err
	}
	if err := f.alone(g); err != nil {
		return "", err
	}
	names := make([]string, len(g.Services))
	for i, s := range g.Services {
		names[i] = s.Name
	}
	return "", fmt.Errorf("nobody serves %s among %d services%s: viad ros service list shows them", name, len(names), nearest(name, names))
}

// Run calls a service.
func (c *rosServiceCall) Run(ctx context.Context, s streams) error {
	request, err := yaml.YAMLToJSON([]byte(c.Request))
	if err != nil {
		return usageError{fmt.Errorf("the request is neither YAML nor JSON: %w", err)}
	}
	return c.with(ctx, &s, func(ctx context.Context, n ros.Node) error {
		typ := c.Type
		if typ == "" {
			if typ, err = c.typeOf(ctx, n, c.Service); err != nil {
				return err
			}
		}
		q, err := newMessage(typ + "_Request")
		if err != nil {
			return err
		}
		a, err := newMessage(typ + "_Response")
		if err != nil {
			return err
		}
		if err := rostext.ParseJSON(request, q); err != nil {
			return usageError{fmt.Errorf("the request is no %s: %w", typ, err)}
		}
		client, err := n.Client(ros.Service{Name: c.Service, Request: func() msg.Message { return q }, Response: func() msg.Message { return a }})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, c.Wait)
		defer cancel()
		if err := client.Call(ctx, q, a); err != nil {
			if errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*ros.Absent)) {
				return fmt.Errorf("%w; --wait gives it longer than %v", err, c.Wait)
			}
			return err
		}
		if c.JSON {
			b, err := rostext.AppendJSON(nil, a)
			if err != nil {
				return err
			}
			_, err = s.out.Write(append(b, '\n'))
			return err
		}
		return rostext.YAML(s.out, a, rostext.Options{})
	})
}

// params opens a client of a node's parameters.
func (f *rosFlags) params(ctx context.Context, s *streams, node string, do func(context.Context, *ros.ParamClient) error) error {
	return f.with(ctx, s, func(ctx context.Context, n ros.Node) error {
		if _, err := f.typeOf(ctx, n, node+"/get_parameters"); err != nil {
			return fmt.Errorf("%s does not show its parameters: %w", node, err)
		}
		c, err := ros.NewParamClient(n, node)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, f.Wait)
		defer cancel()
		return errors.Join(do(ctx, c), c.Close())
	})
}

type paramJSON struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

func (f *rosFlags) printParams(s streams, params []ros.Param) error {
	if f.JSON {
		out := make([]paramJSON, len(params))
		for i, p := range params {
			out[i] = paramJSON{p.Name, ros.ParamTypeName(p.Value.Type), p.String()}
		}
		return printJSON(s.out, out)
	}
	rows := [][]string{{"PARAMETER", "TYPE", "VALUE"}}
	for _, p := range params {
		rows = append(rows, []string{p.Name, ros.ParamTypeName(p.Value.Type), p.String()})
	}
	return table(s.out, rows)
}

// Run lists parameters with their values.
func (c *rosParamList) Run(ctx context.Context, s streams) error {
	return c.params(ctx, &s, c.Node, func(ctx context.Context, p *ros.ParamClient) error {
		names, err := p.List(ctx, "")
		if err != nil {
			return err
		}
		slices.Sort(names)
		values, err := p.Get(ctx, names...)
		switch {
		case err == nil || len(names) == 0:
			return c.printParams(s, values)
		case ctx.Err() != nil:
			return err
		}
		// Some are declared and not set: names are all there is to say.
		if !c.JSON {
			return lines(s.out, names)
		}
		out := make([]nameJSON, len(names))
		for i, n := range names {
			out[i] = nameJSON{Name: n}
		}
		return printJSON(s.out, out)
	})
}

// Run gets a parameter.
func (c *rosParamGet) Run(ctx context.Context, s streams) error {
	return c.params(ctx, &s, c.Node, func(ctx context.Context, p *ros.ParamClient) error {
		v, err := p.Get(ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return c.printParams(s, v)
		}
		_, err = fmt.Fprintln(s.out, v[0])
		return err
	})
}

// Run sets a parameter.
func (c *rosParamSet) Run(ctx context.Context, s streams) error {
	return c.params(ctx, &s, c.Node, func(ctx context.Context, p *ros.ParamClient) error {
		v := ros.ParseParam(c.Name, c.Value)
		if err := p.Set(ctx, v); err != nil {
			return err
		}
		if c.JSON {
			return c.printParams(s, []ros.Param{v})
		}
		_, err := fmt.Fprintf(s.out, "%s = %s\n", c.Name, v)
		return err
	})
}
