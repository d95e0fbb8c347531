package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/all"
	rostext "viad/ros/msg/text"
)

type (
	rosTopicList struct {
		rosFlags
		All bool `short:"a" help:"Hidden ones too, such as those of actions."`
	}
	rosTopicInfo struct {
		Topic string `arg:"" help:"For example /joint_states."`
		rosFlags
	}
	rosTopicEcho struct {
		Topic string `arg:"" help:"For example /joint_states."`
		Type  string `arg:"" optional:"" help:"Its type; otherwise the graph says it."`
		rosFlags
		Count int  `short:"n" help:"End after so many messages; 0 is never." placeholder:"N"`
		Full  bool `help:"Print long arrays whole."`

		warned bool
	}
	rosTopicHz struct {
		Topic string `arg:"" help:"For example /joint_states."`
		rosFlags
		For time.Duration `help:"End after so long; otherwise with Ctrl-C." placeholder:"DURATION"`
	}
)

// The lists as JSON.
type (
	topicJSON struct {
		Name        string         `json:"name"`
		Type        string         `json:"type"`
		Publishers  []endpointJSON `json:"publishers"`
		Subscribers []endpointJSON `json:"subscribers"`
	}
	endpointJSON struct {
		Node string `json:"node"`
		GUID string `json:"guid"`
		QoS  string `json:"qos"`
	}
)

func topicsJSON(topics []ros.TopicInfo) []topicJSON {
	ends := func(l []ros.EndpointInfo) []endpointJSON {
		out := make([]endpointJSON, len(l))
		for i, e := range l {
			out[i] = endpointJSON{e.Node, e.GUID, qosWords(e.QoS)}
		}
		return out
	}
	out := make([]topicJSON, len(topics))
	for i, t := range topics {
		out[i] = topicJSON{t.Name, t.Type, ends(t.Publishers), ends(t.Subscribers)}
	}
	return out
}

// Run lists topics.
func (c *rosTopicList) Run(ctx context.Context, s streams) error {
	return c.with(ctx, &s, func(ctx context.Context, n ros.Node) error {
		g, err := c.look(ctx, n, nil)
		if err != nil {
			return err
		}
		topics := slices.DeleteFunc(g.Topics, func(t ros.TopicInfo) bool { return !c.All && hidden(t.Name) })
		if c.JSON {
			return errors.Join(printJSON(s.out, topicsJSON(topics)), c.alone(g))
		}
		if err := c.alone(g); err != nil {
			return err
		}
		rows := [][]string{{"TOPIC", "TYPE", "PUB", "SUB"}}
		for _, t := range topics {
			rows = append(rows, []string{t.Name, t.Type, strconv.Itoa(len(t.Publishers)), strconv.Itoa(len(t.Subscribers))})
		}
		return table(s.out, rows)
	})
}

// find waits for a topic.
func (f *rosFlags) find(ctx context.Context, n ros.Node, name string) (ros.TopicInfo, error) {
	var found ros.TopicInfo
	g, err := f.look(ctx, n, func(g ros.Graph) bool {
		for _, t := range g.Topics {
			if t.Name == name {
				found = t
				return len(t.Publishers) > 0 // one that is only subscribed to may get a publisher yet
			}
		}
		return false
	})
	if err != nil || found.Name != "" {
		return found, err
	}
	if err := f.alone(g); err != nil {
		return found, err
	}
	names := make([]string, len(g.Topics))
	for i, t := range g.Topics {
		names[i] = t.Name
	}
	return found, fmt.Errorf("there is no topic %s among %d%s: viad ros topic list shows them", name, len(names), nearest(name, names))
}

// Run shows who is on a topic.
func (c *rosTopicInfo) Run(ctx context.Context, s streams) error {
	return c.with(ctx, &s, func(ctx context.Context, n ros.Node) error {
		if _, err := c.find(ctx, n, c.Topic); err != nil {
			return err
		}
		g, err := c.look(ctx, n, nil)
		if err != nil {
			return err
		}
		var of []ros.TopicInfo // one for each type
		for _, t := range g.Topics {
			if t.Name == c.Topic {
				of = append(of, t)
			}
		}
		if c.JSON {
			return printJSON(s.out, topicsJSON(of))
		}
		rows := [][]string{{"", "NODE", "QOS", "TYPE", "GUID"}}
		for _, t := range of {
			for _, e := range t.Publishers {
				rows = append(rows, []string{"publisher", nodeName(e.Node), qosWords(e.QoS), t.Type, e.GUID})
			}
			for _, e := range t.Subscribers {
				rows = append(rows, []string{"subscriber", nodeName(e.Node), qosWords(e.QoS), t.Type, e.GUID})
			}
		}
		return table(s.out, rows)
	})
}

