package safety

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/perception"
)

// check judges stops from a start in front of points.
func check(t *testing.T, change func(*Limits), mobile bool, pts []r3.Vec, from robot.State, stops ...stop) (*Refused, []string, float64) {
	t.Helper()
	k := newGantry(mobile)
	b := newBench(t, func(o *Options) {
		o.Kin = k
		o.Limits = DefaultLimits(k.Model())
		if change != nil {
			change(&o.Limits)
		}
	})
	warnings, hit, refused := b.guard.Check(path(k, from, stops...), sensed(t, pts...))
	d := math.NaN()
	if hit.Found {
		d = hit.Dist
	}
	var said []string
	for _, w := range warnings {
		said = append(said, w.Text)
		if !strings.Contains(w.Text, at(w.At)) { // the base stands at the origin
			t.Errorf("%q is marked at %v", w.Text, w.At)
		}
	}
	return refused, said, d
}

var t0 = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestClearanceAlongTheWholePath(t *testing.T) {
	floor := plate(0, 0, 0, 0.6)
	block := wall(0.3, 0, 0.4, 0.3) // from z 0.1 to 0.7
	for _, c := range []struct {
		name  string
		pts   []r3.Vec
		from  [3]float64
		stops []stop
		rule  string // empty: may move
		part  string // of the value
		warn  string // of a warning; empty: none
		near  float64
	}{
		{"nothing near", floor, [3]float64{0, 0, 0.5}, []stop{at3(0.2, 0.2, 0.4)}, "", "", "", math.NaN()},
		// The hand's end is 0.07 over the closure point: at z 0.02 it is 9 cm over the floor.
		{"above the floor", floor, [3]float64{0, 0, 0.5}, []stop{at3(0, 0, 0.02)}, "", "", "", 0.09},
		{"fingers touch", floor, [3]float64{0, 0, 0.3}, []stop{at3(0, 0, 0.001)}, "", "", "finger may touch", 0.071},
		{"hand into the floor", floor, [3]float64{0, 0, 0.3}, []stop{at3(0, 0, -0.065)}, RuleClearance, "hand comes to", "", 0},
		{"hand keeps 1 cm", floor, [3]float64{0, 0, 0.3}, []stop{at3(0, 0, -0.058)}, "", "", "finger", 0.012},
		{"arm into a wall", block, [3]float64{0, 0, 0.05}, []stop{at3(0.24, 0, 0.05)}, RuleClearance, "arm (forearm)", "", 0},
		{"through a wall and on", block, [3]float64{0, 0, 0.3}, []stop{at3(0.6, 0, 0.3)}, RuleClearance, "", "", 0},
		{"around it", block, [3]float64{0, 0, 0.3}, []stop{at3(0, 0.6, 0.3), at3(0.6, 0.6, 0.3)}, "", "", "", math.NaN()},
		{"out and back through it", block, [3]float64{0, 0, 0.3}, []stop{at3(0.5, 0, 0.3), at3(0, 0, 0.3)}, RuleClearance, "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, warns, near := check(t, nil, false, c.pts, restAt(t0, c.from[:]...), c.stops...)
			if got := ruleOf(r); got != c.rule || r != nil && !strings.Contains(r.Value, c.part) {
				t.Fatalf("got %v, want rule %q with %q", r, c.rule, c.part)
			}
			if all := strings.Join(warns, "; "); !strings.Contains(all, c.warn) || c.warn == "" && all != "" {
				t.Errorf("warnings %q, want %q", all, c.warn)
			}
			if c.rule == "" && !(math.Abs(near-c.near) < 0.003 || math.IsNaN(near) && math.IsNaN(c.near)) {
				t.Errorf("nearest at %.4f, want %.4f", near, c.near)
			}
		})
	}
}

func ruleOf(r *Refused) string {
	if r == nil {
		return ""
	}
	return r.Rule
}

