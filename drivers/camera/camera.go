// Package camera is a robot's camera behind its ROS topics, as a sensor.Source: colour, depth that is aligned to it, and
// the intrinsics.
//
// A frame's time is when its pixels arrived here: many of these cameras stamp their pictures when they publish them, some
// by a clock of their own, so that the stamp of the message says little. Info.Latency bounds how much older the exposure
// may be; who fuses a frame leaves it out when the camera moved within that.
//
// A stream that ceases gives an error that names its topic, never its last picture as if it were new.
package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/ros"
	"viad/ros/msg/sensor_msgs"
)

// Config says which topics make one camera.
type Config struct {
	Node  ros.Node
	Clock robot.Clock  // nil is the wall clock
	Log   *slog.Logger // nil discards

	Name  string // third_person, wrist, head
	Color string // topic of sensor_msgs/Image, or of sensor_msgs/CompressedImage when it ends in /compressed
	Depth string // the same, aligned to Color; "" is none
	Infos string // topic of sensor_msgs/CameraInfo of Color

	Mount   sensor.Mount // where the optical frame is
	Range   [2]float64   // metres, nearest and farthest trusted depth
	Sigma   float64      // depth noise at 1 m, metres
	Latency time.Duration
	Stall   time.Duration // silence that is an error; 0 is 2 s
	Start   time.Duration // the same before the first picture; 0 is 15 s
	// Freeze is how long no pixel may change while pictures come. A real sensor's noise changes some in every picture, so
	// that a repeated one is a stalled capture. 0 only says it in Facts, for cameras without noise.
	Freeze time.Duration
}

// pairTime is how far the stamps of a colour and a depth picture of one exposure may be apart.
const pairTime = 20 * time.Millisecond

// Camera is a camera that runs. Its frames are shared and not to be changed.
type Camera struct {
	c    Config
	info sensor.Info
	subs []ros.Subscription

	opened  time.Time
	mu      sync.Mutex
	fresh   chan struct{} // closed when a frame or an error is there
	frame   *sensor.Frame
	seq     uint64
	waiting [2][]*picture // colour and depth that have no partner yet, by arrival
	known   bool          // intrinsics
	why     string        // what was wrong with the newest picture
	changed string        // the intrinsics are no longer those of Info
	lens    string        // what the user of a distorted lens must know
	same    [2]still      // colour, depth
	origins [2]origin     // the same
	closed  bool
}

// ErrClosed is what Frame returns after Close.
var ErrClosed = errors.New("camera: it was closed")

