package view

import (
	"fmt"
	"image"
	"math"
	"slices"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/sensor"
	"viad/interface/stage"
	"viad/perception"
)

// Kind is what is drawn at a place of a picture.
type Kind int

// The kinds of things. Only Cloud and Feed have a point.
const (
	Nothing Kind = iota // empty space, or no depth there
	Chrome              // titles, status and other parts of the interface itself
	Cloud               // a point of the cloud
	Feed                // a point that a camera's picture shows
	Target              // the blue target gripper
)

// String is the kind in words.
func (k Kind) String() string {
	return [...]string{"nothing", "interface", "cloud", "camera picture", "target gripper"}[k]
}

// Hit is the answer to a pick.
type Hit struct {
	Kind  Kind
	Point r3.Vec // metres, odometry frame; valid when OK
	Feed  string // the camera whose depth gave the point, empty for the cloud
	Why   string // one clause that says why there is no point, empty when OK
}

// OK reports whether there is a point.
func (h Hit) OK() bool { return h.Kind == Cloud || h.Kind == Feed }

const (
	cloudRadius = 8                   // pixels of 1280: how far from the place a point may be drawn
	feedRadius  = 3                   // pixels of the picture
	headCone    = 1.5 * math.Pi / 180 // half angle about the clicked ray
)

// badFraction is the answer for fractions that are not in 0..1.
func badFraction(u, v float64) Hit {
	return Hit{Kind: Nothing, Why: fmt.Sprintf("u and v must be within 0..1, got %g, %g", u, v)}
}

// Pick says what is drawn at fraction (u, v) of the 3D face's picture. Hover and teleport both ask it.
func (p *Painter) Pick(sn *stage.Snapshot, u, v float64) Hit {
	x, ok := Pixel(u, UIWidth)
	y, ok2 := Pixel(v, UIHeight)
	if !ok || !ok2 {
		return badFraction(u, v)
	}
	if x >= Layout.Cloud.Min.X {
		return p.pickCloud(sn, x-Layout.Cloud.Min.X, y-Layout.Cloud.Min.Y)
	}
	for _, name := range []string{p.o.Third, p.o.Wrist} {
		frame := Layout.Third
		if name == p.o.Wrist {
			frame = Layout.Wrist
		}
		cam := camera(sn, name)
		if cam == nil {
			continue
		}
		r := feedRect(cam.Frame.Info.Intrinsics, frame)
		if x >= r.Min.X && x < r.Max.X && y >= r.Min.Y && y < r.Max.Y {
			return pickDepth(cam, x-r.Min.X, y-r.Min.Y, r.Dx(), r.Dy())
		}
	}
	return Hit{Kind: Chrome, Why: "that is the interface, not the cloud or a camera picture"}
}

func (p *Painter) pickCloud(sn *stage.Snapshot, x, y int) Hit {
	if math.Hypot(float64(x)+.5-triadX, float64(y)+.5-triadY) <= triadRadius {
		return Hit{Kind: Chrome, Why: "that is the axis triad in the corner"}
	}
	v := p.cloudView(sn, nil)
	defer p.putCells(v.c.z)
	if words := v.wordsAt(sn, x, y); words != "" {
		return Hit{Kind: Chrome, Why: fmt.Sprintf("the words %q stand there, over the scene: click beside them, or turn the view", words)}
	}
	px, py, ok := nearestCell(v.c, x, y)
	if !ok {
		return Hit{Kind: Nothing, Why: "empty space: no cloud point within 8 pixels"}
	}
	cell := v.c.z[py*v.c.w+px]
	q := v.l.unproject(float64(px)+.5, float64(py)+.5, float64(cell.depth()))
	if cell.tag() == tagTarget {
		return Hit{Kind: Target, Point: q, Why: "that is the blue target gripper"}
	}
	return Hit{Kind: Cloud, Point: q}
}

