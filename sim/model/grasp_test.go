package model

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/sim/mj"
)

// place puts an object somewhere at rest.
func (s *stand) place(object string, p geom.Pose) {
	j := s.joint(object + "_free")
	q := s.d.Qpos()[j.Qpos : j.Qpos+7]
	copy(q, []float64{p.P.X, p.P.Y, p.P.Z, p.R.Real, p.R.Imag, p.R.Jmag, p.R.Kmag})
	for i := range 6 {
		s.d.Qvel()[j.Dof+i] = 0
	}
}

// What is to be grasped is held: between closed jaws it sinks less than half a millimetre in 3 s.
func TestJawsHold(t *testing.T) {
	for _, c := range []struct {
		spec   Spec
		object string
		width  float64
		in     geom.Pose // of the object in the tool frame
	}{
		{Spec{"fr3", "tabletop", 1}, "red_cube", 0.045, geom.Identity()},
		{Spec{"fr3", "tabletop", 1}, "green_cube", 0.050, geom.Identity()},
		{Spec{"panda", "tabletop", 2}, "yellow_cube", 0.040, geom.Identity()},
		{Spec{"stretch4", "room", 1}, "toy", 0.042, geom.At(-0.01, 0, 0.004)},
		{Spec{"stretch4", "tabletop", 1}, "blue_cube", 0.040, geom.Identity()},
	} {
		t.Run(c.spec.Robot+" "+c.object, func(t *testing.T) {
			s := load(t, c.spec)
			s.home()
			at := s.body("tool").Mul(c.in)
			if c.spec.Robot != "stretch4" {
				at.R = geom.RotZ(0) // level: the tool points down
			}
			s.place(c.object, at)
			for _, f := range s.Jaw.Joints {
				s.set(f, c.width/2+2e-4)
			}
			s.d.Ctrl()[s.m.ID(mj.Actuator, s.Jaw.Actuator)] = 0
			s.run(0.5)
			held := s.body("tool").Inv().Mul(s.body(c.object))
			if d := held.Dist(s.body("tool").Inv().Mul(at)); d > 0.01 {
				t.Fatalf("lost: %.3f m from the closure point after closing", d)
			}
			s.run(3)
			now := s.body("tool").Inv().Mul(s.body(c.object))
			if d := now.Dist(held); d > 0.0005 {
				t.Errorf("slipped %.5f m in 3 s", d)
			}
			for i, f := range s.Jaw.Joints {
				if q := s.d.Qpos()[s.joint(f).Qpos]; math.Abs(q-c.width/2) > 0.001 {
					t.Errorf("finger %d stands at %.4f on an object %.4f wide", i, q, c.width)
				}
			}
		})
	}
}

// The drawer opens to its stop under a hand's pull, stays where it is let go, and does not drift by itself.
func TestDrawer(t *testing.T) {
	s := load(t, Spec{Robot: "stretch4", World: "room", Seed: 1})
	s.home()
	j := s.joint(s.Slides[0].Joint)
	read := func() float64 { return s.d.Qpos()[j.Qpos] }
	s.run(1)
	if q := read(); math.Abs(q) > 1e-3 {
		t.Errorf("the closed drawer drifted to %.4f", q)
	}
	id := s.m.ID(mj.Geom, s.Slides[0].Handle)
	before := s.d.GeomPos(id)[1]
	s.d.Applied()[j.Dof] = 8
	s.run(2)
	if q := read(); q < 0.2 {
		t.Errorf("8 N for 2 s opened the drawer %.3f m", q)
	}
	if out := before - s.d.GeomPos(id)[1]; math.Abs(out-read()) > 1e-9 {
		t.Errorf("the handle came %.4f m towards -y for %.4f m of drawer", out, read())
	}
	s.d.Applied()[j.Dof] = 0
	s.run(0.5)
	at := read()
	s.run(1)
	if math.Abs(read()-at) > 1e-3 {
		t.Errorf("let go at %.4f the drawer went to %.4f", at, read())
	}
}

// A toy let go over the box ends in it.
func TestBoxCatches(t *testing.T) {
	s := load(t, Spec{Robot: "stretch4", World: "room", Seed: 4})
	s.home()
	box := s.body("box")
	s.place("toy", box.Mul(geom.Pose{P: r3.Vec{X: 0.03, Y: -0.02, Z: 0.25}, R: geom.RotZ(0.7)}))
	s.run(2)
	in := s.body("box").Inv().Mul(s.body("toy")).P
	if math.Abs(in.X) > 0.14 || math.Abs(in.Y) > 0.115 || in.Z < 0.01 || in.Z > 0.1 {
		t.Errorf("the toy ended at %v of the box", in)
	}
	if d := s.body("box").Dist(box); d > 0.01 {
		t.Errorf("the box moved %.3f m", d)
	}
}

// A bowl stays on a plate, a cube on a cube, for ten seconds.
func TestStacksStand(t *testing.T) {
	s := load(t, Spec{Robot: "fr3", World: "tabletop", Seed: 5})
	s.home()
	green, plate := s.body("green_cube"), s.body("plate")
	s.place("red_cube", green.Mul(geom.Pose{P: r3.Vec{X: 0.006, Y: 0.004, Z: 0.0478}, R: geom.RotZ(0.4)}))
	s.place("bowl", plate.Mul(geom.At(0.004, 0.002, 0.0065)))
	s.run(1)
	red, bowl := s.body("red_cube"), s.body("bowl")
	s.run(9)
	if d := s.body("red_cube").Dist(red); d > 0.0005 {
		t.Errorf("the red cube crept %.5f m on the green one", d)
	}
	if h := s.body("red_cube").P.Z - s.body("green_cube").P.Z; math.Abs(h-0.0475) > 0.001 {
		t.Errorf("the red cube stands %.4f m over the green one", h)
	}
	if d := s.body("bowl").Dist(bowl); d > 0.001 {
		t.Errorf("the bowl crept %.5f m on the plate", d)
	}
	if h := s.body("bowl").P.Z - s.body("plate").P.Z; h < 0.003 || h > 0.009 {
		t.Errorf("the bowl stands %.4f m over the plate", h)
	}
}
