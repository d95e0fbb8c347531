package launch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"viad/ros"
	"viad/ros/dds"
	"viad/ros/msg"
	"viad/ros/msg/all"
	"viad/ros/msg/rosgraph_msgs"
)

type rosDoctor struct {
	rosFlags
	Listen time.Duration `default:"1s" help:"How long to listen for samples, to compare clocks."`
}

// doctorReport is what the doctor says; as JSON it is printed as it is.
type doctorReport struct {
	Wire       string        `json:"wire"`
	Domain     int           `json:"domain"`
	Localhost  bool          `json:"localhost"`
	Peers      []peerJSON    `json:"peers"`
	Interfaces []string      `json:"interfaces"`
	Ports      string        `json:"ports"`
	Distro     string        `json:"distro"`
	Nodes      []string      `json:"nodes"`
	Topics     int           `json:"topics"`
	Services   int           `json:"services"`
	Actions    int           `json:"actions"`
	Clocks     []clockOffset `json:"clocks"`
	SimTime    string        `json:"sim_time,omitempty"`
	Problems   []string      `json:"problems"`

	deaf []string // what could not be listened to
}

type peerJSON struct {
	GUID   string   `json:"guid"`
	Vendor string   `json:"vendor"`
	Distro string   `json:"distro"`
	Nodes  []string `json:"nodes"`
	Addrs  []string `json:"addresses"`
}

// clockOffset is how much later samples came than their writer says it sent them: the difference of the clocks, and the
// way. The least of them has the least way in it.
type clockOffset struct {
	Peer    string  `json:"peer"`
	Seconds float64 `json:"offset_s"` // ours minus theirs
	Samples int     `json:"samples"`
}

// Run reports.
func (c *rosDoctor) Run(ctx context.Context, s streams) error {
	if c.Listen < 0 {
		return usageError{fmt.Errorf("--listen is %v; it is 0, to listen to nothing, or longer", c.Listen)}
	}
	return c.with(ctx, &s, func(ctx context.Context, n ros.Node) error {
		g, err := c.look(ctx, n, nil)
		if err != nil {
			return err
		}
		r := c.report(n, g)
		if err := c.listen(ctx, n, g, r); err != nil {
			return err
		}
		if g, err = n.Graph(ctx); err != nil { // listening has shown what does not suit ours
			return err
		}
		r.Problems = append(c.troubles(g, r), g.Problems...)
		if c.JSON {
			err = printJSON(s.out, r)
		} else {
			err = r.print(s)
		}
		return errors.Join(err, c.verdict(g, r))
	})
}

// verdict makes the exit code tell that something is wrong; what to do has been printed.
func (c *rosDoctor) verdict(g ros.Graph, r *doctorReport) error {
	switch {
	case c.Wire == "dds" && len(g.Peers) == 0:
		return fmt.Errorf("nobody else was found in domain %d", c.Domain)
	case len(r.Problems) > 0:
		return fmt.Errorf("%s found; the report names each", counted(len(r.Problems), "problem was", "problems were"))
	}
	return nil
}

// counted is a number with the word that fits it.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (c *rosDoctor) report(n ros.Node, g ros.Graph) *doctorReport {
	base := 7400 + 250*c.Domain
	r := &doctorReport{
		Wire: n.Wire(), Domain: c.Domain, Localhost: c.Localhost, Nodes: g.Nodes, Topics: len(g.Topics), Services: len(g.Services), Actions: len(g.Actions),
		Ports: fmt.Sprintf("UDP %d (multicast 239.255.0.1), %d and up (unicast)", base, base+10), Distro: "not known", Peers: []peerJSON{}, Clocks: []clockOffset{},
	}
	for _, p := range g.Peers {
		r.Peers = append(r.Peers, peerJSON{p.GUID, p.Vendor, p.Distro, p.Nodes, p.Addrs})
	}
	if d, ok := n.(*dds.Node); ok {
		if v := d.Domain().Distro(); v != 0 {
			r.Distro = v.String() + " (given)"
			if c.Distro == "" {
				r.Distro = "learnt from peers: " + distroWord(r.Peers, v.String())
			}
		}
	}
	r.Interfaces = c.interfaces()
	return r
}

// distroWord is how the peers' distribution is told: what they show is coarser than what the codec takes.
func distroWord(peers []peerJSON, otherwise string) string {
	for _, p := range peers {
		if p.Distro != "" {
			return p.Distro
		}
	}
	return otherwise
}

