// Package view turns a stage's snapshot into pictures, and a pixel of such a picture back into what is drawn
// there: the 3D face's one picture, the 2D face's head, wrist and map views, their overlays and their picks.
// It is plain Go on one core, without a GPU.
//
// Pictures show only what sensors gave and what was staged. Everything is placed in the odometry frame.
// A pick reads the same depths that the picture was drawn with, so what you see is what you click.
package view

import (
	"image"
	"log/slog"
	"math"
	"sync"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/interface/stage"
	"viad/perception"
)

// Options say what a Painter draws. The zero value of every field is usable.
type Options struct {
	Kin       robot.Kinematics // masks the robot's own hand in the wrist's depth; nil masks nothing
	Gripper   GripperShape     // nil draws a plain two-finger gripper
	Jaw       robot.JawSpec    // aperture when open and closed; zero takes it from Kin
	Footprint []r3.Vec         // outline of the base in the base frame, metres, convex; nil is a disc of 0.2 m
	Third     string           // name of the fixed camera; empty is third_person
	Wrist     string           // name of the wrist camera; empty is wrist
	Head      string           // name of the head camera; empty is head
	Log       *slog.Logger     // nil is none
	Voxel     float64          // distance between the cloud's points in metres; zero measures it
}

// Painter draws and picks. It is safe for concurrent use; its caches hold only what can be drawn again.
type Painter struct {
	o      Options
	faces  *faces
	solids solidPool
	cells  sync.Pool // *[]cell of one cloud view

	mu     sync.Mutex // guards what follows
	layers []*layer   // newest last
	thumbs []*thumb   // newest last
	fronts []*front   // newest last
	meshes []meshAt   // by aperture, newest last
}

// sizes of the caches: a seat and a few watchers, two faces' pictures.
const (
	maxLayers = 3
	maxThumbs = 8
	maxFronts = 2
	maxMeshes = 4
)

// NewPainter loads the fonts and returns a painter. The error can only be a broken build.
func NewPainter(o Options) (*Painter, error) {
	fs, err := loadFaces()
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Gripper == nil {
		o.Gripper = plainGripper
	}
	if o.Jaw.Max == 0 && o.Kin != nil {
		o.Jaw = o.Kin.Model().Jaw
	}
	if o.Jaw.Max == 0 {
		o.Jaw.Max = .08
	}
	if len(o.Footprint) == 0 {
		for i := range 32 {
			s, c := math.Sincos(2 * math.Pi * float64(i) / 32)
			o.Footprint = append(o.Footprint, r3.Vec{X: .2 * c, Y: .2 * s})
		}
	}
	for _, n := range []struct {
		s   *string
		def string
	}{{&o.Third, "third_person"}, {&o.Wrist, "wrist"}, {&o.Head, "head"}} {
		if *n.s == "" {
			*n.s = n.def
		}
	}
	return &Painter{o: o, faces: fs}, nil
}

// Overlay is drawn into one picture and gone from the next. Points are in the odometry frame.
type Overlay struct {
	Crosshair *Mark   // hover: over whatever is at the fraction of the picture
	Axis      bool    // approach axis of the target (3D)
	Gizmo     bool    // the three rings that gripper_rotate turns about, and the approach axis (3D)
	Drag      *Drag   // ends and path of a drag (3D)
	Salient   *r3.Vec // the point a teleport went to (3D)
	RedDot    *Mark   // the point clicked in the head view
	X         *r3.Vec // where the approach axis meets a surface (wrist view)
}

// Mark is a place in a picture, in fractions of its width and height, with a few words beside it.
type Mark struct {
	U, V  float64
	Label string
}

// Drag is the two ends of a drag in fractions of the 3D face's picture.
type Drag struct{ U1, V1, U2, V2 float64 }

// aperture is the target's jaw opening in metres: the measured one while the jaw is staged as it is, so that a
// target at rest lies on the real gripper, else fully open or closed.
func (p *Painter) aperture(sn *stage.Snapshot) float64 {
	if sn.Target.Open == sn.Real.Open && !sn.JawStaged && sn.State.Jaw.Known && sn.Aperture >= 0 {
		return math.Max(p.o.Jaw.Min, math.Min(p.o.Jaw.Max, sn.Aperture))
	}
	if sn.Target.Open {
		return p.o.Jaw.Max
	}
	return p.o.Jaw.Min
}

type meshAt struct {
	aperture float64
	m        *mesh
}

// gripper is the triangles of the target gripper at an aperture.
func (p *Painter) gripper(aperture float64) *mesh {
	aperture = math.Round(aperture*1e4) / 1e4
	p.mu.Lock()
	for _, m := range p.meshes {
		if m.aperture == aperture {
			p.mu.Unlock()
			return m.m
		}
	}
	p.mu.Unlock()
	m := tessellate(p.o.Gripper(aperture))
	p.mu.Lock()
	p.meshes = remember(p.meshes, meshAt{aperture, m}, maxMeshes)
	p.mu.Unlock()
	return m
}

// remember appends to a cache and drops its oldest entry when it is full.
func remember[T any](s []T, v T, limit int) []T {
	if len(s) >= limit {
		s = append(s[:0:0], s[1:]...)
	}
	return append(s, v)
}

// thumb is one frame's picture at one size.
type thumb struct {
	frame *sensor.Frame
	w, h  int
	img   *image.RGBA
}

// picture is a frame's colour picture scaled to w by h; nil when the frame has none. It must not be written to.
func (p *Painter) picture(f *sensor.Frame, w, h int) *image.RGBA {
	in := f.Info.Intrinsics
	if in.W <= 0 || in.H <= 0 || len(f.RGB) < 3*in.W*in.H || w <= 0 || h <= 0 {
		return nil
	}
	p.mu.Lock()
	for _, t := range p.thumbs {
		if t.frame == f && t.w == w && t.h == h {
			p.mu.Unlock()
			return t.img
		}
	}
	p.mu.Unlock()
	t := &thumb{frame: f, w: w, h: h, img: scale(f.RGB, in.W, in.H, w, h)}
	p.mu.Lock()
	p.thumbs = remember(p.thumbs, t, maxThumbs)
	p.mu.Unlock()
	return t.img
}

// camera is a scene's newest picture of that name; nil without a scene or such a picture.
func camera(sn *stage.Snapshot, name string) *perception.Camera {
	if sn.Scene == nil {
		return nil
	}
	return sn.Scene.Camera(name)
}

// getCells is n cells with unknown contents.
func (p *Painter) getCells(n int) []cell {
	if b, ok := p.cells.Get().(*[]cell); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]cell, n)
}

func (p *Painter) putCells(b []cell) { p.cells.Put(&b) }
