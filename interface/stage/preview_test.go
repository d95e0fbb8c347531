package stage_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/perception"
	"viad/safety"
)

// clearance makes the checker see something dist metres from the way, which must keep limit.
func clearance(dist *float64, limit float64) func(robot.Plan, *perception.Scene) ([]safety.Warning, perception.Hit, *safety.Refused) {
	return func(robot.Plan, *perception.Scene) ([]safety.Warning, perception.Hit, *safety.Refused) {
		h := perception.Hit{Found: true, Dist: *dist, Point: r3.Vec{X: .5}}
		if *dist < limit {
			return nil, h, &safety.Refused{Rule: "clearance", Value: "x", Limit: "y", Next: "z"}
		}
		return nil, h, nil
	}
}

// previews runs f in virtual time on a room with a pose staged and seen.
func previews(t *testing.T, f func(t *testing.T, s *stage.Stage, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, w := room(t)
		ok(t, s.TranslateRobot(r3.Vec{X: .3}))
		s.Show()
		f(t, s, w)
	})
}

// dies fails unless execute asks for another look, nothing moves, the staged target survives, it stays refused
// until somebody looks, and then runs.
func dies(t *testing.T, s *stage.Stage, w *world, say string) {
	t.Helper()
	unchanged(t, s, func() {
		for range 2 {
			_, err := s.Execute(t.Context(), time.Now(), 1)
			refusal(t, err, stage.RuleLookAgain)
		}
		_, err := s.Execute(t.Context(), time.Now(), 1)
		if say != "" && !strings.Contains(err.Error(), "not been seen since") {
			t.Errorf("the second refusal says %q", err)
		}
	})
	if w.ran() != 0 {
		t.Fatal("the robot moved")
	}
	s.Show()
	rep, err := s.Execute(t.Context(), time.Now(), 2)
	ok(t, err)
	if rep.Outcome.Result != robot.ResultReached || w.ran() != 1 {
		t.Errorf("after a look: %+v", rep.Outcome)
	}
}

func lives(t *testing.T, s *stage.Stage, w *world) {
	t.Helper()
	if _, err := s.Execute(t.Context(), time.Now(), 1); err != nil {
		t.Fatalf("the preview died: %v", err)
	}
	if w.ran() != 1 {
		t.Fatal("the robot did not move")
	}
}

func TestPreviewRobotMoved(t *testing.T) {
	for name, c := range map[string]struct {
		move func(*robot.State)
		dead bool
	}{
		"tool 4.9 mm":   {func(st *robot.State) { st.Q[1] += .0049 }, false},
		"tool 5.1 mm":   {func(st *robot.State) { st.Q[1] += .0051 }, true},
		"tool 0.49 deg": {func(st *robot.State) { st.Q[3] += geom.Rad(.49) }, false},
		"tool 0.51 deg": {func(st *robot.State) { st.Q[3] += geom.Rad(.51) }, true},
		"base 4.9 mm":   {func(st *robot.State) { st.Base.X += .0049 }, false},
		"base 5.1 mm":   {func(st *robot.State) { st.Base.Y += .0051 }, true},
		"base turned":   {func(st *robot.State) { st.Base.Yaw += geom.Rad(.6) }, true},
		// The hand stayed where it is, the base did not.
		"base under the hand": {func(st *robot.State) { st.Base.X += .1; st.Q[0] -= .1 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			previews(t, func(t *testing.T, s *stage.Stage, w *world) {
				w.set(c.move)
				if !c.dead {
					lives(t, s, w)
					return
				}
				dies(t, s, w, "")
			})
		})
	}
}

func TestPreviewAge(t *testing.T) {
	previews(t, func(t *testing.T, s *stage.Stage, w *world) {
		time.Sleep(9*time.Minute + 59*time.Second) // virtual
		lives(t, s, w)
	})
	previews(t, func(t *testing.T, s *stage.Stage, w *world) {
		time.Sleep(10*time.Minute + time.Second)
		dies(t, s, w, "")
	})
}

func TestPreviewNeedsALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := room(t)
		ok(t, s.TranslateRobot(r3.Vec{X: .3}))
		s.Snapshot() // a watcher's look is not the seat's
		dies(t, s, w, "")
	})
	previews(t, func(t *testing.T, s *stage.Stage, w *world) {
		ok(t, s.TranslateRobot(r3.Vec{X: .1})) // its picture was never sent
		dies(t, s, w, "")
	})
	// Camera moves and refused edits leave the preview alone.
	synctest.Test(t, func(t *testing.T) {
		s, w := tabletop(t)
		_, err := s.Advance(10)
		ok(t, err)
		s.Show()
		_, err = s.Advance(0)
		refusal(t, err, "")
		ok(t, s.PanBy(.1, 0))
		lives(t, s, w)
	})
}

