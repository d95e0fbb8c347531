package sim

import (
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/sim/mj"
)

func TestPickPhysically(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop", Seed: 3})
	cube := tw.Truth().Objects["red_cube"]
	yaw := math.Atan2(cube.X().Y, cube.X().X)
	grasp := down(cube.P, yaw)
	above := grasp
	above.P.Z += 0.15
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(moveTool(t, tw, above, 3*time.Second))
	must(moveTool(t, tw, grasp, 2*time.Second))
	after(t, tw, 300*time.Millisecond)
	if d := tw.Truth().Tool.Dist(grasp); d > 0.001 {
		t.Errorf("tool settles %.2f mm off", 1000*d)
	}
	if a := tw.Truth().Tool.Angle(grasp); a > geom.Rad(0.2) {
		t.Errorf("tool settles %.3f degrees off", geom.Deg(a))
	}
	must(tw.Grip(t.Context(), robot.JawTarget{}))
	s := tw.State()
	if !s.Jaw.Holding || s.Jaw.Open || math.Abs(s.Jaw.Aperture-0.045) > 0.0015 {
		t.Fatalf("jaw on a 45 mm cube: %+v", s.Jaw)
	}
	before := tw.Truth()
	inHand := before.Tool.Inv().Mul(before.Objects["red_cube"])
	above.P.Z += 0.1
	must(moveTool(t, tw, above, 3*time.Second))
	after(t, tw, 500*time.Millisecond)
	now := tw.Truth()
	if got := now.Tool.Inv().Mul(now.Objects["red_cube"]); got.Dist(inHand) > 0.002 || got.Angle(inHand) > 0.02 {
		t.Errorf("the cube slipped %.2f mm and %.3f rad in the hand", 1000*got.Dist(inHand), got.Angle(inHand))
	}
	if d := now.Tool.Dist(above); d > 0.001 {
		t.Errorf("the loaded tool settles %.2f mm off", 1000*d)
	}
	must(tw.Grip(t.Context(), robot.JawTarget{Open: true}))
	if j := tw.State().Jaw; j.Holding || !j.Open || j.Aperture < 0.078 {
		t.Errorf("opened jaw: %+v", j)
	}
	after(t, tw, time.Second)
	if z := tw.Truth().Objects["red_cube"].P.Z; z > 0.1 {
		t.Errorf("the released cube is at z = %.3f", z)
	}
	must(tw.Grip(t.Context(), robot.JawTarget{}))
	if j := tw.State().Jaw; j.Holding || j.Open || j.Aperture > 0.001 {
		t.Errorf("jaw closed on nothing: %+v", j)
	}
}

func TestContactIsFelt(t *testing.T) {
	for _, c := range []struct {
		robot string
		press func(tw *Twin) error
	}{
		{"fr3", func(tw *Twin) error { // 1 cm into the table, beside everything
			tw.placeAway(t)
			if err := moveTool(t, tw, down(r3.Vec{X: 0.45, Z: 0.10}, 0), 3*time.Second); err != nil {
				return err
			}
			if q := tw.State().Contact; q > 2 {
				t.Errorf("%.1f N felt in free air", q)
			}
			return moveTool(t, tw, down(r3.Vec{X: 0.45, Z: -0.002}, 0), 3*time.Second)
		}},
		{"stretch4", func(tw *Twin) error { // out over the table, then down on it
			tw.placeAway(t)
			if err := tw.Follow(t.Context(), reach(tw.State(), []float64{0, 0.4}, zero, 3*time.Second)); err != nil {
				return err
			}
			if q := tw.State().Contact; q > 2 {
				t.Errorf("%.1f N felt in free air", q)
			}
			low := tw.p.odom.Point(r3.Vec{}).Z - tw.Truth().Tool.P.Z - 0.002 // the table's top is the world's zero
			return tw.Follow(t.Context(), reach(tw.State(), []float64{low}, zero, 4*time.Second))
		}},
	} {
		t.Run(c.robot, func(t *testing.T) {
			tw := start(t, Options{Robot: c.robot, World: "tabletop", Seed: 2})
			if err := c.press(tw); err != nil {
				t.Fatal(err)
			}
			if f := tw.State().Contact; f < 5 || f > 300 {
				t.Errorf("%.1f N felt when pressing on the table", f)
			}
		})
	}
}

