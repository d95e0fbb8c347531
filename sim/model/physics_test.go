package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/urdf"
	"viad/sim/mj"
)

// stand is a model in MuJoCo.
type stand struct {
	*Model
	t *testing.T
	m *mj.Model
	d *mj.Data
}

func load(t *testing.T, s Spec) *stand {
	t.Helper()
	meta, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mj.Load(meta.XML)
	if err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	d, err := m.NewData()
	if err != nil {
		m.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(); m.Close() })
	return &stand{Model: meta, t: t, m: m, d: d}
}

func (s *stand) joint(name string) mj.JointInfo {
	s.t.Helper()
	id := s.m.ID(mj.Joint, name)
	if id < 0 {
		s.t.Fatalf("no joint %q", name)
	}
	return s.m.JointInfo(id)
}

func (s *stand) set(joint string, v float64) { s.d.Qpos()[s.joint(joint).Qpos] = v }

func (s *stand) body(name string) geom.Pose {
	s.t.Helper()
	id := s.m.ID(mj.Body, name)
	if id < 0 {
		s.t.Fatalf("no body %q", name)
	}
	p, q := s.d.BodyPos(id), s.d.BodyQuat(id)
	return geom.Pose{P: r3.Vec{X: p[0], Y: p[1], Z: p[2]}, R: quat.Number{Real: q[0], Imag: q[1], Jmag: q[2], Kmag: q[3]}}
}

// home puts the robot into its start configuration with its servos holding it.
func (s *stand) home() {
	for _, j := range s.Joints {
		for _, p := range j.Parts {
			s.set(p, j.Home/float64(len(j.Parts)))
		}
		if j.Drive == Position {
			s.d.Ctrl()[s.m.ID(mj.Actuator, j.Actuator)] = j.Home
		}
	}
	for _, f := range s.Jaw.Joints {
		s.set(f, s.Jaw.Home/2)
	}
	s.d.Ctrl()[s.m.ID(mj.Actuator, s.Jaw.Actuator)] = s.Jaw.Home / 2
	if err := s.d.Forward(); err != nil {
		s.t.Fatal(err)
	}
}