// TestRobotInContactMayLeave: the hand starts 5 mm from a wall at x 0.1, inside its margin of 10 mm.
func TestRobotInContactMayLeave(t *testing.T) {
	pts := wall(0.1, 0, 0.6, 0.3)
	from := restAt(t0, 0.065, 0, 0.5)
	for _, c := range []struct {
		name  string
		stops []stop
		rule  string
	}{
		{"stay", []stop{at3(0.065, 0, 0.5)}, ""},
		{"leave", []stop{at3(-0.2, 0, 0.5)}, ""},
		{"slide along", []stop{at3(0.065, 0.1, 0.52)}, ""},
		{"one millimetre nearer", []stop{at3(0.066, 0, 0.5)}, ""},
		{"three millimetres nearer", []stop{at3(0.068, 0, 0.5)}, RuleClearance},
		{"leave and come back", []stop{at3(0, 0, 0.5), at3(0.065, 0, 0.5)}, RuleClearance},
		{"creep by steps", []stop{at3(0.0665, 0, 0.5), at3(0.068, 0, 0.5), at3(0.0695, 0, 0.5)}, RuleClearance},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			p := path(b.kin, from, c.stops...)
			for i := range p.Sweep { // the hand alone is judged here
				p.Sweep[i].Capsules = slices.Delete(p.Sweep[i].Capsules, 2, 3)
			}
			if _, _, r := b.guard.Check(p, sensed(t, pts...)); ruleOf(r) != c.rule {
				t.Errorf("got %v, want %q", r, c.rule)
			}
		})
	}
}

func TestNoiseAloneDoesNotRefuseAtExecute(t *testing.T) {
	b := newBench(t)
	p := path(b.kin, b.robot.State(), at3(0, 0, -0.056)) // the hand ends 14 mm over the floor
	for _, c := range []struct {
		z              float64 // of the floor
		check, recheck string
	}{{0, "", ""}, {0.006, RuleClearance, ""}, {0.013, RuleClearance, RuleClearance}} {
		sc := sensed(t, plate(0, 0, c.z, 0.3)...)
		_, _, a := b.guard.Check(p, sc)
		_, _, r := b.guard.Recheck(p, sc)
		if ruleOf(a) != c.check || ruleOf(r) != c.recheck {
			t.Errorf("floor at %.3f: Check %v, Recheck %v; want %q, %q", c.z, a, r, c.check, c.recheck)
		}
	}
}

func TestJointLimitWithMargin(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to float64
		rule     string
	}{
		{"inside", 0, 0.97, ""},
		{"into the margin", 0, 0.985, RuleJoint},
		{"measured a millionth past, back in", 1 + 1e-6, 0.5, ""},
		{"measured past, stays", 1.004, 1.004, ""},
		{"measured past, further out", 1 + 1e-6, 1 + 3e-6, RuleJoint},
		{"from inside the margin, further out", 0.985, 0.99, RuleJoint},
		{"goal 0.01 past the limit", 0, 1.01, RuleJoint},
		{"lower limit", 0, -0.99, RuleJoint},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, _ := check(t, func(l *Limits) { l.SlideMargin = 0.02 }, false, plate(0, 0, -0.5, 0.1), restAt(t0, 0, c.from, 0.5), at3(0, c.to, 0.5))
			if ruleOf(r) != c.rule {
				t.Fatalf("got %v, want %q", r, c.rule)
			}
			if c.rule == RuleJoint && !strings.HasPrefix(r.Value, "y at ") {
				t.Errorf("the refusal does not name the joint: %v", r)
			}
		})
	}
}

func TestBoxHoldsAlongThePath(t *testing.T) {
	limits := func(l *Limits) { l.ToolBox = &Box{X: Span{-0.5, 0.5}, Y: Span{-0.3, 0.3}, Z: Span{0.1, 0.8}} }
	for _, c := range []struct {
		name  string
		from  [3]float64
		stops []stop
		rule  string
	}{
		{"inside", [3]float64{0, 0, 0.5}, []stop{at3(0.4, 0.2, 0.2)}, ""},
		{"end outside", [3]float64{0, 0, 0.5}, []stop{at3(0, 0.31, 0.5)}, RuleBox},
		{"only the way outside", [3]float64{0, 0, 0.5}, []stop{at3(0, 0.4, 0.5), at3(0, 0, 0.4)}, RuleBox},
		{"from outside back in", [3]float64{0, 0.4, 0.5}, []stop{at3(0, 0.2, 0.5)}, ""},
		{"from outside further out", [3]float64{0, 0.4, 0.5}, []stop{at3(0, 0.45, 0.5)}, RuleBox},
		{"from outside in and out again", [3]float64{0, 0.4, 0.5}, []stop{at3(0, 0.2, 0.5), at3(0, 0.35, 0.5)}, RuleBox},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, _ := check(t, limits, false, plate(0, 0, -0.5, 0.1), restAt(t0, c.from[:]...), c.stops...)
			if ruleOf(r) != c.rule {
				t.Errorf("got %v, want %q", r, c.rule)
			}
		})
	}
}

