package mj

import (
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// A 1 kg ball over a floor, a coloured box, and a pendulum with a motor.
const scene = `<mujoco><option timestep="0.002"/><size nconmax="50" njmax="200"/>
<visual><map znear="0.02" zfar="20"/><global offwidth="320" offheight="240"/></visual><statistic extent="1" center="0 0 0"/>
<asset><texture type="skybox" builtin="gradient" rgb1="0.6 0.7 0.8" rgb2="0.1 0.1 0.15" width="32" height="32"/></asset>
<worldbody><light pos="0 0 3"/><geom name="floor" type="plane" size="2 2 .1" rgba=".5 .5 .5 1"/>
<camera name="cam" pos="0 -1.5 0.6" xyaxes="1 0 0 0 0.3 1" fovy="50"/>
<geom name="box" type="box" size=".1 .1 .1" pos=".4 .2 .1" rgba="0 0 1 1"/>
<body name="ball" pos="0 0 0.5"><freejoint/><geom name="ball" type="sphere" size="0.1" mass="1" rgba="1 0 0 1"/></body>
<body name="arm" pos="-.5 0 1"><joint name="hinge" axis="0 1 0" damping="0.1"/><geom name="rod" type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass="0.5"/><site name="tip" pos="0 0 -.3"/></body>
</worldbody><actuator><motor name="motor" joint="hinge"/></actuator></mujoco>`

func load(t testing.TB, xml string) (*Model, *Data) {
	t.Helper()
	m, err := Load(xml)
	if err != nil {
		t.Fatal(err)
	}
	d, err := m.NewData()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(); m.Close() })
	return m, d
}

// noLitter fails the test if a file appears in the working directory.
func noLitter(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Cleanup(func() {
		if got, err := os.ReadDir("."); err != nil || len(got) != 0 {
			t.Errorf("working directory holds %v (%v), want nothing", got, err)
		}
	})
}

func TestFreeFallIsNewton(t *testing.T) {
	m, d := load(t, scene)
	if err := d.Step(100); err != nil {
		t.Fatal(err)
	}
	// Semi-implicit Euler falls g dt² n(n+1)/2.
	want := 0.5 - 9.81*0.002*0.002*100*101/2
	if got := d.Qpos()[m.JointInfo(0).Qpos+2]; math.Abs(got-want) > 1e-9 {
		t.Errorf("ball at %v after 0.2 s, want %v", got, want)
	}
	if math.Abs(d.Time()-0.2) > 1e-12 {
		t.Errorf("time %v", d.Time())
	}
}

func TestErrorsComeBackAsGoErrors(t *testing.T) {
	noLitter(t)
	_, d := load(t, scene)
	before := append([]float64(nil), d.Qpos()...)
	if err := d.ProbeRaise("told you"); err == nil || !strings.Contains(err.Error(), "told you") {
		t.Errorf("raised error came back as %v", err)
	}
	for range 1000 { // the stack mark must be put back or this would run out
		if err := d.ProbeOverflow(); err == nil || !strings.Contains(err.Error(), "tack overflow") {
			t.Fatalf("stack overflow came back as %v", err)
		}
	}
	for _, bad := range []string{"", "<mujoco", "<mujoco><nonsense/></mujoco>", `<mujoco><worldbody><body><joint/></body></worldbody></mujoco>`, `<mujoco><asset><mesh file="/nowhere.stl"/></asset></mujoco>`} {
		if m, err := Load(bad); err == nil {
			m.Close()
			t.Errorf("model %q loaded", bad)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("error of more than one line: %q", err)
		}
	}
	for i, q := range d.Qpos() {
		if q != before[i] {
			t.Errorf("qpos[%d] changed from %v to %v", i, before[i], q)
		}
	}
	if err := d.Step(10); err != nil {
		t.Errorf("stepping after errors: %v", err)
	}
}

func TestNaNIsAnErrorAndKeepsTheState(t *testing.T) {
	noLitter(t)
	m, d := load(t, scene)
	poke := map[string]func(){
		"ctrl": func() { d.Ctrl()[0] = math.NaN() },
		"qacc": func() { d.Applied()[0] = math.NaN() },
		"qpos": func() { d.Qpos()[0] = math.Inf(1) },
		"qvel": func() { d.Qvel()[3] = math.NaN() },
	}
	if err := d.Step(20); err != nil {
		t.Fatal(err)
	}
	good, err := m.NewData()
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	if err := d.CopyTo(good); err != nil {
		t.Fatal(err)
	}
	for what, f := range poke {
		for _, half := range []bool{false, true} {
			f()
			err := d.Step(5)
			if half {
				f()
				if err = d.Step1(); err == nil {
					err = d.Step2()
				}
			}
			var bad *BadStateError
			if !errors.As(err, &bad) || bad.What != what {
				t.Errorf("NaN in %s came back as %v", what, err)
			}
			if d.Time() != good.Time() {
				t.Errorf("NaN in %s moved time from %v to %v: a silent reset", what, good.Time(), d.Time())
			}
			if err := good.CopyTo(d); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.Step(10); err != nil {
		t.Errorf("stepping on after recovery: %v", err)
	}
}

func TestErrorsOnManyThreadsDoNotMix(t *testing.T) {
	noLitter(t)
	m, _ := load(t, scene)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			d, err := m.NewData()
			if err != nil {
				t.Error(err)
				return
			}
			defer d.Close()
			text := strings.Repeat(string(rune('a'+g)), 20)
			for range 2000 {
				if err := d.ProbeRaise(text); err == nil || !strings.HasSuffix(err.Error(), text) {
					t.Errorf("thread %d got %v", g, err)
					return
				}
				if err := d.Step(1); err != nil {
					t.Errorf("thread %d: %v", g, err)
					return
				}
			}
		})
	}
	for range 20 {
		if m, err := Load("<mujoco><broken/></mujoco>"); err == nil {
			m.Close()
			t.Error("a broken model loaded")
		}
	}
	wg.Wait()
}

