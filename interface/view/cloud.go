package view

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/perception"
)

// cell is one pixel of a view: depth as float32 bits, colour, and what it is, packed so that the smaller of two
// cells is the nearer.
type cell uint64

// nothing is the cell of empty space. Its depth is NaN, which is in front of nothing.
const nothing cell = math.MaxUint64

// tags say what a cell shows.
const (
	tagWorld  = 1 + cell(perception.World)
	tagRobot  = 1 + cell(perception.Robot)
	tagHeld   = 1 + cell(perception.Held)
	tagTarget = 8
)

func (c cell) depth() float32 { return math.Float32frombits(uint32(c >> 32)) }
func (c cell) tag() cell      { return c & 255 }

func cellOf(z float32, col rgb, tag cell) cell {
	return cell(math.Float32bits(z))<<32 | cell(col)<<8 | tag
}

// Sets of classes for splat.
const (
	allClasses = 1<<perception.World | 1<<perception.Robot | 1<<perception.Held
	worldOnly  = 1 << perception.World
)

// maxSplat is the largest splat in pixels.
const maxSplat = 16

// spacing is the typical distance in metres between neighbours of a cloud in voxel order: the median distance
// of points that follow each other, from a sample.
func spacing(c *perception.Cloud) float64 {
	n := c.Len()
	if n < 2 {
		return .005
	}
	step := max(1, n/4096)
	var ds []float64
	for i := 0; i+1 < n; i += step {
		if d := r3.Norm(r3.Sub(c.At(i+1), c.At(i))); d > 0 && d < .1 {
			ds = append(ds, d)
		}
	}
	if len(ds) == 0 {
		return .005
	}
	slices.Sort(ds)
	return math.Max(.001, ds[len(ds)/2])
}

// splat draws a cloud of points size metres apart into buf (l.w x l.h), nearest first to stay. A splat is a
// disc wide enough that a surface sampled that densely looks closed. Only classes whose bit is set in which are drawn.
func splat(buf []cell, l *lens, c *perception.Cloud, size float64, which uint) {
	m := splatMatrix(l)
	w, h := int32(l.w), int32(l.h)
	k := float32(l.fx * size * 1.5)
	inset := splatInsets()
	n := c.Len()
	xyz, col, class := c.XYZ[:3*n], c.RGB[:3*n], c.Class[:n]
	for i := range class {
		if which>>class[i]&1 == 0 {
			continue
		}
		p := xyz[3*i : 3*i+3 : 3*i+3]
		px, py, pz := p[0], p[1], p[2]
		z := m[8]*px + m[9]*py + m[10]*pz + m[11]
		if !(z > nearPlane) {
			continue
		}
		inv := 1 / z
		x, y := (m[0]*px+m[1]*py+m[2]*pz+m[3])*inv, (m[4]*px+m[5]*py+m[6]*pz+m[7])*inv
		s := int32(k*inv + .5)
		s = max(1, min(s, maxSplat))
		half := float32(s) * .5
		if !(x > -half && y > -half && x < float32(w)+half && y < float32(h)+half) {
			continue
		}
		x0, y0 := floor32(x-half+.5), floor32(y-half+.5)
		q := col[3*i : 3*i+3 : 3*i+3]
		v := cell(math.Float32bits(z))<<32 | cell(q[0])<<24 | cell(q[1])<<16 | cell(q[2])<<8 | (1 + cell(class[i]))
		rows := &inset[s]
		for r := range s {
			yy := y0 + r
			if yy < 0 || yy >= h {
				continue
			}
			a, b := x0+rows[r], x0+s-rows[r]
			a, b = max(a, 0), min(b, w)
			if a >= b {
				continue
			}
			row := buf[yy*w+a : yy*w+b]
			for j := range row {
				if v < row[j] {
					row[j] = v
				}
			}
		}
	}
}

func floor32(x float32) int32 {
	i := int32(x)
	if float32(i) > x {
		i--
	}
	return i
}

