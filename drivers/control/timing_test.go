package control

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// The profile against its integral, done numerically: position is the integral of speed, speed of
// acceleration, and the ends are at rest without acceleration.
func TestProfile(t *testing.T) {
	for _, c := range [][3]float64{{5, 1, 2}, {0.1, 1, 2}, {1e-6, 1, 1}, {3, 0.5, 10}} {
		p := newProfile(c[0], c[1], c[2])
		total := p.duration()
		const n = 200000
		h := total / n
		pos, vel, peakV, peakA := 0.0, 0.0, 0.0, 0.0
		for i := range n {
			u, du, ddu := p.at(h * (float64(i) + 0.5))
			vel += ddu * h
			pos += du * h
			peakV, peakA = math.Max(peakV, du), math.Max(peakA, math.Abs(ddu))
			if math.Abs(vel-du) > 1e-3*c[1] || math.Abs(pos-u) > 1e-3*c[0] {
				t.Fatalf("%v: at %v s u %v, integral %v; u' %v, integral %v", c, h*float64(i), u, pos, du, vel)
			}
		}
		if math.Abs(pos-c[0]) > 1e-4*c[0] || peakV > c[1]*1.0001 || peakA > c[2]*1.0001 || math.Abs(peakA-p.peak()) > 1e-3*p.peak() {
			t.Errorf("%v: length %v, speed %v, acceleration %v (said %v)", c, pos, peakV, peakA, p.peak())
		}
		if _, du, ddu := p.at(total); du != 0 || ddu != 0 {
			t.Errorf("%v ends at speed %v", c, du)
		}
	}
}

// A known way: one joint alone must take at least its distance over its cap, and not much more.
func TestTimingIsNotLazy(t *testing.T) {
	k := kinOf(t, FR3())
	set := DefaultSettings()
	set.ToolSpeed, set.ToolTurn, set.ToolAccel, set.ToolTurnAcc = 2, 6, 10, 20
	var knots []knot
	for i := range 101 {
		s := float64(i) / 100
		n := knot{s: s}
		copy(n.q[:], ready[:])
		n.q[0] = -1 + 2*s
		knots = append(knots, n)
	}
	tm := timing{k: k, set: &set, knots: knots}
	tr := tm.trajectory()
	v, a := 0.4*2.62, 0.3*10.0
	// A trapezoid with ramps whose peak is a: distance 2, ramps of 1.5 v/a each cover half their length.
	best := 2/v + 1.5*v/a
	if got := tr.Duration().Seconds(); got < best || got > 1.1*best {
		t.Errorf("takes %.3f s, the caps allow %.3f s", got, best)
	}
}

// A plan of no way at all is a short trajectory at rest, which bodies accept.
func TestNoWay(t *testing.T) {
	k := kinOf(t, FR3())
	p := plannerOf(t, k)
	s := at(k, geom.SE2{}, ready[:])
	plan, err := p.Plan(s, pose(k.Tool(s.Base, s.Q), r3.Vec{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Traj.Check(k.Model(), s); err != nil {
		t.Error(err)
	}
	if d := plan.Traj.Duration(); d < 50*time.Millisecond || d > 500*time.Millisecond {
		t.Errorf("takes %v", d)
	}
}

// Slower scale, proportionally slower cruise; never past a cap.
func TestSpeedScale(t *testing.T) {
	k := kinOf(t, Panda())
	s := at(k, geom.SE2{}, ready[:])
	last := time.Duration(0)
	for _, sc := range []float64{1, 0.5, 0.1} {
		set := DefaultSettings()
		set.SpeedScale = sc
		p, err := NewPlanner(k, set)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := p.Plan(s, pose(k.Tool(s.Base, s.Q), tenCM))
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, k, set, plan)
		if plan.Traj.Duration() < last*5/4 {
			t.Errorf("scale %v takes %v, the scale before took %v", sc, plan.Traj.Duration(), last)
		}
		last = plan.Traj.Duration()
	}
}

// TestNoPlanIsLongerThanABodyTakes: at a small share of the speed a way can take minutes; the plan says so, and not
// the body once it is commanded.
func TestNoPlanIsLongerThanABodyTakes(t *testing.T) {
	k := kinOf(t, Panda())
	s := at(k, geom.SE2{}, ready[:])
	for share, fine := range map[float64]bool{0.05: true, 0.01: false} {
		set := DefaultSettings()
		set.SpeedScale = share
		p, err := NewPlanner(k, set)
		if err != nil {
			t.Fatal(err)
		}
		way := r3.Scale(2, tenCM)
		plan, err := p.Plan(s, pose(k.Tool(s.Base, s.Q), way))
		var u *robot.Unreachable
		switch {
		case fine && (err != nil || plan.Traj.Duration() > robot.LongestGoal):
			t.Errorf("share %v: %v, %v", share, plan.Traj.Duration(), err)
		case !fine && (!errors.As(err, &u) || !strings.Contains(u.Why, "one motion may take 45 s") || math.Abs(u.Gap-r3.Norm(way)) > 1e-5):
			t.Errorf("share %v: %v, %v", share, plan.Traj.Duration(), err)
		}
	}
}

func TestSettingsValidate(t *testing.T) {
	if err := DefaultSettings().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for name, spoil := range map[string]func(*Settings){
		"speed_scale":   func(s *Settings) { s.SpeedScale = 0 },
		"tool_speed":    func(s *Settings) { s.ToolSpeed = math.NaN() },
		"deadline":      func(s *Settings) { s.Deadline = time.Minute },
		"state_age":     func(s *Settings) { s.StateAge = 0 },
		"rest_ticks":    func(s *Settings) { s.RestTicks = 0 },
		"base_speed":    func(s *Settings) { s.BaseSpeed = math.Inf(1) },
		"settle_time":   func(s *Settings) { s.SettleTime = -1 },
		"moved_revolut": func(s *Settings) { s.MovedJoint = 1 },
	} {
		s := DefaultSettings()
		spoil(&s)
		err := s.Validate()
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := NewPlanner(kinOf(t, FR3()), s); err == nil {
			t.Errorf("%s: a planner was made with it", name)
		}
	}
}
