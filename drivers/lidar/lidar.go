// Package lidar is a robot's lidar behind its ROS topic, as a sensor.Source: sparse points in the sensor's own frame.
//
// As with a camera, a frame's time is when it arrived here; Info.Latency bounds how much older its rays may be. A stream
// that ceases gives an error that names its topic, never its last cloud as if it were new.
package lidar

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/ros"
	"viad/ros/msg/sensor_msgs"
)

// Config says which topic is the lidar.
type Config struct {
	Node  ros.Node
	Clock robot.Clock  // nil is the wall clock
	Log   *slog.Logger // nil discards

	Name   string // lidar_left, lidar_right
	Points string // topic of sensor_msgs/PointCloud2
	Scan   string // or of sensor_msgs/LaserScan, whose points are in its own plane

	Mount   sensor.Mount
	Range   [2]float64 // metres; points nearer or farther are dropped
	Sigma   float64    // metres along the ray
	Latency time.Duration
	Stall   time.Duration // silence that is an error; 0 is 2 s
	Start   time.Duration // the same before the first cloud; 0 is 15 s
}

// most is how many points of one cloud are taken.
const most = 1 << 20

// Lidar is a lidar that runs. Its frames are shared and not to be changed.
type Lidar struct {
	c    Config
	info sensor.Info
	sub  ros.Subscription

	topic  string
	opened time.Time

	mu     sync.Mutex
	fresh  chan struct{}
	frame  *sensor.Frame
	seq    uint64
	why    string
	closed bool
}

// ErrClosed is what Frame returns after Close.
var ErrClosed = errors.New("lidar: it was closed")

