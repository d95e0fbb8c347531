package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"sync/atomic"
	"time"

	"viad/drivers/sensor"
	"viad/ros"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/sim"
)

// Stream is a camera of the twin on its topics. Empty topics are not published. Colour is also on Color/compressed, as JPEG,
// while somebody listens there.
type Stream struct {
	Source             string // the twin's name of it
	Color, Depth, Info string
	Frame              string // frame_id
	Meters             bool   // depth as 32FC1 in metres; otherwise 16UC1 in millimetres
	BGR                bool   // colour as bgr8; otherwise rgb8
	Points             string // a lidar's cloud, alone
}

// StretchStreams are Stretch 4's names of its head's middle camera, its gripper's camera and its two lidars.
func StretchStreams() []Stream {
	return []Stream{
		{Source: "head", Color: "/cameras_head/center/image_raw", Info: "/cameras_head/center/camera_info", Frame: "camera_center_optical_link", BGR: true},
		{Source: "wrist", Color: "/cameras_gripper/left/image_raw", Depth: "/cameras_gripper/left/depth/depth", Info: "/cameras_gripper/left/camera_info", Frame: "gripper_left_camera_color_optical_frame", BGR: true},
		{Source: "lidar_left", Points: "/lidar_points_left", Frame: "lidar_left_link"},
		{Source: "lidar_right", Points: "/lidar_points_right", Frame: "lidar_right_link"},
	}
}

// FrankaStreams are the usual names of two RGB-D cameras beside and on an arm.
func FrankaStreams() []Stream {
	return []Stream{
		{Source: "third_person", Color: "/camera/color/image_raw", Depth: "/camera/aligned_depth_to_color/image_raw", Info: "/camera/color/camera_info", Frame: "camera_color_optical_frame"},
		{Source: "wrist", Color: "/gripper_camera/color/image_raw", Depth: "/gripper_camera/aligned_depth_to_color/image_raw", Info: "/gripper_camera/color/camera_info", Frame: "gripper_camera_color_optical_frame"},
	}
}

// Sensors publishes a twin's cameras.
type Sensors struct {
	twin    *sim.Twin
	period  time.Duration
	streams []stream
	frames  ros.Closer
	frozen  atomic.Bool
	stalled atomic.Bool
}

type stream struct {
	Stream
	src                sensor.Source
	color, depth, info ros.Outlet
	packed, points     ros.Outlet
	last               *sensor.Frame
	grains             uint32 // pictures whose colour got grain
	pixels             []byte // of the last picture, as it goes out
}

// NewSensors advertises the streams, and their frames on /tf_static; every period one picture of each goes out while Run
// runs.
func NewSensors(twin *sim.Twin, node ros.Node, period time.Duration, streams []Stream) (*Sensors, error) {
	s := &Sensors{twin: twin, period: period}
	for _, d := range streams {
		st := stream{Stream: d}
		for _, src := range twin.Sources() {
			if src.Info().Name == d.Source {
				st.src = src
			}
		}
		if st.src == nil {
			return nil, errors.Join(fmt.Errorf("wire: the twin has no camera %s", d.Source), s.Close())
		}
		s.streams = append(s.streams, st)
		if err := s.streams[len(s.streams)-1].advertise(node); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	var err error
	if s.frames, err = publishStatic(node, s.cameraFrames()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *stream) advertise(node ros.Node) error {
	if s.Points != "" {
		p, err := ros.Advertise[sensor_msgs.PointCloud2](node, s.Points, ros.Default())
		s.points = p.Outlet
		return err
	}
	for _, t := range []struct {
		name string
		to   *ros.Outlet
	}{{s.Color, &s.color}, {s.Depth, &s.depth}} {
		if t.name == "" {
			continue
		}
		p, err := ros.Advertise[sensor_msgs.Image](node, t.name, ros.Default())
		if err != nil {
			return err
		}
		*t.to = p.Outlet
	}
	if s.Color != "" {
		c, err := ros.Advertise[sensor_msgs.CompressedImage](node, s.Color+"/compressed", ros.Default())
		if err != nil {
			return err
		}
		s.packed = c.Outlet
	}
	p, err := ros.Advertise[sensor_msgs.CameraInfo](node, s.Info, ros.Default())
	s.info = p.Outlet
	return err
}

// Freeze makes every stream repeat its last picture with new stamps; Stall makes them cease.
func (s *Sensors) Freeze(on bool) { s.frozen.Store(on) }

// Stall makes every stream cease, while its topics stay.
func (s *Sensors) Stall(on bool) { s.stalled.Store(on) }

// Close ends the topics.
func (s *Sensors) Close() error {
	var errs []error
	if s.frames != nil {
		errs = append(errs, s.frames.Close())
	}
	for _, st := range s.streams {
		for _, o := range []ros.Outlet{st.color, st.depth, st.info, st.packed, st.points} {
			if o != nil {
				errs = append(errs, o.Close())
			}
		}
	}
	return errors.Join(errs...)
}

// Run publishes until ctx ends.
func (s *Sensors) Run(ctx context.Context) error {
	t := s.twin.Clock().Ticker(s.period)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C():
		}
		if s.stalled.Load() {
			continue
		}
		for i := range s.streams {
			if err := s.streams[i].publish(ctx, s.twin.Clock().Now(), s.frozen.Load()); err != nil {
				if ctx.Err() != nil || errors.Is(err, sim.ErrOver) {
					return nil
				}
				return fmt.Errorf("wire: %s: %w", s.streams[i].Source, err)
			}
		}
	}
}

