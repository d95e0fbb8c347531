package view

import (
	"fmt"
	"image"
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
	"viad/perception"
)

// Heights above the floor in metres between which points are obstacles on the map.
const (
	mapLow, mapHigh = .05, 1.6
	mapReach        = .5 // metres, the outermost ring
	mapBanner       = 54 // pixels at the edges that no footprint within the caps needs
)

// navMap is the map being drawn: the real base in the middle, +x up, +y left.
type navMap struct {
	c     *canvas
	scale float64 // pixels per metre
}

// at is where a point of the real base's frame is on the map.
func (m navMap) at(x, y float64) r3.Vec {
	return r3.Vec{X: float64(m.c.w)/2 - m.scale*y, Y: float64(m.c.h)/2 - m.scale*x}
}

// NavMap draws nav_map, 640x640, seen from above: rings every 0.1 m, gray footprint of the real base in the
// centre, red footprint with a nose of the staged base, and what the sensors see of things that stand on the floor.
func (p *Painter) NavMap(sn *stage.Snapshot) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, MapSize, MapSize))
	c := canvasOn(img, img.Bounds(), nil)
	c.fill(img.Bounds(), 0xFBFCFD)
	r := 0.0
	for _, q := range p.o.Footprint {
		r = math.Max(r, math.Hypot(q.X, q.Y))
	}
	m := navMap{c: c, scale: (MapSize/2 - mapBanner) / (mapReach + r)}
	m.obstacles(sn)
	p.rings(m)
	m.footprint(p.o.Footprint, geom.SE2{}, 0x6B7480, 0x9AA3AE, .55)
	ahead := 0.0
	for _, q := range p.o.Footprint {
		ahead = math.Max(ahead, q.X)
	}
	m.nose(ahead, geom.SE2{}, 0x6B7480)
	p.ringWords(m)
	d := sn.BaseDelta
	if d.Finite() {
		m.footprint(p.o.Footprint, d, 0xB3120E, targetRed, .42)
		m.nose(ahead, d, 0xB3120E)
		a, b := m.at(0, 0), m.at(d.X, d.Y)
		if l := math.Hypot(b.X-a.X, b.Y-a.Y); l > 12 {
			k := (l - 12) / l
			c.line(a, mix(a, b, k), ink{col: 0xB3120E, width: 2.4, halo: 1, dash: 6})
			c.arrowhead(b, b.X-a.X, b.Y-a.Y, 12, 0xB3120E)
		}
	}
	if blocked(sn) && sn.Check.HasHit {
		h := sn.State.Base.Pose().Inv().Point(sn.Check.Hit)
		q := m.at(h.X, h.Y)
		c.warnSign(q.X, q.Y, 12, bad)
	}
	p.mapWords(m, sn)
	p.banner(c, sn)
	return img
}

// obstacles draws the cloud's points that stand on the floor, in their own colour made paler.
func (m navMap) obstacles(sn *stage.Snapshot) {
	if sn.Scene == nil {
		return
	}
	toBase := sn.State.Base.Pose().Inv()
	cl := sn.Scene.Cloud
	reach := float64(m.c.w)/2/m.scale + .02
	for i := range cl.Len() {
		z := float64(cl.XYZ[3*i+2])
		if cl.Class[i] != perception.World || z < mapLow || z > mapHigh {
			continue
		}
		q := toBase.Point(cl.At(i))
		if math.Abs(q.X) > reach || math.Abs(q.Y) > reach {
			continue
		}
		col := rgb(cl.RGB[3*i])<<16 | rgb(cl.RGB[3*i+1])<<8 | rgb(cl.RGB[3*i+2])
		s := m.at(q.X, q.Y)
		x, y := int(s.X), int(s.Y)
		for dy := -1; dy <= 1; dy++ {
			for dx := -1; dx <= 1; dx++ {
				if xx, yy := x+dx, y+dy; xx >= 0 && yy >= 0 && xx < m.c.w && yy < m.c.h {
					m.c.blend(xx, yy, col.toward(0x56616E, .45), .5)
				}
			}
		}
	}
}