// interfaces are those that packets go over.
func (c *rosDoctor) interfaces() (out []string) {
	list, err := net.Interfaces()
	if err != nil {
		return []string{err.Error()}
	}
	for _, i := range list {
		if i.Flags&net.FlagUp == 0 || c.Localhost && i.Flags&net.FlagLoopback == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		var v4 []string
		chosen := len(c.Interface) == 0 || slices.Contains(c.Interface, i.Name)
		for _, a := range addrs {
			if p, ok := a.(*net.IPNet); ok && p.IP.To4() != nil {
				v4 = append(v4, p.String())
				chosen = chosen || slices.Contains(c.Interface, p.IP.String())
			}
		}
		if !chosen || len(v4) == 0 {
			continue
		}
		words := i.Name + " " + strings.Join(v4, " ")
		if i.Flags&net.FlagMulticast == 0 && i.Flags&net.FlagLoopback == 0 {
			words += " (no multicast)"
		}
		out = append(out, words)
	}
	return out
}

// Bounds of the topics that are listened to: small ones tell as much as big ones.
const (
	mostListened = 12
	mostBig      = 2
)

func big(t ros.TopicInfo) bool {
	return strings.HasSuffix(t.Type, "/Image") || strings.HasSuffix(t.Type, "/PointCloud2")
}

// smallFirst are the topics, those with big messages last.
func smallFirst(topics []ros.TopicInfo) []ros.TopicInfo {
	out := slices.Clone(topics)
	slices.SortStableFunc(out, func(a, b ros.TopicInfo) int {
		switch {
		case big(a) == big(b):
			return 0
		case big(a):
			return 1
		}
		return -1
	})
	return out
}

// listen compares clocks by the source timestamps of samples, and looks for /clock.
func (c *rosDoctor) listen(ctx context.Context, n ros.Node, g ros.Graph, r *doctorReport) error {
	if n.Wire() != "dds" || c.Listen <= 0 {
		return nil
	}
	var mu sync.Mutex
	least := map[string]*clockOffset{}
	listened := 0
	for _, t := range smallFirst(g.Topics) {
		if len(t.Publishers) == 0 || listened >= mostListened || big(t) && listened >= mostBig {
			continue
		}
		listened++
		clock := t.Type == "rosgraph_msgs/msg/Clock"
		_, err := n.Subscribe(ros.Topic{Name: t.Name, QoS: ros.SensorData(), New: func() msg.Message {
			if m, ok := all.New(t.Type); ok {
				return m
			}
			return opaque(t.Type)
		}}, func(in ros.Incoming) {
			i := in.Info()
			mu.Lock()
			defer mu.Unlock()
			var m rosgraph_msgs.Clock
			if clock && in.Decode(&m) == nil {
				r.SimTime = fmt.Sprintf("%s says %d.%03d s", t.Name, m.Clock.Sec, m.Clock.Nanosec/1e6)
			}
			if i.Source.IsZero() || len(i.Publisher) < 24 {
				return
			}
			peer, off := i.Publisher[:24], i.Received.Sub(i.Source).Seconds()
			o := least[peer]
			if o == nil {
				o = &clockOffset{Peer: peer, Seconds: off}
				least[peer] = o
			}
			o.Samples++
			o.Seconds = min(o.Seconds, off)
		})
		if err != nil { // the names are others'
			r.deaf = append(r.deaf, fmt.Sprintf("nothing can be read from one of the topics: %v", err))
		}
	}
	if listened > 0 {
		t := time.NewTimer(c.Listen)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(least)) {
		r.Clocks = append(r.Clocks, *least[k])
	}
	return nil
}

// clockWrong is how far apart two clocks may be before time-stamped data is useless.
const clockWrong = 0.1

