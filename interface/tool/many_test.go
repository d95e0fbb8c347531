package tool_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"viad/interface/stage"
	"viad/interface/view"
)

// TestManyClientsAtOnce: four clients of three principals call anything at random, drop requests in mid-call
// and stop each other. Nothing panics, two motions never overlap, and every answer is a result.
func TestManyClientsAtOnce(t *testing.T) {
	for _, face := range []stage.Face{stage.Face3D, stage.Face2D} {
		r := newRig(t, face, setup{stage: stopNow})
		r.p.hits = map[[2]float64]view.Hit{{.5, .5}: point(.5, .1, .2), {.6, .5}: {Kind: view.Target}}
		valid, names := valid3D, names3D
		if face == stage.Face2D {
			valid, names = valid2D, names2D
		}
		var wg sync.WaitGroup
		for n, token := range []string{"drive", "drive", "drive2", "watch"} {
			a := r.agent(t, token)
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(n), 7))
				for range 80 {
					name := names[rng.IntN(len(names))]
					args := valid[name]
					if args == "" {
						args = `{}`
					}
					if rng.IntN(5) == 0 {
						args = `{"u":"x"}`
					}
					ctx, cancel := context.WithCancel(context.Background())
					var timer *time.Timer
					if rng.IntN(4) == 0 {
						timer = time.AfterFunc(time.Duration(rng.IntN(3000))*time.Microsecond, cancel)
					}
					got, err := a.try(ctx, name, args)
					if timer != nil {
						timer.Stop()
					}
					if err != nil && ctx.Err() == nil {
						t.Errorf("%s %s: %v", name, args, err)
					}
					if strings.Contains(got.text(), "internal fault") {
						t.Errorf("%s %s: %s", name, args, got.text())
					}
					cancel()
				}
			})
		}
		wg.Wait()
		soon(t, "rest", func() bool { return !r.st.Snapshot().Moving })
		if r.w.overlap || r.w.inside != 0 {
			t.Errorf("motions overlapped: %v, %d inside", r.w.overlap, r.w.inside)
		}
		if r.w.motions() == 0 {
			t.Error("no motion ran, so this showed nothing")
		}
	}
}
