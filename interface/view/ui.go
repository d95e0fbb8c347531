package view

import (
	"fmt"
	"image"
	"log/slog"
	"math"
	"strings"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/interface/stage"
)

// UI draws the 3D face's one picture, 1280x800: two feeds and the status on the left, the cloud with axes, way
// and target on the right, and ov on top. A picture that a fault of ours spoilt is nil, and the log has the fault.
func (p *Painter) UI(sn *stage.Snapshot, ov Overlay) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, UIWidth, UIHeight))
	var v view3D
	if err := both(func() { p.sidebar(img, sn) }, func() { v = p.cloudView(sn, img) }); err != nil { // they share no pixel
		return p.spoilt(err)
	}
	defer p.putCells(v.c.z)
	if v.c.fault != nil {
		return p.spoilt(v.c.fault)
	}
	v.axes()
	v.way(sn)
	if ov.Gizmo {
		v.gizmo(sn.Target.Pose)
	}
	if ov.Axis || ov.Gizmo {
		v.approachAxis(sn.Target.Pose)
	}
	if ov.Salient != nil {
		v.salient(*ov.Salient)
	}
	v.triad()
	v.caption(sn)
	whole := canvasOn(img, img.Bounds(), nil)
	if ov.Drag != nil {
		p.drag(whole, *ov.Drag)
	}
	if ov.Crosshair != nil {
		p.crosshair(whole, *ov.Crosshair)
	}
	return img
}

// spoilt is the picture of a fault of ours: none.
func (p *Painter) spoilt(err error) *image.RGBA {
	p.o.Log.Error("a picture was not drawn", slog.Any("err", err))
	return nil
}

// caption says in the cloud view's corner where it is seen from.
func (v view3D) caption(sn *stage.Snapshot) {
	s, r := v.captionAt(sn)
	v.c.chip(float64(r.Min.X), float64(r.Min.Y), float64(r.Max.X), float64(r.Max.Y), 5, 0xFFFFFF, .86)
	v.c.text(v.p.faces.text, r.Min.X+8, r.Min.Y+4, s, inkSoft, false)
	for _, p := range v.statePlates(sn) {
		p.draw(v.c)
	}
}

// captionAt is the caption's words and its place.
func (v view3D) captionAt(sn *stage.Snapshot) (string, image.Rectangle) {
	o := viewport(sn.Orbit)
	s := fmt.Sprintf("azimuth %.0f°  elevation %.0f°  distance %.2f m   grid 10 cm",
		math.Abs(math.Mod(geom.Deg(o.Azimuth), 360)), geom.Deg(o.Elevation), o.Distance)
	f := v.p.faces.text
	x, y := v.c.w-f.width(s)-16, v.c.h-f.height-10
	return s, image.Rect(x-8, y-4, v.c.w-8, y+f.height+4)
}

// statePlates are words about the robot and the scene as a whole.
func (v view3D) statePlates(sn *stage.Snapshot) []plate {
	var ps []plate
	if sn.Scene == nil {
		ps = append(ps, plateAt(v.c, v.p.faces.title, v.c.w/2-90, v.c.h/2, "no scene yet: no sensor has delivered", warn))
	}
	if sn.Moving {
		ps = append(ps, plateAt(v.c, v.p.faces.bold, 14, 20, "robot is moving", bad))
	}
	return ps
}

func (p *Painter) sidebar(img *image.RGBA, sn *stage.Snapshot) {
	side := image.Rect(0, 0, Layout.Cloud.Min.X, UIHeight)
	c := canvasOn(img, side, nil)
	c.fill(image.Rect(0, 0, c.w, c.h), paper)
	p.feed(img, c, sn, p.o.Third, "third-person camera", Layout.Third)
	p.feed(img, c, sn, p.o.Wrist, "wrist camera", Layout.Wrist)
	p.status(c, sn)
	c.fill(image.Rect(c.w-1, 0, c.w, c.h), rule)
}

// fill paints a rectangle of the canvas.
func (c *canvas) fill(r image.Rectangle, col rgb) {
	r = r.Intersect(image.Rect(0, 0, c.w, c.h))
	cr, cg, cb := col.parts()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := c.pix[y*c.stride+4*r.Min.X : y*c.stride+4*r.Max.X]
		for x := 0; x < len(row); x += 4 {
			row[x], row[x+1], row[x+2], row[x+3] = uint8(cr), uint8(cg), uint8(cb), 255
		}
	}
}

// feed draws one camera's picture in its frame with a title strip above.
func (p *Painter) feed(img *image.RGBA, c *canvas, sn *stage.Snapshot, name, title string, frame image.Rectangle) {
	bar := image.Rect(frame.Min.X, frame.Min.Y-titleHeight, frame.Max.X, frame.Min.Y)
	c.fill(bar, titleBar)
	c.text(p.faces.bold, bar.Min.X+10, bar.Min.Y+4, title, inkLight, false)
	cam := camera(sn, name)
	if cam == nil {
		c.fill(frame, 0xDDE3EA)
		s := "no picture"
		c.text(p.faces.body, (frame.Min.X+frame.Max.X-p.faces.body.width(s))/2, frame.Min.Y+frame.Dy()/2-8, s, inkSoft, false)
		return
	}
	age := p.age(sn, cam.Frame)
	c.text(p.faces.small, bar.Max.X-p.faces.small.width(age)-10, bar.Min.Y+5, age, 0xB9C4D0, false)
	r := feedRect(cam.Frame.Info.Intrinsics, frame)
	if r != frame {
		c.fill(frame, 0x10151B)
	}
	if pic := p.picture(cam.Frame, r.Dx(), r.Dy()); pic != nil {
		for y := range r.Dy() {
			copy(img.Pix[img.PixOffset(r.Min.X, r.Min.Y+y):], pic.Pix[y*pic.Stride:y*pic.Stride+4*r.Dx()])
		}
	}
}

