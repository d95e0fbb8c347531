package view

import (
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/safety"
)

func isColour(c color.RGBA, want rgb, tol int) bool {
	r, g, b := want.parts()
	d := func(a uint8, b uint32) bool { return math.Abs(float64(a)-float64(b)) <= float64(tol) }
	return d(c.R, r) && d(c.G, g) && d(c.B, b)
}

// The crosshair's dot is on exactly the pixel that (u, v) names, at every place of every picture, and symmetric.
func TestCrosshairIsExact(t *testing.T) {
	sn, rm := tabletop(t), room(t)
	p := newPainter(t, Options{})
	rng := rand.New(rand.NewPCG(9, 9))
	fr := []float64{0, 1, .5, 640. / 1280, 1279.5 / 1280}
	for range 4 {
		fr = append(fr, rng.Float64())
	}
	for i, u := range fr {
		v := fr[(i*7+3)%len(fr)]
		ov := Overlay{Crosshair: &Mark{U: u, V: v}}
		for name, img := range map[string]*image.RGBA{"ui": p.UI(sn, ov), "head": p.Head(rm, ov), "wrist": p.Wrist(rm, ov)} {
			w, h := img.Rect.Dx(), img.Rect.Dy()
			x, y := min(int(u*float64(w)), w-1), min(int(v*float64(h)), h-1)
			if c := img.RGBAAt(x, y); !isColour(c, mark, 3) {
				t.Errorf("%s: crosshair (%v,%v) leaves pixel (%d,%d) %v", name, u, v, x, y, c)
			}
			for d := 1; d < 6; d++ {
				if x-d >= 0 && x+d < w && img.RGBAAt(x-d, y) != img.RGBAAt(x+d, y) && isColour(img.RGBAAt(x-d, y), mark, 3) != isColour(img.RGBAAt(x+d, y), mark, 3) {
					t.Errorf("%s: dot not centred on (%d,%d)", name, x, y)
				}
			}
		}
	}
}

// The contract's gizmo vectors: from the top-down pose, a positive turn about each ring's axis.
func TestGizmoRings(t *testing.T) {
	g := topDown(r3.Vec{X: .4, Z: .2})
	s := math.Sqrt(3) / 2
	want := map[string][2]r3.Vec{ // approach, opening after +30 degrees
		"x": {{Y: .5, Z: -s}, {Y: s, Z: .5}},
		"y": {{X: -.5, Z: -s}, {Y: 1}},
		"z": {{Z: -1}, {X: -.5, Y: s}},
	}
	for _, r := range gizmoRings(g) {
		turn := geom.AxisAngle(r.axis, geom.Rad(30))
		after := geom.Pose{R: quat.Mul(turn, g.R)}
		if d := r3.Norm(r3.Sub(after.X(), want[r.name][0])) + r3.Norm(r3.Sub(after.Y(), want[r.name][1])); d > 1e-9 {
			t.Errorf("ring %s: approach %v opening %v, want %v", r.name, after.X(), after.Y(), want[r.name])
		}
		// The arrow runs the way that turn carries a point of the ring.
		for _, a := range []float64{0, 1, 2.5, 4} {
			was := r3.Sub(r.at(g.P, a), g.P)
			carried := geom.Rotate(geom.AxisAngle(r.axis, .1), was)
			if next := r3.Sub(r.at(g.P, a+.1), g.P); r3.Norm(r3.Sub(next, carried)) > 1e-12 {
				t.Errorf("ring %s at %v: its arrow runs to %v, the turn to %v", r.name, a, next, carried)
			}
		}
	}
}

