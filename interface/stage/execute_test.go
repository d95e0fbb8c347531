package stage_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/safety"
)

// run shows and executes what is staged.
func run(t *testing.T, s *stage.Stage, id uint64) *stage.Report {
	t.Helper()
	s.Show()
	rep, err := s.Execute(t.Context(), time.Now(), id)
	ok(t, err)
	return rep
}

// virtual runs f with the wall clock in virtual time.
func virtual(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestExecute3D(t *testing.T) {
	virtual(t, "the target stays as commanded", func(t *testing.T) {
		s, w := tabletop(t)
		_, err := s.Translate(r3.Vec{X: .1})
		ok(t, err)
		w.short, w.result, w.why = .5, robot.ResultContact, "the hand met something"
		rep := run(t, s, 7)
		vec(t, "ordered", rep.Ordered.Pose.P, r3.Vec{X: .55, Z: .3})
		vec(t, "realized", rep.Realized.Pose.P, r3.Vec{X: .5, Z: .3})
		if rep.Message != "Cut short: the hand met something." || rep.ID != 7 || rep.Kind != robot.KindPose || rep.Mode != stage.ModeNone {
			t.Errorf("report %+v", rep)
		}
		sn := s.Snapshot()
		vec(t, "target", sn.Target.Pose.P, r3.Vec{X: .55, Z: .3})
		if !sn.Check.Staged || sn.Last != rep || sn.LastShown || sn.Moving || !sn.JustRan {
			t.Errorf("snapshot %+v", sn)
		}
		d, err := s.Translate(r3.Vec{Y: .1})
		ok(t, err)
		vec(t, "delta", d, r3.Vec{Y: .1})
		vec(t, "the commanded pose is the base of later edits", s.Snapshot().Target.Pose.P, r3.Vec{X: .55, Y: .1, Z: .3})
		if s.Snapshot().JustRan {
			t.Error("an edit leaves the outcome behind")
		}
		ok(t, s.ResetToReal())
		vec(t, "reset", s.Snapshot().Target.Pose.P, r3.Vec{X: .5, Z: .3})
	})
	virtual(t, "a second execute does not move", func(t *testing.T) {
		s, w := tabletop(t)
		_, err := s.Execute(t.Context(), time.Now(), 1)
		refusal(t, err, stage.RuleNothingToDo)
		if !strings.Contains(err.Error(), "no waypoint has run") {
			t.Errorf("%q", err)
		}
		_, err = s.Translate(r3.Vec{X: .1})
		ok(t, err)
		run(t, s, 1)
		s.Show()
		unchanged(t, s, func() {
			_, err = s.Execute(t.Context(), time.Now(), 2)
			refusal(t, err, stage.RuleNothingToDo)
		})
		if !strings.Contains(err.Error(), "reached") || w.ran() != 1 {
			t.Errorf("%q after %d motions", err, w.ran())
		}
	})
	virtual(t, "stopped short runs again only after a fresh look", func(t *testing.T) {
		s, w := tabletop(t)
		_, err := s.Translate(r3.Vec{X: .1})
		ok(t, err)
		w.short, w.result = .5, robot.ResultStoppedShort
		run(t, s, 1)
		s.Show() // the picture of the execute's own reply
		_, err = s.Execute(t.Context(), time.Now(), 2)
		refusal(t, err, stage.RuleRepeated)
		s.MarkDelivered(9) // of another run: counts for nothing
		if s.Snapshot().LastShown {
			t.Error("another run's delivery counted")
		}
		s.MarkDelivered(1)
		_, err = s.Execute(t.Context(), time.Now(), 2)
		refusal(t, err, stage.RuleRepeated)
		if !s.Snapshot().LastShown || w.ran() != 1 {
			t.Errorf("delivered %v, %d motions", s.Snapshot().LastShown, w.ran())
		}
		run(t, s, 3) // a look, then it may
		if w.ran() != 2 {
			t.Errorf("%d motions", w.ran())
		}
		s.Show() // the reply's picture, never delivered
		_, err = s.Execute(t.Context(), time.Now(), 4)
		refusal(t, err, stage.RuleRepeated)
		_, err = s.Advance(1) // an edit is as good as a look
		ok(t, err)
		run(t, s, 5)
		s.MarkDelivered(5) // drawn from Pinned, say
		run(t, s, 6)       // one look after the delivery is fresh
		s.Show()           // the reply is lost
		run(t, s, 7)       // and somebody looks
		if w.ran() != 5 {
			t.Errorf("%d motions", w.ran())
		}
	})
	virtual(t, "jaw", func(t *testing.T) {
		s, w := tabletop(t)
		_, err := s.Toggle("closed")
		ok(t, err)
		// 2 mm away is where it is: only the jaw is asked to move.
		_, err = s.Translate(r3.Vec{X: .002})
		ok(t, err)
		rep := run(t, s, 1)
		if w.goes[0].Waypoint.Kind != robot.KindJaw || rep.Realized.Open || rep.Ordered.Open {
			t.Errorf("%v: %+v", w.goes[0].Waypoint.Kind, rep)
		}
		_, err = s.Toggle("open")
		ok(t, err)
		_, err = s.Translate(r3.Vec{Z: .1})
		ok(t, err)
		rep = run(t, s, 2)
		if w.goes[1].Waypoint.Kind != robot.KindPoseJaw || !rep.Realized.Open || !w.goes[1].Waypoint.Jaw.Open {
			t.Errorf("%v: %+v", w.goes[1].Waypoint.Kind, rep)
		}
	})
}

func TestExecute2D(t *testing.T) {
	virtual(t, "pose snaps", func(t *testing.T) {
		s, w := room(t)
		ok(t, s.TranslateRobot(r3.Vec{X: .4}))
		w.short, w.result, w.why = .5, robot.ResultStoppedShort, "stall"
		rep := run(t, s, 1)
		vec(t, "realized", rep.OnAxes(rep.Realized.Pose).P, r3.Vec{X: .8, Z: .8})
		sn := s.Snapshot()
		if sn.Mode != stage.ModeNone || sn.Target != sn.Real || rep.Message != "Cut short: stall." || rep.Mode != stage.ModePose {
			t.Errorf("report %+v", rep)
		}
		s.Show()
		_, err := s.Execute(t.Context(), time.Now(), 2)
		refusal(t, err, stage.RuleNothingStaged)
		if !strings.Contains(err.Error(), "stopped_short (stall); stopped, confirmed") {
			t.Errorf("%q does not name the last outcome", err)
		}
	})
	virtual(t, "nav on the heading before", func(t *testing.T) {
		w := newWorld(geom.At(.6, 0, .8))
		w.st.Base = geom.SE2{X: 1, Y: 2, Yaw: geom.Rad(170)}
		s := newStage(w, stage.Face2D)
		ok(t, s.NavTranslate(.3, .1))
		ok(t, s.NavRotate(geom.Rad(60)))
		s.Show()
		w.set(func(st *robot.State) { st.Base.Y += .004 }) // within the preview's tolerance: planned from here
		w.nudge = geom.SE2{X: -.002}                       // and measured from where the motion began
		rep, err := s.Execute(t.Context(), time.Now(), 1)
		ok(t, err)
		for i, d := range []geom.SE2{rep.OrderedBase, rep.RealizedBase} {
			if math.Hypot(d.X-.3-.002*float64(i), d.Y-.1) > 1e-9 || math.Abs(d.Yaw-geom.Rad(60)) > 1e-9 {
				t.Errorf("displacement %+v", d)
			}
		}
		if w.goes[0].From.Base != (geom.SE2{X: 1, Y: 2.004, Yaw: geom.Rad(170)}) {
			t.Errorf("planned from %+v", w.goes[0].From.Base)
		}
		vec(t, "the gripper rode along", rep.OnAxes(rep.Realized.Pose).P, r3.Vec{X: .6, Z: .8})
		vec(t, "ordered", rep.Ordered.Pose.P, rep.Realized.Pose.P)
	})
	virtual(t, "jaw", func(t *testing.T) {
		s, w := room(t)
		ok(t, s.SetJaw(false))
		if rep := run(t, s, 1); rep.Ordered.Open || rep.Realized.Open || rep.Mode != stage.ModeGripper {
			t.Errorf("%+v", rep)
		}
		// Held objects keep the pads apart: the jaw is closed all the same, and can be opened.
		w.set(func(st *robot.State) { st.Jaw.Aperture, st.Jaw.Holding = .07, true })
		refusal(t, s.SetJaw(false), stage.RuleAlready)
		ok(t, s.SetJaw(true))
		if rep := run(t, s, 2); !rep.Realized.Open {
			t.Errorf("%+v", rep)
		}
	})
	virtual(t, "edits that cancel out run", func(t *testing.T) {
		s, w := room(t)
		ok(t, s.TranslateRobot(r3.Vec{X: .2}))
		ok(t, s.TranslateRobot(r3.Vec{X: -.2}))
		if rep := run(t, s, 1); rep.Ordered.Pose.Dist(rep.Realized.Pose) > 1e-9 || w.ran() != 1 {
			t.Errorf("%+v", rep)
		}
	})
}

func TestDeadlineCountsFromTheCall(t *testing.T) {
	virtual(t, "cap", func(t *testing.T) {
		s, w := room(t)
		w.took = time.Minute
		ok(t, s.TranslateRobot(r3.Vec{X: .4}))
		if n := s.Show().Check.Notes; len(n) != 1 || !strings.Contains(n[0], "takes 60.0 s and will be stopped at 30 s") {
			t.Errorf("notes %q", n)
		}
		called := time.Now()
		time.Sleep(12 * time.Second) // waiting for its turn
		rep, err := s.Execute(t.Context(), called, 1)
		ok(t, err)
		if d := w.goes[0].Deadline.Sub(called); d != 30*time.Second {
			t.Errorf("deadline %v after the call", d)
		}
		if rep.Outcome.Took != 18*time.Second || rep.Message != "Cut short: 30 s cap." {
			t.Errorf("took %v: %q", rep.Outcome.Took, rep.Message)
		}
	})
	virtual(t, "too late", func(t *testing.T) {
		s, _ := room(t)
		ok(t, s.TranslateRobot(r3.Vec{X: .4}))
		s.Show()
		called := time.Now()
		time.Sleep(30 * time.Second)
		unchanged(t, s, func() {
			_, err := s.Execute(t.Context(), called, 1)
			refusal(t, err, stage.RuleTimeCap)
		})
		_, err := s.Execute(t.Context(), time.Time{}, 2) // no time of call: counted from here
		ok(t, err)
	})
}

// during starts an execute of 10 s, runs f while the robot moves and returns what it came to.
func during(ctx context.Context, t *testing.T, s *stage.Stage, w *world, f func()) *stage.Report {
	t.Helper()
	w.took = 10 * time.Second
	s.Show()
	began := make(chan struct{})
	w.began = began
	type result struct {
		rep *stage.Report
		err error
	}
	done := make(chan result, 1)
	go func() {
		rep, err := s.Execute(ctx, time.Now(), 1)
		done <- result{rep, err}
	}()
	<-began
	f()
	r := <-done
	ok(t, r.err)
	return r.rep
}

func TestWhileMoving(t *testing.T) {
	virtual(t, "2D", func(t *testing.T) {
		s, w := room(t)
		ok(t, s.TranslateRobot(r3.Vec{X: .4}))
		during(t.Context(), t, s, w, func() {
			start := time.Now()
			unchanged(t, s, func() {
				for _, a := range acts() {
					if !strings.HasPrefix(a.name, "3D") {
						refusal(t, a.do(s), stage.RuleMotionRunning)
					}
				}
				_, err := s.Execute(t.Context(), time.Now(), 2)
				refusal(t, err, stage.RuleMotionRunning)
				refusal(t, s.EndEpisode(t.Context(), nil), stage.RuleMotionRunning)
			})
			if sn := s.Show(); !sn.Moving || sn.Check.Refused.Rule != stage.RuleMotionRunning || sn.Mode != stage.ModePose {
				t.Errorf("shown while moving: %+v", sn)
			}
			if s.Pinned().Moving != true || time.Since(start) != 0 {
				t.Error("a look waited for the motion")
			}
		})
		// The look during the motion is none of what it came to.
		ok(t, s.TranslateRobot(r3.Vec{X: .1}))
		_, err := s.Execute(t.Context(), time.Now(), 3)
		refusal(t, err, stage.RuleLookAgain)
	})
	virtual(t, "3D camera", func(t *testing.T) {
		s, w := tabletop(t)
		_, err := s.Translate(r3.Vec{X: .1})
		ok(t, err)
		during(t.Context(), t, s, w, func() {
			_, err := s.OrbitBy(.1, 0)
			ok(t, err)
			_, err = s.Toggle("toggle")
			refusal(t, err, stage.RuleMotionRunning)
			refusal(t, s.ResetToReal(), stage.RuleMotionRunning)
		})
		if s.Snapshot().Orbit == home {
			t.Error("execute reset the camera")
		}
	})
	virtual(t, "stop", func(t *testing.T) {
		s, w := room(t)
		ok(t, s.NavTranslate(.4, 0))
		rep := during(t.Context(), t, s, w, func() {
			time.Sleep(5 * time.Second)
			ok(t, s.Stop(t.Context()))
		})
		if rep.Message != "Cut short: stopped on request." || math.Abs(rep.RealizedBase.X-.2) > 1e-9 {
			t.Errorf("%q after %v", rep.Message, rep.RealizedBase)
		}
	})
}

func TestClientGone(t *testing.T) {
	for policy, want := range map[stage.ClientGone]time.Duration{stage.Finish: 10 * time.Second, stage.StopNow: 3 * time.Second} {
		virtual(t, want.String(), func(t *testing.T) {
			w := newWorld(geom.At(.6, 0, .8))
			s := newStage(w, stage.Face2D, func(o *stage.Options) { o.OnClientGone = policy })
			ok(t, s.TranslateRobot(r3.Vec{X: .4}))
			ctx, cancel := context.WithCancel(t.Context())
			rep := during(ctx, t, s, w, func() {
				time.Sleep(3 * time.Second)
				cancel()
			})
			if rep.Outcome.Took != want || s.Snapshot().Last != rep || s.Snapshot().LastShown {
				t.Errorf("took %v, want %v: %q", rep.Outcome.Took, want, rep.Message)
			}
			if strings.Contains(rep.Message, "pictures") {
				t.Errorf("the scene was not renewed: %q", rep.Message)
			}
		})
	}
	virtual(t, "before it began", func(t *testing.T) {
		s, w := room(t)
		ok(t, s.TranslateRobot(r3.Vec{X: .4}))
		s.Show()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Execute(ctx, time.Now(), 1)
		refusal(t, err, stage.RuleClientGone)
		if w.ran() != 0 {
			t.Error("moved for nobody")
		}
	})
}

func TestNotMoved(t *testing.T) {
	previews(t, func(t *testing.T, s *stage.Stage, w *world) {
		w.ready = &safety.Refused{Rule: "not armed", Next: "Ask the operator to arm."}
		if r := s.Snapshot().Check.Refused; r != w.ready {
			t.Errorf("the check says %v", r)
		}
		unchanged(t, s, func() {
			_, err := s.Execute(t.Context(), time.Now(), 1)
			refusal(t, err, "not armed")
		})
		w.ready = nil
		w.goErr = &safety.Refused{Rule: "fresh state", Value: "0.4 s", Limit: "0.2 s", Next: "Wait."}
		unchanged(t, s, func() {
			_, err := s.Execute(t.Context(), time.Now(), 1)
			refusal(t, err, "fresh state")
		})
		w.goErr = errors.New("connection refused")
		unchanged(t, s, func() {
			_, err := s.Execute(t.Context(), time.Now(), 1)
			refusal(t, err, stage.RuleNotMoved)
		})
		w.set(func(st *robot.State) { st.Q = nil })
		_, err := s.Execute(t.Context(), time.Now(), 1)
		refusal(t, err, stage.RuleNoState)
		w.set(func(st *robot.State) { st.Q = w.solve(geom.SE2{}, geom.At(.6, 0, .8)) })
		w.goErr = nil
		lives(t, s, w) // nothing moved, so what was seen is still true
	})
}

func TestBadEnd(t *testing.T) {
	virtual(t, "state lost", func(t *testing.T) {
		s, w := room(t)
		ok(t, s.TranslateRobot(r3.Vec{X: .4}))
		w.lost, w.result, w.why, w.success = true, robot.ResultUnknown, "no state since 0.5 s", true
		rep := run(t, s, 1)
		if rep.Message != "Outcome unknown: no state since 0.5 s. stop NOT confirmed: use the e-stop." {
			t.Errorf("message %q", rep.Message)
		}
		vec(t, "realized from the newest state", rep.Realized.Pose.P, r3.Vec{X: 1, Z: .8})
		if rep.Success || s.Snapshot().Finished {
			t.Error("success without a confirmed stop")
		}
	})
	virtual(t, "cameras died", func(t *testing.T) {
		s, w := room(t)
		ok(t, s.TranslateRobot(r3.Vec{X: .4}))
		w.sceneErr = errors.New("wrist: no frame")
		rep := run(t, s, 1)
		if !strings.HasPrefix(rep.Message, "The pictures are from before the motion ended: ") {
			t.Errorf("message %q", rep.Message)
		}
	})
	virtual(t, "driver panics", func(t *testing.T) {
		w := newWorld(geom.At(.6, 0, .8))
		s := newStage(w, stage.Face2D, func(o *stage.Options) { o.Mover = bomb{w} })
		ok(t, s.TranslateRobot(r3.Vec{X: .4}))
		s.Show()
		func() {
			defer func() { _ = recover() }()
			_, _ = s.Execute(t.Context(), time.Now(), 1)
			t.Error("no panic")
		}()
		if s.Snapshot().Moving {
			t.Error("stage believes for ever that the robot moves")
		}
		_, err := s.ResetTarget()
		ok(t, err)
	})
}

type bomb struct{ *world }

func (bomb) Go(context.Context, robot.Plan) (robot.Outcome, error) { panic("driver") }

func TestEpisode(t *testing.T) {
	virtual(t, "success", func(t *testing.T) {
		s, w := tabletop(t)
		fresh := s.Snapshot()
		_, err := s.Translate(r3.Vec{X: .1})
		ok(t, err)
		_, err = s.OrbitBy(.2, 0)
		ok(t, err)
		w.success = true
		rep := run(t, s, 1)
		if !rep.Success || !strings.HasPrefix(rep.Message, "TASK SUCCEEDED") || !s.Snapshot().Finished {
			t.Errorf("report %+v", rep)
		}
		unchanged(t, s, func() {
			_, err := s.Translate(r3.Vec{X: .1})
			refusal(t, err, stage.RuleFinished)
			refusal(t, s.ResetToReal(), stage.RuleFinished)
			_, err = s.Execute(t.Context(), time.Now(), 2)
			refusal(t, err, stage.RuleFinished)
		})
		s.Show()
		ok(t, s.CameraReset())
		broken := errors.New("disk full")
		unchanged(t, s, func() {
			if err := s.EndEpisode(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
		})
		ok(t, s.EndEpisode(t.Context(), func(context.Context) error {
			_, err := s.Advance(1)
			refusal(t, err, stage.RuleEnding)
			refusal(t, s.EndEpisode(t.Context(), nil), stage.RuleEnding)
			_, err = s.Execute(t.Context(), time.Now(), 3)
			refusal(t, err, stage.RuleEnding)
			s.Show()
			w.set(func(st *robot.State) { st.Q = w.solve(geom.SE2{}, down) })
			return nil
		}))
		got := s.Snapshot()
		if got.Episode != 1 {
			t.Errorf("episode %d", got.Episode)
		}
		fresh.Episode, fresh.State.Seq, got.State.Seq = got.Episode, 0, 0
		fresh.Scene = got.Scene // a new one
		// The jaw of the reset world is as the twin leaves it; here it did not change.
		if d := cmp.Diff(fresh, got, sameScene, notNow); d != "" {
			t.Errorf("the next episode does not start fresh:\n%s", d)
		}
	})
	virtual(t, "in the middle", func(t *testing.T) {
		s, _ := room(t)
		ok(t, s.NavTranslate(.1, 0))
		ok(t, s.EndEpisode(t.Context(), nil))
		if sn := s.Snapshot(); sn.Mode != stage.ModeNone || sn.BaseDelta != (geom.SE2{}) || sn.Last != nil {
			t.Errorf("%+v", sn)
		}
		_, err := s.Execute(t.Context(), time.Now(), 1)
		refusal(t, err, stage.RuleNothingStaged)
	})
}
