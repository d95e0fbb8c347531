package view

import (
	"flag"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/safety"
)

var update = flag.Bool("update", false, "write the golden pictures anew; look at each before committing it")

// gallery is one picture per overlay and verdict. Files in testdata hold them at half size.
func gallery(t *testing.T) map[string]*image.RGBA {
	t.Helper()
	p := newPainter(t, Options{})
	sn, rm := tabletop(t), room(t)
	clear3 := stage.Check{
		Reachable: true, Clear: true, Reach: "Reachable; joint4 comes nearest to its limit, 31.1 deg away.",
		Way: "The way is clear by 0.034 m; the nearest thing seen is at x 0.500 y 0.160 z 0.045.",
	}
	over := staged(sn, topDown(r3.Vec{X: .5, Y: .16, Z: .07}), true, clear3)
	tilt := r3.Unit(r3.Vec{X: .5, Y: .3, Z: -1})
	tilted := geom.Pose{P: r3.Vec{X: .47, Y: .06, Z: .16}, R: geom.FromAxes(tilt, r3.Unit(r3.Cross(r3.Vec{X: 1, Y: -.2}, tilt)))}
	blocked := staged(sn, topDown(r3.Vec{X: .62, Y: -.26, Z: .07}), true, stage.Check{
		Reachable: true, Reach: "Reachable; joint2 comes nearest to its limit, 17.8 deg away.",
		Way: "The way is not clear: clearance of hand: got -0.012 m, limit 0.005 m; the nearest thing seen is at x 0.620 y -0.300 z 0.100.",
		Hit: r3.Vec{X: .62, Y: -.3, Z: .1}, HasHit: true,
	})
	far := topDown(r3.Vec{X: .72, Y: .22, Z: .2})
	un := staged(sn, far, false, stage.Check{
		Reach: "Not reachable: joint4 would have to go 12 deg past its limit; 0.042 m short.", Way: "The way is not judged: there is no plan.",
		Near: &robot.Unreachable{Near: topDown(r3.Vec{X: .68, Y: .2, Z: .2})},
	})
	side := *staged(sn, tilted, false, clear3)
	side.Orbit.Azimuth, side.Orbit.Elevation, side.Orbit.Distance = geom.Rad(140), geom.Rad(12), .7
	refused := staged(sn, topDown(r3.Vec{X: .6, Y: .1, Z: -.02}), true, stage.Check{
		Reachable: true, Reach: "Reachable; joint2 comes nearest to its limit, 38.3 deg away.",
		Way:     "The way is refused: workspace box: got gripper at z -0.020 m, limit z 0.000 to 0.950 m in the base frame.",
		Refused: &safety.Refused{Rule: "workspace box"},
	})
	warned := staged(sn, topDown(r3.Vec{X: .5, Y: .16, Z: .02}), false, stage.Check{
		Staged: true, Reachable: true, Clear: true, Reach: clear3.Reach,
		Way:   "The way is clear by 0.034 m, fingers and what they hold aside; the nearest thing seen is at x 0.500 y 0.160 z 0.045.",
		Notes: []string{"finger (right_finger) may touch what is seen at (0.500, 0.180, 0.040)", "held object may touch what is seen at (0.500, 0.160, 0.045)"},
	})
	warned.Check.Touch = []r3.Vec{{X: .5, Y: .18, Z: .04}, {X: .5, Y: .16, Z: .045}}
	warned.Barred, warned.JawBetween = &safety.Refused{Rule: safety.RuleLatch, Value: "e-stop: viactl"}, true
	clear2 := stage.Check{Reachable: true, Clear: true, Reach: "Reachable; arm_joint comes nearest to its limit, 0.060 m away.", Way: "The way is clear: nothing seen near it."}
	pose2 := staged(rm, level(r3.Vec{X: 1.02, Y: 0, Z: .75}, .2), true, clear2)
	pose2.Mode = stage.ModePose
	hidden := staged(rm, level(r3.Vec{X: 1.3, Y: .1, Z: .6}, .2), false, stage.Check{
		Reachable: true, Reach: "Reachable; lift_joint comes nearest to its limit, 0.110 m away.",
		Way: "The way is not clear: clearance of hand: got -0.031 m, limit 0.005 m.", Hit: r3.Vec{X: 1.12, Y: .05, Z: .68}, HasHit: true,
	})
	hidden.Mode = stage.ModePose
	latched := *pose2
	latched.Check.Staged, latched.Check.Notes, latched.Barred = true, []string{"held object may touch what is seen at (1.020, 0.000, 0.740)"}, warned.Barred
	latched.Check.Touch = []r3.Vec{{X: 1.02, Z: .74}}
	nav := staged(rm, level(r3.Vec{X: .3, Y: .9, Z: .82}, 1.2), true, clear2)
	nav.Check.Reach = "Reachable: the base alone moves, and the arm stays as it is on it."
	nav.Mode, nav.BaseDelta = stage.ModeNav, geom.SE2{X: .25, Y: .15, Yaw: geom.Rad(35)}
	x := p.ApproachHit(pose2).Point
	return map[string]*image.RGBA{
		"ui_rest":         p.UI(sn, Overlay{}),
		"ui_axis":         p.UI(over, Overlay{Axis: true}),
		"ui_gizmo":        p.UI(staged(sn, tilted, true, clear3), Overlay{Gizmo: true}),
		"ui_gizmo_level":  p.UI(staged(sn, topDown(r3.Vec{X: .5, Y: .05, Z: .2}), true, clear3), Overlay{Gizmo: true}),
		"ui_blocked":      p.UI(blocked, Overlay{}),
		"ui_refused":      p.UI(refused, Overlay{}),
		"ui_unreachable":  p.UI(un, Overlay{}),
		"ui_warned":       p.UI(warned, Overlay{}),
		"ui_salient":      p.UI(over, Overlay{Salient: &r3.Vec{X: .5, Y: .16, Z: .045}}),
		"ui_drag":         p.UI(over, Overlay{Drag: &Drag{.75, .5, .66, .62}}),
		"ui_hover_cloud":  p.UI(over, Overlay{Crosshair: &Mark{.62, .62, "0.5340 -0.0720 0.0010"}}),
		"ui_hover_feed":   p.UI(over, Overlay{Crosshair: &Mark{.1875, .27, ""}}),
		"ui_side":         p.UI(&side, Overlay{}),
		"head_target":     p.Head(pose2, Overlay{}),
		"head_dot":        p.Head(pose2, Overlay{RedDot: &Mark{U: .5, V: .44}}),
		"head_hidden":     p.Head(hidden, Overlay{Crosshair: &Mark{U: .6, V: .4}}),
		"head_off":        p.Head(nav, Overlay{}),
		"head_warned":     p.Head(&latched, Overlay{}),
		"wrist_warned":    p.Wrist(&latched, Overlay{}),
		"wrist_x":         p.Wrist(pose2, Overlay{X: &x}),
		"wrist_closed":    p.Wrist(hidden, Overlay{}),
		"wrist_off":       p.Wrist(nav, Overlay{}),
		"wrist_crosshair": p.Wrist(rm, Overlay{Crosshair: &Mark{U: .44, V: .35}}),
		"nav_map":         p.NavMap(nav),
	}
}

