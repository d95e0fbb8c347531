package sim

import (
	"math"

	"viad/drivers/sensor"
	"viad/sim/model"
)

// optics is how good a camera's depth is.
type optics struct {
	near, far float64 // metres trusted
	sigma     float64 // noise at 1 m; grows with the square of depth
	stereo    bool    // holes at edges and where there is nothing to match
	dropout   float64 // share of pixels without a reading
}

// A time-of-flight or structured-light camera on a tripod is good to 1.5 mm at 1 m. On a wrist there is room
// for a short stereo baseline: 2 cm at a focal length of 450 px and a tenth of a pixel gives 1 cm at 1 m and
// 0.6 mm at 25 cm; an active pair with a better matcher, as on the Franka's hand, 4 mm at 1 m.
func opticsOf(c model.Camera) optics {
	switch {
	case c.Stereo:
		return optics{near: 0.07, far: 1.5, sigma: 0.010, stereo: true, dropout: 0.004}
	case c.Mount.Link == "":
		return optics{near: 0.3, far: 4, sigma: 0.0015, dropout: 0.001}
	}
	return optics{near: 0.05, far: 1.5, sigma: 0.004, stereo: true, dropout: 0.002}
}

// spoil turns rendered depth into a sensor's. The noise depends on the camera, the world and the stamp.
func spoil(f *sensor.Frame, o optics, salt uint64) {
	frame := mix(salt, uint64(f.Stamp.UnixNano()), 1)
	var keep []bool
	if o.stereo {
		keep = matched(f, frame)
	}
	for i, z32 := range f.Depth {
		z := float64(z32)
		if !(z >= o.near && z <= o.far) || keep != nil && !keep[i] || uniform(frame, uint64(i), 2) < o.dropout {
			f.Depth[i] = 0
			continue
		}
		f.Depth[i] = float32(z + o.sigma*z*z*gauss(frame, uint64(i), 3))
	}
}

const (
	edgeJump = 0.04 // relative depth step that a matching window does not bridge
	edgeHalf = 2    // half the window, pixels
	patch    = 16   // pixels: size of a blob that finds no match
	flat     = 10   // grey levels of contrast below which a patch is hard to match
	hardMiss = 0.10 // share of such patches without a reading
)

// matched marks the pixels that a stereo matcher would find: not beside a step in depth, not in some patches
// without texture. It reads the depth before it is spoilt.
func matched(f *sensor.Frame, frame uint64) []bool {
	w, h := f.Info.Intrinsics.W, f.Info.Intrinsics.H
	keep := make([]bool, w*h)
	for i := range keep {
		keep[i] = true
	}
	for y := range h {
		for x := range w {
			z := f.Depth[y*w+x]
			if x+1 < w && step(z, f.Depth[y*w+x+1]) || y+1 < h && step(z, f.Depth[(y+1)*w+x]) {
				clearAround(keep, w, h, x, y)
			}
		}
	}
	for by := 0; by < h; by += patch {
		for bx := 0; bx < w; bx += patch {
			if uniform(frame, uint64(by*w+bx), 5) < hardMiss && contrast(f.RGB, w, h, bx, by) < flat {
				blob(keep, w, h, bx, by, frame)
			}
		}
	}
	return keep
}

func step(a, b float32) bool {
	return math.Abs(float64(a-b)) > edgeJump*math.Min(float64(a), float64(b))
}

func clearAround(keep []bool, w, h, x, y int) {
	for v := max(0, y-edgeHalf); v <= min(h-1, y+edgeHalf); v++ {
		for u := max(0, x-edgeHalf); u <= min(w-1, x+edgeHalf); u++ {
			keep[v*w+u] = false
		}
	}
}

// contrast is the spread of green over a patch.
func contrast(rgb []byte, w, h, bx, by int) int {
	lo, hi := 255, 0
	for y := by; y < min(h, by+patch); y += 2 {
		for x := bx; x < min(w, bx+patch); x += 2 {
			g := int(rgb[3*(y*w+x)+1])
			lo, hi = min(lo, g), max(hi, g)
		}
	}
	return hi - lo
}

// blob clears a round spot of random size in a patch.
func blob(keep []bool, w, h, bx, by int, frame uint64) {
	r := 4 + 6*uniform(frame, uint64(by*w+bx), 6)
	for y := by; y < min(h, by+patch); y++ {
		for x := bx; x < min(w, bx+patch); x++ {
			dx, dy := float64(x-bx)-patch/2, float64(y-by)-patch/2
			if dx*dx+dy*dy < r*r {
				keep[y*w+x] = false
			}
		}
	}
}
