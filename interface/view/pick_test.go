package view

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
)

func fraction(x, n int) float64 { return (float64(x) + .5) / float64(n) }

// caseOf is the tabletop with the target over the red cube and the world the sensors saw.
func caseOf(t *testing.T) (*stage.Snapshot, world, world) {
	t.Helper()
	sn := tabletop(t)
	target := topDown(r3.Vec{X: .5, Y: .16, Z: .06})
	sn = staged(sn, target, true, stage.Check{Reachable: true, Clear: true})
	sn.Aperture, sn.State.Jaw.Known = .08, true
	return sn, tabletopWorld(), robotThings(target, .08, nil)
}

// What is drawn decides: for random pixels the pick agrees with an independent ray cast of the scene and of the
// target's own shapes, and the point it gives lies on the pixel's ray.
func TestPickIsWhatIsDrawn(t *testing.T) {
	sn, scene, target := caseOf(t)
	p := newPainter(t, Options{})
	img := p.UI(sn, Overlay{})
	rng := rand.New(rand.NewPCG(3, 4))
	count := map[Kind]int{}
	agree, asked, onTarget, sawTarget := 0, 0, 0, 0
	for range 500 {
		x, y := Layout.Cloud.Min.X+rng.IntN(Layout.Cloud.Dx()), rng.IntN(UIHeight)
		u, v := fraction(x, UIWidth), fraction(y, UIHeight)
		h := p.Pick(sn, u, v)
		count[h.Kind]++
		if h.OK() != (h.Why == "") {
			t.Fatalf("(%d,%d): %+v has both or neither of a point and a reason", x, y, h)
		}
		cu := (float64(x-Layout.Cloud.Min.X) + .5) / float64(Layout.Cloud.Dx())
		pos, _, _, _ := sn.Orbit.Basis()
		ray := sn.Orbit.Ray(cu, v)
		ts, _, _ := scene.cast(pos, ray)
		tt, _, _ := target.cast(pos, ray)
		if h.Kind == Cloud || h.Kind == Target {
			gu, gv, _, ok := sn.Orbit.Project(h.Point)
			dx, dy := (gu-cu)*float64(Layout.Cloud.Dx()), (gv-v)*UIHeight
			if d := math.Hypot(dx, dy); !ok || d > cloudRadius+.01 {
				t.Fatalf("(%d,%d): the picked point falls %v pixels away", x, y, d)
			}
		}
		if tt < ts-.02 { // the target is clearly in front here (its wrist is a cylinder, the cast's a box)
			onTarget++
			if h.Kind == Target {
				sawTarget++
			}
		} else if h.Kind == Cloud && !math.IsInf(ts, 1) && tt > ts+.02 {
			asked++
			if math.Abs(r3.Norm(r3.Sub(h.Point, pos))-ts) < .012 {
				agree++
			}
		}
		if h.Kind == Target {
			at := img.RGBAAt(x, y)
			if !(at.B > at.R) && !nearLine(sn, x, y) {
				t.Errorf("(%d,%d) is picked as the target but drawn %v", x, y, at)
			}
		}
	}
	t.Logf("kinds %v, cloud agrees %d of %d, target %d of %d", count, agree, asked, sawTarget, onTarget)
	if asked < 120 || float64(agree) < .96*float64(asked) {
		t.Errorf("picked depth agrees with the ray cast for %d of %d pixels", agree, asked)
	}
	if onTarget < 8 || float64(sawTarget) < .9*float64(onTarget) {
		t.Errorf("the target was picked at %d of %d pixels that show it", sawTarget, onTarget)
	}
}

// nearLine is whether an axis or the way runs over a pixel; those are drawn over everything and never picked.
func nearLine(sn *stage.Snapshot, x, y int) bool {
	l := orbitLens(sn.Orbit, Layout.Cloud.Dx(), Layout.Cloud.Dy())
	for _, s := range [][2]r3.Vec{{sn.Real.Pose.P, sn.Target.Pose.P}, {{}, {X: .2}}, {{}, {Y: .2}}, {{}, {Z: .2}}} {
		for i := range 400 {
			q, ok := l.project(mix(s[0], s[1], float64(i)/400))
			if ok && math.Hypot(q.X-float64(x-Layout.Cloud.Min.X), q.Y-float64(y)) < 24 {
				return true
			}
		}
	}
	return false
}