// run steps the physics with the robot held: weightless joints and motors get qfrc_bias, motors a stiff
// spring besides.
func (s *stand) run(seconds float64) {
	s.t.Helper()
	for range int(seconds / s.m.Timestep()) {
		if err := s.d.Step1(); err != nil {
			s.t.Fatal(err)
		}
		for _, j := range s.Joints {
			for _, p := range j.Parts {
				i := s.joint(p)
				if j.Weightless {
					s.d.Applied()[i.Dof] = s.d.Bias()[i.Dof]
				}
				if j.Drive == Torque {
					s.d.Ctrl()[s.m.ID(mj.Actuator, j.Actuator)] = s.d.Bias()[i.Dof] + 400*(j.Home-s.d.Qpos()[i.Qpos]) - 40*s.d.Qvel()[i.Dof]
				}
			}
		}
		if err := s.d.Step2(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// describe names a geom for a person.
func (s *stand) describe(g int) string {
	return fmt.Sprintf("%s of %s", s.m.Name(mj.Geom, g), s.m.Name(mj.Body, s.m.GeomBody(g)))
}

// chain is the pose of each URDF link in the root link.
func chain(r *urdf.Robot, q map[string]float64) map[string]geom.Pose {
	at := map[string]geom.Pose{r.Root: geom.Identity()}
	for _, j := range r.Joints {
		p := at[j.Parent].Mul(originPose(j.Origin))
		v := q[j.Name]
		if j.Mimic != nil {
			v = j.Mimic.Multiplier*q[j.Mimic.Joint] + j.Mimic.Offset
		}
		switch j.Type {
		case urdf.Revolute, urdf.Continuous:
			p = p.Mul(geom.Pose{R: geom.AxisAngle(j.Axis, v)})
		case urdf.Prismatic:
			p = p.Mul(geom.Pose{P: r3.Scale(v, j.Axis), R: quat.Number{Real: 1}})
		}
		at[j.Child] = p
	}
	return at
}

// Every link of every robot is where its URDF says, over 1,000 random configurations.
func TestChainAgreesWithPhysics(t *testing.T) {
	for _, robot := range Robots {
		t.Run(robot, func(t *testing.T) {
			s := load(t, Spec{Robot: robot, World: "room", Seed: 3})
			r, err := urdf.Load(s.URDF)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(9, 9))
			var worst, turn float64
			for range 1000 {
				q := map[string]float64{}
				for _, j := range r.Joints {
					if j.Type != urdf.Fixed && j.Mimic == nil {
						q[j.Name] = j.Lower + rng.Float64()*(j.Upper-j.Lower)
					}
				}
				for _, j := range r.Joints {
					v := q[j.Name]
					if j.Mimic != nil {
						v = j.Mimic.Multiplier*q[j.Mimic.Joint] + j.Mimic.Offset
					}
					if j.Type != urdf.Fixed {
						s.set(j.Name, v)
					}
				}
				base := s.Odom
				if s.Base != nil {
					b := geom.SE2{X: rng.Float64() - .5, Y: rng.Float64() - .5, Yaw: 6 * (rng.Float64() - .5)}
					for i, v := range [3]float64{b.X, b.Y, b.Yaw} {
						s.set(s.Base.Joints[i], v)
					}
					base = base.Mul(b.Pose())
				}
				if err := s.d.Forward(); err != nil {
					t.Fatal(err)
				}
				for link, p := range chain(r, q) {
					got, want := s.body(link), base.Mul(p)
					worst, turn = math.Max(worst, got.Dist(want)), math.Max(turn, got.Angle(want))
				}
			}
			if worst > 1e-6 || turn > 1e-6 {
				t.Errorf("links are up to %.3g m and %.3g rad from their URDF", worst, turn)
			}
			t.Logf("largest difference %.2g m, %.2g rad", worst, turn)
		})
	}
}

// The vectors of reference/robots.md in MuJoCo itself. The Stretch table is for SG4; PG4's closure point
// is .06810 m nearer on the approach axis.
func TestVectorsInPhysics(t *testing.T) {
	s := load(t, Spec{Robot: "stretch4", World: "room", Seed: 1})
	for _, v := range []struct{ q, p [5]float64 }{
		{[5]float64{0, 0, 0, 0, 0}, [5]float64{.46668, -.08742, .15022}},
		{[5]float64{.6, .3, 0, 0, 0}, [5]float64{.76668, -.08742, .75022}},
		{[5]float64{.8, .2, .5, .3, -.4}, [5]float64{.66079, .05875, .86281}},
		{[5]float64{.15, 0, 3.14, 0, 0}, [5]float64{-.12474, .08789, .30022}},
	} {
		for i, j := range s.Joints {
			for _, p := range j.Parts {
				s.set(p, v.q[i]/float64(len(j.Parts)))
			}
		}
		if err := s.d.Forward(); err != nil {
			t.Fatal(err)
		}
		tool := s.body("base_link").Inv().Mul(s.body("tool"))
		sg4 := tool.Point(r3.Vec{X: 0.23496 - 0.16686})
		if d := r3.Norm(r3.Sub(sg4, r3.Vec{X: v.p[0], Y: v.p[1], Z: v.p[2]})); d > 1e-5 {
			t.Errorf("%v: %.7f m off", v.q, d)
		}
		pitch := s.body("base_link").Inv().Mul(s.body("wrist_pitch_link"))
		back := r3.Dot(r3.Sub(tool.P, pitch.P), tool.X())
		if math.Abs(back-0.22768) > 1e-9 {
			t.Errorf("closure point is %.6f m ahead of the pitch axis; wanted .22768", back)
		}
	}
	f := load(t, Spec{Robot: "fr3", World: "tabletop", Seed: 1})
	f.home()
	tool, want := f.body("tool"), r3.Vec{X: .306891, Z: .486882}
	if d := r3.Norm(r3.Sub(tool.P, want)); d > 1e-5 {
		t.Errorf("ready pose: closure point %.7f m off", d)
	}
	if tool.X().Z > -1+1e-9 || tool.Y().Y < 1-1e-9 || tool.Z().X < 1-1e-9 {
		t.Errorf("ready pose: tool axes %v %v %v; wanted x down, y left, z forward", tool.X(), tool.Y(), tool.Z())
	}
}

// Every robot in every world loads for 20 seeds, keeps clear of everything at home, and after a second
// everything rests where it was placed.
func TestWorldsSettle(t *testing.T) {
	for _, robot := range Robots {
		for _, world := range Worlds {
			t.Run(robot+" "+world, func(t *testing.T) {
				seeds := uint64(20)
				if robot == "panda" || testing.Short() {
					seeds = 3 // the same arm as fr3 but for its limits
				}
				for seed := range seeds {
					s := load(t, Spec{Robot: robot, World: world, Seed: seed})
					s.home()
					s.clearOfRobot(seed)
					s.run(1)
					s.clearOfRobot(seed)
					for _, o := range s.Objects {
						p := s.body(o.Name)
						if d := p.Dist(o.Start); d > 0.005 || p.Angle(o.Start) > 0.02 {
							t.Errorf("seed %d: %s moved %.4f m, %.4f rad", seed, o.Name, d, p.Angle(o.Start))
						}
					}
				}
			})
		}
	}
}

// clearOfRobot wants no contact of the robot, and none deeper than a millimetre.
func (s *stand) clearOfRobot(seed uint64) {
	s.t.Helper()
	for i := range s.d.NContact() {
		c := s.d.Contact(i)
		if c.Dist < -0.001 {
			s.t.Errorf("seed %d: %s and %s overlap by %.4f m", seed, s.describe(c.Geom1), s.describe(c.Geom2), -c.Dist)
		}
		for _, g := range []int{c.Geom1, c.Geom2} {
			for b := s.m.GeomBody(g); b > 0; b = s.m.BodyParent(b) {
				if n := s.m.Name(mj.Body, b); n == "link0" || n == "base_footprint" {
					s.t.Errorf("seed %d: the robot touches: %s and %s", seed, s.describe(c.Geom1), s.describe(c.Geom2))
				}
			}
		}
	}
}

// What the description says exists in the XML, with the numbers it says.
func TestDescriptionMatches(t *testing.T) {
	for _, robot := range Robots {
		for _, world := range Worlds {
			s := load(t, Spec{Robot: robot, World: world, Seed: 2})
			s.home()
			for _, j := range s.Joints {
				a := s.m.ID(mj.Actuator, j.Actuator)
				if a < 0 {
					t.Fatalf("no actuator %q", j.Actuator)
				}
				var lo, hi float64
				for _, p := range j.Parts {
					i := s.joint(p)
					lo, hi = lo+i.Range[0], hi+i.Range[1]
				}
				if math.Abs(lo-j.Min) > 1e-9 || math.Abs(hi-j.Max) > 1e-9 || j.Home <= lo || j.Home >= hi {
					t.Errorf("%s %s: %v..%v home %v; the XML has %v..%v", robot, j.Name, j.Min, j.Max, j.Home, lo, hi)
				}
				if l := s.m.ActuatorLaw(a); j.Drive == Position && (l.Gain != j.Kp || l.Bias != [3]float64{0, -j.Kp, -j.Kv}) {
					t.Errorf("%s: law %+v; described kp %v kv %v", j.Name, l, j.Kp, j.Kv)
				}
			}
			for _, p := range append(s.Jaw.Pads[:], slideHandles(s)...) {
				if s.m.ID(mj.Geom, p) < 0 {
					t.Errorf("no geom %q", p)
				}
			}
			for _, c := range s.Cameras {
				s.cameraMatches(c)
			}
			for _, l := range s.Lidars {
				if s.m.ID(mj.Site, l.Name) < 0 {
					t.Errorf("no site %q", l.Name)
				}
			}
			for _, o := range s.Objects {
				if i := s.joint(o.Name + "_free"); i.Type != mj.Free {
					t.Errorf("%s has no free joint", o.Name)
				}
				if m := s.m.BodyMass(s.m.ID(mj.Body, o.Name)); math.Abs(m-o.Mass) > 0.002*o.Mass {
					t.Errorf("%s weighs %v; described %v", o.Name, m, o.Mass)
				}
			}
		}
	}
}

func slideHandles(s *stand) (names []string) {
	for _, d := range s.Slides {
		if i := s.joint(d.Joint); i.Range[1] != d.Max {
			s.t.Errorf("%s opens %v; described %v", d.Joint, i.Range[1], d.Max)
		}
		names = append(names, d.Handle)
	}
	return names
}

// cameraMatches takes MuJoCo's camera back to an optical frame and compares.
func (s *stand) cameraMatches(c Camera) {
	s.t.Helper()
	id := s.m.ID(mj.Camera, c.Name)
	if id < 0 {
		s.t.Fatalf("no camera %q", c.Name)
	}
	i := s.m.CameraInfo(id)
	q := quat.Number{Real: i.Quat[0], Imag: i.Quat[1], Jmag: i.Quat[2], Kmag: i.Quat[3]}
	in := geom.Pose{P: r3.Vec{X: i.Pos[0], Y: i.Pos[1], Z: i.Pos[2]}, R: quat.Mul(q, quat.Number{Imag: 1})}
	link, world := c.Mount.Link, s.Odom
	if link != "" {
		world = s.body(link)
	}
	got := in
	if i.Body > 0 {
		got = s.body(s.m.Name(mj.Body, i.Body)).Mul(in)
	}
	want := world.Mul(c.Mount.Pose)
	if got.Dist(want) > 1e-9 || got.Angle(want) > 1e-7 || math.Abs(geom.Rad(i.Fovy)-c.Fovy) > 1e-9 {
		s.t.Errorf("camera %s: %v fovy %v; described %v fovy %v", c.Name, got, i.Fovy, want, geom.Deg(c.Fovy))
	}
}

// placed is Build without the XML.
func placed(t *testing.T, s Spec) *Model {
	t.Helper()
	r, err := newRobot(s.Robot)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(s, r.Model)
	if err != nil {
		t.Fatal(err)
	}
	r.Odom, r.Objects = w.odom, w.objects
	return r.Model
}

// The task of the room: the toy is out of the head's view at the start, on the table, within reach; so is
// the box. The gripper's tips and the table's near part are in the head's view.
func TestRoomTask(t *testing.T) {
	for seed := range uint64(60) {
		m := placed(t, Spec{Robot: "stretch4", World: "room", Seed: seed})
		head, _ := m.Camera("head")
		toy, _ := m.Object("toy")
		r, err := urdf.Load(m.URDF)
		if err != nil {
			t.Fatal(err)
		}
		at := chain(r, map[string]float64{"lift_joint": .85, "arm_l1_joint": .13})
		optical := at["head_link"].Mul(head.Mount.Pose)
		seen := func(p r3.Vec) bool { // in base_footprint
			u, v, ok := head.Intrinsics.Project(optical.Inv().Point(p))
			return ok && u > 0 && v > 0 && u < float64(head.Intrinsics.W) && v < float64(head.Intrinsics.H)
		}
		if seen(m.Odom.Inv().Point(toy.Start.P)) {
			t.Errorf("seed %d: the toy is in the head's view at the start", seed)
		}
		if !seen(r3.Vec{X: 0.8, Z: 0.70}) || !seen(at["tool"].P) {
			t.Errorf("seed %d: the head does not see the workspace or the extended gripper", seed)
		}
		if p := toy.Start.P; p.X < 1.25 || p.X > 1.20+0.35 || math.Abs(p.Y) > 0.65 {
			t.Errorf("seed %d: the toy at %v cannot be reached from the table's near side", seed, p)
		}
	}
}

// Objects of the tabletop keep apart and within the arm's workspace.
func TestTabletopPlacement(t *testing.T) {
	for seed := range uint64(200) {
		m := placed(t, Spec{Robot: "fr3", World: "tabletop", Seed: seed})
		for i, a := range m.Objects {
			if p := a.Start.P; p.X < 0.3 || p.X > 0.7 || math.Abs(p.Y) > 0.35 {
				t.Errorf("seed %d: %s at %v", seed, a.Name, p)
			}
			for _, b := range m.Objects[:i] {
				if d := math.Hypot(a.Start.P.X-b.Start.P.X, a.Start.P.Y-b.Start.P.Y); d < (a.Size.X+b.Size.X)/2+0.01 {
					t.Errorf("seed %d: %s and %s are %.3f m apart", seed, a.Name, b.Name, d)
				}
			}
		}
	}
}

// A servo's reference moving at the robot's speed is followed; the base holds against its force limit.
func TestStretchServosAreStiff(t *testing.T) {
	s := load(t, Spec{Robot: "stretch4", World: "room", Seed: 1})
	s.home()
	for _, a := range s.Base.Actuators {
		s.d.Ctrl()[s.m.ID(mj.Actuator, a)] = 0.3
	}
	s.run(1)
	for _, n := range s.Base.Joints {
		if v := s.d.Qvel()[s.joint(n).Dof]; math.Abs(v-0.3) > 0.01 {
			t.Errorf("%s runs at %.4f after 1 s; ordered .3", n, v)
		}
		s.d.Ctrl()[s.m.ID(mj.Actuator, n)] = 0
	}
	// Servo reference with velocity feed-forward: q + v Kv/Kp.
	for _, c := range []struct {
		name  string
		speed float64
	}{{"lift_joint", -0.3}, {"arm_joint", 0.3}, {"wrist_yaw_joint", 2}, {"wrist_pitch_joint", 1}, {"wrist_roll_joint", -1}} {
		for _, j := range s.Joints {
			if j.Name != c.name {
				continue
			}
			a := s.m.ID(mj.Actuator, j.Actuator)
			ref := j.Home
			for range 50 { // one second in steps of 20 ms
				ref += c.speed * 0.02
				s.d.Ctrl()[a] = ref + c.speed*j.Kv/j.Kp
				s.run(0.02)
			}
			var q float64
			for _, p := range j.Parts {
				q += s.d.Qpos()[s.joint(p).Qpos]
			}
			if e := math.Abs(q - ref); e > 0.006*math.Max(1, math.Abs(c.speed)/0.3) {
				t.Errorf("%s lags %.4f behind its reference at %v per second", j.Name, e, c.speed)
			}
		}
	}
}

func TestUnknownNames(t *testing.T) {
	if _, err := Build(Spec{Robot: "ur5", World: "room"}); err == nil || !strings.Contains(err.Error(), "fr3, panda, stretch4") {
		t.Error(err)
	}
	if _, err := Build(Spec{Robot: "fr3", World: "moon"}); err == nil || !strings.Contains(err.Error(), "tabletop, room") {
		t.Error(err)
	}
}
