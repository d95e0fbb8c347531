package camera

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"strings"
	"sync"
	"testing"
	"time"

	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
)

// hand is a clock that is moved by hand; whoever waits on it is told to waits.
type hand struct {
	mu    sync.Mutex
	now   time.Time
	alarm map[chan time.Time]time.Time
	waits chan time.Duration
}

func newHand() *hand {
	return &hand{now: time.Unix(1000, 0), alarm: map[chan time.Time]time.Time{}, waits: make(chan time.Duration, 100)}
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) After(d time.Duration) <-chan time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan time.Time, 1)
	h.alarm[c] = h.now.Add(d)
	h.waits <- d
	return c
}

func (h *hand) Ticker(time.Duration) robot.Ticker { panic("no ticker here") }

func (h *hand) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
	for c, at := range h.alarm {
		if !at.After(h.now) {
			c <- h.now
			delete(h.alarm, c)
		}
	}
}

// mute is a node with nothing in its graph.
type mute struct{ ros.Node }

func (mute) Graph(context.Context) (ros.Graph, error) {
	return ros.Graph{}, errors.New("nothing is known")
}

// bare is a camera of 2 x 1 pixels without a wire.
func bare(c Config) (*Camera, *hand) {
	clock := newHand()
	c.Node, c.Clock, c.Name, c.Color, c.Stall, c.Start = mute{}, clock, "wrist", "/c", 2*time.Second, 15*time.Second
	return &Camera{
		c: c, opened: clock.Now(), fresh: make(chan struct{}), known: true,
		info: sensor.Info{Intrinsics: sensor.Intrinsics{W: 2, H: 1, Fx: 5, Fy: 5, Cx: 1}},
	}, clock
}

func (s *Camera) shown(k kind, stamp time.Duration, value byte) {
	p := &picture{w: 2, h: 1, stamp: int64(stamp), sum: uint32(value)}
	if k == depth {
		p.depth = []float32{float32(value), 0}
	} else {
		p.rgb = bytes.Repeat([]byte{value}, 6)
	}
	s.take(p, nil, ros.Info{}, k)
}

// at is the frame that is there; a camera that would wait gives an error.
func (s *Camera) at(t *testing.T, since time.Time) (*sensor.Frame, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return s.Frame(ctx, since)
}

// asked asks for a frame and lets time pass whenever the camera waits; it gives the words and how long was waited.
func asked(t *testing.T, s *Camera, clock *hand, since time.Time) (words string, waited time.Duration) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := s.Frame(t.Context(), since)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err == nil {
				return "", waited
			}
			return err.Error(), waited
		case d := <-clock.waits:
			waited += d
			clock.pass(d)
		}
	}
}

