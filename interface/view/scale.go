package view

import "image"

// scale resizes a packed RGB picture to w by h: by area where it shrinks, by bilinear weights where it grows.
func scale(rgb []byte, sw, sh, w, h int) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	xs, ys := taps(sw, w), taps(sh, h)
	line := make([]uint32, 3*sw)
	for y := range h {
		t := ys[y]
		clear(line)
		for j, wt := range t.w {
			src := rgb[(t.at+j)*3*sw : (t.at+j+1)*3*sw]
			for i, v := range src {
				line[i] += uint32(v) * wt
			}
		}
		row := out.Pix[y*out.Stride : y*out.Stride+4*w]
		for x := range w {
			t := xs[x]
			var r, g, b uint32
			for j, wt := range t.w {
				s := line[3*(t.at+j) : 3*(t.at+j)+3 : 3*(t.at+j)+3]
				r, g, b = r+s[0]>>4*wt, g+s[1]>>4*wt, b+s[2]>>4*wt
			}
			q := row[4*x : 4*x+4 : 4*x+4]
			q[0], q[1], q[2], q[3] = uint8(r>>20), uint8(g>>20), uint8(b>>20), 255
		}
	}
	return out
}

// tap is the source pixels from at on, with weights that add up to 4096, that one destination pixel is made of.
type tap struct {
	at int
	w  []uint32
}

func taps(src, dst int) []tap {
	out := make([]tap, dst)
	ratio := float64(src) / float64(dst)
	reach := max(ratio, 1) // half the width of the triangle that weights by distance
	for i := range out {
		mid := (float64(i)+.5)*ratio - .5
		lo := max(0, int(mid-reach+1))
		hi := min(src-1, int(mid+reach))
		var ws []float64
		sum := 0.0
		for j := lo; j <= hi; j++ {
			d := (float64(j) - mid) / reach
			if d < 0 {
				d = -d
			}
			v := max(0, 1-d)
			ws = append(ws, v)
			sum += v
		}
		if sum == 0 {
			lo, ws, sum = min(max(0, int(mid+.5)), src-1), []float64{1}, 1
		}
		t := tap{at: lo}
		left := uint32(4096)
		for j, v := range ws {
			k := uint32(v / sum * 4096)
			if j == len(ws)-1 {
				k = left
			}
			k = min(k, left)
			left -= k
			t.w = append(t.w, k)
		}
		out[i] = t
	}
	return out
}
