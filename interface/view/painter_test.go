package view

import (
	"bytes"
	"image"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/interface/stage"
	"viad/perception"
)

// Before the first scene, and with cameras that are missing or say nothing, there is still a picture.
func TestPoorSnapshots(t *testing.T) {
	p := newPainter(t, Options{})
	rm := room(t)
	empty := *rm
	empty.Scene = &perception.Scene{}
	odd := *rm
	cam := *rm.Scene.Camera("wrist")
	f := *cam.Frame
	f.RGB, f.Depth = f.RGB[:10], f.Depth[:10]
	cam.Frame = &f
	odd.Scene = &perception.Scene{Cameras: []*perception.Camera{&cam}}
	nan := *rm
	nan.Target.Pose.P.X = math.NaN()
	nan.BaseDelta.X = math.NaN()
	for name, sn := range map[string]*stage.Snapshot{"zero": {}, "empty": &empty, "odd": &odd, "nan": &nan} {
		if img := p.UI(sn, Overlay{Gizmo: true, Axis: true}); img.Rect != image.Rect(0, 0, UIWidth, UIHeight) {
			t.Errorf("%s: UI is %v", name, img.Rect)
		}
		if img := p.Head(sn, Overlay{}); img.Rect != image.Rect(0, 0, HeadWidth, HeadHeight) {
			t.Errorf("%s: head is %v", name, img.Rect)
		}
		p.Wrist(sn, Overlay{X: &r3.Vec{}})
		p.NavMap(sn)
		p.PickHead(sn, .5, .5)
		p.PickWrist(sn, .5, .5)
		p.Pick(sn, .2, .2)
		p.Pick(sn, .7, .5)
		if name != "nan" {
			if h := p.ApproachHit(sn); h.OK() {
				t.Errorf("%s: approach hit %+v", name, h)
			}
		}
	}
}

// Every pixel is opaque: nothing is left undrawn.
func TestPicturesAreOpaque(t *testing.T) {
	p := newPainter(t, Options{})
	for name, img := range map[string]*image.RGBA{
		"ui": p.UI(tabletop(t), Overlay{}), "head": p.Head(room(t), Overlay{}), "wrist": p.Wrist(room(t), Overlay{}),
		"map": p.NavMap(room(t)), "none": p.UI(&stage.Snapshot{}, Overlay{}), "nohead": p.Head(&stage.Snapshot{}, Overlay{}),
	} {
		for i := 3; i < len(img.Pix); i += 4 {
			if img.Pix[i] != 255 {
				t.Errorf("%s: pixel %d is not opaque", name, i/4)
				break
			}
		}
	}
}

// One painter serves many; what it draws does not depend on who else draws.
func TestPainterIsSafeForConcurrentUse(t *testing.T) {
	p := newPainter(t, Options{})
	base := tabletop(t)
	var sns []*stage.Snapshot
	var want []*image.RGBA
	var picks []Hit
	for i := range 4 {
		s := staged(base, topDown(r3.Vec{X: .5, Y: .1 * float64(i), Z: .1}), i%2 == 0, stage.Check{Reachable: true, Clear: i > 1})
		s.Orbit.Azimuth += .2 * float64(i)
		sns = append(sns, s)
		want = append(want, newPainter(t, Options{}).UI(s, Overlay{Gizmo: true}))
		picks = append(picks, newPainter(t, Options{}).Pick(s, .65, .5))
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 4 {
				k := (i + g) % 4
				if !samePixels(p.UI(sns[k], Overlay{Gizmo: true}), want[k]) {
					t.Errorf("picture %d differs", k)
				}
				if h := p.Pick(sns[k], .65, .5); h != picks[k] {
					t.Errorf("pick %d: %+v, want %+v", k, h, picks[k])
				}
			}
		})
	}
	wg.Wait()
}

