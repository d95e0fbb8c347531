package model

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// The room's furniture; xml/room.xml holds the same numbers.
const (
	roomTable = 0.70 // top of the table
	stoolTop  = 0.42 // top of the stool that carries the box
	tableX    = 1.20 // the table's near edge; it is .70 deep and 1.30 wide
)

// newRoom puts a toy on the table near its edge, a box on a stool elsewhere, and the robot in the
// middle, turned 70 to 150 degrees away from the toy.
func newRoom(rng *rand.Rand, m *Model) (*world, error) {
	w := &world{file: "room.xml", tableTop: roomTable, LampAt: r3.Vec{X: 1, Y: -0.8, Z: 2.6}}
	p := &placer{rng: rng}
	toy := r3.Vec{X: tableX + p.between(0.12, 0.26), Y: p.between(-0.35, 0.45), Z: roomTable + 0.024}
	stool := r3.Vec{X: p.between(0.1, 0.8), Y: p.between(-1.75, -1.55)}
	turn := p.between(-0.25, 0.25)
	w.objects = []Object{
		{
			Name: "toy", Words: "orange toy dog", Color: [3]float64{0.95, 0.45, 0.05},
			Size: r3.Vec{X: 0.11, Y: 0.042, Z: 0.073}, Mass: 0.10, Start: rest(toy.X, toy.Y, toy.Z, p.between(-0.6, 0.6)),
		},
		{
			Name: "stool", Words: "wooden stool", Color: [3]float64{0.62, 0.45, 0.28},
			Size: r3.Vec{X: 0.38, Y: 0.38, Z: stoolTop}, Mass: 9, Start: rest(stool.X, stool.Y, 0, turn),
		},
		{
			Name: "box", Words: "open blue box", Color: [3]float64{0.10, 0.30, 0.78},
			Size: r3.Vec{X: 0.30, Y: 0.25, Z: 0.15}, Mass: 0.8, Start: rest(stool.X, stool.Y, stoolTop, turn+p.between(-0.15, 0.15)),
		},
	}
	w.slides = []Slide{{Body: "drawer", Joint: "drawer_slide", Words: "drawer of the cabinet", Max: 0.28, Handle: "drawer_handle"}}
	start := r3.Vec{X: p.between(-0.35, 0.15), Y: p.between(-0.30, 0.30)}
	away := geom.Rad(p.between(70, 150))
	if rng.IntN(2) == 0 {
		away = -away
	}
	to := r3.Sub(toy, start)
	w.odom = flat(start.X, start.Y, 0, geom.WrapAngle(math.Atan2(to.Y, to.X)+away))
	if m.Base == nil {
		// A fixed arm stands on a pedestal at the table's near edge.
		w.odom = flat(tableX-0.15, 0.05, roomTable, 0)
		w.Pedestal, w.Pede, w.PedestalHeight = true, w.odom.P, roomTable
		w.tripods = []Camera{thirdPerson(r3.Vec{X: 1.32, Y: 0.72, Z: 0.85}, r3.Vec{X: 0.22, Y: -0.02, Z: 0.25})}
	}
	return w, nil
}
