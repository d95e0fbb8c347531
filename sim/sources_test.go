package sim

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/sensor"
	"viad/sim/mj"
)

func source(t testing.TB, tw *Twin, name string) sensor.Source {
	t.Helper()
	for _, s := range tw.Sources() {
		if s.Info().Name == name {
			return s
		}
	}
	t.Fatalf("no source %s", name)
	return nil
}

func frame(t testing.TB, s sensor.Source, at time.Time) *sensor.Frame {
	t.Helper()
	f, err := s.Frame(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// share is how much of the 7x7 pixels around the projection of a point is of a colour; -1 when the point is
// outside the picture.
func share(tw *Twin, f *sensor.Frame, p r3.Vec, is func(r, g, b int) bool) float64 {
	in := f.Info.Intrinsics
	optical := linkPose(tw, f.Info.Mount.Link).Mul(f.Info.Mount.Pose)
	u, v, ok := in.Project(optical.Inv().Point(p))
	x, y := int(math.Round(u)), int(math.Round(v))
	if !ok || x < 4 || y < 4 || x > in.W-5 || y > in.H-5 {
		return -1
	}
	n := 0
	for j := y - 3; j <= y+3; j++ {
		for i := x - 3; i <= x+3; i++ {
			c := f.RGB[3*(j*in.W+i):]
			if is(int(c[0]), int(c[1]), int(c[2])) {
				n++
			}
		}
	}
	return float64(n) / 49
}

var hues = map[string]func(r, g, b int) bool{
	"red_cube":    func(r, g, b int) bool { return r > 2*g && r > 2*b },
	"green_cube":  func(r, g, b int) bool { return g > 2*r && g > 2*b },
	"blue_cube":   func(r, g, b int) bool { return b > 2*r && 2*b > 3*g },
	"yellow_cube": func(r, g, b int) bool { return r > 3*b && 2*g > r && 3*r > 3*g },
	"toy":         func(r, g, b int) bool { return r > 3*b && 2*r > 3*g },
}

func TestTripodAndWristSeeTheCubesWhereTheyAre(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop", Seed: 4})
	seen := 0
	third := frame(t, source(t, tw, "third_person"), time.Time{})
	for name, o := range tw.Truth().Objects {
		if is := hues[name]; is != nil && share(tw, third, o.P, is) > 0.95 {
			seen++
		}
	}
	if seen < 3 { // one may stand behind the bowl
		t.Errorf("third_person shows %d of 4 cubes where they are", seen)
	}
	// Look at each cube from above with the wrist camera, from a slanted and turned hand.
	for _, name := range []string{"red_cube", "blue_cube"} {
		o := tw.Truth().Objects[name]
		look := down(r3.Add(o.P, r3.Vec{X: -0.08, Z: 0.22}), 0.4)
		look.R = geom.Pose{R: look.R}.Mul(geom.Pose{R: geom.RotY(0.15)}).R
		if err := moveTool(t, tw, look, 4*time.Second); err != nil {
			t.Fatal(err)
		}
		f := frame(t, source(t, tw, "wrist"), time.Time{})
		if got := share(tw, f, o.P, hues[name]); got < 0.95 {
			t.Errorf("the wrist camera shows %s with share %.2f where it is", name, got)
		}
	}
}

func TestHeadSeesTheToyWhereItIs(t *testing.T) {
	tw := start(t, Options{Robot: "stretch4", World: "room", Seed: 4})
	head := source(t, tw, "head")
	toy := tw.Truth().Objects["toy"].P
	if got := share(tw, frame(t, head, time.Time{}), toy, hues["toy"]); got > 0 {
		t.Errorf("the toy is in view at the start (share %.2f)", got)
	}
	turn := geom.SE2{Yaw: math.Atan2(toy.Y, toy.X)}
	if err := tw.Follow(t.Context(), reach(tw.State(), nil, turn, 8*time.Second)); err != nil {
		t.Fatal(err)
	}
	after(t, tw, 200*time.Millisecond)
	f := frame(t, head, time.Time{})
	if f.Depth != nil || f.Info.HasDepth {
		t.Error("the head camera has depth")
	}
	if got := share(tw, f, toy, hues["toy"]); got < 0.9 {
		t.Errorf("the head camera shows the toy with share %.2f where it is", got)
	}
}

func TestDepthAgreesWithRays(t *testing.T) {
	for _, c := range []struct {
		robot, world, camera string
		holes                [2]float64
	}{
		{"fr3", "tabletop", "third_person", [2]float64{0, 0.3}},
		{"fr3", "tabletop", "wrist", [2]float64{0.005, 0.3}},
		{"stretch4", "tabletop", "wrist", [2]float64{0.01, 0.9}},
	} {
		t.Run(c.robot+" "+c.camera, func(t *testing.T) {
			tw := start(t, Options{Robot: c.robot, World: c.world, Seed: 2})
			f := frame(t, source(t, tw, c.camera), time.Time{})
			in, info := f.Info.Intrinsics, f.Info
			optical := tw.p.odom.Inv().Mul(linkPose(tw, info.Mount.Link).Mul(info.Mount.Pose))
			bad, n, holes := 0, 0, 0
			var sum, sum2 float64
			for y := 3; y < in.H; y += 7 {
				for x := 3; x < in.W; x += 7 {
					ray := in.Unproject(float64(x), float64(y), 1)
					l := r3.Norm(ray)
					w := r3.Scale(1/l, optical.Dir(ray))
					dist, hit := make([]float64, 1), make([]int32, 1)
					tw.mu.Lock()
					err := tw.p.d.Rays([3]float64{optical.P.X, optical.P.Y, optical.P.Z}, []float64{w.X, w.Y, w.Z}, [6]bool{0: true, 2: true}, mj.NoBody, dist, hit)
					tw.mu.Unlock()
					if err != nil {
						t.Fatal(err)
					}
					want, got := dist[0]/l, float64(f.Depth[y*in.W+x])
					if !(want > info.Range[0] && want < info.Range[1]) {
						if want < info.Range[0]-0.01 && want > 0 && got != 0 && math.Abs(got-want) < 0.01 {
							t.Errorf("a reading of %.3f m nearer than the range", got)
						}
						continue
					}
					n++
					if got == 0 {
						holes++
						continue
					}
					z := (got - want) / (info.Sigma * want * want)
					if math.Abs(z) > 4 { // an edge, or a mesh that rays see otherwise
						bad++
						continue
					}
					sum, sum2 = sum+z, sum2+z*z
				}
			}
			if bad > n/40 {
				t.Errorf("%d of %d depths disagree with rays", bad, n)
			}
			if h := float64(holes) / float64(n); h < c.holes[0] || h > c.holes[1] {
				t.Errorf("share of holes %.3f, want %v", h, c.holes)
			}
			k := float64(n - bad - holes)
			if mean, dev := sum/k, math.Sqrt(sum2/k); math.Abs(mean) > 0.2 || dev < 0.85 || dev > 1.2 {
				t.Errorf("noise of mean %.2f and deviation %.2f sigma over %.0f pixels", mean, dev, k)
			}
		})
	}
}

func TestLidarsSeeTheRoom(t *testing.T) {
	tw := start(t, Options{Robot: "stretch4", World: "room", Seed: 6})
	for _, name := range []string{"lidar_left", "lidar_right"} {
		f := frame(t, source(t, tw, name), time.Time{})
		at := linkPose(tw, f.Info.Mount.Link).Mul(f.Info.Mount.Pose)
		n, floor, below, far := len(f.Points)/3, 0, 0, 0
		var sum2 float64
		for i := range n {
			p := at.Point(r3.Vec{X: float64(f.Points[3*i]), Y: float64(f.Points[3*i+1]), Z: float64(f.Points[3*i+2])})
			if r := r3.Norm(r3.Sub(p, at.P)); r < 0.03 || r > 16 {
				far++
			}
			switch {
			case p.Z < -0.09:
				below++
			case p.Z < 0.06 && math.Hypot(p.X, p.Y) < 1.2:
				floor++
				sum2 += p.Z * p.Z
			}
		}
		if n < 5000 || n > lidarRays || below > 0 || far > 0 || floor < 500 {
			t.Errorf("%s: %d points, %d on the floor nearby, %d below it, %d out of range", name, n, floor, below, far)
		}
		if dev := math.Sqrt(sum2 / float64(floor)); dev < 0.006 || dev > 0.018 {
			t.Errorf("%s: floor points deviate %.4f m, the noise is %.4f along the ray", name, dev, lidarSigma)
		}
	}
}

func TestFramesAndTime(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop", Seed: 1})
	cam := source(t, tw, "wrist")
	a := frame(t, cam, time.Time{})
	if b := frame(t, cam, tw.Clock().Now()); b != a {
		t.Error("two frames of one moment")
	}
	if !a.Stamp.Equal(tw.Clock().Now()) || !a.Received.Equal(a.Stamp) {
		t.Errorf("stamp %v, received %v at %v", a.Stamp, a.Received, tw.Clock().Now())
	}
	want := tw.Clock().Now().Add(123 * time.Millisecond)
	b := frame(t, cam, want)
	if d := b.Stamp.Sub(want); d < 0 || d > 4*time.Millisecond || b.Seq != a.Seq+1 {
		t.Errorf("frame %d stamped %v after it was wanted", b.Seq, d)
	}
	if slices.Equal(a.Depth, b.Depth) {
		t.Error("the depth noise repeats from frame to frame")
	}
	if err := tw.Reset(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	c := frame(t, cam, time.Time{})
	if c == b || slices.Equal(c.RGB, b.RGB) || c.Seq != b.Seq+1 {
		t.Error("a frame after the reset shows the world before it")
	}
	twin := start(t, Options{Robot: "fr3", World: "tabletop", Seed: 1})
	if again := frame(t, source(t, twin, "wrist"), time.Time{}); !slices.Equal(again.Depth, a.Depth) || !slices.Equal(again.RGB, a.RGB) {
		t.Error("equal twins see differently")
	}
	f, err := tw.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Sources()) != 0 {
		t.Error("a fork has sources")
	}
	tw.Close()
	if _, err := cam.Frame(t.Context(), time.Time{}); !errors.Is(err, ErrOver) {
		t.Errorf("Frame after Close: %v", err)
	}
}
