package view

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/interface/stage"
	"viad/perception"
)

// level is a tool pose that reaches along the horizontal direction at yaw.
func level(p r3.Vec, yaw float64) geom.Pose { return geom.Pose{P: p, R: geom.RotZ(yaw)} }

// room is the 2D face's test scene: a floor, a table with a toy on it, a box, a cabinet, a wall, and a mobile
// robot that sees them with a head camera without depth, two lidars and a wrist camera with noisy depth.
func room(tb testing.TB) *stage.Snapshot {
	tb.Helper()
	sn := *roomOnce()
	return &sn
}

func roomReal() geom.Pose { return level(r3.Vec{X: .62, Y: -.05, Z: .82}, 0) }

// roomWorld is what stands in the room.
func roomWorld() world {
	w := world{
		{pose: geom.At(0, 0, -.05), half: r3.Vec{X: 4, Y: 4, Z: .05}, col: 0xB9AE9C},
		{pose: geom.At(1.25, .05, .68), half: r3.Vec{X: .3, Y: .5, Z: .02}, col: 0x9C7B57},
		{pose: geom.At(1.5, -.4, .33), half: r3.Vec{X: .02, Y: .02, Z: .33}, col: 0x6B5238},
		{pose: geom.At(1.0, -.4, .33), half: r3.Vec{X: .02, Y: .02, Z: .33}, col: 0x6B5238},
		{pose: geom.At(1.5, .5, .33), half: r3.Vec{X: .02, Y: .02, Z: .33}, col: 0x6B5238},
		{pose: geom.At(1.0, .5, .33), half: r3.Vec{X: .02, Y: .02, Z: .33}, col: 0x6B5238},
		{pose: geom.At(1.12, .0, .735), r: .035, col: 0xF07818},
		{pose: geom.At(1.2, .28, .75), half: r3.Vec{X: .1, Y: .08, Z: .05}, col: 0x2B62C8},
		{pose: geom.At(1.8, -.95, .45), half: r3.Vec{X: .25, Y: .3, Z: .45}, col: 0xDAD6CF},
		{pose: geom.At(2.6, 0, 1.2), half: r3.Vec{X: .05, Y: 3, Z: 1.2}, col: 0xE6E2DA},
		{pose: geom.At(.25, .45, .2), half: r3.Vec{X: .08, Y: .08, Z: .2}, col: 0x7D8C6A},
	}
	robotParts := robotThings(roomReal(), .06, []r3.Vec{{X: .05, Y: -.05, Z: .82}, {X: .5, Y: -.05, Z: .82}})
	for i := range robotParts {
		robotParts[i].col = 0x4A4F55
	}
	return append(w, robotParts...)
}

var roomOnce = sync.OnceValue(func() *stage.Snapshot {
	rng := rand.New(rand.NewPCG(5, 3))
	real, w := roomReal(), roomWorld()
	head := lookAt(r3.Vec{X: -.05, Z: 1.35}, r3.Vec{X: .95, Z: .75}, r3.Vec{Z: 1})
	hin := sensor.FromFovy(960, 720, 2*math.Atan(math.Tan(geom.Rad(65)/2)*.75))
	hc, _ := w.shoot("head", head, hin, false, 0, rng)
	wristPose := real.Mul(geom.Pose{P: r3.Vec{X: -.1, Z: .07}, R: geom.FromAxes(r3.Vec{Y: -1}, r3.Unit(r3.Vec{X: -.45, Z: -1}))})
	wc, _ := w.shoot("wrist", wristPose, sensor.FromFovy(640, 480, geom.Rad(58)), true, .004, rng)
	for i := range wc.Frame.Depth { // holes, as stereo has them
		if rng.Float64() < .15 {
			wc.Frame.Depth[i] = 0
		}
	}
	hc.Frame.Stamp, wc.Frame.Stamp = testEpoch, testEpoch
	sc := &perception.Scene{Seq: 9, At: testEpoch, Cameras: []*perception.Camera{hc, wc}, Cloud: &perception.Cloud{}}
	for range 60000 { // two lidars on the head: sparse, noisy
		eye := r3.Vec{X: -.05, Y: .06, Z: 1.35}
		if rng.IntN(2) == 0 {
			eye.Y = -.06
		}
		a, b := (rng.Float64()-.5)*2.2, -.9+1.1*rng.Float64()
		d := r3.Vec{X: math.Cos(a) * math.Cos(b), Y: math.Sin(a) * math.Cos(b), Z: math.Sin(b)}
		t, _, what := w.cast(eye, d)
		if what == nil {
			continue
		}
		q := r3.Add(eye, r3.Scale(t+rng.NormFloat64()*.006, d))
		r, g, bl := what.col.parts()
		sc.Cloud.XYZ = append(sc.Cloud.XYZ, float32(q.X), float32(q.Y), float32(q.Z))
		sc.Cloud.RGB = append(sc.Cloud.RGB, uint8(r), uint8(g), uint8(bl))
		sc.Cloud.Class = append(sc.Cloud.Class, what.class)
	}
	st := robot.State{Jaw: robot.Jaw{Known: true, Aperture: .06, Open: true}, HasBase: true}
	g := stage.Gripper{Pose: real, Open: true}
	return &stage.Snapshot{
		Face: stage.Face2D, Scene: sc, State: st, Real: g, Target: g, Aperture: .06, Now: testEpoch.Add(time.Second / 2),
	}
})
