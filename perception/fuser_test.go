package perception

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

func TestCubeOnTableIsWhereItIs(t *testing.T) {
	red := [3]byte{220, 30, 30}
	s := fuse(t, options(tripod(640, 480, table, box(0.5, 0.1, 0.0225, 0.0225, 0.0225, 0.0225, red))))
	var top, n float64
	for i := range s.Cloud.Len() {
		if p := s.Cloud.At(i); s.Cloud.RGB[3*i] == 220 && s.Cloud.RGB[3*i+1] == 30 && p.Z > 0.040 {
			top += p.Z
			n++
			if math.Abs(p.X-0.5) > 0.0235 || math.Abs(p.Y-0.1) > 0.0235 {
				t.Fatalf("red point at %v is off the cube", p)
			}
		}
	}
	if n < 50 || math.Abs(top/n-0.045) > 5e-4 {
		t.Errorf("cube top at %.5f by %v points, want 0.045 by more than 50", top/n, n)
	}
	for _, c := range []struct {
		at   r3.Vec
		want float64 // from plane geometry
	}{
		{r3.Vec{X: 0.5, Y: 0.1, Z: 0.145}, 0.09},  // 10 cm over the cube's top, radius 1 cm
		{r3.Vec{X: 0.5, Y: -0.2, Z: 0.05}, 0.04},  // 5 cm over the table
		{r3.Vec{X: 0.5, Y: -0.2, Z: -0.0}, -0.01}, // in its surface
	} {
		h := s.Clearance(geom.Capsule{A: c.at, B: c.at, R: 0.01}, 0.12)
		if !h.Found || math.Abs(h.Dist-c.want) > 2e-3 {
			t.Errorf("clearance at %v: got %+v, want %.3f", c.at, h, c.want)
		}
	}
	if h := s.Clearance(geom.Capsule{A: r3.Vec{X: 0.5, Z: 0.5}, B: r3.Vec{X: 0.5, Z: 0.5}, R: 0.01}, 0.3); h.Found {
		t.Errorf("nothing is within 0.3 m of a point 0.5 m up, got %+v", h)
	}
}

func BenchmarkFuse(b *testing.B) {
	a, c := tripod(640, 480, table, box(0.5, 0.1, 0.02, 0.02, 0.02, 0.02, [3]byte{220, 30, 30})), tripod(640, 480, table)
	c.info.Name = "wrist"
	for _, v := range []float64{0.004, 0.002} {
		b.Run(map[float64]string{0.004: "4mm", 0.002: "2mm"}[v], func(b *testing.B) {
			o := options(frozen(b, a), frozen(b, c))
			o.Voxel = v
			f, err := NewFuser(o)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var s *Scene
			for b.Loop() {
				if s, err = f.Refresh(b.Context(), epoch.Add(-1)); err != nil {
					b.Fatal(err)
				}
				f.scene.Store(nil)
			}
			b.ReportMetric(float64(s.Cloud.Len()), "points")
			b.ReportMetric(float64(s.Obstacles()), "obstacles")
		})
	}
}

func BenchmarkSweep(b *testing.B) {
	s := fuse(b, options(tripod(640, 480, table, box(0.5, 0.1, 0.05, 0.05, 0.05, 0.05, [3]byte{220, 30, 30}))))
	var caps []geom.Capsule
	for i := range 100 { // a hand that comes down to 3 cm over the table, an arm behind it
		z := 0.05 + 0.4*float64(100-i)/100
		for k := range 20 {
			p := r3.Vec{X: 0.55 - 0.02*float64(k), Z: z + 0.03*float64(k)}
			caps = append(caps, geom.Capsule{A: p, B: r3.Add(p, r3.Vec{X: 0.02, Z: 0.05}), R: 0.02 + 0.002*float64(k)})
		}
	}
	b.ReportMetric(float64(len(caps)), "capsules")
	for b.Loop() {
		for _, c := range caps {
			s.Clearance(c, 0.05)
		}
	}
}
