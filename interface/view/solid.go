package view

import (
	"errors"
	"fmt"
	"image"
	"math"
	"runtime/debug"
	"sync"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// look is how a solid is coloured.
type look struct {
	base    rgb        // of a surface that faces the light
	edge    rgb        // outline
	tag     cell       // what its pixels are marked as; 0 leaves the cells alone
	hatch   rgb        // colour of diagonal stripes, 0 for none
	hatched float32    // opacity of the stripes
	slack   [8]float32 // metres that a cell of a tag must be nearer to hide the solid
	slackZ  float32    // more slack per metre of depth
	ghost   float32    // opacity of the outline where something hides it
	tint    float32    // opacity of the faces where something hides them
	opacity float32    // of the visible faces; 0 counts as 1
}

// sample is one point of the finer grid a solid is drawn on.
type sample struct {
	z     float32 // metres, +Inf where the solid is not
	shade float32
	part  uint8
}

// solidPool recycles the fine grids; they hold no state between uses.
type solidPool struct{ pool sync.Pool }

func (p *solidPool) get(n int) []sample {
	if b, ok := p.pool.Get().(*[]sample); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]sample, n)
}

func (p *solidPool) put(b []sample) { p.pool.Put(&b) }

// corner is a vertex on the picture: position, 1/depth and shade.
type corner struct{ x, y, iz, shade float32 }

// drawSolid draws a mesh placed at pose into the canvas with hidden parts taken away, edges smoothed by four
// samples a pixel, and marks its pixels in c.z. It returns the pixels it covers, hidden or not.
func drawSolid(c *canvas, l *lens, m *mesh, pose geom.Pose, k look, pool *solidPool) image.Rectangle {
	tris, box := projectMesh(l, m, pose)
	box = box.Intersect(image.Rect(0, 0, c.w, c.h))
	if box.Empty() {
		return box
	}
	ss := 2
	if box.Dx()*box.Dy() > 300_000 {
		ss = 1 // so close that its edges are few beside its faces
	}
	w, h := box.Dx()*ss, box.Dy()*ss
	grid := pool.get(w * h)
	defer pool.put(grid)
	far := sample{z: float32(math.Inf(1))}
	for i := range grid {
		grid[i] = far
	}
	for i := range tris {
		fillTri(grid, w, h, &tris[i], float32(ss), float32(box.Min.X), float32(box.Min.Y))
	}
	resolve(c, grid, box, ss, k)
	return box
}

// screenTri is one triangle on the picture.
type screenTri struct {
	v    [3]corner
	part uint8
}

// projectMesh places, lights, clips and projects a mesh; back faces are left out.
func projectMesh(l *lens, m *mesh, pose geom.Pose) ([]screenTri, image.Rectangle) {
	q := pose.R
	key := r3.Unit(r3.Vec{X: .25, Y: -.35, Z: .9}) // from above, a little to the side
	x0, y0, x1, y1 := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	var out []screenTri
	var p [4]r3.Vec
	var s [4]float64
	for t := range m.part {
		for i := range 3 {
			world := pose.Point(m.pos[3*t+i])
			n := geom.Rotate(q, m.normal[3*t+i])
			p[i] = l.local(world)
			view := r3.Unit(r3.Sub(l.pos, world))
			s[i] = float64(m.shade[t]) * (.34 + .46*math.Max(0, r3.Dot(n, key)) + .38*math.Max(0, r3.Dot(n, view)))
		}
		n := clipPoly(&p, &s)
		var vs [4]corner
		for i := range n {
			a := l.screen(p[i])
			vs[i] = corner{float32(a.X), float32(a.Y), float32(1 / a.Z), float32(s[i])}
		}
		for i := 2; i < n; i++ {
			tri := screenTri{v: [3]corner{vs[0], vs[i-1], vs[i]}, part: m.part[t]}
			if tri.area() <= 0 {
				continue
			}
			for _, v := range tri.v {
				x0, y0 = math.Min(x0, float64(v.x)), math.Min(y0, float64(v.y))
				x1, y1 = math.Max(x1, float64(v.x)), math.Max(y1, float64(v.y))
			}
			out = append(out, tri)
		}
	}
	if len(out) == 0 {
		return nil, image.Rectangle{}
	}
	lim := func(v float64) int { return int(math.Max(-1e6, math.Min(1e6, v))) }
	return out, image.Rect(lim(math.Floor(x0))-1, lim(math.Floor(y0))-1, lim(math.Ceil(x1))+1, lim(math.Ceil(y1))+1)
}

