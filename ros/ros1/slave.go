package ros1

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/apislave"
	"github.com/bluenviron/goroslib/v2/pkg/protocommon"
)

// answer is the node's side of ROS 1's slave API: the master and the other nodes ask here.
func (n *Node) answer(request apislave.Request) (response apislave.Response) {
	defer func() { // goroslib's server would print it
		if p := recover(); p != nil {
			n.log.Error("a request to the ROS 1 node could not be answered", "panic", p)
			response = apislave.ErrorRes{}
		}
	}()
	switch r := request.(type) {
	case *apislave.RequestGetPid:
		return apislave.ResponseGetPid{Code: 1, Pid: os.Getpid()}
	case *apislave.RequestGetBusInfo:
		return apislave.ResponseGetBusInfo{Code: 1, BusInfo: n.busInfo()}
	case *apislave.RequestGetPublications:
		return apislave.ResponseGetPublications{Code: 1, TopicList: n.publications()}
	case *apislave.RequestPublisherUpdate:
		n.mu.Lock()
		f := n.feeds[r.Topic]
		n.mu.Unlock()
		if f != nil {
			f.update(r.PublisherURLs)
		}
		return apislave.ResponsePublisherUpdate{Code: 1}
	case *apislave.RequestRequestTopic:
		return n.requestTopic(r)
	case *apislave.RequestShutdown:
		n.dismiss(strings.TrimSpace(r.CallerID + ": " + r.Reason))
		return apislave.ResponseShutdown{Code: 1}
	default:
		return apislave.ErrorRes{}
	}
}

// dismiss takes note that the master ends this node: another one came with its name, or somebody used rosnode kill.
// It does not register again, or the two would drive each other out for ever.
func (n *Node) dismiss(why string) {
	n.mu.Lock()
	n.why = why
	n.mu.Unlock()
	n.log.Warn("this ROS 1 node was told to end", "node", n.name, "why", why)
	n.links.set(false, "told to end by "+why+"; nothing is registered again: give the node a name of its own and dial anew")
}

func (n *Node) requestTopic(r *apislave.RequestRequestTopic) apislave.ResponseRequestTopic {
	n.mu.Lock()
	_, ok := n.emitters[r.Topic]
	n.mu.Unlock()
	if !ok {
		return apislave.ResponseRequestTopic{Code: 0, StatusMessage: "this node does not publish that topic", Protocol: []any{}}
	}
	for _, p := range r.Protocols {
		if len(p) > 0 && p[0] == "TCPROS" {
			return apislave.ResponseRequestTopic{
				Code: 1, Protocol: []any{"TCPROS", n.ip.String(), n.tcp.Addr().(*net.TCPAddr).Port},
			}
		}
	}
	return apislave.ResponseRequestTopic{Code: 0, StatusMessage: "only TCPROS is spoken here", Protocol: []any{}}
}

func (n *Node) publications() [][]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([][]string, 0, len(n.emitters))
	for _, e := range n.emitters {
		out = append(out, []string{e.topic, e.sign.name})
	}
	return out
}

func (n *Node) busInfo() [][]any {
	n.mu.Lock()
	emitters, feeds := values(n.emitters), values(n.feeds)
	n.mu.Unlock()
	out := [][]any{}
	for _, e := range emitters {
		for _, to := range e.peers() {
			out = append(out, []any{len(out), to, "o", "TCPROS", e.topic, true})
		}
	}
	for _, f := range feeds {
		for _, from := range f.uris() {
			out = append(out, []any{len(out), from, "i", "TCPROS", f.topic, true})
		}
	}
	return out
}

// acceptAgain is the pause after a connection could not be accepted.
const acceptAgain = 200 * time.Millisecond

// accept takes connections of subscribers and of service clients.
func (n *Node) accept(ctx context.Context) {
	for {
		c, err := n.tcp.Accept()
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return
		}
		if err != nil { // no file descriptor is free, say: it passes
			n.log.Error("the ROS 1 node could not accept a connection and tries again; if there are too many open files, raise ulimit -n", "err", err)
			select {
			case <-time.After(acceptAgain):
			case <-ctx.Done():
			}
			continue
		}
		n.mu.Lock()
		if n.shut {
			n.mu.Unlock()
			_ = c.Close()
			return
		}
		n.conns[c] = struct{}{}
		n.mu.Unlock()
		n.wg.Go(func() { n.greet(newConn(c)) })
	}
}

// greet reads who connects and hands it to the topic or the service; it returns when the connection is over.
func (n *Node) greet(c *conn) {
	defer c.Close() //nolint:errcheck // it is over
	h, err := c.readHeader(n.config.Timeout)
	n.mu.Lock()
	delete(n.conns, c.Conn)
	shut := n.shut
	e, s := n.emitters[h["topic"]], n.servers[h["service"]]
	n.mu.Unlock()
	switch {
	case err != nil || shut:
	case e != nil:
		e.serve(c, h)
	case s != nil:
		s.serve(c, h)
	default:
		n.refuse(c, h, "this node has no topic "+h["topic"]+" and no service "+h["service"])
	}
}

func (n *Node) refuse(c *conn, h protocommon.HeaderRaw, why string) {
	n.log.Warn("a ROS 1 connection was refused", "from", h["callerid"], "why", why)
	_ = c.writeHeader(&refusal{Error: why}, n.config.Timeout) // it is closed either way
}
