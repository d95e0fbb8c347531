package robot

import (
	"math"
	"strings"
	"testing"
	"time"

	"viad/drivers/geom"
)

func twoJoints() *Model {
	return &Model{
		Name: "two joints", Mobile: true,
		Joints: []Joint{
			{Name: "slide", Prismatic: true, Min: 0, Max: 1, Vel: 0.5},
			{Name: "turn", Min: -2, Max: 2, Vel: 2},
		},
	}
}

func stateAt(q ...float64) State {
	return State{Q: q, QD: make([]float64, len(q)), HasBase: true, Jaw: Jaw{Known: true}}
}

// ramp moves slide from .5 to .6 and turn from 0 to .2 in a second, base x by .1; the cubic of rest to rest
// is 3s^2 - 2s^3, whose speed is 6s - 6s^2.
func ramp() Trajectory {
	var t Trajectory
	for i := range 11 {
		s := float64(i) / 10
		p, v := 3*s*s-2*s*s*s, 6*s-6*s*s
		t.Points = append(t.Points, Point{
			T: time.Duration(i) * 100 * time.Millisecond,
			Q: []float64{0.5 + 0.1*p, 0.2 * p}, QD: []float64{0.1 * v, 0.2 * v},
			Base: geom.SE2{X: 0.1 * p}, BaseV: geom.SE2{X: 0.1 * v},
		})
	}
	return t
}

// A cubic is interpolated exactly; outside its time the trajectory stands at its ends.
func TestTrajectoryAt(t *testing.T) {
	tr := ramp()
	for _, s := range []float64{0, 0.03, 0.1, 0.333, 0.77, 0.999} {
		p := tr.At(time.Duration(s * 1e9))
		pos, vel := 3*s*s-2*s*s*s, 6*s-6*s*s
		for _, c := range [][2]float64{
			{p.Q[0], 0.5 + 0.1*pos},
			{p.QD[0], 0.1 * vel},
			{p.Q[1], 0.2 * pos},
			{p.QD[1], 0.2 * vel},
			{p.Base.X, 0.1 * pos},
			{p.BaseV.X, 0.1 * vel},
		} {
			if math.Abs(c[0]-c[1]) > 1e-9 {
				t.Errorf("at %v: %v, want %v", s, c[0], c[1])
			}
		}
	}
	for _, c := range []struct {
		at time.Duration
		q  float64
	}{{-time.Second, 0.5}, {time.Second, 0.6}, {time.Minute, 0.6}} {
		if p := tr.At(c.at); p.Q[0] != c.q || p.QD[0] != 0 || p.BaseV.X != 0 {
			t.Errorf("at %v: %+v", c.at, p)
		}
	}
	p := tr.At(0)
	p.Q[0] = 7
	if tr.Points[0].Q[0] != 0.5 {
		t.Error("At hands out the trajectory's own slice")
	}
	if z := (Trajectory{}).At(time.Second); z.Q != nil {
		t.Errorf("an empty trajectory gives %+v", z)
	}
}

func TestTrajectoryCheck(t *testing.T) {
	m := twoJoints()
	if err := ramp().Check(m, stateAt(0.5, 0)); err != nil {
		t.Errorf("a good one: %v", err)
	}
	fixed := twoJoints()
	fixed.Mobile = false
	for _, c := range []struct {
		name, words string
		m           *Model
		s           State
		spoil       func(*Trajectory)
	}{
		{"empty", "0 knots", m, stateAt(0.5, 0), func(t *Trajectory) { t.Points = nil }},
		{"no state", "incomplete", m, State{}, func(*Trajectory) {}},
		{"short", "1 positions and 2 speeds", m, stateAt(0.5, 0), func(t *Trajectory) { t.Points[3].Q = t.Points[3].Q[:1] }},
		{"late", "must be at 0", m, stateAt(0.5, 0), func(t *Trajectory) { t.Points[0].T = 1 }},
		{"equal times", "not after knot 3", m, stateAt(0.5, 0), func(t *Trajectory) { t.Points[4].T = t.Points[3].T }},
		{"NaN", "not finite", m, stateAt(0.5, 0), func(t *Trajectory) { t.Points[4].QD[1] = math.NaN() }},
		{"base NaN", "not finite", m, stateAt(0.5, 0), func(t *Trajectory) { t.Points[4].Base.Yaw = math.NaN() }},
		{"limit", "limits 0.0000 to 1.0000", m, stateAt(0.5, 0), func(t *Trajectory) { t.Points[4].Q[0] = 1.01 }},
		{"fast", "limit 2.000", m, stateAt(0.5, 0), func(t *Trajectory) { t.Points[4].QD[1] = 2.1 }},
		{"jump", "jumps by", m, stateAt(0.5, 0), func(t *Trajectory) { t.Points[4].Q[1] += 0.4 }},
		{"far", "measured 0.4000", m, stateAt(0.4, 0), func(*Trajectory) {}},
		{"base far", "from where it is measured", m, func() State { s := stateAt(0.5, 0); s.Base.Y = 1; return s }(), func(*Trajectory) {}},
		{"moving start", "must be at rest", m, stateAt(0.5, 0), func(t *Trajectory) { t.Points[0].QD[0] = 0.01 }},
		{"moving end", "must be at rest", m, stateAt(0.5, 0), func(t *Trajectory) { t.Points[10].BaseV.X = 0.01 }},
		{"fixed base", "none that moves", fixed, stateAt(0.5, 0), func(*Trajectory) {}},
	} {
		tr := ramp()
		c.spoil(&tr)
		if err := tr.Check(c.m, c.s); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, want words %q", c.name, err, c.words)
		}
	}
}

// A joint that is measured past its limit may come back, and go no further.
func TestTrajectoryComesBack(t *testing.T) {
	m := twoJoints()
	m.Joints[0].Min = 0.52
	if err := ramp().Check(m, stateAt(0.5, 0)); err != nil {
		t.Errorf("coming back: %v", err)
	}
	tr := ramp()
	tr.Points[2].Q[0] = 0.49
	if err := tr.Check(m, stateAt(0.5, 0)); err == nil {
		t.Error("going deeper is accepted")
	}
}

// Missing and non-finite values each make a state incomplete.
func TestStateComplete(t *testing.T) {
	m := twoJoints()
	good := stateAt(0.5, 0)
	if !good.Complete(m) {
		t.Fatal("a complete state is not")
	}
	for name, spoil := range map[string]func(*State){
		"no joints": func(s *State) { s.Q = nil },
		"no speeds": func(s *State) { s.QD = nil },
		"too many":  func(s *State) { s.Q = append(s.Q, 1) },
		"NaN":       func(s *State) { s.Q = []float64{0.5, math.NaN()} },
		"Inf":       func(s *State) { s.QD = []float64{0, math.Inf(1)} },
		"no base":   func(s *State) { s.HasBase = false },
		"base NaN":  func(s *State) { s.Base.Yaw = math.NaN() },
		"no jaw":    func(s *State) { s.Jaw.Known = false },
		"jaw NaN":   func(s *State) { s.Jaw.Aperture = math.NaN() },
		"base v":    func(s *State) { s.BaseV.X = math.Inf(-1) },
	} {
		s := stateAt(0.5, 0)
		spoil(&s)
		if s.Complete(m) {
			t.Errorf("%s: complete", name)
		}
	}
}
