package rosbridge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"viad/ros/cdr"
)

// Encoding is how messages of a topic come. What is sent is JSON always: rosbridge takes nothing else.
type Encoding uint8

// The encodings.
const (
	// Auto is CBORRaw for pictures, clouds, scans and maps, JSON for the rest; a topic that stays silent although somebody
	// publishes it is asked for in the other one (a rosbridge node has one subscriber for all its clients, and serves raw
	// messages only if the first of them asked for raw).
	Auto Encoding = iota
	// JSON carries no NaN and no Inf.
	JSON
	// CBOR carries everything, but servers fail on messages with arrays of fixed length (covariances).
	CBOR
	// CBORRaw carries the message as the wire of DDS has it.
	CBORRaw
)

// String is the name that the protocol has for it.
func (e Encoding) String() string {
	switch e {
	case JSON:
		return "none"
	case CBOR:
		return "cbor"
	case CBORRaw:
		return "cbor-raw"
	default:
		return "auto"
	}
}

// Config says where the server is and what is asked of it. Zero values are the defaults.
type Config struct {
	URL    string      // ws://robot:9090 or wss://robot:9090
	TLS    *tls.Config // for wss; nil trusts the system's roots
	Header http.Header // of the handshake, for a proxy in between
	Node   string      // our name; rosbridge shows its own in the graph. "/viad"
	Distro cdr.Distro  // of the robot; unknown: /rosapi/get_ros_version is asked
	Log    *slog.Logger

	// Urgent names the services and topics that travel on the second socket, which nothing else can hold up: stop services,
	// velocity commands.
	Urgent []string
	// Encodings chooses the encoding of topics by name.
	Encodings map[string]Encoding
	// Throttle is the least time between two messages of a topic, by name; the server drops the ones between.
	Throttle map[string]time.Duration
	// FragmentSize asks the server to cut its frames to so many bytes; 0 is not at all.
	FragmentSize int

	MaxIn  int // bytes of a frame or of reassembled fragments that come: 32 MiB
	MaxOut int // bytes of a frame that goes: 8 MiB; tornado closes the socket at 10 MB

	HandshakeTimeout time.Duration // of one connection: 5 s
	PingEvery        time.Duration // 2 s; a dead link is noticed within PingEvery+PingTimeout
	PingTimeout      time.Duration // 3 s
	WriteTimeout     time.Duration // of one frame: 5 s
	RetryMin         time.Duration // between connections: 250 ms, doubled
	RetryMax         time.Duration // up to 5 s
	AcceptTimeout    time.Duration // for the first sign of a goal: 5 s
	CancelEvery      time.Duration // a cancel is repeated: 500 ms
	CancelFor        time.Duration // for a goal that nobody waits for any more: 10 s
	Watch            time.Duration // whether the server of a pending call or goal is still there: 1 s
	Silent           time.Duration // a topic that has publishers and says nothing is subscribed again: 2 s, doubled up to 32 s

	// Dial makes the connection under the websocket, for a tunnel; nil is TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (c Config) withDefaults() (Config, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return c, fmt.Errorf("rosbridge: the address %q: %w", c.URL, err)
	}
	if (u.Scheme != "ws" && u.Scheme != "wss") || u.Host == "" {
		return c, fmt.Errorf("rosbridge: the address %q is not ws://host:port or wss://host:port", c.URL)
	}
	if c.TLS != nil && u.Scheme != "wss" {
		return c, errors.New("rosbridge: TLS is set and the address is ws://; write wss:// or leave TLS out")
	}
	if c.Node == "" {
		c.Node = "/viad"
	}
	if !strings.HasPrefix(c.Node, "/") {
		c.Node = "/" + c.Node
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	fill(&c.MaxIn, 32<<20)
	fill(&c.MaxOut, 8<<20)
	fill(&c.HandshakeTimeout, 5*time.Second)
	fill(&c.PingEvery, 2*time.Second)
	fill(&c.PingTimeout, 3*time.Second)
	fill(&c.WriteTimeout, 5*time.Second)
	fill(&c.RetryMin, 250*time.Millisecond)
	fill(&c.RetryMax, 5*time.Second)
	fill(&c.AcceptTimeout, 5*time.Second)
	fill(&c.CancelEvery, 500*time.Millisecond)
	fill(&c.CancelFor, 10*time.Second)
	fill(&c.Watch, time.Second)
	fill(&c.Silent, 2*time.Second)
	return c, nil
}

func fill[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// bulky are the types that JSON is too slow for, or whose numbers it cannot write.
func bulky(typ string) bool {
	switch typ {
	case "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage", "sensor_msgs/msg/PointCloud2",
		"sensor_msgs/msg/LaserScan", "nav_msgs/msg/OccupancyGrid":
		return true
	}
	return false
}
