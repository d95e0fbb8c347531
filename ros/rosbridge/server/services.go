package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"viad/ros"
	"viad/ros/msg"
)

func (c *client) callService(ctx context.Context, o *op) {
	call, cancel := c.within(ctx, o)
	defer cancel()
	asked := *o
	if !strings.HasPrefix(asked.Service, "/") { // roslib asks for "rosapi/topics"
		asked.Service = "/" + asked.Service
	}
	values, err := c.call(call, &asked)
	a := answer{Op: "service_response", ID: c.idFor(o), Service: o.Service, Values: values, Result: ptr(err == nil)}
	if err != nil {
		if ctx.Err() == nil && call.Err() != nil {
			err = suiteError("Timeout exceeded while waiting for service response")
		}
		a.Values = words(err.Error())
	}
	c.reply(ctx, a)
}

func (c *client) call(ctx context.Context, o *op) (json.RawMessage, error) {
	if name, ok := strings.CutPrefix(o.Service, "/rosapi/"); ok && !c.s.o.NoRosapi {
		return c.s.rosapi(ctx, name, o.Args)
	}
	typ, err := c.s.serviceType(ctx, o.Service)
	if err != nil {
		return nil, err
	}
	request, err := c.s.make(typ + "_Request")
	if err != nil {
		return nil, err
	}
	response, err := c.s.make(typ + "_Response")
	if err != nil {
		return nil, err
	}
	q := request()
	if err := fromJSON(o.Args, q); err != nil {
		return nil, err
	}
	caller, done, err := c.caller(o.Service, request, response)
	if err != nil {
		return nil, err
	}
	defer done()
	a := response()
	if err := caller.Call(ctx, q, a); err != nil {
		return nil, err
	}
	return c.s.toJSON(a), nil
}

// callsAtOnce is how many requests one client of a service has on its way: DDS keeps the last ten of a writer.
const callsAtOnce = 8

// oneCaller is a client of a service, and how many calls it has.
type oneCaller struct {
	ros.Caller
	busy int
}

// caller is a client of a service with room for another call; done gives it back.
func (c *client) caller(name string, request, response func() msg.Message) (x ros.Caller, done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.callers == nil {
		return nil, nil, errors.New("closed")
	}
	var free *oneCaller
	for _, o := range c.callers[name] {
		if o.busy < callsAtOnce {
			free = o
			break
		}
	}
	if free == nil {
		y, err := c.s.o.Node.Client(ros.Service{Name: name, Request: request, Response: response})
		if err != nil {
			return nil, nil, err
		}
		free = &oneCaller{Caller: y}
		c.callers[name] = append(c.callers[name], free)
	}
	free.busy++
	return free, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		free.busy--
	}, nil
}

// serviceType is what the graph says; the cancel service of an action is not listed, and known by its name.
func (s *Server) serviceType(ctx context.Context, name string) (string, error) {
	g, err := s.o.Node.Graph(ctx)
	if err != nil {
		return "", err
	}
	if action, ok := strings.CutSuffix(name, "/_action/cancel_goal"); ok {
		for _, a := range g.Actions {
			if a.Name == action {
				return "action_msgs/srv/CancelGoal", nil
			}
		}
	}
	for _, x := range g.Services {
		if x.Name == name {
			return full(x.Type, "srv"), nil
		}
	}
	return "", suiteError("Service " + name + " does not exist")
}

func (s *Server) topicType(ctx context.Context, name string) (string, error) {
	g, err := s.o.Node.Graph(ctx)
	if err != nil {
		return "", err
	}
	for _, t := range g.Topics {
		if t.Name == name {
			return full(t.Type, "msg"), nil
		}
	}
	return "", suiteError("Cannot infer topic type for topic " + name + " as it is not yet advertised")
}

// advertiseService serves for a client: the request goes there, and its answer comes back.
func (c *client) advertiseService(ctx context.Context, o *op) error {
	typ := full(o.Type, "srv")
	request, err := c.s.make(typ + "_Request")
	if err != nil {
		return err
	}
	response, err := c.s.make(typ + "_Response")
	if err != nil {
		return err
	}
	name := o.Service
	_ = drop(c, c.served, name) // the newest counts, as in rosbridge_suite
	x, err := c.s.o.Node.Serve(ros.Service{Name: name, Request: request, Response: response}, func(call context.Context, q msg.Message) (msg.Message, error) {
		return c.ask(call, ctx, name, q, response())
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served == nil {
		shut(x)
		return nil
	}
	c.served[name] = x
	return nil
}

// ask sends a request to the client; call is the request's context, conn the connection's.
func (c *client) ask(call, conn context.Context, name string, q, a msg.Message) (msg.Message, error) {
	c.mu.Lock()
	c.counter++
	id := words(fmt.Sprintf("service_request:%s:%d", name, c.counter))
	got := make(chan op, 1)
	c.waiting[string(id)] = got
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, string(id))
		c.mu.Unlock()
	}()
	c.reply(conn, answer{Op: "call_service", ID: id, Service: name, Args: c.s.toJSON(q)})
	select {
	case o := <-got:
		if o.Result != nil && !*o.Result {
			return nil, fmt.Errorf("%s", o.Values)
		}
		return a, fromJSON(o.Values, a)
	case <-call.Done():
		return nil, call.Err()
	case <-conn.Done():
		return nil, errors.New("the client that served it has gone")
	}
}

func (c *client) responded(o *op) {
	c.mu.Lock()
	got := c.waiting[o.key()]
	delete(c.waiting, o.key())
	c.mu.Unlock()
	if got != nil {
		got <- *o
	}
}
