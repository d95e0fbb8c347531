package rosbridge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/fxamacker/cbor/v2"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
)

const wire = "rosbridge"

var errClosed = errors.New("rosbridge: the node is closed")

// Node is a ros.Node at the far end of a rosbridge server.
type Node struct {
	cfg   Config
	codec codec
	cbor  cbor.DecMode
	http  *http.Client
	storm storm

	data, urgent *socket
	stopped      chan struct{}
	cancel       context.CancelFunc
	wg           sync.WaitGroup
	prefix       string // makes our ids unlike those of every other client
	ids          atomic.Uint64
	learnt       atomic.Uint32 // the distribution, as the robot says
	strays       atomic.Uint64 // frames that belong to nothing we asked

	mu      sync.Mutex
	closed  bool
	feeds   map[string]*feed
	pending map[string]*pending
	goals   map[string]*goal
	serving map[string]*server
	actions map[string]*actionServer
	watches links
	said    []string // the newest words of the server
	started chan func(context.Context)
}

// Dial connects both sockets and returns the node; it fails when the first attempt does. Afterwards the node connects
// again by itself, and Links says how it stands.
func Dial(ctx context.Context, cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	mode, err := decMode(cfg.MaxIn)
	if err != nil {
		return nil, err
	}
	unique := make([]byte, 4)
	if _, err := rand.Read(unique); err != nil {
		return nil, fmt.Errorf("rosbridge: %w", err)
	}
	n := &Node{
		cfg: cfg, cbor: mode,
		http:    &http.Client{Transport: &http.Transport{TLSClientConfig: cfg.TLS, DialContext: cfg.Dial, DisableKeepAlives: true}},
		storm:   storm{log: cfg.Log.With("node", cfg.Node, "url", cfg.URL)},
		stopped: make(chan struct{}),
		prefix:  "viad-" + hex.EncodeToString(unique) + "-",
		feeds:   map[string]*feed{}, pending: map[string]*pending{}, goals: map[string]*goal{},
		serving: map[string]*server{}, actions: map[string]*actionServer{},
		started: make(chan func(context.Context)),
	}
	if open(cfg.URL) {
		n.storm.warn("rosbridge asks for no password: whoever reaches its port drives the robot; bind it to 127.0.0.1 and use a tunnel")
	}
	n.data, n.urgent = newSocket(n, "data"), newSocket(n, "stop and cancel")
	if err := n.start(ctx); err != nil {
		n.http.CloseIdleConnections()
		return nil, err
	}
	return n, nil
}

