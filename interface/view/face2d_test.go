package view

import (
	"image"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
	"viad/perception"
)

func posed(sn *stage.Snapshot, target geom.Pose, open bool) *stage.Snapshot {
	s := staged(sn, target, open, stage.Check{Reachable: true, Clear: true, Reach: "reachable", Way: "clear"})
	s.Mode = stage.ModePose
	return s
}

// The glyph's dot and ticks are where the closure point and the fingertips project, by the sensor's own numbers.
func TestWristGlyphPlaces(t *testing.T) {
	rm := room(t)
	p := newPainter(t, Options{})
	cam := rm.Scene.Camera("wrist")
	sn := posed(rm, level(r3.Vec{X: .95, Y: 0, Z: .78}, .1), true)
	img := p.Wrist(sn, Overlay{})
	at := func(local r3.Vec) image.Point {
		u, v, ok := cam.Frame.Info.Intrinsics.Project(cam.Pose.Inv().Point(sn.Target.Pose.Point(local)))
		if !ok {
			t.Fatal("behind")
		}
		return image.Pt(int(math.Round(u)), int(math.Round(v)))
	}
	for name, q := range map[string]r3.Vec{"dot": {}, "left tick": {Y: .03}, "right tick": {Y: -.03}, "line": {Y: .017}, "tick's end": {Y: .03, Z: .012}} {
		px := at(q)
		if c := img.RGBAAt(px.X, px.Y); !isColour(c, red, 4) {
			t.Errorf("%s: pixel %v is %v, want red", name, px, c)
		}
	}
	if px := at(r3.Vec{Y: .05}); isColour(img.RGBAAt(px.X, px.Y), red, 40) {
		t.Error("red outside the fingertips")
	}
	closed := p.Wrist(posed(rm, sn.Target.Pose, false), Overlay{})
	n, lo, hi := 0, 1<<20, 0
	for y := 60; y < 480; y++ {
		for x := range 640 {
			if isColour(closed.RGBAAt(x, y), red, 4) {
				n++
				lo, hi = min(lo, x), max(hi, x)
			}
		}
	}
	if n < 60 || hi-lo < 20 {
		t.Errorf("the closed glyph has %d red pixels over %d columns: not legible", n, hi-lo)
	}
}

// Off the view there is an arrow at the edge, on the side where the target is.
func TestOffViewArrow(t *testing.T) {
	rm := room(t)
	p := newPainter(t, Options{})
	for _, c := range []struct {
		name   string
		target r3.Vec
		inside func(x, y int) bool
	}{
		{"left", r3.Vec{X: .8, Y: 1.5, Z: .8}, func(x, _ int) bool { return x < 120 }},
		{"right", r3.Vec{X: .8, Y: -1.5, Z: .8}, func(x, _ int) bool { return x > 840 }},
		{"up", r3.Vec{X: .8, Z: 2.5}, func(_, y int) bool { return y < 150 }},
		{"behind", r3.Vec{X: -1, Y: .2, Z: .8}, func(x, y int) bool { return x < 100 || x > 860 || y < 120 || y > 600 }},
	} {
		img := p.Head(posed(rm, level(c.target, 0), true), Overlay{})
		n, wrong := 0, 0
		for y := 40; y < HeadHeight; y++ {
			for x := range HeadWidth {
				if isColour(img.RGBAAt(x, y), red, 4) {
					n++
					if !c.inside(x, y) {
						wrong++
					}
				}
			}
		}
		if n < 150 || wrong > n/2 {
			t.Errorf("%s: %d red pixels, %d of them on another side", c.name, n, wrong)
		}
	}
}