// A target sunk into the cube is hidden by it, one before it hides it; the pick follows.
func TestOcclusion(t *testing.T) {
	sn := tabletop(t)
	p := newPainter(t, Options{Gripper: func(float64) []Solid {
		return []Solid{{Link: "ball", Kind: Sphere, Size: r3.Vec{X: .015}, Pose: geom.Identity()}}
	}})
	at := func(q r3.Vec) (float64, float64) {
		u, v, _, ok := sn.Orbit.Project(q)
		if !ok {
			t.Fatal("off screen")
		}
		return (float64(Layout.Cloud.Min.X) + u*float64(Layout.Cloud.Dx())) / UIWidth, v
	}
	ball := r3.Vec{X: .62, Y: -.3, Z: .05} // the purple ball's centre, radius 5 cm
	pos, _, _, _ := sn.Orbit.Basis()
	toCam := r3.Unit(r3.Sub(pos, ball))
	for _, c := range []struct {
		name string
		at   r3.Vec
		want Kind
	}{
		{"inside", ball, Cloud},
		{"behind", r3.Sub(ball, r3.Scale(.03, toCam)), Cloud},
		{"in front", r3.Add(ball, r3.Scale(.08, toCam)), Target},
	} {
		s := staged(sn, topDown(c.at), true, stage.Check{Reachable: true, Clear: true})
		u, v := at(ball)
		if h := p.Pick(s, u, v); h.Kind != c.want {
			t.Errorf("target %s the ball: picked %v, want %v", c.name, h.Kind, c.want)
		}
		img := p.UI(s, Overlay{})
		px := img.RGBAAt(int(u*UIWidth), int(v*UIHeight))
		if purple := px.R > 90; purple != (c.want == Cloud) {
			t.Errorf("target %s the ball: drawn %v", c.name, px)
		}
	}
}

// The feeds resolve by their own depth: the pixel's reading, unprojected by the sensor's numbers and moved by
// the camera's pose.
func TestPickFeeds(t *testing.T) {
	sn, scene, _ := caseOf(t)
	p := newPainter(t, Options{})
	rng := rand.New(rand.NewPCG(5, 6))
	for i, name := range []string{"third_person", "wrist"} {
		r := []struct{ x, y int }{{0, 24}, {0, 348}}[i]
		cam := sn.Scene.Camera(name)
		found := 0
		for range 200 {
			x, y := rng.IntN(400), rng.IntN(300)
			h := p.Pick(sn, fraction(r.x+x, UIWidth), fraction(r.y+y, UIHeight))
			in := cam.Frame.Info.Intrinsics
			u, v := (float64(x)+.5)*1.6-.5, (float64(y)+.5)*1.6-.5
			want, _, what := scene.cast(cam.Pose.P, r3.Unit(cam.Pose.Dir(in.Unproject(u, v, 1))))
			if what == nil {
				continue
			}
			if !h.OK() {
				t.Fatalf("%s (%d,%d): %+v, want a point", name, x, y, h)
			}
			pu, pv, ok := in.Project(cam.Pose.Inv().Point(h.Point))
			if !ok || math.Hypot(pu-u, pv-v) > 1 {
				t.Fatalf("%s (%d,%d): point falls on source pixel (%v,%v), want (%v,%v)", name, x, y, pu, pv, u, v)
			}
			if math.Abs(r3.Norm(r3.Sub(h.Point, cam.Pose.P))-want) < .01 {
				found++
			}
		}
		if found < 90 {
			t.Errorf("%s: only %d of 200 points lie on what the ray meets", name, found)
		}
	}
	for _, c := range []struct{ x, y int }{{200, 10}, {200, 336}, {100, 700}, {399, 799}} {
		if h := p.Pick(sn, fraction(c.x, UIWidth), fraction(c.y, UIHeight)); h.Kind != Chrome {
			t.Errorf("(%d,%d): %+v, want the interface", c.x, c.y, h)
		}
	}
	if h := p.Pick(sn, fraction(Layout.Cloud.Min.X+triadX, UIWidth), fraction(triadY, UIHeight)); h.Kind != Chrome {
		t.Errorf("the triad: %+v, want the interface", h)
	}
}