func TestStretchPicksPhysically(t *testing.T) {
	tw := start(t, Options{Robot: "stretch4", World: "tabletop", Seed: 3})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tw.placeAway(t)
	tw.place(t, "red_cube", r3.Vec{X: 0.187, Y: -0.05, Z: 0.0225})
	cube := tw.Truth().Objects["red_cube"]
	must(tw.Follow(t.Context(), reach(tw.State(), []float64{0.05, 0, 0, 1}, zero, 2*time.Second)))
	side := geom.SE2{Y: cube.P.Y - tw.Truth().Tool.P.Y}
	must(tw.Follow(t.Context(), reach(tw.State(), nil, side, 3*time.Second)))
	at := tw.Truth().Tool
	at.P = r3.Add(cube.P, r3.Scale(-0.12, at.X()))
	must(moveTool(t, tw, at, 4*time.Second))
	at.P = cube.P
	must(moveTool(t, tw, at, 3*time.Second))
	after(t, tw, 500*time.Millisecond)
	if d := tw.Truth().Tool.Dist(at); d > 0.0015 {
		t.Errorf("tool settles %.2f mm off", 1000*d)
	}
	must(tw.Grip(t.Context(), robot.JawTarget{}))
	if j := tw.State().Jaw; !j.Holding || math.Abs(j.Aperture-0.045) > 0.002 {
		t.Fatalf("jaw on a 45 mm cube: %+v", j)
	}
	before := tw.Truth()
	inHand := before.Tool.Inv().Mul(before.Objects["red_cube"])
	must(tw.Follow(t.Context(), reach(tw.State(), []float64{0.2}, geom.SE2{Yaw: 0.4}, 4*time.Second)))
	after(t, tw, 500*time.Millisecond)
	now := tw.Truth()
	if got := now.Tool.Inv().Mul(now.Objects["red_cube"]); got.Dist(inHand) > 0.002 || got.Angle(inHand) > 0.03 {
		t.Errorf("the cube slipped %.2f mm and %.3f rad in the gripper", 1000*got.Dist(inHand), got.Angle(inHand))
	}
	if z := now.Objects["red_cube"].P.Z - cube.P.Z; z < 0.15 {
		t.Errorf("the cube was lifted by %.3f m", z)
	}
	must(tw.Grip(t.Context(), robot.JawTarget{Open: true}))
	after(t, tw, time.Second)
	if z := tw.Truth().Objects["red_cube"].P.Z - cube.P.Z; z > 0.05 {
		t.Errorf("the released cube is still %.3f m up", z)
	}
}

// place puts a loose object somewhere, unturned (world frame).
func (t *Twin) place(tb testing.TB, name string, p r3.Vec) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, j := range t.p.free {
		info := t.p.m.JointInfo(j)
		if t.p.m.Name(mj.Body, info.Body) == name {
			copy(t.p.d.Qpos()[info.Qpos:], []float64{p.X, p.Y, p.Z, 1, 0, 0, 0})
		}
	}
	if err := t.p.d.Forward(); err != nil {
		tb.Fatal(err)
	}
}

// placeAway moves every loose object out of the way.
func (t *Twin) placeAway(tb testing.TB) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, j := range t.p.free {
		q := t.p.d.Qpos()[t.p.m.JointInfo(j).Qpos:]
		q[0], q[1] = 0.75, -0.3+0.12*float64(i)
	}
	if err := t.p.d.Forward(); err != nil {
		tb.Fatal(err)
	}
}
