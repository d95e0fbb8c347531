package wire

import (
	"bytes"
	"context"
	"image/jpeg"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/urdf"
	"viad/ros"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/tf"
)

// The frames of links and cameras, by the closed form of the robot's description at the joints of the twin.
func TestStretchFrames(t *testing.T) {
	text, err := urdf.Source("stretch4_pg4")
	must(t, err)
	r := onTheWireAs(t, GenerationA, StretchFaults{}, string(text))
	eyes, err := NewSensors(r.twin, r.face.node, 100*time.Millisecond, StretchStreams())
	must(t, err)
	defer func() { must(t, eyes.Close()) }()
	b := tf.New(tf.Options{})
	l, err := b.Listen(r.node, func(err error) { t.Error(err) })
	must(t, err)
	defer func() { must(t, l.Close()) }()
	r.do("arm_joint", 0.2)
	r.do("lift_joint", 0.6)
	r.pass(500 * time.Millisecond)
	from := r.twin.Clock().Now()
	at, err := b.Wait(r.ctx, "base_link", "tool", from)
	must(t, err)
	q := r.twin.Truth().Q
	want := r3.Vec{X: 0.1709 + q[1] + 0.04222 + 0.0186 + 0.16686, Y: -0.08742, Z: 0.15022 + q[0]} // the wrist is straight
	if d := r3.Norm(r3.Sub(at.Translation, want)); d > 0.005 || at.Static {
		t.Errorf("the tool is at %v, %.4f m from %v", at.Translation, d, want)
	}
	at, err = b.Lookup("wrist_roll_link", "gripper_left_camera_color_optical_frame", time.Time{})
	must(t, err)
	if !at.Static || r3.Norm(r3.Sub(at.Translation, r3.Vec{X: 0.0192, Y: 0.01, Z: 0.057})) > 1e-9 {
		t.Errorf("the wrist's camera is at %+v", at)
	}
}

// Live pictures differ though nothing moves, frozen ones do not; the compressed one is the same picture.
func TestPicturesOnTheWire(t *testing.T) {
	r := onTheWire(t, GenerationA, StretchFaults{})
	eyes, err := NewSensors(r.twin, r.face.node, 100*time.Millisecond, StretchStreams()[:1])
	must(t, err)
	defer func() { must(t, eyes.Close()) }()
	var mu sync.Mutex
	var raw []*sensor_msgs.Image
	var packed *sensor_msgs.CompressedImage
	_, err = ros.Subscribe(r.node, "/cameras_head/center/image_raw", ros.SensorData(), func(m *sensor_msgs.Image, _ ros.Info) {
		mu.Lock()
		defer mu.Unlock()
		raw = append(raw, m)
	})
	must(t, err)
	_, err = ros.Subscribe(r.node, "/cameras_head/center/image_raw/compressed", ros.SensorData(), func(m *sensor_msgs.CompressedImage, _ ros.Info) {
		mu.Lock()
		defer mu.Unlock()
		packed = m
	})
	must(t, err)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	go func() { done <- eyes.Run(ctx) }()
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(raw) }
	r.until("pictures", func() bool { mu.Lock(); defer mu.Unlock(); return len(raw) > 3 && packed != nil })
	mu.Lock()
	a, b := raw[2], raw[3]
	if bytes.Equal(a.Data, b.Data) {
		t.Error("two live pictures are the same to the bit")
	}
	off := 0
	for i := range a.Data {
		off = max(off, int(a.Data[i])-int(b.Data[i]), int(b.Data[i])-int(a.Data[i]))
	}
	if off > 2 {
		t.Errorf("what stands still differs by %d", off)
	}
	img, err := jpeg.Decode(bytes.NewReader(packed.Data))
	must(t, err)
	w, h := int(a.Width), int(a.Height)
	if s := img.Bounds().Size(); s.X != w || s.Y != h {
		t.Fatalf("%v is not %d x %d", s, w, h)
	}
	sum := [3]float64{}
	for y := range h {
		for x := range w {
			red, green, blue, _ := img.At(x, y).RGBA()
			p := a.Data[3*(y*w+x):]
			for k, v := range [3]uint32{blue, green, red} { // bgr8
				sum[k] += float64(v>>8) - float64(p[k])
			}
		}
	}
	for k, v := range sum {
		if v /= float64(w * h); v > 2 || v < -2 {
			t.Errorf("colour %d of the compressed picture is off by %v on average", k, v)
		}
	}
	mu.Unlock()
	eyes.Freeze(true)
	n := count()
	r.until("frozen pictures", func() bool { return count() > n+3 })
	mu.Lock()
	if k := len(raw); !bytes.Equal(raw[k-1].Data, raw[k-2].Data) || raw[k-1].Header.Stamp == raw[k-2].Header.Stamp {
		t.Error("frozen pictures differ, or their stamps do not")
	}
	mu.Unlock()
	cancel()
	must(t, <-done)
}
