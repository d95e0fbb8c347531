package stage_test

import (
	"math"
	"testing"
	"testing/synctest"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
)

// Vectors of the contract, section 8, through the methods that the tools call.

func TestWristVectors(t *testing.T) {
	for _, c := range []struct {
		name                string
		roll, up, left      float64
		p, approach, opning r3.Vec
	}{
		{"roll 30", 30, 0, 0, r3.Vec{X: .6, Z: .8}, r3.Vec{X: 1}, r3.Vec{Y: .866025, Z: -.5}},
		{"up 30", 0, 30, 0, r3.Vec{X: .569497, Z: .91384}, r3.Vec{X: .866025, Z: .5}, r3.Vec{Y: 1}},
		{"left 30", 0, 0, 30, r3.Vec{X: .569497, Y: .11384, Z: .8}, r3.Vec{X: .866025, Y: .5}, r3.Vec{X: -.5, Y: .866025}},
		{"all", 30, 20, 10, r3.Vec{X: .583019, Y: .072583, Z: .846646}, r3.Vec{X: .925417, Y: .318796, Z: .204874}, r3.Vec{X: -.163176, Y: .823173, Z: -.543838}},
	} {
		s, _ := room(t)
		ok(t, s.RotateWrist(geom.Rad(c.roll), geom.Rad(c.up), geom.Rad(c.left)))
		g := s.Snapshot().Target.Pose
		vec(t, c.name+" position", g.P, c.p)
		vec(t, c.name+" approach", g.X(), c.approach)
		vec(t, c.name+" opening", g.Y(), c.opning)
	}
	one := func(order ...[3]float64) geom.Pose {
		s, _ := room(t)
		for _, a := range order {
			ok(t, s.RotateWrist(geom.Rad(a[0]), geom.Rad(a[1]), geom.Rad(a[2])))
		}
		return s.Snapshot().Target.Pose
	}
	three, all := one([3]float64{30}, [3]float64{0, 20}, [3]float64{0, 0, 10}), one([3]float64{30, 20, 10})
	vec(t, "three calls", three.P, all.P)
	if a := three.Angle(all); a > 1e-9 {
		t.Errorf("three calls differ from one by %v rad", a)
	}
	other := one([3]float64{0, 20}, [3]float64{30}, [3]float64{0, 0, 10})
	vec(t, "order up, roll, left", other.P, r3.Vec{X: .58978, Y: .034239, Z: .858112})
}

// The pitch axis of Stretch: -30 degrees of physical pitch is tilt_up 30.
func TestStretchPitchVector(t *testing.T) {
	w := newWorld(geom.At(.59858, -.08742, .75022))
	s := newStage(w, stage.Face2D)
	ok(t, s.RotateWrist(0, geom.Rad(30), 0))
	g := s.Snapshot().Target.Pose
	if d := r3.Norm(r3.Sub(g.P, r3.Vec{X: .568077, Y: -.08742, Z: .86406})); d > 1e-5 {
		t.Errorf("tilt_up 30 lands at %v, %v m off", g.P, d)
	}
}

func TestGizmoVectors(t *testing.T) {
	for _, c := range []struct {
		axis              string
		approach, opening r3.Vec
	}{
		{"x", r3.Vec{Y: .5, Z: -.866025}, r3.Vec{Y: .866025, Z: .5}},
		{"y", r3.Vec{X: -.5, Z: -.866025}, r3.Vec{Y: 1}},
		{"z", r3.Vec{Z: -1}, r3.Vec{X: -.5, Y: .866025}},
	} {
		s, _ := tabletop(t)
		ok(t, s.RotateGizmo(c.axis, geom.Rad(30)))
		g := s.Snapshot().Target.Pose
		vec(t, c.axis+" position", g.P, down.P)
		vec(t, c.axis+" approach", g.X(), c.approach)
		vec(t, c.axis+" opening", g.Y(), c.opening)
	}
	// A tilted gripper spins about its own axes: the third axis after x+30 is still robot X.
	s, _ := tabletop(t)
	ok(t, s.RotateGizmo("x", geom.Rad(30)))
	ok(t, s.RotateGizmo("z", geom.Rad(90)))
	g := s.Snapshot().Target.Pose
	vec(t, "twist keeps approach", g.X(), r3.Vec{Y: .5, Z: -.866025})
	vec(t, "twisted opening", g.Y(), r3.Vec{X: -1})
}

func TestDragVectors(t *testing.T) {
	for c, want := range map[string]r3.Vec{
		"free": {X: -.015, Y: .06, Z: .025981}, "x": {X: -.015}, "y": {Y: .06}, "z": {Z: .025981},
	} {
		s, _ := tabletop(t)
		d, err := s.Drag(100, -50, c)
		ok(t, err)
		vec(t, "drag "+c, d, want)
		vec(t, "target", s.Snapshot().Target.Pose.P, r3.Add(down.P, want))
	}
	s, _ := tabletop(t)
	unchanged(t, s, func() {
		_, err := s.Drag(100, 0, "w")
		refusal(t, err, "unknown constraint")
		_, err = s.Drag(0, 0, "free")
		refusal(t, err, "")
		_, err = s.Drag(math.NaN(), 0, "free")
		refusal(t, err, "")
	})
}

