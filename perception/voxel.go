package perception

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/spatial/r3"
)

// axisBits is the number of bits per axis of a voxel's Morton key: at most 1024 voxels along each axis.
const axisBits = 10

// sure is the weight from which the points of a block count as an obstacle; a pixel weighs 1.
const sure = 4

// lattice is the voxel grid of one scene.
type lattice struct {
	origin r3.Vec // corner of voxel 0,0,0, a multiple of size
	size   float64
	n      [3]uint32 // voxels per axis
}

// newLattice is the grid that covers b with voxels of size metres, snapped to multiples of size so that the
// same surface falls into the same voxels from scene to scene.
func newLattice(b r3.Box, size float64) (lattice, error) {
	l := lattice{size: size}
	snap := func(x float64) float64 { return math.Floor(x/size) * size }
	l.origin = r3.Vec{X: snap(b.Min.X), Y: snap(b.Min.Y), Z: snap(b.Min.Z)}
	for k, d := range arr(r3.Sub(b.Max, l.origin)) {
		c := math.Ceil(d / size)
		if !(c >= 1 && c <= 1<<axisBits) {
			return lattice{}, fmt.Errorf("perception bounds: %.3g m on axis %c need %.0f voxels of %.3g m, limit %d; make the bounds smaller or the voxels larger",
				d, 'x'+rune(k), c, size, 1<<axisBits)
		}
		l.n[k] = uint32(c)
	}
	return l, nil
}

// spread puts two zero bits between the ten low bits of x.
func spread(x uint32) uint32 {
	x = (x | x<<16) & 0x030000FF
	x = (x | x<<8) & 0x0300F00F
	x = (x | x<<4) & 0x030C30C3
	return (x | x<<2) & 0x09249249
}

// morton interleaves three voxel coordinates.
func morton(x, y, z uint32) uint32 { return spread(x) | spread(y)<<1 | spread(z)<<2 }

// shift is how far a key is shifted right to name a cube of about size metres, a power of two of voxels.
func (l *lattice) shift(size float64) uint {
	k := math.Round(math.Log2(size / l.size))
	return uint(3 * max(0, min(k, axisBits)))
}

// run is the sum of neighbouring samples in one voxel; positions are relative to the lattice's origin.
type run struct {
	x, y, z float32
	r, g, b uint32
	n, w    uint32 // samples, and their weight as evidence of an obstacle
	own     bool   // a sensor that knows its noise says that one of them is the robot's own body
}

// pile collects samples as runs and sorts them into voxels. Its storage is reused from scene to scene.
type pile struct {
	lat       lattice
	keys, tmp []uint64 // Morton key << 32 | index of run
	runs      []run
	last      [3]uint32 // voxel of the open run
	open      run
}

func (p *pile) reset(l lattice) {
	p.lat = l
	p.keys, p.runs, p.open = p.keys[:0], p.runs[:0], run{}
}

// flush closes the open run.
func (p *pile) flush() {
	if p.open.n == 0 {
		return
	}
	k := morton(p.last[0], p.last[1], p.last[2])
	p.keys = append(p.keys, uint64(k)<<32|uint64(len(p.runs)))
	p.runs = append(p.runs, p.open)
	p.open = run{}
}

// add puts in one sample, relative to the lattice's origin, and drops it when it is outside.
func (p *pile) add(x, y, z float32, r, g, b uint8, weight uint32, own bool) {
	if !(x >= 0 && y >= 0 && z >= 0) {
		return
	}
	inv := float32(1 / p.lat.size)
	ix, iy, iz := uint32(x*inv), uint32(y*inv), uint32(z*inv)
	if ix >= p.lat.n[0] || iy >= p.lat.n[1] || iz >= p.lat.n[2] {
		return
	}
	if ix != p.last[0] || iy != p.last[1] || iz != p.last[2] {
		p.flush()
		p.last = [3]uint32{ix, iy, iz}
	}
	o := &p.open
	o.x += x
	o.y += y
	o.z += z
	o.r += uint32(r)
	o.g += uint32(g)
	o.b += uint32(b)
	o.n++
	o.w += weight
	o.own = o.own || own
}

