package ros

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"viad/ros/msg"
	"viad/ros/msg/rcl_interfaces"
)

// Declared is a parameter that a node has: its first value, and what it may be set to. The descriptor's name and type
// are filled in.
type Declared struct {
	Param
	Descriptor rcl_interfaces.ParameterDescriptor
}

// ParamServer serves the parameters of a node, as every ROS 2 node does. A parameter that was not declared cannot be set.
type ParamServer struct {
	node    Node
	onSet   func([]Param) error
	events  Publisher[*rcl_interfaces.ParameterEvent]
	closers []Closer

	setting sync.Mutex // one setter at a time, also while onSet runs
	mu      sync.RWMutex
	params  map[string]Declared
}

// ServeParams serves the declared parameters under the node's name. onSet is asked before parameters are set and may
// refuse; several that are set at once come together. It may be nil.
func ServeParams(n Node, declared []Declared, onSet func([]Param) error) (*ParamServer, error) {
	s := &ParamServer{node: n, onSet: onSet, params: map[string]Declared{}}
	for _, d := range declared {
		if _, twice := s.params[d.Name]; twice || d.Name == "" {
			return nil, fmt.Errorf("the parameter %q is declared twice, or has no name", d.Name)
		}
		d.Descriptor.Name, d.Descriptor.Type = d.Name, d.Value.Type
		if err := d.fits(d.Value); err != nil {
			return nil, fmt.Errorf("the first value of %s: %w", d.Name, err)
		}
		s.params[d.Name] = d
	}
	var err error
	if s.events, err = Advertise[rcl_interfaces.ParameterEvent](n, "/parameter_events", QoS{Reliable: true, Depth: 1000}); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.events)
	for _, o := range s.services() {
		c, err := n.Serve(o.service, o.f)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.closers = append(s.closers, c)
	}
	return s, nil
}

type served struct {
	service Service
	f       func(context.Context, msg.Message) (msg.Message, error)
}

func (s *ParamServer) services() []served {
	in := s.node.Name() + "/"
	return []served{
		{ServiceOf[rcl_interfaces.GetParameters_Request, rcl_interfaces.GetParameters_Response](in + "get_parameters"), answer(s.get)},
		{ServiceOf[rcl_interfaces.GetParameterTypes_Request, rcl_interfaces.GetParameterTypes_Response](in + "get_parameter_types"), answer(s.types)},
		{ServiceOf[rcl_interfaces.DescribeParameters_Request, rcl_interfaces.DescribeParameters_Response](in + "describe_parameters"), answer(s.describe)},
		{ServiceOf[rcl_interfaces.ListParameters_Request, rcl_interfaces.ListParameters_Response](in + "list_parameters"), answer(s.list)},
		{ServiceOf[rcl_interfaces.SetParameters_Request, rcl_interfaces.SetParameters_Response](in + "set_parameters"), answer(s.setEach)},
		{ServiceOf[rcl_interfaces.SetParametersAtomically_Request, rcl_interfaces.SetParametersAtomically_Response](in + "set_parameters_atomically"), answer(s.setAll)},
	}
}

