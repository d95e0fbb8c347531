package view

import (
	"image"
	"math"

	"gonum.org/v1/gonum/spatial/r3"
)

// rgb is a colour as 0xRRGGBB.
type rgb uint32

func (c rgb) parts() (r, g, b uint32) {
	return uint32(c) >> 16 & 255, uint32(c) >> 8 & 255, uint32(c) & 255
}

// scaled is the colour with its brightness multiplied by s in [0, 2].
func (c rgb) scaled(s float32) rgb {
	r, g, b := c.parts()
	m := func(v uint32) rgb { return rgb(min(float32(v)*s, 255)) }
	return m(r)<<16 | m(g)<<8 | m(b)
}

// toward mixes c with d, s in [0, 1].
func (c rgb) toward(d rgb, s float32) rgb {
	r, g, b := c.parts()
	e, f, h := d.parts()
	m := func(v, w uint32) rgb { return rgb(float32(v) + (float32(w)-float32(v))*s + .5) }
	return m(r, e)<<16 | m(g, f)<<8 | m(b, h)
}

// canvas is a part of a picture to draw on, with the depth of what is already there. Coordinates are those of
// the part: continuous, pixel i covers [i, i+1).
type canvas struct {
	pix    []uint8 // RGBA, opaque; nil when only depths are wanted
	stride int
	w, h   int
	z      []cell // nil: nothing hides anything
	fault  error  // what was not drawn because of a fault of ours
}

// canvasOn is a canvas over r of img, with depths z of the same size or nil.
func canvasOn(img *image.RGBA, r image.Rectangle, z []cell) *canvas {
	sub := img.SubImage(r).(*image.RGBA)
	return &canvas{pix: sub.Pix, stride: sub.Stride, w: r.Dx(), h: r.Dy(), z: z}
}

// blend lays a colour of opacity a in [0, 1] over a pixel that must be on the canvas.
func (c *canvas) blend(x, y int, col rgb, a float32) {
	if a <= 0 || c.pix == nil {
		return
	}
	k := uint32(min(a, 1)*256 + .5)
	p := c.pix[y*c.stride+4*x:]
	p = p[:4:4]
	r, g, b := col.parts()
	p[0] = uint8((uint32(p[0])*(256-k) + r*k) >> 8)
	p[1] = uint8((uint32(p[1])*(256-k) + g*k) >> 8)
	p[2] = uint8((uint32(p[2])*(256-k) + b*k) >> 8)
}

// hides reports whether what is at the pixel lies in front of depth z; z of zero is never hidden.
func (c *canvas) hides(x, y int, z float64) bool {
	return z > 0 && c.z != nil && float64(c.z[y*c.w+x].depth()) < z-.004-.002*z
}

// ink is how a line is drawn.
type ink struct {
	col    rgb
	width  float64 // pixels
	halo   float64 // extra pixels of rim on either side
	rim    rgb     // colour of the rim; 0 counts as white
	hidden float32 // opacity where something is in front; 0 counts as 0.25, negative as nothing
	dash   float64 // length of dashes and gaps in pixels, 0 for a solid line
	alpha  float32 // opacity; 0 counts as 1
}

func (k ink) faded() float32 {
	switch {
	case k.hidden == 0:
		return .25
	case k.hidden < 0:
		return 0
	}
	return k.hidden
}

// line draws a segment between points of the canvas. A point's Z is its depth in metres; zero is in front of all.
func (c *canvas) line(a, b r3.Vec, k ink) { c.polyline([]r3.Vec{a, b}, k) }

// polyline draws connected segments; dashes run on from one to the next.
func (c *canvas) polyline(ps []r3.Vec, k ink) {
	if k.halo > 0 {
		h := k
		h.col, h.width, h.halo = k.rim, k.width+2*k.halo, 0
		if k.rim == 0 {
			h.col = 0xFFFFFF
		}
		h.alpha, h.hidden = .85, k.faded()/2
		if h.hidden == 0 {
			h.hidden = -1
		}
		c.polyline(ps, h)
	}
	var run float64
	for i := 1; i < len(ps); i++ {
		c.segment(ps[i-1], ps[i], k, run)
		run += math.Hypot(ps[i].X-ps[i-1].X, ps[i].Y-ps[i-1].Y)
	}
}