// The red gripper stands where its closure point projects; behind the table it is a ghost, never gone.
func TestHeadTarget(t *testing.T) {
	rm := room(t)
	p := newPainter(t, Options{})
	base := p.Head(rm, Overlay{})
	reddish := func(img *image.RGBA) (n int, mid r3.Vec) {
		for y := 60; y < HeadHeight; y++ {
			for x := range HeadWidth {
				a, b := img.RGBAAt(x, y), base.RGBAAt(x, y)
				if int(a.R)-int(a.G) > int(b.R)-int(b.G)+25 {
					n++
					mid = r3.Add(mid, r3.Vec{X: float64(x), Y: float64(y)})
				}
			}
		}
		return n, r3.Scale(1/math.Max(float64(n), 1), mid)
	}
	cam := rm.Scene.Camera("head")
	for _, c := range []struct {
		name string
		at   r3.Vec
	}{{"before the table", r3.Vec{X: .9, Y: .25, Z: .85}}, {"under the table top", r3.Vec{X: 1.3, Y: .1, Z: .55}}} {
		n, mid := reddish(p.Head(posed(rm, level(c.at, 0), true), Overlay{}))
		u, v, _ := cam.Frame.Info.Intrinsics.Project(cam.Pose.Inv().Point(r3.Add(c.at, r3.Vec{X: -.07})))
		u, v = u+.5, v+.5
		if n < 300 || math.Hypot(mid.X-u, mid.Y-v) > 40 {
			t.Errorf("%s: %d reddish pixels about %v, want it near (%v,%v)", c.name, n, mid, u, v)
		}
	}
}

// A click on the red gripper means the gripper, not what is behind it, and exactly where the gripper is drawn; where
// the scene hides it, and only a ghost shows, it means the scene.
func TestPickHeadOnTheTarget(t *testing.T) {
	p := newPainter(t, Options{})
	rm := room(t)
	before := staged(rm, level(r3.Vec{X: .95, Y: -.05, Z: .8}, .3), true, stage.Check{Reachable: true, Clear: true})
	plain, drawn := staged(rm, level(r3.Vec{X: -3, Z: .8}, 0), true, stage.Check{Reachable: true, Clear: true}), 0
	with, without := p.Head(before, Overlay{}), p.Head(plain, Overlay{}) // behind the camera
	wrong := 0
	for y := 100; y < HeadHeight-40; y += 8 {
		for x := 0; x < HeadWidth; x += 8 {
			a, b := with.RGBAAt(x, y), without.RGBAAt(x, y)
			red := a != b && int(a.R) > 2*int(a.G) && int(a.R) > 2*int(a.B)
			hit := p.PickHead(before, (float64(x)+.5)/HeadWidth, (float64(y)+.5)/HeadHeight)
			if red {
				drawn++
			}
			if red != (hit.Kind == Target) {
				wrong++
			}
			if hit.Kind == Target && (hit.OK() || !strings.Contains(hit.Why, "red target gripper")) {
				t.Fatalf("%+v", hit)
			}
		}
	}
	if drawn < 50 || wrong > drawn/8 { // the edges are smoothed
		t.Errorf("%d of %d places on the gripper are taken for something else", wrong, drawn)
	}
	hidden := staged(rm, level(r3.Vec{X: 1.6, Y: 0, Z: .45}, .2), false, stage.Check{Reachable: true}) // under the table's top
	cam := rm.Scene.Camera("head")
	u, v, _ := cam.Frame.Info.Intrinsics.Project(cam.Pose.Inv().Point(hidden.Target.Pose.Point(r3.Vec{X: -.06})))
	if h := p.PickHead(hidden, (u+.5)/960, (v+.5)/720); h.Kind == Target {
		t.Errorf("a target behind the table: %+v", h)
	}
}