// Open subscribes.
func Open(_ context.Context, c Config) (*Lidar, error) {
	switch {
	case c.Node == nil || c.Name == "" || (c.Points == "") == (c.Scan == ""):
		return nil, errors.New("lidar: a node, a name and one topic, of points or of a scan, are needed")
	case !(c.Range[0] >= 0 && c.Range[0] < c.Range[1]):
		return nil, fmt.Errorf("lidar %s: a range from %v m to %v m holds no point", c.Name, c.Range[0], c.Range[1])
	}
	if c.Clock == nil {
		c.Clock = robot.WallClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Stall == 0 {
		c.Stall = 2 * time.Second
	}
	if c.Start == 0 {
		c.Start = max(15*time.Second, c.Stall)
	}
	s := &Lidar{c: c, topic: c.Points + c.Scan, opened: c.Clock.Now(), fresh: make(chan struct{}), info: sensor.Info{
		Name: c.Name, Mount: c.Mount, HasPoints: true, Range: c.Range, Sigma: c.Sigma, Latency: c.Latency,
	}}
	var err error
	if q := (ros.QoS{Depth: 2}); c.Scan != "" {
		s.sub, err = ros.Subscribe(c.Node, c.Scan, q, func(m *sensor_msgs.LaserScan, i ros.Info) {
			p, err := sweep(m, c.Range)
			s.take(p, err, i)
		})
	} else {
		s.sub, err = ros.Subscribe(c.Node, c.Points, q, func(m *sensor_msgs.PointCloud2, i ros.Info) {
			p, err := decode(m, c.Range)
			s.take(p, err, i)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("lidar %s: %w", c.Name, err)
	}
	return s, nil
}

func (s *Lidar) take(points []float32, err error, i ros.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.why = fmt.Sprintf("%s: %v", s.topic, err)
	} else {
		received := s.c.Clock.Now()
		if age := time.Since(i.Received); age > 0 && !i.Received.IsZero() {
			received = received.Add(-age)
		}
		s.seq++
		s.frame, s.why = &sensor.Frame{Info: &s.info, Seq: s.seq, Received: received, Stamp: received, Points: points}, ""
	}
	close(s.fresh)
	s.fresh = make(chan struct{})
}

// sweep is the points of a scan, in its plane. Rays without an echo are dropped.
func sweep(m *sensor_msgs.LaserScan, within [2]float64) ([]float32, error) {
	first, step := float64(m.AngleMin), float64(m.AngleIncrement)
	switch last := first + step*float64(len(m.Ranges)); {
	case len(m.Ranges) > most:
		return nil, fmt.Errorf("%d rays; at most %d are taken", len(m.Ranges), most)
	case math.IsNaN(last) || math.IsInf(last, 0):
		return nil, fmt.Errorf("rays from %v rad every %v rad are nowhere", m.AngleMin, m.AngleIncrement)
	}
	near, far := max(within[0], float64(m.RangeMin)), min(within[1], float64(m.RangeMax))
	out := make([]float32, 0, 3*len(m.Ranges))
	for i, r := range m.Ranges {
		if d := float64(r); d >= near && d <= far {
			sin, cos := math.Sincos(first + step*float64(i))
			out = append(out, float32(d*cos), float32(d*sin), 0)
		}
	}
	return out, nil
}

// decode reads the x, y and z of a cloud, wherever they stand in a point. Points that are not finite or out of range are
// dropped.
func decode(m *sensor_msgs.PointCloud2, within [2]float64) ([]float32, error) {
	at := [3]int{-1, -1, -1}
	var kind uint8
	for _, f := range m.Fields {
		for k, n := range []string{"x", "y", "z"} {
			if f.Name != n {
				continue
			}
			if f.Datatype != sensor_msgs.PointField_FLOAT32 && f.Datatype != sensor_msgs.PointField_FLOAT64 {
				return nil, fmt.Errorf("%s has datatype %d; float32 and float64 can be read", n, f.Datatype)
			}
			if f.Datatype != kind && kind != 0 {
				return nil, errors.New("x, y and z are not of one datatype")
			}
			at[k], kind = int(f.Offset), f.Datatype
		}
	}
	size, wide := 4, kind == sensor_msgs.PointField_FLOAT64
	if wide {
		size = 8
	}
	w, h, step, row := int(m.Width), int(m.Height), int(m.PointStep), int(m.RowStep)
	switch {
	case at[0] < 0 || at[1] < 0 || at[2] < 0:
		return nil, errors.New("the points have no x, y and z")
	case w < 0 || h < 0 || w > most || h > most || w*h > most:
		return nil, fmt.Errorf("%d x %d points; at most %d are taken", m.Width, m.Height, most)
	case w*h == 0:
		return []float32{}, nil
	case max(at[0], at[1], at[2])+size > step || row < w*step || len(m.Data) < row*(h-1)+w*step:
		return nil, fmt.Errorf("%d bytes with rows of %d do not hold %d x %d points of %d bytes", len(m.Data), m.RowStep, w, h, m.PointStep)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if m.IsBigendian {
		order = binary.BigEndian
	}
	out := make([]float32, 0, 3*w*h)
	for y := range h {
		for x := range w {
			var p [3]float64
			for k := range p {
				b := m.Data[y*row+x*step+at[k]:]
				if wide {
					p[k] = math.Float64frombits(order.Uint64(b))
				} else {
					p[k] = float64(math.Float32frombits(order.Uint32(b)))
				}
			}
			if r := math.Sqrt(p[0]*p[0] + p[1]*p[1] + p[2]*p[2]); r >= within[0] && r <= within[1] {
				out = append(out, float32(p[0]), float32(p[1]), float32(p[2]))
			}
		}
	}
	return out, nil
}

// Info describes the lidar.
func (s *Lidar) Info() *sensor.Info { return &s.info }

// Frame waits for a cloud that arrived at or after t; a zero t takes the newest. A stream that is silent for Stall, or
// sends what cannot be read, is an error.
func (s *Lidar) Frame(ctx context.Context, t time.Time) (*sensor.Frame, error) {
	began := s.c.Clock.Now()
	for {
		s.mu.Lock()
		f, why, fresh, closed := s.frame, s.why, s.fresh, s.closed
		s.mu.Unlock()
		now := s.c.Clock.Now()
		switch {
		case closed:
			return nil, ErrClosed
		case why != "":
			return nil, fmt.Errorf("lidar %s: %s", s.c.Name, why)
		case f != nil && !f.Stamp.Before(t) && now.Sub(f.Received) < s.c.Stall:
			return f, nil
		}
		end, limit := began.Add(s.c.Stall), s.c.Stall
		switch first := s.opened.Add(s.c.Start); {
		case f != nil && f.Received.After(began):
			end = f.Received.Add(s.c.Stall)
		case f == nil && first.After(end):
			end, limit = first, s.c.Start
		}
		left := end.Sub(now)
		if left <= 0 {
			return nil, fmt.Errorf("lidar %s: no points came on %s for %v: look at the lidar's node, its network cable and its power", s.c.Name, s.topic, limit)
		}
		select {
		case <-fresh:
		case <-s.c.Clock.After(left):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Facts say how the stream is.
func (s *Lidar) Facts() []robot.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := robot.Fact{Name: s.c.Name}
	switch now := s.c.Clock.Now(); {
	case s.why != "":
		f.Value = s.why
	case s.frame == nil:
		f.Value = "no points yet"
	case now.Sub(s.frame.Received) >= s.c.Stall:
		f.Value = fmt.Sprintf("no points on %s for %v", s.topic, now.Sub(s.frame.Received).Round(time.Second))
	default:
		f.Value = fmt.Sprintf("%d points, newest %v old", len(s.frame.Points)/3, s.c.Clock.Now().Sub(s.frame.Received).Round(time.Millisecond))
	}
	return []robot.Fact{f}
}

// Run lives until ctx ends; the points come by themselves.
func (s *Lidar) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Close ends the subscription and every wait for a frame.
func (s *Lidar) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.fresh)
	s.fresh = make(chan struct{})
	s.mu.Unlock()
	return s.sub.Close()
}