func (c *canvas) segment(a, b r3.Vec, k ink, run float64) {
	if !(math.Abs(a.X)+math.Abs(a.Y)+math.Abs(b.X)+math.Abs(b.Y) < 1e7) {
		return
	}
	half := k.width / 2
	a, b, ok := c.cut(a, b, half+2)
	if !ok {
		return
	}
	dx, dy := b.X-a.X, b.Y-a.Y
	l := math.Hypot(dx, dy)
	if l < 1e-9 {
		dx, dy, l = 1, 0, 1e-9
	} else {
		dx, dy = dx/l, dy/l
	}
	alpha, faded := k.alpha, k.faded()
	if alpha == 0 {
		alpha = 1
	}
	test := a.Z > 0 && b.Z > 0 && c.z != nil
	c.span(a, b, half+1, func(x, y int) {
		px, py := float64(x)+.5-a.X, float64(y)+.5-a.Y
		t := px*dx + py*dy
		var d float64
		if s := math.Max(0, math.Min(l, t)); s == t {
			d = math.Abs(px*dy - py*dx)
		} else {
			d = math.Hypot(px-s*dx, py-s*dy)
			t = s
		}
		cov := half + .5 - d
		if cov <= 0 {
			return
		}
		o := float32(math.Min(cov, 1)) * alpha
		if k.width < 1 {
			o *= float32(k.width)
		}
		if k.dash > 0 {
			o *= dashed(run+t, k.dash)
		}
		if test {
			w := t / l
			if z := 1 / ((1-w)/a.Z + w/b.Z); c.hides(x, y, z) {
				o *= faded
			}
		}
		c.blend(x, y, k.col, o)
	})
}

// dashed is the opacity at a distance along a dashed line, its ends softened over a pixel.
func dashed(t, dash float64) float32 {
	p := math.Mod(t, 2*dash)
	return float32(math.Max(0, math.Min(1, math.Min(p+.5, dash-p+.5))))
}

// cut clips a segment to the canvas grown by m pixels; depths are kept perspective-true.
func (c *canvas) cut(a, b r3.Vec, m float64) (r3.Vec, r3.Vec, bool) {
	t0, t1 := 0.0, 1.0
	edge := func(p, d, lo, hi float64) bool {
		if d == 0 {
			return p >= lo && p <= hi
		}
		u, v := (lo-p)/d, (hi-p)/d
		if u > v {
			u, v = v, u
		}
		t0, t1 = math.Max(t0, u), math.Min(t1, v)
		return t0 <= t1
	}
	if !edge(a.X, b.X-a.X, -m, float64(c.w)+m) || !edge(a.Y, b.Y-a.Y, -m, float64(c.h)+m) {
		return a, b, false
	}
	at := func(t float64) r3.Vec {
		p := mix(a, b, t)
		if a.Z > 0 && b.Z > 0 {
			p.Z = 1 / ((1-t)/a.Z + t/b.Z)
		}
		return p
	}
	if t0 == 0 && t1 == 1 {
		return a, b, true
	}
	return at(t0), at(t1), true
}

// span visits the pixels within r of the segment, row by row or column by column along its longer side.
func (c *canvas) span(a, b r3.Vec, r float64, visit func(x, y int)) {
	steep := math.Abs(b.Y-a.Y) > math.Abs(b.X-a.X)
	am, an, bm, bn, nm, nn := a.X, a.Y, b.X, b.Y, c.w, c.h
	if steep {
		am, an, bm, bn, nm, nn = a.Y, a.X, b.Y, b.X, c.h, c.w
	}
	if am > bm {
		am, an, bm, bn = bm, bn, am, an
	}
	slope := 0.0
	if bm > am {
		slope = (bn - an) / (bm - am)
	}
	reach := r * math.Sqrt(1+slope*slope)
	for m := max(0, int(am-r)); m <= min(nm-1, int(bm+r)); m++ {
		t := math.Max(am, math.Min(bm, float64(m)+.5))
		mid := an + slope*(t-am)
		for n := max(0, int(mid-reach-.5)); n <= min(nn-1, int(mid+reach+.5)); n++ {
			if steep {
				visit(n, m)
			} else {
				visit(m, n)
			}
		}
	}
}

