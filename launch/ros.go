package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/msg"
	"viad/ros/msg/all"
	"viad/ros/rosbridge"
)

// rosCommand looks at a ROS graph, with no ROS installed.
type rosCommand struct {
	Topic struct {
		List rosTopicList `cmd:"" help:"List topics, their types, and how many publish and subscribe."`
		Info rosTopicInfo `cmd:"" help:"Show who is on a topic, and with which QoS."`
		Echo rosTopicEcho `cmd:"" help:"Print the messages of a topic."`
		Hz   rosTopicHz   `cmd:"" help:"Measure the rate of a topic."`
	} `cmd:"" help:"Topics."`
	Node struct {
		List rosNodeList `cmd:"" help:"List nodes."`
	} `cmd:"" help:"Nodes."`
	Service struct {
		List rosServiceList `cmd:"" help:"List services and their types."`
		Call rosServiceCall `cmd:"" help:"Call a service."`
	} `cmd:"" help:"Services."`
	Action struct {
		List rosActionList `cmd:"" help:"List actions and their types."`
	} `cmd:"" help:"Actions."`
	Param struct {
		List rosParamList `cmd:"" help:"List the parameters of a node."`
		Get  rosParamGet  `cmd:"" help:"Get a parameter of a node."`
		Set  rosParamSet  `cmd:"" help:"Set a parameter of a node."`
	} `cmd:"" help:"Parameters."`
	Doctor rosDoctor `cmd:"" help:"Say what is seen of the network, of others and of their clocks, and what is wrong."`
}

// rosFlags say where the graph is.
type rosFlags struct {
	Domain    int           `env:"ROS_DOMAIN_ID" help:"Domain id, 0 to 232."`
	Localhost bool          `env:"ROS_LOCALHOST_ONLY" help:"This host alone."`
	Peer      []string      `env:"ROS_STATIC_PEERS" sep:";" help:"Host that multicast does not reach; may be given again." placeholder:"HOST"`
	Interface []string      `help:"Network interface by name or address; may be given again. Otherwise all that are up." placeholder:"NAME"`
	Wire      string        `enum:"dds,rosbridge" default:"dds" help:"dds or rosbridge."`
	URL       string        `name:"url" help:"Of rosbridge, for example ws://robot:9090." placeholder:"URL"`
	Distro    string        `help:"ROS 2 distribution of the others: humble, iron, jazzy. Otherwise it is learnt." placeholder:"NAME"`
	Wait      time.Duration `default:"3s" help:"How long to look and to wait for answers."`
	JSON      bool          `name:"json" help:"Print JSON."`
	Verbose   bool          `short:"v" help:"Print what the wire has to say."`
}

// rosDomains is the number of domains: beyond, the ports would end.
const rosDomains = 232

// config checks what can be checked before anything is opened.
func (f *rosFlags) config(log *slog.Logger) (dds.Config, error) {
	distro, ok := cdr.ParseDistro(f.Distro)
	if !ok {
		return dds.Config{}, usageError{fmt.Errorf("--distro %s is not known; humble, iron, jazzy and rolling are", f.Distro)}
	}
	if f.Domain < 0 || f.Domain > rosDomains {
		return dds.Config{}, usageError{fmt.Errorf("the domain is %d; it is from 0 to %d (--domain, ROS_DOMAIN_ID)", f.Domain, rosDomains)}
	}
	if f.Wait <= 0 {
		return dds.Config{}, usageError{fmt.Errorf("--wait is %v; others need some time to answer, 3s is usual", f.Wait)}
	}
	local := f.Localhost || os.Getenv("ROS_AUTOMATIC_DISCOVERY_RANGE") == "LOCALHOST"
	return dds.Config{Node: "viad_ros_" + strconv.Itoa(os.Getpid()), Domain: f.Domain, Localhost: local, Peers: f.Peer, Interfaces: f.Interface, Distro: distro, Log: log}, nil
}

// open joins the graph.
func (f *rosFlags) open(ctx context.Context, s streams) (ros.Node, error) {
	log := slog.New(slog.DiscardHandler)
	if f.Verbose {
		log = slog.New(slog.NewTextHandler(s.err, nil))
	}
	c, err := f.config(log)
	if err != nil {
		return nil, err
	}
	if f.Wire == "dds" {
		if f.URL != "" {
			return nil, usageError{errors.New("--url is rosbridge's: give --wire rosbridge with it")}
		}
		if err := f.resolve(ctx); err != nil {
			return nil, err
		}
		n, err := dds.Open(c)
		if err != nil {
			return nil, err
		}
		return n, nil
	}
	if f.URL == "" {
		return nil, usageError{errors.New("--wire rosbridge needs --url, for example --url ws://robot:9090")}
	}
	ctx, cancel := context.WithTimeout(ctx, f.Wait)
	defer cancel()
	n, err := rosbridge.Dial(ctx, rosbridge.Config{URL: f.URL, Node: "/" + c.Node, Distro: c.Distro, Log: log})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// resolve looks whether the names of static peers are known: one that is not would be passed over.
func (f *rosFlags) resolve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.Wait)
	defer cancel()
	for _, p := range f.Peer {
		host, _, _ := strings.Cut(p, ":")
		if host == "" || net.ParseIP(host) != nil {
			continue // what is no address at all is refused by who reads it
		}
		if _, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host); err != nil {
			return fmt.Errorf("the peer %s (--peer, ROS_STATIC_PEERS) has no known IPv4 address: %w; correct its name, or give its address", host, err)
		}
	}
	return nil
}

var errInterrupted = errors.New("interrupted before it was done")

