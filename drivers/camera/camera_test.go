package camera

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestColours(t *testing.T) {
	for _, c := range []struct {
		encoding string
		step     int
		data     []byte
	}{
		{"rgb8", 6, []byte{1, 2, 3, 4, 5, 6}},
		{"bgr8", 8, []byte{3, 2, 1, 6, 5, 4, 99, 99}},
		{"rgba8", 8, []byte{1, 2, 3, 0, 4, 5, 6, 0}},
		{"bgra8", 8, []byte{3, 2, 1, 0, 6, 5, 4, 0}},
	} {
		p, err := decode(&sensor_msgs.Image{Width: 2, Height: 1, Encoding: c.encoding, Step: uint32(c.step), Data: c.data}, false)
		if err != nil || !slices.Equal(p.rgb, []byte{1, 2, 3, 4, 5, 6}) {
			t.Errorf("%s: %v, %v", c.encoding, p, err)
		}
	}
	p, err := decode(&sensor_msgs.Image{Width: 1, Height: 2, Encoding: "mono8", Step: 3, Data: []byte{7, 0, 0, 9}}, false)
	if err != nil || !slices.Equal(p.rgb, []byte{7, 7, 7, 9, 9, 9}) {
		t.Errorf("mono8: %v, %v", p, err)
	}
}

func TestDepths(t *testing.T) {
	nan := math.Float32bits(float32(math.NaN()))
	inf := math.Float32bits(float32(math.Inf(1)))
	metres := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, math.Float32bits(1.25)), nan), inf)
	p, err := decode(&sensor_msgs.Image{Width: 3, Height: 1, Encoding: "32FC1", IsBigendian: 1, Step: 12, Data: metres}, true)
	if err != nil || !slices.Equal(p.depth, []float32{1.25, 0, 0}) {
		t.Errorf("%v, %v", p, err)
	}
	p, err = decode(&sensor_msgs.Image{Width: 2, Height: 1, Encoding: "16UC1", Step: 4, Data: []byte{0xd0, 0x07, 0, 0}}, true)
	if err != nil || !slices.Equal(p.depth, []float32{2, 0}) {
		t.Errorf("%v, %v", p, err)
	}
}