func TestJPEG(t *testing.T) {
	img := newPainter(t, Options{}).UI(tabletop(t), Overlay{})
	_, fast := turboEncode(img, 85)
	t.Logf("libjpeg-turbo: %v", fast)
	for name, pack := range map[string]func() ([]byte, error){
		"best": func() ([]byte, error) { return JPEG(img, 0) },
		"plain": func() ([]byte, error) {
			return pack(img, 0, func(*image.RGBA, int) ([]byte, bool) { return nil, false })
		},
	} {
		b, err := pack()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := jpeg.Decode(bytes.NewReader(b))
		if err != nil || back.Bounds() != img.Bounds() {
			t.Fatalf("%s: %v, %v", name, err, back.Bounds())
		}
		sum := 0.0
		for y := 0; y < UIHeight; y += 3 {
			for x := 0; x < UIWidth; x += 3 {
				r, g, bl, _ := back.At(x, y).RGBA()
				c := img.RGBAAt(x, y)
				sum += math.Abs(float64(r>>8)-float64(c.R)) + math.Abs(float64(g>>8)-float64(c.G)) + math.Abs(float64(bl>>8)-float64(c.B))
			}
		}
		if mean := sum / (UIWidth * UIHeight / 9) / 3; mean > 2.5 {
			t.Errorf("%s: mean difference %v", name, mean)
		}
		t.Logf("%s: %d bytes", name, len(b))
	}
	// A part of a larger picture is packed as it stands.
	sub := img.SubImage(image.Rect(400, 100, 600, 250)).(*image.RGBA)
	b, err := JPEG(sub, 90)
	if err != nil {
		t.Fatal(err)
	}
	back, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil || back.Bounds().Dx() != 200 || back.Bounds().Dy() != 150 {
		t.Fatalf("sub: %v", err)
	}
	r, _, _, _ := back.At(20, 20).RGBA()
	if c := img.RGBAAt(420, 120); math.Abs(float64(r>>8)-float64(c.R)) > 30 {
		t.Errorf("sub: red %d, want %d", r>>8, c.R)
	}
	for _, q := range []int{-1, 101} {
		if _, err := JPEG(img, q); err == nil {
			t.Errorf("quality %d was taken", q)
		}
	}
	if _, err := JPEG(nil, 80); err == nil {
		t.Error("no picture was packed")
	}
	if _, err := JPEG(image.NewRGBA(image.Rectangle{}), 80); err == nil {
		t.Error("an empty picture was packed")
	}
}

// Even pure noise at full quality comes out below the limit, on both encoders.
func TestJPEGStaysSmall(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, UIWidth, UIHeight))
	rng := rand.New(rand.NewPCG(1, 9))
	for i := range img.Pix {
		img.Pix[i] = uint8(rng.Uint32())
	}
	for name, first := range map[string]encoder{"turbo": turboEncode, "plain": func(*image.RGBA, int) ([]byte, bool) { return nil, false }} {
		b, err := pack(img, 100, first)
		if err != nil || len(b) > MaxJPEG {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}

func TestWrap(t *testing.T) {
	p := newPainter(t, Options{})
	f := p.faces.body
	s := "joint4 would have to go 0.21 rad past its limit; the nearest reachable place is 4.2 cm short of the target"
	for _, w := range []int{60, 120, 200, 400, 2000} {
		for n := 1; n < 4; n++ {
			ls := f.wrap(s, w, n)
			if len(ls) > n {
				t.Errorf("%d lines, want at most %d", len(ls), n)
			}
			for _, l := range ls {
				if f.width(l) > w {
					t.Errorf("%q is %d wide, limit %d", l, f.width(l), w)
				}
			}
		}
	}
	if ls := f.wrap(s, 5000, 2); len(ls) != 1 || ls[0] != s {
		t.Errorf("a line that fits became %q", ls)
	}
}

// Scaling keeps the mean colour and puts an edge where it belongs.
func TestScale(t *testing.T) {
	const w, h = 64, 48
	src := make([]byte, 3*w*h)
	for y := range h {
		for x := range w {
			if x >= 32 {
				src[3*(y*w+x)] = 200
			}
		}
	}
	for _, s := range [][2]int{{40, 30}, {64, 48}, {128, 96}, {96, 72}} {
		out := scale(src, w, h, s[0], s[1])
		sum := 0.0
		for i := 0; i < len(out.Pix); i += 4 {
			sum += float64(out.Pix[i])
		}
		if mean := sum / float64(s[0]*s[1]); math.Abs(mean-100) > 1.5 {
			t.Errorf("%v: mean %v, want 100", s, mean)
		}
		if l, r := out.RGBAAt(s[0]/2-3, s[1]/2).R, out.RGBAAt(s[0]/2+3, s[1]/2).R; l > 30 || r < 170 {
			t.Errorf("%v: beside the edge %d and %d", s, l, r)
		}
	}
}
