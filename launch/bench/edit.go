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
		{name: "the twin's own cloud", voxel: 0.004, set: still},
		{
			name: "600,000 points", voxel: denseVoxel, goals: true, sees: dense(2),
			set: func(c *launch.Config) {
				still(c)
				c.Perception.Voxel = denseVoxel
			},
		},
		{name: "the twin's own cloud, the daemon as shipped: real time, 5 scenes a second", voxel: 0.004},
	}
}

// denseVoxel gives about 600,000 points with cameras of twice the pixels along both sides.
const denseVoxel = 0.0018

// path is where the target gripper goes: places that differ from each other, within a few centimetres.
type path struct {
	from r3.Vec
	n    int
}

func (p *path) next() r3.Vec {
	p.n++
	a := float64(p.n)
	at := r3.Add(p.from, r3.Vec{X: .03 * math.Sin(1.1*a), Y: .03 * math.Sin(1.7*a+1), Z: .02 * math.Sin(2.3*a+2)})
	return r3.Vec{X: tenth(at.X), Y: tenth(at.Y), Z: tenth(at.Z)}
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
	if _, err := d.call(ctx, "screenshot", none{}); err != nil {
		return res, err
	}
	sn, solids, err := d.sys.Look()
	if err != nil {
		return res, err
	}
	res.points = sn.Scene.Cloud.Len()
	p, err := openPage(ctx, sn, solids, e.voxel)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	res.browser = p.about
	both := pair{d: d, p: p, at: sn.Target.Pose.P, way: path{from: sn.Target.Pose.P}, res: &res}
	if err := both.block(ctx, 5, 2); err != nil { // caches, compilers
		return res, err
	}
	res.ours, res.theirs, both.ourBytes, both.otherBytes = nil, nil, 0, 0
	for range o.blocks {
		if err := both.block(ctx, o.edits/o.blocks, o.shots/o.blocks); err != nil {
			return res, err
		}
	}
	res.oursKB = float64(both.ourBytes) / float64(len(res.ours)) / 1000
	res.othKB = float64(both.otherBytes) / float64(len(res.theirs)) / 1000
	if o.keep != "" {
		err = both.keep(ctx, o.keep)
	}
	return res, err
}

// pair is the daemon and the page with the same scene.
type pair struct {
	d   *daemon
	p   *page
	at  r3.Vec // where the daemon's target is
	way path
	res *editResult

	ourBytes, otherBytes int
	last                 []byte
}

// block is some edits, then some pictures by the browser.
func (b *pair) block(ctx context.Context, edits, shots int) error {
	for range edits {
		if err := b.edit(ctx, b.way.next()); err != nil {
			return err
		}
	}
	var at []r3.Vec
	for range shots {
		at = append(at, b.way.next())
	}
	s, err := b.p.shoot(at)
	if err != nil {
		return err
	}
	b.res.theirs = append(b.res.theirs, s.MS...)
	for _, n := range s.Bytes {
		b.otherBytes += n
	}
	return nil
}

// edit moves the target and takes the time from the request to the JPEG's bytes.
func (b *pair) edit(ctx context.Context, to r3.Vec) error {
	by := r3.Sub(to, b.at)
	args := shift{tenth(by.X), tenth(by.Y), tenth(by.Z)}
	t := time.Now()
	r, err := b.d.call(ctx, "gripper_translate", args)
	took := time.Since(t)
	if err != nil {
		return err
	}
	if bytes.Equal(r.jpeg, b.last) || len(r.jpeg) == 0 {
		return errors.New("an edit came back without a picture of its own")
	}
	b.at, b.last = r3.Add(b.at, r3.Vec{X: args.X, Y: args.Y, Z: args.Z}), r.jpeg
	b.ourBytes += len(r.jpeg)
	b.res.ours.addTime(took)
	return nil
}

// keep writes what both show with the gripper in the same place.
func (b *pair) keep(ctx context.Context, folder string) error {
	name := filepath.Join(folder, fmt.Sprintf("%d-points", b.res.points))
	to := b.way.next()
	if err := b.edit(ctx, to); err != nil {
		return err
	}
	if _, err := b.p.shoot([]r3.Vec{to}); err != nil {
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
				what: fmt.Sprintf("%s (%s), p%.0f", r.name, thousands(r.points), p.p),
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