// convex fills a convex polygon, either winding, at opacity a. depth of zero is in front of all; where it is
// hidden it is drawn at a quarter.
func (c *canvas) convex(ps []r3.Vec, col rgb, a float32) {
	x0, y0, x1, y1 := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	area, z := 0.0, 0.0
	for i, p := range ps {
		q := ps[(i+1)%len(ps)]
		area += p.X*q.Y - q.X*p.Y
		x0, y0, x1, y1 = math.Min(x0, p.X), math.Min(y0, p.Y), math.Max(x1, p.X), math.Max(y1, p.Y)
		z += p.Z / float64(len(ps))
	}
	if !(x1-x0+y1-y0 < 1e5) {
		return
	}
	sign := 1.0
	if area < 0 {
		sign = -1
	}
	for y := max(0, int(y0-1)); y <= min(c.h-1, int(y1+1)); y++ {
		for x := max(0, int(x0-1)); x <= min(c.w-1, int(x1+1)); x++ {
			d := math.Inf(1)
			for i, p := range ps {
				q := ps[(i+1)%len(ps)]
				ex, ey := q.X-p.X, q.Y-p.Y
				l := math.Hypot(ex, ey)
				if l < 1e-9 {
					continue
				}
				d = math.Min(d, sign*(ex*(float64(y)+.5-p.Y)-ey*(float64(x)+.5-p.X))/l)
			}
			o := float32(math.Max(0, math.Min(1, d+.5))) * a
			if c.hides(x, y, z) {
				o *= .25
			}
			c.blend(x, y, col, o)
		}
	}
}

// disc fills a circle of radius r about p, or with width > 0 draws its rim that wide.
func (c *canvas) disc(p r3.Vec, r, width float64, col rgb, a float32) {
	if !(math.Abs(p.X)+math.Abs(p.Y) < 1e6) {
		return
	}
	e := r + width/2 + 1
	for y := max(0, int(p.Y-e)); y <= min(c.h-1, int(p.Y+e)); y++ {
		for x := max(0, int(p.X-e)); x <= min(c.w-1, int(p.X+e)); x++ {
			d := r - math.Hypot(float64(x)+.5-p.X, float64(y)+.5-p.Y)
			if width > 0 {
				d = width/2 - math.Abs(d)
			}
			o := float32(math.Max(0, math.Min(1, d+.5))) * a
			if c.hides(x, y, p.Z) {
				o *= .3
			}
			c.blend(x, y, col, o)
		}
	}
}

// chip fills a rectangle with rounded corners of radius r.
func (c *canvas) chip(x0, y0, x1, y1, r float64, col rgb, a float32) {
	mx, my, hx, hy := (x0+x1)/2, (y0+y1)/2, (x1-x0)/2-r, (y1-y0)/2-r
	for y := max(0, int(y0)); y <= min(c.h-1, int(y1)); y++ {
		for x := max(0, int(x0)); x <= min(c.w-1, int(x1)); x++ {
			dx := math.Max(0, math.Abs(float64(x)+.5-mx)-hx)
			dy := math.Max(0, math.Abs(float64(y)+.5-my)-hy)
			c.blend(x, y, col, float32(math.Max(0, math.Min(1, r-math.Hypot(dx, dy)+.5)))*a)
		}
	}
}

// arrowhead is a filled triangle with its tip at p, pointing along (dx, dy), n pixels long.
func (c *canvas) arrowhead(p r3.Vec, dx, dy, n float64, col rgb) {
	l := math.Hypot(dx, dy)
	if l < 1e-9 {
		return
	}
	dx, dy = dx/l, dy/l
	tri := func(n, w, back float64) []r3.Vec {
		return []r3.Vec{
			{X: p.X + back*dx, Y: p.Y + back*dy, Z: p.Z},
			{X: p.X - n*dx - w*dy, Y: p.Y - n*dy + w*dx, Z: p.Z},
			{X: p.X - n*dx + w*dy, Y: p.Y - n*dy - w*dx, Z: p.Z},
		}
	}
	c.convex(tri(n+2, n*.5+2.5, 3), 0xFFFFFF, .85)
	c.convex(tri(n, n*.5, 0), col, 1)
}

// dart is an arrowhead that cannot be read the wrong way round: slim, and notched behind. Of a plain triangle on a
// slanting ring any corner may be taken for the tip.
func (c *canvas) dart(p r3.Vec, dx, dy, n float64, col rgb) {
	l := math.Hypot(dx, dy)
	if l < 1e-9 {
		return
	}
	dx, dy = dx/l, dy/l
	at := func(along, aside float64) r3.Vec {
		return r3.Vec{X: p.X - along*dx - aside*dy, Y: p.Y - along*dy + aside*dx, Z: p.Z}
	}
	draw := func(tip, back, notch, half float64, col rgb, a float32) {
		for _, side := range [2]float64{1, -1} {
			c.convex([]r3.Vec{at(tip, -side*.4), at(back, side*half), at(notch, -side*.4)}, col, a) // overlapping: no seam
		}
	}
	draw(-4, n+2.5, .68*n+4, .36*n+2.5, 0xFFFFFF, 1)
	draw(0, n, .68*n, .36*n, col, 1)
}
