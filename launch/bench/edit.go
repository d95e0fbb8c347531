package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"os"
	"path/filepath"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
	"viad/interface/view"
	"viad/launch"
)

// editCase is one scene that both ways draw.
type editCase struct {
	name  string
	sees  launch.Sources
	set   func(*launch.Config)
	voxel float64
	goals bool // this is the case that the goals are set for
	orbit bool // the viewport moves, not the target
	loop  bool // the page draws all the time while its pictures are taken
}

// editResult is the times of one case in milliseconds.
type editResult struct {
	editCase
	points        int
	ours, theirs  series
	browser       about
	oursKB, othKB float64
}

// still lets nothing happen in the daemon that an edit does not ask for, as nothing happens in the page.
func still(c *launch.Config) { c.Robot.Pace, c.Perception.Rate = "fast", 0 }

func editCases() []editCase {
	return []editCase{
		{name: "edit, the twin's own cloud", voxel: 0.004, set: still},
		{name: "edit, dense cloud", voxel: denseVoxel, goals: true, sees: dense(3), set: fine600},
		{name: "edit, dense cloud, a page that draws all the time", voxel: denseVoxel, loop: true, sees: dense(3), set: fine600},
		{name: "viewport turned, dense cloud", voxel: denseVoxel, orbit: true, sees: dense(3), set: fine600},
		{name: "edit, the daemon as shipped", voxel: 0.004},
	}
}

// denseVoxel gives about 600,000 points with cameras of three times the pixels along both sides.
const denseVoxel = 0.00178

func fine600(c *launch.Config) {
	still(c)
	c.Perception.Voxel = denseVoxel
}

// centre is about where the target goes: over the table, between the cubes, all of it in view.
var centre = r3.Vec{X: .45, Z: .2}

// target is the n-th place of the target gripper: all differ, within a few centimetres of centre.
func target(n int) r3.Vec {
	a := float64(n)
	at := r3.Add(centre, r3.Vec{X: .03 * math.Sin(1.1*a), Y: .03 * math.Sin(1.7*a+1), Z: .02 * math.Sin(2.3*a+2)})
	return r3.Vec{X: tenth(at.X), Y: tenth(at.Y), Z: tenth(at.Z)}
}

// turn is how far the n-th viewport is turned from the first, in degrees.
func turn(n int) (azimuth, elevation float64) {
	a := float64(n)
	return math.Round(100*20*math.Sin(1.1*a)) / 100, math.Round(100*10*math.Sin(1.7*a)) / 100
}

// tenth rounds to tenths of a millimetre.
func tenth(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// measureEdit runs both ways on one scene in alternating blocks.
func measureEdit(ctx context.Context, e editCase, o options) (res editResult, err error) {
	res.editCase = e
	d, err := start(ctx, "twin-franka.yaml", e.sees, e.set)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	b, err := newPair(ctx, d, &res)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, b.p.close()) }()
	if err := b.block(ctx, 5, 2); err != nil { // caches, compilers
		return res, err
	}
	res.ours, res.theirs, b.ourBytes, b.otherBytes = nil, nil, 0, 0
	for range o.blocks {
		if err := b.block(ctx, o.edits/o.blocks, o.shots/o.blocks); err != nil {
			return res, err
		}
	}
	res.oursKB = float64(b.ourBytes) / float64(len(res.ours)) / 1000
	res.othKB = float64(b.otherBytes) / float64(len(res.theirs)) / 1000
	if o.keep != "" {
		err = b.keep(ctx, o.keep)
	}
	return res, err
}

// pair is the daemon and the page with the same scene.
type pair struct {
	d    *daemon
	p    *page
	res  *editResult
	n    int
	at   r3.Vec      // where the daemon's target is
	view stage.Orbit // where its viewport was at the start

	azimuth, elevation   float64 // how far its viewport is turned from there, degrees
	ourBytes, otherBytes int
	last                 []byte
}

// newPair brings the target over the table and opens the page on what the daemon then sees.
func newPair(ctx context.Context, d *daemon, res *editResult) (*pair, error) {
	if _, err := d.call(ctx, "screenshot", none{}); err != nil {
		return nil, err
	}
	sn, _, err := d.sys.Look()
	if err != nil {
		return nil, err
	}
	b := &pair{d: d, res: res, at: sn.Target.Pose.P, view: sn.Orbit}
	for b.at != target(0) {
		if err := b.edit(ctx, target(0)); err != nil {
			return nil, err
		}
	}
	sn, solids, err := d.sys.Look()
	if err != nil {
		return nil, err
	}
	res.points = sn.Scene.Cloud.Len()
	b.p, err = openPage(ctx, sn, solids, res.voxel)
	if err == nil {
		res.browser = b.p.about
	}
	return b, err
}