// wordsAt is what is written over the view at x, y, empty for nothing.
func (v view3D) wordsAt(sn *stage.Snapshot, x, y int) string {
	at := image.Pt(x, y)
	if s, r := v.captionAt(sn); at.In(r) {
		return s
	}
	for _, ps := range [][]plate{v.statePlates(sn), v.verdictPlates(sn)} {
		for _, p := range ps {
			if at.In(p.r) {
				return p.s
			}
		}
	}
	return ""
}

// underWords is the hit of a click on the strip of words along the top of a 2D picture, or on its age.
func (p *Painter) underWords(sn *stage.Snapshot, cam *perception.Camera, w, h, x, y int) (Hit, bool) {
	if y < p.bannerHeight(sn, w) {
		return Hit{Kind: Chrome, Why: "the strip of words along the top stands there, over the scene"}, true
	}
	if words, r := p.seenAt(cam, sn, w, h); image.Pt(x, y).In(r) {
		return Hit{Kind: Chrome, Why: fmt.Sprintf("the words %q stand there, over the scene", words)}, true
	}
	return Hit{}, false
}

// onTarget reports whether the target is what is drawn at a pixel of the head view: there, and not behind what the
// lidar sees, where only a ghost of it is drawn and the scene is what shows.
func (p *Painter) onTarget(sn *stage.Snapshot, l *lens, x, y int) bool {
	if sn.Scene == nil || !sn.Target.Pose.Finite() {
		return false
	}
	tris, box := projectMesh(l, p.gripper(p.aperture(sn)), sn.Target.Pose)
	if !image.Pt(x, y).In(box) {
		return false
	}
	one := []sample{{z: float32(math.Inf(1))}}
	for i := range tris {
		fillTri(one, 1, 1, &tris[i], 1, float32(x), float32(y))
	}
	z := one[0].z
	if z > math.MaxFloat32 {
		return false
	}
	k, cell := headLook(sn), p.front(sn.Scene, l)[y*l.w+x]
	return cell == nothing || cell.depth() >= z-k.slack[cell.tag()&7]-k.slackZ*z
}

// nearestCell is the pixel itself when something is drawn there, else the nearest pixel of the cloud within
// cloudRadius.
func nearestCell(c *canvas, x, y int) (int, int, bool) {
	if c.z[y*c.w+x] != nothing {
		return x, y, true
	}
	best, bx, by := cloudRadius*cloudRadius+1, 0, 0
	for yy := max(0, y-cloudRadius); yy <= min(c.h-1, y+cloudRadius); yy++ {
		for xx := max(0, x-cloudRadius); xx <= min(c.w-1, x+cloudRadius); xx++ {
			d := (xx-x)*(xx-x) + (yy-y)*(yy-y)
			if v := c.z[yy*c.w+xx]; d < best && v != nothing && v.tag() != tagTarget {
				best, bx, by = d, xx, yy
			}
		}
	}
	return bx, by, best <= cloudRadius*cloudRadius
}

// pickDepth resolves pixel x, y of a camera's picture shown w by h pixels by the camera's own depth: the
// reading shown there, else the nearest within feedRadius pixels of what is shown.
func pickDepth(cam *perception.Camera, x, y, w, h int) Hit {
	f := cam.Frame
	in := f.Info.Intrinsics
	name := f.Info.Name
	if in.W <= 0 || in.H <= 0 || len(f.Depth) < in.W*in.H {
		return Hit{Kind: Nothing, Feed: name, Why: "the " + name + " camera has no depth"}
	}
	sx, sy := float64(in.W)/float64(w), float64(in.H)/float64(h)
	bx, by, ok := nearestDepth(f, (float64(x)+.5)*sx, (float64(y)+.5)*sy, sx, sy, feedRadius)
	if !ok {
		return Hit{Kind: Nothing, Feed: name, Why: "no depth reading within 3 pixels in the " + name + " picture"}
	}
	z := float64(f.Depth[by*in.W+bx])
	return Hit{Kind: Feed, Feed: name, Point: cam.Pose.Point(in.Unproject(float64(bx), float64(by), z))}
}