// Close ends the server.
func (s *ParamServer) Close() error {
	errs := make([]error, 0, len(s.closers))
	for _, c := range s.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Get is a parameter's present value.
func (s *ParamServer) Get(name string) (Param, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	d, ok := s.params[name]
	return d.Param, ok
}

// Set sets parameters from within, all or none, by the same rules, but for those that are read-only to others.
func (s *ParamServer) Set(params ...Param) error { return s.set(params, true) }

func (s *ParamServer) set(params []Param, within bool) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	s.mu.RLock()
	err := s.check(params, within)
	s.mu.RUnlock()
	if err != nil {
		return err
	}
	if s.onSet != nil && !within {
		if err := s.onSet(slices.Clone(params)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	for _, p := range params {
		d := s.params[p.Name]
		d.Param = p
		if d.Descriptor.DynamicTyping {
			d.Descriptor.Type = p.Value.Type
		}
		s.params[p.Name] = d
	}
	s.mu.Unlock()
	now := time.Now()
	e := &rcl_interfaces.ParameterEvent{Node: s.node.Name(), ChangedParameters: toParameters(params)}
	e.Stamp.Sec, e.Stamp.Nanosec = int32(now.Unix()), uint32(now.Nanosecond()) //nolint:gosec // ROS's time
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// They are set; that nobody could be told changes nothing of that.
	_ = s.events.Send(ctx, e)
	return nil
}

// check says whether all may be set. Holds mu.
func (s *ParamServer) check(params []Param, within bool) error {
	for _, p := range params {
		d, ok := s.params[p.Name]
		if !ok {
			return fmt.Errorf("there is no parameter %s", p.Name)
		}
		if d.Descriptor.ReadOnly && !within {
			return fmt.Errorf("the parameter %s is read-only", p.Name)
		}
		if err := d.fits(p.Value); err != nil {
			return fmt.Errorf("the parameter %s: %w", p.Name, err)
		}
	}
	return nil
}

// fits checks type and range; numbers that are not are refused wherever there is a range.
func (d *Declared) fits(v rcl_interfaces.ParameterValue) error {
	if v.Type != d.Descriptor.Type && !d.Descriptor.DynamicTyping {
		return fmt.Errorf("it is a %s, not a %s", ParamTypeName(d.Descriptor.Type), ParamTypeName(v.Type))
	}
	for _, r := range d.Descriptor.FloatingPointRange {
		x := v.DoubleValue
		if v.Type != rcl_interfaces.ParameterType_PARAMETER_DOUBLE {
			continue
		}
		if !(x >= r.FromValue && x <= r.ToValue) { // so that NaN fails
			return fmt.Errorf("%v is outside %v to %v", x, r.FromValue, r.ToValue)
		}
		if n := (x - r.FromValue) / r.Step; r.Step > 0 && x != r.ToValue && math.Abs(n-math.Round(n)) > 1e-9*max(1, math.Abs(n)) {
			return fmt.Errorf("%v is not a whole number of steps of %v from %v", x, r.Step, r.FromValue)
		}
	}
	for _, r := range d.Descriptor.IntegerRange {
		x := v.IntegerValue
		if v.Type != rcl_interfaces.ParameterType_PARAMETER_INTEGER {
			continue
		}
		if x < r.FromValue || x > r.ToValue {
			return fmt.Errorf("%d is outside %d to %d", x, r.FromValue, r.ToValue)
		}
		if r.Step > 0 && x != r.ToValue && uint64(x-r.FromValue)%r.Step != 0 { //nolint:gosec // not negative
			return fmt.Errorf("%d is not a whole number of steps of %d from %d", x, r.Step, r.FromValue)
		}
	}
	return nil
}

func (s *ParamServer) get(q *rcl_interfaces.GetParameters_Request) (msg.Message, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	a := new(rcl_interfaces.GetParameters_Response)
	for _, n := range q.Names {
		a.Values = append(a.Values, s.params[n].Value) // one that there is not is not set
	}
	return a, nil
}

func (s *ParamServer) types(q *rcl_interfaces.GetParameterTypes_Request) (msg.Message, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	a := new(rcl_interfaces.GetParameterTypes_Response)
	for _, n := range q.Names {
		a.Types = append(a.Types, s.params[n].Value.Type)
	}
	return a, nil
}

func (s *ParamServer) describe(q *rcl_interfaces.DescribeParameters_Request) (msg.Message, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	a := new(rcl_interfaces.DescribeParameters_Response)
	for _, n := range q.Names {
		d := s.params[n].Descriptor
		d.Name = n
		a.Descriptors = append(a.Descriptors, d)
	}
	return a, nil
}

func (s *ParamServer) list(q *rcl_interfaces.ListParameters_Request) (msg.Message, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	shallow := func(rest string) bool {
		return q.Depth == rcl_interfaces.ListParameters_Request_DEPTH_RECURSIVE || uint64(strings.Count(rest, ".")) < q.Depth
	}
	a := new(rcl_interfaces.ListParameters_Response)
	parents := map[string]struct{}{}
	for _, n := range slices.Sorted(maps.Keys(s.params)) {
		in := len(q.Prefixes) == 0 && shallow(n)
		for _, p := range q.Prefixes {
			rest, below := strings.CutPrefix(n, p+".")
			in = in || n == p || below && shallow(rest)
		}
		if !in {
			continue
		}
		a.Result.Names = append(a.Result.Names, n)
		if i := strings.LastIndex(n, "."); i > 0 {
			parents[n[:i]] = struct{}{}
		}
	}
	a.Result.Prefixes = slices.Sorted(maps.Keys(parents))
	return a, nil
}

func (s *ParamServer) setEach(q *rcl_interfaces.SetParameters_Request) (msg.Message, error) {
	a := new(rcl_interfaces.SetParameters_Response)
	for _, p := range q.Parameters {
		a.Results = append(a.Results, outcome(s.set([]Param{{p.Name, p.Value}}, false)))
	}
	return a, nil
}

func (s *ParamServer) setAll(q *rcl_interfaces.SetParametersAtomically_Request) (msg.Message, error) {
	params := make([]Param, 0, len(q.Parameters))
	for _, p := range q.Parameters {
		params = append(params, Param{p.Name, p.Value})
	}
	return &rcl_interfaces.SetParametersAtomically_Response{Result: outcome(s.set(params, false))}, nil
}

func outcome(err error) rcl_interfaces.SetParametersResult {
	if err != nil {
		return rcl_interfaces.SetParametersResult{Reason: err.Error()}
	}
	return rcl_interfaces.SetParametersResult{Successful: true}
}
