package launch

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/drivers/urdf"
	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/sim"
	simwire "viad/sim/wire"
)

// seen is a twin of a Stretch whose cameras and frames are on the wire, and a node that sees them.
type seen struct {
	cfg  *Config
	twin *sim.Twin
	eyes *simwire.Sensors
	ours ros.Node
}

func seesStretch(t *testing.T) *seen {
	t.Helper()
	domain, release, err := interop.Domain()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	s := new(seen)
	if s.cfg, err = Read("stretch4.yaml"); err != nil {
		t.Fatal(err)
	}
	if s.twin, err = sim.NewTwin(sim.Options{Robot: "stretch4", World: "room", Seed: 1, Pace: sim.PaceReal, Light: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.twin.Close)
	open := func(name string) *dds.Node {
		n, err := dds.Open(dds.Config{Node: name, Domain: domain, Localhost: true, Distro: cdr.Jazzy})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		return n
	}
	there := open("stretch_driver")
	text, err := urdf.Source("stretch4_pg4")
	if err != nil {
		t.Fatal(err)
	}
	face, err := simwire.NewStretch(s.twin, there, simwire.GenerationA, string(text), simwire.StretchFaults{})
	if err != nil {
		t.Fatal(err)
	}
	if s.eyes, err = simwire.NewSensors(s.twin, there, 200*time.Millisecond, simwire.StretchStreams()); err != nil {
		t.Fatal(err)
	}
	s.ours = open("viad")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	for _, run := range []func(context.Context) error{s.twin.Run, face.Run, s.eyes.Run} {
		go func() { ended <- run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range 3 {
			<-ended
		}
		_, _ = s.eyes.Close(), face.Close()
	})
	return s
}

func (s *seen) open(ctx context.Context, t *testing.T) ([]eye, error) {
	t.Helper()
	eyes, err := s.cfg.openEyes(ctx, s.ours, slog.New(slog.DiscardHandler))
	for _, e := range eyes {
		t.Cleanup(func() { _ = e.Close() })
	}
	return eyes, err
}

// Cameras and lidars are where the robot's frames say, which is where the twin has them.
func TestCamerasByFrame(t *testing.T) {
	s := seesStretch(t)
	frames := map[string]string{}
	for _, st := range simwire.StretchStreams() {
		frames[st.Source] = st.Frame
	}
	for i := range s.cfg.Cameras {
		m := &s.cfg.Cameras[i]
		m.Position, m.Turn, m.Frame = nil, nil, frames[m.Name]
	}
	if err := s.cfg.checkCameras(); err != nil {
		t.Fatal(err)
	}
	eyes, err := s.open(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	truth := map[string]sensor.Mount{}
	for _, src := range s.twin.Sources() {
		truth[src.Info().Name] = src.Info().Mount
	}
	for _, e := range eyes {
		got, want := e.Info().Mount, truth[e.Info().Name]
		if got.Link != want.Link || r3.Norm(r3.Sub(got.Pose.P, want.Pose.P)) > 1e-6 || got.Pose.Angle(want.Pose) > 1e-6 {
			t.Errorf("%s is at %+v, not at %+v", e.Info().Name, got, want)
		}
	}
	s.cfg.Cameras[1].Link = "lift_link" // the arm and the wrist move between the two
	if _, err = s.open(t.Context(), t); err == nil || !strings.Contains(err.Error(), "moves in lift_link") || !strings.Contains(err.Error(), `"wrist_roll_link"`) {
		t.Errorf("%v", err)
	}
	s.cfg.Cameras[1].Frame = "no_such_frame"
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err = s.open(ctx, t); err == nil || !strings.Contains(err.Error(), "no_such_frame") || !strings.Contains(err.Error(), "state publisher") {
		t.Errorf("%v", err)
	}
}

// Row 40 and 41 through the launch file: a camera whose pictures are frozen, and streams that stall, are no scene, and
// viactl doctor's facts say so. Compressed colour is as good as raw.
func TestStreamsThatStop(t *testing.T) {
	s := seesStretch(t)
	s.cfg.Cameras[0].Color += "/compressed"
	eyes, err := s.open(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range eyes {
		f, err := e.Frame(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if in := f.Info.Intrinsics; f.Points == nil && len(f.RGB) != 3*in.W*in.H {
			t.Errorf("%s has %d bytes of colour for %d x %d", f.Info.Name, len(f.RGB), in.W, in.H)
		}
	}
	facts := func() string {
		r := &rig{}
		for _, e := range eyes {
			r.sources = append(r.sources, e)
		}
		var b strings.Builder
		for _, x := range r.examined() {
			for _, f := range x.Facts() {
				b.WriteString(f.Name + ": " + f.Value + "\n")
			}
		}
		return b.String()
	}
	says := func(words ...string) {
		t.Helper()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(20 * time.Second); ; {
			said, all := facts(), true
			for _, w := range words {
				all = all && strings.Contains(said, w)
			}
			if all {
				return
			}
			if now := <-tick.C; now.After(end) {
				t.Fatalf("%q is not said:\n%s", words, said)
			}
		}
	}
	says("camera head: ", "camera wrist: ", "lidar_left: ", "points, newest")
	<-robot.WallClock{}.After(freezeTime + 500*time.Millisecond) // nothing moves, and that alone is no fault
	for _, e := range eyes {
		if _, err := e.Frame(t.Context(), time.Time{}); err != nil {
			t.Errorf("a still life is taken for a fault: %v", err)
		}
	}
	s.eyes.Freeze(true)
	says("camera head: pictures come on", "camera wrist: pictures come on", "not one pixel has changed")
	if _, err := eyes[1].Frame(t.Context(), time.Time{}); err == nil || !strings.Contains(err.Error(), "start the camera's node again") {
		t.Errorf("a frozen picture is given out: %v", err)
	}
	s.eyes.Freeze(false)
	says("camera head: 960 x 720, newest", "camera wrist: 640 x 400, newest")
	s.eyes.Stall(true)
	says("no picture on /cameras_head/center/image_raw/compressed", "no picture on /cameras_gripper/left/image_raw", "no points on /lidar_points_left", "no points on /lidar_points_right")
	s.eyes.Stall(false)
	says("lidar_right: ", "newest")
}

func TestCameraKeys(t *testing.T) {
	lens := func(f func(*Camera)) func(*Config) {
		return func(c *Config) { f(&c.Cameras[1]) }
	}
	for name, c := range map[string]struct {
		change func(*Config)
		words  string
	}{
		"two places":       {lens(func(m *Camera) { m.Frame = "a" }), "give one of them"},
		"no place":         {lens(func(m *Camera) { m.Position = nil }), "or frame"},
		"no link":          {lens(func(m *Camera) { m.Position, m.Turn, m.Frame, m.Link = nil, nil, "a", "" }), "must be the link"},
		"packed depth":     {lens(func(m *Camera) { m.Depth += "/compressedDepth" }), "compressed depth"},
		"lidar and camera": {lens(func(m *Camera) { m.Scan = "/scan" }), "needs one of"},
		"noise of a lidar": {func(c *Config) { c.Cameras[2].Noiseless = true }, "neither"},
		"cloud and scan":   {func(c *Config) { c.Cameras[2].Scan = "/scan" }, "needs one of"},
	} {
		cfg, err := Read("stretch4.yaml")
		if err != nil {
			t.Fatal(err)
		}
		c.change(cfg)
		if err := cfg.checkCameras(); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg, err := Read("stretch4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Cameras[2].Points, cfg.Cameras[2].Scan = "", "/scan_filtered"
	if err := cfg.checkCameras(); err != nil {
		t.Error(err)
	}
	if m := cfg.Cameras[2].mount(); math.Abs(m.Pose.P.X-0.1317) > 1e-9 || m.Pose.R.Real != 1 {
		t.Errorf("a lidar's place is turned: %+v", m)
	}
}