// area is positive for a triangle that faces the lens: counter-clockwise from outside, y down on the picture.
func (t *screenTri) area() float32 {
	a, b, c := t.v[0], t.v[1], t.v[2]
	return (c.x-a.x)*(b.y-a.y) - (b.x-a.x)*(c.y-a.y)
}

// clipPoly cuts a triangle in the lens's own axes at the near plane and returns how many corners it then has.
func clipPoly(p *[4]r3.Vec, s *[4]float64) int {
	in := 0
	for i := range 3 {
		if p[i].Z > nearPlane {
			in++
		}
	}
	if in == 3 || in == 0 {
		return in
	}
	src, sh, n := *p, *s, 0
	for i := range 3 {
		j := (i + 1) % 3
		a, b := src[i], src[j]
		if a.Z > nearPlane {
			p[n], s[n] = a, sh[i]
			n++
		}
		if (a.Z > nearPlane) != (b.Z > nearPlane) {
			t := (nearPlane*1.0001 - a.Z) / (b.Z - a.Z)
			p[n], s[n] = mix(a, b, t), sh[i]+t*(sh[j]-sh[i])
			n++
		}
	}
	return n
}

// fillTri draws one triangle into the fine grid, ss samples to a pixel, whose corner is pixel ox, oy.
func fillTri(grid []sample, w, h int, t *screenTri, ss, ox, oy float32) {
	var v [3]corner
	for i, a := range t.v {
		v[i] = corner{(a.x - ox) * ss, (a.y - oy) * ss, a.iz, a.shade}
	}
	x0, x1 := min(v[0].x, v[1].x, v[2].x), max(v[0].x, v[1].x, v[2].x)
	y0, y1 := min(v[0].y, v[1].y, v[2].y), max(v[0].y, v[1].y, v[2].y)
	ix0, ix1 := int(max(x0, 0)), int(min(x1+1, float32(w)))
	iy0, iy1 := int(max(y0, 0)), int(min(y1+1, float32(h)))
	if ix0 >= ix1 || iy0 >= iy1 {
		return
	}
	area := (v[1].x-v[0].x)*(v[2].y-v[0].y) - (v[2].x-v[0].x)*(v[1].y-v[0].y)
	if area == 0 {
		return
	}
	inv := 1 / area
	// Barycentric weights of corners 1 and 2 are affine on the picture, and so are 1/z and (nearly) shade.
	b1x, b1y := (v[2].y-v[0].y)*inv, -(v[2].x-v[0].x)*inv
	b2x, b2y := -(v[1].y-v[0].y)*inv, (v[1].x-v[0].x)*inv
	d1, d2 := v[1].iz-v[0].iz, v[2].iz-v[0].iz
	s1, s2 := v[1].shade-v[0].shade, v[2].shade-v[0].shade
	const eps = -1e-4
	for y := iy0; y < iy1; y++ {
		dy := float32(y) + .5 - v[0].y
		row := grid[y*w : (y+1)*w]
		for x := ix0; x < ix1; x++ {
			dx := float32(x) + .5 - v[0].x
			b1, b2 := b1x*dx+b1y*dy, b2x*dx+b2y*dy
			if b1 < eps || b2 < eps || b1+b2 > 1-eps {
				continue
			}
			z := 1 / (v[0].iz + b1*d1 + b2*d2)
			if z < row[x].z && z > 0 {
				row[x] = sample{z, v[0].shade + b1*s1 + b2*s2, t.part}
			}
		}
	}
}