// block is some edits, then some pictures by the browser.
func (b *pair) block(ctx context.Context, edits, shots int) error {
	for range edits {
		b.n++
		if err := b.change(ctx); err != nil {
			return err
		}
	}
	return b.shoot(shots)
}

// change does the n-th change through the daemon.
func (b *pair) change(ctx context.Context) error {
	if b.res.orbit {
		return b.orbit(ctx)
	}
	return b.edit(ctx, target(b.n))
}

// shoot does the next shots changes in the page.
func (b *pair) shoot(shots int) error {
	what, at := "move", []r3.Vec(nil)
	for range shots {
		b.n++
		if !b.res.orbit {
			at = append(at, target(b.n))
			continue
		}
		what = "look"
		az, el := turn(b.n)
		v := b.view
		v.Azimuth, v.Elevation = v.Azimuth+geom.Rad(az), v.Elevation+geom.Rad(el)
		eye, _, _, _ := v.Basis()
		at = append(at, eye)
	}
	s, err := b.p.shoot(what, b.res.loop, at)
	if err != nil {
		return err
	}
	b.res.theirs = append(b.res.theirs, s.MS...)
	for _, n := range s.Bytes {
		b.otherBytes += n
	}
	return nil
}

// edit moves the target towards a place, as far as one call may.
func (b *pair) edit(ctx context.Context, to r3.Vec) error {
	step := func(x float64) float64 { return tenth(math.Max(-.1, math.Min(.1, x))) }
	by := r3.Sub(to, b.at)
	args := shift{step(by.X), step(by.Y), step(by.Z)}
	if err := b.timed(ctx, "gripper_translate", args); err != nil {
		return err
	}
	b.at = r3.Add(b.at, r3.Vec{X: args.X, Y: args.Y, Z: args.Z})
	if r3.Norm(r3.Sub(to, b.at)) < 1e-4 {
		b.at = to
	}
	return nil
}

// orbit turns the viewport.
func (b *pair) orbit(ctx context.Context) error {
	az, el := turn(b.n)
	err := b.timed(ctx, "camera_orbit_via_key", struct {
		A float64 `json:"d_azimuth"`
		E float64 `json:"d_elevation"`
	}{az - b.azimuth, el - b.elevation})
	b.azimuth, b.elevation = az, el
	return err
}

// timed takes the time of a call from the request to the JPEG's bytes.
func (b *pair) timed(ctx context.Context, tool string, args any) error {
	t := time.Now()
	r, err := b.d.call(ctx, tool, args)
	took := time.Since(t)
	if err != nil {
		return err
	}
	if bytes.Equal(r.jpeg, b.last) || len(r.jpeg) == 0 {
		return errors.New("a call came back without a picture of its own")
	}
	b.last = r.jpeg
	b.ourBytes += len(r.jpeg)
	b.res.ours.addTime(took)
	return nil
}

// keep writes what both show after the same change.
func (b *pair) keep(ctx context.Context, folder string) error {
	name := filepath.Join(folder, fmt.Sprintf("%d-points", b.res.points))
	if b.res.orbit {
		name += "-orbit"
	}
	if b.res.loop {
		name += "-loop"
	}
	b.n++
	if err := b.change(ctx); err != nil {
		return err
	}
	b.n--
	if err := b.shoot(1); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(name+"-viad.jpg", b.last, 0o600), b.p.keep(name+"-browser.png"))
}

// packRGB is a picture of w by h pixels, three bytes each, as a JPEG.
func packRGB(rgb []byte, w, h int) ([]byte, error) {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		copy(img.Pix[4*i:], rgb[3*i:3*i+3])
		img.Pix[4*i+3] = 255
	}
	return view.JPEG(img, 0)
}

// editTable makes the results a table.
func editTable(rs []editResult) table {
	t := table{title: "A staged edit on the 3D face", ours: "viad", theirs: "browser"}
	for _, r := range rs {
		for _, p := range []struct{ p, goal float64 }{{50, 20}, {99, 15}} {
			one := row{
				what: fmt.Sprintf("%s (%s points), p%.0f", r.name, thousands(r.points), p.p),
				ours: msText(r.ours.percentile(p.p)), theirs: msText(r.theirs.percentile(p.p)),
				ratio: r.theirs.percentile(p.p) / r.ours.percentile(p.p),
			}
			if r.goals {
				one.goal = p.goal
			}
			t.rows = append(t.rows, one)
		}
	}
	return t
}

// thousands writes 123456 as 123,456.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
