package sim

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/sensor"
	"viad/sim/mj"
	"viad/sim/model"
)

// A lidar's pattern: rays spread evenly over the directions from straight down to 20 degrees up, turned a
// little from frame to frame. A Hesai JT128 gives more; this many keep the twin quick and the cloud sparse.
const (
	lidarRays  = 12000
	lidarNear  = 0.1   // m
	lidarFar   = 15    // m
	lidarSigma = 0.015 // m along the ray, at any distance
	lidarDrop  = 0.03  // share of rays without an echo
	lidarUp    = 0.35  // sine of the highest elevation
)

// lidar casts rays on demand.
type lidar struct {
	t    *Twin
	info sensor.Info
	spec model.Lidar
	salt uint64

	mu   sync.Mutex
	pose pose
	last *sensor.Frame
	from uint64
	dirs []float64 // scratch: world directions
	dist []float64
	geom []int32
}

func newLidar(t *Twin, l model.Lidar, salt uint64) *lidar {
	return &lidar{t: t, spec: l, salt: salt + 1000, info: sensor.Info{
		Name: l.Name, Mount: l.Mount, HasPoints: true,
		Range: [2]float64{lidarNear, lidarFar}, Sigma: lidarSigma, Latency: latency,
	}}
}

func (s *lidar) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pose.close()
}

// Info describes the lidar.
func (s *lidar) Info() *sensor.Info { return &s.info }

// Frame casts the rays at present, or at the first moment at or after at.
func (s *lidar) Frame(ctx context.Context, at time.Time) (*sensor.Frame, error) {
	release, err := s.t.until(ctx, at)
	if err != nil {
		return nil, err
	}
	defer release()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.pose.sync(s.t); err != nil {
		return nil, err
	}
	if s.last != nil && s.from == s.pose.world && s.last.Stamp.Equal(s.pose.stamp) {
		return s.last, nil
	}
	f := &sensor.Frame{Info: &s.info, Stamp: s.pose.stamp, Received: s.pose.stamp, Seq: 1}
	if s.last != nil {
		f.Seq = s.last.Seq + 1
	}
	if err := s.cast(f); err != nil {
		return nil, fmt.Errorf("lidar %s: %w", s.spec.Name, err)
	}
	s.last, s.from = f, s.pose.world
	return f, nil
}

// cast fills f.Points with the echoes in the sensor's frame.
func (s *lidar) cast(f *sensor.Frame) error {
	d := s.pose.d
	link := d.M.ID(mj.Body, s.spec.Mount.Link)
	if link < 0 {
		return fmt.Errorf("the model has no body %s", s.spec.Mount.Link)
	}
	at := poseOf(d.BodyPos(link), d.BodyQuat(link)).Mul(s.spec.Mount.Pose)
	if s.dirs == nil {
		s.dirs, s.dist, s.geom = make([]float64, 3*lidarRays), make([]float64, lidarRays), make([]int32, lidarRays)
	}
	frame := mix(s.salt, uint64(f.Stamp.UnixNano()), s.pose.world)
	turn := 2 * math.Pi * uniform(frame, 0, 7)
	for i := range lidarRays {
		w := geom.Rotate(at.R, ray(i, turn))
		s.dirs[3*i], s.dirs[3*i+1], s.dirs[3*i+2] = w.X, w.Y, w.Z
	}
	// Scenery and collision shapes: primitives, quick to hit. The sensor does not see the head it sits in.
	groups := [6]bool{0: true, 3: true}
	if err := d.Rays([3]float64{at.P.X, at.P.Y, at.P.Z}, s.dirs, groups, link, s.dist, s.geom); err != nil {
		return err
	}
	for i, r := range s.dist {
		if !(r >= lidarNear && r <= lidarFar) || uniform(frame, uint64(i), 8) < lidarDrop {
			continue
		}
		p := r3.Scale(r+lidarSigma*gauss(frame, uint64(i), 9), ray(i, turn))
		f.Points = append(f.Points, float32(p.X), float32(p.Y), float32(p.Z))
	}
	return nil
}

// ray is direction i of the pattern in the sensor's frame: a spiral of the golden angle.
func ray(i int, turn float64) r3.Vec {
	const golden = 2.399963229728653
	z := -1 + (1+lidarUp)*(float64(i)+0.5)/lidarRays
	r := math.Sqrt(1 - z*z)
	s, c := math.Sincos(golden*float64(i) + turn)
	return r3.Vec{X: r * c, Y: r * s, Z: z}
}