// nearestDepth is the camera's pixel at mx, my (continuous) when it has a trusted reading, else the nearest that
// has one within radius pixels of a picture whose pixels are sx by sy of the camera's.
func nearestDepth(f *sensor.Frame, mx, my, sx, sy, radius float64) (x, y int, ok bool) {
	in := f.Info.Intrinsics
	ex, ey := min(max(int(mx), 0), in.W-1), min(max(int(my), 0), in.H-1)
	if goodDepth(f.Info.Range, f.Depth[ey*in.W+ex]) {
		return ex, ey, true
	}
	rx, ry := radius*sx+.5, radius*sy+.5
	best := math.Inf(1)
	for py := max(0, int(my-ry)); py <= min(in.H-1, int(my+ry)); py++ {
		for px := max(0, int(mx-rx)); px <= min(in.W-1, int(mx+rx)); px++ {
			d := math.Hypot((float64(px)+.5-mx)/sx, (float64(py)+.5-my)/sy)
			if d <= radius && d < best && goodDepth(f.Info.Range, f.Depth[py*in.W+px]) {
				best, x, y = d, px, py
			}
		}
	}
	return x, y, !math.IsInf(best, 1)
}

// goodDepth reports whether a depth is a reading within the sensor's trusted range; a zero range trusts all.
func goodDepth(r [2]float64, z float32) bool {
	d := float64(z)
	return d > 0 && !math.IsInf(d, 1) && d >= r[0] && (r[1] <= 0 || d <= r[1])
}

// PickWrist says what the wrist view shows at its fraction (u, v), by the wrist camera's own depth.
func (p *Painter) PickWrist(sn *stage.Snapshot, u, v float64) Hit {
	cam := camera(sn, p.o.Wrist)
	if cam == nil {
		return Hit{Kind: Nothing, Feed: p.o.Wrist, Why: "there is no picture from the " + p.o.Wrist + " camera"}
	}
	w, h := WristSize(cam.Frame.Info.Intrinsics.W, cam.Frame.Info.Intrinsics.H)
	x, ok := Pixel(u, w)
	y, ok2 := Pixel(v, h)
	if !ok || !ok2 {
		return badFraction(u, v)
	}
	if hit, ok := p.underWords(sn, cam, w, h, x, y); ok {
		return hit
	}
	return pickDepth(cam, x, y, w, h)
}

// near is a cloud point close to the clicked ray.
type nearPoint struct {
	dx, dy float64 // slopes away from the ray
	angle  float64 // radians away from it
	z      float64 // depth in metres
}

// PickHead says what the head view shows at its fraction (u, v). The head has no depth of its own: of the
// lidar points within 1.5 degrees of the ray the foremost cluster decides, and the point is on the clicked ray
// where a plane through that cluster meets it.
func (p *Painter) PickHead(sn *stage.Snapshot, u, v float64) Hit {
	x, ok := Pixel(u, HeadWidth)
	y, ok2 := Pixel(v, HeadHeight)
	if !ok || !ok2 {
		return badFraction(u, v)
	}
	cam := camera(sn, p.o.Head)
	if cam == nil {
		return Hit{Kind: Nothing, Feed: p.o.Head, Why: "there is no picture from the " + p.o.Head + " camera"}
	}
	if h, ok := p.underWords(sn, cam, HeadWidth, HeadHeight, x, y); ok {
		return h
	}
	l := cameraLens(cam.Pose, cam.Frame.Info.Intrinsics, HeadWidth, HeadHeight)
	if p.onTarget(sn, &l, x, y) {
		return Hit{Kind: Target, Feed: p.o.Head, Why: "that is the red target gripper, which stands before the scene there"}
	}
	fx, fy := float64(x)+.5, float64(y)+.5
	ps := coneOf(sn.Scene.Cloud, &l, fx, fy)
	for _, share := range [3]float64{1. / 3, 2. / 3, 1} {
		var in []nearPoint
		for _, q := range ps {
			if q.angle <= headCone*share {
				in = append(in, q)
			}
		}
		if c := frontCluster(in); c != nil {
			return Hit{Kind: Feed, Feed: p.o.Head, Point: l.unproject(fx, fy, planeDepth(c))}
		}
	}
	return Hit{Kind: Nothing, Feed: p.o.Head, Why: "no lidar point within 1.5 degrees of that place in the head view"}
}