// Open subscribes and waits until the intrinsics are known: without them no pixel means a place.
func Open(ctx context.Context, c Config) (*Camera, error) {
	if c.Node == nil || c.Name == "" || c.Color == "" || c.Infos == "" {
		return nil, errors.New("camera: a node, a name, a colour topic and a camera_info topic are needed")
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
	s := &Camera{c: c, opened: c.Clock.Now(), fresh: make(chan struct{}), info: sensor.Info{
		Name: c.Name, Mount: c.Mount, HasColor: true, HasDepth: c.Depth != "", Range: c.Range, Sigma: c.Sigma, Latency: c.Latency,
	}}
	err := s.subscribe()
	if err == nil {
		err = s.intrinsics(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("camera %s: %w", c.Name, err), s.Close())
	}
	return s, nil
}

func (s *Camera) subscribe() error {
	var errs []error
	keep := func(sub ros.Subscription, err error) {
		if err == nil {
			s.subs = append(s.subs, sub)
		}
		errs = append(errs, err)
	}
	q := ros.QoS{Depth: 2} // the newest pictures; older ones are of no use
	keep(ros.Subscribe(s.c.Node, s.c.Infos, ros.SensorData(), func(m *sensor_msgs.CameraInfo, _ ros.Info) { s.learn(m) }))
	if strings.HasSuffix(s.c.Color, "/compressed") {
		keep(ros.Subscribe(s.c.Node, s.c.Color, q, func(m *sensor_msgs.CompressedImage, i ros.Info) {
			p, err := unpack(m)
			s.take(p, err, i, colour)
		}))
	} else {
		keep(s.images(s.c.Color, q, colour))
	}
	if s.c.Depth != "" {
		keep(s.images(s.c.Depth, q, depth))
	}
	return errors.Join(errs...)
}

func (s *Camera) images(topic string, q ros.QoS, k kind) (ros.Subscription, error) {
	return ros.Subscribe(s.c.Node, topic, q, func(m *sensor_msgs.Image, i ros.Info) {
		p, err := decode(m, k == depth)
		s.take(p, err, i, k)
	})
}

// learn takes the intrinsics once: P when it is filled, that of the rectified picture, else K.
func (s *Camera) learn(m *sensor_msgs.CameraInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in, err := intrinsicsOf(m)
	switch {
	case err != nil && s.known:
		s.changed = fmt.Sprintf("%s: %v", s.c.Infos, err)
	case err != nil:
		s.why = fmt.Sprintf("%s: %v", s.c.Infos, err)
	case !s.known:
		s.info.Intrinsics, s.known, s.why = in, true, ""
		if bent(m) && !strings.Contains(s.c.Color, "rect") {
			s.lens = fmt.Sprintf("; the lens is distorted (%v) and P is used, which is right only if %s is rectified", m.D, s.c.Color)
		}
	case in != s.info.Intrinsics:
		s.changed = fmt.Sprintf("%s changed its intrinsics from %+v to %+v: start the daemon again", s.c.Infos, s.info.Intrinsics, in)
	default:
		s.changed = ""
	}
	s.wake()
}

func intrinsicsOf(m *sensor_msgs.CameraInfo) (sensor.Intrinsics, error) {
	in := sensor.Intrinsics{W: int(m.Width), H: int(m.Height), Fx: m.P[0], Fy: m.P[5], Cx: m.P[2], Cy: m.P[6]}
	if in.Fx == 0 {
		in.Fx, in.Fy, in.Cx, in.Cy = m.K[0], m.K[4], m.K[2], m.K[5]
		if bent(m) {
			return in, fmt.Errorf("the lens is distorted (%v) and there is no P: publish the rectified picture", m.D)
		}
	}
	if m.BinningX > 1 || m.BinningY > 1 || m.Roi.Width != 0 && m.Roi.Width != m.Width || m.Roi.Height != 0 && m.Roi.Height != m.Height {
		return in, fmt.Errorf("binning of %d x %d and a region of %d x %d pixels cannot be read: publish the whole picture",
			m.BinningX, m.BinningY, m.Roi.Width, m.Roi.Height)
	}
	if in.W <= 0 || in.H <= 0 || in.W > most || in.H > most || !(in.Fx > 0) || !(in.Fy > 0) || in.Cx-in.Cx != 0 || in.Cy-in.Cy != 0 {
		return in, fmt.Errorf("%d x %d pixels with focal lengths %v and %v is no calibration: calibrate the camera", in.W, in.H, in.Fx, in.Fy)
	}
	return in, nil
}

func bent(m *sensor_msgs.CameraInfo) bool {
	return slices.ContainsFunc(m.D, func(d float64) bool { return d != 0 })
}

// intrinsics waits for them.
func (s *Camera) intrinsics(ctx context.Context) error {
	for {
		s.mu.Lock()
		known, why, fresh := s.known, s.why, s.fresh
		s.mu.Unlock()
		if known {
			return nil
		}
		select {
		case <-fresh:
		case <-ctx.Done():
			if why != "" {
				return errors.New(why)
			}
			return fmt.Errorf("no camera_info came on %s: %s", s.c.Infos, s.publishers(s.c.Infos, 0))
		}
	}
}

// Info describes the camera.
func (s *Camera) Info() *sensor.Info { return &s.info }

// Run lives until ctx ends; the pictures come by themselves.
func (s *Camera) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Close ends the subscriptions and every wait for a frame.
func (s *Camera) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.wake()
	s.mu.Unlock()
	var errs []error
	for _, sub := range slices.Backward(s.subs) {
		errs = append(errs, io.Closer(sub).Close())
	}
	return errors.Join(errs...)
}
