package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"sort"
)

// hue is a colour that the scripted agent looks for: a range of hue in degrees, with the least
// saturation and value that count. Shading moves value, never hue, so ranges are wide in value.
type hue struct {
	name           string
	from, to       float64
	minSat, minVal float64
}

// blob is a connected patch of one colour in a picture, in fractions of that picture.
type blob struct {
	n          int // pixels
	u, v       float64
	minU, maxU float64
	minV, maxV float64
	pix        []image.Point
	w, h       int
}

func (b blob) at(p image.Point) (u, v float64) {
	return (float64(p.X) + 0.5) / float64(b.w), (float64(p.Y) + 0.5) / float64(b.h)
}

// spread picks at most n pixels of the blob on a regular grid.
func (b blob) spread(n int) []image.Point {
	if len(b.pix) <= n {
		return b.pix
	}
	step := int(math.Max(1, math.Sqrt(float64(len(b.pix))/float64(n))))
	var out []image.Point
	for _, p := range b.pix {
		if p.X%step == 0 && p.Y%step == 0 {
			out = append(out, p)
		}
	}
	for len(out) > n {
		k := 0
		for i := range out {
			if i%2 == 0 {
				out[k] = out[i]
				k++
			}
		}
		out = out[:k]
	}
	return out
}

// inner is the part of the blob within the middle half of its bounding box: off its edges, where depth is unsure.
func (b blob) inner() blob {
	mu, mv := (b.minU+b.maxU)/2, (b.minV+b.maxV)/2
	ru, rv := (b.maxU-b.minU)/4, (b.maxV-b.minV)/4
	in := b
	in.pix = nil
	for _, p := range b.pix {
		if u, v := b.at(p); math.Abs(u-mu) <= ru && math.Abs(v-mv) <= rv {
			in.pix = append(in.pix, p)
		}
	}
	if len(in.pix) < 5 {
		return b
	}
	return in
}

func decode(data []byte) (image.Image, error) {
	if len(data) == 0 {
		return nil, errors.New("no picture came back")
	}
	return jpeg.Decode(bytes.NewReader(data))
}

// find returns the patches of a colour inside a part of the picture, largest first; part is in fractions.
func find(img image.Image, c hue, part [4]float64, minPix int) []blob {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	x0, y0, x1, y1 := int(part[0]*float64(w)), int(part[1]*float64(h)), int(part[2]*float64(w)), int(part[3]*float64(h))
	mask := make([]bool, w*h)
	for y := y0; y < y1; y++ {
		for x := x0; x < x1; x++ {
			r, g, bl, _ := img.At(b.Min.X+x, b.Min.Y+y).RGBA()
			mask[y*w+x] = c.matches(float64(r)/65535, float64(g)/65535, float64(bl)/65535)
		}
	}
	return components(mask, w, h, minPix)
}

func (c hue) matches(r, g, b float64) bool {
	mx, mn := math.Max(r, math.Max(g, b)), math.Min(r, math.Min(g, b))
	if mx < c.minVal || mx == 0 || (mx-mn)/mx < c.minSat {
		return false
	}
	var deg float64
	switch d := mx - mn; mx {
	case r:
		deg = math.Mod((g-b)/d*60+360, 360)
	case g:
		deg = (b-r)/d*60 + 120
	default:
		deg = (r-g)/d*60 + 240
	}
	if c.from <= c.to {
		return deg >= c.from && deg <= c.to
	}
	return deg >= c.from || deg <= c.to
}

func components(mask []bool, w, h, minPix int) []blob {
	var out []blob
	for i := range mask {
		if !mask[i] {
			continue
		}
		out = append(out, flood(mask, w, h, i))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].n > out[j].n })
	for i := range out {
		if out[i].n < minPix {
			return out[:i]
		}
	}
	return out
}

func flood(mask []bool, w, h, start int) blob {
	b := blob{w: w, h: h, minU: 1, minV: 1}
	queue := []int{start}
	mask[start] = false
	for len(queue) > 0 {
		i := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		x, y := i%w, i/w
		b.pix = append(b.pix, image.Pt(x, y))
		for _, d := range [8][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {1, -1}, {-1, 1}, {-1, -1}} {
			nx, ny := x+d[0], y+d[1]
			if nx < 0 || ny < 0 || nx >= w || ny >= h || !mask[ny*w+nx] {
				continue
			}
			mask[ny*w+nx] = false
			queue = append(queue, ny*w+nx)
		}
	}
	b.n = len(b.pix)
	for _, p := range b.pix {
		u, v := b.at(p)
		b.u += u / float64(b.n)
		b.v += v / float64(b.n)
		b.minU, b.maxU = math.Min(b.minU, u), math.Max(b.maxU, u)
		b.minV, b.maxV = math.Min(b.minV, v), math.Max(b.maxV, v)
	}
	sort.Slice(b.pix, func(i, j int) bool {
		return b.pix[i].Y < b.pix[j].Y || b.pix[i].Y == b.pix[j].Y && b.pix[i].X < b.pix[j].X
	})
	return b
}

type vec [3]float64

func (a vec) String() string { return fmt.Sprintf("(%.4f %.4f %.4f)", a[0], a[1], a[2]) }

func (a vec) add(b vec) vec { return vec{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }

func (a vec) sub(b vec) vec { return vec{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

// top is what hover points tell of a box seen from above: centre and yaw of the top face, and its height.
type top struct {
	at  vec     // centre of the top face
	yaw float64 // of one pair of sides, radians in [-pi/4, pi/4)
	n   int
}

// topFace fits a square to the points within 6 mm of the highest ones: the rotation whose bounding
// rectangle has the least area, and the middle of that rectangle.
func topFace(pts []vec) (top, error) {
	if len(pts) < 6 {
		return top{}, fmt.Errorf("only %d hover points hit", len(pts))
	}
	zs := make([]float64, len(pts))
	for i, p := range pts {
		zs[i] = p[2]
	}
	sort.Float64s(zs)
	high := zs[len(zs)-1-len(zs)/20]
	var face []vec
	var z float64
	for _, p := range pts {
		if math.Abs(p[2]-high) < 0.006 {
			face = append(face, p)
			z += p[2]
		}
	}
	if len(face) < 4 {
		return top{}, fmt.Errorf("only %d of %d hover points lie on the top face", len(face), len(pts))
	}
	best := top{n: len(face)}
	area := math.Inf(1)
	for a := -math.Pi / 4; a < math.Pi/4; a += math.Pi / 180 {
		s, c := math.Sincos(a)
		lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
		for _, p := range face {
			for k, q := range [2]float64{c*p[0] + s*p[1], -s*p[0] + c*p[1]} {
				lo[k], hi[k] = math.Min(lo[k], q), math.Max(hi[k], q)
			}
		}
		if ar := (hi[0] - lo[0]) * (hi[1] - lo[1]); ar < area {
			area = ar
			mx, my := (lo[0]+hi[0])/2, (lo[1]+hi[1])/2
			best.at, best.yaw = vec{c*mx - s*my, s*mx + c*my, z / float64(len(face))}, a
		}
	}
	return best, nil
}

func median(pts []vec) vec {
	var out vec
	for k := range out {
		x := make([]float64, len(pts))
		for i, p := range pts {
			x[i] = p[k]
		}
		sort.Float64s(x)
		out[k] = x[len(x)/2]
	}
	return out
}
