package stage_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/perception"
	"viad/safety"
)

var deg = geom.Rad

// The caps of the contract, section 8, and that a value no number can be compared with fails.
func TestCaps(t *testing.T) {
	s, _ := tabletop(t)
	_, err := s.Translate(r3.Vec{X: .1, Y: -.1, Z: .1})
	ok(t, err)
	unchanged(t, s, func() {
		for _, v := range []r3.Vec{{X: .1001}, {Y: -.1001}, {X: .05, Z: .2}, {Z: math.NaN()}, {X: math.Inf(-1)}, {}} {
			_, err := s.Translate(v)
			refusal(t, err, "")
		}
		for _, n := range []int{0, 51, -51} {
			_, err := s.Advance(n)
			refusal(t, err, "steps out of range")
		}
		for _, a := range []float64{deg(90.01), deg(-90.01), math.NaN(), 0} {
			refusal(t, s.RotateGizmo("z", a), "")
		}
		refusal(t, s.RotateGizmo("w", .1), "unknown axis")
		_, err := s.Toggle("ajar")
		refusal(t, err, "unknown state")
		refusal(t, s.TeleportTo(r3.Vec{X: math.NaN()}), "scene point not finite")
	})
	ok(t, s.RotateGizmo("z", deg(90)))

	m, _ := room(t)
	ok(t, m.TranslateWrist(r3.Vec{X: .2}))
	ok(t, m.TranslateRobot(r3.Vec{Z: -.5}))
	ok(t, m.RotateWrist(deg(45), deg(-45), deg(45)))
	unchanged(t, m, func() {
		refusal(t, m.TranslateWrist(r3.Vec{Y: .2001}), "dy_m out of range")
		refusal(t, m.TranslateRobot(r3.Vec{Y: .5001}), "dy_m out of range")
		refusal(t, m.RotateWrist(0, deg(45.01), 0), "tilt_up_deg out of range")
		refusal(t, m.RotateWrist(math.NaN(), 0, 0), "roll_deg out of range")
		refusal(t, m.RotateWrist(0, 0, 0), "an edit needs a change")
		refusal(t, m.TranslateWrist(r3.Vec{}), "an edit needs a change")
		refusal(t, m.TranslateRobot(r3.Vec{}), "an edit needs a change")
	})
}

func TestNavCaps(t *testing.T) {
	s, _ := room(t)
	refusal(t, s.NavTranslate(.5, .5), "staged base displacement")
	refusal(t, s.NavTranslate(0, 0), "an edit needs a change")
	refusal(t, s.NavRotate(0), "an edit needs a change")
	refusal(t, s.NavRotate(deg(90.01)), "angle_deg out of range")
	if s.Snapshot().Mode != stage.ModeNone {
		t.Fatal("a refused edit set the mode")
	}
	ok(t, s.NavTranslate(.3, 0))
	unchanged(t, s, func() { refusal(t, s.NavTranslate(.3, 0), "staged base displacement") })
	ok(t, s.NavTranslate(.2, 0))

	s, _ = room(t)
	ok(t, s.NavRotate(deg(60)))
	unchanged(t, s, func() { refusal(t, s.NavRotate(deg(40)), "staged base turn") })
	ok(t, s.NavRotate(deg(-60)))
	ok(t, s.NavRotate(deg(90)))

	// Net displacement, not the length of the way: trial and error uses up no budget.
	s, _ = room(t)
	for _, d := range []float64{.4, -.4, .4} {
		ok(t, s.NavTranslate(d, 0))
	}
}

func TestTravelCap(t *testing.T) {
	s, w := room(t)
	for _, d := range []float64{.5, -.5, .5, .5, .5} {
		ok(t, s.TranslateRobot(r3.Vec{Y: d}))
	}
	unchanged(t, s, func() {
		refusal(t, s.TranslateRobot(r3.Vec{Y: .01}), "staged distance from the real gripper")
		refusal(t, s.TeleportTo(r3.Vec{X: 2.2, Y: 0, Z: .8}), "staged distance from the real gripper")
		refusal(t, s.RotateWrist(0, 0, deg(45)), "staged distance from the real gripper") // the arc leads outward
	})
	ok(t, s.TeleportTo(r3.Vec{X: 2.16, Y: 0, Z: .8}))
	// Measured from where the gripper is now, not from where it was when staging began.
	w.set(func(st *robot.State) { st.Q[0] -= .1 })
	refusal(t, s.TranslateWrist(r3.Vec{Z: .001}), "staged distance from the real gripper")

	w = newWorld(down)
	f := newStage(w, stage.Face3D, func(o *stage.Options) { o.Caps = stage.DefaultCaps(); o.Caps.Travel3D = .15 })
	_, err := f.Translate(r3.Vec{Z: .1})
	ok(t, err)
	_, err = f.Translate(r3.Vec{Z: .1})
	refusal(t, err, "staged distance from the real gripper")
	_, err = newStage(newWorld(down), stage.Face3D).Drag(1280, 0, "free")
	ok(t, err)
}

