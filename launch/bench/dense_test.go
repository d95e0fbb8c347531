package main

import (
	"context"
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/sensor"
)

type one struct {
	info  sensor.Info
	frame sensor.Frame
}

func (o *one) Info() *sensor.Info { return &o.info }

func (o *one) Frame(context.Context, time.Time) (*sensor.Frame, error) { return &o.frame, nil }

// picture is w by h pixels with the depth and the red of a pixel by its place.
func picture(w, h int, depth, red func(u, v float64) float64) *one {
	o := &one{info: sensor.Info{Name: "third_person", Intrinsics: sensor.FromFovy(w, h, 0.9), HasColor: true, HasDepth: true}}
	o.frame = sensor.Frame{Info: &o.info, RGB: make([]byte, 3*w*h), Depth: make([]float32, w*h)}
	for v := range h {
		for u := range w {
			o.frame.Depth[v*w+u] = float32(depth(float64(u), float64(v)))
			o.frame.RGB[3*(v*w+u)] = byte(red(float64(u), float64(v)))
		}
	}
	return o
}

// A point seen by both cameras is on the same ray, and a ramp of depth and colour stays that ramp.
func TestDenseSeesTheSameScene(t *testing.T) {
	depth := func(u, v float64) float64 { return 1 + .002*u + .001*v }
	red := func(u, v float64) float64 { return 10*u + 4*v }
	const k, w, h = 3, 16, 12
	o := picture(w, h, depth, red)
	f := dense(k)([]sensor.Source{o})[0]
	fr, err := f.Frame(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	in := f.Info().Intrinsics
	if in.W != k*w || in.H != k*h || fr.Info != f.Info() || len(fr.Depth) != k*k*w*h {
		t.Fatalf("the finer camera is %+v", in)
	}
	for _, p := range []r3.Vec{{X: .1, Y: -.2, Z: 1}, {X: -.3, Y: .05, Z: 1.4}} {
		u, v, _ := o.info.Intrinsics.Project(p)
		U, V, _ := in.Project(p)
		if math.Abs((U+.5)/k-(u+.5)) > 1e-9 || math.Abs((V+.5)/k-(v+.5)) > 1e-9 {
			t.Errorf("%v is at %g, %g and finer at %g, %g", p, u, v, U, V)
		}
	}
	for V := k; V < k*(h-1); V++ {
		for U := k; U < k*(w-1); U++ {
			u, v := (float64(U)+.5)/k-.5, (float64(V)+.5)/k-.5
			if got := float64(fr.Depth[V*in.W+U]); math.Abs(got-depth(u, v)) > 1e-6 {
				t.Fatalf("depth at %d, %d is %g, want %g", U, V, got, depth(u, v))
			}
			if got := float64(fr.RGB[3*(V*in.W+U)]); math.Abs(got-red(u, v)) > .51 {
				t.Fatalf("red at %d, %d is %g, want %g", U, V, got, red(u, v))
			}
		}
	}
	if again, err := f.Frame(t.Context(), time.Time{}); err != nil || again != fr {
		t.Error("the same frame was made finer twice")
	}
}

// Nothing floats between a near thing and a far one, nor beside a hole.
func TestDenseInventsNoSurface(t *testing.T) {
	o := picture(8, 6, func(u, _ float64) float64 { return map[bool]float64{true: 1, false: 2}[u < 4] }, func(_, _ float64) float64 { return 0 })
	o.frame.Depth[0] = 0
	f := dense(2)([]sensor.Source{o})[0]
	fr, err := f.Frame(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for i, z := range fr.Depth {
		if z != 0 && z != 1 && z != 2 {
			t.Fatalf("fine pixel %d is %g m away, where nothing is", i, z)
		}
	}
	if fr.Depth[0] != 0 {
		t.Error("a hole was filled")
	}
}

func TestOnlyDepthCamerasAreMadeFiner(t *testing.T) {
	o := &one{info: sensor.Info{Name: "lidar", HasPoints: true}}
	if got := dense(2)([]sensor.Source{o})[0]; got != sensor.Source(o) {
		t.Errorf("a lidar became %T", got)
	}
}

// Every place that the target is sent to differs from the one before by less than a call may move it.
func TestTargetsAndTurns(t *testing.T) {
	for n := range 1000 {
		if d := r3.Norm(r3.Sub(target(n+1), target(n))); !(d > 1e-3 && d < .1) {
			t.Errorf("edit %d moves by %g m", n+1, d)
		}
		a0, e0 := turn(n)
		a1, e1 := turn(n + 1)
		if d := math.Max(math.Abs(a1-a0), math.Abs(e1-e0)); !(d > .1 && d < 45) {
			t.Errorf("turn %d is by %g degrees", n+1, d)
		}
	}
}