// sort orders the keys by voxel: three passes of ten bits, stable.
func (p *pile) sort() {
	p.flush()
	const radix = 1 << axisBits
	var count [3][radix]uint32
	for _, k := range p.keys {
		count[0][k>>32&(radix-1)]++
		count[1][k>>(32+axisBits)&(radix-1)]++
		count[2][k>>(32+2*axisBits)&(radix-1)]++
	}
	if cap(p.tmp) < len(p.keys) {
		p.tmp = make([]uint64, len(p.keys), cap(p.keys))
	}
	from, to := p.keys, p.tmp[:len(p.keys)]
	for pass := range count {
		var at uint32
		for i, c := range count[pass] {
			count[pass][i] = at
			at += c
		}
		sh := uint(32 + pass*axisBits)
		for _, k := range from {
			b := k >> sh & (radix - 1)
			to[count[pass][b]] = k
			count[pass][b]++
		}
		from, to = to, from
	}
	p.keys, p.tmp = from, to
}

// voxels is the merged cloud with what is needed to classify it.
type voxels struct {
	cloud *Cloud
	key   []uint32 // Morton key per point
	w     []uint32 // evidence per point
	own   []bool   // per point: part of it was seen as the robot's own body
}

// merge sorts, then averages all samples of a voxel. The slices of dst are reused.
func (p *pile) merge(dst *voxels) {
	p.sort()
	n := 0
	for i, k := range p.keys {
		if i == 0 || k>>32 != p.keys[i-1]>>32 {
			n++
		}
	}
	dst.cloud = &Cloud{XYZ: make([]float32, 0, 3*n), RGB: make([]uint8, 0, 3*n), Class: make([]Class, n)}
	dst.key, dst.w, dst.own = dst.key[:0], dst.w[:0], dst.own[:0]
	o := p.lat.origin
	for i := 0; i < len(p.keys); {
		k := p.keys[i] >> 32
		sum := p.runs[uint32(p.keys[i])]
		for i++; i < len(p.keys) && p.keys[i]>>32 == k; i++ {
			r := &p.runs[uint32(p.keys[i])]
			sum.x += r.x
			sum.y += r.y
			sum.z += r.z
			sum.r += r.r
			sum.g += r.g
			sum.b += r.b
			sum.n += r.n
			sum.w += r.w
			sum.own = sum.own || r.own
		}
		inv := 1 / float32(sum.n)
		half := sum.n / 2
		dst.cloud.XYZ = append(dst.cloud.XYZ, float32(o.X)+sum.x*inv, float32(o.Y)+sum.y*inv, float32(o.Z)+sum.z*inv)
		dst.cloud.RGB = append(dst.cloud.RGB, uint8((sum.r+half)/sum.n), uint8((sum.g+half)/sum.n), uint8((sum.b+half)/sum.n))
		dst.key = append(dst.key, uint32(k))
		dst.w = append(dst.w, sum.w)
		dst.own = append(dst.own, sum.own)
	}
}

// obstacles indexes the World points of blocks with enough evidence, averaged over at least 4 mm.
func (v *voxels) obstacles(l *lattice) *index {
	block, thin := l.shift(0.016), l.shift(0.004)
	pts := make([]float32, 0, len(v.cloud.XYZ))
	for i := 0; i < len(v.key); {
		j, w := i, uint32(0)
		for ; j < len(v.key) && v.key[j]>>block == v.key[i]>>block; j++ {
			if v.cloud.Class[j] == World {
				w += v.w[j]
			}
		}
		if w >= sure {
			pts = v.thin(pts, i, j, thin)
		}
		i = j
	}
	return newIndex(pts)
}

// thin appends the World points of v[i:j], one average per key>>shift.
func (v *voxels) thin(pts []float32, i, j int, shift uint) []float32 {
	for i < j {
		var x, y, z, n float32
		k := v.key[i] >> shift
		for ; i < j && v.key[i]>>shift == k; i++ {
			if v.cloud.Class[i] == World {
				x, y, z, n = x+v.cloud.XYZ[3*i], y+v.cloud.XYZ[3*i+1], z+v.cloud.XYZ[3*i+2], n+1
			}
		}
		if n > 0 {
			pts = append(pts, x/n, y/n, z/n)
		}
	}
	return pts
}
