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
	return n.params(ctx).GetParamString(key)
}

// ParamFloat reads a floating point parameter of the master.
func (n *Node) ParamFloat(ctx context.Context, key string) (float64, error) {
	return n.params(ctx).GetParamFloat64(key)
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
	pid, err := n.masterPid(within)
	if err != nil {
		if ctx.Err() == nil {
			n.links.set(false, fmt.Sprintf("the master at %s does not answer: %v", n.config.Master, err))
		}
		return
	}
	uri, err := n.master(within).LookupNode(n.name)
	switch {
	case err != nil && !refused(err):
		if ctx.Err() == nil {
			n.links.set(false, fmt.Sprintf("the master at %s does not answer: %v", n.config.Master, err))
		}
	case err == nil && uri == n.uri():
		if n.settled(pid) {
			n.links.set(true, n.connected(pid))
			return
		}
		fallthrough
	default:
		// Forgotten, or only half registered, or an older node of our name stands there: say everything again.
		n.links.set(false, fmt.Sprintf("the master at %s (process %d) does not know all of this node: registering it again", n.config.Master, pid))
		if err := n.registerAll(within, pid); err != nil {
			n.log.Warn("registering again at the ROS 1 master", "master", n.config.Master, "err", err)
			return
		}
		n.links.set(true, n.connected(pid))
	}
}

func (n *Node) connected(pid int) string {
	return fmt.Sprintf("master at %s (process %d)", n.config.Master, pid)
}

// masterPid asks the master for its process: another one is another master, even when it answers at once.
func (n *Node) masterPid(ctx context.Context) (int, error) {
	return apislave.NewClient(n.config.Master, n.name, httpClient(ctx)).GetPid()
}

// registerAll registers everything that the node has.
func (n *Node) registerAll(ctx context.Context, pid int) error {
	n.mu.Lock()
	n.registered = 0
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
	n.registered = pid
	return nil
}

func (n *Node) settled(pid int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.registered == pid
}

// unsettle makes the next look register everything again.
func (n *Node) unsettle() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.registered = 0
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