// with opens a node for f, and closes it. It ends when the output does: who reads it may have seen enough.
func (f *rosFlags) with(ctx context.Context, s *streams, do func(context.Context, ros.Node) error) error {
	n, err := f.open(ctx, *s)
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &sink{to: s.out, broken: cancel}
	s.out = out
	err = do(run, n)
	switch cut := out.failure(); {
	case errors.Is(cut, syscall.EPIPE):
		err = nil
	case cut != nil:
		err = fmt.Errorf("the output cannot be written: %w", cut)
	case err != nil && err == ctx.Err(): //nolint:errorlint // one that says more is kept
		err = errInterrupted
	}
	return errors.Join(err, n.Close())
}

// sink is an output that may break.
type sink struct {
	to     io.Writer
	broken func()
	mu     sync.Mutex
	err    error
}

// Write writes until it has failed once.
func (o *sink) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(b)
	if err != nil {
		o.err = err
		o.broken()
	}
	return n, err
}

func (o *sink) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// What discovery takes: an answer to our first announcement comes at once, and the endpoints shortly after.
const (
	rosQuiet = 400 * time.Millisecond // so long nothing new came
	rosPoll  = 50 * time.Millisecond
)

// look waits until the graph has been quiet for a while, or Wait is over; done, if given, says that what was looked for
// is there. Our own node is not in the graph that it returns.
func (f *rosFlags) look(ctx context.Context, n ros.Node, done func(ros.Graph) bool) (ros.Graph, error) {
	ctx, cancel := context.WithTimeout(ctx, f.Wait)
	defer cancel()
	var last string
	var seen ros.Graph
	var since time.Time
	for {
		g, err := n.Graph(ctx)
		switch {
		case err != nil && errors.Is(ctx.Err(), context.Canceled):
			return g, errInterrupted
		case err != nil && ctx.Err() != nil && last != "": // the time ended while it was asked for once more
			return seen, nil
		case err != nil:
			return g, err
		}
		g.Nodes = slices.DeleteFunc(g.Nodes, func(s string) bool { return s == n.Name() })
		seen = g
		if done != nil && done(g) {
			return g, nil
		}
		size := fmt.Sprint(len(g.Nodes), len(g.Topics), len(g.Services), len(g.Peers))
		if size != last {
			last, since = size, time.Now()
		}
		someone := len(g.Peers) > 0 && len(g.Topics)+len(g.Services) > 0 || n.Wire() != "dds"
		if done == nil && someone && time.Since(since) >= rosQuiet {
			return g, nil
		}
		t := time.NewTimer(rosPoll)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			if errors.Is(ctx.Err(), context.Canceled) {
				return g, errInterrupted
			}
			return g, nil
		}
	}
}

// alone says in words that nobody is there, or that it is not to be known.
func (f *rosFlags) alone(g ros.Graph) error {
	if len(g.Topics)+len(g.Nodes)+len(g.Services) == 0 && f.Wire != "dds" && len(g.Problems) > 0 {
		return errors.New(strings.Join(g.Problems, "; "))
	}
	if f.Wire != "dds" || len(g.Peers) > 0 {
		return nil
	}
	return fmt.Errorf("no other participant answers in domain %d: viad ros doctor --domain %d says what to check", f.Domain, f.Domain)
}

// table prints aligned columns.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = short(plain(c))
		}
		if _, err := fmt.Fprintln(t, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// longestCell is more than any name in ROS has.
const longestCell = 250

// short cuts what would push all other columns out of sight.
func short(s string) string {
	if len(s) <= longestCell || utf8.RuneCountInString(s) <= longestCell {
		return s
	}
	return string([]rune(s)[:longestCell]) + "…"
}

// lines prints one text a line.
func lines(w io.Writer, texts []string) error {
	for _, l := range texts {
		if _, err := fmt.Fprintln(w, plain(l)); err != nil {
			return err
		}
	}
	return nil
}

// plain is s with what a terminal would obey, and what cannot be seen, as escapes: names are whatever others call themselves.
func plain(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(s[:n])
		} else {
			q := strconv.Quote(s[:n])
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// newMessage makes a message of a type, or says that it cannot.
func newMessage(typ string) (msg.Message, error) {
	if m, ok := all.New(typ); ok {
		return m, nil
	}
	return nil, fmt.Errorf("viad has no definition of %s, so that it can be listed and measured (viad ros topic hz) but not printed", plain(typ))
}

// opaque stands for a message whose definition is not there; it can be subscribed to, not read.
type opaque string

// TypeName is the full name.
func (o opaque) TypeName() string { return string(o) }

// TypeHash is not known.
func (opaque) TypeHash() string { return "" }

// MarshalCDR fails.
func (o opaque) MarshalCDR(w *cdr.Writer) { w.Fail("", "there is no definition of "+string(o)) }

// UnmarshalCDR fails.
func (o opaque) UnmarshalCDR(r *cdr.Reader) { r.Fail("", "there is no definition of "+string(o)) }

// hidden says that tools hide the name: a part of it begins with an underscore.
func hidden(name string) bool { return strings.Contains(name, "/_") }

func qosWords(q ros.QoS) string {
	w := "best effort"
	if q.Reliable {
		w = "reliable"
	}
	if q.Transient {
		w += ", transient local"
	} else {
		w += ", volatile"
	}
	if q.Deadline > 0 {
		w += fmt.Sprintf(", deadline %v", q.Deadline)
	}
	return w
}

// nearest names what was perhaps meant.
func nearest(name string, all []string) string {
	base := name[strings.LastIndex(name, "/")+1:]
	var near []string
	for _, a := range all {
		if base != "" && strings.Contains(a, base) || strings.EqualFold(a, name) || strings.Contains(name, a) && a != "/" {
			near = append(near, plain(a))
		}
	}
	slices.SortFunc(near, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	if len(near) == 0 {
		return ""
	}
	return "; perhaps " + strings.Join(near[:min(3, len(near))], " or ")
}