// A drag is measured in the view that was shown, not in one turned since.
func TestDragUsesShownView(t *testing.T) {
	s, _ := tabletop(t)
	s.Show()
	_, err := s.OrbitBy(geom.Rad(45), 0)
	ok(t, err)
	d, err := s.Drag(100, 0, "free")
	ok(t, err)
	vec(t, "drag in the shown view", d, r3.Vec{Y: .06})
	s.Show()
	d, err = s.Drag(100, 0, "free")
	ok(t, err)
	vec(t, "drag in the new view", d, r3.Vec{X: -.06 * math.Sqrt2 / 2, Y: .06 * math.Sqrt2 / 2})
}

func TestAdvanceAndTeleport(t *testing.T) {
	s, _ := tabletop(t)
	d, err := s.Advance(12)
	ok(t, err)
	vec(t, "advance 12 top-down", d, r3.Vec{Z: -.072})
	d, err = s.Advance(-12)
	ok(t, err)
	vec(t, "retreat 12", d, r3.Vec{Z: .072})
	ok(t, s.TeleportTo(r3.Vec{X: .5, Y: .1, Z: .05}))
	if s.Snapshot().Teleported {
		t.Error("the flag is the 2D face's")
	}
	g := s.Snapshot().Target
	vec(t, "teleport top-down", g.Pose.P, r3.Vec{X: .5, Y: .1, Z: .12})
	vec(t, "approach kept", g.Pose.X(), r3.Vec{Z: -1})
	if !g.Open {
		t.Error("teleport closed the jaw")
	}

	m, _ := room(t)
	ok(t, m.TeleportTo(r3.Vec{X: 1, Y: .2, Z: .7}))
	sn := m.Snapshot()
	vec(t, "teleport level", sn.Target.Pose.P, r3.Vec{X: .93, Y: .2, Z: .7})
	if sn.Mode != stage.ModePose || !sn.Teleported {
		t.Errorf("mode %v teleported %v", sn.Mode, sn.Teleported)
	}
	vec(t, "offset_m", sn.Offset(r3.Vec{X: 1, Y: .2, Z: .7}), r3.Vec{X: .4, Y: .2, Z: -.1})
}

func TestNavVectors(t *testing.T) {
	rot := func(s *stage.Stage, deg float64) { t.Helper(); ok(t, s.NavRotate(geom.Rad(deg))) }
	mv := func(s *stage.Stage, x, y float64) { t.Helper(); ok(t, s.NavTranslate(x, y)) }
	is := func(s *stage.Stage, x, y, deg, tol float64) {
		t.Helper()
		d := s.Snapshot().BaseDelta
		if math.Abs(d.X-x) > tol || math.Abs(d.Y-y) > tol || math.Abs(geom.Deg(d.Yaw)-deg) > tol {
			t.Errorf("delta %v, want %v %v %v deg", d, x, y, deg)
		}
	}
	s, _ := room(t)
	rot(s, 90)
	mv(s, .3, 0)
	is(s, 0, .3, 90, 1e-9)
	rot(s, -45)
	mv(s, 0, .1)
	is(s, -.0707, .3707, 45, 5e-5)

	w := newWorld(geom.At(.6, -.1, .8))
	s = newStage(w, stage.Face2D)
	mv(s, .3, 0)
	rot(s, 30)
	mv(s, .1, .1)
	is(s, .336603, .136603, 30, 1e-6)
	if n := s.Snapshot().BaseDelta.Norm(); math.Abs(n-.363265) > 1e-6 {
		t.Errorf("norm %v", n)
	}
	vec(t, "target rides on the base", s.Snapshot().Target.Pose.P, r3.Vec{X: .906218, Y: .35, Z: .8})
}

// The same edits seen from a base that stands elsewhere give the same numbers on the robot axes.
func TestNavVectorsOnAnyBase(t *testing.T) {
	base := geom.SE2{X: 3, Y: -2, Yaw: geom.Rad(130)}
	w := newWorld(geom.At(.6, -.1, .8))
	w.st.Base = base
	s := newStage(w, stage.Face2D)
	ok(t, s.NavTranslate(.3, 0))
	ok(t, s.NavRotate(geom.Rad(30)))
	ok(t, s.NavTranslate(.1, .1))
	sn := s.Snapshot()
	vec(t, "target on the robot axes", sn.OnAxes(sn.Target.Pose).P, r3.Vec{X: .906218, Y: .35, Z: .8})
	_, err := s.ResetTarget()
	ok(t, err)
	ok(t, s.TranslateRobot(r3.Vec{X: .1, Y: .2, Z: -.1}))
	sn = s.Snapshot()
	vec(t, "translated on the robot axes", sn.OnAxes(sn.Target.Pose).P, r3.Vec{X: .7, Y: .1, Z: .7})
	vec(t, "offset on the robot axes", sn.Offset(sn.Target.Pose.P), r3.Vec{X: .1, Y: .2, Z: -.1})
}