func TestToggle(t *testing.T) {
	s, _ := tabletop(t)
	for _, c := range []struct {
		ask           string
		changed, open bool
	}{{"open", false, true}, {"toggle", true, false}, {"closed", false, false}, {"open", true, true}, {"closed", true, false}} {
		changed, err := s.Toggle(c.ask)
		ok(t, err)
		if sn := s.Snapshot(); changed != c.changed || sn.Target.Open != c.open || sn.Mode != stage.ModeNone {
			t.Errorf("toggle %s: changed %v open %v, want %v %v", c.ask, changed, sn.Target.Open, c.changed, c.open)
		}
	}
	_, err := s.Translate(r3.Vec{Z: .05})
	ok(t, err)
	sn := s.Snapshot()
	if k := sn.Check.Plan.Waypoint.Kind; k != robot.KindPoseJaw {
		t.Errorf("kind %v, want pose then jaw", k)
	}
	if len(sn.Check.Notes) != 1 || !strings.Contains(sn.Check.Notes[0], "pose first, then jaw") {
		t.Errorf("notes %q", sn.Check.Notes)
	}
}

// act is one call of the 2D face, and what the table of section 2 says of it in each mode.
type act struct {
	name string
	do   func(*stage.Stage) error
	then map[stage.Mode]stage.Mode // absent: refused
}

func acts() []act {
	pose := map[stage.Mode]stage.Mode{stage.ModeNone: stage.ModePose, stage.ModePose: stage.ModePose}
	nav := map[stage.Mode]stage.Mode{stage.ModeNone: stage.ModeNav, stage.ModeNav: stage.ModeNav}
	grip := map[stage.Mode]stage.Mode{stage.ModeNone: stage.ModeGripper, stage.ModeGripper: stage.ModeGripper}
	all := map[stage.Mode]stage.Mode{stage.ModeNone: stage.ModeNone, stage.ModePose: stage.ModeNone, stage.ModeNav: stage.ModeNone, stage.ModeGripper: stage.ModeNone}
	return []act{
		{"teleport", func(s *stage.Stage) error { return s.TeleportTo(r3.Vec{X: .9, Z: .7}) }, pose},
		{"robot translate", func(s *stage.Stage) error { return s.TranslateRobot(r3.Vec{Y: .1}) }, pose},
		{"wrist translate", func(s *stage.Stage) error { return s.TranslateWrist(r3.Vec{X: .1}) }, pose},
		{"wrist rotate", func(s *stage.Stage) error { return s.RotateWrist(.1, 0, 0) }, pose},
		{"nav translate", func(s *stage.Stage) error { return s.NavTranslate(.1, 0) }, nav},
		{"nav rotate", func(s *stage.Stage) error { return s.NavRotate(.1) }, nav},
		{"flip jaw", func(s *stage.Stage) error { return s.SetJaw(!s.Snapshot().Target.Open) }, grip},
		{"same jaw", func(s *stage.Stage) error { return s.SetJaw(s.Snapshot().Target.Open) }, nil},
		{"reset", func(s *stage.Stage) error { _, err := s.ResetTarget(); return err }, all},
		{"3D translate", func(s *stage.Stage) error { _, err := s.Translate(r3.Vec{X: .1}); return err }, nil},
		{"3D toggle", func(s *stage.Stage) error { _, err := s.Toggle("toggle"); return err }, nil},
		{"3D reset", func(s *stage.Stage) error { return s.ResetToReal() }, nil},
		{"3D camera", func(s *stage.Stage) error { return s.CameraReset() }, nil},
	}
}

