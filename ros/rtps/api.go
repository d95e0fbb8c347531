package rtps

import (
	"log/slog"
	"net/netip"
	"time"
)

// GUIDPrefix names a participant; its first two bytes are usually the vendor's.
type GUIDPrefix [12]byte

// EntityID names an endpoint within its participant; its last byte is the kind.
type EntityID [4]byte

// GUID names an endpoint in the domain: prefix, then entity id, in the order of the wire.
type GUID [16]byte

// VendorID is who wrote a participant.
type VendorID [2]byte

// SampleIdentity names one sample: who wrote it, and the how-manieth it was (from 1; SeqUnknown when not known).
type SampleIdentity struct {
	Writer GUID
	Seq    int64
}

// SeqUnknown is the sequence number of no sample: high word -1, low word 0.
const SeqUnknown int64 = -1 << 32

// QoS are the policies of an endpoint that decide who talks to whom and what is kept.
type QoS struct {
	Reliable       bool
	TransientLocal bool          // late joiners get what is kept
	KeepAll        bool          // nothing is dropped: a writer waits, a reader holds back its acknowledgement
	Depth          int           // samples kept when not KeepAll; at least 1
	Deadline       time.Duration // 0 is infinite
	Lifespan       time.Duration // of a writer's samples; 0 is infinite
	Lease          time.Duration // liveliness, automatic; 0 is infinite
}

// Config is how a participant takes part.
type Config struct {
	Domain      int                 // 0..232
	Interfaces  []string            // names or addresses of network interfaces; none is all that are up
	Localhost   bool                // this host alone, as ROS_LOCALHOST_ONLY=1
	Peers       []string            // static peers, "host" or "host:port"; every participant index of a host is asked
	NoMulticast bool                // announce to Peers only
	Name        string              // participant's name, for people
	UserData    []byte              // announced with the participant: "enclave=/;"
	Announce    time.Duration       // period of announcements; 0 is 3 s
	Lease       time.Duration       // how long we are believed alive without one; 0 is 20 s
	Fragment    int                 // largest piece of a sample in one datagram, bytes; 0 is 1344 off loopback, 60000 on it
	Limits      Limits              // bounds of what strangers can make us keep; zero fields have defaults
	Wire        func(Datagram) bool // for tests: false drops the datagram; nil keeps all
	Log         *slog.Logger

	prefix GUIDPrefix // of a participant that always has the same; zero is a random one
}

// Limits bound the memory that the network can make a participant use.
type Limits struct {
	Peers          int // participants known at a time; 0 is 512
	Endpoints      int // endpoints of one participant; 0 is 4096
	Sample         int // bytes of one sample; 0 is 64 MiB
	Reassembly     int // bytes of unfinished samples from one participant; 0 is 128 MiB
	Unacknowledged int // bytes that a writer keeps for slow reliable readers; 0 is 128 MiB
}

// Datagram is one UDP packet on its way.
type Datagram struct {
	Out  bool // we send it
	Addr netip.AddrPort
	Data []byte
}

// Sample is one sample read. Payload begins with its CDR header; it belongs to the reader's function only until that
// returns, unless Keep is called.
type Sample struct {
	Payload  []byte
	Writer   GUID
	Seq      int64
	Source   time.Time // when the writer says that it was written; zero when it does not say
	Received time.Time // when it was complete here
	Related  *SampleIdentity

	identity SampleIdentity // what Related points to
	buf      *buffer
	kept     bool
	reserved int // bytes of the peer's budget that it takes, until it is delivered
	peer     *peer
	gone     bool // the end of an instance
	keyed    bool
	key      GUID
}

// Peer is another participant as it announces itself.
type Peer struct {
	Prefix   GUIDPrefix
	Vendor   VendorID
	Name     string
	UserData []byte
	Addrs    []netip.AddrPort // where it wants its traffic
	Seen     time.Time        // last sign of life
	Lease    time.Duration
}

// Endpoint is another participant's reader or writer as it announces it.
type Endpoint struct {
	GUID     GUID
	Writer   bool
	Topic    string // with ROS's prefix: "rt/joint_states"
	Type     string // "sensor_msgs::msg::dds_::JointState_"
	QoS      QoS
	UserData []byte
}

// Mismatch is a pair of endpoints of one topic that will never talk, and why.
type Mismatch struct {
	Topic  string
	Ours   GUID
	Theirs GUID
	Policy string // "reliability", "durability", "deadline", "liveliness", "type"
	Why    string // a sentence: what ours asks, what theirs offers, which to change
}

// EventKind is what happened in discovery.
type EventKind uint8

// What can happen.
const (
	PeerFound EventKind = iota
	PeerLost
	EndpointFound
	EndpointLost
	Matched
	Unmatched
	Mismatched
)

// Event is one change of what is known of the others. Ours is set for Matched, Unmatched and Mismatched.
type Event struct {
	Kind     EventKind
	Peer     Peer
	Endpoint Endpoint
	Ours     GUID
	Mismatch Mismatch
}

// WriterConfig is a writer to be made.
type WriterConfig struct {
	Topic, Type string
	QoS         QoS
	UserData    []byte
}

// ReaderConfig is a reader to be made. Queue is how many samples wait for the function; 0 is Depth, and without bound
// it is never: a best effort or keep-last reader drops its oldest, a KeepAll reader holds back acknowledgement.
type ReaderConfig struct {
	Topic, Type string
	QoS         QoS
	UserData    []byte
	Queue       int
}
