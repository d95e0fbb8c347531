package interop

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/rtps"
)

// TestLoss drops datagrams on our side, in and out: every sample of a reliable flow arrives all the same, when the
// histories are deep enough for what is in flight while a piece is sent again.
func TestLoss(t *testing.T) {
	rates := []uint64{50}
	if *long {
		rates = []uint64{10, 50}
	}
	for _, v := range Vendors {
		for _, perThousand := range rates {
			for _, q := range []struct {
				name string
				ros.QoS
			}{{"keep all", ros.QoS{Reliable: true, KeepAll: true}}, {"depth 200", ros.QoS{Reliable: true, Depth: 200}}} {
				for _, f := range []Flow{
					{Kind: JointState(), Topic: "joint_states", QoS: q.QoS, Count: 200, Rate: 200},
					{Kind: Image(), Topic: "image", QoS: q.QoS, Size: ImageSize, Count: 12, Rate: 10},
				} {
					if *long {
						f.Count *= 10
					} else if q.KeepAll != (f.Kind.Name == "Image") {
						continue // short: each type with one kind of history
					}
					t.Run(fmt.Sprintf("%s/%g %%/%s/%s", v, float64(perThousand)/10, q.name, f.Kind.Name), func(t *testing.T) {
						d := domain(t)
						for _, dir := range []struct {
							name string
							run  func(*testing.T, Side, Setup, Flow) Event
						}{{"from", fromPeer}, {"to", toPeer}} {
							t.Run(dir.name, func(t *testing.T) {
								drop := &Dropper{PerThousand: perThousand}
								side := participant(t, d, func(c *rtps.Config) { c.Wire, c.Fragment = drop.Keep, 1344 })
								e := dir.run(t, side, Setup{Vendor: v, Domain: d, Args: []string{"acktime=60"}}, f)
								if f.Kind.Name == "JointState" && e.P50 > 30 { // one in twenty waits for another try, not half of all
									t.Errorf("half of the samples came later than %.1f ms: what is missing is asked for too late", e.P50)
								}
								dropped, of := drop.Dropped()
								t.Logf("dropped %d of %d datagrams", dropped, of)
							})
						}
					})
				}
			}
		}
	}
}

// TestFirstHeartbeatLost loses what we send first to a new reader. A Cyclone reader that is not a late joiner begins behind
// the first heartbeat that it gets, whatever it has by then: a sample that is under way at that moment is lost for good
// (Fast DDS as the writer loses one so now and then, see docs/interop.md). Our writer must not.
func TestFirstHeartbeatLost(t *testing.T) {
	for _, v := range Vendors {
		for _, lost := range []int{1, 3, 8} {
			t.Run(fmt.Sprintf("%s/%d", v, lost), func(t *testing.T) {
				ctx := budget(t, 30*time.Second)
				d := domain(t)
				f := Flow{Kind: Image(), Topic: "image", QoS: deep(), Size: ImageSize, Count: 5, Rate: 30}
				p := peer(t, Setup{Vendor: v, Mode: "subscribe", Domain: d, Args: f.Args()})
				var left atomic.Int64
				left.Store(int64(lost))
				side := participant(t, d, func(c *rtps.Config) {
					c.Wire = func(g rtps.Datagram) bool {
						return !g.Out || !userHeartbeat(g.Data) || left.Add(-1) < 0
					}
				})
				pub, err := Transmit(ctx, side, f, 1)
				must(t, err)
				defer func() { check(t, pub.Close()) }()
				complete(t, "to "+string(v), reported(ctx, t, p, f), f.Count)
				if n := left.Load(); n > 0 {
					t.Errorf("only %d heartbeats were there to be lost", int64(lost)-n)
				}
			})
		}
	}
}

// TestTheirBeginningLost loses the first heartbeats and samples that we get. Later samples wait then for a heartbeat that says
// where to begin, and our reader must ask for one soon.
func TestTheirBeginningLost(t *testing.T) {
	for _, v := range Vendors {
		t.Run(string(v), func(t *testing.T) {
			d := domain(t)
			var heard atomic.Int64
			side := participant(t, d, func(c *rtps.Config) {
				c.Wire = func(g rtps.Datagram) bool { return g.Out || !ofUser(g.Data, 0x07, 0x15) || heard.Add(1) > 5 }
			})
			f := Flow{Kind: JointState(), Topic: "joint_states", QoS: ros.QoS{Reliable: true, Depth: 300}, Count: 200, Rate: 200}
			if e := fromPeer(t, side, Setup{Vendor: v, Domain: d}, f); e.Max > 400 {
				t.Errorf("the first sample came %.0f ms late", e.Max)
			}
		})
	}
}

// userHeartbeat says whether a datagram has a heartbeat of a writer that is not built in.
func userHeartbeat(b []byte) bool { return ofUser(b, 0x07) }

// ofUser says whether a datagram has one of these submessages of a writer that is not built in. Heartbeats name the writer
// behind the reader; samples after four bytes more.
func ofUser(b []byte, kinds ...byte) bool {
	for at := 20; at+4 <= len(b); {
		id, length := b[at], int(b[at+2])|int(b[at+3])<<8
		kind := at + 11
		if id == 0x15 {
			kind += 4
		}
		if slices.Contains(kinds, id) && kind < len(b) && b[kind]&0xc0 == 0 {
			return true
		}
		if length == 0 {
			break
		}
		at += 4 + length
	}
	return false
}

// TestEagerWriter publishes as soon as a subscriber is matched, without waiting until it is sure to get what follows. Fast DDS
// gets all; so must Cyclone, which begins behind the first heartbeat that it sees: samples wait until that is answered.
func TestEagerWriter(t *testing.T) {
	for _, v := range Vendors {
		for _, f := range []Flow{
			{Kind: PointCloud2(), Topic: "points", QoS: deep(), Size: 160_000, Count: 6, Rate: 100},
			{Kind: JointState(), Topic: "joint_states", QoS: deep(), Count: 6, Rate: 100},
		} {
			t.Run(fmt.Sprintf("%s/%s", v, f.Kind.Name), func(t *testing.T) {
				ctx := budget(t, 20*time.Second)
				d := domain(t)
				side := participant(t, d)
				pub, err := side.Advertise(f.Kind, f.Topic, f.QoS)
				must(t, err)
				defer func() { check(t, pub.Close()) }()
				matched := make(chan struct{}, 16)
				stop := side.Watch(func(e rtps.Event) {
					if e.Kind == rtps.Matched && e.Endpoint.Topic == "rt/"+f.Topic {
						matched <- struct{}{}
					}
				})
				defer stop()
				p := peer(t, Setup{Vendor: v, Mode: "subscribe", Domain: d, Args: f.Args()})
				select {
				case <-matched:
				case <-ctx.Done():
					t.Fatal("no subscriber came")
				}
				must(t, send(ctx, pub, f))
				complete(t, "to "+string(v), reported(ctx, t, p, f), f.Count)
			})
		}
	}
}
