package tool

import (
	"image"
	"runtime"

	"viad/interface/stage"
	"viad/interface/view"
)

// Painter draws snapshots and says what is drawn at a pixel; *view.Painter is one. Fractions u, v are of the
// picture that is named, 0,0 top-left; points are in the odometry frame.
type Painter interface {
	UI(*stage.Snapshot, view.Overlay) *image.RGBA
	Head(*stage.Snapshot, view.Overlay) *image.RGBA
	Wrist(*stage.Snapshot, view.Overlay) *image.RGBA
	NavMap(*stage.Snapshot) *image.RGBA
	Pick(sn *stage.Snapshot, u, v float64) view.Hit
	PickHead(sn *stage.Snapshot, u, v float64) view.Hit
	PickWrist(sn *stage.Snapshot, u, v float64) view.Hit
	ApproachHit(*stage.Snapshot) view.Hit
}

// bounded is a painter that so many calls use at once as there are processors. A picture in the making takes
// tens of megabytes, and clients may ask for hundreds at once.
type bounded struct {
	Painter
	slots chan struct{}
}

func newBounded(p Painter) bounded {
	return bounded{p, make(chan struct{}, max(2, runtime.NumCPU()))}
}

// enter takes a slot; what it returns gives it back.
func (b bounded) enter() func() {
	b.slots <- struct{}{}
	return func() { <-b.slots }
}

// UI is Painter's.
func (b bounded) UI(sn *stage.Snapshot, ov view.Overlay) *image.RGBA {
	defer b.enter()()
	return b.Painter.UI(sn, ov)
}

// Head is Painter's.
func (b bounded) Head(sn *stage.Snapshot, ov view.Overlay) *image.RGBA {
	defer b.enter()()
	return b.Painter.Head(sn, ov)
}

// Wrist is Painter's.
func (b bounded) Wrist(sn *stage.Snapshot, ov view.Overlay) *image.RGBA {
	defer b.enter()()
	return b.Painter.Wrist(sn, ov)
}

// NavMap is Painter's.
func (b bounded) NavMap(sn *stage.Snapshot) *image.RGBA {
	defer b.enter()()
	return b.Painter.NavMap(sn)
}

// encode packs one picture for a result.
func (s *Server) encode(img *image.RGBA) ([]byte, error) { return view.JPEG(img, s.o.Quality) }