// The advice of a box refusal is enough: it is counted from where the way is furthest out, not from its first sample
// outside.
func TestBoxRefusalSaysAllThatIsMissing(t *testing.T) {
	limits := func(l *Limits) { l.ToolBox = &Box{X: Span{-0.5, 0.5}, Y: Span{-0.3, 0.3}, Z: Span{0.1, 0.8}} }
	r, _, _ := check(t, limits, false, plate(0, 0, -0.5, 0.1), restAt(t0, 0, 0, 0.5), at3(0, 0.45, 0.5))
	if r == nil || r.Value != "gripper at y 0.450 m" || !strings.Contains(r.Next, "at least 0.150 m back along y") {
		t.Fatalf("got %v (%q)", r, r.Next)
	}
	if r, _, _ := check(t, limits, false, plate(0, 0, -0.5, 0.1), restAt(t0, 0, 0, 0.5), at3(0, 0.45-0.150, 0.5)); r != nil {
		t.Errorf("what the refusal asked for is refused too: %v", r)
	}
}

func TestMobileBase(t *testing.T) {
	limits := func(l *Limits) {
		l.KeepIn = [][2]float64{{-1, -1}, {1, -1}, {1, 1}, {0, 0.2}, {-1, 1}} // with a notch from above
		l.ToolBox = &Box{X: Span{-0.1, 0.1}, Y: Span{-0.1, 0.1}, Z: Span{0.3, 0.7}}
	}
	go1 := func(x, y, yaw float64) stop {
		return stop{q: [3]float64{0, 0, 0.5}, base: geom.SE2{X: x, Y: y, Yaw: yaw}}
	}
	// Floor points everywhere, a low box of 0.2 m height 0.5 m behind the base's back end.
	pts := append(plate(-0.5, 0, 0, 0.8), wall(-1.65, 0, 0.11, 0.1)...)
	for _, c := range []struct {
		name  string
		stops []stop
		rule  string
	}{
		{"over its floor", []stop{go1(0.5, 0, 0)}, ""}, // the box is in the base frame: it goes along
		{"turn", []stop{go1(0, 0, 1)}, ""},
		{"out of the polygon", []stop{go1(1.1, 0, 0)}, RuleKeepIn},
		{"into the notch", []stop{go1(0, 0.3, 0)}, RuleKeepIn},
		{"back into the low box", []stop{go1(-0.5, 0, 0)}, RuleClearance},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, _ := check(t, limits, true, pts, restAt(t0, 0, 0, 0.5), c.stops...)
			if ruleOf(r) != c.rule {
				t.Errorf("got %v, want %q", r, c.rule)
			}
		})
	}
}

func TestSpeeds(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Limits)
		rule   string
	}{
		{"default", nil, ""}, // a leg of 0.15 m/s on average peaks at 0.225
		{"scaled joints", func(l *Limits) { l.SpeedScale = 0.4 }, RuleSpeed},
		{"tool", func(l *Limits) { l.ToolSpeed = 0.2 }, RuleSpeed},
	} {
		if r, _, _ := check(t, c.change, false, plate(0, 0, -0.5, 0.1), restAt(t0, 0, 0, 0.5), at3(0.4, 0, 0.5)); ruleOf(r) != c.rule {
			t.Errorf("%s: got %v, want %q", c.name, r, c.rule)
		}
	}
	slow := func(l *Limits) { l.BaseSpeed = 0.2 }
	if r, _, _ := check(t, slow, true, plate(0, 0, -0.5, 0.1), restAt(t0, 0, 0, 0.5), stop{q: [3]float64{0, 0, 0.5}, base: geom.SE2{X: 0.4}}); ruleOf(r) != RuleSpeed {
		t.Errorf("base: got %v", r)
	}
}

// TestFastestAgainstSampling compares with a fine walk along the same cubic.
func TestFastestAgainstSampling(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		p0, v0, p1, v1, h := rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), 0.1+rng.Float64()
		tr := robot.Trajectory{Points: []robot.Point{{Q: []float64{p0}, QD: []float64{v0}}, {T: time.Duration(h * 1e9), Q: []float64{p1}, QD: []float64{v1}}}}
		var speed, acc, last float64
		const n = 4000
		for i := range n {
			v := tr.At(time.Duration(h * 1e9 * float64(i) / n)).QD[0]
			speed = max(speed, math.Abs(v))
			if i > 0 {
				acc = max(acc, math.Abs(v-last)/(h/n))
			}
			last = v
		}
		s, a := fastest(p0, v0, p1, v1, h)
		if math.Abs(s-speed) > 0.01*(1+speed) || math.Abs(a-acc) > 0.02*(1+acc) {
			t.Fatalf("cubic %v %v %v %v in %v: got %v %v, sampled %v %v", p0, v0, p1, v1, h, s, a, speed, acc)
		}
	}
}

