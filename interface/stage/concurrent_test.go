package stage_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/safety"
)

// slow is a planner that waits for permission.
type slow struct {
	*world
	asked, release chan struct{}
}

func (p slow) Plan(st robot.State, wp robot.Waypoint) (robot.Plan, error) {
	p.asked <- struct{}{}
	<-p.release
	return p.world.Plan(st, wp)
}

// Looking waits neither for the plan of an edit nor for that of an execute.
func TestLookingNeverWaits(t *testing.T) {
	w := newWorld(geom.At(.6, 0, .8))
	p := slow{w, make(chan struct{}), make(chan struct{})}
	s := newStage(w, stage.Face2D, func(o *stage.Options) { o.Planner = p })
	done := make(chan error, 1)
	look := func(mode stage.Mode) {
		t.Helper()
		<-p.asked // from here on the planner hangs until it is let go
		if m := s.Snapshot().Mode; m != mode {
			t.Errorf("mode %v while planning, want %v", m, mode)
		}
		if s.Show().Mode != mode || s.Pinned().Mode != mode {
			t.Error("shown before it is committed")
		}
		p.release <- struct{}{}
	}
	go func() { done <- s.TranslateRobot(r3.Vec{X: .1}) }()
	look(stage.ModeNone)
	ok(t, <-done)
	s.Show()
	w.took = 0
	go func() {
		_, err := s.Execute(t.Context(), time.Now(), 1)
		done <- err
	}()
	look(stage.ModePose)
	ok(t, <-done)
}

// lone is a mover that notices company.
type lone struct {
	*world
	in, together, moves atomic.Int32
}

func (l *lone) Go(ctx context.Context, p robot.Plan) (robot.Outcome, error) {
	if l.in.Add(1) > 1 {
		l.together.Add(1)
	}
	defer l.in.Add(-1)
	l.moves.Add(1)
	return l.world.Go(ctx, p)
}

// Many clients at once: one motion at a time, every error a refusal, and no snapshot that contradicts itself.
func TestManyClients(t *testing.T) {
	for _, face := range []stage.Face{stage.Face2D, stage.Face3D} {
		w := newWorld(geom.At(.6, 0, .8))
		w.took = 200 * time.Microsecond
		m := &lone{world: w}
		s := newStage(w, face, func(o *stage.Options) { o.Mover = m })
		var ids atomic.Uint64
		var wg sync.WaitGroup
		for c := range 6 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(c), 3))
				for range 300 {
					check(t, anything(t.Context(), s, rng, ids.Add(1)))
					consistent(t, s.Snapshot())
				}
			})
		}
		wg.Wait()
		if m.together.Load() != 0 {
			t.Errorf("%d motions ran beside another", m.together.Load())
		}
		if m.moves.Load() == 0 {
			t.Error("nothing ever moved: the test proves nothing")
		}
		if sn := s.Snapshot(); sn.Moving {
			t.Error("still moving at the end")
		}
	}
}

// anything makes one random call.
func anything(ctx context.Context, s *stage.Stage, rng *rand.Rand, id uint64) error {
	switch rng.IntN(14) {
	case 0:
		return s.TranslateRobot(r3.Vec{X: .02, Y: .02 - .04*rng.Float64()})
	case 1:
		return s.NavRotate(.1)
	case 2:
		return s.SetJaw(rng.IntN(2) == 0)
	case 3:
		_, err := s.Translate(r3.Vec{Z: .04 - .08*rng.Float64()})
		return err
	case 4:
		_, err := s.Toggle("toggle")
		return err
	case 5:
		_, err := s.OrbitBy(.1, -.1)
		return err
	case 6:
		_, err := s.ResetTarget()
		return err
	case 7:
		return s.EndEpisode(ctx, nil)
	case 8:
		return s.Stop(ctx)
	case 9:
		return s.Refresh(ctx)
	case 10:
		s.MarkDelivered(id)
		s.Pinned()
		return nil
	default:
		s.Show()
		rep, err := s.Execute(ctx, time.Now(), id)
		if err == nil && rep.ID != id {
			return errors.New("another's report")
		}
		return err
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	var r *safety.Refused
	if err != nil && (!errors.As(err, &r) || r.Rule == "" || r.Next == "") {
		t.Errorf("not a refusal: %v", err)
	}
}

func consistent(t *testing.T, sn *stage.Snapshot) {
	t.Helper()
	if sn.Mode == stage.ModeNone && sn.Face == stage.Face2D && (sn.Target != sn.Real || sn.Check.Staged || sn.BaseDelta != (geom.SE2{})) {
		t.Errorf("nothing staged, yet %+v", sn)
	}
	if sn.Mode != stage.ModeNone && (!sn.Check.Staged || sn.Face == stage.Face3D) {
		t.Errorf("mode %v without a check: %+v", sn.Mode, sn.Check)
	}
	if sn.Check.Plan == nil == sn.Check.Reachable || sn.Teleported {
		t.Errorf("check %+v", sn.Check)
	}
}

// BenchmarkEdit is stage's own share of an edit: the planner and the checker here cost nothing.
func BenchmarkEdit(b *testing.B) {
	w := newWorld(down)
	s := newStage(w, stage.Face3D)
	for i := range b.N {
		if _, err := s.Advance(1 - 2*(i%2)); err != nil {
			b.Fatal(err)
		}
		s.Show()
	}
}

// What a driver staged, looked at or was still planning is not the next one's: neither shown nor executed.
func TestANewDriverFindsNothingStaged(t *testing.T) {
	w := newWorld(geom.At(.6, 0, .8))
	p := slow{w, make(chan struct{}), make(chan struct{})}
	s := newStage(w, stage.Face2D, func(o *stage.Options) { o.Planner = p })
	done := make(chan error, 1)
	planned := func(meanwhile func()) error {
		<-p.asked
		meanwhile()
		p.release <- struct{}{}
		return <-done
	}
	move := func() { done <- s.TranslateRobot(r3.Vec{X: .1}) }
	execute := func() {
		_, err := s.Execute(t.Context(), time.Now(), 1)
		done <- err
	}
	go move()
	refusal(t, planned(s.NewDriver), stage.RuleNewDriver)
	if s.Snapshot().Check.Staged {
		t.Error("an edit of the one before was staged")
	}
	go move()
	ok(t, planned(func() {}))
	s.Show()
	go execute()
	refusal(t, planned(s.NewDriver), stage.RuleNewDriver)
	if w.ran() != 0 || s.Snapshot().Check.Staged {
		t.Error("an execute of the one before moved, or its target is still staged")
	}
	go execute()
	refusal(t, <-done, stage.RuleNothingStaged)
}

// A motion that outlives its driver leaves nothing staged for the next one, and the view is the first one.
func TestAMotionOfTheDriverBefore(t *testing.T) {
	virtual(t, "motion", func(t *testing.T) {
		s, w := tabletop(t)
		home := s.Snapshot().Orbit
		_, err := s.Translate(r3.Vec{X: .1})
		ok(t, err)
		_, err = s.OrbitBy(.3, .1)
		ok(t, err)
		s.Show()
		began := make(chan struct{})
		w.began = began
		done := make(chan error, 1)
		go func() {
			_, err := s.Execute(t.Context(), time.Now(), 1)
			done <- err
		}()
		<-began
		s.NewDriver()
		ok(t, <-done)
		if sn := s.Snapshot(); sn.Check.Staged || sn.Last == nil || sn.Orbit != home {
			t.Errorf("%+v", sn)
		}
	})
}
