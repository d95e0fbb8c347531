package interop

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/sensor_msgs"
)

// Contest has one Fast DDS publisher in C++ send pictures to two subscribers at once, ours and a Fast DDS one in C++, both
// reliable and both without looking at the pixels.
type Contest struct {
	Side   Side
	Domain int
	Rate   float64 // per second
	Count  int
	First  bool // ours is there before theirs, and is served first
	// Begin and End are called with our first and last sample, for a profile; they may be nil.
	Begin, End func()
}

// Run says what both saw: latency from before the publisher's write to the decoded message, and the CPU time of the whole
// process between its first and its last picture.
func (c Contest) Run(ctx context.Context) (ours, theirs Event, err error) {
	f := Flow{Kind: Image(), Topic: "image", QoS: ros.QoS{Reliable: true, Depth: 100}, Size: ImageSize, Count: c.Count, Rate: c.Rate}
	args := append(f.Args(), "verify=0")
	subscribe := func() (*Peer, error) {
		p, err := Start(ctx, Setup{Vendor: FastDDS, Mode: "subscribe", Domain: c.Domain, Args: args})
		if err == nil {
			_, err = p.Event(ctx, "ready")
		}
		return p, err
	}
	pub, err := Start(ctx, Setup{Vendor: FastDDS, Mode: "publish", Domain: c.Domain, Args: append(args, "wait=2", "settle=500")})
	if err != nil {
		return ours, theirs, err
	}
	defer func() { err = errors.Join(err, pub.Close()) }()
	matched := func(n int) error {
		_, err := pub.Await(ctx, func(e Event) bool { return e.Ev == "matched" && e.Count == n })
		return err
	}
	var sub *Peer
	if !c.First {
		if sub, err = subscribe(); err != nil {
			return ours, theirs, err
		}
		if err := matched(1); err != nil {
			return ours, theirs, err
		}
	}
	r := newRunner(c)
	s, err := c.Side.Subscribe(f.Kind, f.Topic, f.QoS, r.take)
	if err != nil {
		return ours, theirs, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if c.First {
		if err := matched(1); err != nil {
			return ours, theirs, err
		}
		if sub, err = subscribe(); err != nil {
			return ours, theirs, err
		}
	}
	defer func() { err = errors.Join(err, sub.Close()) }()
	select {
	case <-r.tally.Full():
	case <-ctx.Done():
		return ours, theirs, fmt.Errorf("%d of %d pictures came: %w", r.tally.Report().N, c.Count, ctx.Err())
	}
	ours = r.tally.Report()
	ours.CPU = (r.to - r.from).Seconds()
	theirs, err = sub.Event(ctx, "report")
	return ours, theirs, err
}

// runner is our subscriber in a contest.
type runner struct {
	Contest

	tally    *Tally
	kind     Kind
	from, to time.Duration
	n        int
}

func newRunner(c Contest) *runner {
	r := &runner{Contest: c, tally: NewTally(c.Count)}
	r.kind.Check = func(m msg.Message, size int) (int64, time.Time, bool) {
		im := m.(*sensor_msgs.Image)
		seq, at, ok := readHeader(&im.Header)
		return seq, at, ok && len(im.Data) == size && im.Encoding == "rgb8"
	}
	return r
}

func (r *runner) take(m msg.Message) {
	if r.n++; r.n == 1 {
		if r.Begin != nil {
			r.Begin()
		}
		r.from = cpuTime()
	}
	if r.n == r.Count {
		r.to = cpuTime()
		if r.End != nil {
			r.End()
		}
	}
	r.tally.Add(r.kind, m, ImageSize)
}

// cpuTime is what this process has used, user and system.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // it cannot fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
