package view

import (
	"image"
	"strings"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/safety"
)

// TestWordsOverTheSceneAreNotTheScene: where words stand over the cloud, a click means the words. Their places are
// found by comparing the picture with one of the same scene without a verdict.
func TestWordsOverTheSceneAreNotTheScene(t *testing.T) {
	p, sn := newPainter(t, Options{}), tabletop(t)
	at := topDown(r3.Vec{X: .6, Y: .1, Z: .05})
	plain := staged(sn, at, true, stage.Check{Reachable: true, Clear: true})
	for words, check := range map[string]stage.Check{
		"refused: workspace box": {Reachable: true, Refused: &safety.Refused{Rule: "workspace box"}},
		"way blocked here":       {Reachable: true, Hit: r3.Vec{X: .6, Y: -.2, Z: .1}, HasHit: true},
		"target not reachable":   {Near: &robot.Unreachable{Near: at}},
	} {
		shown := staged(sn, at, true, check)
		white := plateOf(p.UI(shown, Overlay{}), p.UI(plain, Overlay{}))
		hits, other := 0, 0
		for _, px := range white {
			h := p.Pick(shown, fraction(px.X, UIWidth), fraction(px.Y, UIHeight))
			switch {
			case h.Kind == Chrome && strings.Contains(h.Why, words) && !h.OK():
				hits++
			default:
				other++
			}
			if h := p.Pick(plain, fraction(px.X, UIWidth), fraction(px.Y, UIHeight)); h.Kind == Chrome {
				t.Fatalf("%s: at %v there are words in a picture without: %s", words, px, h.Why)
			}
		}
		if hits < 25 || other > hits/20 {
			t.Errorf("%s: of its plate's pixels %d are its words and %d are not", words, hits, other)
		}
	}
	moving := *plain
	moving.Moving = true
	if h := p.Pick(&moving, fraction(Layout.Cloud.Min.X+40, UIWidth), fraction(20, UIHeight)); h.Kind != Chrome || !strings.Contains(h.Why, "robot is moving") {
		t.Errorf("a robot that moves: %+v", h)
	}
	if h := p.Pick(sn, fraction(1100, UIWidth), fraction(783, UIHeight)); h.Kind != Chrome || !strings.Contains(h.Why, "azimuth") {
		t.Errorf("the caption: %+v", h)
	}
}

// plateOf is the pixels that are a plate's white in a and not in b.
func plateOf(a, b *image.RGBA) []image.Point {
	var out []image.Point
	white := func(m *image.RGBA, x, y int) bool {
		c := m.RGBAAt(x, y)
		return c.R > 245 && c.G > 240 && c.B > 230
	}
	for y := 0; y < UIHeight; y += 4 {
		for x := Layout.Cloud.Min.X; x < UIWidth; x += 4 {
			if white(a, x, y) && !white(b, x, y) {
				out = append(out, image.Pt(x, y))
			}
		}
	}
	return out
}

func TestTheBannerIsNotTheScene(t *testing.T) {
	p, rm := newPainter(t, Options{}), room(t)
	many := staged(rm, level(r3.Vec{X: 1.02, Z: .75}, .2), true, stage.Check{
		Staged: true, Reachable: true, Clear: true, Reach: strings.Repeat("Reachable in many words. ", 6), Way: strings.Repeat("The way is clear. ", 6),
		Notes: []string{"finger may touch what is seen at (1.020, 0.000, 0.740)"},
	})
	for _, sn := range []*stage.Snapshot{rm, many} {
		high := p.bannerHeight(sn, HeadWidth)
		head := p.Head(sn, Overlay{})
		dark := 0 // the strip is darker than a bright wall
		for y := range HeadHeight / 2 {
			c := head.RGBAAt(HeadWidth-3, y)
			if int(c.R)+int(c.G)+int(c.B) >= 300 {
				break
			}
			dark = y + 1
		}
		if dark != high {
			t.Errorf("the strip is %d pixels high in the picture, and %d for clicks", dark, high)
		}
		for y, banner := range map[int]bool{0: true, high - 1: true, high: false, HeadHeight - 1: false} {
			for name, pick := range map[string]func(*stage.Snapshot, float64, float64) Hit{"head": p.PickHead, "wrist": p.PickWrist} {
				size := HeadHeight
				if name == "wrist" {
					in := camera(sn, p.o.Wrist).Frame.Info.Intrinsics
					var w int
					w, size = WristSize(in.W, in.H)
					if w != HeadWidth || y >= size {
						continue
					}
				}
				if h := pick(sn, .5, fraction(y, size)); (h.Kind == Chrome) != banner {
					t.Errorf("%s, row %d of a strip of %d: %+v", name, y, high, h)
				}
			}
		}
	}
}
