package view

import (
	"errors"
	"image"
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/interface/stage"
	"viad/perception"
)

// Head draws the head view, 960x720: the head camera's picture with the target gripper in red, in true
// perspective. Depth there comes from sparse lidar points alone, so what they hide stays visible as a ghost.
// A picture that a fault of ours spoilt is nil, as with UI.
func (p *Painter) Head(sn *stage.Snapshot, ov Overlay) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, HeadWidth, HeadHeight))
	c := canvasOn(img, img.Bounds(), nil)
	cam := camera(sn, p.o.Head)
	if cam == nil || !p.backdrop(c, cam) {
		p.noPicture(c, "no picture from the "+p.o.Head+" camera yet")
		return img
	}
	l := cameraLens(cam.Pose, cam.Frame.Info.Intrinsics, c.w, c.h)
	if sn.Target.Pose.Finite() {
		err := guarded(func() {
			c.z = p.front(sn.Scene, &l)
			drawSolid(c, &l, p.gripper(p.aperture(sn)), sn.Target.Pose, headLook(sn), &p.solids)
		})
		if err = errors.Join(err, c.fault); err != nil {
			return p.spoilt(err)
		}
		c.z = nil
		p.offView(c, &l, sn.Target.Pose.P)
	}
	if blocked(sn) && sn.Check.HasHit {
		if s, ok := l.project(sn.Check.Hit); ok && l.inside(s.X, s.Y) {
			c.warnSign(s.X, s.Y, 12, bad)
		}
	}
	for _, q := range touches(sn) {
		if s, ok := l.project(q); ok && l.inside(s.X, s.Y) {
			c.warnSign(s.X, s.Y, 11, warn)
		}
	}
	p.banner(c, sn)
	p.seen(c, cam, sn)
	if ov.RedDot != nil {
		p.redDot(c, *ov.RedDot)
	}
	if ov.Crosshair != nil {
		p.crosshair(c, *ov.Crosshair)
	}
	return img
}

func headLook(sn *stage.Snapshot) look {
	k := look{base: targetRed, edge: targetRedEdge, ghost: .85, tint: .22, opacity: .92, slackZ: .015}
	for i := range k.slack {
		k.slack[i] = .03
	}
	if unreachable(sn) {
		k.hatch, k.hatched = warn, .8
	}
	return k
}

// backdrop fills the canvas with a camera's picture; false when it has none.
func (p *Painter) backdrop(c *canvas, cam *perception.Camera) bool {
	pic := p.picture(cam.Frame, c.w, c.h)
	if pic == nil {
		return false
	}
	for y := range c.h {
		copy(c.pix[y*c.stride:y*c.stride+4*c.w], pic.Pix[y*pic.Stride:])
	}
	return true
}

func (p *Painter) noPicture(c *canvas, words string) {
	c.fill(image.Rect(0, 0, c.w, c.h), 0x39434F)
	f := p.faces.title
	c.text(f, (c.w-f.width(words))/2, c.h/2-10, words, inkLight, false)
}

// front is the nearest lidar depths of a scene seen through the head camera. It is immutable once made.
type front struct {
	scene *perception.Scene
	lens  lens
	cells []cell
}

// front spreads the world's points over the picture as far as they are apart. The robot's own points are left
// out: a target that rests on the real gripper must not be hidden by it.
func (p *Painter) front(sc *perception.Scene, l *lens) []cell {
	p.mu.Lock()
	for _, f := range p.fronts {
		if f.scene == sc && f.lens == *l {
			p.mu.Unlock()
			return f.cells
		}
	}
	p.mu.Unlock()
	f := &front{scene: sc, lens: *l, cells: make([]cell, l.w*l.h)}
	for i := range f.cells {
		f.cells[i] = nothing
	}
	if sc.Cloud.Len() > 0 {
		splat(f.cells, l, sc.Cloud, math.Max(.006, math.Min(.02, spacing(sc.Cloud))), worldOnly)
	}
	p.mu.Lock()
	p.fronts = remember(p.fronts, f, maxFronts)
	p.mu.Unlock()
	return f.cells
}

