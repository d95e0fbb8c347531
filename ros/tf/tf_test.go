package tf_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/tf2_msgs"
	"viad/ros/tf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Unix(1_700_000_000, 0)

func at(s float64) time.Time { return epoch.Add(time.Duration(s * 1e9)) }

// axisAngle is a rotation both ways: as the quaternion under test, and as a matrix by Rodrigues' formula.
func axisAngle(axis r3.Vec, angle float64) (quat.Number, *mat.Dense) {
	u := r3.Unit(axis)
	s, c := math.Sincos(angle / 2)
	q := quat.Number{Real: c, Imag: s * u.X, Jmag: s * u.Y, Kmag: s * u.Z}
	k := mat.NewDense(3, 3, []float64{0, -u.Z, u.Y, u.Z, 0, -u.X, -u.Y, u.X, 0})
	var kk, m mat.Dense
	kk.Mul(k, k)
	kk.Scale(1-math.Cos(angle), &kk)
	m.Scale(math.Sin(angle), k)
	m.Add(&m, &kk)
	for i := range 3 {
		m.Set(i, i, m.At(i, i)+1)
	}
	return q, &m
}

// homogeneous is a 4x4 matrix.
func homogeneous(r *mat.Dense, t r3.Vec) *mat.Dense {
	m := mat.NewDense(4, 4, nil)
	m.Slice(0, 3, 0, 3).(*mat.Dense).Copy(r)
	m.Set(0, 3, t.X)
	m.Set(1, 3, t.Y)
	m.Set(2, 3, t.Z)
	m.Set(3, 3, 1)
	return m
}

func apply(m mat.Matrix, p r3.Vec) r3.Vec {
	v := mat.NewVecDense(4, []float64{p.X, p.Y, p.Z, 1})
	var out mat.VecDense
	out.MulVec(m, v)
	return r3.Vec{X: out.AtVec(0), Y: out.AtVec(1), Z: out.AtVec(2)}
}

func near(a, b r3.Vec, tol float64) bool { return r3.Norm(r3.Sub(a, b)) <= tol }

// A tree of random links against products and inverses of 4x4 matrices.
func TestTreeAgainstMatrices(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	vec := func() r3.Vec { return r3.Vec{X: rnd.NormFloat64(), Y: rnd.NormFloat64(), Z: rnd.NormFloat64()} }
	b := tf.New(tf.Options{})
	inRoot := map[string]*mat.Dense{"f0": homogeneous(mat.DenseCopyOf(mat.NewDiagDense(3, []float64{1, 1, 1})), r3.Vec{})}
	names := []string{"f0"}
	for i := 1; i < 30; i++ {
		parent, child := names[rnd.IntN(len(names))], "f"+string(rune('0'+i/10))+string(rune('0'+i%10))
		q, m := axisAngle(vec(), rnd.Float64()*6-3)
		tr := vec()
		if err := b.Set(tf.Transform{Parent: parent, Child: "/" + child, Time: at(1), Translation: tr, Rotation: q, Static: i%3 == 0}); err != nil {
			t.Fatal(err)
		}
		var sum mat.Dense
		sum.Mul(inRoot[parent], homogeneous(m, tr))
		inRoot[child] = &sum
		names = append(names, child)
	}
	for range 300 {
		target, source := names[rnd.IntN(len(names))], names[rnd.IntN(len(names))]
		got, err := b.Lookup(target, source, at(1))
		if err != nil {
			t.Fatal(err)
		}
		var inv, want mat.Dense
		if err := inv.Inverse(inRoot[target]); err != nil {
			t.Fatal(err)
		}
		want.Mul(&inv, inRoot[source])
		for _, p := range []r3.Vec{{}, vec(), vec()} {
			if w := apply(&want, p); !near(got.Point(p), w, 1e-9) {
				t.Fatalf("%s in %s: %v goes to %v, by matrices to %v", source, target, p, got.Point(p), w)
			}
			if back := got.Inverse().Point(got.Point(p)); !near(back, p, 1e-9) {
				t.Fatalf("there and back: %v is %v", p, back)
			}
		}
		if got.Parent != target || got.Child != source {
			t.Fatalf("asked for %s in %s, got %s in %s", source, target, got.Child, got.Parent)
		}
	}
}

