package ros

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"viad/ros/msg"
	"viad/ros/msg/rcl_interfaces"
)

// Param is a parameter of a node.
type Param struct {
	Name  string
	Value rcl_interfaces.ParameterValue
}

// ParamClient reads and sets the parameters of one node.
type ParamClient struct {
	node                 string
	get, set, atomically Caller
	list, describe       Caller
	closers              []Caller
}

// NewParamClient makes a client of the parameters of a node, by the node's full name.
func NewParamClient(n Node, node string) (*ParamClient, error) {
	c := &ParamClient{node: node}
	for _, s := range []struct {
		to   *Caller
		what Service
	}{
		{&c.get, ServiceOf[rcl_interfaces.GetParameters_Request, rcl_interfaces.GetParameters_Response](node + "/get_parameters")},
		{&c.set, ServiceOf[rcl_interfaces.SetParameters_Request, rcl_interfaces.SetParameters_Response](node + "/set_parameters")},
		{&c.atomically, ServiceOf[rcl_interfaces.SetParametersAtomically_Request, rcl_interfaces.SetParametersAtomically_Response](node + "/set_parameters_atomically")},
		{&c.list, ServiceOf[rcl_interfaces.ListParameters_Request, rcl_interfaces.ListParameters_Response](node + "/list_parameters")},
		{&c.describe, ServiceOf[rcl_interfaces.DescribeParameters_Request, rcl_interfaces.DescribeParameters_Response](node + "/describe_parameters")},
	} {
		caller, err := n.Client(s.what)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		*s.to = caller
		c.closers = append(c.closers, caller)
	}
	return c, nil
}

// Close ends the client.
func (c *ParamClient) Close() error {
	errs := make([]error, 0, len(c.closers))
	for _, o := range c.closers {
		errs = append(errs, o.Close())
	}
	return errors.Join(errs...)
}

// Ready waits until the node's parameters can be reached.
func (c *ParamClient) Ready(ctx context.Context) error { return c.get.Ready(ctx) }

// Get reads parameters. One that the node does not have is an error, which names it where the node says which.
func (c *ParamClient) Get(ctx context.Context, names ...string) ([]Param, error) {
	var a rcl_interfaces.GetParameters_Response
	if err := c.get.Call(ctx, &rcl_interfaces.GetParameters_Request{Names: names}, &a); err != nil {
		return nil, err
	}
	if len(a.Values) != len(names) { // rclcpp answers with nothing when it lacks one of them
		return nil, fmt.Errorf("%s does not have (all of) the parameters %s: it answers with %d values; list them", c.node, strings.Join(names, ", "), len(a.Values))
	}
	out := make([]Param, len(names))
	for i, v := range a.Values {
		if v.Type == rcl_interfaces.ParameterType_PARAMETER_NOT_SET {
			return nil, fmt.Errorf("%s has no parameter %s, or it was never set; list them", c.node, names[i])
		}
		out[i] = Param{names[i], v}
	}
	return out, nil
}

// Set sets parameters one after the other; the error says which were refused and why. Others are set all the same.
func (c *ParamClient) Set(ctx context.Context, params ...Param) error {
	var a rcl_interfaces.SetParameters_Response
	if err := c.set.Call(ctx, &rcl_interfaces.SetParameters_Request{Parameters: toParameters(params)}, &a); err != nil {
		return err
	}
	if len(a.Results) != len(params) {
		return fmt.Errorf("%s answers %d results for %d parameters: which were set is not known, get them", c.node, len(a.Results), len(params))
	}
	var errs []error
	for i, r := range a.Results {
		if !r.Successful {
			errs = append(errs, fmt.Errorf("%s refuses %s = %s: %s", c.node, params[i].Name, params[i], r.Reason))
		}
	}
	return errors.Join(errs...)
}

// SetAtomically sets all of them or none.
func (c *ParamClient) SetAtomically(ctx context.Context, params ...Param) error {
	var a rcl_interfaces.SetParametersAtomically_Response
	if err := c.atomically.Call(ctx, &rcl_interfaces.SetParametersAtomically_Request{Parameters: toParameters(params)}, &a); err != nil {
		return err
	}
	if !a.Result.Successful {
		return fmt.Errorf("%s refuses the parameters: %s", c.node, a.Result.Reason)
	}
	return nil
}

func toParameters(params []Param) []rcl_interfaces.Parameter {
	out := make([]rcl_interfaces.Parameter, len(params))
	for i, p := range params {
		out[i] = rcl_interfaces.Parameter{Name: p.Name, Value: p.Value}
	}
	return out
}

// List is the names of all parameters below a prefix; "" is all.
func (c *ParamClient) List(ctx context.Context, prefix string) ([]string, error) {
	var q rcl_interfaces.ListParameters_Request
	if prefix != "" {
		q.Prefixes = []string{prefix}
	}
	var a rcl_interfaces.ListParameters_Response
	if err := c.list.Call(ctx, &q, &a); err != nil {
		return nil, err
	}
	return a.Result.Names, nil
}

// Describe says what parameters are and what they may be set to.
func (c *ParamClient) Describe(ctx context.Context, names ...string) ([]rcl_interfaces.ParameterDescriptor, error) {
	var a rcl_interfaces.DescribeParameters_Response
	if err := c.describe.Call(ctx, &rcl_interfaces.DescribeParameters_Request{Names: names}, &a); err != nil {
		return nil, err
	}
	if len(a.Descriptors) != len(names) {
		return nil, fmt.Errorf("%s does not have (all of) the parameters %s; list them", c.node, strings.Join(names, ", "))
	}
	return a.Descriptors, nil
}

// answer is a typed function as a service's.
func answer[Q any, PQ msg.Ptr[Q]](f func(PQ) (msg.Message, error)) func(context.Context, msg.Message) (msg.Message, error) {
	return func(_ context.Context, m msg.Message) (msg.Message, error) {
		q, ok := m.(PQ)
		if !ok {
			return nil, fmt.Errorf("a request is a %T", m)
		}
		return f(q)
	}
}
