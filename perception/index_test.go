package perception

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// cloud is n random points in a 1 m cube in Morton order.
func cloud(rng *rand.Rand, n int) []float32 {
	type keyed struct {
		k uint32
		p [3]float32
	}
	all := make([]keyed, n)
	for i := range all {
		p := [3]float32{rng.Float32(), rng.Float32(), rng.Float32()}
		all[i] = keyed{morton(uint32(p[0]*1023), uint32(p[1]*1023), uint32(p[2]*1023)), p}
	}
	slices.SortFunc(all, func(a, b keyed) int { return int(a.k) - int(b.k) })
	var out []float32
	for _, a := range all {
		out = append(out, a.p[:]...)
	}
	return out
}

// TestNearestAgainstEveryPoint compares the tree with a look at every point by geom's own distance.
func TestNearestAgainstEveryPoint(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 7, 8, 9, 64, 65, 513, 4000} {
		s := &Scene{index: newIndex(cloud(rng, n))}
		for range 300 {
			at := func() r3.Vec {
				return r3.Vec{X: 1.6*rng.Float64() - 0.3, Y: 1.6*rng.Float64() - 0.3, Z: 1.6*rng.Float64() - 0.3}
			}
			c := geom.Capsule{A: at(), B: at(), R: 0.1 * rng.Float64()}
			if rng.IntN(5) == 0 {
				c.B = c.A
			}
			within, floor := 0.3*rng.Float64(), rng.Float64()-0.5
			want, found := within, false
			for i := 0; i < len(s.index.pts); i += 3 {
				p := r3.Vec{X: float64(s.index.pts[i]), Y: float64(s.index.pts[i+1]), Z: float64(s.index.pts[i+2])}
				if d := c.Dist(p); d < want && p.Z >= floor {
					want, found = d, true
				}
			}
			got := s.ClearanceAbove(c, within, floor)
			if got.Found != found || found && math.Abs(got.Dist-want) > 1e-9 {
				t.Fatalf("%d points, %+v within %v above %v: got %+v, want %v %v", n, c, within, floor, got, found, want)
			}
			if found && math.Abs(c.Dist(got.Point)-want) > 1e-9 {
				t.Fatalf("point %v is not the one at %v", got.Point, want)
			}
		}
	}
}

func TestClearanceOfNothing(t *testing.T) {
	for _, s := range []*Scene{nil, {}, {index: newIndex(nil)}} {
		if h := s.Clearance(geom.Capsule{R: 1}, 10); h.Found || s.Obstacles() != 0 {
			t.Errorf("empty scene: got %+v", h)
		}
	}
	s := &Scene{index: newIndex([]float32{0, 0, 0})}
	for _, within := range []float64{math.NaN(), -2} {
		if h := s.Clearance(geom.Capsule{R: 0.1}, within); h.Found {
			t.Errorf("within %v: got %+v", within, h)
		}
	}
}

func TestMortonInterleavesBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		x, y, z := rng.Uint32N(1024), rng.Uint32N(1024), rng.Uint32N(1024)
		var want uint32
		for b := range 10 {
			want |= (x>>b&1)<<(3*b) | (y>>b&1)<<(3*b+1) | (z>>b&1)<<(3*b+2)
		}
		if got := morton(x, y, z); got != want {
			t.Fatalf("morton(%d, %d, %d) = %x, want %x", x, y, z, got, want)
		}
	}
}

// TestPileAverages puts random samples in and compares each voxel with sums kept in a map.
func TestPileAverages(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	lat, err := newLattice(r3.Box{Min: r3.Vec{X: -0.5, Y: -0.5, Z: -0.1}, Max: r3.Vec{X: 0.5, Y: 0.5, Z: 0.4}}, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	type sum struct{ x, z, r, n float64 }
	want := map[[3]int]sum{}
	var p pile
	for round := range 3 { // storage is reused: only the last round may be seen
		p.reset(lat)
		clear(want)
		for range 500 * (3 - round) {
			v := [3]float32{1.2*rng.Float32() - 0.1, rng.Float32(), 0.5 * rng.Float32()}
			c := uint8(rng.IntN(256))
			for range 1 + rng.IntN(3) {
				p.add(v[0], v[1], v[2], c, 7, 9, 1, false)
				if v[0] < 0 || v[0] >= 1 {
					continue
				}
				k := [3]int{int(v[0] / 0.05), int(v[1] / 0.05), int(v[2] / 0.05)}
				s := want[k]
				want[k] = sum{s.x + float64(v[0]), s.z + float64(v[2]), s.r + float64(c), s.n + 1}
			}
		}
	}
	var got voxels
	p.merge(&got)
	if got.cloud.Len() != len(want) {
		t.Fatalf("got %d voxels, want %d", got.cloud.Len(), len(want))
	}
	if !slices.IsSorted(got.key) {
		t.Error("voxels are not in Morton order")
	}
	for i := range got.cloud.Len() {
		v := r3.Sub(got.cloud.At(i), lat.origin)
		s := want[[3]int{int(v.X / 0.05), int(v.Y / 0.05), int(v.Z / 0.05)}]
		if math.Abs(v.X-s.x/s.n) > 1e-5 || math.Abs(v.Z-s.z/s.n) > 1e-5 ||
			math.Abs(float64(got.cloud.RGB[3*i])-s.r/s.n) > 0.51 || got.cloud.RGB[3*i+1] != 7 || float64(got.w[i]) != s.n {
			t.Fatalf("voxel at %v: colour %v weight %d, want %+v", v, got.cloud.RGB[3*i:3*i+3], got.w[i], s)
		}
	}
}

func TestLatticeRefusesWhatItCannotHold(t *testing.T) {
	for _, b := range []r3.Box{
		{Max: r3.Vec{X: 11, Y: 1, Z: 1}},
		{Max: r3.Vec{X: 1, Y: -1, Z: 1}},
		{Max: r3.Vec{X: 1, Y: 1, Z: math.NaN()}},
		{Max: r3.Vec{X: 1, Y: math.Inf(1), Z: 1}},
	} {
		if _, err := newLattice(b, 0.01); err == nil {
			t.Errorf("%v was accepted", b)
		}
	}
}