// TestMalformedPlanNeverPasses breaks a good plan in every place that the guard relies on.
func TestMalformedPlanNeverPasses(t *testing.T) {
	b := newBench(t)
	nan := math.NaN()
	for name, spoil := range map[string]func(*robot.Plan){
		"NaN joint":           func(p *robot.Plan) { p.Traj.Points[1].Q = []float64{nan, 0, 0.5} },
		"NaN speed":           func(p *robot.Plan) { p.Traj.Points[1].QD = []float64{0, nan, 0} },
		"short knot":          func(p *robot.Plan) { p.Traj.Points[1].Q = []float64{0} },
		"base of a fixed arm": func(p *robot.Plan) { p.Traj.Points[1].Base.X = 0.1 },
		"empty":               func(p *robot.Plan) { p.Traj.Points, p.Sweep = nil, nil },
		"times":               func(p *robot.Plan) { p.Traj.Points[1].T = 0 },
		"starts elsewhere":    func(p *robot.Plan) { p.Traj.Points[0].Q = []float64{0.2, 0, 0.5} },
		"no sweep":            func(p *robot.Plan) { p.Sweep = nil },
		"sweep ends early":    func(p *robot.Plan) { p.Sweep = p.Sweep[:len(p.Sweep)-2] },
		"sweep starts late":   func(p *robot.Plan) { p.Sweep = p.Sweep[2:] },
		"sweep jumps":         func(p *robot.Plan) { p.Sweep = append(p.Sweep[:3:3], p.Sweep[len(p.Sweep)-3:]...) },
		"sweep of another":    func(p *robot.Plan) { p.Sweep[4].Q = []float64{0.3, 0, 0.5} },
		"sweep without robot": func(p *robot.Plan) { p.Sweep[4].Capsules = nil },
		"sweep loses a link":  func(p *robot.Plan) { p.Sweep[4].Capsules = p.Sweep[4].Capsules[:2] },
		"NaN capsule":         func(p *robot.Plan) { p.Sweep[4].Capsules[1].A.X = nan },
		"NaN tool":            func(p *robot.Plan) { p.Sweep[4].Tool.P.X = nan },
		"state without base":  func(p *robot.Plan) { p.From.HasBase = false },
		"NaN in the base":     func(p *robot.Plan) { p.Sweep[4].Base.X = nan },
		"sample times":        func(p *robot.Plan) { p.Sweep[4].T = p.Sweep[3].T },
	} {
		p := b.plan()
		spoil(&p)
		if _, _, r := b.guard.Check(p, b.eyes.sc); ruleOf(r) != RulePlan {
			t.Errorf("%s: Check says %v", name, r)
		}
		if _, err := b.guard.Go(t.Context(), p); err == nil {
			t.Errorf("%s: Go let it through", name)
		}
	}
	if b.robot.moves() != 0 {
		t.Errorf("%d malformed plans reached the robot", b.robot.moves())
	}
	if _, _, r := b.guard.Check(b.plan(), b.eyes.sc); r != nil {
		t.Errorf("the plan that was not spoilt is refused: %v", r)
	}
	for _, sc := range []*perception.Scene{nil, {}} {
		if _, _, r := b.guard.Check(b.plan(), sc); ruleOf(r) != RuleScene {
			t.Errorf("scene %v: got %v", sc, r)
		}
	}
}

// TestSweepThatIsNotTheRobots: a swept volume that is whole and smooth, and yet not that of the robot along its
// trajectory, reaches no motor.
func TestSweepThatIsNotTheRobots(t *testing.T) {
	for name, spoil := range map[string]func(s *robot.Swept){
		"all of it elsewhere": func(s *robot.Swept) {
			for k := range s.Capsules {
				s.Capsules[k].A.Z, s.Capsules[k].B.Z = s.Capsules[k].A.Z+0.02, s.Capsules[k].B.Z+0.02
			}
		},
		"thinner":             func(s *robot.Swept) { s.Capsules[2].R -= 0.01 },
		"of NaN thickness":    func(s *robot.Swept) { s.Capsules[2].R = math.NaN() },
		"an arm for a finger": func(s *robot.Swept) { s.Capsules[2].Class = robot.ClassFinger },
		"without the arm":     func(s *robot.Swept) { s.Capsules = s.Capsules[:2] },
		"gripper elsewhere":   func(s *robot.Swept) { s.Tool.P.Y += 0.01 },
	} {
		b := newBench(t)
		p := b.plan()
		for i := range p.Sweep {
			spoil(&p.Sweep[i])
		}
		if _, err := b.guard.Go(t.Context(), p); refusal(err) != RulePlan || b.robot.moves() != 0 {
			t.Errorf("%s: %v, %d moves", name, err, b.robot.moves())
		}
	}
	b := newBench(t)
	p := b.plan() // fingers that close meanwhile, and what is held beside the robot, are no faults
	for i := range p.Sweep {
		p.Sweep[i].Capsules[0].R += 0.02
		p.Sweep[i].Capsules = append(p.Sweep[i].Capsules, robot.LinkCapsule{Link: "cup", Class: robot.ClassHeld, Capsule: p.Sweep[i].Capsules[0].Capsule})
	}
	if _, err := b.guard.Go(t.Context(), p); err != nil {
		t.Error(err)
	}
}