// PickHead against a ray cast of the room: the toy, the table and the box are hit within lidar noise.
func TestPickHead(t *testing.T) {
	rm, w := room(t), roomWorld()
	p := newPainter(t, Options{})
	cam := rm.Scene.Camera("head")
	var errs []float64
	misses := 0
	rng := rand.New(rand.NewPCG(12, 1))
	for range 300 {
		u, v := rng.Float64(), .25+.75*rng.Float64()
		h := p.PickHead(rm, u, v)
		ray := r3.Unit(cam.Pose.Dir(cam.Frame.Info.Intrinsics.Unproject(u*960-.5, v*720-.5, 1)))
		want, _, _ := w.cast(cam.Pose.P, ray)
		if !h.OK() {
			misses++
			continue
		}
		d := r3.Sub(h.Point, cam.Pose.P)
		if off := math.Acos(math.Min(1, r3.Dot(r3.Unit(d), ray))); off > .002 {
			t.Fatalf("(%v,%v): the point is %v rad off the clicked ray", u, v, off)
		}
		errs = append(errs, math.Abs(r3.Norm(d)-want))
	}
	slices.Sort(errs)
	t.Logf("median %.4f m, 90%% %.4f m, %d without a point", errs[len(errs)/2], errs[len(errs)*9/10], misses)
	if len(errs) < 200 || errs[len(errs)/2] > .012 || errs[len(errs)*8/10] > .06 {
		t.Errorf("median error %v, 80%% %v over %d points", errs[len(errs)/2], errs[len(errs)*8/10], len(errs))
	}
	toy := r3.Vec{X: 1.12, Z: .735}
	u, v, _ := cam.Frame.Info.Intrinsics.Project(cam.Pose.Inv().Point(toy))
	h := p.PickHead(rm, (u+.5)/960, (v+.5)/720)
	if d := r3.Norm(r3.Sub(h.Point, toy)); !h.OK() || d > .055 {
		t.Errorf("the toy's centre gives %+v, %v m from it", h, d)
	}
	if h := p.PickHead(rm, .5, .0); h.OK() && h.Point.Z < 2 {
		t.Logf("top of the picture: %+v", h)
	}
	bare := *rm
	sc := *rm.Scene
	sc.Cloud = nil
	bare.Scene = &sc
	if h := p.PickHead(&bare, .5, .5); h.OK() || !strings.Contains(h.Why, "lidar") {
		t.Errorf("without lidar: %+v", h)
	}
}

// planeDepth is exact on a plane, however skew and whatever the noise-free samples' places.
func TestPlaneDepthIsExactOnPlanes(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range 200 {
		n := r3.Unit(r3.Vec{X: rng.Float64() - .5, Y: rng.Float64() - .5, Z: -1})
		z0 := .5 + 2*rng.Float64() // depth on the ray
		var ps []nearPoint
		for range 40 {
			dx, dy := (rng.Float64()-.5)*.04, (rng.Float64()-.5)*.04
			// The plane through (0,0,z0) with normal n meets the slope (dx,dy,1) at this depth.
			ps = append(ps, nearPoint{dx, dy, math.Hypot(dx, dy), z0 * n.Z / (n.X*dx + n.Y*dy + n.Z)})
		}
		if got := planeDepth(ps); math.Abs(got-z0) > .0012*z0 {
			t.Fatalf("normal %v: depth %v, want %v", n, got, z0)
		}
	}
}

func TestPickWristHolesAndRange(t *testing.T) {
	rm := room(t)
	p := newPainter(t, Options{})
	ok := 0
	for i := range 100 {
		if p.PickWrist(rm, (float64(i%10)+.5)/10, .4+.5*(float64(i)/100)).OK() {
			ok++
		}
	}
	if ok < 95 {
		t.Errorf("%d of 100 places resolve although holes are single pixels", ok)
	}
	none := *rm
	sc := *rm.Scene
	cam := *rm.Scene.Camera("wrist")
	f := *cam.Frame
	f.Depth = nil
	cam.Frame = &f
	sc.Cameras = []*perception.Camera{&cam}
	none.Scene = &sc
	if h := p.PickWrist(&none, .5, .5); h.OK() || !strings.Contains(h.Why, "no depth") {
		t.Errorf("without depth: %+v", h)
	}
	if h := p.ApproachHit(&none); h.OK() || !strings.Contains(h.Why, "no wrist depth") {
		t.Errorf("without depth: %+v", h)
	}
}

