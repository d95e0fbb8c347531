package sim

import (
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// loose are rules that a well-behaved motion keeps.
func loose() Rules {
	return Rules{
		Box: &r3.Box{Min: r3.Vec{X: -2, Y: -2, Z: -2}, Max: r3.Vec{X: 2, Y: 2, Z: 2}}, BoxSlack: 0.005, JointSlack: 0.002,
		JointSpeed: 1, ToolSpeed: 2, ToolTurn: 3, BaseSpeed: 0.5, BaseTurn: 1, SpeedSlack: 0.05, Still: 0.03, Drift: 0.01,
	}
}

// swing moves most joints, and Stretch's base, in a second or four.
func swing(t *testing.T, tw *Twin) {
	t.Helper()
	dq, base, d := []float64{0.4, 0.3, -0.3, 0.3, 0.4, 0.3, -0.5}, zero, time.Second
	if tw.mach.mobile {
		dq, base, d = []float64{-0.3, 0.2, 0.8, -0.4, 0.5}, geom.SE2{X: 0.3, Y: -0.2, Yaw: 0.7}, 4*time.Second
	}
	if err := tw.Follow(t.Context(), reach(tw.State(), dq, base, d)); err != nil {
		t.Fatal(err)
	}
	after(t, tw, 300*time.Millisecond)
}

func TestMonitorIsSilentWhileRulesAreKept(t *testing.T) {
	for _, o := range []Options{{Robot: "fr3", World: "tabletop"}, {Robot: "stretch4", World: "room"}} {
		tw := start(t, o)
		m := tw.Watch(loose())
		swing(t, tw)
		if err := tw.Grip(t.Context(), robot.JawTarget{}); err != nil {
			t.Fatal(err)
		}
		mark := m.Mark()
		m.MarkStopped(mark)
		m.SetArmed(false)
		after(t, tw, time.Second) // nothing is asked for, nothing moves
		m.SetArmed(true)
		m.Allow()
		if err := tw.Reset(t.Context(), 5); err != nil { // the robot is elsewhere at once, and has not moved there
			t.Fatal(err)
		}
		swing(t, tw)
		mark = m.Mark()
		m.Allow() // somebody asks for a motion while the stop is under way
		m.MarkStopped(mark)
		if err := tw.Follow(t.Context(), reach(tw.State(), []float64{0.05}, zero, time.Second)); err != nil {
			t.Fatal(err)
		}
		if v := m.Violations(); len(v) > 0 {
			t.Errorf("%s: %v", o.Robot, v)
		}
		if m.Steps() < 1000 {
			t.Errorf("%s: only %d steps were watched", o.Robot, m.Steps())
		}
	}
}

func TestMonitorSeesEveryRuleBroken(t *testing.T) {
	arm, stretch := Options{Robot: "fr3", World: "tabletop"}, Options{Robot: "stretch4", World: "room"}
	for _, c := range []struct {
		rule string
		o    Options
		cap  func(*Rules)                             // tightens one rule
		do   func(t *testing.T, tw *Twin, m *Monitor) // breaks it
		sane func(v Violation, tw *Twin) (ok bool)    // the figure, known another way
	}{
		{rule: RuleBox, o: arm, cap: func(r *Rules) { r.Box.Min.Z = 0.3 }, do: func(t *testing.T, tw *Twin, _ *Monitor) {
			to := tw.Truth().Tool
			to.P.Z = 0.25
			if err := moveTool(t, tw, to, 2*time.Second); err != nil {
				t.Fatal(err)
			}
		}, sane: func(v Violation, _ *Twin) bool { return math.Abs(v.Value-0.05) < 0.002 }},
		{rule: RuleBox, o: stretch, cap: func(r *Rules) { r.Box.Max.Z = 0.2 }, do: func(t *testing.T, tw *Twin, _ *Monitor) {
			// it begins outside, and may come in but not go on
			if err := tw.Follow(t.Context(), reach(tw.State(), []float64{0.1}, zero, 2*time.Second)); err != nil {
				t.Fatal(err)
			}
		}},
		{rule: RuleJoint, o: arm, do: func(t *testing.T, tw *Twin, _ *Monitor) {
			tw.mu.Lock()
			a := &tw.p.axes[3]
			a.place(tw.p.d.Qpos(), a.hi+0.03)
			tw.mu.Unlock()
			after(t, tw, 20*time.Millisecond)
		}, cap: func(r *Rules) { // the leap is also fast
			r.JointSpeed, r.ToolSpeed, r.ToolTurn = 0, 0, 0
		}, sane: func(v Violation, _ *Twin) bool { return v.Value > 0.015 && v.Value < 0.031 }},
		{
			rule: RuleJointSpeed, o: arm, cap: func(r *Rules) { r.JointSpeed = 0.2 }, do: still(swing),
			sane: func(v Violation, _ *Twin) bool { // a quintic's peak is 1.875 of its mean
				return strings.HasPrefix(v.What, "fr3_joint") && v.Value > 0.5 && v.Value < 1.875*0.5*1.05
			},
		},
		{rule: RuleToolSpeed, o: arm, cap: func(r *Rules) { r.ToolSpeed = 0.05 }, do: func(t *testing.T, tw *Twin, _ *Monitor) {
			to := tw.Truth().Tool
			to.P.Z -= 0.1
			if err := moveTool(t, tw, to, 2*time.Second); err != nil {
				t.Fatal(err)
			}
		}, sane: func(v Violation, _ *Twin) bool { return math.Abs(v.Value-1.875*0.05) < 0.005 }},
		{rule: RuleToolTurn, o: arm, cap: func(r *Rules) { r.ToolTurn = 0.3 }, do: func(t *testing.T, tw *Twin, _ *Monitor) {
			if err := tw.Follow(t.Context(), reach(tw.State(), []float64{0, 0, 0, 0, 0, 0, 0.5}, zero, time.Second)); err != nil {
				t.Fatal(err)
			}
		}, sane: func(v Violation, _ *Twin) bool { return math.Abs(v.Value-1.875*0.5) < 0.05 }},
		{
			rule: RuleBaseSpeed, o: stretch, cap: func(r *Rules) { r.BaseSpeed = 0.1 }, do: drive(geom.SE2{X: 0.2, Y: -0.2}),
			sane: func(v Violation, _ *Twin) bool { return math.Abs(v.Value-1.875*math.Hypot(0.1, 0.1)) < 0.02 },
		},
		{
			rule: RuleBaseTurn, o: stretch, cap: func(r *Rules) { r.BaseTurn = 0.2 }, do: drive(geom.SE2{Yaw: 0.6}),
			sane: func(v Violation, _ *Twin) bool { return math.Abs(v.Value-1.875*0.3) < 0.03 },
		},
		{rule: RuleStopped, o: arm, do: func(t *testing.T, tw *Twin, m *Monitor) {
			m.MarkStopped(m.Mark())
			swing(t, tw)
		}},
		{rule: RuleStopped, o: arm, do: func(t *testing.T, tw *Twin, m *Monitor) { // the jaw too
			m.MarkStopped(m.Mark())
			if err := tw.Grip(t.Context(), robot.JawTarget{}); err != nil {
				t.Fatal(err)
			}
		}},
		{rule: RuleDisarmed, o: stretch, do: func(t *testing.T, tw *Twin, m *Monitor) {
			m.SetArmed(false)
			drive(geom.SE2{X: 0.1})(t, tw, m)
		}},
		{rule: RuleDisarmed, o: arm, do: func(t *testing.T, tw *Twin, m *Monitor) { // nobody commands, and it sags
			m.SetArmed(false)
			after(t, tw, 50*time.Millisecond)
			tw.mu.Lock()
			tw.servo.ref[1].x += 0.015
			tw.mu.Unlock()
			after(t, tw, time.Second)
		}, sane: func(v Violation, _ *Twin) bool { return strings.HasPrefix(v.What, "fr3_joint2") }},
	} {
		t.Run(c.rule+" of "+c.o.Robot, func(t *testing.T) {
			tw := start(t, c.o)
			r := loose()
			if c.cap != nil {
				c.cap(&r)
			}
			m := tw.Watch(r)
			after(t, tw, 50*time.Millisecond)
			if v := m.Violations(); len(v) > 0 {
				t.Fatalf("before anything moved: %v", v)
			}
			c.do(t, tw, m)
			got := m.Violations()
			if len(got) == 0 {
				t.Fatal("nothing was seen")
			}
			for _, v := range got {
				if v.Rule != c.rule || !(v.Value > v.Limit) || v.At.Before(epoch) {
					t.Errorf("saw %v", v)
				}
			}
			if c.sane != nil && !c.sane(got[0], tw) {
				t.Errorf("the figures are off: %v", got[0])
			}
		})
	}
}

func still(f func(*testing.T, *Twin)) func(*testing.T, *Twin, *Monitor) {
	return func(t *testing.T, tw *Twin, _ *Monitor) { f(t, tw) }
}

func drive(by geom.SE2) func(*testing.T, *Twin, *Monitor) {
	return func(t *testing.T, tw *Twin, _ *Monitor) {
		if err := tw.Follow(t.Context(), reach(tw.State(), nil, by, 2*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
}

// Not-a-number is over every limit.
func TestMonitorTakesNoNumberForABreach(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop"})
	m := tw.Watch(loose())
	m.note(RuleBox, "closure point", "outside", math.NaN(), 1)
	if len(m.Violations()) != 1 {
		t.Error("not seen")
	}
}

// BenchmarkMonitor compares a time step with what the monitor adds to it.
func BenchmarkMonitor(b *testing.B) {
	for _, o := range []Options{{Robot: "fr3", World: "tabletop"}, {Robot: "stretch4", World: "room"}} {
		tw, err := NewTwin(o)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(o.Robot+"/step", func(b *testing.B) {
			for range b.N {
				tw.stepOnce(0)
			}
		})
		m := tw.Watch(loose())
		b.Run(o.Robot+"/monitor", func(b *testing.B) {
			for i := range b.N {
				m.step(int64(i) * tw.p.dt)
			}
		})
		tw.Close()
	}
}
