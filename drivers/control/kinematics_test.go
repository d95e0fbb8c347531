package control

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

func kinOf(t testing.TB, d Description) *Kinematics {
	t.Helper()
	k, err := NewKinematics(d)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func robots(t testing.TB) map[string]*Kinematics {
	return map[string]*Kinematics{"fr3": kinOf(t, FR3()), "panda": kinOf(t, Panda()), "stretch4": kinOf(t, Stretch4())}
}

func nearVec(t *testing.T, what string, got, want r3.Vec, tol float64) {
	t.Helper()
	if !(r3.Norm(r3.Sub(got, want)) <= tol) {
		t.Errorf("%s = %.6f, want %.6f within %g", what, got, want, tol)
	}
}

func nearRot(t *testing.T, what string, got quat.Number, x, y, z, w, tol float64) {
	t.Helper()
	want := geom.Normalize(quat.Number{Real: w, Imag: x, Jmag: y, Kmag: z})
	if a := (geom.Pose{R: got}).Angle(geom.Pose{R: want}); !(a <= tol) {
		t.Errorf("%s = %.6f, want %.6f: %.2g rad apart", what, got, want, a)
	}
}

// The vectors of robots.md 5.3, computed there from the DH table: hand TCP and flange. The flange is the
// hand turned back by 45 degrees.
func TestFrankaVectors(t *testing.T) {
	for _, d := range []Description{FR3(), Panda()} {
		k := kinOf(t, d)
		hand := func(q []float64) geom.Pose {
			p, ok := k.Link("hand", geom.SE2{}, q, 0.04)
			if !ok {
				t.Fatal("no hand link")
			}
			return p
		}
		flange := func(q []float64) geom.Pose { return hand(q).Mul(geom.Pose{R: geom.RotZ(math.Pi / 4)}) }
		zero := make([]float64, 7)
		nearVec(t, "flange at zero", flange(zero).P, r3.Vec{X: 0.088, Z: 0.926}, 1e-9)
		nearRot(t, "flange at zero", flange(zero).R, 1, 0, 0, 0, 1e-9)

		q := ready[:]
		nearVec(t, "flange at ready", flange(q).P, r3.Vec{X: 0.30689, Z: 0.59028}, 1e-5)
		nearRot(t, "flange at ready", flange(q).R, 0.92388, -0.38268, 0, 0, 1e-5)
		nearVec(t, "tool at ready", k.Tool(geom.SE2{}, q).P, r3.Vec{X: 0.306891, Z: 0.486882}, 1e-6)

		q = []float64{.1, -.3, .2, -2.0, .4, 1.8, -.5}
		nearVec(t, "flange", flange(q).P, r3.Vec{X: .44348, Y: .18337, Z: .59545}, 1e-5)
		nearRot(t, "flange", flange(q).R, -.92158, -.34743, -.06435, .16072, 2e-5)
		nearVec(t, "tool", k.Tool(geom.SE2{}, q).P, r3.Vec{X: .44420, Y: .21862, Z: .49824}, 1e-5)
		nearRot(t, "hand", hand(q).R, -.71848, -.67366, -.12096, .12386, 2e-5)
	}
}

// The tool convention: x = z_hand, y = -y_hand, z = x_hand; at ready the approach is down and +opening +Y.
func TestFrankaToolAxes(t *testing.T) {
	k := kinOf(t, FR3())
	p := k.Tool(geom.SE2{}, ready[:])
	nearVec(t, "approach", p.X(), r3.Vec{Z: -1}, 1e-9)
	nearVec(t, "opening", p.Y(), r3.Vec{Y: 1}, 1e-9)
	q := []float64{.1, -.3, .2, -2.0, .4, 1.8, -.5}
	h, _ := k.Link("hand", geom.SE2{}, q, 0)
	p = k.Tool(geom.SE2{}, q)
	nearVec(t, "x", p.X(), h.Z(), 1e-9)
	nearVec(t, "y", p.Y(), r3.Scale(-1, h.Y()), 1e-9)
	nearVec(t, "z", p.Z(), h.X(), 1e-9)
	if k.WristMount() != 0 {
		t.Errorf("a fixed arm has no wrist mount, got %v", k.WristMount())
	}
}

// The closed form of robots.md 5.1 with PG4's reach, in base_footprint (28 mm under base_link).
func stretchClosed(q []float64) r3.Vec {
	const reach, b = .04222 + .0186 + .16686, -.08742
	l, e, psi, th := q[0], q[1], q[2], q[3]
	return r3.Vec{
		X: .1709 + e + reach*math.Cos(th)*math.Cos(psi) - b*math.Sin(psi),
		Y: reach*math.Cos(th)*math.Sin(psi) + b*math.Cos(psi),
		Z: .15022 + .028 + l - reach*math.Sin(th),
	}
}

func TestStretchVectors(t *testing.T) {
	k := kinOf(t, Stretch4())
	up := r3.Vec{Z: 0.028}
	// Contract section 8, "Stretch check", in base_link.
	nearVec(t, "neutral", k.Tool(geom.SE2{}, []float64{.6, .2, 0, 0, 0}).P, r3.Add(up, r3.Vec{X: .59858, Y: -.08742, Z: .75022}), 1e-5)
	nearVec(t, "pitch -30", k.Tool(geom.SE2{}, []float64{.6, .2, 0, -math.Pi / 6, 0}).P, r3.Add(up, r3.Vec{X: .568077, Y: -.08742, Z: .86406}), 1e-5)
	// robots.md's SG4 vectors shortened by the difference of the closure points along the approach.
	const shorter = .23496 - .16686
	for _, c := range []struct {
		q []float64
		p r3.Vec
		r [4]float64
	}{
		{[]float64{0, 0, 0, 0, 0}, r3.Vec{X: .46668, Y: -.08742, Z: .15022}, [4]float64{0, 0, 0, 1}},
		{[]float64{.6, .3, 0, 0, 0}, r3.Vec{X: .76668, Y: -.08742, Z: .75022}, [4]float64{0, 0, 0, 1}},
		{[]float64{.8, .2, .5, .3, -.4}, r3.Vec{X: .66079, Y: .05875, Z: .86281}, [4]float64{-.22657, .09331, .26852, .93159}},
		{[]float64{.15, 0, 3.14, 0, 0}, r3.Vec{X: -.12474, Y: .08789, Z: .30022}, [4]float64{0, 0, 1, .0008}},
	} {
		p := k.Tool(geom.SE2{}, c.q)
		nearVec(t, "SG4 point", r3.Add(p.P, r3.Scale(shorter, p.X())), r3.Add(up, c.p), 1.5e-5)
		nearRot(t, "tool", p.R, c.r[0], c.r[1], c.r[2], c.r[3], 2e-5)
	}
	if d := k.WristMount() - 0.22768; math.Abs(d) > 1e-9 {
		t.Errorf("wrist mount %v, want 0.22768", k.WristMount())
	}
}

func TestStretchClosedForm(t *testing.T) {
	k := kinOf(t, Stretch4())
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		q := randomQ(k, r, 0)
		nearVec(t, "tool", k.Tool(geom.SE2{}, q).P, stretchClosed(q), 1e-9)
		want := geom.RPY(q[4], q[3], q[2])
		nearRot(t, "tool", k.Tool(geom.SE2{}, q).R, want.Imag, want.Jmag, want.Kmag, want.Real, 1e-7)
	}
	base := geom.SE2{X: 1, Y: 2, Yaw: math.Pi / 2}
	q := []float64{.5, .1, .2, .3, .4}
	c := stretchClosed(q)
	nearVec(t, "on a turned base", k.Tool(base, q).P, r3.Vec{X: 1 - c.Y, Y: 2 + c.X, Z: c.Z}, 1e-9)
}

