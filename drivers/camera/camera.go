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
	Color string // topic of sensor_msgs/Image
	Depth string // the same, aligned to Color; "" is none
	Infos string // topic of sensor_msgs/CameraInfo of Color

	Mount   sensor.Mount // where the optical frame is
	Range   [2]float64   // metres, nearest and farthest trusted depth
	Sigma   float64      // depth noise at 1 m, metres
	Latency time.Duration
	Stall   time.Duration // silence that is an error; 0 is 2 s
}

// pairTime is how far the stamps of a colour and a depth picture of one exposure may be apart.
const pairTime = 20 * time.Millisecond

// Camera is a camera that runs. Its frames are shared and not to be changed.
type Camera struct {
	c    Config
	info sensor.Info
	subs []ros.Subscription

	mu      sync.Mutex
	fresh   chan struct{} // closed when a frame or an error is there
	frame   *sensor.Frame
	seq     uint64
	color   *picture // the newest that has no partner yet
	depth   *picture
	known   bool // intrinsics
	why     string
	same    time.Time // since when the pixels have been the same
	lastSum uint32
	closed  bool
}

// picture is one message's pixels and its own stamp.
type picture struct {
	w, h  int
	stamp int64
	rgb   []byte
	depth []float32
	sum   uint32
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
	s := &Camera{c: c, fresh: make(chan struct{}), info: sensor.Info{
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
	keep := func(sub ros.Subscription, err error) error {
		if err == nil {
			s.subs = append(s.subs, sub)
		}
		return err
	}
	q := ros.QoS{Depth: 2} // the newest pictures; older ones are of no use
	err := errors.Join(
		keep(ros.Subscribe(s.c.Node, s.c.Infos, ros.SensorData(), func(m *sensor_msgs.CameraInfo, _ ros.Info) { s.learn(m) })),
		keep(ros.Subscribe(s.c.Node, s.c.Color, q, func(m *sensor_msgs.Image, i ros.Info) { s.take(m, i, false) })),
	)
	if s.c.Depth != "" {
		err = errors.Join(err, keep(ros.Subscribe(s.c.Node, s.c.Depth, q, func(m *sensor_msgs.Image, i ros.Info) { s.take(m, i, true) })))
	}
	return err
}

// learn takes the intrinsics once: P when it is filled, that of the rectified picture, else K.
func (s *Camera) learn(m *sensor_msgs.CameraInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in, err := intrinsicsOf(m)
	switch {
	case err != nil:
		s.why = fmt.Sprintf("%s: %v", s.c.Infos, err)
	case !s.known:
		s.info.Intrinsics, s.known, s.why = in, true, ""
	case in != s.info.Intrinsics:
		s.why = fmt.Sprintf("%s changed its intrinsics from %+v to %+v: start the daemon again", s.c.Infos, s.info.Intrinsics, in)
	}
	s.wake()
}

func intrinsicsOf(m *sensor_msgs.CameraInfo) (sensor.Intrinsics, error) {
	in := sensor.Intrinsics{W: int(m.Width), H: int(m.Height), Fx: m.P[0], Fy: m.P[5], Cx: m.P[2], Cy: m.P[6]}
	if in.Fx == 0 {
		in.Fx, in.Fy, in.Cx, in.Cy = m.K[0], m.K[4], m.K[2], m.K[5]
		for _, d := range m.D {
			if d != 0 {
				return in, fmt.Errorf("the lens is distorted (%v) and there is no P: publish the rectified picture", m.D)
			}
		}
	}
	if in.W <= 0 || in.H <= 0 || in.W > most || in.H > most || !(in.Fx > 0) || !(in.Fy > 0) || in.Cx-in.Cx != 0 || in.Cy-in.Cy != 0 {
		return in, fmt.Errorf("%d x %d pixels with focal lengths %v and %v is no calibration: calibrate the camera", in.W, in.H, in.Fx, in.Fy)
	}
	return in, nil
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
			return fmt.Errorf("no camera_info came on %s: %s", s.c.Infos, s.publishers(0))
		}
	}
}

