package view

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/interface/stage"
	"viad/perception"
)

// A small world of boxes and spheres, seen by ray casting. It shares no code with the renderer under test.

type thing struct {
	pose  geom.Pose
	half  r3.Vec  // half edges of a box
	r     float64 // radius of a sphere when above zero
	col   rgb
	class perception.Class
}

// hit is the distance along a ray of unit direction d from o, and the normal there; +Inf when it misses.
func (b *thing) hit(o, d r3.Vec) (float64, r3.Vec) {
	if b.r > 0 {
		m := r3.Sub(o, b.pose.P)
		k := r3.Dot(m, d)
		disc := k*k - r3.Dot(m, m) + b.r*b.r
		if disc < 0 || -k-math.Sqrt(disc) < 0 {
			return math.Inf(1), r3.Vec{}
		}
		t := -k - math.Sqrt(disc)
		return t, r3.Unit(r3.Add(m, r3.Scale(t, d)))
	}
	m := r3.Sub(o, b.pose.P)
	if k := r3.Dot(m, d); r3.Dot(m, m)-k*k > r3.Dot(b.half, b.half) {
		return math.Inf(1), r3.Vec{} // the ray passes the ball around the box
	}
	inv := b.pose.Inv()
	lo, ld := inv.Point(o), inv.Dir(d)
	t0, t1, n := 0.0, math.Inf(1), r3.Vec{}
	for i, ax := range [3]struct{ o, d, h float64 }{{lo.X, ld.X, b.half.X}, {lo.Y, ld.Y, b.half.Y}, {lo.Z, ld.Z, b.half.Z}} {
		if math.Abs(ax.d) < 1e-12 {
			if math.Abs(ax.o) > ax.h {
				return math.Inf(1), n
			}
			continue
		}
		a, c := (-ax.h-ax.o)/ax.d, (ax.h-ax.o)/ax.d
		if a > c {
			a, c = c, a
		}
		if a > t0 {
			t0 = a
			n = onAxes(i, -math.Copysign(1, ax.d), 0, 0)
		}
		t1 = math.Min(t1, c)
	}
	if t0 > t1 || t0 == 0 {
		return math.Inf(1), n
	}
	return t0, b.pose.Dir(n)
}

type world []thing

func (w world) cast(o, d r3.Vec) (t float64, n r3.Vec, what *thing) {
	t = math.Inf(1)
	for i := range w {
		if ti, ni := w[i].hit(o, d); ti < t {
			t, n, what = ti, ni, &w[i]
		}
	}
	return t, n, what
}

// shoot is the frame a camera at pose takes; noise is the depth noise at 1 m.
func (w world) shoot(name string, pose geom.Pose, in sensor.Intrinsics, depth bool, noise float64, rng *rand.Rand) (*perception.Camera, []perception.Class) {
	f := &sensor.Frame{Info: &sensor.Info{Name: name, Intrinsics: in, HasColor: true, HasDepth: depth, Range: [2]float64{.05, 4}}}
	f.RGB = make([]byte, 3*in.W*in.H)
	classes := make([]perception.Class, in.W*in.H)
	if depth {
		f.Depth = make([]float32, in.W*in.H)
	}
	sun := r3.Unit(r3.Vec{X: .3, Y: .4, Z: 1})
	for y := range in.H {
		for x := range in.W {
			i := y*in.W + x
			ray := pose.Dir(in.Unproject(float64(x), float64(y), 1))
			t, n, what := w.cast(pose.P, r3.Unit(ray))
			col := rgb(0xB9C3CC).toward(0x8795A3, float32(y)/float32(in.H))
			if what != nil {
				p := r3.Add(pose.P, r3.Scale(t, r3.Unit(ray)))
				s := .55 + .45*math.Max(0, r3.Dot(n, sun))
				if _, _, o := w.cast(r3.Add(p, r3.Scale(1e-4, n)), sun); o != nil {
					s = .5
				}
				col = what.col.scaled(float32(s))
				classes[i] = what.class
				if depth {
					z := t / r3.Norm(ray)
					f.Depth[i] = float32(z + rng.NormFloat64()*noise*z*z)
				}
			}
			r, g, b := col.parts()
			f.RGB[3*i], f.RGB[3*i+1], f.RGB[3*i+2] = uint8(r), uint8(g), uint8(b)
		}
	}
	return &perception.Camera{Frame: f, Pose: pose}, classes
}

