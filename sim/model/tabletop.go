package model

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

const tabletopFloor = -0.75 // world z: a table of common height

// newTabletop places cubes, a bowl and a plate within a Franka's comfortable reach.
func newTabletop(rng *rand.Rand, m *Model) (*world, error) {
	w := &world{file: "tabletop.xml", odom: geom.Identity(), LampAt: r3.Vec{X: 0.8, Y: -0.5, Z: 1.5}}
	w.tripods = []Camera{thirdPerson(r3.Vec{X: 1.50, Y: 0.75, Z: 0.80}, r3.Vec{X: 0.30, Y: 0, Z: 0.22})}
	if m.Base != nil {
		w.odom = flat(-0.62, 0.05, tabletopFloor, 0)
	} else {
		w.Pedestal, w.PedestalHeight = true, -tabletopFloor
	}
	p := &placer{rng: rng, gap: 0.02}
	for _, o := range []Object{
		{Name: "plate", Words: "white plate", Color: [3]float64{0.93, 0.93, 0.90}, Size: r3.Vec{X: 0.18, Y: 0.18, Z: 0.018}, Mass: 0.25},
		{Name: "bowl", Words: "grey bowl", Color: [3]float64{0.55, 0.60, 0.68}, Size: r3.Vec{X: 0.11, Y: 0.11, Z: 0.05}, Mass: 0.20},
		cube("red", 0.045, [3]float64{0.82, 0.10, 0.09}),
		cube("green", 0.050, [3]float64{0.10, 0.58, 0.20}),
		cube("blue", 0.040, [3]float64{0.10, 0.25, 0.80}),
		cube("yellow", 0.040, [3]float64{0.95, 0.76, 0.08}),
	} {
		r := math.Hypot(o.Size.X, o.Size.Y) / 2
		z := 0.0
		if o.Name == "plate" || o.Name == "bowl" {
			r = o.Size.X / 2 // round, its frame on its underside
		} else {
			z = o.Size.Z / 2
		}
		x, y, err := p.put(r, func() (float64, float64) {
			return p.between(0.36, 0.68), p.between(-0.32, 0.32)
		}, func(x, y float64) bool { return math.Hypot(x, y) < 0.72 })
		if err != nil {
			return nil, err
		}
		o.Start = rest(x, y, z, p.between(-math.Pi/4, math.Pi/4))
		w.objects = append(w.objects, o)
	}
	return w, nil
}

// cube has the density of hard wood.
func cube(color string, edge float64, rgb [3]float64) Object {
	return Object{
		Name: color + "_cube", Words: color + " cube", Color: rgb,
		Size: r3.Vec{X: edge, Y: edge, Z: edge}, Mass: 600 * edge * edge * edge,
	}
}

// thirdPerson is a camera on a tripod; places are in the odometry frame.
func thirdPerson(eye, to r3.Vec) Camera {
	c := camera("third_person", "", lookAt(eye, to, r3.Vec{Z: 1}), 640, 480, geom.Rad(48))
	c.Depth = true
	return c
}