// troubles are what the report itself shows to be wrong.
func (c *rosDoctor) troubles(g ros.Graph, r *doctorReport) (out []string) {
	out = append([]string{}, r.deaf...)
	if c.Wire != "dds" {
		return out
	}
	switch {
	case len(r.Interfaces) == 0:
		out = append(out, "no network interface that is looked at is up and has an IPv4 address: nobody can be heard; look at them with ip address, bring one up or plug in the cable")
	case len(g.Peers) == 0 && !c.Localhost && len(r.Interfaces) == 1 && strings.HasPrefix(r.Interfaces[0], "lo "):
		out = append(out, "only the loopback interface is up: a robot on the network cannot be heard; look at the interfaces with ip address, bring one up or plug in the cable")
	}
	if len(g.Peers) == 0 {
		base := 7400 + 250*c.Domain
		if c.Localhost {
			out = append(out, "only this host is looked at (--localhost, ROS_LOCALHOST_ONLY): for a robot on the network leave it out")
		}
		out = append(out,
			fmt.Sprintf("nobody answers in domain %d: compare with ROS_DOMAIN_ID on the robot (echo $ROS_DOMAIN_ID there)", c.Domain),
			"a robot that runs with a discovery server, SROS2 or Zenoh, or on another host with ROS_LOCALHOST_ONLY=1, is not seen from here at all")
		if c.Localhost { // what stops packets between hosts does not stop these
			return out
		}
		out = append(out,
			fmt.Sprintf("multicast may not get through (Wi-Fi, VPN, containers): try --peer ROBOT_ADDRESS; if that finds it, multicast 239.255.0.1 port %d is what is blocked", base),
			fmt.Sprintf("a firewall on either side may stop it: UDP ports %d to %d must be open in both directions", base, base+249))
	}
	silent := 0
	for _, p := range g.Peers {
		if !c.hasEndpoints(g, p) {
			silent++
		}
	}
	if silent > 0 && len(g.Topics)+len(g.Services) == 0 {
		out = append(out, fmt.Sprintf("%s seen and none of their endpoints: their announcements (multicast) reach us and our unicast does not reach them, or theirs not us; a firewall that lets only some UDP ports through looks like this", counted(silent, "participant is", "participants are")))
	}
	for _, o := range r.Clocks {
		if o.Seconds > clockWrong || o.Seconds < -clockWrong {
			out = append(out, fmt.Sprintf("the clock of participant %s differs from ours by %+.3f s: data that is stamped there looks old or from the future here; synchronise both (chrony)", o.Peer, o.Seconds))
		}
	}
	if os.Getenv("ROS_DISCOVERY_SERVER") != "" {
		out = append(out, "ROS_DISCOVERY_SERVER is set: a discovery server is not supported, participants that use only it are not seen")
	}
	return out
}

func (c *rosDoctor) hasEndpoints(g ros.Graph, p ros.PeerInfo) bool {
	for _, t := range g.Topics {
		for _, e := range append(slices.Clone(t.Publishers), t.Subscribers...) {
			if strings.HasPrefix(e.GUID, p.GUID) {
				return true
			}
		}
	}
	return false
}

// print prints the report for people.
func (r *doctorReport) print(s streams) error {
	rows := [][]string{{"wire", r.Wire}}
	if r.Wire == "dds" {
		where := "the network"
		if r.Localhost {
			where = "this host alone"
		}
		rows = append(rows, [][]string{
			{"domain", strconv.Itoa(r.Domain) + ", " + where}, {"ports", r.Ports}, {"interfaces", strings.Join(r.Interfaces, ", ")}, {"distribution", r.Distro},
		}...)
	}
	rows = append(rows, []string{"graph", strings.Join([]string{
		counted(len(r.Nodes), "node", "nodes"), counted(r.Topics, "topic", "topics"), counted(r.Services, "service", "services"), counted(r.Actions, "action", "actions"),
	}, ", ")})
	if r.SimTime != "" {
		rows = append(rows, []string{"simulated time", r.SimTime})
	}
	if err := table(s.out, rows); err != nil {
		return err
	}
	if len(r.Peers) > 0 {
		clocks := map[string]string{}
		for _, o := range r.Clocks {
			clocks[o.Peer] = fmt.Sprintf("%+.3f s (%d samples)", o.Seconds, o.Samples)
		}
		rows = [][]string{{"PARTICIPANT", "MIDDLEWARE", "ROS 2", "NODES", "ADDRESSES", "OUR CLOCK MINUS THEIRS"}}
		for _, p := range r.Peers {
			clock := clocks[p.GUID]
			if clock == "" {
				clock = "nothing heard"
			}
			rows = append(rows, []string{p.GUID, p.Vendor, orDash(p.Distro), orDash(strings.Join(p.Nodes, " ")), strings.Join(p.Addrs, " "), clock})
		}
		if err := table(s.out, append([][]string{{}}, rows...)); err != nil {
			return err
		}
	}
	if len(r.Problems) == 0 {
		_, err := fmt.Fprintln(s.out, "\nno problem was found")
		return err
	}
	out := []string{"", "problems:"}
	for _, p := range r.Problems {
		out = append(out, "- "+p)
	}
	return lines(s.out, out)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