// splatMatrix takes a point to x*z, y*z and z in picture coordinates.
func splatMatrix(l *lens) [12]float32 {
	row := func(f float64, a r3.Vec, c float64) [4]float64 {
		v := r3.Add(r3.Scale(f, a), r3.Scale(c, l.fwd))
		return [4]float64{v.X, v.Y, v.Z, -r3.Dot(v, l.pos)}
	}
	rows := [3][4]float64{row(l.fx, l.right, l.cx), row(l.fy, l.down, l.cy), row(0, l.right, 1)}
	var m [12]float32
	for i, r := range rows {
		for j, v := range r {
			m[4*i+j] = float32(v)
		}
	}
	return m
}

// splatInsets is, for a splat of s pixels, how many pixels each row is cut at either end to make it round.
func splatInsets() *[maxSplat + 1][maxSplat]int32 {
	t := new([maxSplat + 1][maxSplat]int32)
	for s := 4; s <= maxSplat; s++ {
		r := float64(s) / 2
		for y := range s {
			d := float64(y) + .5 - r
			t[s][y] = int32(r - math.Sqrt(math.Max(0, (r+.3)*(r+.3)-d*d)) + .5)
			t[s][y] = max(0, t[s][y])
		}
	}
	return t
}

// paintCells writes the colours of cells over a canvas of the same size. Pixels that lie behind a near
// neighbour are darkened, so that shapes stand out from what is behind them.
func paintCells(c *canvas, buf []cell) {
	w := c.w
	for y := range c.h {
		row := buf[y*w : (y+1)*w]
		up, down := row, row
		if y >= 2 {
			up = buf[(y-2)*w : (y-1)*w]
		}
		if y+2 < c.h {
			down = buf[(y+2)*w : (y+3)*w]
		}
		out := c.pix[y*c.stride : y*c.stride+4*w]
		for x, v := range row {
			if v == nothing {
				continue
			}
			l, r := max(x-2, 0), min(x+2, w-1)
			// The nearest of the four: cells compare by depth first.
			n := min(row[l], row[r], up[x], down[x])
			k := uint32(256)
			if n < v {
				z := v.depth()
				if gap := (z - n.depth()) / z; gap > .012 {
					k = 256 - uint32(min(gap-.012, .06)*1700)
				}
			}
			p := out[4*x : 4*x+4 : 4*x+4]
			p[0] = uint8(uint32(v>>24&255) * k >> 8)
			p[1] = uint8(uint32(v>>16&255) * k >> 8)
			p[2] = uint8(uint32(v>>8&255) * k >> 8)
		}
	}
}

// maxGap is the widest hole in pixels that closeGaps fills.
const maxGap = 5

// closeGaps fills small holes in a surface that was sampled more thinly than its points are drawn: empty cells
// with the same surface close by on all four sides. What it fills counts as cloud for picks too.
func closeGaps(buf []cell, w, h int) {
	for y := 1; y < h-1; y++ {
		row := buf[y*w : (y+1)*w]
		for x := 1; x < w; x++ {
			if row[x] != nothing || row[x-1] == nothing {
				continue
			}
			end := x
			for end < w && end-x <= maxGap && row[end] == nothing {
				end++
			}
			if end == w || row[end] == nothing {
				x = end
				continue
			}
			if l, r := row[x-1], row[end]; alike(l, r) {
				for i := x; i < end; i++ {
					if c := l; flanked(buf, w, h, i, y, l) {
						if end-i < i-x+1 {
							c = r
						}
						row[i] = c
					}
				}
			}
			x = end
		}
	}
}

// flanked reports whether the surface of c lies above and below a cell.
func flanked(buf []cell, w, h, x, y int, c cell) bool {
	found := 0
	for _, d := range [2]int{-1, 1} {
		for k := 1; k <= maxGap; k++ {
			yy := y + d*k
			if yy < 0 || yy >= h {
				break
			}
			if v := buf[yy*w+x]; v != nothing {
				if alike(v, c) {
					found++
				}
				break
			}
		}
	}
	return found == 2
}

// alike reports whether two cells may lie on one surface.
func alike(a, b cell) bool {
	za, zb := a.depth(), b.depth()
	d := za - zb
	return d < .02*za && d > -.02*za
}
