package perception

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/sensor"
)

// scan is a lidar at 1 m height that gives the points it is told.
func scan(pts ...r3.Vec) sensor.Source {
	info := &sensor.Info{Name: "lidar", HasPoints: true, Range: [2]float64{0.1, 10}, Mount: sensor.Mount{Link: "hand", Pose: geom.Identity()}}
	f := &sensor.Frame{Info: info, Stamp: epoch}
	inv := newSlider().Tool(geom.SE2{}, []float64{0}).Inv()
	for _, p := range pts {
		q := vec32(inv.Point(p))
		f.Points = append(f.Points, q[:]...)
	}
	return once{f}
}

func TestLidar(t *testing.T) {
	var pts []r3.Vec
	for i := range 10 {
		for j := range 10 {
			pts = append(pts, r3.Vec{X: 1, Y: 0.05 * float64(i), Z: 0.05 * float64(j)})
		}
	}
	pts = append(pts, r3.Vec{X: 0.6, Y: 0.2, Z: 0.2}, vec(math.NaN()), r3.Vec{X: 20}) // a flyer, a wreck, a far one
	eye := tripod(160, 120, table, box(1, 0.2, 0.2, 0.01, 0.6, 0.6, red))
	eye.info.Name, eye.info.HasDepth = "head", false
	eye.truth = looking(r3.Vec{}, r3.Vec{X: 1, Y: 0.2, Z: 0.2})
	eye.info.Mount.Pose = eye.truth
	o := options(scan(pts...), eye)
	o.Voxel = 0.02
	o.Bounds = r3.Box{Min: vec(-2), Max: vec(2)}
	s := fuse(t, o)
	if s.Cloud.Len() != 101 || s.Obstacles() != 100 {
		t.Errorf("%d points, %d obstacles; want 101 drawn, 100 that count", s.Cloud.Len(), s.Obstacles())
	}
	if h := s.Clearance(ball(0.6, 0.2, 0.2, 0.01), 0.3); h.Found {
		t.Errorf("a lone flyer counts: %+v", h)
	}
	if h := s.Clearance(ball(0.9, 0.2, 0.2, 0.01), 0.3); math.Abs(h.Dist-0.09) > 1e-4 {
		t.Errorf("wall at 9 cm: %+v", h)
	}
	tinted := 0
	for i := range s.Cloud.Len() {
		if s.Cloud.RGB[3*i] == 220 {
			tinted++
		}
	}
	if tinted < 90 {
		t.Errorf("%d of 101 points took the head camera's colour", tinted)
	}
}

// TestLidarNoise: 12,000 beams of a lidar with 15 mm of noise see a wall, and the robot's own hand 0.3 m away.
func TestLidarNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	eye := r3.Vec{X: 0.5, Y: -0.4, Z: 0.4}
	world := []solid{box(0.5, 0.85, 0.5, 2, 0.05, 2, red), box(0.5, 0, 0.4, 0.028, 0.028, 0.05, red)} // wall at y = 0.8; hand
	info := &sensor.Info{Name: "lidar", HasPoints: true, Range: [2]float64{0.1, 10}, Sigma: 0.015, Mount: sensor.Mount{Pose: geom.Pose{P: eye, R: geom.RotZ(0)}}}
	f := &sensor.Frame{Info: info, Stamp: epoch}
	for i := range 12000 {
		z := 1 - 2*(float64(i)+0.5)/12000 // a Fibonacci sphere
		s, c := math.Sincos(2.399963 * float64(i))
		dir := r3.Vec{X: c * math.Sqrt(1-z*z), Y: s * math.Sqrt(1-z*z), Z: z}
		if d, _ := cast(eye, dir, world); d > 0 {
			q := vec32(r3.Scale(d+0.015*rng.NormFloat64(), dir))
			f.Points = append(f.Points, q[:]...)
		}
	}
	o := options(once{f})
	o.State = func() robot.State { return rest(epoch, 0.5) }
	o.Voxel, o.Bounds = 0.02, r3.Box{Min: vec(-2), Max: vec(2)}
	s := fuse(t, o)
	var sq, n float64
	for i := 0; i < len(s.index.pts); i += 3 {
		x, y, z := float64(s.index.pts[i])-0.5, float64(s.index.pts[i+1]), float64(s.index.pts[i+2])-0.4
		if y < 0.5 {
			t.Fatalf("an echo of the hand is an obstacle: %v", s.index.pts[i:i+3])
		}
		if math.Hypot(x, z) < 0.6 { // nearly head-on
			sq, n = sq+(y-0.8)*(y-0.8), n+1
		}
	}
	if rms := math.Sqrt(sq / n); n < 300 || rms > 0.008 {
		t.Errorf("wall off by %.4f m rms at %v points, want half of the sensor's 0.015", rms, n)
	}
}