// Half of the way of a turn about one axis is half of the angle about it; also where the quaternions have other signs.
func TestInterpolation(t *testing.T) {
	axis := r3.Vec{X: 1, Y: -2, Z: 0.5}
	for _, c := range []struct{ from, to, flip float64 }{{0.1, 1.3, 1}, {0.1, 1.3, -1}, {-1.5, 1.5, 1}, {0.3, 0.3 + 1e-7, 1}, {1, 1, -1}} {
		b := tf.New(tf.Options{})
		q0, _ := axisAngle(axis, c.from)
		q1, _ := axisAngle(axis, c.to)
		for i, x := range []tf.Transform{
			{Time: at(1), Rotation: q0, Translation: r3.Vec{X: 1}},
			{Time: at(3), Rotation: quat.Scale(c.flip, q1), Translation: r3.Vec{X: 2, Y: 4}},
		} {
			x.Parent, x.Child = "a", "b"
			if err := b.Set(x); err != nil {
				t.Fatal(i, err)
			}
		}
		for _, f := range []float64{0, 0.25, 0.5, 0.9, 1} {
			got, err := b.Lookup("a", "b", at(1+2*f))
			if err != nil {
				t.Fatal(err)
			}
			_, m := axisAngle(axis, c.from+f*(c.to-c.from))
			p := r3.Vec{X: 0.3, Y: 1, Z: -2}
			if want := apply(homogeneous(m, r3.Vec{X: 1 + f, Y: 4 * f}), p); !near(got.Point(p), want, 1e-9) {
				t.Errorf("%+v at %v: %v goes to %v, want %v", c, f, p, got.Point(p), want)
			}
		}
	}
}

func link(parent, child string, s float64) tf.Transform {
	return tf.Transform{Parent: parent, Child: child, Time: at(s), Rotation: quat.Number{Real: 1}, Translation: r3.Vec{X: s}}
}