// publishers says what is known of who publishes.
func (s *Camera) publishers(i int) string {
	if i < len(s.subs) && s.subs[i].Publishers() == 0 {
		return "nobody publishes it here; is the camera's node running, in this domain?"
	}
	return "its publisher says nothing; look at the camera's node, its USB cable and its power"
}

// take is one picture that came.
func (s *Camera) take(m *sensor_msgs.Image, i ros.Info, deep bool) {
	p, err := decode(m, deep)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.why = fmt.Sprintf("%s: %v", map[bool]string{false: s.c.Color, true: s.c.Depth}[deep], err)
		s.wake()
		return
	}
	if deep {
		s.depth = p
	} else {
		s.color = p
	}
	s.join(i.Received)
}

// join makes a frame of what belongs together.
func (s *Camera) join(received time.Time) {
	c, d := s.color, s.depth
	if c == nil || s.c.Depth != "" && d == nil || !s.known {
		return
	}
	if d != nil {
		if apart := time.Duration(c.stamp - d.stamp); apart > pairTime || apart < -pairTime {
			return // the older one waits for its partner in vain, and is replaced by the next
		}
	}
	in := s.info.Intrinsics
	if c.w != in.W || c.h != in.H || d != nil && (d.w != in.W || d.h != in.H) {
		s.why = fmt.Sprintf("%s has %d x %d pixels, its camera_info speaks of %d x %d; depth must be aligned to colour", s.c.Color, c.w, c.h, in.W, in.H)
		s.wake()
		return
	}
	now := s.c.Clock.Now()
	if received.After(now) || received.IsZero() {
		received = now
	}
	s.seq++
	f := &sensor.Frame{Info: &s.info, Seq: s.seq, Received: received, Stamp: received, RGB: c.rgb}
	if d != nil {
		f.Depth = d.depth
	}
	if sum := c.sum; sum != s.lastSum || s.same.IsZero() {
		s.lastSum, s.same = sum, now
	}
	s.frame, s.color, s.depth, s.why = f, nil, nil, ""
	s.wake()
}

func (s *Camera) wake() {
	close(s.fresh)
	s.fresh = make(chan struct{})
}

// Info describes the camera.
func (s *Camera) Info() *sensor.Info { return &s.info }

// Frame waits for a picture that arrived at or after t; a zero t takes the newest. A stream that is silent for Stall, or
// sends what cannot be read, is an error with the topic and what to look at.
func (s *Camera) Frame(ctx context.Context, t time.Time) (*sensor.Frame, error) {
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
			return nil, fmt.Errorf("camera %s: %s", s.c.Name, why)
		case f != nil && !f.Stamp.Before(t) && now.Sub(f.Received) < s.c.Stall:
			return f, nil
		}
		since := began
		if f != nil && f.Received.After(since) {
			since = f.Received
		}
		left := s.c.Stall - now.Sub(since)
		if left <= 0 {
			return nil, fmt.Errorf("camera %s: no picture came on %s for %v: %s", s.c.Name, s.c.Color, s.c.Stall, s.publishers(1))
		}
		select {
		case <-fresh:
		case <-s.c.Clock.After(left):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Facts say how the stream is; none keeps the robot from moving, since every scene says how old it is.
func (s *Camera) Facts() []robot.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := robot.Fact{Name: "camera " + s.c.Name}
	now := s.c.Clock.Now()
	switch {
	case s.why != "":
		f.Value = s.why
	case s.frame == nil:
		f.Value = "no picture yet"
	default:
		f.Value = fmt.Sprintf("%d x %d, newest %v old", s.info.Intrinsics.W, s.info.Intrinsics.H, now.Sub(s.frame.Received).Round(time.Millisecond))
		if frozen := now.Sub(s.same); frozen > 10*time.Second {
			f.Value += fmt.Sprintf(", not one pixel changed for %v", frozen.Round(time.Second))
		}
	}
	return []robot.Fact{f}
}

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