// feedRect is where a camera's picture stands in its frame.
func feedRect(in sensor.Intrinsics, frame image.Rectangle) image.Rectangle {
	return fit(frame, in.W, in.H)
}

// age is how old a frame is on the snapshot's clock, in words.
func (p *Painter) age(sn *stage.Snapshot, f *sensor.Frame) string {
	at := f.Stamp
	if at.IsZero() {
		at = f.Received
	}
	return ageWords(sn.Now, at)
}

func ageWords(now, at time.Time) string {
	if at.IsZero() || now.IsZero() {
		return "age unknown"
	}
	d := now.Sub(at)
	switch {
	case d < 50*time.Millisecond:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%.1f s old", d.Seconds())
	default:
		return fmt.Sprintf("%.0f min old", d.Minutes())
	}
}

// status writes target, real gripper and verdict under the feeds.
func (p *Painter) status(c *canvas, sn *stage.Snapshot) {
	y := Layout.Status.Min.Y
	c.fill(image.Rect(0, y, c.w, y+1), rule)
	y += 7
	p.gripperLine(c, y, "target", sn.Target, jawWord(sn.Target.Open), targetBlue)
	y += 19
	f := p.faces.text
	c.text(f, 30, y, "approach "+vecWords(sn.Target.Pose.X(), 2)+"   opening "+vecWords(sn.Target.Pose.Y(), 2), inkSoft, false)
	y += 20
	p.gripperLine(c, y, "real", sn.Real, realJaw(sn), realGray)
	y += 23
	vs := verdicts(sn)
	left, gap := 5, 3 // lines that fit, pixels between two verdicts
	if len(vs) > 3 {
		gap = 1
	}
	for i, v := range vs {
		lines := f.wrap(v.words, c.w-40, max(1, min(3, left-(len(vs)-1-i))))
		if len(lines) == 0 || left <= 0 {
			continue
		}
		left -= len(lines)
		v.sign(c, 17, float64(y)+8)
		for _, line := range lines {
			c.text(f, 30, y, line, inkDark, false)
			y += 15
		}
		y += gap
	}
}

func (p *Painter) gripperLine(c *canvas, y int, name string, g stage.Gripper, jaw string, col rgb) {
	c.chip(11, float64(y+2), 23, float64(y+14), 3, col, 1)
	x := c.text(p.faces.bold, 30, y, name, inkDark, false)
	c.text(p.faces.body, max(x+8, 78), y, vecWords(g.Pose.P, 4)+" m", inkDark, false)
	c.text(p.faces.bold, c.w-14-p.faces.bold.width(jaw), y, jaw, inkDark, false)
}

func jawWord(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}

// realJaw is the measured jaw in a word or two.
func realJaw(sn *stage.Snapshot) string {
	switch {
	case sn.JawBetween:
		return "half open"
	case sn.State.Jaw.Known && sn.State.Jaw.Holding:
		return "holds a thing"
	}
	return jawWord(sn.Real.Open)
}

// vecWords is x y z with n decimals, never -0.
func vecWords(v r3.Vec, n int) string {
	f := func(x float64) string {
		s := fmt.Sprintf("%.*f", n, x)
		if zero := fmt.Sprintf("%.*f", n, 0.0); s == "-"+zero {
			return zero
		}
		return s
	}
	return f(v.X) + "  " + f(v.Y) + "  " + f(v.Z)
}

// verdict is one finding about the staged target: in words, and good, warning or neither.
type verdict struct {
	words string
	col   rgb // good, warn, bad, or inkSoft when there is nothing to judge
}

func (v verdict) sign(c *canvas, x, y float64) {
	switch v.col {
	case good:
		c.okSign(x, y, 7, v.col)
	case warn, bad:
		c.warnSign(x, y, 8, v.col)
	default:
		c.disc(r3.Vec{X: x, Y: y}, 3, 0, v.col, 1)
	}
}

// verdicts are the findings a picture shows, the most pressing first where it matters.
func verdicts(sn *stage.Snapshot) []verdict {
	k := sn.Check
	var out []verdict
	if sn.Finished {
		out = append(out, verdict{"episode finished: only end_episode is left", good})
	}
	if r := sn.Barred; r != nil {
		why := r.Rule
		if r.Value != "" {
			why += " (" + r.Value + ")"
		}
		out = append(out, verdict{"Nothing may move: " + why, bad})
	}
	if sn.JustRan && !sn.Moving && sn.Last.Outcome.Result != robot.ResultReached {
		v := verdict{"Last waypoint: " + sn.Last.Summary(), warn}
		if sn.Last.Outcome.Stop != robot.StopConfirmed {
			v.col = bad
		}
		out = append(out, v)
	}
	if k.Staged && len(k.Notes) > 0 {
		out = append(out, verdict{"Mind: " + strings.Join(k.Notes, "; "), warn})
	}
	switch {
	case !k.Staged:
		return append(out, verdict{orWords(k.Reach, "nothing staged"), inkSoft})
	case !k.Reachable:
		out = append(out, verdict{orWords(k.Reach, "target not reachable"), warn})
		if k.Way != "" {
			out = append(out, verdict{k.Way, inkSoft}) // there is no plan to judge
		}
		return out
	default:
		out = append(out, verdict{orWords(k.Reach, "target reachable"), good})
	}
	switch {
	case k.Clear:
		out = append(out, verdict{orWords(k.Way, "way clear"), good})
	default:
		out = append(out, verdict{orWords(k.Way, "way not clear"), bad})
	}
	return out
}

func orWords(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