// open says whether the address is one that others may reach as well, unencrypted.
func open(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "wss" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

func (n *Node) start(ctx context.Context) error {
	var first [2]*websocket.Conn
	for i, s := range []*socket{n.data, n.urgent} {
		c, err := s.connect(ctx)
		if err != nil {
			if i == 1 {
				_ = first[0].CloseNow() // the other error is told
			}
			return fmt.Errorf("rosbridge: %w; on the robot: ros2 launch rosbridge_server rosbridge_websocket_launch.xml", err)
		}
		first[i] = c
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.cancel = cancel
	n.wg.Go(func() { n.data.run(run, first[0]) })
	n.wg.Go(func() { n.urgent.run(run, first[1]) })
	n.wg.Go(func() { n.spawner(run) })
	n.wg.Go(func() { n.watchFeeds(run) })
	for _, s := range []*socket{n.data, n.urgent} {
		if err := s.ready(ctx); err != nil {
			return errors.Join(err, n.Close())
		}
	}
	if n.cfg.Distro == cdr.DistroUnknown {
		n.learnDistro(ctx)
	}
	return nil
}

// spawner runs what is handed to spawn, so that a context of the node need not be kept anywhere.
func (n *Node) spawner(ctx context.Context) {
	for {
		select {
		case f := <-n.started:
			n.wg.Go(func() { f(ctx) })
		case <-ctx.Done():
			return
		}
	}
}

// spawn runs f in a goroutine of the node with a context that ends with it.
func (n *Node) spawn(f func(context.Context)) {
	select {
	case n.started <- f:
	case <-n.stopped:
	}
}

// Name is the name that we go by in the logs. In the graph everything is the server's own node.
func (n *Node) Name() string { return n.cfg.Node }

// Wire is "rosbridge".
func (n *Node) Wire() string { return wire }

// Close ends everything that the node made. Goals that run go on running on the robot: cancel them first.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	n.mu.Unlock()
	close(n.stopped)
	n.cancel()
	n.wg.Wait()
	n.fail(nil, errClosed)
	n.closeFeeds()
	n.http.CloseIdleConnections()
	return nil
}

// id is a new id, which no client in the world has had: servers keep one table for all of them.
func (n *Node) id(kind string) string { return fmt.Sprintf("%s%s-%d", n.prefix, kind, n.ids.Add(1)) }

// socketOf is the socket that a service or topic travels on.
func (n *Node) socketOf(name string) *socket {
	for _, u := range n.cfg.Urgent {
		if u == name {
			return n.urgent
		}
	}
	return n.data
}

func (n *Node) distro() cdr.Distro {
	if n.cfg.Distro != cdr.DistroUnknown {
		return n.cfg.Distro
	}
	return cdr.Distro(n.learnt.Load()) // a Distro was stored
}

// handle takes one frame from the wire. It runs in the socket's reader and does not block.
func (n *Node) handle(ctx context.Context, s *socket, b []byte, binary bool, frags *assembler) {
	f, err := parseFrame(b, binary, n.cbor)
	if err == nil && f.op == "fragment" {
		var whole []byte
		if whole, err = frags.add(&f, time.Now()); err == nil && whole == nil {
			return
		}
		if err == nil {
			f, err = parseFrame(whole, false, n.cbor)
		}
		if err == nil && f.op == "fragment" {
			err = errors.New("a fragment in fragments")
		}
	}
	if err != nil {
		n.strays.Add(1)
		n.storm.warn("a frame that is no rosbridge operation was dropped", "bytes", len(b), "why", err)
		return
	}
	n.dispatch(ctx, s, &f)
}

func (n *Node) dispatch(ctx context.Context, s *socket, f *frame) {
	switch f.op {
	case "publish":
		n.incoming(f)
	case "service_response":
		n.answered(f)
	case "call_service":
		n.requested(ctx, s, f)
	case "action_feedback":
		n.feedback(f)
	case "action_result":
		n.result(f)
	case "send_action_goal":
		n.goalCame(ctx, s, f)
	case "cancel_action_goal":
		n.cancelCame(f)
	case "status":
		n.status(f)
	default:
		n.strays.Add(1)
		n.storm.warn("an operation came that a client does not get", "op", clip(f.op))
	}
}

// status is a word of the server: logged, and believed where it says that an operation does not exist.
func (n *Node) status(f *frame) {
	n.storm.warn("the rosbridge server says", "level", clip(f.level), "id", clip(f.id), "words", clip(f.words))
	n.mu.Lock()
	g := n.goals[f.id]
	if words := "the server says: " + clip(f.words); !slices.Contains(n.said, words) {
		n.said = append(n.said, words)
		n.said = n.said[max(0, len(n.said)-maxSaid):]
	}
	n.mu.Unlock()
	if !strings.HasPrefix(f.words, "Unknown operation") {
		return
	}
	if g != nil {
		g.finish(outcome{err: &ros.Unsupported{
			Wire: wire, What: "an action",
			Instead: "this server is older than rosbridge 2.0 and knows no actions: update rosbridge_suite, or use DDS",
		}})
	}
}

// maxSaid is how many different words of the server Graph tells.
const maxSaid = 8

// clip bounds what a server's words take up in a log.
func clip(s string) string { return s[:min(len(s), 500)] }

// lostConnection ends what waits for an answer on a connection that is over.
func (n *Node) lostConnection(s *socket, err error) {
	n.storm.warn("a connection was lost", "socket", s.what, "why", err)
	n.fail(s, err)
}

// fail ends the calls of a socket, and the goals when it carries them; of all sockets when s is nil.
func (n *Node) fail(s *socket, err error) {
	n.mu.Lock()
	var calls []*pending
	for id, p := range n.pending {
		if s == nil || p.socket == s {
			calls = append(calls, p)
			delete(n.pending, id)
		}
	}
	var goals []*goal
	if s == nil || s == n.data {
		for _, g := range n.goals {
			goals = append(goals, g)
		}
	}
	acts := make([]*actionServer, 0, len(n.actions))
	for _, a := range n.actions {
		acts = append(acts, a)
	}
	n.mu.Unlock()
	for _, p := range calls {
		p.answer <- reply{err: &ros.Gone{What: p.what, Why: err.Error()}}
	}
	for _, g := range goals {
		if g.finish(outcome{err: &ros.Gone{What: "action " + g.action.name, Why: err.Error()}}) && s != nil {
			n.abandon(g)
		}
	}
	if s == nil || s == n.data {
		for _, a := range acts {
			a.dropGoals()
		}
	}
}

// checkName checks what a user names.
func checkName(kind, name string, made ...func() msg.Message) error {
	if !strings.HasPrefix(name, "/") {
		return fmt.Errorf("rosbridge: the %s name %q is not absolute", kind, name)
	}
	for _, f := range made {
		if f == nil {
			return fmt.Errorf("rosbridge: the %s %s has no message type", kind, name)
		}
	}
	return nil
}
