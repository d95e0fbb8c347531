package stage_test

import (
	"context"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
	"viad/perception"
)

// late are scenes during whose making something else happens.
type late struct {
	*world
	meanwhile *func()
}

func (l late) Refresh(ctx context.Context, t time.Time) (*perception.Scene, error) {
	if *l.meanwhile != nil {
		(*l.meanwhile)()
	}
	return l.world.Refresh(ctx, t)
}

// The seat goes to somebody else while an execute waits for the cameras: nothing moves, and nothing is judged that is
// staged no more.
func TestTheSeatIsTakenWhileAnExecuteLooks(t *testing.T) {
	w := newWorld(geom.At(.6, 0, .8))
	var meanwhile func()
	s := newStage(w, stage.Face2D, func(o *stage.Options) { o.Scenes, o.SceneAge = late{w, &meanwhile}, time.Nanosecond })
	ok(t, s.TranslateRobot(r3.Vec{X: .1}))
	s.Show()
	meanwhile = s.NewDriver
	_, err := s.Execute(t.Context(), time.Now(), 1)
	refusal(t, err, stage.RuleNewDriver)
	if w.ran() != 0 {
		t.Error("moved")
	}
}
