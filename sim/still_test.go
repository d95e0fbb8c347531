package sim

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/sim/mj"
)

// What the robot does not touch lies still, however it moves: MuJoCo's contacts of level boxes once made
// cubes leap off the table (mj/box.c).
func TestUntouchedThingsLieStill(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		o := Options{Robot: "fr3", World: "tabletop", Seed: seed}
		if seed%4 == 3 {
			o.Robot, o.World = "stretch4", "room"
		}
		w := newStillness(t, o)
		rng := rand.New(rand.NewPCG(seed, 1))
		w.swing(rng)
		w.swing(rng)
		w.p.close()
	}
}

// stillness watches the loose bodies of a plant that moves without a clock.
type stillness struct {
	t       *testing.T
	seed    uint64
	mach    machine
	p       *plant
	s       servo
	j       jawServo
	start   map[int]geom.Pose // loose bodies
	touched map[int]bool      // by the robot, or by something touched
}

func newStillness(t *testing.T, o Options) *stillness {
	t.Helper()
	w := &stillness{t: t, seed: o.Seed, start: map[int]geom.Pose{}, touched: map[int]bool{}}
	var err error
	if w.mach, err = machineFor(o.Robot); err != nil {
		t.Fatal(err)
	}
	if _, err = w.mach.describe(); err != nil {
		t.Fatal(err)
	}
	if w.p, err = build(&w.mach, o); err != nil {
		t.Fatal(err)
	}
	w.s, w.j = newServo(w.p), newJaw(w.p, &w.mach)
	for _, j := range w.p.free {
		b := w.p.m.JointInfo(j).Body
		placed, ok := w.p.meta.Object(w.p.m.Name(mj.Body, b))
		if !ok {
			t.Fatalf("the world did not place %s", w.p.m.Name(mj.Body, b))
		}
		w.start[b] = placed.Start
	}
	return w
}

// swing moves every joint somewhere at up to 1.5 rad/s, watching every step.
func (w *stillness) swing(rng *rand.Rand) {
	w.t.Helper()
	n := int(1.2e9 / float64(w.p.dt))
	from, by := make([]float64, len(w.s.ref)), make([]float64, len(w.s.ref))
	for i, r := range w.s.ref {
		from[i] = r.x
		to := math.Max(w.p.axes[i].lo+0.1, math.Min(w.p.axes[i].hi-0.1, r.x+2*(rng.Float64()-0.5)))
		by[i] = to - r.x
	}
	for k := range n {
		u := float64(k+1) / float64(n)
		for i := range w.s.ref {
			w.s.ref[i] = hermite(u, 1, from[i], 0, from[i]+by[i], 0)
			w.s.ref[i].v, w.s.ref[i].a = w.s.ref[i].v/1.2, w.s.ref[i].a/1.44
		}
		if err := w.p.step(&w.s, &w.j); err != nil {
			w.t.Fatal(err)
		}
		w.check()
	}
}

func (w *stillness) check() {
	w.t.Helper()
	w.touch()
	for _, j := range w.p.free {
		info := w.p.m.JointInfo(j)
		if w.touched[info.Body] {
			continue
		}
		v := r3.Norm(vec3(w.p.d.Qvel()[info.Dof:]))
		d := w.p.bodyPose(info.Body).Dist(w.start[info.Body])
		if v > 0.05 || d > 0.001 {
			w.t.Errorf("seed %d, %.3f s: %s, untouched, is %.2f mm off at %.3f m/s", w.seed, w.p.d.Time(),
				w.p.m.Name(mj.Body, info.Body), 1e3*d, v)
			w.touched[info.Body] = true // said once
		}
	}
}

// touch adds what contacts of this step touched.
func (w *stillness) touch() {
	moves := func(b int) bool {
		k := w.p.body[b]
		return k == partArm || k == partHand || k == partFinger || w.touched[b]
	}
	for range w.p.free { // from one thing to the next
		for i := range w.p.d.NContact() {
			c := w.p.d.Contact(i)
			a, b := w.p.m.GeomBody(c.Geom1), w.p.m.GeomBody(c.Geom2)
			if w.p.body[a] == partLoose && moves(b) {
				w.touched[a] = true
			}
			if w.p.body[b] == partLoose && moves(a) {
				w.touched[b] = true
			}
		}
	}
}

func vec3(x []float64) r3.Vec { return r3.Vec{X: x[0], Y: x[1], Z: x[2]} }
