package dds

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"viad/ros/cdr"
	"viad/ros/rtps"
)

// graph is what this participant knows of nodes, and what it shows of its own.
type graph struct {
	p       *rtps.Participant
	log     *slog.Logger
	changed func()
	reader  *rtps.Reader
	writer  *rtps.Writer

	kick chan struct{} // the publisher has something to do
	quit chan struct{}
	wg   sync.WaitGroup

	mu     sync.RWMutex
	set    bool // the distribution is the operator's word
	is     cdr.Distro
	gidLen int // 0 until known
	clash  string
	ours   []nodeEntities
	mine   map[rtps.GUID]rtps.Endpoint // our own endpoints
	hashes map[rtps.GUID]string        // what those of topics take their type for
	theirs map[rtps.GUIDPrefix]entities
	peers  map[rtps.GUIDPrefix]cdr.Distro
}

// graphQoS is rmw's: late joiners get the newest of each participant.
var graphQoS = rtps.QoS{Reliable: true, TransientLocal: true, Depth: 1}

func newGraph(p *rtps.Participant, distro cdr.Distro, log *slog.Logger, changed func()) (*graph, error) {
	g := &graph{
		p: p, log: log, changed: changed, kick: make(chan struct{}, 1), quit: make(chan struct{}), is: distro, set: distro != cdr.DistroUnknown,
		mine: map[rtps.GUID]rtps.Endpoint{}, hashes: map[rtps.GUID]string{}, theirs: map[rtps.GUIDPrefix]entities{}, peers: map[rtps.GUIDPrefix]cdr.Distro{},
	}
	g.gidLen = gidOf(distro)
	var err error
	if g.writer, err = p.NewWriter(rtps.WriterConfig{Topic: discoveryTopic, Type: discoveryType, QoS: graphQoS}); err != nil {
		return nil, err
	}
	q := graphQoS
	q.KeepAll = true // one topic for all participants: the newest of each counts
	g.reader, err = p.NewReader(rtps.ReaderConfig{Topic: discoveryTopic, Type: discoveryType, QoS: q, Queue: 1024}, g.hear)
	if err != nil {
		return nil, err
	}
	g.wg.Go(g.publish)
	return g, nil
}

func gidOf(d cdr.Distro) int {
	switch d {
	case cdr.DistroUnknown:
		return 0
	case cdr.Humble:
		return gidHumble
	default:
		return gidIron
	}
}

// later is what is assumed of a peer that has shown to be of Iron or later: what differs among these is only fields that
// were added at the end, which older ones leave alone.
const later = cdr.Jazzy

func (g *graph) stop() {
	close(g.quit)
	g.wg.Wait()
}

// publish shows our nodes whenever they change, once the layout is known. It is a goroutine of its own so that nobody
// who makes an endpoint waits for the wire.
func (g *graph) publish() {
	for {
		select {
		case <-g.quit:
			return
		case <-g.kick:
		}
		g.mu.RLock()
		e, gidLen := entities{participant: g.p.GUID(), nodes: slices.Clone(g.ours)}, g.gidLen
		var payload []byte
		if gidLen != 0 {
			payload = e.marshal(gidLen)
		}
		g.mu.RUnlock()
		if payload == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if _, err := g.writer.Write(ctx, payload, nil); err != nil {
			g.log.Warn("our nodes could not be shown to the others", "error", err)
		}
		cancel()
	}
}

func (g *graph) again() {
	select {
	case g.kick <- struct{}{}:
	default: // it has not begun with the last one yet
	}
}

// hear takes one participant's nodes.
func (g *graph) hear(s *rtps.Sample) {
	if len(s.Payload) > maxEntities {
		g.log.Warn("a peer shows more nodes than are looked at", "peer", s.Writer.Prefix(), "bytes", len(s.Payload), "limit", maxEntities)
		return
	}
	e, gidLen, err := parseEntities(s.Payload)
	prefix := s.Writer.Prefix()
	if err != nil {
		g.log.Warn("a peer shows its nodes in a way that is not understood", "peer", prefix, "error", err)
		return
	}
	if e.participant.Prefix() != prefix {
		g.log.Debug("a peer shows nodes of another", "peer", prefix, "of", e.participant.Prefix())
		return
	}
	if _, known := g.p.Peer(prefix); !known {
		return // it has left while this waited
	}
	g.mu.Lock()
	g.theirs[prefix] = e
	switch gidLen {
	case gidHumble:
		g.learn(prefix, cdr.Humble)
	case gidIron:
		g.learn(prefix, later)
	}
	g.mu.Unlock()
	g.changed()
}

