package perception

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// BenchmarkFuse makes a scene of two 640 x 480 depth cameras.
func BenchmarkFuse(b *testing.B) {
	a, c := tripod(640, 480, table, box(0.5, 0.1, 0.02, 0.02, 0.02, 0.02, red)), tripod(640, 480, table)
	c.info.Name = "wrist"
	for _, v := range []float64{0.004, 0.002} {
		b.Run(fmt.Sprintf("%gmm", 1e3*v), func(b *testing.B) {
			o := options(frozen(b, a), frozen(b, c))
			o.Voxel = v
			f, err := NewFuser(o)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var s *Scene
			for b.Loop() {
				f.scene.Store(nil)
				if s, err = f.Refresh(b.Context(), epoch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.Cloud.Len()), "points")
			b.ReportMetric(float64(s.Obstacles()), "obstacles")
		})
	}
}

// BenchmarkSweep asks for the clearance of a plan of 100 samples of 20 capsules that ends close to a table.
func BenchmarkSweep(b *testing.B) {
	s := fuse(b, options(tripod(640, 480, table, box(0.5, 0.1, 0.05, 0.05, 0.05, 0.05, red))))
	var caps []geom.Capsule
	for i := range 100 {
		z := 0.05 + 0.4*float64(100-i)/100
		for k := range 20 {
			p := r3.Vec{X: 0.55 - 0.02*float64(k), Z: z + 0.03*float64(k)}
			caps = append(caps, geom.Capsule{A: p, B: r3.Add(p, r3.Vec{X: 0.02, Z: 0.05}), R: 0.02 + 0.002*float64(k)})
		}
	}
	for b.Loop() {
		for _, c := range caps {
			s.Clearance(c, 0.1)
		}
	}
}
