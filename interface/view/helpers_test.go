package view

import (
	"cmp"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func sortKeys(keys [][3]int32) {
	slices.SortFunc(keys, func(a, b [3]int32) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(a[2], b[2]))
	})
}

func newPainter(tb testing.TB, o Options) *Painter {
	tb.Helper()
	p, err := NewPainter(o)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// dump writes a picture where VIEW_DUMP names a directory, to be looked at.
func dump(tb testing.TB, name string, img image.Image) {
	tb.Helper()
	dir := os.Getenv("VIEW_DUMP")
	if dir == "" {
		return
	}
	f, err := os.Create(filepath.Join(dir, name+".png"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, img); err != nil {
		tb.Fatal(err)
	}
}