func TestModeTable(t *testing.T) {
	into := map[stage.Mode]func(*stage.Stage) error{
		stage.ModeNone:    func(*stage.Stage) error { return nil },
		stage.ModePose:    func(s *stage.Stage) error { return s.TeleportTo(r3.Vec{X: .9, Z: .8}) },
		stage.ModeNav:     func(s *stage.Stage) error { return s.NavRotate(.2) },
		stage.ModeGripper: func(s *stage.Stage) error { return s.SetJaw(false) },
	}
	for mode, enter := range into {
		for _, a := range acts() {
			t.Run(mode.String()+"/"+a.name, func(t *testing.T) {
				s, _ := room(t)
				ok(t, enter(s))
				want, allowed := a.then[mode]
				if !allowed {
					unchanged(t, s, func() { refusal(t, a.do(s), "") })
					return
				}
				ok(t, a.do(s))
				sn := s.Snapshot()
				if sn.Mode != want {
					t.Errorf("mode %v, want %v", sn.Mode, want)
				}
				if tele := want == stage.ModePose && (mode == stage.ModePose || a.name == "teleport"); sn.Teleported != tele {
					t.Errorf("teleported %v, want %v", sn.Teleported, tele)
				}
			})
		}
		t.Run(mode.String()+"/execute", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, w := room(t)
				ok(t, enter(s))
				s.Show()
				if mode == stage.ModeNone {
					unchanged(t, s, func() {
						_, err := s.Execute(t.Context(), w.scene.At, 1)
						refusal(t, err, stage.RuleNothingStaged)
					})
					return
				}
				rep, err := s.Execute(t.Context(), w.scene.At, 1)
				ok(t, err)
				sn := s.Snapshot()
				if rep.Mode != mode || sn.Mode != stage.ModeNone || sn.Teleported || sn.Target != sn.Real || sn.Check.Staged || sn.BaseDelta != (geom.SE2{}) {
					t.Errorf("after execute of %v: %+v", rep.Mode, sn)
				}
			})
		})
	}
}

func TestResetSaysWhetherStaged(t *testing.T) {
	s, _ := room(t)
	was, err := s.ResetTarget()
	if ok(t, err); was {
		t.Error("nothing was staged")
	}
	ok(t, s.SetJaw(false))
	ok(t, s.SetJaw(true)) // cancels out, and the mode stays
	if m := s.Snapshot().Mode; m != stage.ModeGripper {
		t.Errorf("mode %v after edits that cancel out", m)
	}
	was, err = s.ResetTarget()
	if ok(t, err); !was {
		t.Error("a gripper waypoint was staged")
	}
}

// Whatever was edited, a reset shows what a fresh stage shows.
func TestResetEqualsFresh(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		s, w := room(t)
		fresh := newStage(w, stage.Face2D).Snapshot()
		all := acts()
		for range 12 {
			_ = all[rng.IntN(len(all))].do(s) // refusals are part of the walk
		}
		_, err := s.ResetTarget()
		ok(t, err)
		if d := cmp.Diff(fresh, s.Snapshot(), sameScene, notNow); d != "" {
			t.Fatalf("reset differs from fresh:\n%s", d)
		}
	}
	s, w := tabletop(t)
	fresh := newStage(w, stage.Face3D).Snapshot()
	for i := range 20 {
		_, err := s.Advance(1 + i)
		ok(t, err)
		ok(t, s.RotateGizmo([]string{"x", "y", "z"}[i%3], deg(20)))
		_, err = s.Toggle("toggle")
		ok(t, err)
	}
	ok(t, s.ResetToReal())
	if d := cmp.Diff(fresh, s.Snapshot(), sameScene, notNow); d != "" {
		t.Fatalf("reset differs from fresh:\n%s", d)
	}
}

// A nudged base leaves a pose target where it is in the scene and takes a base motion along.
func TestNudgedBase(t *testing.T) {
	s, w := room(t)
	ok(t, s.TranslateRobot(r3.Vec{X: .3}))
	want := s.Snapshot().Target.Pose
	nudge := func() { w.set(func(st *robot.State) { st.Base = geom.SE2{X: .2, Y: .1, Yaw: .3} }) }
	nudge()
	if got := s.Snapshot().Target.Pose; got != want {
		t.Errorf("pose target moved with the base: %v, was %v", got, want)
	}
	s, w = room(t)
	ok(t, s.NavTranslate(.3, 0))
	before := s.Snapshot()
	nudge()
	after := s.Snapshot()
	if after.BaseDelta != before.BaseDelta {
		t.Error("the staged base delta changed")
	}
	vec(t, "nav target relative to the base", after.OnAxes(after.Target.Pose).P, before.OnAxes(before.Target.Pose).P)
}

