package stage_test

import (
	"math"
	"testing"
	"time"

	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/safety"
)

// halfway leaves the jaw as an opening does that met the walls of a bowl: 67 of 80 mm, said to be closed as before.
func halfway(st *robot.State) { st.Jaw = robot.Jaw{Known: true, Aperture: .067} }

// A jaw that was cut short can be asked for the state that it is said to be in.
func TestAJawHalfwayCanBeClosed(t *testing.T) {
	virtual(t, "3D", func(t *testing.T) {
		s, w := tabletop(t)
		w.set(halfway)
		ok(t, s.ResetToReal())
		if sn := s.Snapshot(); !sn.JawBetween || sn.JawStaged || sn.Check.Staged {
			t.Fatalf("between %v, jaw staged %v, staged %v; want true, false, false", sn.JawBetween, sn.JawStaged, sn.Check.Staged)
		}
		changed, err := s.Toggle("closed")
		ok(t, err)
		if sn := s.Snapshot(); !changed || !sn.JawStaged || !sn.Check.Staged {
			t.Fatalf("changed %v, jaw staged %v, staged %v; want all", changed, sn.JawStaged, sn.Check.Staged)
		}
		run(t, s, 1)
		if k := w.goes[0].Waypoint; k.Kind != robot.KindJaw || k.Jaw.Open {
			t.Errorf("ran %+v, want the jaw to close", k)
		}
		if sn := s.Snapshot(); sn.JawBetween || sn.JawStaged {
			t.Errorf("after closing: between %v, jaw staged %v", sn.JawBetween, sn.JawStaged)
		}
	})
	virtual(t, "3D pose alone leaves it", func(t *testing.T) {
		s, w := tabletop(t)
		w.set(halfway)
		_, err := s.Advance(-5)
		ok(t, err)
		if k := s.Snapshot().Check.Plan.Waypoint.Kind; k != robot.KindPose {
			t.Errorf("kind %v: nobody asked for the jaw", k)
		}
	})
	virtual(t, "2D", func(t *testing.T) {
		s, w := room(t)
		w.set(halfway)
		ok(t, s.SetJaw(false))
		refusal(t, s.SetJaw(false), stage.RuleAlready)
		run(t, s, 1)
		refusal(t, s.SetJaw(false), stage.RuleAlready)
	})
	virtual(t, "neither empty nor holding is halfway", func(t *testing.T) {
		s, w := room(t)
		for _, j := range []robot.Jaw{{Known: true}, {Known: true, Aperture: .045, Holding: true}, {Known: true, Open: true, Aperture: .078}} {
			w.set(func(st *robot.State) { st.Jaw = j })
			refusal(t, s.SetJaw(j.Open), stage.RuleAlready)
			if s.Snapshot().JawBetween {
				t.Errorf("%+v is between", j)
			}
		}
	})
}

// What was announced is what the result compares with: the jaw's time too, which is not in the trajectory.
func TestPlannedTimeHasTheJawsPart(t *testing.T) {
	virtual(t, "jaw", func(t *testing.T) {
		s, _ := tabletop(t)
		_, err := s.Toggle("closed")
		ok(t, err)
		said := s.Snapshot().Check.Duration
		rep := run(t, s, 1)
		if want := time.Second; math.Abs((said-want).Seconds()) > 1e-6 || rep.Outcome.Planned != said {
			t.Errorf("said %v, reported %v, want %v: 80 mm at 80 mm/s", said, rep.Outcome.Planned, want)
		}
	})
}

// A picture can say that nothing may move, whether or not something is staged; a motion under way is no such reason.
func TestBarred(t *testing.T) {
	s, w := tabletop(t)
	for rule, barred := range map[string]bool{safety.RuleArmed: true, safety.RuleLatch: true, safety.RuleState: true, safety.RuleBusy: false, safety.RuleStopping: false} {
		w.mu.Lock()
		w.ready = &safety.Refused{Rule: rule}
		w.mu.Unlock()
		if got := s.Snapshot().Barred != nil; got != barred {
			t.Errorf("%s: barred %v, want %v", rule, got, barred)
		}
	}
}