// A hole in the depth is bridged from three pixels away and no farther.
func TestPickFeedHoles(t *testing.T) {
	sn := tabletop(t)
	p := newPainter(t, Options{})
	cam := *sn.Scene.Camera("third_person")
	f := *cam.Frame
	in := f.Info.Intrinsics
	hole := func(radius float64) {
		f.Depth = append([]float32(nil), cam.Frame.Depth...)
		for i := range f.Depth {
			if math.Hypot(float64(i%in.W)-320, float64(i/in.W)-320) <= radius*1.6 {
				f.Depth[i] = 0
			}
		}
	}
	for _, c := range []struct {
		radius float64
		ok     bool
	}{{0, true}, {2, true}, {5, false}} {
		hole(c.radius)
		fc := cam
		fc.Frame = &f
		if h := pickDepth(&fc, 200, 200, 400, 300); h.OK() != c.ok {
			t.Errorf("hole of %v pixels: %+v, want a point: %v", c.radius, h, c.ok)
		}
	}
	if h := p.Pick(sn, math.NaN(), .5); h.OK() || h.Why == "" {
		t.Errorf("NaN gave %+v", h)
	}
}

// Empty space is nothing; a pixel beside the cloud takes the nearest cloud pixel within 8.
func TestPickTolerance(t *testing.T) {
	sn := tabletop(t)
	p := newPainter(t, Options{})
	if h := p.Pick(sn, .95, .05); h.Kind != Nothing {
		t.Errorf("sky: %+v", h)
	}
	v := p.cloudView(sn, nil)
	defer p.putCells(v.c.z)
	found := false
	for y := 300; y < 700 && !found; y++ {
		for x := 20; x < 860; x++ {
			if v.c.z[y*v.c.w+x] == nothing && x+5 < v.c.w && v.c.z[y*v.c.w+x+5] != nothing && v.c.z[y*v.c.w+x+5].tag() == tagWorld {
				h := p.Pick(sn, fraction(400+x, UIWidth), fraction(y, UIHeight))
				if h.Kind != Cloud {
					t.Fatalf("(%d,%d) is 5 pixels from the cloud: %+v", x, y, h)
				}
				found = true
				break
			}
		}
	}
	if !found {
		t.Fatal("no edge found to test at")
	}
}

// Two asks of one snapshot are one answer: what hover showed is what teleport takes.
func TestPickRepeats(t *testing.T) {
	sn, _, _ := caseOf(t)
	p := newPainter(t, Options{})
	q := newPainter(t, Options{})
	rng := rand.New(rand.NewPCG(8, 8))
	for range 60 {
		u, v := rng.Float64(), rng.Float64()
		a := p.Pick(sn, u, v)
		p.UI(sn, Overlay{Crosshair: &Mark{U: u, V: v}})
		if b := p.Pick(sn, u, v); a != b {
			t.Fatalf("(%v,%v): %+v then %+v", u, v, a, b)
		}
		if b := q.Pick(sn, u, v); a != b {
			t.Fatalf("(%v,%v): two painters differ: %+v and %+v", u, v, a, b)
		}
	}
}

func FuzzPick(f *testing.F) {
	f.Add(.5, .5)
	f.Add(math.NaN(), .2)
	f.Add(math.Inf(-1), math.Inf(1))
	f.Add(1., 1.)
	f.Add(-0., 0.)
	sn := tabletop(f)
	rm := room(f)
	p := newPainter(f, Options{})
	f.Fuzz(func(t *testing.T, u, v float64) {
		for _, h := range []Hit{p.Pick(sn, u, v), p.PickHead(rm, u, v), p.PickWrist(rm, u, v)} {
			if h.OK() && !geom.FiniteVec(h.Point) {
				t.Fatalf("(%v,%v): %+v", u, v, h)
			}
			if in := u >= 0 && u <= 1 && v >= 0 && v <= 1; !in && (h.OK() || h.Why == "") {
				t.Fatalf("(%v,%v) is outside: %+v", u, v, h)
			}
		}
	})
}