// Each gizmo ring's own colour and word is in the picture, and the axis overlay's; none of them without asking.
func TestOverlaysAppearOnce(t *testing.T) {
	sn := staged(tabletop(t), topDown(r3.Vec{X: .5, Y: .1, Z: .2}), true, stage.Check{Reachable: true, Clear: true})
	p := newPainter(t, Options{})
	count := func(img *image.RGBA, col rgb) int {
		n := 0
		for y := range UIHeight {
			for x := Layout.Cloud.Min.X; x < UIWidth; x++ {
				if isColour(img.RGBAAt(x, y), col, 2) {
					n++
				}
			}
		}
		return n
	}
	plain := p.UI(sn, Overlay{})
	for _, c := range []struct {
		name string
		ov   Overlay
		cols []rgb
		more int
	}{
		{"gizmo", Overlay{Gizmo: true}, []rgb{axisX, axisY, axisZ, approachInk}, 250},
		{"axis", Overlay{Axis: true}, []rgb{approachInk}, 150},
		{"crosshair", Overlay{Crosshair: &Mark{U: .6, V: .6}}, []rgb{mark}, 9},
		{"drag", Overlay{Drag: &Drag{.6, .6, .7, .5}}, []rgb{mark}, 150},
		{"salient", Overlay{Salient: &r3.Vec{X: .6, Y: .1, Z: 0}}, []rgb{mark}, 60},
	} {
		with := p.UI(sn, c.ov)
		for _, col := range c.cols {
			if a, b := count(plain, col), count(with, col); b < a+c.more {
				t.Errorf("%s: colour %06x covers %d pixels, %d without it", c.name, uint32(col), b, a)
			}
		}
		if again := p.UI(sn, Overlay{}); !samePixels(again, plain) {
			t.Errorf("%s left something behind in the next picture", c.name)
		}
	}
}

func samePixels(a, b *image.RGBA) bool {
	for i, v := range a.Pix {
		if v != b.Pix[i] {
			return false
		}
	}
	return true
}

// A line that runs behind the cloud is faint there and plain in front.
func TestLinesAreDepthTested(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 100, 20))
	z := make([]cell, 100*20)
	for i := range z {
		z[i] = nothing
		if i%100 >= 50 {
			z[i] = cellOf(1, 0, tagWorld)
		}
	}
	c := canvasOn(img, img.Rect, z)
	c.fill(img.Rect, 0xFFFFFF)
	c.line(r3.Vec{X: 5, Y: 10, Z: 1.5}, r3.Vec{X: 95, Y: 10, Z: 1.5}, ink{col: 0x000000, width: 4})
	if open, hid := img.RGBAAt(25, 10).R, img.RGBAAt(75, 10).R; open > 5 || hid < 180 || hid > 200 {
		t.Errorf("open %d, hidden %d: want black and a quarter of it", open, hid)
	}
	c.fill(img.Rect, 0xFFFFFF)
	c.line(r3.Vec{X: 5, Y: 10, Z: .9}, r3.Vec{X: 95, Y: 10, Z: .9}, ink{col: 0x000000, width: 4})
	if hid := img.RGBAAt(75, 10).R; hid > 5 {
		t.Errorf("a line in front of the cloud is drawn %d", hid)
	}
}

// Coverage adds up: a line's total ink is its length times its width, at any angle and offset.
func TestLinesAreSmooth(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	for range 50 {
		img := image.NewRGBA(image.Rect(0, 0, 120, 120))
		c := canvasOn(img, img.Rect, nil)
		c.fill(img.Rect, 0x000000)
		a := 2 * math.Pi * rng.Float64()
		mid := r3.Vec{X: 60 + rng.Float64(), Y: 60 + rng.Float64()}
		d := r3.Vec{X: 40 * math.Cos(a), Y: 40 * math.Sin(a)}
		width := 1 + 4*rng.Float64()
		c.line(r3.Sub(mid, d), r3.Add(mid, d), ink{col: 0xFFFFFF, width: width})
		sum := 0.0
		for i := 0; i < len(img.Pix); i += 4 {
			sum += float64(img.Pix[i]) / 255
		}
		want := 80*width + math.Pi*width*width/4 // with its round ends
		if math.Abs(sum-want) > .05*want+2 {
			t.Errorf("width %v at %v rad: ink %v, want %v", width, a, sum, want)
		}
	}
}