// resolve brings the fine grid down onto the canvas, the upper and the lower half of it side by side.
func resolve(c *canvas, grid []sample, box image.Rectangle, ss int, k look) {
	if k.opacity == 0 {
		k.opacity = 1
	}
	rows := func(from, to int) {
		for y := from; y < to; y++ {
			for x := box.Min.X; x < box.Max.X; x++ {
				gx, gy := (x-box.Min.X)*ss, (y-box.Min.Y)*ss
				resolvePixel(c, grid, box.Dx()*ss, gx, gy, ss, x, y, &k)
			}
		}
	}
	middle := (box.Min.Y + box.Max.Y) / 2
	c.fault = errors.Join(c.fault, both(func() { rows(box.Min.Y, middle) }, func() { rows(middle, box.Max.Y) }))
}

// both runs two functions side by side. A panic of either is an error: the daemon answers a call that failed, and
// drives on.
func both(a, b func()) error {
	done := make(chan error, 1)
	go func() { done <- guarded(a) }()
	err := guarded(b)
	return errors.Join(<-done, err)
}

func guarded(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v\n%s", p, debug.Stack())
		}
	}()
	f()
	return nil
}

func resolvePixel(c *canvas, grid []sample, w, gx, gy, ss, x, y int, k *look) {
	var n, hid, hidEdge int
	var r, g, b, depth float32
	at := y*c.w + x
	for j := range ss {
		for i := range ss {
			s := &grid[(gy+j)*w+gx+i]
			if s.z > math.MaxFloat32 {
				continue
			}
			edge := onEdge(grid, w, gx+i, gy+j)
			if c.z != nil {
				if v := c.z[at]; v != nothing && v.depth() < s.z-k.slack[v.tag()&7]-k.slackZ*s.z {
					hid++
					if edge != noEdge {
						hidEdge++
					}
					continue
				}
			}
			cr, cg, cb := k.colour(s, edge, x, y)
			r, g, b, n = r+cr, g+cg, b+cb, n+1
			depth += s.z
		}
	}
	all := float32(ss * ss)
	if hid > 0 {
		c.blend(x, y, k.base, k.tint*float32(hid)/all)
		c.blend(x, y, k.edge, k.ghost*float32(hidEdge)/all)
	}
	if n == 0 {
		return
	}
	f := float32(n)
	col := rgb(r/f)<<16 | rgb(g/f)<<8 | rgb(b/f)
	c.blend(x, y, col, k.opacity*f/all)
	if k.tag != 0 && c.z != nil && 2*n >= ss*ss {
		c.z[at] = cellOf(depth/f, col, k.tag)
	}
}

type edgeKind uint8

const (
	noEdge edgeKind = iota
	crease
	silhouette
)

// onEdge says whether a sample of the solid lies on its outline, or where one part stands before another.
func onEdge(grid []sample, w, x, y int) edgeKind {
	at := y*w + x
	s := &grid[at]
	kind := noEdge
	for i, d := range [4]int{1, -1, w, -w} {
		n := at + d
		if i == 0 && x+1 == w || i == 1 && x == 0 || n < 0 || n >= len(grid) {
			continue
		}
		o := &grid[n]
		if o.z > math.MaxFloat32 {
			return silhouette
		}
		if o.part != s.part || o.z-s.z > .008 || o.shade-s.shade > .1 || s.shade-o.shade > .1 {
			kind = crease
		}
	}
	return kind
}

// colour is a sample's colour as three components 0..255.
func (k *look) colour(s *sample, e edgeKind, x, y int) (r, g, b float32) {
	col := k.base.scaled(min(s.shade, 1.15) * 1.35)
	if k.hatch != 0 && (x+y)%10 < 3 {
		col = col.toward(k.hatch, k.hatched)
	}
	switch e {
	case silhouette:
		col = k.edge
	case crease:
		col = col.toward(k.edge, .55)
	case noEdge:
	}
	cr, cg, cb := col.parts()
	return float32(cr), float32(cg), float32(cb)
}