func (s *stream) publish(ctx context.Context, now time.Time, frozen bool) error {
	if !frozen || s.last == nil {
		f, err := s.src.Frame(ctx, time.Time{})
		if err != nil {
			return err
		}
		s.last = f
		now = f.Stamp
		s.expose(f.RGB)
	}
	f, head := s.last, stamp(now)
	head.FrameId = s.Frame
	if s.points != nil {
		return s.points.Publish(ctx, cloud(head, f.Points))
	}
	in := f.Info.Intrinsics
	w, h := uint32(in.W), uint32(in.H)
	info := &sensor_msgs.CameraInfo{
		Header: head, Width: w, Height: h, DistortionModel: "plumb_bob", D: make([]float64, 5),
		K: [9]float64{in.Fx, 0, in.Cx, 0, in.Fy, in.Cy, 0, 0, 1}, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1},
		P: [12]float64{in.Fx, 0, in.Cx, 0, 0, in.Fy, in.Cy, 0, 0, 0, 1, 0},
	}
	errs := []error{s.info.Publish(ctx, info)}
	if s.color != nil {
		errs = append(errs, s.color.Publish(ctx, &sensor_msgs.Image{Header: head, Width: w, Height: h, Encoding: map[bool]string{false: "rgb8", true: "bgr8"}[s.BGR], Step: 3 * w, Data: s.pixels}))
	}
	if s.packed != nil && s.packed.Subscribers() > 0 {
		errs = append(errs, s.pack(ctx, head, in.W, in.H))
	}
	if s.depth != nil && f.Depth != nil {
		errs = append(errs, s.depth.Publish(ctx, s.deep(f, head)))
	}
	return errors.Join(errs...)
}

func (s *stream) deep(f *sensor.Frame, head std_msgs.Header) *sensor_msgs.Image {
	w, h := uint32(f.Info.Intrinsics.W), uint32(f.Info.Intrinsics.H)
	if s.Meters {
		m := &sensor_msgs.Image{Header: head, Width: w, Height: h, Encoding: "32FC1", Step: 4 * w, Data: make([]byte, 0, 4*len(f.Depth))}
		for _, d := range f.Depth {
			v := math.Float32bits(d)
			if d == 0 {
				v = math.Float32bits(float32(math.NaN()))
			}
			m.Data = append(m.Data, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		}
		return m
	}
	m := &sensor_msgs.Image{Header: head, Width: w, Height: h, Encoding: "16UC1", Step: 2 * w, Data: make([]byte, 0, 2*len(f.Depth))}
	for _, d := range f.Depth {
		v := uint16(math.Min(65535, math.Round(1000*float64(d))))
		m.Data = append(m.Data, byte(v), byte(v>>8))
	}
	return m
}

// grain is one in how many bytes of colour a sensor's noise turns.
const grain = 127

// expose is a rendered picture as a sensor's: in its order of colours, and with noise in the lowest bit, by which live
// pictures of what stands still differ.
func (s *stream) expose(rgb []byte) {
	out := make([]byte, len(rgb))
	copy(out, rgb)
	for i := 0; s.BGR && i+2 < len(rgb); i += 3 {
		out[i], out[i+2] = rgb[i+2], rgb[i]
	}
	s.grains++
	for i := int(s.grains*2654435761>>16) % grain; i < len(out); i += grain {
		out[i] ^= 1
	}
	s.pixels = out
}

// pack publishes the picture as JPEG.
func (s *stream) pack(ctx context.Context, head std_msgs.Header, w, h int) error {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for i, o := 0, 0; i+2 < len(s.pixels); i, o = i+3, o+4 {
		r, b := s.pixels[i], s.pixels[i+2]
		if s.BGR {
			r, b = b, r
		}
		img.Pix[o], img.Pix[o+1], img.Pix[o+2], img.Pix[o+3] = r, s.pixels[i+1], b, 0xff
	}
	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, img, &jpeg.Options{Quality: 90}); err != nil {
		return err
	}
	return s.packed.Publish(ctx, &sensor_msgs.CompressedImage{Header: head, Format: "rgb8; jpeg compressed bgr8", Data: buf.Bytes()})
}

// cloud is points as the lidars' driver sends them: x, y, z and an intensity, 16 bytes a point.
func cloud(head std_msgs.Header, points []float32) *sensor_msgs.PointCloud2 {
	const size = 16
	n := len(points) / 3
	m := &sensor_msgs.PointCloud2{Header: head, Height: 1, Width: uint32(n), PointStep: size, RowStep: uint32(size * n), IsDense: true, Data: make([]byte, 0, size*n)}
	for i, name := range []string{"x", "y", "z", "intensity"} {
		m.Fields = append(m.Fields, sensor_msgs.PointField{Name: name, Offset: uint32(4 * i), Datatype: sensor_msgs.PointField_FLOAT32, Count: 1})
	}
	for i := range n {
		for k := range 3 {
			m.Data = binary.LittleEndian.AppendUint32(m.Data, math.Float32bits(points[3*i+k]))
		}
		m.Data = binary.LittleEndian.AppendUint32(m.Data, 0)
	}
	return m
}
