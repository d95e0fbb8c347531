package tool

import (
	"image"

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

// encode packs one picture for a result.
func (s *Server) encode(img *image.RGBA) ([]byte, error) { return view.JPEG(img, s.o.Quality) }
