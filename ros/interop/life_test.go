package interop

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/rtps"
)

// TestLateJoiner has a reader come when all has been said, and get what is kept.
func TestLateJoiner(t *testing.T) {
	for _, v := range Vendors {
		for _, f := range []Flow{
			{Kind: String(), Topic: "robot_description", QoS: ros.QoS{Reliable: true, Transient: true, Depth: 5}, Size: 30_000, Count: 5},
			{Kind: Image(), Topic: "map", QoS: ros.Latched(), Size: ImageSize, Count: 1},
		} {
			t.Run(fmt.Sprintf("%s/%s", v, f.Kind.Name), func(t *testing.T) {
				d := domain(t)
				side := participant(t, d)
				t.Run("from", func(t *testing.T) {
					ctx := budget(t, 20*time.Second)
					p := peer(t, Setup{Vendor: v, Mode: "publish", Domain: d, Args: append(f.Args(), "wait=0")})
					event(ctx, t, p, "sent")
					tally, sub, err := Receive(side, f)
					must(t, err)
					defer func() { check(t, sub.Close()) }()
					arrived(ctx, tally, f)
					complete(t, "from "+string(v), tally.Report(), f.Count)
				})
				t.Run("to", func(t *testing.T) {
					ctx := budget(t, 20*time.Second)
					pub, err := Transmit(ctx, side, f, 0)
					must(t, err)
					defer func() { check(t, pub.Close()) }()
					p := peer(t, Setup{Vendor: v, Mode: "subscribe", Domain: d, Args: f.Args()})
					complete(t, "to "+string(v), reported(ctx, t, p, f), f.Count)
				})
			})
		}
	}
}

// restarts is how often a peer is killed.
func restarts() int {
	if *long {
		return 10
	}
	return 2
}

// TestKilledPublisher ends a publisher as a power cut does, and starts it again: data come again at once, and what is dead is
// forgotten when its lease ends.
func TestKilledPublisher(t *testing.T) {
	for _, v := range Vendors {
		t.Run(string(v), func(t *testing.T) {
			d := domain(t)
			side := participant(t, d)
			f := Flow{Kind: JointState(), Topic: "joint_states", QoS: ros.Default(), Count: 1 << 20, Rate: 200}
			came := make(chan struct{}, 1)
			sub, err := side.Subscribe(f.Kind, f.Topic, f.QoS, func(m msg.Message) {
				if _, _, whole := f.Kind.Check(m, f.Size); !whole {
					t.Error("a sample is corrupt")
				}
				select {
				case came <- struct{}{}:
				default:
				}
			})
			must(t, err)
			defer func() { check(t, sub.Close()) }()
			for i := range restarts() + 1 {
				ctx := budget(t, 20*time.Second)
				p := started(ctx, t, Setup{Vendor: v, Mode: "publish", Domain: d, Lease: 3, Args: f.Args()})
				began := time.Now()
				for range 20 {
					next(ctx, t, came)
				}
				t.Logf("life %d: 20 samples %v after the publisher was ready", i, time.Since(began).Round(time.Millisecond))
				must(t, p.Kill())
				drain(came)
			}
			quiet(t, side, sub)
		})
	}
}

func next(ctx context.Context, t *testing.T, came <-chan struct{}) {
	t.Helper()
	select {
	case <-came:
	case <-ctx.Done():
		t.Fatal("no samples")
	}
}