func TestBadPictures(t *testing.T) {
	for words, m := range map[string]*sensor_msgs.Image{
		"encoded as":   {Width: 1, Height: 1, Encoding: "yuv422", Step: 2, Data: []byte{1, 2}},
		"do not hold":  {Width: 2, Height: 2, Encoding: "rgb8", Step: 6, Data: make([]byte, 11)},
		"with rows of": {Width: 4, Height: 1, Encoding: "rgb8", Step: 3, Data: make([]byte, 12)},
		"sides of":     {Width: 1 << 31, Height: 1 << 31, Encoding: "rgb8", Step: 1 << 31},
	} {
		if _, err := decode(m, false); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

func TestIntrinsics(t *testing.T) {
	m := &sensor_msgs.CameraInfo{Width: 640, Height: 480, D: []float64{0.1, 0, 0, 0, 0}, K: [9]float64{500, 0, 320, 0, 501, 240, 0, 0, 1}}
	if _, err := intrinsicsOf(m); err == nil || !strings.Contains(err.Error(), "rectified") {
		t.Errorf("a distorted lens without P: %v", err)
	}
	m.P = [12]float64{480, 0, 319, 0, 0, 481, 239, 0, 0, 0, 1, 0}
	if in, err := intrinsicsOf(m); err != nil || in.Fx != 480 || in.Fy != 481 || in.Cx != 319 || in.Cy != 239 || in.W != 640 {
		t.Errorf("%+v, %v", in, err)
	}
	if _, err := intrinsicsOf(&sensor_msgs.CameraInfo{Width: 640, Height: 480}); err == nil {
		t.Error("no calibration was taken for one")
	}
}

// A colour and a depth picture of one exposure make a frame, of two make none; a stream that ceases is an error.
func TestStream(t *testing.T) {
	domain, release, err := interop.Domain()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	open := func(name string) *dds.Node {
		n, err := dds.Open(dds.Config{Node: name, Domain: domain, Localhost: true, Distro: cdr.Jazzy})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		return n
	}
	there, here := open("cameras"), open("viad")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	color, err1 := ros.Advertise[sensor_msgs.Image](there, "/c", ros.Default())
	depth, err2 := ros.Advertise[sensor_msgs.Image](there, "/d", ros.Default())
	info, err3 := ros.Advertise[sensor_msgs.CameraInfo](there, "/i", ros.Latched())
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	if err := info.Send(ctx, &sensor_msgs.CameraInfo{Width: 2, Height: 1, K: [9]float64{5, 0, 1, 0, 5, 0.5, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(short(ctx, t), Config{Node: here, Name: "x", Color: "/c", Infos: "/nobody"}); err == nil || !strings.Contains(err.Error(), "nobody publishes") {
		t.Errorf("without intrinsics: %v", err)
	}
	live := make(chan struct{})
	go func() { // intrinsics come again and again, as from a real camera
		for {
			select {
			case <-live:
				return
			case <-time.After(50 * time.Millisecond):
				_ = info.Send(ctx, &sensor_msgs.CameraInfo{Width: 2, Height: 1, K: [9]float64{5, 0, 1, 0, 5, 0.5, 0, 0, 1}})
			}
		}
	}()
	defer close(live)
	cam, err := Open(ctx, Config{Node: here, Name: "wrist", Color: "/c", Depth: "/d", Infos: "/i", Stall: 500 * time.Millisecond, Start: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer cam.Close()
	if err := color.Ready(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := depth.Ready(ctx, 1); err != nil {
		t.Fatal(err)
	}
	at := func(sec int32) std_msgs.Header { return std_msgs.Header{Stamp: builtin_interfaces.Time{Sec: sec}} }
	send := func(c, d int32) {
		_ = color.Send(ctx, &sensor_msgs.Image{Header: at(c), Width: 2, Height: 1, Encoding: "bgr8", Step: 6, Data: []byte{3, 2, 1, 6, 5, 4}})
		_ = depth.Send(ctx, &sensor_msgs.Image{Header: at(d), Width: 2, Height: 1, Encoding: "16UC1", Step: 4, Data: []byte{0xe8, 3, 0, 0}})
	}
	send(1, 2) // of two exposures
	if f, err := cam.Frame(ctx, time.Time{}); err == nil || !strings.Contains(err.Error(), "no picture came on /c") {
		t.Errorf("pictures of two exposures made a frame: %v, %v", f, err)
	}
	send(3, 3)
	f, err := cam.Frame(ctx, time.Time{})
	if err != nil || !slices.Equal(f.RGB, []byte{1, 2, 3, 4, 5, 6}) || !slices.Equal(f.Depth, []float32{1, 0}) {
		t.Fatalf("%+v, %v", f, err)
	}
	if _, err := cam.Frame(ctx, f.Stamp.Add(time.Nanosecond)); err == nil {
		t.Error("the last picture was given for a new one")
	}
}

func short(ctx context.Context, t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	t.Cleanup(cancel)
	return ctx
}

func FuzzImage(f *testing.F) {
	f.Add(uint32(2), uint32(1), uint32(6), "rgb8", byte(0), []byte{1, 2, 3, 4, 5, 6}, false)
	f.Add(uint32(1<<31), uint32(1<<31), uint32(1<<31), "32FC1", byte(1), []byte{1}, true)
	f.Add(uint32(0), uint32(1), uint32(0), "16UC1", byte(0), []byte(nil), true)
	f.Fuzz(func(t *testing.T, w, h, step uint32, encoding string, big byte, data []byte, deep bool) {
		p, err := decode(&sensor_msgs.Image{Width: w, Height: h, Step: step, Encoding: encoding, IsBigendian: big, Data: data}, deep)
		if err == nil && len(p.rgb)/3+len(p.depth) != int(w)*int(h) {
			t.Errorf("%d pixels of %d x %d", len(p.rgb)/3+len(p.depth), w, h)
		}
	})
}