func TestGolden(t *testing.T) {
	for name, img := range gallery(t) {
		dump(t, name, img)
		small := halve(img)
		path := filepath.Join("testdata", name+".png")
		if *update {
			writePNG(t, path, small)
			continue
		}
		want := readPNG(t, path)
		if want.Bounds() != small.Bounds() {
			t.Errorf("%s: %v, want %v", name, small.Bounds(), want.Bounds())
			continue
		}
		mean, off := difference(small, want)
		if mean > .3 || off > .0002 {
			t.Errorf("%s: mean difference %.2f of 255, %.2f%% of pixels clearly off: look at it (VIEW_DUMP=<folder>), then -update", name, mean, 100*off)
		}
	}
}

// The comparison sees a changed overlay: a gallery picture against its neighbour fails.
func TestGoldenComparisonCanFail(t *testing.T) {
	a, b := readPNG(t, filepath.Join("testdata", "head_target.png")), readPNG(t, filepath.Join("testdata", "head_dot.png"))
	if mean, off := difference(toRGBA(a), b); mean > 1 || off < .0002 {
		t.Errorf("a red dot changes the mean by %.3f and %.3f%% of pixels", mean, 100*off)
	}
	c := readPNG(t, filepath.Join("testdata", "ui_rest.png"))
	d := readPNG(t, filepath.Join("testdata", "ui_drag.png"))
	if _, off := difference(toRGBA(c), d); off < .004 {
		t.Errorf("another overlay changes only %.3f%% of pixels", 100*off)
	}
}

func halve(img *image.RGBA) *image.RGBA {
	w, h := img.Rect.Dx()/2, img.Rect.Dy()/2
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			for k := range 4 {
				s := 0
				for _, d := range [4][2]int{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
					s += int(img.Pix[img.PixOffset(2*x+d[0], 2*y+d[1])+k])
				}
				out.Pix[out.PixOffset(x, y)+k] = uint8((s + 2) / 4)
			}
		}
	}
	return out
}

// difference is the mean over all colour values, and the share of pixels that are off by more than 28.
func difference(a *image.RGBA, b image.Image) (mean, off float64) {
	bb := toRGBA(b)
	sum, n := 0.0, 0
	for i := 0; i < len(a.Pix); i += 4 {
		worst := 0.0
		for k := range 3 {
			d := math.Abs(float64(a.Pix[i+k]) - float64(bb.Pix[i+k]))
			sum += d
			worst = math.Max(worst, d)
		}
		if worst > 28 {
			n++
		}
	}
	px := float64(len(a.Pix) / 4)
	return sum / px / 3, float64(n) / px
}

func toRGBA(img image.Image) *image.RGBA {
	if r, ok := img.(*image.RGBA); ok {
		return r
	}
	b := img.Bounds()
	out := image.NewRGBA(b)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			out.Set(x, y, img.At(x, y))
		}
	}
	return out
}

func readPNG(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatalf("%v (go test -run TestGolden -update writes it)", err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func writePNG(t *testing.T, path string, img image.Image) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	if err := enc.Encode(f, img); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
