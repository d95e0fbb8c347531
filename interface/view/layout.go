package view

import (
	"image"
	"math"
)

// Sizes of the pictures in pixels.
const (
	UIWidth       = 1280 // the 3D face's one picture
	UIHeight      = 800
	HeadWidth     = 960 // the head view
	HeadHeight    = 720
	WristMaxWidth = 960 // the wrist view keeps its own shape up to this width
	MapSize       = 640 // nav_map, square
)

// Layout is where things are in the 3D face's picture, in pixels of 1280x800. A fraction of the picture is a
// pixel over 1280 or 800. Third and Wrist are the feeds' frames; a feed that is not 4:3 stands centred in its frame.
var Layout = struct{ Cloud, Third, Wrist, Status image.Rectangle }{
	Cloud:  image.Rect(400, 0, 1280, 800),
	Third:  image.Rect(0, 24, 400, 324),
	Wrist:  image.Rect(0, 348, 400, 648),
	Status: image.Rect(0, 648, 400, 800),
}

// titleHeight is the strip above each feed that names it.
const titleHeight = 24

// Pixel is the pixel that fraction u of a picture n pixels wide (or high) names; ok is false outside 0..1 and for NaN.
func Pixel(u float64, n int) (int, bool) {
	if !(u >= 0 && u <= 1) {
		return 0, false
	}
	return min(int(math.Floor(u*float64(n))), n-1), true
}

// fit is the largest rectangle of w:h's shape centred in r.
func fit(r image.Rectangle, w, h int) image.Rectangle {
	if w <= 0 || h <= 0 {
		return image.Rectangle{Min: r.Min, Max: r.Min}
	}
	fw, fh := r.Dx(), (r.Dx()*h+w/2)/w
	if fh > r.Dy() {
		fw, fh = (r.Dy()*w+h/2)/h, r.Dy()
	}
	o := image.Pt(r.Min.X+(r.Dx()-fw)/2, r.Min.Y+(r.Dy()-fh)/2)
	return image.Rectangle{Min: o, Max: o.Add(image.Pt(fw, fh))}
}
