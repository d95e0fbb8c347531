package interop

import (
	"fmt"
	"testing"

	"viad/ros"
)

// TestSustained sends pictures of 1 MB at a camera's rate, for a minute in the long form: none is lost, in either direction.
// The depth is what a second of them needs, so that a busy machine may stop either side for so long.
func TestSustained(t *testing.T) {
	seconds := 2
	if *long {
		seconds = 60
	}
	for _, v := range Vendors {
		f := Flow{Kind: Image(), Topic: "image", QoS: ros.QoS{Reliable: true, Depth: 30}, Size: ImageSize, Count: 30 * seconds, Rate: 30}
		t.Run(fmt.Sprintf("%s/30 Hz", v), func(t *testing.T) { bothWays(t, v, f, "from", "to") })
		f.Rate, f.Count, f.QoS.Depth = 100, 100*seconds, 100
		t.Run(fmt.Sprintf("%s/100 Hz", v), func(t *testing.T) { bothWays(t, v, f, "from") })
	}
}

func bothWays(t *testing.T, v Vendor, f Flow, ways ...string) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			d := domain(t)
			side := participant(t, d)
			before := cpuTime()
			if way == "from" {
				fromPeer(t, side, Setup{Vendor: v, Domain: d}, f)
			} else {
				toPeer(t, side, Setup{Vendor: v, Domain: d}, f)
			}
			t.Logf("our CPU: %.2f ms a picture, the checking of each byte with it", float64((cpuTime()-before).Microseconds())/1e3/float64(f.Count))
		})
	}
}