// lookAt is a camera's optical frame at eye, looking at a point, with up on the picture.
func lookAt(eye, at, up r3.Vec) geom.Pose {
	z := r3.Unit(r3.Sub(at, eye))
	x := r3.Unit(r3.Cross(z, up))
	return geom.Pose{P: eye, R: geom.FromAxes(x, r3.Cross(z, x))}
}

// fuse voxelises what depth cameras see, in voxel order.
func fuse(voxel float64, cams []*perception.Camera, classes [][]perception.Class) *perception.Cloud {
	type acc struct {
		p       r3.Vec
		r, g, b float64
		n       int
		class   perception.Class
	}
	grid := map[[3]int32]*acc{}
	var keys [][3]int32
	for k, c := range cams {
		in := c.Frame.Info.Intrinsics
		for i, z := range c.Frame.Depth {
			if z == 0 {
				continue
			}
			p := c.Pose.Point(in.Unproject(float64(i%in.W), float64(i/in.W), float64(z)))
			key := [3]int32{int32(math.Floor(p.Z / voxel)), int32(math.Floor(p.Y / voxel)), int32(math.Floor(p.X / voxel))}
			a := grid[key]
			if a == nil {
				a = &acc{}
				grid[key] = a
				keys = append(keys, key)
			}
			a.p = r3.Add(a.p, p)
			a.r += float64(c.Frame.RGB[3*i])
			a.g += float64(c.Frame.RGB[3*i+1])
			a.b += float64(c.Frame.RGB[3*i+2])
			a.n++
			a.class = classes[k][i]
		}
	}
	sortKeys(keys)
	out := &perception.Cloud{}
	for _, key := range keys {
		a := grid[key]
		n := float64(a.n)
		out.XYZ = append(out.XYZ, float32(a.p.X/n), float32(a.p.Y/n), float32(a.p.Z/n))
		out.RGB = append(out.RGB, uint8(a.r/n), uint8(a.g/n), uint8(a.b/n))
		out.Class = append(out.Class, a.class)
	}
	return out
}

var testEpoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// topDown is the tool pose of the arm's ready hand at p: approach -Z, opening +Y.
func topDown(p r3.Vec) geom.Pose {
	return geom.Pose{P: p, R: geom.FromAxes(r3.Vec{Z: -1}, r3.Vec{Y: 1})}
}

// robotThings is a gripper's boxes at a tool pose and an arm behind it, as the world's cameras see them.
func robotThings(tool geom.Pose, aperture float64, arm []r3.Vec) world {
	var w world
	for _, s := range plainGripper(aperture) {
		half := r3.Scale(.5, s.Size)
		if s.Kind == Cylinder {
			half = r3.Vec{X: s.Size.X, Y: s.Size.X, Z: s.Size.Z / 2}
		}
		w = append(w, thing{pose: tool.Mul(s.Pose), half: half, col: 0x9AA0A6, class: perception.Robot})
	}
	for i := 1; i < len(arm); i++ {
		d := r3.Sub(arm[i], arm[i-1])
		side := r3.Unit(r3.Cross(d, r3.Vec{X: .1, Y: 1, Z: .05}))
		w = append(w, thing{
			pose: geom.Pose{P: mix(arm[i-1], arm[i], .5), R: geom.FromAxes(r3.Unit(d), side)},
			half: r3.Vec{X: r3.Norm(d)/2 + .03, Y: .05, Z: .05}, col: 0xE3E6E9, class: perception.Robot,
		})
	}
	return w
}

func tabletopReal() geom.Pose { return topDown(r3.Vec{X: .42, Y: -.02, Z: .24}) }

