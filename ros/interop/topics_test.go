package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"viad/ros"
)

// deep is reliable with a history for all of a short flow: with the default of 10, a busy machine that stops one side for a
// moment loses samples as it should.
func deep() ros.QoS { return ros.QoS{Reliable: true, Depth: 100} }

// flows are the four types at the sizes of a robot's, short.
func flows(q ros.QoS) []Flow {
	settle := time.Duration(0)
	if !q.Reliable {
		settle = 300 * time.Millisecond
	}
	return []Flow{
		{Kind: String(), Topic: "chatter", QoS: q, Size: 20, Count: 50, Rate: 200, Settle: settle},
		{Kind: Image(), Topic: "camera/image_raw", QoS: q, Size: ImageSize, Count: 20, Rate: 30, Settle: settle},
		{Kind: JointState(), Topic: "joint_states", QoS: q, Count: 50, Rate: 200, Settle: settle},
		{Kind: PointCloud2(), Topic: "points", QoS: q, Size: 16 * 10_000, Count: 20, Rate: 50, Settle: settle},
	}
}

// TestTopics sends and receives each type, reliable and best effort, to and from both vendors.
func TestTopics(t *testing.T) {
	for _, v := range Vendors {
		for _, q := range []struct {
			name string
			ros.QoS
		}{{"reliable", deep()}, {"best effort", ros.SensorData()}} {
			for _, f := range flows(q.QoS) {
				t.Run(fmt.Sprintf("%s/%s/%s", v, q.name, f.Kind.Name), func(t *testing.T) {
					d := domain(t)
					side := participant(t, d)
					t.Run("from", func(t *testing.T) { fromPeer(t, side, Setup{Vendor: v, Domain: d}, f) })
					t.Run("to", func(t *testing.T) { toPeer(t, side, Setup{Vendor: v, Domain: d}, f) })
				})
			}
		}
	}
}

// lossless says whether a flow arrived as its QoS promises. Of a best effort flow on one machine nearly all should come;
// the test asks for half, since a busy machine may drop.
func lossless(t *testing.T, what string, f Flow, e Event) {
	t.Helper()
	if f.QoS.Reliable {
		complete(t, what, e, f.Count)
		return
	}
	t.Logf("%s: %d of %d, latency p50 %.2f p99 %.2f max %.2f ms", what, e.N, f.Count, e.P50, e.P99, e.Max)
	if e.N < f.Count/2 || e.Corrupt != 0 || e.Twice != 0 || e.Disorder != 0 {
		t.Errorf("%s: %d of %d samples came, %d corrupt, %d out of order, %d twice", what, e.N, f.Count, e.Corrupt, e.Disorder, e.Twice)
	}
}

func fromPeer(t *testing.T, side Side, s Setup, f Flow) Event {
	ctx := budget(t, 20*time.Second+3*f.duration())
	tally, sub, err := Receive(side, f)
	must(t, err)
	defer func() { check(t, sub.Close()) }()
	s.Mode, s.Args = "publish", append(f.Args(), s.Args...)
	// Fast DDS asks for acknowledgements every three seconds: short forms do not wait for that.
	wait := s.Vendor != FastDDS || *long
	if !wait {
		s.Args = append(s.Args, "acktime=0")
	}
	p := peer(t, s)
	sent := event(ctx, t, p, "sent")
	arrived(ctx, tally, f)
	if sent.Failed != 0 || wait && !sent.Acked {
		t.Errorf("the publisher could not write %d samples; all acknowledged: %v", sent.Failed, sent.Acked)
	}
	lossless(t, "from "+string(s.Vendor), f, tally.Report())
	if missing := tally.Missing(f.Count); len(missing) > 0 {
		lost, dropped := sub.Missed()
		t.Logf("missing %v; the reader counts %d as lost and %d as dropped", missing, lost, dropped)
	}
	return tally.Report()
}

// arrived waits until all samples are there, or for best effort ones a moment.
func arrived(ctx context.Context, tally *Tally, f Flow) {
	patience := 5 * time.Second
	if !f.QoS.Reliable {
		patience = 300 * time.Millisecond
	}
	select {
	case <-tally.Full():
	case <-time.After(patience):
	case <-ctx.Done():
	}
}

func toPeer(t *testing.T, side Side, s Setup, f Flow) Event {
	ctx := budget(t, 20*time.Second+3*f.duration())
	s.Mode, s.Args = "subscribe", append(f.Args(), s.Args...)
	p := peer(t, s)
	pub, err := Transmit(ctx, side, f, 1)
	must(t, err)
	e := reported(ctx, t, p, f)
	lossless(t, "to "+string(s.Vendor), f, e)
	check(t, pub.Close())
	return e
}

// reported is the subscriber's report; one that misses samples reports when it is closed.
func reported(ctx context.Context, t *testing.T, p *Peer, f Flow) Event {
	t.Helper()
	patience := 5 * time.Second
	if !f.QoS.Reliable {
		patience = 300 * time.Millisecond
	}
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if e, err := p.Event(first, "report"); err == nil {
		return e
	}
	check(t, p.Close())
	return event(ctx, t, p, "report")
}

func (f Flow) duration() time.Duration {
	if f.Rate == 0 {
		return 0
	}
	return time.Duration(float64(f.Count) / f.Rate * float64(time.Second))
}

// TestNodeTopics does the same through a ros.Node.
func TestNodeTopics(t *testing.T) {
	for _, v := range Vendors {
		for _, f := range flows(deep()) {
			t.Run(fmt.Sprintf("%s/%s", v, f.Kind.Name), func(t *testing.T) {
				d := domain(t)
				side := NodeSide{Node: node(t, d)}
				t.Run("from", func(t *testing.T) {
					fromPeer(t, side, Setup{Vendor: v, Domain: d, Args: []string{"gid=24", "node=robot"}}, f)
				})
				t.Run("to", func(t *testing.T) {
					toPeer(t, side, Setup{Vendor: v, Domain: d, Args: []string{"gid=24", "node=robot"}}, f)
				})
			})
		}
	}
}