// offView points at a target whose closure point is outside the picture: an arrow at the edge, and words.
func (p *Painter) offView(c *canvas, l *lens, q r3.Vec) {
	if s, ok := l.project(q); ok && l.inside(s.X, s.Y) {
		return
	}
	o := l.local(q)
	dx, dy := o.X*l.fx, o.Y*l.fy
	if n := math.Hypot(dx, dy); n > 1e-9 {
		dx, dy = dx/n, dy/n
	} else {
		dx, dy = 0, 1
	}
	words := "target off view: " + side(dx, dy)
	if o.Z <= nearPlane {
		words = "target behind the camera: " + side(dx, dy)
	}
	const margin = 26
	hw, hh := float64(c.w)/2-margin, float64(c.h)/2-margin-16
	k := math.Min(hw/math.Max(math.Abs(dx), 1e-9), hh/math.Max(math.Abs(dy), 1e-9))
	tip := r3.Vec{X: float64(c.w)/2 + k*dx, Y: float64(c.h)/2 + 16 + k*dy}
	tail := r3.Vec{X: tip.X - 46*dx, Y: tip.Y - 46*dy}
	c.line(tail, r3.Vec{X: tip.X - 14*dx, Y: tip.Y - 14*dy}, ink{col: red, width: 5, halo: 2})
	c.arrowhead(tip, dx, dy, 22, red)
	w := p.faces.bold.width(words) + 14
	x, y := int(tail.X-10*dx)-w/2, int(tail.Y-10*dy)
	switch {
	case math.Abs(dx) > .5 && dx < 0:
		x = int(tail.X) + 10
	case math.Abs(dx) > .5:
		x = int(tail.X) - w - 10
	case dy < 0:
		y += 16
	default:
		y -= 16
	}
	note(c, p.faces.bold, x, y, words, red)
}

// side is the direction on the picture in words.
func side(dx, dy float64) string {
	h, v := "", ""
	if math.Abs(dx) > .38 {
		h = "right"
		if dx < 0 {
			h = "left"
		}
	}
	if math.Abs(dy) > .38 {
		v = "down"
		if dy < 0 {
			v = "up"
		}
	}
	if h != "" && v != "" {
		return v + " and " + h
	}
	return v + h
}

// bannerRow is the height of a row of the banner in pixels.
const bannerRow = 19

// bannerWords is what the banner's first word is, and whether all of it fits one row of w pixels.
func (p *Painter) bannerWords(sn *stage.Snapshot, w int) (head string, vs []verdict, oneRow bool) {
	head = "staged: " + sn.Mode.String()
	if sn.Moving {
		head = "robot is moving"
	}
	vs = verdicts(sn)
	total := p.faces.bold.width(head) + 30
	for _, v := range vs {
		total += p.faces.text.width(v.words) + 46
	}
	return head, vs, total <= w
}

// bannerHeight is how many rows of pixels the banner takes of a picture of width w.
func (p *Painter) bannerHeight(sn *stage.Snapshot, w int) int {
	_, vs, oneRow := p.bannerWords(sn, w)
	if oneRow {
		return 9 + bannerRow
	}
	return 9 + len(vs)*bannerRow
}

// banner is a strip along the top: what is staged, and the verdict on it in words.
func (p *Painter) banner(c *canvas, sn *stage.Snapshot) {
	b, f := p.faces.bold, p.faces.text
	head, vs, oneRow := p.bannerWords(sn, c.w)
	x, y := b.width(head)+30, 5
	c.shade(0, p.bannerHeight(sn, c.w))
	c.text(b, 12, y, head, inkLight, false)
	for _, v := range vs {
		v.sign(c, float64(x)+8, float64(y)+8)
		words := f.cutTo(v.words, c.w-x-30)
		c.text(f, x+23, y, words, inkLight, false)
		if oneRow {
			x += f.width(words) + 46
		} else {
			x, y = 12, y+bannerRow
		}
	}
}

// seenAt is how old a camera's picture is, and where that is written.
func (p *Painter) seenAt(cam *perception.Camera, sn *stage.Snapshot, w, h int) (string, image.Rectangle) {
	words := "picture " + p.age(sn, cam.Frame)
	f := p.faces.text
	x, y := w-f.width(words)-16, h-f.height-10
	return words, image.Rect(x-8, y-4, w-8, y+f.height+4)
}

// seen writes how old the picture is into its corner.
func (p *Painter) seen(c *canvas, cam *perception.Camera, sn *stage.Snapshot) {
	words, r := p.seenAt(cam, sn, c.w, c.h)
	c.chip(float64(r.Min.X), float64(r.Min.Y), float64(r.Max.X), float64(r.Max.Y), 5, 0xFFFFFF, .86)
	c.text(p.faces.text, r.Min.X+8, r.Min.Y+4, words, inkSoft, false)
}

// shade darkens the rows from y0 to y1 so that light words can be read on them.
func (c *canvas) shade(y0, y1 int) {
	for y := y0; y < min(y1, c.h); y++ {
		for x := range c.w {
			c.blend(x, y, 0x10151B, .74)
		}
	}
}

// redDot marks the place that was clicked.
func (p *Painter) redDot(c *canvas, m Mark) {
	x, ok := Pixel(m.U, c.w)
	y, ok2 := Pixel(m.V, c.h)
	if !ok || !ok2 {
		return
	}
	s := r3.Vec{X: float64(x) + .5, Y: float64(y) + .5}
	c.disc(s, 8, 0, 0xFFFFFF, 1)
	c.disc(s, 6, 0, red, 1)
	if m.Label != "" {
		note(c, p.faces.body, x+16, y-14, m.Label, red)
	}
}