func drain(came <-chan struct{}) {
	for {
		select {
		case <-came:
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}

// quiet waits until the dead are forgotten.
func quiet(t *testing.T, side Wire, sub Subscription) {
	t.Helper()
	began := time.Now()
	changed := make(chan struct{}, 1)
	stop := side.Watch(func(rtps.Event) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
	for sub.Publishers() > 0 || len(side.Peers()) > 0 {
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Fatalf("%d publishers and %d participants are still there", sub.Publishers(), len(side.Peers()))
		}
	}
	t.Logf("forgotten %v later", time.Since(began).Round(time.Millisecond))
}

// TestKilledSubscriber ends a reliable subscriber in the same way. A publisher that keeps all waits for it until its lease
// ends, and then goes on with the next.
func TestKilledSubscriber(t *testing.T) {
	for _, v := range Vendors {
		t.Run(string(v), func(t *testing.T) {
			d := domain(t)
			side := participant(t, d)
			f := Flow{Kind: Image(), Topic: "image", QoS: ros.QoS{Reliable: true, KeepAll: true}, Size: ImageSize, Count: 5, Rate: 50}
			pub, err := side.Advertise(f.Kind, f.Topic, f.QoS)
			must(t, err)
			defer func() { check(t, pub.Close()) }()
			known := map[rtps.GUID]bool{}
			for i := range restarts() + 1 {
				ctx := budget(t, 30*time.Second)
				p := peer(t, Setup{Vendor: v, Mode: "subscribe", Domain: d, Lease: 3, Args: f.Args()})
				began := time.Now()
				must(t, newcomer(ctx, side, pub.(*wirePublisher), known))
				t.Logf("life %d: ready after %v", i, time.Since(began).Round(time.Millisecond))
				must(t, send(ctx, pub, f))
				complete(t, "to "+string(v), reported(ctx, t, p, f), f.Count)
				must(t, p.Kill())
			}
		})
	}
}

// newcomer waits for a subscriber that is not known yet, which Ready cannot tell from one that is dead and not forgotten.
func newcomer(ctx context.Context, side Wire, pub *wirePublisher, known map[rtps.GUID]bool) error {
	found := make(chan int, 64)
	stop := side.Watch(func(e rtps.Event) {
		if e.Kind == rtps.Matched && e.Ours == pub.GUID() && !known[e.Endpoint.GUID] {
			known[e.Endpoint.GUID] = true
			found <- len(pub.Matched())
		}
	})
	defer stop()
	select {
	case n := <-found:
		return pub.Ready(ctx, n)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestMismatch has endpoints of one topic that will never talk; both sides say so, ours in words.
func TestMismatch(t *testing.T) {
	reliable, bestEffort := ros.Default(), ros.SensorData()
	transient := ros.QoS{Reliable: true, Transient: true, Depth: 10}
	deadline := ros.QoS{Reliable: true, Depth: 10, Deadline: 100 * time.Millisecond}
	for _, v := range Vendors {
		for _, c := range []struct {
			policy          string
			offered, wanted ros.QoS
		}{{"reliability", bestEffort, reliable}, {"durability", reliable, transient}, {"deadline", reliable, deadline}} {
			f := Flow{Kind: String(), Topic: "chatter", Size: 10, Count: 1}
			t.Run(fmt.Sprintf("%s/%s/reader", v, c.policy), func(t *testing.T) {
				d := domain(t)
				side := participant(t, d)
				f.QoS = c.wanted
				_, sub, err := Receive(side, f)
				must(t, err)
				defer func() { check(t, sub.Close()) }()
				f.QoS = c.offered
				mismatched(t, side, Setup{Vendor: v, Mode: "publish", Domain: d, Args: f.Args()}, c.policy)
			})
			t.Run(fmt.Sprintf("%s/%s/writer", v, c.policy), func(t *testing.T) {
				d := domain(t)
				side := participant(t, d)
				pub, err := side.Advertise(f.Kind, f.Topic, c.offered)
				must(t, err)
				defer func() { check(t, pub.Close()) }()
				f.QoS = c.wanted
				mismatched(t, side, Setup{Vendor: v, Mode: "subscribe", Domain: d, Args: f.Args()}, c.policy)
			})
		}
	}
}

func mismatched(t *testing.T, side Wire, s Setup, policy string) {
	t.Helper()
	ctx := budget(t, 15*time.Second)
	found := make(chan rtps.Mismatch, 16)
	stop := side.Watch(func(e rtps.Event) {
		if e.Kind == rtps.Mismatched {
			found <- e.Mismatch
		}
	})
	defer stop()
	p := peer(t, s)
	event(ctx, t, p, "mismatch")
	select {
	case m := <-found:
		t.Log(m.Why)
		if m.Topic != "rt/chatter" || m.Policy != policy || len(m.Why) < 20 {
			t.Errorf("reported %+v, want policy %s of rt/chatter", m, policy)
		}
	case <-ctx.Done():
		t.Fatal("our side did not report the mismatch")
	}
	if len(side.Mismatches()) != 1 {
		t.Errorf("Mismatches lists %v", side.Mismatches())
	}
}

// TestAnswerLost loses our answer to a newcomer, which then knows nothing of us: its next announcement must be answered too, or
// it waits for our own period.
func TestAnswerLost(t *testing.T) {
	for _, v := range Vendors {
		t.Run(string(v), func(t *testing.T) {
			ctx := budget(t, 20*time.Second)
			d := domain(t)
			var answers atomic.Int64
			var heard atomic.Bool
			side := participant(t, d, func(c *rtps.Config) {
				c.Announce = time.Minute
				c.Wire = func(g rtps.Datagram) bool {
					if !g.Out {
						heard.Store(true)
						return true
					}
					return !heard.Load() || answers.Add(1) > 1
				}
			})
			select { // our own first announcements come quickly one after the other
			case <-time.After(2 * time.Second):
			case <-ctx.Done():
			}
			f := Flow{Kind: JointState(), Topic: "joint_states", QoS: deep(), Count: 5, Rate: 100}
			tally, sub, err := Receive(side, f)
			must(t, err)
			defer func() { check(t, sub.Close()) }()
			began := time.Now()
			peer(t, Setup{Vendor: v, Mode: "publish", Domain: d, Args: f.Args()})
			arrived(ctx, tally, f)
			took := time.Since(began)
			t.Logf("all there after %v", took.Round(time.Millisecond))
			if took > 2500*time.Millisecond { // Fast DDS' own announcements are 3 s apart, after the first few
				t.Error("that is as long as nothing is answered")
			}
			complete(t, "from "+string(v), tally.Report(), f.Count)
		})
	}
}