func TestOrderedVector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := room(t)
		w.drift = geom.SE2{X: .1, Y: -.05, Yaw: geom.Rad(10)}
		ok(t, s.TranslateRobot(r3.Vec{X: .3, Y: .1, Z: -.1}))
		s.Show()
		rep, err := s.Execute(t.Context(), w.scene.At, 1)
		ok(t, err)
		g := rep.OnAxes(rep.Ordered.Pose)
		vec(t, "ordered", g.P, r3.Vec{X: .813893, Y: .008803, Z: .7})
		vec(t, "ordered approach", g.X(), r3.Vec{X: .984808, Y: -.173648})
		vec(t, "realized", rep.OnAxes(rep.Realized.Pose).P, g.P)
	})
}

func TestCameraVectors(t *testing.T) {
	s, _ := tabletop(t)
	clamped, err := s.OrbitBy(0, geom.Rad(30))
	ok(t, err)
	if clamped {
		t.Error("60 degrees reported as clamped")
	}
	clamped, err = s.OrbitBy(0, geom.Rad(45))
	ok(t, err)
	if e := geom.Deg(s.Snapshot().Orbit.Elevation); !clamped || math.Abs(e-85) > 1e-9 {
		t.Errorf("elevation %v clamped %v, want 85 and true", e, clamped)
	}
	for range 3 {
		_, err = s.OrbitBy(geom.Rad(-45), 0)
		ok(t, err)
	}
	if a := geom.Deg(s.Snapshot().Orbit.Azimuth); math.Abs(a-315) > 1e-9 {
		t.Errorf("azimuth %v, want 315", a)
	}
	ok(t, s.CameraReset())
	if s.Snapshot().Orbit != home {
		t.Error("camera_reset is not the initial view")
	}
	_, err = s.OrbitBy(geom.Rad(90), 0)
	refusal(t, err, "d_azimuth out of range")
	_, err = s.OrbitBy(geom.Rad(45), 0)
	ok(t, err)
	ok(t, s.PanBy(.1, -.2))
	o := s.Snapshot().Orbit
	vec(t, "panned target", o.Target, r3.Vec{X: .45 - .1*math.Sqrt2/2, Y: .1 * math.Sqrt2 / 2, Z: -.1})
	if o.Distance != home.Distance || o.Elevation != home.Elevation {
		t.Error("pan turned the view")
	}
	refusal(t, s.PanBy(.2001, 0), "d_right out of range")
	refusal(t, s.PanBy(0, math.Inf(1)), "d_up out of range")
	ok(t, s.PanBy(0, 0))
}

func TestZoomKeepsPointUnderCursor(t *testing.T) {
	s, _ := tabletop(t)
	o := s.Snapshot().Orbit
	for _, c := range []struct {
		u, v  float64
		steps int
		dist  float64
		clamp bool
	}{{.2, .7, 5, .85, false}, {.9, .1, -12, 1.21, false}, {.4, .4, 50, .1, true}, {0, 1, -50, 1.6, false}, {1, 0, -50, 3, true}, {.5, .5, -1, 3, true}} {
		under := o.Unproject(c.u, c.v, .9*o.Distance+2)
		clamped, err := s.ZoomBy(c.u, c.v, c.steps)
		ok(t, err)
		n := s.Snapshot().Orbit
		if clamped != c.clamp || math.Abs(n.Distance-c.dist) > 1e-9 || n.Azimuth != o.Azimuth || n.Elevation != o.Elevation {
			t.Errorf("zoom %d: distance %v clamped %v, want %v %v", c.steps, n.Distance, clamped, c.dist, c.clamp)
		}
		u, v, _, in := n.Project(under)
		if !in || math.Abs(u-c.u) > 1e-9 || math.Abs(v-c.v) > 1e-9 {
			t.Errorf("zoom %d at (%v,%v) moved the point there to (%v,%v)", c.steps, c.u, c.v, u, v)
		}
		o = n
	}
	unchanged(t, s, func() {
		for _, c := range []struct {
			u, v  float64
			steps int
		}{{.5, .5, 0}, {.5, .5, 51}, {1.01, .5, 1}, {.5, math.NaN(), 1}} {
			_, err := s.ZoomBy(c.u, c.v, c.steps)
			refusal(t, err, "")
		}
	})
}