// TestHeldObjectIsCarried: what is held is 20 cm long, and hangs into the table on the way.
func TestHeldObjectIsCarried(t *testing.T) {
	b := newBench(t)
	sc := *sensed(t, plate(0, 0, 0, 0.4)...)
	p := path(b.kin, restAt(t0, 0, 0, 0.5), at3(0, 0, 0.1))
	if w, _, r := b.guard.Check(p, &sc); r != nil || len(w) != 0 {
		t.Fatalf("empty hand: %v %v", w, r)
	}
	sc.HasHeld, sc.Held = true, geom.Capsule{A: r3.Vec{X: 0}, B: r3.Vec{X: 0.15}, R: 0.01} // along the approach: down
	w, _, r := b.guard.Check(p, &sc)
	if r != nil || len(w) != 1 || !strings.HasPrefix(w[0].Text, "held object") {
		t.Errorf("got %v, %v; want one warning of the held object", w, r)
	}
}

func TestLimitsAreChecked(t *testing.T) {
	good := DefaultLimits(newGantry(true).Model())
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Limits){
		"speed_scale":    func(l *Limits) { l.SpeedScale = 0 },
		"tool_speed":     func(l *Limits) { l.ToolSpeed = math.NaN() },
		"clearance.hand": func(l *Limits) { l.Clearance.Hand = math.Inf(1) },
		"motion":         func(l *Limits) { l.Motion = 31 * time.Second },
		"state_age":      func(l *Limits) { l.StateAge = time.Second },
		"tool_box.y":     func(l *Limits) { l.ToolBox = &Box{X: Span{0, 1}, Y: Span{1, 0}, Z: Span{0, 1}} },
		"keep_in":        func(l *Limits) { l.KeepIn = [][2]float64{{0, 0}, {1, 1}} },
	} {
		l := good
		change(&l)
		if err := l.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// TestEveryLimitIsANumber: no limit, and no corner of a box or polygon, passes as NaN, infinite or less than nothing.
func TestEveryLimitIsANumber(t *testing.T) {
	full := func() Limits {
		l := DefaultLimits(newGantry(true).Model())
		l.SlideMargin = 0.01
		l.ToolBox = &Box{X: Span{-1, 1}, Y: Span{-1, 1}, Z: Span{-1, 1}}
		l.KeepIn = [][2]float64{{-1, -1}, {1, -1}, {0, 1}}
		return l
	}
	good := full()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	n := 0
	var each func(at reflect.Value, f func(reflect.Value))
	each = func(at reflect.Value, f func(reflect.Value)) {
		switch at.Kind() {
		case reflect.Float64, reflect.Int64:
			f(at)
		case reflect.Pointer:
			each(at.Elem(), f)
		case reflect.Struct:
			for i := range at.NumField() {
				each(at.Field(i), f)
			}
		case reflect.Array, reflect.Slice:
			for i := range at.Len() {
				each(at.Index(i), f)
			}
		default:
			t.Fatalf("a limit of kind %v", at.Kind())
		}
	}
	count := 0
	each(reflect.ValueOf(&good), func(reflect.Value) { count++ })
	for k := range count {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e12} {
			l, i := full(), 0
			each(reflect.ValueOf(&l), func(v reflect.Value) {
				if i == k && v.Kind() == reflect.Float64 {
					v.SetFloat(bad)
				} else if i == k {
					v.SetInt(-1)
				}
				i++
			})
			if err := l.Validate(); err == nil {
				t.Errorf("limit %d passes as %v: %+v", k, bad, l)
			}
			n++
		}
	}
	if n < 100 {
		t.Errorf("only %d spoilt limits", n)
	}
}
