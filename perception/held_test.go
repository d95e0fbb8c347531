package perception

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/robot"
)

// holding is a scene in which the slider's jaw, pointing down at (0.5, 0, 0.3), holds something among other things.
func holding(t *testing.T, things ...solid) *Scene {
	t.Helper()
	o := options(tripod(640, 480, append([]solid{table}, things...)...))
	state := rest(epoch, 0.5)
	state.Jaw.Holding, state.Jaw.Aperture = true, 0.03
	o.State = func() robot.State { return state }
	return fuse(t, o)
}

// classes counts the points of a colour by class.
func classes(s *Scene, rgb [3]byte) map[Class]int {
	n := map[Class]int{}
	for i, c := range s.Cloud.Class {
		if [3]byte(s.Cloud.RGB[3*i:3*i+3]) == rgb {
			n[c]++
		}
	}
	return n
}

func TestWhatSticksOutOfTheHandIsHeld(t *testing.T) {
	other := [3]byte{30, 30, 200}
	s := holding(
		t,
		box(0.5, 0, 0.29, 0.015, 0.12, 0.015, red),      // 24 cm along the opening, the region is 5 cm wide
		box(0.5, 0.20, 0.29, 0.015, 0.03, 0.015, other), // 5 cm beside its end
	)
	if n := classes(s, red); n[World] > 0 || n[Held] < 100 {
		t.Errorf("of the held rod: %v", n)
	}
	if n := classes(s, other); n[Held] > 0 || n[World] < 20 {
		t.Errorf("of the thing beside it: %v", n)
	}
	if l := r3.Norm(r3.Sub(s.Held.A, s.Held.B)) + 2*s.Held.R; !s.HasHeld || math.Abs(l-0.24) > 0.02 || s.Held.R > 0.03 {
		t.Errorf("the rod of 24 cm is carried as %.3f m: %+v", l, s.Held)
	}
	if h := s.Clearance(ball(0.5, 0.09, 0.29, 0.02), 0.01); h.Found {
		t.Errorf("the end of the held rod is in the way: %+v", h)
	}
	if h := s.Clearance(ball(0.5, 0.20, 0.29, 0.02), 0.03); !h.Found {
		t.Error("the thing beside it is not in the way")
	}
}

func TestWhatRestsOnSomethingIsNotHeldWhole(t *testing.T) {
	s := holding(
		t,
		box(0.5, 0, 0.29, 0.015, 0.12, 0.015, red),
		box(0.5, 0.11, 0.14, 0.015, 0.01, 0.14, red), // a leg down to the table
	)
	if n := classes(s, red); n[Held] < 20 || n[World] < 50 {
		t.Errorf("of the rod with a leg on the table: %v", n)
	}
	if n := classes(s, table.rgb); n[Held] > 0 {
		t.Errorf("of the table: %v", n)
	}
	if h := s.Clearance(ball(0.5, 0.09, 0.29, 0.02), 0.03); !h.Found {
		t.Error("the rod's end, which may belong to anything, is not in the way")
	}
}
