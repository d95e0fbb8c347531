package ros1

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/apislave"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/rosgraph_msgs"

	"viad/ros"
)

const wire = "ros1"

// Config says where the master is and who we are.
type Config struct {
	Master string // "host:port"; "" is 127.0.0.1:11311
	Name   string // "/viad"; unique in the graph: a second node of the name makes the master end the first
	// Host is the address of this machine that the other nodes reach; "" takes the one that reaches the master.
	Host    string
	Period  time.Duration // between two looks at the master; 0 is a second
	Timeout time.Duration // for one exchange with the master or for a connection; 0 is 5 s
	Log     *slog.Logger  // nil is slog.Default()
}

// Node is a node in a ROS 1 graph.
type Node struct {
	config Config
	name   string
	ip     net.IP
	log    *slog.Logger
	types  *types
	slave  *apislave.Server
	tcp    net.Listener
	links  *links

	scope  func() (context.Context, context.CancelFunc) // a context that ends with the node
	end    context.CancelFunc
	wg     sync.WaitGroup
	closed sync.Once

	mu         sync.Mutex
	shut       bool
	emitters   map[string]*emitter
	feeds      map[string]*feed
	servers    map[string]*server
	conns      map[net.Conn]struct{} // accepted, and not yet anybody's
	registered master                // the master that knows all of the above
	why        string                // who told us to go
}

var errClosed = errors.New("the ROS 1 node is closed")

// Dial starts a node and registers it with the master. ctx bounds the start only.
func Dial(ctx context.Context, config Config) (*Node, error) {
	config, err := config.filled()
	if err != nil {
		return nil, err
	}
	ip, err := address(ctx, config)
	if err != nil {
		return nil, err
	}
	slave, err := apislave.NewServer(net.JoinHostPort(ip.String(), "0"), ip, "", config.Timeout)
	if err != nil {
		return nil, fmt.Errorf("the ROS 1 node cannot listen on its own address %s: %w; set the host to an address of this machine", ip, err)
	}
	tcp, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		slave.Close()
		return nil, err
	}
	whole, end := context.WithCancel(context.Background())
	n := &Node{
		config: config, name: config.Name, ip: ip, log: config.Log, types: newTypes(), slave: slave, tcp: tcp, links: newLinks(),
		scope: func() (context.Context, context.CancelFunc) { return context.WithCancel(whole) }, end: end,
		emitters: make(map[string]*emitter), feeds: make(map[string]*feed), servers: make(map[string]*server),
		conns: make(map[net.Conn]struct{}),
	}
	slave.Serve(n.answer)
	n.wg.Go(func() { n.accept(whole) })

	which, err := n.whichMaster(ctx)
	if err == nil {
		err = n.rosout()
	}
	if err == nil {
		err = n.registerAll(ctx, which)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("no ROS 1 master at %s: %w; start roscore there, or correct the address", config.Master, err), n.Close())
	}
	n.links.set(true, n.connected(which))
	n.wg.Go(func() { n.watch(whole) })
	return n, nil
}

// rosout makes the publisher that every node has: by it the master knows a node that has nothing else. Nothing is sent.
func (n *Node) rosout() error {
	s, err := sign("rosgraph_msgs/Log", rosgraph_msgs.Log{})
	if err != nil {
		return err
	}
	_, err = n.advertise("/rosout", s, ros.QoS{})
	return err
}

func (c Config) filled() (Config, error) {
	if c.Master == "" {
		c.Master = "127.0.0.1:11311"
	}
	c.Master = strings.TrimSuffix(strings.TrimPrefix(c.Master, "http://"), "/")
	if _, _, err := net.SplitHostPort(c.Master); err != nil {
		return c, fmt.Errorf("the ROS 1 master %q is not host:port: %w", c.Master, err)
	}
	if !strings.HasPrefix(c.Name, "/") {
		c.Name = "/" + c.Name
	}
	if err := checkName(c.Name); err != nil {
		return c, err
	}
	if c.Period <= 0 {
		c.Period = time.Second
	}
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c, nil
}

// checkName keeps to the characters that ROS 1 allows; goroslib writes names into its XML as they are.
func checkName(name string) error {
	ok := len(name) > 1 && name[0] == '/' && !strings.HasSuffix(name, "/")
	for _, r := range name {
		ok = ok && (r == '/' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if !ok {
		return fmt.Errorf("%q is no ROS 1 name: it begins with / and has letters, digits, _ and / only", name)
	}
	return nil
}

// address is the one that other nodes are told.
func address(ctx context.Context, c Config) (net.IP, error) {
	if c.Host != "" {
		addrs, err := net.DefaultResolver.LookupIPAddr(ctx, c.Host)
		if err != nil {
			return nil, fmt.Errorf("our own host %q: %w", c.Host, err)
		}
		for _, a := range addrs {
			if v4 := a.IP.To4(); v4 != nil {
				return v4, nil
			}
		}
		return nil, fmt.Errorf("our own host %q has no IPv4 address, and ROS 1 needs one", c.Host)
	}
	s, err := (&net.Dialer{Timeout: c.Timeout}).DialContext(ctx, "tcp4", c.Master)
	if err != nil {
		return nil, fmt.Errorf("no ROS 1 master at %s: %w; start roscore there, or correct the address", c.Master, err)
	}
	defer s.Close() //nolint:errcheck // nothing was written
	own, ok := s.LocalAddr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("no address of this machine towards %s", c.Master)
	}
	return own.IP, nil
}

// Name implements ros.Node.
func (n *Node) Name() string { return n.name }

// Wire implements ros.Node.
func (n *Node) Wire() string { return wire }

// Links implements ros.Node.
func (n *Node) Links(f func(ros.Link)) (stop func()) { return n.links.watch(f) }

func (n *Node) uri() string { return n.slave.URL() + "/" }

func (n *Node) tcpURI() string {
	return (&url.URL{Scheme: "rosrpc", Host: n.tcp.Addr().String()}).String()
}

// brief is a context for telling the master something while the node goes on or ends.
func (n *Node) brief() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), min(n.config.Timeout, 2*time.Second))
}

func (n *Node) dismissed() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.why
}

// Close ends everything that the node made and takes it out of the graph.
func (n *Node) Close() error {
	n.closed.Do(func() {
		n.mu.Lock()
		n.shut = true
		emitters, feeds, servers := values(n.emitters), values(n.feeds), values(n.servers)
		n.mu.Unlock()

		ctx, cancel := n.brief()
		defer cancel()
		var told sync.WaitGroup
		for _, e := range emitters {
			told.Go(func() { e.drain(); e.unregister(ctx) })
		}
		for _, f := range feeds {
			told.Go(func() { f.unregister(ctx) })
		}
		for _, s := range servers {
			told.Go(func() { s.unregister(ctx) })
		}
		told.Wait()

		n.end()
		_ = n.tcp.Close()
		n.closeSlave()
		n.mu.Lock()
		for c := range n.conns {
			_ = c.Close()
		}
		n.mu.Unlock()
		n.wg.Wait()
		n.links.close()
	})
	return nil
}

// closeSlave closes goroslib's XML-RPC server, which waits for ever when a peer holds a half sent request open: after
// two seconds it is left to end when that peer goes.
func (n *Node) closeSlave() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.slave.Close()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		n.log.Warn("a peer holds a request to this ROS 1 node open; its connection is left behind")
	}
}