// coneOf is the cloud's points within headCone of the ray through picture coordinates x, y, nearest first.
func coneOf(c *perception.Cloud, l *lens, x, y float64) []nearPoint {
	m := splatMatrix(l)
	ray := l.slope(x, y)
	n := r3.Norm(ray)
	// Pixels that headCone can span at most, for a quick test before the exact one.
	px := float32(l.fx * math.Tan(headCone) * n * n * 1.1)
	py := float32(l.fy * math.Tan(headCone) * n * n * 1.1)
	var out []nearPoint
	for i := range c.Len() {
		a, b, d := c.XYZ[3*i], c.XYZ[3*i+1], c.XYZ[3*i+2]
		z := m[8]*a + m[9]*b + m[10]*d + m[11]
		if !(z > nearPlane) {
			continue
		}
		sx := (m[0]*a+m[1]*b+m[2]*d+m[3])/z - float32(x)
		sy := (m[4]*a+m[5]*b+m[6]*d+m[7])/z - float32(y)
		if !(sx < px && sx > -px && sy < py && sy > -py) {
			continue
		}
		q := r3.Sub(c.At(i), l.pos)
		cos := r3.Dot(q, ray) / (r3.Norm(q) * n)
		if ang := math.Acos(math.Min(1, cos)); ang <= headCone {
			out = append(out, nearPoint{float64(sx) / l.fx, float64(sy) / l.fy, ang, float64(z)})
		}
	}
	slices.SortFunc(out, func(a, b nearPoint) int {
		if a.z < b.z {
			return -1
		}
		return 1
	})
	return out
}

// frontCluster is the foremost run of points, sorted by depth, that stand together; a single stray is noise.
func frontCluster(ps []nearPoint) []nearPoint {
	const least = 3
	for i := 0; i < len(ps); {
		j := i + 1
		for j < len(ps) && ps[j].z-ps[j-1].z < .03+.02*ps[j].z {
			j++
		}
		if j-i >= least {
			return ps[i:j]
		}
		i = j
	}
	return nil
}

// planeDepth is the depth on the clicked ray of a plane fitted to points around it. On a plane 1/depth is affine
// in the slopes, so this is a weighted linear fit; points nearer the ray weigh more, and where they do not
// determine a slope a small ridge keeps it flat.
func planeDepth(ps []nearPoint) float64 {
	const width = headCone * .6
	var s, sx, sy, sxx, sxy, syy, t, tx, ty float64
	lo, hi := math.Inf(1), 0.0
	for _, q := range ps {
		w := math.Exp(-q.angle * q.angle / (2 * width * width))
		x, y, v := q.dx/width, q.dy/width, 1/q.z
		s, sx, sy = s+w, sx+w*x, sy+w*y
		sxx, sxy, syy = sxx+w*x*x, sxy+w*x*y, syy+w*y*y
		t, tx, ty = t+w*v, tx+w*v*x, ty+w*v*y
		lo, hi = math.Min(lo, q.z), math.Max(hi, q.z)
	}
	ridge := .02 * s
	sxx, syy = sxx+ridge, syy+ridge
	det := s*(sxx*syy-sxy*sxy) - sx*(sx*syy-sxy*sy) + sy*(sx*sxy-sxx*sy)
	inv := t / s
	if math.Abs(det) > 1e-12 {
		inv = (t*(sxx*syy-sxy*sxy) - sx*(tx*syy-sxy*ty) + sy*(tx*sxy-sxx*ty)) / det
	}
	if !(inv > 0) {
		inv = s / t
	}
	return math.Max(lo, math.Min(hi, 1/inv))
}