// learn takes a peer's distribution for known; the first one that is seen is taken for the graph's. Holds mu.
func (g *graph) learn(prefix rtps.GUIDPrefix, d cdr.Distro) {
	g.peers[prefix] = d
	if g.is == cdr.DistroUnknown {
		g.is, g.gidLen = d, gidOf(d)
		g.log.Info("the distribution of the graph was learnt", "distro", distroName(d, false), "peer", prefix)
		g.again()
	}
	if gidOf(d) != g.gidLen && g.clash == "" {
		g.clash = "participant " + prefix.String() + " is of ROS 2 " + distroName(d, false) + ", this graph is taken for " + distroName(g.is, g.set) +
			": they cannot see each other's nodes, and a Humble program may fail on the other's; keep them in different domains"
		g.log.Warn("two distributions that do not understand each other's graph are in one domain", "peer", prefix)
	}
}

func distroName(d cdr.Distro, exact bool) string {
	if d == later && !exact {
		return "iron or later"
	}
	return d.String()
}

// event takes what discovery says.
func (g *graph) event(e rtps.Event) {
	switch e.Kind {
	case rtps.EndpointFound:
		if userData(e.Endpoint.UserData, "typehash") != "" {
			prefix := e.Endpoint.GUID.Prefix()
			g.mu.Lock()
			if _, known := g.peers[prefix]; !known {
				g.learn(prefix, later)
			}
			g.mu.Unlock()
		}
	case rtps.PeerLost:
		g.mu.Lock()
		delete(g.theirs, e.Peer.Prefix)
		delete(g.peers, e.Peer.Prefix)
		g.mu.Unlock()
	default:
	}
}

func (g *graph) distro() cdr.Distro {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.is
}

// of is the distribution of a peer; the graph's when it has not shown its own, or when the operator has named one of
// the same family, which is more exact.
func (g *graph) of(prefix rtps.GUIDPrefix) cdr.Distro {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if d, ok := g.peers[prefix]; ok && gidOf(d) != gidOf(g.is) {
		return d
	}
	return g.is
}

// add shows a node.
func (g *graph) add(namespace, name string) {
	g.mu.Lock()
	g.ours = append(g.ours, nodeEntities{namespace: namespace, name: name})
	g.mu.Unlock()
	g.again()
}

// remove hides a node.
func (g *graph) remove(namespace, name string) {
	g.mu.Lock()
	if i := g.index(namespace, name); i >= 0 {
		g.ours = slices.Delete(slices.Clone(g.ours), i, i+1)
	}
	g.mu.Unlock()
	g.again()
}

func (g *graph) index(namespace, name string) int {
	return slices.IndexFunc(g.ours, func(n nodeEntities) bool { return n.namespace == namespace && n.name == name })
}

// endpoint adds an endpoint to one of our nodes, or takes it away.
func (g *graph) endpoint(n *Node, e rtps.Endpoint, there bool) {
	g.mu.Lock()
	if there {
		g.mine[e.GUID] = e
	} else {
		delete(g.mine, e.GUID)
		delete(g.hashes, e.GUID)
	}
	if i := g.index(n.namespace, n.name); i >= 0 {
		o := g.ours[i]
		list := &o.readers
		if e.Writer {
			list = &o.writers
		}
		if there {
			*list = append(slices.Clone(*list), e.GUID)
		} else {
			*list = slices.DeleteFunc(slices.Clone(*list), func(x rtps.GUID) bool { return x == e.GUID })
		}
		g.ours = slices.Clone(g.ours)
		g.ours[i] = o
	}
	g.mu.Unlock()
	g.again()
	g.changed()
}

// means notes the definition that an endpoint of ours reads or writes by.
func (g *graph) means(ours rtps.GUID, hash string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, there := g.mine[ours]; there {
		g.hashes[ours] = hash
	}
}

// differences are sentences about others' endpoints on topics of ours whose type has the same name and another definition:
// DDS matches them by the name. Humble does not say which definition it has. Holds mu.
func (g *graph) differences(all []rtps.Endpoint, owner map[rtps.GUID]string) (out []string) {
	type use struct {
		topic, typ string
		writer     bool
	}
	ours := map[use]string{}
	for id, hash := range g.hashes {
		e := g.mine[id]
		ours[use{e.Topic, e.Type, e.Writer}] = hash
	}
	for _, e := range all {
		hash := ours[use{e.Topic, e.Type, !e.Writer}]
		theirs := userData(e.UserData, "typehash")
		if hash == "" || theirs == "" || hash == theirs || len(out) >= mostProblems {
			continue
		}
		what, who := "subscriber", owner[e.GUID]
		if e.Writer {
			what = "publisher"
		}
		if who == "" {
			who = hexGUID(e.GUID)
		}
		name, _ := strings.CutPrefix(e.Topic, topicPrefix)
		out = append(out, fmt.Sprintf("%s: the %s %s has another definition of %s than viad (%.20s there, %.20s here): values may be misread without an error; bring the robot's package and viad to one version of it",
			name, what, who, rosType(e.Type), theirs, hash))
	}
	return out
}
