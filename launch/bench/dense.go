package main

import (
	"context"
	"math"
	"sync"
	"time"

	"viad/drivers/sensor"
)

// dense makes depth cameras see finer by k: colour and depth are interpolated between the pixels of the real
// picture, so that the cloud has more points of the same scene. Nothing else changes.
func dense(k int) func([]sensor.Source) []sensor.Source {
	return func(in []sensor.Source) []sensor.Source {
		out := make([]sensor.Source, len(in))
		for i, s := range in {
			out[i] = s
			if s.Info().HasDepth {
				out[i] = newFine(s, k)
			}
		}
		return out
	}
}

// fine is a camera with k times the pixels along both sides.
type fine struct {
	sensor.Source
	k    int
	info sensor.Info

	mu       sync.Mutex
	from, to *sensor.Frame // the last frame and what was made of it
}

func newFine(s sensor.Source, k int) *fine {
	f := &fine{Source: s, k: k, info: *s.Info()}
	in, n := &f.info.Intrinsics, float64(k)
	in.W, in.H, in.Fx, in.Fy = k*in.W, k*in.H, n*in.Fx, n*in.Fy
	in.Cx, in.Cy = n*(in.Cx+.5)-.5, n*(in.Cy+.5)-.5
	return f
}

// Info describes the finer camera.
func (f *fine) Info() *sensor.Info { return &f.info }

// Frame is the camera's own frame made finer; the same one for the same frame.
func (f *fine) Frame(ctx context.Context, t time.Time) (*sensor.Frame, error) {
	fr, err := f.Source.Frame(ctx, t)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if fr != f.from {
		f.from, f.to = fr, f.refine(fr)
	}
	return f.to, nil
}

func (f *fine) refine(fr *sensor.Frame) *sensor.Frame {
	out := *fr
	out.Info = &f.info
	w, h := fr.Info.Intrinsics.W, fr.Info.Intrinsics.H
	W, H := f.info.Intrinsics.W, f.info.Intrinsics.H
	out.RGB, out.Depth = make([]byte, 3*W*H), make([]float32, W*H)
	for v := range H {
		y0, y1, b := between(v, f.k, h)
		for u := range W {
			x0, x1, a := between(u, f.k, w)
			at := [4]int{y0*w + x0, y0*w + x1, y1*w + x0, y1*w + x1}
			wt := [4]float32{(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b}
			out.Depth[v*W+u] = depthAt(fr.Depth, at, wt)
			for c := range 3 {
				s := float32(.5)
				for i := range 4 {
					s += wt[i] * float32(fr.RGB[3*at[i]+c])
				}
				out.RGB[3*(v*W+u)+c] = byte(s)
			}
		}
	}
	return &out
}

// between is the two pixels of n that fine pixel i lies between, and how far it is from the first.
func between(i, k, n int) (lo, hi int, part float32) {
	x := (float64(i)+.5)/float64(k) - .5
	f := math.Floor(x)
	return min(max(int(f), 0), n-1), min(max(int(f)+1, 0), n-1), float32(x - f)
}

// depthAt interpolates on one surface, and takes the nearest pixel's reading across an edge or beside a hole.
func depthAt(d []float32, at [4]int, wt [4]float32) float32 {
	var sum float32
	lo, hi := float32(math.Inf(1)), float32(0)
	best := 0
	for i, k := range at {
		lo, hi = min(lo, d[k]), max(hi, d[k])
		sum += wt[i] * d[k]
		if wt[i] > wt[best] {
			best = i
		}
	}
	if lo > 0 && hi-lo < .02*lo {
		return sum
	}
	return d[at[best]]
}
