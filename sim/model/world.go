package model

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// world is a world with everything in its place.
type world struct {
	file     string // fragment in xml/
	odom     geom.Pose
	objects  []Object
	slides   []Slide
	tableTop float64
	tripods  []Camera // mounted in the odometry frame
	Pedestal bool     // a fixed arm stands on one
	// Pede is where the pedestal's top centre is, and PedestalHeight its height.
	Pede           r3.Vec
	PedestalHeight float64
	LampAt         r3.Vec // middle of the shadow map
}

func newWorld(s Spec, m *Model) (*world, error) {
	rng := rand.New(rand.NewPCG(s.Seed, 0x76696164))
	switch s.World {
	case "tabletop":
		return newTabletop(rng, m)
	case "room":
		return newRoom(rng, m)
	}
	return nil, fmt.Errorf("model: no world %q; there are tabletop, room", s.World)
}

func (w *world) cameras(m *Model) []Camera {
	if m.Base != nil {
		return nil // a mobile robot sees with its own eyes only
	}
	return w.tripods
}

// errCrowded cannot happen with the sizes in this package; the tests try many seeds.
var errCrowded = errors.New("model: no free place found")

// disc is a footprint for placing.
type disc struct{ x, y, r float64 }

// placer puts discs where they clear each other.
type placer struct {
	rng   *rand.Rand
	taken []disc
	gap   float64
}

func (p *placer) between(lo, hi float64) float64 { return lo + (hi-lo)*p.rng.Float64() }

func (p *placer) clear(d disc) bool {
	for _, t := range p.taken {
		if math.Hypot(d.x-t.x, d.y-t.y) < d.r+t.r+p.gap {
			return false
		}
	}
	return true
}

// put finds a free place for a disc of radius r by drawing until ok accepts one.
func (p *placer) put(r float64, draw func() (x, y float64), ok func(x, y float64) bool) (x, y float64, err error) {
	for range 2000 {
		x, y = draw()
		if d := (disc{x, y, r}); ok(x, y) && p.clear(d) {
			p.taken = append(p.taken, d)
			return x, y, nil
		}
	}
	return 0, 0, errCrowded
}

func flat(x, y, z, yaw float64) geom.Pose {
	return geom.Pose{P: r3.Vec{X: x, Y: y, Z: z}, R: geom.RotZ(yaw)}
}

// Objects is for the fragments.
func (w *world) Objects() []Object { return w.objects }

// HalfColumn, ColumnDown and FootDown are the pedestal below its 12 mm top plate, down to a 20 mm foot.
func (w *world) HalfColumn() float64 { return (w.PedestalHeight - 0.032) / 2 }

// ColumnDown is how far the column's centre is under the top.
func (w *world) ColumnDown() float64 { return 0.012 + w.HalfColumn() }

// FootDown is how far the foot's centre is under the top.
func (w *world) FootDown() float64 { return w.PedestalHeight - 0.010 }

// RGBA is the object's colour in XML.
func (o Object) RGBA() string {
	return num(o.Color[0]) + " " + num(o.Color[1]) + " " + num(o.Color[2]) + " 1"
}

// Half is half the object's bounding box.
func (o Object) Half() r3.Vec { return r3.Scale(0.5, o.Size) }

// Radius is that of a round object.
func (o Object) Radius() float64 { return o.Size.X / 2 }

// rest is where an object rests on something at height z: about as deep in it as its weight presses, and a
// little off level. Boxes that are exactly level and only just touch are what MuJoCo's collider is worst at
// (mj/box.c).
func rest(x, y, z, yaw float64) geom.Pose {
	p := flat(x, y, z-1e-4, yaw)
	p.R = quat.Mul(p.R, geom.FromRotVec(r3.Vec{X: 1e-6, Y: 0.7e-6}))
	return p
}
