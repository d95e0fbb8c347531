package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// op is any operation that a client sends.
type op struct {
	Op           string          `json:"op"`
	ID           json.RawMessage `json:"id"`
	Topic        string          `json:"topic"`
	Type         string          `json:"type"`
	Service      string          `json:"service"`
	Action       string          `json:"action"`
	ActionType   string          `json:"action_type"`
	Msg          json.RawMessage `json:"msg"`
	Args         json.RawMessage `json:"args"`
	Values       json.RawMessage `json:"values"`
	Compression  string          `json:"compression"`
	ThrottleRate int             `json:"throttle_rate"`
	QueueLength  int             `json:"queue_length"`
	FragmentSize int             `json:"fragment_size"`
	Feedback     bool            `json:"feedback"`
	Latch        bool            `json:"latch"`
	QueueSize    int             `json:"queue_size"`
	Result       *bool           `json:"result"`
	Status       int             `json:"status"`
	Timeout      float64         `json:"timeout"`
}

// key is the id as a key of a table.
func (o *op) key() string { return string(o.ID) }

func (c *client) incoming(ctx context.Context, b []byte) {
	if c.s.o.Trace != nil {
		c.s.o.Trace(b)
	}
	var o op
	if err := json.Unmarshal(b, &o); err != nil {
		c.say(ctx, nil, fmt.Sprintf("no JSON: %v", err))
		return
	}
	if len(o.ID) > maxID {
		c.say(ctx, nil, fmt.Sprintf("an id of %d bytes is longer than %d", len(o.ID), maxID))
		return
	}
	if c.things() >= maxThings {
		c.say(ctx, o.ID, "this client has too much going on")
		return
	}
	if err := c.do(ctx, &o); err != nil {
		c.say(ctx, o.ID, o.Op+": "+err.Error())
	}
}

// maxID bounds the ids that are kept.
const maxID = 1024

// maxThings bounds what one client may have: topics, services, actions and what runs for it.
const maxThings = 4096

func (c *client) things() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.outlets) + len(c.served) + len(c.acting) + int(c.running.Load())
	for _, x := range c.callers {
		n += len(x)
	}
	for _, t := range c.subs {
		t.mu.Lock()
		n += len(t.asks)
		t.mu.Unlock()
	}
	return n
}

func (c *client) do(ctx context.Context, o *op) error {
	cv := &c.s.o.Caveats
	if cv.NoActions && strings.Contains(o.Op, "action") {
		c.say(ctx, o.ID, "Unknown operation: "+o.Op+".  Allowed operations: ['publish', 'subscribe']")
		return nil
	}
	switch o.Op {
	case "advertise":
		return c.advertise(o)
	case "unadvertise":
		return c.unadvertise(o)
	case "publish":
		return c.publish(ctx, o)
	case "subscribe":
		return c.subscribe(ctx, o)
	case "unsubscribe":
		return c.unsubscribe(o)
	case "call_service":
		c.inThread(cv.ServicesBlock, func() { c.callService(ctx, o) })
	case "advertise_service":
		return c.advertiseService(ctx, o)
	case "unadvertise_service":
		return drop(c, c.served, o.Service)
	case "service_response":
		c.responded(o)
	case "send_action_goal":
		c.inThread(cv.GoalsBlock, func() { c.sendGoal(ctx, o) })
	case "cancel_action_goal":
		c.inThread(false, func() { c.cancelGoal(ctx, o) })
	case "advertise_action":
		return c.advertiseAction(ctx, o)
	case "unadvertise_action":
		return drop(c, c.acting, o.Action)
	case "action_feedback", "action_result":
		return c.acted(o)
	default:
		c.say(ctx, o.ID, "Unknown operation: "+o.Op+".  Allowed operations: ['publish', 'subscribe']")
	}
	return nil
}

// inThread runs f in the reader, which then reads nothing else, or beside it.
func (c *client) inThread(block bool, f func()) {
	if block {
		f()
		return
	}
	c.running.Add(1)
	c.wg.Go(func() {
		defer c.running.Add(-1)
		f()
	})
}

func drop[T interface{ Close() error }](c *client, of map[string]T, name string) error {
	c.mu.Lock()
	x, ok := of[name]
	delete(of, name)
	c.mu.Unlock()
	if !ok {
		return fmt.Errorf("%s was not advertised", name)
	}
	return x.Close()
}

// say tells the client, if this version does that, and the log.
func (c *client) say(ctx context.Context, id json.RawMessage, words string) {
	c.s.o.Log.Warn("rosbridge server", "words", words)
	if !c.s.o.StatusWords {
		return
	}
	c.reply(ctx, status{Op: "status", Level: "error", Msg: words, ID: id})
}

type status struct {
	Op    string          `json:"op"`
	Level string          `json:"level"`
	Msg   string          `json:"msg"`
	ID    json.RawMessage `json:"id,omitempty"`
}

// answer is what most operations are answered with.
type answer struct {
	Op      string          `json:"op"`
	ID      json.RawMessage `json:"id,omitempty"`
	Service string          `json:"service,omitempty"`
	Action  string          `json:"action,omitempty"`
	Type    string          `json:"action_type,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Values  json.RawMessage `json:"values,omitempty"`
	Status  *int            `json:"status,omitempty"`
	Result  *bool           `json:"result,omitempty"`
	Wants   bool            `json:"feedback,omitempty"`
}

func (c *client) reply(ctx context.Context, a any) {
	b, err := marshal(a)
	if err != nil {
		c.s.o.Log.Error("rosbridge server: an answer cannot be written", "why", err)
		return
	}
	c.send(ctx, b, false)
}

// idFor is the id that an answer carries.
func (c *client) idFor(o *op) json.RawMessage {
	if c.s.o.WrongIDs {
		return json.RawMessage(`"somebody-else"`)
	}
	return o.ID
}

func words(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}

// suiteError is an error in rosbridge_suite's own words, which clients look for.
type suiteError string

func (e suiteError) Error() string { return string(e) }

func ptr[T any](v T) *T { return &v }

// within bounds a call as this version does.
func (c *client) within(ctx context.Context, o *op) (context.Context, context.CancelFunc) {
	if c.s.o.ServiceTimeout <= 0 {
		return context.WithCancel(ctx)
	}
	d := c.s.o.ServiceTimeout
	if o.Timeout > 0 {
		d = time.Duration(o.Timeout * float64(time.Second))
	}
	return context.WithTimeout(ctx, d)
}
