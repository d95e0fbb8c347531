package camera

import (
	"strings"
	"testing"
	"time"

	"viad/ros"
)

// Two cameras under one topic are not taken for one, whichever of them a picture is of.
func TestTwoCamerasOneTopic(t *testing.T) {
	for k, topic := range []string{"/c: ", "/d: "} {
		s, clock := bare(Config{Depth: "/d"})
		show := func(i int, stranger bool) {
			clock.pass(100 * time.Millisecond)
			for _, of := range []kind{colour, depth} {
				p := &picture{w: 2, h: 1, stamp: int64(i), from: "wrist", rgb: make([]byte, 6), depth: make([]float32, 2)}
				if stranger && int(of) == k {
					p.from = "head"
				}
				s.take(p, nil, ros.Info{}, of)
			}
		}
		show(0, false)
		if _, err := s.at(t, time.Time{}); err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			show(i+1, i%2 == 0)
			if f, err := s.at(t, time.Time{}); err == nil || !strings.Contains(err.Error(), topic+`pictures come of the frame "wrist" and of "head"`) {
				t.Fatalf("picture %d of two cameras: %v, %v", i+1, f, err)
			}
		}
		if v := s.Facts()[0].Value; !strings.Contains(v, "two cameras") {
			t.Errorf("the fact is %q", v)
		}
		for i := range 25 {
			show(i+10, false)
		}
		if _, err := s.at(t, time.Time{}); err != nil {
			t.Errorf("two seconds after the stranger: %v", err)
		}
	}
}
