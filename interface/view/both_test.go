package view

import (
	"image"
	"log/slog"
	"strings"
	"testing"
)

// A panic on either side is an error of both: the daemon answers a call that failed, and drives on.
func TestBothMakesErrorsOfPanics(t *testing.T) {
	quiet, loud := func() {}, func() { panic("broken") }
	for name, f := range map[string][2]func(){"first": {loud, quiet}, "second": {quiet, loud}, "each": {loud, loud}} {
		if err := both(f[0], f[1]); err == nil || !strings.Contains(err.Error(), "broken") || !strings.Contains(err.Error(), "both_test.go") {
			t.Errorf("%s panicked: %v", name, err)
		}
	}
	var a, b bool
	if err := both(func() { a = true }, func() { b = true }); err != nil || !a || !b {
		t.Errorf("%v, %t, %t", err, a, b)
	}
}

// A picture that a fault of ours spoils is none, the log says why, and packing it is an error and no panic.
func TestSpoiltPicture(t *testing.T) {
	var log strings.Builder
	shape := func(float64) []Solid { panic("no such solid") }
	p := newPainter(t, Options{Gripper: shape, Log: slog.New(slog.NewTextHandler(&log, nil))})
	rm := room(t)
	for name, img := range map[string]*image.RGBA{"3D": p.UI(rm, Overlay{}), "head": p.Head(rm, Overlay{})} {
		if _, err := JPEG(img, 0); img != nil || err == nil || !strings.Contains(err.Error(), "daemon's log") {
			t.Errorf("%s: %v, %v", name, img != nil, err)
		}
	}
	if n := strings.Count(log.String(), "no such solid"); n != 2 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}