// The verdict is in the picture in shape and colour, on both faces.
func TestVerdictIsDrawn(t *testing.T) {
	p := newPainter(t, Options{})
	target := topDown(r3.Vec{X: .6, Y: -.1, Z: .15})
	ok := p.UI(staged(tabletop(t), target, true, stage.Check{Reachable: true, Clear: true}), Overlay{})
	block := p.UI(staged(tabletop(t), target, true, stage.Check{Reachable: true, HasHit: true, Hit: r3.Vec{X: .55, Z: .1}}), Overlay{})
	unr := p.UI(staged(tabletop(t), target, true, stage.Check{}), Overlay{})
	for _, c := range []struct {
		name string
		img  *image.RGBA
		has  rgb
		not  []rgb
	}{{"clear", ok, good, []rgb{bad, warn}}, {"blocked", block, bad, []rgb{warn}}, {"unreachable", unr, warn, []rgb{bad}}} {
		n := func(col rgb) (k int) {
			for y := range UIHeight {
				for x := Layout.Cloud.Min.X; x < UIWidth; x++ {
					if isColour(c.img.RGBAAt(x, y), col, 1) {
						k++
					}
				}
			}
			return k
		}
		if n(c.has) < 60 {
			t.Errorf("%s: its colour is nowhere in the cloud view", c.name)
		}
		for _, o := range c.not {
			if k := n(o); k > 5 {
				t.Errorf("%s: %d pixels of another verdict's colour", c.name, k)
			}
		}
	}
}

// What a picture says of the target in words: what is said beside it must not look better in it.
func TestVerdictsWarn(t *testing.T) {
	sn := *staged(tabletop(t), topDown(r3.Vec{X: .5, Y: .1, Z: .2}), true, stage.Check{
		Staged: true, Reachable: true, Clear: true, Reach: "reachable", Way: "clear", Notes: []string{"held object may touch a rim"},
	})
	has := func(part string, col rgb) bool {
		return slices.ContainsFunc(verdicts(&sn), func(v verdict) bool { return strings.Contains(v.words, part) && v.col == col })
	}
	if !has("held object may touch a rim", warn) || has("Nothing may move", bad) {
		t.Errorf("with a note: %+v", verdicts(&sn))
	}
	sn.Barred = &safety.Refused{Rule: safety.RuleLatch, Value: "e-stop: viactl"}
	if !has("Nothing may move: latched (e-stop: viactl)", bad) {
		t.Errorf("latched: %+v", verdicts(&sn))
	}
	sn.Check = stage.Check{}
	if !has("Nothing may move: latched (e-stop: viactl)", bad) {
		t.Errorf("latched with nothing staged: %+v", verdicts(&sn))
	}
	sn.Last = &stage.Report{Outcome: robot.Outcome{Result: robot.ResultContact, Stop: robot.StopConfirmed, Why: "56 N"}}
	if has("Last waypoint", warn) {
		t.Errorf("an outcome from before an edit: %+v", verdicts(&sn))
	}
	sn.JustRan = true
	if !has("Last waypoint: contact (56 N); stopped, confirmed", warn) {
		t.Errorf("after a contact: %+v", verdicts(&sn))
	}
	if sn.Last.Outcome.Stop = robot.StopNotConfirmed; !has("stop NOT confirmed", bad) {
		t.Errorf("after a stop that was not confirmed: %+v", verdicts(&sn))
	}
	if sn.Last.Outcome.Result = robot.ResultReached; has("Last waypoint", bad) {
		t.Errorf("after one that arrived: %+v", verdicts(&sn))
	}
	sn.State.Jaw, sn.Real.Open = robot.Jaw{Known: true, Aperture: .04, Holding: true}, false
	if got := realJaw(&sn); got != "holds a thing" {
		t.Errorf("a jaw on an object reads %q", got)
	}
	if sn.JawBetween, sn.State.Jaw.Holding = true, false; realJaw(&sn) != "half open" {
		t.Errorf("a jaw halfway reads %q", realJaw(&sn))
	}
}