// ApproachHit meets the toy where a ray cast of the world does; a start behind a surface is its own answer; an
// axis that leaves the view says so.
func TestApproachHit(t *testing.T) {
	rm, w := room(t), roomWorld()
	p := newPainter(t, Options{})
	for _, yaw := range []float64{0, .1, .2, .3} {
		g := level(r3.Vec{X: 1, Y: -.01, Z: .74}, yaw)
		h := p.ApproachHit(posed(rm, g, true))
		want, _, _ := w.cast(g.P, g.X())
		got := r3.Dot(r3.Sub(h.Point, g.P), g.X())
		if !h.OK() || math.Abs(got-want) > .02 {
			t.Errorf("yaw %v: %+v at %v m along, want %v", yaw, h, got, want)
		}
	}
	inside := level(r3.Vec{X: 1.15, Y: .0, Z: .735}, 0)
	if h := p.ApproachHit(posed(rm, inside, true)); !h.OK() || r3.Norm(r3.Sub(h.Point, inside.P)) > .006 {
		t.Errorf("start behind the toy: %+v, want the closure point", h)
	}
	if h := p.ApproachHit(posed(rm, level(r3.Vec{X: .5, Y: .5, Z: .8}, math.Pi), true)); h.OK() || !strings.Contains(h.Why, "does not cross") {
		t.Errorf("pointing backwards: %+v", h)
	}
}

// The map: +x up, +y left, gray footprint in the centre, red one where it was staged, obstacles where they are.
func TestNavMapPlaces(t *testing.T) {
	rm := *room(t)
	sc := *rm.Scene
	sc.Cloud = &perception.Cloud{}
	for i := range 400 {
		sc.Cloud.XYZ = append(sc.Cloud.XYZ, .5, .3+float32(i%20)*.002, .4+float32(i)*.001)
		sc.Cloud.RGB = append(sc.Cloud.RGB, 0, 0, 0)
		sc.Cloud.Class = append(sc.Cloud.Class, perception.World)
	}
	rm.Scene = &sc
	s := staged(&rm, rm.Real.Pose, true, stage.Check{Reachable: true, Clear: true})
	s.Mode, s.BaseDelta = stage.ModeNav, geom.SE2{X: -.2, Y: -.25, Yaw: math.Pi / 2}
	p := newPainter(t, Options{})
	img := p.NavMap(s)
	k := (320. - 54) / .7 // half the map less its border over 0.5 m and a footprint of 0.2 m
	at := func(x, y float64) (r, g, b int) {
		c := img.RGBAAt(int(320-k*y), int(320-k*x))
		return int(c.R), int(c.G), int(c.B)
	}
	if r, g, b := at(-.03, .04); max(r, g, b)-min(r, g, b) > 16 || r > 235 {
		t.Errorf("real base: %d,%d,%d, want gray", r, g, b)
	}
	if r, g, _ := at(-.28, -.3); r-g < 60 {
		t.Errorf("staged base: %d,%d, want red", r, g)
	}
	// Its nose points along the staged heading: left.
	if r, g, _ := at(-.2, -.25+.14); r-g < 120 || g > 80 {
		t.Errorf("nose: %d,%d, want dark red", r, g)
	}
	if r, _, _ := at(.5, .32); r > 140 {
		t.Errorf("obstacle: %d, want dark dots", r)
	}
	if r, g, b := at(.5, -.32); min(r, g, b) < 230 {
		t.Errorf("its mirror place: %d,%d,%d, want the bare map", r, g, b)
	}
}

// Obstacles and footprints are on the axes of the real base, wherever that stands in odometry.
func TestNavMapTurnsWithTheBase(t *testing.T) {
	a := *room(t)
	b := a
	b.State.Base = geom.SE2{X: 3, Y: -2, Yaw: 2.1}
	sc := *a.Scene
	moved := *a.Scene.Cloud
	moved.XYZ = nil
	for i := range a.Scene.Cloud.Len() {
		q := b.State.Base.Pose().Point(a.Scene.Cloud.At(i))
		moved.XYZ = append(moved.XYZ, float32(q.X), float32(q.Y), float32(q.Z))
	}
	sc.Cloud = &moved
	b.Scene = &sc
	p := newPainter(t, Options{})
	x, y := p.NavMap(&a), p.NavMap(&b)
	diff := 0
	for i := range x.Pix {
		if d := int(x.Pix[i]) - int(y.Pix[i]); d > 40 || d < -40 {
			diff++
		}
	}
	if diff > 400 {
		t.Errorf("%d values differ although only odometry's origin moved", diff)
	}
}