// A best effort topic without data: the error names it and how it is published.
func TestField35SilentTopic(t *testing.T) {
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
	info, err := ros.Advertise[sensor_msgs.CameraInfo](there, "/i", ros.SensorData())
	if err != nil {
		t.Fatal(err)
	}
	s, _ := bare(Config{Infos: "/i"})
	s.c.Node, s.known = here, false
	if err := s.subscribe(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := info.Ready(ctx, 1); err != nil {
		t.Fatal(err)
	}
	soon, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	err = s.intrinsics(soon)
	if err == nil || !strings.Contains(err.Error(), "on /i: its publisher /cameras (best effort") {
		t.Errorf("%v", err)
	}
}

// The camera's computer is a day ahead, then fifty years behind: a frame's time is ours.
func TestField38CameraClock(t *testing.T) {
	s, clock := bare(Config{Depth: "/d"})
	for i, stamp := range []time.Duration{1000*time.Second + 24*time.Hour, 5 * time.Second} {
		clock.pass(time.Second)
		first := clock.Now()
		s.shown(colour, stamp, byte(i))
		clock.pass(30 * time.Millisecond)
		s.shown(depth, stamp+time.Millisecond, byte(i))
		f, err := s.at(t, first)
		if err != nil || !f.Stamp.Equal(first) || !f.Received.Equal(clock.Now()) || f.RGB[0] != byte(i) {
			t.Errorf("%+v, %v", f, err)
		}
	}
}

// The node lives and its pictures stop: 15 s are waited for the first, 2 s for another, and the last is not given again.
func TestField40StalledStream(t *testing.T) {
	s, clock := bare(Config{})
	if words, waited := asked(t, s, clock, time.Time{}); waited != 15*time.Second || !strings.Contains(words, "no picture came on /c for 15s") {
		t.Errorf("at the start: %q after %v", words, waited)
	}
	s.shown(colour, 1, 1)
	if words, _ := asked(t, s, clock, clock.Now()); words != "" {
		t.Errorf("a live picture: %q", words)
	}
	if words, waited := asked(t, s, clock, clock.Now().Add(1)); waited != 2*time.Second || !strings.Contains(words, "no picture came on /c for 2s") {
		t.Errorf("stalled: %q after %v", words, waited)
	}
	if words, _ := asked(t, s, clock, time.Time{}); words == "" {
		t.Error("the last picture was given out as live")
	}
	if f := s.Facts()[0]; !strings.Contains(f.Value, "no picture on /c for 4s") {
		t.Errorf("%+v", f)
	}
	s.shown(colour, 2, 2)
	if words, _ := asked(t, s, clock, time.Time{}); words != "" {
		t.Errorf("the stream came back: %q", words)
	}
}

// New stamps and the same pixels: an error after Freeze, in the depth alone too; one pixel's noise is life.
func TestField41FrozenFrames(t *testing.T) {
	for name, pixel := range map[string]func(k kind, i int) byte{
		"both":  func(kind, int) byte { return 7 },
		"depth": func(k kind, i int) byte { return byte(i * int(1-k)) },
		"color": func(k kind, i int) byte { return byte(i * int(k)) },
		"none":  func(_ kind, i int) byte { return byte(i) },
	} {
		s, clock := bare(Config{Depth: "/d", Freeze: time.Second})
		words := ""
		for i := range 12 {
			clock.pass(100 * time.Millisecond)
			s.shown(colour, time.Duration(i)*time.Second, pixel(colour, i))
			s.shown(depth, time.Duration(i)*time.Second, pixel(depth, i))
			words, _ = asked(t, s, clock, clock.Now())
			if words != "" && i < 11 {
				t.Errorf("%s: after %d pictures: %s", name, i+1, words)
			}
		}
		if frozen := strings.Contains(words, "not one pixel has changed for 1.1s"); frozen != (name != "none") {
			t.Errorf("%s: %q", name, words)
		}
	}
}

// Depth that is computed comes three pictures after its colour, and belongs to it all the same.
func TestLateDepth(t *testing.T) {
	s, clock := bare(Config{Depth: "/d"})
	const period = 33 * time.Millisecond
	for i := range 10 {
		clock.pass(period)
		s.shown(colour, time.Duration(i)*period, byte(i))
		if i < 3 {
			continue
		}
		s.shown(depth, time.Duration(i-3)*period, byte(i-3))
		f, err := s.at(t, time.Time{})
		if err != nil || f.RGB[0] != byte(i-3) || f.Depth[0] != float32(i-3) || clock.Now().Sub(f.Stamp) != 3*period {
			t.Fatalf("%d: %+v, %v", i, f, err)
		}
	}
	for i := range 100 {
		s.shown(colour, time.Duration(1000+i)*time.Second, 0)
	}
	if n := len(s.waiting[colour]); n != patience {
		t.Errorf("%d pictures are kept", n)
	}
}

func TestChangedIntrinsics(t *testing.T) {
	s, clock := bare(Config{})
	m := &sensor_msgs.CameraInfo{Width: 2, Height: 1, K: [9]float64{5, 0, 1, 0, 5, 0, 0, 0, 1}}
	s.learn(m)
	s.shown(colour, 1, 1)
	if words, _ := asked(t, s, clock, time.Time{}); words != "" {
		t.Error(words)
	}
	other := *m
	other.K[0] = 6
	s.learn(&other)
	s.shown(colour, 2, 2)
	if words, _ := asked(t, s, clock, time.Time{}); !strings.Contains(words, "changed its intrinsics") {
		t.Errorf("a frame with intrinsics that are not its own: %q", words)
	}
	other = *m
	other.BinningX = 2
	if _, err := intrinsicsOf(&other); err == nil || !strings.Contains(err.Error(), "binning") {
		t.Errorf("%v", err)
	}
}

func TestCompressed(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 16, 8))
	for i := range 16 * 8 {
		img.Set(i%16, i/16, color.RGBA{200, 100, 50, 255})
	}
	var p, j bytes.Buffer
	if err := errors.Join(png.Encode(&p, img), jpeg.Encode(&j, img, &jpeg.Options{Quality: 95})); err != nil {
		t.Fatal(err)
	}
	for format, data := range map[string][]byte{"png": p.Bytes(), "jpeg": j.Bytes()} {
		m := &sensor_msgs.CompressedImage{Header: std_msgs.Header{Stamp: builtin_interfaces.Time{Sec: 3}}, Format: format, Data: data}
		got, err := unpack(m)
		if err != nil || got.w != 16 || got.h != 8 || got.stamp != 3e9 || len(got.rgb) != 3*16*8 {
			t.Fatalf("%s: %v", format, err)
		}
		for i, want := range []int{200, 100, 50} {
			if d := int(got.rgb[3*70+i]) - want; d < -3 || d > 3 || format == "png" && d != 0 {
				t.Errorf("%s: channel %d is off by %d", format, i, d)
			}
		}
		m.Data = data[:len(data)/2]
		if _, err := unpack(m); err == nil {
			t.Errorf("half a %s was read", format)
		}
	}
}

func FuzzCompressed(f *testing.F) {
	var j bytes.Buffer
	_ = jpeg.Encode(&j, image.NewGray(image.Rect(0, 0, 8, 8)), nil)
	f.Add(j.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && c.Width*c.Height > 1<<20 {
			return // which is legal, and slow
		}
		if p, err := unpack(&sensor_msgs.CompressedImage{Data: data}); err == nil && len(p.rgb) != 3*p.w*p.h {
			t.Errorf("%d bytes of %d x %d", len(p.rgb), p.w, p.h)
		}
	})
}
