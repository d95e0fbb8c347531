package dds

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"viad/ros"
	"viad/ros/rtps"
)

// The prefixes by which ROS 2 tells its DDS topics apart.
const (
	topicPrefix   = "rt"
	requestPrefix = "rq"
	replyPrefix   = "rr"

	discoveryTopic = "ros_discovery_info" // has no prefix
	discoveryType  = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_"
)

// ddsType is how a ROS 2 type is called on the wire: sensor_msgs/msg/Image is sensor_msgs::msg::dds_::Image_.
func ddsType(ros string) (string, error) {
	f := strings.Split(ros, "/")
	if len(f) != 3 || f[0] == "" || f[1] == "" || f[2] == "" {
		return "", fmt.Errorf("%q is not a ROS 2 type; one looks like sensor_msgs/msg/Image", ros)
	}
	return f[0] + "::" + f[1] + "::dds_::" + f[2] + "_", nil
}

// rosType is ddsType backwards; what is no ROS type stays as it is.
func rosType(dds string) string {
	f := strings.Split(dds, "::")
	if len(f) != 4 || f[2] != "dds_" || !strings.HasSuffix(f[3], "_") {
		return dds
	}
	return f[0] + "/" + f[1] + "/" + strings.TrimSuffix(f[3], "_")
}

// checkName refuses what is no absolute ROS name: tokens of letters, digits and underscores that begin with no digit.
func checkName(name string) error {
	bad := func(why string) error {
		return fmt.Errorf("the name %.80q %s; an absolute ROS name looks like /arm/joint_states", name, why)
	}
	if !strings.HasPrefix(name, "/") {
		return bad("does not begin with a slash")
	}
	if len(name) > 240 {
		return bad(fmt.Sprintf("has %d characters, more than 240", len(name)))
	}
	for token := range strings.SplitSeq(name[1:], "/") {
		if token == "" {
			return bad("has an empty part")
		}
		if token[0] >= '0' && token[0] <= '9' {
			return bad("has a part that begins with a digit")
		}
		for _, r := range token {
			if r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
				return bad(fmt.Sprintf("has the character %q", r))
			}
		}
	}
	return nil
}

// base is a type's name without one of the endings.
func base(typ string, endings ...string) (string, error) {
	for _, e := range endings {
		if b, ok := strings.CutSuffix(typ, e); ok {
			return b, nil
		}
	}
	return "", fmt.Errorf("the type %s should end in %s", typ, strings.Join(endings, " or "))
}

// half says what a DDS topic is the half of: "/runstop" for rq/runstopRequest.
func half(topic, prefix, ending string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(topic, prefix+"/")
	if !ok {
		return "", false
	}
	rest, ok = strings.CutSuffix(rest, ending)
	return "/" + rest, ok
}

// userData finds a value in "key=value;key=value;".
func userData(data []byte, key string) string {
	for part := range strings.SplitSeq(strings.TrimRight(string(data), "\x00"), ";") {
		if k, v, ok := strings.Cut(part, "="); ok && k == key {
			return v
		}
	}
	return ""
}

// dotted is how Cyclone's middleware writes the id that ties the two halves of a service together.
func dotted(id [16]byte) string {
	var b strings.Builder
	for i, x := range id {
		if i > 0 {
			b.WriteByte('.')
		}
		fmt.Fprintf(&b, "%x", x)
	}
	return b.String()
}

// hexGUID is a GUID as it is shown to people: 32 hex digits.
func hexGUID(g rtps.GUID) string { return hex.EncodeToString(g[:]) }

// toWire are the policies of an endpoint.
func toWire(q ros.QoS) rtps.QoS {
	depth := q.Depth
	if depth <= 0 {
		depth = 10
	}
	return rtps.QoS{Reliable: q.Reliable, TransientLocal: q.Transient, KeepAll: q.KeepAll, Depth: depth, Deadline: q.Deadline}
}

// fromWire is toWire backwards.
func fromWire(q rtps.QoS) ros.QoS {
	return ros.QoS{Reliable: q.Reliable, Transient: q.TransientLocal, KeepAll: q.KeepAll, Depth: q.Depth, Deadline: q.Deadline}
}

// serviceQoS is rmw's profile for services: reliable and volatile. History is our own affair; a burst of calls must not
// push out what has not arrived yet.
var serviceQoS = rtps.QoS{Reliable: true, Depth: 1000}

// requestLife is how long a request may be on its way. What could not be brought to its server by then was asked for in
// another situation: a goal, or a stop, that comes when a link is back would act on a robot that nobody looks at.
const requestLife = time.Second

// ackTime is how much longer the news that a request was delivered may take.
const ackTime = 500 * time.Millisecond

// requestQoS is that of a client's requests.
func requestQoS() rtps.QoS {
	q := serviceQoS
	q.Lifespan = requestLife
	return q
}