func randomQ(k *Kinematics, r *rand.Rand, margin float64) []float64 {
	q := make([]float64, len(k.Model().Joints))
	for i, j := range k.Model().Joints {
		q[i] = j.Min + margin + r.Float64()*(j.Max-j.Min-2*margin)
	}
	return q
}

// The chain and the tree of links are two ways to the tool; limits are those of robots.md 3.7 and 5.1.
func TestChainEqualsTree(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for name, k := range robots(t) {
		for range 300 {
			q := randomQ(k, r, 0)
			base := geom.SE2{X: r.Float64(), Y: -r.Float64(), Yaw: r.Float64()}
			link, _ := k.Link("tool", base, q, 0.03)
			p := k.Tool(base, q)
			if p.Dist(link) > 1e-12 || p.Angle(link) > 1e-7 {
				t.Fatalf("%s: chain %v, tree %v", name, p, link)
			}
		}
	}
}

// Columns of the Jacobian against central differences of the tool pose.
func TestJacobian(t *testing.T) {
	const h = 1e-6
	r := rand.New(rand.NewPCG(9, 10))
	for name, k := range robots(t) {
		for range 100 {
			q, base := randomQ(k, r, 0.01), geom.SE2{X: 1, Yaw: r.Float64() * 6}
			v, w := k.Jacobian(base, q)
			for i := range q {
				a, b := append([]float64(nil), q...), append([]float64(nil), q...)
				a[i], b[i] = q[i]-h, q[i]+h
				pa, pb := k.Tool(base, a), k.Tool(base, b)
				nearVec(t, name+" translation", v[i], r3.Scale(1/(2*h), r3.Sub(pb.P, pa.P)), 1e-7)
				turn := geom.RotVec(quat.Mul(pb.R, quat.Conj(pa.R)))
				nearVec(t, name+" rotation", w[i], r3.Scale(1/(2*h), turn), 1e-6)
			}
		}
	}
}

func TestWrongLength(t *testing.T) {
	k := kinOf(t, FR3())
	if k.Tool(geom.SE2{}, []float64{1, 2}).Finite() {
		t.Error("a short q gives a pose")
	}
	if _, ok := k.Link("hand", geom.SE2{}, nil, 0); ok {
		t.Error("no q gives a link pose")
	}
	if _, ok := k.Link("nose", geom.SE2{}, ready[:], 0); ok {
		t.Error("an unknown link has a pose")
	}
	if k.Capsules(geom.SE2{}, nil, 0) != nil {
		t.Error("no q gives capsules")
	}
}

// Fingers follow the aperture: pad faces are half of it to each side of the closure point.
func TestFingersFollowAperture(t *testing.T) {
	for name, l := range map[string][2]string{"fr3": {"left_finger", "right_finger"}, "stretch4": {"finger_left", "finger_right"}} {
		k := robots(t)[name]
		q := k.Description().Home
		for _, a := range []float64{0, 0.03, 0.08} {
			left, _ := k.Link(l[0], geom.SE2{}, q, a)
			right, _ := k.Link(l[1], geom.SE2{}, q, a)
			if d := left.Dist(right); math.Abs(d-a) > 1e-9 {
				t.Errorf("%s: fingers %v apart at aperture %v", name, d, a)
			}
			tool := k.Tool(geom.SE2{}, q)
			along := math.Abs(r3.Dot(r3.Sub(left.P, right.P), tool.Y()))
			if math.Abs(along-a) > 1e-9 {
				t.Errorf("%s: fingers open across the opening line: %v of %v", name, along, a)
			}
		}
	}
}