func nodeName(s string) string {
	if s == "" {
		return "(not said)"
	}
	return s
}

// suit is the QoS that gets the most of what a topic's publishers offer: what one of them does not offer is not asked.
func suit(t ros.TopicInfo) ros.QoS {
	q := ros.QoS{Reliable: len(t.Publishers) > 0, Transient: len(t.Publishers) > 0, Depth: 100}
	for _, p := range t.Publishers {
		q.Reliable, q.Transient = q.Reliable && p.QoS.Reliable, q.Transient && p.QoS.Transient
	}
	q.Transient = q.Transient && q.Reliable
	return q
}

// longArray is how many elements of an array are printed, unless all are asked for.
const longArray = 16

// Run prints messages.
func (c *rosTopicEcho) Run(ctx context.Context, s streams) error {
	if c.Count < 0 {
		return usageError{fmt.Errorf("--count is %d; it is 0, for no end, or more", c.Count)}
	}
	return c.with(ctx, &s, func(ctx context.Context, n ros.Node) error {
		info := ros.TopicInfo{NameType: ros.NameType{Name: c.Topic, Type: c.Type}}
		if found, err := c.find(ctx, n, c.Topic); err == nil {
			info.Publishers = found.Publishers
			if c.Type == "" {
				info.Type = found.Type
			}
		} else if c.Type == "" {
			return err
		}
		m, err := newMessage(info.Type)
		if err != nil {
			return err
		}
		return c.print(ctx, n, s, info, m)
	})
}

func (c *rosTopicEcho) print(ctx context.Context, n ros.Node, s streams, info ros.TopicInfo, m msg.Message) error {
	over, first := make(chan error, 1), make(chan struct{}, 1)
	end := func(err error) {
		select {
		case over <- err:
		default:
		}
	}
	printed := 0
	sub, err := n.Subscribe(ros.Topic{Name: c.Topic, QoS: suit(info), New: func() msg.Message { return m }}, func(in ros.Incoming) {
		if c.Count > 0 && printed >= c.Count {
			return
		}
		if err := in.Decode(m); err != nil {
			end(fmt.Errorf("a message of %s cannot be read as %s: %w; is --distro right?", c.Topic, info.Type, err))
			return
		}
		if err := c.one(s, m); err != nil {
			end(err)
			return
		}
		if printed++; printed == 1 {
			first <- struct{}{}
		}
		if printed == c.Count {
			end(nil)
		}
	})
	if err != nil {
		return err
	}
	defer sub.Close() //nolint:errcheck // the node closes next
	t := time.NewTimer(c.Wait)
	defer t.Stop()
	for {
		select {
		case err := <-over:
			c.warn(ctx, n, s)
			return err
		case <-first:
			c.warn(ctx, n, s)
		case <-ctx.Done():
			return nil
		case <-t.C:
			if sub.Stats().Received == 0 {
				fmt.Fprintf(s.err, "viad: nothing has come on %s in %v (%s matched); still waiting, Ctrl-C ends it\n", c.Topic, c.Wait, counted(sub.Publishers(), "publisher is", "publishers are"))
			}
		}
	}
}

// warn says, once, what is wrong with the topic: not all of what is printed may be right, or all that is published.
func (c *rosTopicEcho) warn(ctx context.Context, n ros.Node, s streams) {
	if c.warned || n.Wire() != "dds" {
		return
	}
	c.warned = true
	g, err := n.Graph(ctx)
	if err != nil {
		return // it ends, or the messages tell more
	}
	for _, p := range g.Problems {
		if strings.HasPrefix(p, c.Topic+": ") {
			fmt.Fprintln(s.err, "viad:", plain(p))
		}
	}
}

func (c *rosTopicEcho) one(s streams, m msg.Message) error {
	if c.JSON {
		b, err := rostext.AppendJSON(nil, m)
		if err != nil {
			return err
		}
		_, err = s.out.Write(append(b, '\n'))
		return err
	}
	o := rostext.Options{Array: longArray, String: 200}
	if c.Full {
		o = rostext.Options{}
	}
	if err := rostext.YAML(s.out, m, o); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.out, "---")
	return err
}

