package lidar

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/drivers/sensor"
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/ros/msg/sensor_msgs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Rays at 0, 90, 180 and 270 degrees; without an echo, too near, too far by the message's own word.
func TestScan(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	m := &sensor_msgs.LaserScan{AngleIncrement: math.Pi / 2, RangeMin: 0.1, RangeMax: 4, Ranges: []float32{1, 2, 3, 0.5, inf, nan, 0.05, 5}}
	got, err := sweep(m, [2]float64{0.2, 10})
	want := []float64{1, 0, 0, 0, 2, 0, -3, 0, 0, 0, -0.5, 0}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for i := range want {
		if math.Abs(float64(got[i])-want[i]) > 1e-6 {
			t.Errorf("number %d is %v, not %v", i, got[i], want[i])
		}
	}
	m.AngleIncrement = nan
	if _, err := sweep(m, [2]float64{0, 1}); err == nil {
		t.Error("rays that go nowhere")
	}
}

func TestMixedFields(t *testing.T) {
	f := fields(sensor_msgs.PointField_FLOAT32, 0, 4, 8)
	f[0].Datatype = sensor_msgs.PointField_FLOAT64
	m := &sensor_msgs.PointCloud2{Width: 1, Height: 1, PointStep: 16, RowStep: 16, Data: make([]byte, 16), Fields: f}
	if _, err := decode(m, [2]float64{0, 1}); err == nil || !strings.Contains(err.Error(), "one datatype") {
		t.Errorf("%v", err)
	}
}

func TestNoRange(t *testing.T) {
	if _, err := Open(t.Context(), Config{Node: struct{ ros.Node }{}, Name: "l", Points: "/p"}); err == nil || !strings.Contains(err.Error(), "holds no point") {
		t.Errorf("%v", err)
	}
}

// A scan over the wire is a frame; when it ceases, the last one is not given again.
func TestField40StalledLidar(t *testing.T) {
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
	there, here := open("hesai"), open("viad")
	scan, err := ros.Advertise[sensor_msgs.LaserScan](there, "/scan", ros.Default())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l, err := Open(ctx, Config{Node: here, Name: "lidar_left", Scan: "/scan", Range: [2]float64{0.1, 10}, Stall: 300 * time.Millisecond, Mount: sensor.Mount{Link: "head_link"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := scan.Ready(ctx, 1); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	live, over := make(chan struct{}), make(chan struct{})
	go func() { // as from a real lidar: best effort may lose the first ones
		defer close(over)
		for {
			if err := scan.Send(ctx, &sensor_msgs.LaserScan{RangeMax: 5, Ranges: []float32{2}}); err != nil {
				t.Error(err)
			}
			select {
			case <-live:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	f, err := l.Frame(ctx, before)
	close(live)
	<-over
	if err != nil || len(f.Points) != 3 || f.Points[0] != 2 || f.Stamp.Before(before) {
		t.Fatalf("%+v, %v", f, err)
	}
	if f, err := l.Frame(ctx, time.Now().Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "no points came on /scan") {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := l.Frame(ctx, time.Time{}); err == nil {
		t.Errorf("the last points were given out as live: %+v", f)
	}
}