func TestChecksInWords(t *testing.T) {
	s, w := room(t)
	ok(t, s.NavTranslate(.3, 0))
	if c := s.Snapshot().Check; c.Reach != "Reachable: the base alone moves, and the arm stays as it is on it." {
		t.Errorf("a base motion says of the arm: %q", c.Reach)
	}
	_, err := s.ResetTarget()
	ok(t, err)
	ok(t, s.SetJaw(false))
	if c := s.Snapshot().Check; c.Reach != "Reachable: the jaw alone moves." {
		t.Errorf("a jaw says of the arm: %q", c.Reach)
	}
	_, err = s.ResetTarget()
	ok(t, err)
	ok(t, s.TranslateRobot(r3.Vec{X: .4}))
	c := s.Snapshot().Check
	if !c.Staged || !c.Reachable || !c.Clear || c.Refused != nil || c.Plan == nil || c.Duration.Seconds() != 2 {
		t.Errorf("check %+v", c)
	}
	if want := "Reachable; x_joint comes nearest to its limit, 3.000 m away."; c.Reach != want {
		t.Errorf("reach %q, want %q", c.Reach, want)
	}
	w.check = func(robot.Plan, *perception.Scene) ([]safety.Warning, perception.Hit, *safety.Refused) {
		return []safety.Warning{{Text: "fingers touch", At: r3.Vec{X: .6}}}, perception.Hit{Found: true, Dist: .0523, Point: r3.Vec{X: .7, Y: .1, Z: .2}}, nil
	}
	ok(t, s.TranslateRobot(r3.Vec{X: .01}))
	c = s.Snapshot().Check
	if want := "The way is clear by 0.052 m, fingers and what they hold aside; the nearest thing seen is at x 0.700 y 0.100 z 0.200."; c.Way != want {
		t.Errorf("way %q, want %q", c.Way, want)
	}
	if d := cmp.Diff([]string{"fingers touch"}, c.Notes); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]r3.Vec{{X: .6}}, c.Touch); d != "" {
		t.Error(d)
	}
	// What is in the way is said on the robot axes, which turn with the base.
	w.check = func(robot.Plan, *perception.Scene) ([]safety.Warning, perception.Hit, *safety.Refused) {
		return nil, perception.Hit{Found: true, Dist: .003, Point: r3.Vec{X: .0003, Y: 1, Z: .5}}, &safety.Refused{Rule: "clearance", Value: "hand 0.003 m", Limit: "0.01 m", Next: "x"}
	}
	w.set(func(st *robot.State) { st.Base.Yaw = math.Pi / 2 })
	ok(t, s.TranslateRobot(r3.Vec{X: .01}))
	c = s.Snapshot().Check
	if want := "The way is not clear: clearance: got hand 0.003 m, limit 0.01 m; the nearest thing seen is at x 1.000 y 0.000 z 0.500."; c.Way != want {
		t.Errorf("way %q, want %q", c.Way, want)
	}
	if c.Clear || !c.HasHit || c.Hit != (r3.Vec{X: .0003, Y: 1, Z: .5}) || c.Refused == nil || c.Refused.Rule != "clearance" {
		t.Errorf("check %+v", c)
	}
}

// Planning errors warn; they never refuse an edit.
func TestUnreachableIsStaged(t *testing.T) {
	s, w := tabletop(t)
	ok(t, s.TeleportTo(r3.Vec{X: 3.2, Z: .3}))
	c := s.Snapshot().Check
	if c.Reachable || c.Near == nil || c.Plan != nil || c.Clear || c.Refused == nil || c.Refused.Rule != stage.RuleUnreachable {
		t.Errorf("check %+v", c)
	}
	if want := "Not reachable: x_joint would have to go 0.200 m past its limit."; c.Reach != want {
		t.Errorf("reach %q, want %q", c.Reach, want)
	}
	w.planErr = &robot.Unreachable{Joint: "yaw_joint", By: .1, Unit: "rad"}
	_, err := s.Advance(1)
	ok(t, err)
	if c = s.Snapshot().Check; !strings.Contains(c.Reach, "yaw_joint would have to go 5.7 deg past its limit") {
		t.Errorf("reach %q", c.Reach)
	}
	w.planErr = errNoSeed
	_, err = s.Advance(1)
	ok(t, err)
	if c = s.Snapshot().Check; !strings.Contains(c.Reach, errNoSeed.Error()) {
		t.Errorf("reach %q", c.Reach)
	}
	w.planErr, w.scene = nil, nil
	_, err = s.Translate(r3.Vec{X: -.1})
	ok(t, err)
	ok(t, s.TeleportTo(r3.Vec{X: .5}))
	if c = s.Snapshot().Check; !c.Reachable || c.Clear || c.Refused.Rule != stage.RuleNoScene {
		t.Errorf("check without a scene %+v", c)
	}
}

// Without a complete state nothing can be staged, and nothing is taken for zero.
func TestMissingState(t *testing.T) {
	for name, lose := range map[string]func(*robot.State){
		"joints": func(st *robot.State) { st.Q = nil },
		"nan":    func(st *robot.State) { st.Q[2] = math.NaN() },
		"base":   func(st *robot.State) { st.HasBase = false },
		"jaw":    func(st *robot.State) { st.Jaw.Known = false },
	} {
		s, w := room(t)
		w.set(lose)
		refusal(t, s.TranslateRobot(r3.Vec{X: .1}), stage.RuleNoState)
		if sn := s.Show(); sn.HasReal || sn.Mode != stage.ModeNone {
			t.Errorf("%s missing: %+v", name, sn)
		}
	}
}