func (p *Painter) rings(m navMap) {
	for i := 1; i <= 5; i++ {
		r := .1 * float64(i)
		k := rgb(0x9AA7B5)
		width := 1.2
		if i == 5 {
			k, width = 0x5F7184, 2
		}
		m.c.disc(m.at(0, 0), r*m.scale, width, k, .9)
	}
	m.c.line(m.at(mapReach+.03, 0), m.at(-mapReach-.03, 0), ink{col: 0xC3CCD6, width: 1})
	m.c.line(m.at(0, mapReach+.03), m.at(0, -mapReach-.03), ink{col: 0xC3CCD6, width: 1})
}

// ringWords labels the rings, over the footprints.
func (p *Painter) ringWords(m navMap) {
	for i := 1; i <= 5; i++ {
		r := .1 * float64(i)
		// Along a diagonal, where neither axis nor footprint's nose is.
		s := m.at(-r*math.Sqrt(.5), -r*math.Sqrt(.5))
		word := fmt.Sprintf("%.1f", r)
		if i == 5 {
			word = "0.5 m"
		}
		m.c.text(p.faces.small, int(s.X)-8, int(s.Y)-8, word, 0x3D4A58, true)
	}
}

// footprint draws the base's outline displaced by d.
func (m navMap) footprint(outline []r3.Vec, d geom.SE2, edge, face rgb, a float32) {
	ps := make([]r3.Vec, 0, len(outline)+2)
	for _, q := range outline {
		w := d.Mul(geom.SE2{X: q.X, Y: q.Y})
		ps = append(ps, m.at(w.X, w.Y))
	}
	m.c.convex(ps, face, a)
	m.c.polyline(append(ps, ps[0], ps[1%len(ps)]), ink{col: edge, width: 2.4})
}

// nose is a wedge that points ahead, inside the front of the base displaced by d; the front is r ahead of its centre.
func (m navMap) nose(r float64, d geom.SE2, col rgb) {
	ps := make([]r3.Vec, 0, 3)
	for _, q := range [3][2]float64{{r * .95, 0}, {r * .45, r * .32}, {r * .45, -r * .32}} {
		w := d.Mul(geom.SE2{X: q[0], Y: q[1]})
		ps = append(ps, m.at(w.X, w.Y))
	}
	m.c.convex(ps, col, .95)
}

func (p *Painter) mapWords(m navMap, sn *stage.Snapshot) {
	c, f, b := m.c, p.faces.body, p.faces.bold
	x, y := m.at(mapReach+.03, 0), m.at(0, mapReach+.03)
	c.text(b, int(x.X)+8, int(x.Y)-12, "+x forward", inkDark, true)
	c.text(b, int(y.X)-b.width("+y left")+8, int(y.Y)-24, "+y left", inkDark, true)
	at := c.h - 44
	c.chip(4, float64(at-6), float64(c.w-4), float64(c.h-4), 6, 0xFFFFFF, .92)
	c.chip(12, float64(at+2), 24, float64(at+14), 3, 0x9AA3AE, 1)
	c.text(f, 30, at, "gray: real base (centre)", inkDark, false)
	c.chip(212, float64(at+2), 224, float64(at+14), 3, targetRed, 1)
	c.text(f, 230, at, "red: staged base", inkDark, false)
	c.text(f, 370, at, "dots: seen 5 cm to 1.6 m high", inkSoft, false)
	d := sn.BaseDelta
	words := fmt.Sprintf("staged: %+.2f m forward, %+.2f m left, turn %+.0f°", tidy(d.X, 2), tidy(d.Y, 2), tidy(geom.Deg(d.Yaw), 0))
	c.text(b, 12, at+20, words, inkDark, false)
	if sn.Scene != nil {
		words = "scene " + ageWords(sn.Now, sn.Scene.At)
		c.text(f, c.w-f.width(words)-14, at+20, words, inkSoft, false)
	}
}

// tidy turns what would print as -0 with n decimals into 0.
func tidy(x float64, n int) float64 {
	if math.Abs(x) < .5*math.Pow10(-n) {
		return 0
	}
	return x
}