func TestCopyReplaysBitwise(t *testing.T) {
	m, a := load(t, scene)
	b, err := m.NewData()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := errors.Join(a.Step(300), a.CopyTo(b), a.Step(300), b.Step(300)); err != nil {
		t.Fatal(err)
	}
	for i, q := range a.Qpos() {
		if q != b.Qpos()[i] {
			t.Errorf("qpos[%d]: %v and %v", i, q, b.Qpos()[i])
		}
	}
}

func TestRaysSeeTheFloor(t *testing.T) {
	m, d := load(t, scene)
	if err := d.Forward(); err != nil {
		t.Fatal(err)
	}
	dist, geom := make([]float64, 3), make([]int32, 3)
	dirs := []float64{0, 0, -1, 0, 0, 1, 0.6, 0, -0.8}
	all := [6]bool{true, true, true, true, true, true}
	if err := d.Rays([3]float64{0, -1, 2}, dirs, all, NoBody, dist, geom); err != nil {
		t.Fatal(err)
	}
	floor := int32(m.ID(Geom, "floor"))
	if math.Abs(dist[0]-2) > 1e-9 || geom[0] != floor || dist[1] != -1 || math.Abs(dist[2]-2.5) > 1e-9 {
		t.Errorf("distances %v of geoms %v", dist, geom)
	}
}

func TestDepthAgreesWithRays(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	gl, err := OpenGL()
	if err != nil {
		t.Skip(err)
	}
	defer gl.Close()
	m, d := load(t, scene)
	if err := d.Forward(); err != nil {
		t.Fatal(err)
	}
	r, err := gl.NewRenderer(m)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const w, h = 320, 240
	rgb, depth := make([]byte, 3*w*h), make([]float32, w*h)
	if err := r.Draw(d, Shot{Camera: 0, W: w, H: h, RGB: rgb, Depth: depth, Shadows: true}); err != nil {
		t.Fatal(err)
	}
	bad, n := 0, 0
	f := 0.5 * h / math.Tan(50*math.Pi/360)
	for y := 4; y < h; y += 9 {
		for x := 4; x < w; x += 9 {
			// Camera axes in the world: x = (1,0,0), y = (0,.3,1)/|.|, z = x cross y.
			cx, cy := (float64(x)-(w-1)/2.)/f, -(float64(y)-(h-1)/2.)/f
			k := 1 / math.Hypot(0.3, 1)
			dir := []float64{cx, cy*0.3*k + k, cy*k - 0.3*k}
			l := math.Sqrt(dir[0]*dir[0] + dir[1]*dir[1] + dir[2]*dir[2])
			for i := range dir {
				dir[i] /= l
			}
			dist, geom := make([]float64, 1), make([]int32, 1)
			if err := d.Rays([3]float64{0, -1.5, 0.6}, dir, [6]bool{true, true, true}, NoBody, dist, geom); err != nil {
				t.Fatal(err)
			}
			want := 0.0
			if dist[0] > 0 {
				want = dist[0] / l
			}
			n++
			if math.Abs(float64(depth[y*w+x])-want) > 0.002*math.Max(1, want) {
				bad++
			}
		}
	}
	if bad > n/50 { // pixels on an edge may see either side
		t.Errorf("%d of %d depths disagree with rays", bad, n)
	}
	if err := r.Draw(d, Shot{Camera: 0, W: 4000, H: h, RGB: make([]byte, 3*4000*h)}); err == nil {
		t.Error("a picture larger than the buffer was drawn")
	}
}

func TestRenderOnTheWrongThreadIsAnError(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	gl, err := OpenGL()
	if err != nil {
		t.Skip(err)
	}
	defer gl.Close()
	m, d := load(t, scene)
	r, err := gl.NewRenderer(m)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done := make(chan error)
	go func() {
		done <- r.Draw(d, Shot{Camera: 0, W: 32, H: 32, RGB: make([]byte, 3*32*32)})
	}()
	if err := <-done; err == nil {
		t.Error("drawing on another thread gave a picture, which could only be black")
	}
}
