package ros1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/apimaster"
	"github.com/bluenviron/goroslib/v2/pkg/apiparam"
	"github.com/bluenviron/goroslib/v2/pkg/apislave"
)

const maxXML = 16 << 20

// carrier gives goroslib's XML-RPC clients, which know no context, the one of the call, and bounds what they read.
type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

func httpClient(ctx context.Context) *http.Client {
	// A connection for each call: rosmaster closes idle ones as it likes, and a call that meets that is not repeated.
	base := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext}
	return &http.Client{Transport: carrier(func(r *http.Request) (*http.Response, error) {
		res, err := base.RoundTrip(r.WithContext(ctx))
		if err == nil {
			res.Body = struct {
				io.Reader
				io.Closer
			}{io.LimitReader(res.Body, maxXML), res.Body}
		}
		return res, err
	})}
}

func (n *Node) master(ctx context.Context) *apimaster.Client {
	return apimaster.NewClient(n.config.Master, n.name, httpClient(ctx))
}

func (n *Node) params(ctx context.Context) *apiparam.Client {
	return apiparam.NewClient(n.config.Master, n.name, httpClient(ctx))
}

func (n *Node) peer(ctx context.Context, uri string) (*apislave.Client, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is no address of a node", uri)
	}
	return apislave.NewClient(u.Host, n.name, httpClient(ctx)), nil
}

// refused says whether the master itself answered with an error, rather than nobody.
func refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "server returned an error")
}

// unreachable puts a peer's unknown name into words: ROS 1's most common trouble.
func unreachable(err error) error {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return fmt.Errorf("the name %q does not resolve here (set ROS_IP on that machine, or add it to /etc/hosts): %w", dns.Name, err)
	}
	return err
}

// Param reads a string parameter of the master.
func (n *Node) Param(ctx context.Context, key string) (string, error) {
	v, err := n.params(ctx).GetParamString(key)
	return v, paramError(key, "string", err)
}

// ParamFloat reads a floating point parameter of the master.
func (n *Node) ParamFloat(ctx context.Context, key string) (float64, error) {
	v, err := n.params(ctx).GetParamFloat64(key)
	return v, paramError(key, "floating point number", err)
}

func paramError(key, kind string, err error) error {
	if unset(err) {
		return fmt.Errorf("the ROS 1 parameter %s is not set, or is no %s: %w", key, kind, err)
	}
	return err
}

// watch looks at the master once each period until ctx ends. A master that was restarted has forgotten every node and
// tells nobody, so ours registers again; connections between nodes do not go through the master and live on.
func (n *Node) watch(ctx context.Context) {
	tick := time.NewTicker(n.config.Period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.look(ctx)
	}
}

func (n *Node) look(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	if n.dismissed() != "" {
		return
	}
	which, err := n.whichMaster(within)
	uri := ""
	if err == nil {
		uri, err = n.master(within).LookupNode(n.name)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil && !refused(err):
		n.links.set(false, fmt.Sprintf("the master at %s does not answer: %v", n.config.Master, err))
	case err == nil && uri == n.uri() && n.settled(which):
		n.links.set(true, n.connected(which))
	case err == nil && uri != n.uri() && n.alive(within, uri):
		n.dismiss("another node of this name at " + uri)
	default:
		// Forgotten, or only half registered, or a dead node of our name stands there: say everything again.
		n.links.set(false, fmt.Sprintf("the master at %s (%s) does not know all of this node: registering it again", n.config.Master, which))
		if err := n.registerAll(within, which); err != nil {
			n.log.Warn("registering again at the ROS 1 master", "master", n.config.Master, "err", err)
			return
		}
		n.links.set(true, n.connected(which))
	}
}

func (n *Node) alive(ctx context.Context, uri string) bool {
	p, err := n.peer(ctx, uri)
	if err == nil {
		_, err = p.GetPid()
	}
	return err == nil
}

func (n *Node) connected(which master) string {
	return fmt.Sprintf("master at %s (%s)", n.config.Master, which)
}

// whichMaster tells one master from the next at the same address: by its process, and by the run that roscore writes
// into the parameters, since in a container every process has the same number.
func (n *Node) whichMaster(ctx context.Context) (m master, err error) {
	if m.pid, err = apislave.NewClient(n.config.Master, n.name, httpClient(ctx)).GetPid(); err != nil {
		return m, err
	}
	if m.run, err = n.params(ctx).GetParamString("/run_id"); unset(err) {
		err = nil // a bare rosmaster, or a roscore in its first second
	}
	return m, err
}

// master is one run of a master.
type master struct {
	pid int
	run string // "" when it has not said
}

func (m master) String() string {
	if m.run == "" {
		return fmt.Sprintf("process %d", m.pid)
	}
	return fmt.Sprintf("process %d, run %s", m.pid, m.run)
}

// unset says whether a parameter is not there: the master then answers with a number, which goroslib takes for a value
// of the wrong type.
func unset(err error) bool {
	return refused(err) || err != nil && strings.HasPrefix(err.Error(), "cannot decode")
}

// registerAll registers everything that the node has.
func (n *Node) registerAll(ctx context.Context, which master) error {
	n.mu.Lock()
	n.registered = master{}
	emitters, feeds, servers := values(n.emitters), values(n.feeds), values(n.servers)
	n.mu.Unlock()

	var err error
	for _, e := range emitters {
		_, one := n.master(ctx).RegisterPublisher(e.topic, e.sign.name, n.uri())
		err = errors.Join(err, one)
	}
	for _, f := range feeds {
		err = errors.Join(err, n.registerFeed(ctx, f))
	}
	for _, s := range servers {
		err = errors.Join(err, n.master(ctx).RegisterService(s.name, n.tcpURI(), n.uri()))
	}
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.registered = which
	return nil
}

// settled says whether this master was told everything.
func (n *Node) settled(which master) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.registered.run == "" && n.registered.pid == which.pid {
		n.registered.run = which.run
	}
	return n.registered == which || n.registered.pid == which.pid && which.run == ""
}

// unsettle makes the next look register everything again.
func (n *Node) unsettle() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.registered = master{}
}

func (n *Node) registerFeed(ctx context.Context, f *feed) error {
	uris, err := n.master(ctx).RegisterSubscriber(f.topic, f.sign.name, n.uri())
	if err != nil {
		return err
	}
	f.update(uris)
	return nil
}

func values[K comparable, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}