func TestPreviewScene(t *testing.T) {
	staged := func(t *testing.T, f func(t *testing.T, s *stage.Stage, w *world, dist *float64)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s, w := room(t)
			dist := .025
			w.check = clearance(&dist, .02)
			ok(t, s.TranslateRobot(r3.Vec{X: .3}))
			s.Show()
			time.Sleep(time.Second) // so that execute wants a newer scene
			f(t, s, w, &dist)
		})
	}
	t.Run("something came into the way", func(t *testing.T) {
		staged(t, func(t *testing.T, s *stage.Stage, _ *world, dist *float64) {
			*dist = .005
			_, err := s.Execute(t.Context(), time.Now(), 1)
			refusal(t, err, stage.RuleLookAgain)
			if !strings.Contains(err.Error(), "clearance") {
				t.Errorf("%q does not say what changed", err)
			}
			_, err = s.Execute(t.Context(), time.Now(), 1)
			refusal(t, err, stage.RuleLookAgain) // stays dead, whatever the scene does
			if sn := s.Show(); sn.Check.Clear || sn.Check.Refused.Rule != "clearance" {
				t.Errorf("the second look shows %+v", sn.Check)
			}
			_, err = s.Execute(t.Context(), time.Now(), 1)
			refusal(t, err, "clearance") // shown as refused: its own rule answers
			*dist = .03
			_, err = s.Execute(t.Context(), time.Now(), 1)
			ok(t, err) // and once it is gone, it may go
		})
	})
	t.Run("noise", func(t *testing.T) {
		staged(t, func(t *testing.T, s *stage.Stage, w *world, dist *float64) {
			*dist = .0195 // 5.5 mm nearer than shown, now below the limit
			lives(t, s, w)
		})
	})
	t.Run("one stray reading", func(t *testing.T) {
		staged(t, func(t *testing.T, s *stage.Stage, w *world, dist *float64) {
			next := w.seq + 1
			w.onScene = func(n uint64) {
				*dist = .025
				if n == next {
					*dist = -.01
				}
			}
			lives(t, s, w)
		})
	})
	t.Run("no plan any more", func(t *testing.T) {
		staged(t, func(t *testing.T, s *stage.Stage, w *world, _ *float64) {
			w.planErr = &robot.Unreachable{Joint: "x_joint", By: .1, Unit: "m", Why: "x_joint runs out by 0.100 m"}
			_, err := s.Execute(t.Context(), time.Now(), 1)
			refusal(t, err, stage.RuleLookAgain)
			if sn := s.Show(); sn.Check.Reachable {
				t.Errorf("the look shows %+v", sn.Check)
			}
			_, err = s.Execute(t.Context(), time.Now(), 1)
			refusal(t, err, stage.RuleUnreachable) // nobody is sent to look for ever
		})
	})
	t.Run("cameras dead", func(t *testing.T) {
		staged(t, func(t *testing.T, s *stage.Stage, w *world, _ *float64) {
			w.sceneErr = errors.New("wrist: no frame")
			unchanged(t, s, func() {
				_, err := s.Execute(t.Context(), time.Now(), 1)
				refusal(t, err, stage.RuleNoScene)
			})
			w.sceneErr = nil
			lives(t, s, w)
		})
	})
}

// Show judges again when the scene or the robot changed, and only then.
func TestShowRenewsCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := room(t)
		dist := .05
		w.check = clearance(&dist, .02)
		ok(t, s.NavTranslate(.3, 0))
		plans := w.plans
		s.Show()
		if w.plans != plans {
			t.Error("planned again though nothing changed")
		}
		dist = .01
		time.Sleep(time.Second)
		ok(t, s.Refresh(t.Context()))
		if sn := s.Show(); sn.Check.Clear || !strings.Contains(sn.Check.Way, "not clear") || w.plans != plans {
			t.Errorf("check after a new scene %+v", sn.Check)
		}
		w.set(func(st *robot.State) { st.Base.X += .5 })
		if sn := s.Show(); sn.Check.Plan.Waypoint.Base.X != .8 {
			t.Errorf("nav goal %+v after a nudge, want x 0.8", sn.Check.Plan.Waypoint.Base)
		}
	})
}

func TestRefreshOnlyWhenOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := room(t)
		n := w.seq
		ok(t, s.Refresh(t.Context()))
		if w.seq != n {
			t.Error("a scene of now was renewed")
		}
		time.Sleep(time.Second)
		ok(t, s.Refresh(t.Context()))
		if w.seq != n+1 {
			t.Error("an old scene was not renewed")
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Refresh(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
