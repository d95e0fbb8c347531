package perception

import (
	"math"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// HeldBox is the region of the tool frame in which points belong to what a closed jaw holds: x from -Back to
// Ahead along the approach, y within half the aperture plus Side, z within Thick on either side. Metres.
// A surface that the object still rests on falls into it too, until it is lifted.
//
// What sticks out of the region is found by growing from it, over gaps of about Gap, and belongs to the object
// as long as all of it lies within Reach of the closure point: a thing that hangs free in the hand ends somewhere,
// one that rests on something does not. Where it does not end, the region alone counts. A zero Gap grows nothing.
type HeldBox struct{ Back, Ahead, Side, Thick, Reach, Gap float64 }

// hold arms the held region.
func (s *selfFilter) hold(tool geom.Pose, b HeldBox, aperture float64) {
	s.held, s.toTool, s.at, s.box = true, tool.Inv(), tool.P, b
	s.half = r3.Vec{X: (b.Ahead + b.Back) / 2, Y: aperture/2 + b.Side, Z: b.Thick}
	s.mid = r3.Vec{X: (b.Ahead - b.Back) / 2}
}

// inHand reports that point i lies in the held region, and stretches lo and hi (tool frame) to it.
func (s *selfFilter) inHand(c *Cloud, i int, lo, hi *r3.Vec) bool {
	if !s.held {
		return false
	}
	p := s.toTool.Point(c.At(i))
	if d := r3.Sub(p, s.mid); math.Abs(d.X) > s.half.X || math.Abs(d.Y) > s.half.Y || math.Abs(d.Z) > s.half.Z {
		return false
	}
	stretch(lo, hi, p)
	return true
}

func stretch(lo, hi *r3.Vec, p r3.Vec) {
	*lo = r3.Vec{X: min(lo.X, p.X), Y: min(lo.Y, p.Y), Z: min(lo.Z, p.Z)}
	*hi = r3.Vec{X: max(hi.X, p.X), Y: max(hi.Y, p.Y), Z: max(hi.Z, p.Z)}
}

// cube is a cell of edge Gap in the tool frame.
type cube [3]int32

// around is the points near the hand by cell, the world's and the held ones.
type around struct {
	cells map[cube][]int
	queue []cube // of held points at first, then of all that hangs together with them
	seen  map[cube]bool
}

// grow marks what hangs together with the held points as held too, and stretches lo and hi (tool frame) to it.
func (s *selfFilter) grow(v *voxels, lo, hi *r3.Vec) {
	if !(s.box.Gap > 0) {
		return
	}
	a := s.nearHand(v)
	var more []int
	for n := 0; n < len(a.queue); n++ {
		c := a.queue[n]
		for _, i := range a.cells[c] {
			if v.cloud.Class[i] == Held {
				continue
			}
			if r3.Norm2(r3.Sub(v.cloud.At(i), s.at)) > s.box.Reach*s.box.Reach {
				return // it goes on: it is not in the hand alone
			}
			more = append(more, i)
		}
		for k := range int32(27) {
			d := cube{c[0] + k%3 - 1, c[1] + k/3%3 - 1, c[2] + k/9 - 1}
			if _, ok := a.cells[d]; ok && !a.seen[d] {
				a.seen[d] = true
				a.queue = append(a.queue, d)
			}
		}
	}
	for _, i := range more {
		v.cloud.Class[i] = Held
		stretch(lo, hi, s.toTool.Point(v.cloud.At(i)))
	}
}

// nearHand sorts the points within reach, and somewhat beyond it, into cells.
func (s *selfFilter) nearHand(v *voxels) around {
	a := around{cells: map[cube][]int{}, seen: map[cube]bool{}}
	far := s.box.Reach + 2*s.box.Gap
	for i, c := range v.cloud.Class {
		if c == Robot || c == World && v.w[i] == 0 {
			continue
		}
		q := v.cloud.At(i)
		if r3.Norm2(r3.Sub(q, s.at)) > far*far {
			continue
		}
		p := s.toTool.Point(q)
		at := cube{cell(p.X, s.box.Gap), cell(p.Y, s.box.Gap), cell(p.Z, s.box.Gap)}
		a.cells[at] = append(a.cells[at], i)
		if c == Held && !a.seen[at] {
			a.seen[at] = true
			a.queue = append(a.queue, at)
		}
	}
	return a
}

func cell(x, size float64) int32 { return int32(math.Floor(x / size)) }
