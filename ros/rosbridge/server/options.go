package server

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
)

// Options says what the server stands in front of.
type Options struct {
	Node   ros.Node
	Types  func(typeName string) (msg.Message, bool) // an empty message of a type, "std_srvs/srv/Trigger_Request"
	Distro cdr.Distro                                // for cbor-raw, and what rosapi says
	TLS    *tls.Config                               // nil is no TLS
	Log    *slog.Logger
	// Trace hears every frame that a client sends; nil is nobody. It must not block.
	Trace func(frame []byte)
	// Depth is how many messages of a topic are kept for a slow client, if it asks for no more; rosbridge_suite has 10.
	Depth int
	// MaxIn bounds a frame from a client; rosbridge_suite has 10 MB.
	MaxIn int
	Caveats
}

// Caveats are the ways of real servers that are dangerous to a client that does not know them.
type Caveats struct {
	// GoalsOutliveSocket lets goals run on when the socket closes that sent them (all versions so far).
	GoalsOutliveSocket bool
	// CancelOnlyOwn lets a socket cancel by id only what it sent itself.
	CancelOnlyOwn bool
	// GoalsBlock runs a goal in the thread that reads the socket: everything after it waits (the default until 2025).
	GoalsBlock bool
	// ServicesBlock calls services in the thread that reads the socket.
	ServicesBlock bool
	// RejectedHangs gives no result for a goal that was refused.
	RejectedHangs bool
	// MissingHangs takes a goal for an action that nobody serves, and says nothing for ever.
	MissingHangs bool
	// EarlyCancelLost drops a cancel that comes before the goal was accepted.
	EarlyCancelLost bool
	// CancelIgnored drops every cancel by id.
	CancelIgnored bool
	// NoStatus leaves the status out of the result of a cancelled goal.
	NoStatus bool
	// WrongIDs answers with ids that nobody gave.
	WrongIDs bool
	// ServiceTimeout ends calls that take longer, unless the call says how long it may take; 0 waits for ever.
	ServiceTimeout time.Duration
	// DeafToLater makes a subscription hear only publishers that were there when it was made; without any it is best effort.
	DeafToLater bool
	// FirstEncoding serves a topic to nobody who asks for raw when the first subscriber did not, and the reverse.
	FirstEncoding bool
	// FillStamps fills in an omitted stamp of a published header with the robot's clock; all versions do.
	FillStamps bool
	// NoActions knows no operations for actions (before 2.0).
	NoActions bool
	// NoRosapi has no rosapi beside it.
	NoRosapi bool
	// BareNaN writes NaN and Infinity into JSON, as Python does by itself, instead of null.
	BareNaN bool
	// StatusWords sends status operations; newer versions only log.
	StatusWords bool
}

// Old are the ways of rosbridge_suite as it stood in 2024.
func Old() Caveats {
	return Caveats{
		GoalsOutliveSocket: true, GoalsBlock: true, ServicesBlock: true, RejectedHangs: true, MissingHangs: true,
		EarlyCancelLost: true, NoStatus: true, DeafToLater: true, FirstEncoding: true, FillStamps: true,
	}
}

// New are the ways of rosbridge_suite as it stood in 2026.
func New() Caveats {
	return Caveats{GoalsOutliveSocket: true, DeafToLater: true, FirstEncoding: true, FillStamps: true, ServiceTimeout: 5 * time.Second}
}

func (o *Options) defaults() error {
	if o.Node == nil || o.Types == nil {
		return errors.New("rosbridge server: Node and Types must be set")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Depth <= 0 {
		o.Depth = 10
	}
	if o.MaxIn <= 0 {
		o.MaxIn = 10_000_000
	}
	return nil
}