// rate gathers what is told about the rate of a topic.
type rate struct {
	mu    sync.Mutex
	times []time.Time // of the last second and a bit
	bytes uint64
	total int
}

// Run measures the rate.
func (c *rosTopicHz) Run(ctx context.Context, s streams) error {
	if c.For < 0 {
		return usageError{fmt.Errorf("--for is %v; it is 0, for no end, or longer", c.For)}
	}
	return c.with(ctx, &s, func(ctx context.Context, n ros.Node) error {
		info, err := c.find(ctx, n, c.Topic)
		if err != nil {
			return err
		}
		r := new(rate)
		q := suit(info)
		q.Reliable, q.Transient = false, false // what is measured is what is sent, not what is sent again
		sub, err := n.Subscribe(ros.Topic{Name: c.Topic, QoS: q, New: func() msg.Message {
			if m, ok := all.New(info.Type); ok {
				return m
			}
			return opaque(info.Type)
		}}, r.take)
		if err != nil {
			return err
		}
		defer sub.Close() //nolint:errcheck // the node closes next
		if c.For > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.For+rosPoll)
			defer cancel()
		}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := c.say(s.out, r, sub.Stats()); err != nil {
					return err
				}
			case <-ctx.Done():
				if r.count() == 0 {
					return fmt.Errorf("nothing came on %s though %s matched: is it published at all, or do its packets get lost (viad ros doctor)?", c.Topic, counted(sub.Publishers(), "publisher is", "publishers are"))
				}
				return nil // its time is over, or Ctrl-C, which is how one ends it
			}
		}
	})
}

func (r *rate) take(in ros.Incoming) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	r.times = append(r.times, in.Info().Received)
	if p, ok := in.(interface{ Payload() []byte }); ok {
		r.bytes += uint64(len(p.Payload()))
	}
}

func (r *rate) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// rateJSON is one second's rate. There is no rate without two messages.
type rateJSON struct {
	Hz       *float64 `json:"hz"`
	GapLeast *float64 `json:"gap_least_s"`
	GapMost  *float64 `json:"gap_most_s"`
	GapDev   *float64 `json:"gap_deviation_s"`
	Bytes    uint64   `json:"bytes"`
	Messages int      `json:"messages"` // since the start, as the next two
	Lost     uint64   `json:"lost"`
	Dropped  uint64   `json:"dropped"`
}

// say prints one second's rate.
func (c *rosTopicHz) say(w io.Writer, r *rate, st ros.Stats) error {
	j := r.second(st)
	if c.JSON {
		return json.NewEncoder(w).Encode(j)
	}
	_, err := fmt.Fprintln(w, j.words())
	return err
}

// second is one second's rate; the last message stays, so that the gap to the next counts.
func (r *rate) second(st ros.Stats) rateJSON {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := rateJSON{Bytes: r.bytes, Messages: r.total, Lost: st.Lost, Dropped: st.Dropped}
	if len(r.times) < 2 {
		return j
	}
	n := len(r.times) - 1
	least, most, sum, squares := math.Inf(1), 0.0, 0.0, 0.0
	for i := range n {
		d := r.times[i+1].Sub(r.times[i]).Seconds()
		least, most, sum, squares = min(least, d), max(most, d), sum+d, squares+d*d
	}
	mean := sum / float64(n)
	hz, dev := 1/mean, math.Sqrt(max(0, squares/float64(n)-mean*mean))
	if !math.IsInf(hz, 0) { // two at one instant of the clock
		j.Hz = &hz
	}
	j.GapLeast, j.GapMost, j.GapDev = &least, &most, &dev
	r.times, r.bytes = append(r.times[:0], r.times[n]), 0
	return j
}

func (j rateJSON) words() string {
	if j.Hz == nil {
		return fmt.Sprintf("nothing new in this second; %s so far", counted(j.Messages, "message", "messages"))
	}
	out := fmt.Sprintf("%.2f Hz  gaps: least %.1f ms, most %.1f ms, deviation %.1f ms", *j.Hz, *j.GapLeast*1e3, *j.GapMost*1e3, *j.GapDev*1e3)
	if j.Bytes > 0 {
		out += fmt.Sprintf("  %.3g MB/s", float64(j.Bytes)/1e6)
	}
	if j.Lost+j.Dropped > 0 {
		out += fmt.Sprintf("  lost %d, dropped %d so far", j.Lost, j.Dropped)
	}
	return out
}
