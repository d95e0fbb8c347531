package view

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/interface/stage"
	"viad/perception"
)

// layer is all of the cloud view that edits do not change: background, grid and cloud of one scene seen from one
// viewport. It is immutable once made.
type layer struct {
	scene *perception.Scene
	orbit stage.Orbit
	lens  lens
	cells []cell  // depths, colours and tags of the cloud
	pix   []uint8 // RGBA
}

// layer finds or draws the static part of the cloud view.
func (p *Painter) layer(sn *stage.Snapshot) *layer {
	o := viewport(sn.Orbit)
	p.mu.Lock()
	for i, l := range p.layers {
		if l.scene == sn.Scene && l.orbit == o {
			if last := len(p.layers) - 1; i != last { // keep what is in use
				p.layers = append(append(p.layers[:i:i], p.layers[i+1:]...), l)
			}
			p.mu.Unlock()
			return l
		}
	}
	p.mu.Unlock()
	l := p.drawLayer(sn.Scene, o)
	p.mu.Lock()
	p.layers = remember(p.layers, l, maxLayers)
	p.mu.Unlock()
	return l
}

// viewport is the orbit, or a plain one for a snapshot that has none.
func viewport(o stage.Orbit) stage.Orbit {
	if !(o.Distance > 0) {
		return stage.Orbit{Target: r3.Vec{X: .5}, Distance: 1.2, Azimuth: math.Pi / 2, Elevation: 35 * math.Pi / 180}
	}
	return o
}

func (p *Painter) drawLayer(sc *perception.Scene, o stage.Orbit) *layer {
	r := Layout.Cloud
	w, h := r.Dx(), r.Dy()
	l := &layer{scene: sc, orbit: o, lens: orbitLens(o, w, h), cells: make([]cell, w*h), pix: make([]uint8, 4*w*h)}
	for i := range l.cells {
		l.cells[i] = nothing
	}
	c := &canvas{pix: l.pix, stride: 4 * w, w: w, h: h, z: l.cells}
	paintSky(c)
	if sc != nil && sc.Cloud.Len() > 0 {
		size := p.o.Voxel
		if size <= 0 {
			size = spacing(sc.Cloud)
		}
		splat(l.cells, &l.lens, sc.Cloud, size, allClasses)
		closeGaps(l.cells, w, h)
	}
	drawGrid(c, &l.lens, o)
	paintCells(c, l.cells)
	return l
}

func paintSky(c *canvas) {
	for y := range c.h {
		r, g, b := skyTop.toward(skyBottom, float32(y)/float32(c.h)).parts()
		row := c.pix[y*c.stride : y*c.stride+4*c.w]
		for x := 0; x < len(row); x += 4 {
			row[x], row[x+1], row[x+2], row[x+3] = uint8(r), uint8(g), uint8(b), 255
		}
	}
}

// drawGrid draws lines on the floor z = 0 every 10 cm around what the viewport looks at, fading outwards.
func drawGrid(c *canvas, l *lens, o stage.Orbit) {
	const step, n, z = .1, 12, -.003
	ox, oy := math.Round(o.Target.X/step)*step, math.Round(o.Target.Y/step)*step
	for i := -n; i <= n; i++ {
		for j := -n; j < n; j++ {
			a, b := float64(i)*step, float64(j)*step
			fade := 1 - math.Hypot(a, b+step/2)/(n*step)
			if fade <= 0 {
				continue
			}
			k := ink{col: gridLine, width: 1, hidden: -1, alpha: float32(math.Min(1, 1.3*fade)) * .55}
			if math.Mod(math.Abs(math.Round((ox+a)/step)), 5) == 0 {
				k.width = 1.6
			}
			segment3(c, l, r3.Vec{X: ox + a, Y: oy + b, Z: z}, r3.Vec{X: ox + a, Y: oy + b + step, Z: z}, k)
			k.width = 1
			if math.Mod(math.Abs(math.Round((oy+a)/step)), 5) == 0 {
				k.width = 1.6
			}
			segment3(c, l, r3.Vec{X: ox + b, Y: oy + a, Z: z}, r3.Vec{X: ox + b + step, Y: oy + a, Z: z}, k)
		}
	}
}

// segment3 draws a segment between two points of the odometry frame.
func segment3(c *canvas, l *lens, a, b r3.Vec, k ink) { polyline3(c, l, []r3.Vec{a, b}, k) }

// polyline3 draws connected segments between points of the odometry frame; what lies behind the lens is cut off.
func polyline3(c *canvas, l *lens, ps []r3.Vec, k ink) {
	var run []r3.Vec
	flush := func() {
		if len(run) > 1 {
			c.polyline(run, k)
		}
		run = run[:0]
	}
	for i := 1; i < len(ps); i++ {
		a, b, ok := clip(l.local(ps[i-1]), l.local(ps[i]))
		if !ok {
			flush()
			continue
		}
		sa, sb := l.screen(a), l.screen(b)
		if len(run) == 0 || run[len(run)-1] != sa {
			flush()
			run = append(run, sa)
		}
		run = append(run, sb)
	}
	flush()
}