func set(t *testing.T, b *tf.Buffer, links ...tf.Transform) {
	t.Helper()
	for _, l := range links {
		if err := b.Set(l); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTimes(t *testing.T) {
	b := tf.New(tf.Options{Beyond: 50 * time.Millisecond})
	set(t, b, link("a", "b", 1), link("a", "b", 2), link("b", "c", 1.5), link("b", "c", 2.5))
	if got, err := b.Lookup("a", "c", time.Time{}); err != nil || !got.Time.Equal(at(2)) || math.Abs(got.Translation.X-4) > 1e-9 {
		t.Errorf("the newest that all links have is at 2 s and x = 2+2: %+v, %v", got, err)
	}
	o := (*tf.OutOfTime)(nil)
	if _, err := b.Lookup("a", "c", at(1.2)); !errors.As(err, &o) || o.Child != "c" || !strings.Contains(err.Error(), "300ms older") {
		t.Errorf("0.3 s before what is known: %v", err)
	}
	if _, err := b.Lookup("a", "c", at(2.2)); !errors.As(err, &o) || o.Child != "b" || !strings.Contains(err.Error(), "200ms newer") {
		t.Errorf("0.2 s beyond what is known: %v", err)
	}
	if got, err := b.Lookup("a", "c", at(2.04)); err != nil || math.Abs(got.Translation.X-4.04) > 1e-9 {
		t.Errorf("within what may lie beyond, the newest holds: %+v, %v", got, err)
	}
	for s := 3.0; s < 20; s++ {
		set(t, b, link("a", "b", s))
	}
	if _, err := b.Lookup("a", "b", at(8)); !errors.As(err, &o) || !o.From.Equal(at(9)) {
		t.Errorf("history is 10 s: %v, from %v", err, o.From)
	}
	old := 0
	for range 10 {
		if b.Set(link("a", "b", 2)) != nil {
			old++
		}
	}
	if got, err := b.Lookup("a", "b", time.Time{}); old != 9 || err != nil || !got.Time.Equal(at(2)) {
		t.Errorf("a clock that was set back: %d were refused, then %+v, %v", old, got, err)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	b := tf.New(tf.Options{})
	set(t, b, link("map", "odom", 1), link("base", "arm", 1), link("arm", "hand", 1))
	u := (*tf.Unknown)(nil)
	for _, c := range []struct{ target, source, want string }{
		{"map", "hand", "nobody publishes the link between base and map"},
		{"map", "nose", "nobody has published a frame nose"},
		{"nose", "map", "nobody has published a frame nose"},
	} {
		if _, err := b.Lookup(c.target, c.source, at(1)); !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %s: %v, want %q", c.source, c.target, err, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	b := tf.New(tf.Options{})
	set(t, b, link("a", "b", 1), link("b", "c", 1))
	for what, x := range map[string]tf.Transform{
		"loop":            link("c", "a", 1),
		"own parent":      link("c", "c", 1),
		"no name":         link("", "d", 1),
		"none: transl":    {Parent: "a", Child: "d", Rotation: quat.Number{Real: 1}, Translation: r3.Vec{Y: math.NaN()}},
		"none: translati": {Parent: "a", Child: "d", Rotation: quat.Number{Real: math.Inf(1)}},
		"unit quaternion": {Parent: "a", Child: "d", Rotation: quat.Number{Real: 0.9}},
		"length is 0":     {Parent: "a", Child: "d"},
	} {
		if err := b.Set(x); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := len(b.Frames()); n != 2 {
		t.Errorf("%d links after refused ones, want 2", n)
	}
}

func TestListen(t *testing.T) {
	open := func(name string, d cdr.Distro) *dds.Node {
		n, err := dds.Open(dds.Config{Node: name, Domain: 43, Localhost: true, Distro: d})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		return n
	}
	robot, here := open("robot", cdr.Humble), open("viad", cdr.DistroUnknown)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	static, err := ros.Advertise[tf2_msgs.TFMessage](robot, "/tf_static", ros.Latched())
	if err != nil {
		t.Fatal(err)
	}
	if err := static.Send(ctx, &tf2_msgs.TFMessage{Transforms: []geometry_msgs.TransformStamped{link("hand", "camera", 2).Message()}}); err != nil {
		t.Fatal(err)
	}
	b, refused := tf.New(tf.Options{}), make(chan error, 8)
	l, err := b.Listen(here, func(err error) {
		select {
		case refused <- err:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	moving, err := ros.Advertise[tf2_msgs.TFMessage](robot, "/tf", ros.Default())
	if err != nil {
		t.Fatal(err)
	}
	bad := link("base", "hand", 1)
	bad.Rotation.Real = 0
	said := make(chan error, 1)
	sending, enough := context.WithCancel(ctx)
	defer enough()
	go func() { // again and again, as robots do: what is best effort can be lost
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for sending.Err() == nil {
			if err := moving.Send(ctx, &tf2_msgs.TFMessage{Transforms: []geometry_msgs.TransformStamped{bad.Message(), link("base", "hand", 5).Message()}}); err != nil {
				said <- err
				return
			}
			<-tick.C
		}
		said <- nil
	}()
	got, err := b.Wait(ctx, "base", "camera", at(5))
	if err != nil || got.Translation.X != 7 {
		t.Errorf("camera in base: %+v, %v; want x = 5+2", got, err)
	}
	enough()
	if err := <-said; err != nil {
		t.Error(err)
	}
	select {
	case err := <-refused:
		if !strings.Contains(err.Error(), "unit quaternion") {
			t.Errorf("refused: %v", err)
		}
	case <-ctx.Done():
		t.Error("a rotation that is none was not refused")
	}
	short, stop := context.WithTimeout(ctx, 20*time.Millisecond)
	defer stop()
	if _, err := b.Wait(short, "base", "camera", at(6)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "newer") {
		t.Errorf("waiting in vain: %v", err)
	}
}