// tabletopWorld is what stands in the 3D face's test scene.
func tabletopWorld() world {
	w := world{
		{pose: geom.At(.5, 0, -.02), half: r3.Vec{X: .4, Y: .5, Z: .02}, col: 0xC8B79E},
		{pose: geom.Pose{P: r3.Vec{X: .5, Y: .16, Z: .0225}, R: geom.RotZ(.4)}, half: r3.Vec{X: .0225, Y: .0225, Z: .0225}, col: 0xD42B2B},
		{pose: geom.Pose{P: r3.Vec{X: .58, Y: -.14, Z: .025}, R: geom.RotZ(-.3)}, half: r3.Vec{X: .025, Y: .025, Z: .025}, col: 0x2BA84A},
		{pose: geom.Pose{P: r3.Vec{X: .38, Y: .2, Z: .02}, R: geom.RotZ(.9)}, half: r3.Vec{X: .02, Y: .02, Z: .02}, col: 0x2B55C8},
		{pose: geom.At(.64, .1, .02), half: r3.Vec{X: .02, Y: .02, Z: .02}, col: 0xE8C22C},
		{pose: geom.At(.62, -.3, .05), r: .05, col: 0xB06AC8},
	}
	w = append(w, robotThings(tabletopReal(), .08, []r3.Vec{{X: 0, Z: 0}, {X: 0, Z: .33}, {X: .2, Z: .62}, {X: .42, Y: -.02, Z: .42}})...)
	return w
}

// tabletop is the 3D face's test scene: a table at z = 0, cubes, a ball, and the arm's hand over them.
func tabletop(tb testing.TB) *stage.Snapshot {
	tb.Helper()
	sn := *tabletopOnce() // scenes are immutable; a test changes its own copy of the snapshot
	return &sn
}

var tabletopOnce = sync.OnceValue(func() *stage.Snapshot {
	rng := rand.New(rand.NewPCG(7, 11))
	real := tabletopReal()
	w := tabletopWorld()
	third := lookAt(r3.Vec{X: 1.25, Y: .35, Z: .75}, r3.Vec{X: .42, Y: 0, Z: .08}, r3.Vec{Z: 1})
	other := lookAt(r3.Vec{X: .5, Y: -.9, Z: .8}, r3.Vec{X: .45, Y: 0, Z: .05}, r3.Vec{Z: 1})
	wrist := real.Mul(geom.Pose{P: r3.Vec{X: -.12, Z: .07}, R: geom.FromAxes(r3.Vec{Y: -1}, r3.Unit(r3.Vec{X: -.35, Z: -1}))})
	in := sensor.FromFovy(640, 480, geom.Rad(45))
	sc := &perception.Scene{Seq: 4, At: testEpoch}
	var classes [][]perception.Class
	var cams []*perception.Camera
	for _, k := range []struct {
		name string
		pose geom.Pose
	}{{"third_person", third}, {"wrist", wrist}, {"other", other}} {
		if k.name == "wrist" {
			in = sensor.FromFovy(640, 480, geom.Rad(60))
		}
		c, cl := w.shoot(k.name, k.pose, in, true, .0008, rng)
		c.Frame.Stamp = testEpoch
		cams, classes = append(cams, c), append(classes, cl)
	}
	sc.Cloud = fuse(.003, cams, classes)
	sc.Cameras = cams[:2]
	st := robot.State{Jaw: robot.Jaw{Known: true, Aperture: .08, Open: true}}
	g := stage.Gripper{Pose: real, Open: true}
	return &stage.Snapshot{
		Face: stage.Face3D, Scene: sc, State: st, Real: g, Target: g, Aperture: .08, Now: testEpoch.Add(320 * time.Millisecond),
		Orbit: stage.Orbit{Target: r3.Vec{X: .45, Z: .08}, Distance: 1.05, Azimuth: math.Pi / 2, Elevation: geom.Rad(35)},
	}
})

// staged is sn with the target somewhere else and a verdict on it.
func staged(sn *stage.Snapshot, target geom.Pose, open bool, k stage.Check) *stage.Snapshot {
	c := *sn
	c.Target = stage.Gripper{Pose: target, Open: open}
	k.Staged = true
	c.Check = k
	return &c
}
