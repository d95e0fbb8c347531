package view

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
	"viad/perception"
)

// denseCloud is n points of a bumpy table in voxel order (tiles of a few centimetres).
func denseCloud(n int) *perception.Cloud {
	side := int(math.Sqrt(float64(n)))
	c := &perception.Cloud{}
	const tile = 16
	for ty := 0; ty < side; ty += tile {
		for tx := 0; tx < side; tx += tile {
			for y := ty; y < min(ty+tile, side); y++ {
				for x := tx; x < min(tx+tile, side); x++ {
					fx, fy := float64(x)/float64(side), float64(y)/float64(side)
					z := .05 * math.Max(0, math.Sin(fx*25)*math.Sin(fy*25))
					c.XYZ = append(c.XYZ, float32(.05+.9*fx), float32(-.5+fy), float32(z))
					c.RGB = append(c.RGB, uint8(120+100*fx), uint8(90+150*z/.05), uint8(200*fy))
					c.Class = append(c.Class, perception.World)
				}
			}
		}
	}
	return c
}

// BenchmarkUI measures the whole 3D picture with its JPEG: "edit" moves the target in a scene that was drawn
// before, "orbit" moves the viewport, "scene" is all new, feeds included.
func BenchmarkUI(b *testing.B) {
	base := tabletop(b)
	p := newPainter(b, Options{})
	for _, n := range []int{300_000, 600_000} {
		sc := *base.Scene
		sc.Cloud = denseCloud(n)
		sn := *base
		sn.Scene = &sc
		for _, what := range []string{"edit", "orbit", "scene"} {
			b.Run(fmt.Sprintf("%s/%dk", what, n/1000), func(b *testing.B) {
				for i := range b.N {
					s := staged(&sn, topDown(r3.Vec{X: .5, Y: .1 + .0001*float64(i%1000), Z: .1}), true, stage.Check{Reachable: true, Clear: true, Reach: "reachable", Way: "clear"})
					switch what {
					case "orbit":
						s.Orbit.Azimuth += float64(i) * 1e-4
					case "scene":
						one := sc
						frame := *sc.Cameras[0].Frame
						cam := *sc.Cameras[0]
						cam.Frame = &frame
						one.Cameras = []*perception.Camera{&cam, sc.Cameras[1]}
						s.Scene = &one
					}
					if _, err := JPEG(p.UI(s, Overlay{}), 0); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkParts measures what a picture is made of.
func BenchmarkParts(b *testing.B) {
	sn := tabletop(b)
	sc := *sn.Scene
	sc.Cloud = denseCloud(600_000)
	sn.Scene = &sc
	p := newPainter(b, Options{})
	img := p.UI(sn, Overlay{})
	l := orbitLens(sn.Orbit, 880, 800)
	buf := make([]cell, 880*800)
	b.Run("splat600k", func(b *testing.B) {
		for range b.N {
			for i := range buf {
				buf[i] = nothing
			}
			splat(buf, &l, sc.Cloud, .0013, allClasses)
		}
	})
	b.Run("splat600k_coarse", func(b *testing.B) {
		for range b.N {
			for i := range buf {
				buf[i] = nothing
			}
			splat(buf, &l, sc.Cloud, .004, allClasses)
		}
	})
	c := canvasOn(img, Layout.Cloud, buf)
	b.Run("paintCells", func(b *testing.B) {
		for range b.N {
			paintCells(c, buf)
		}
	})
	b.Run("grid", func(b *testing.B) {
		for range b.N {
			drawGrid(c, &l, sn.Orbit)
		}
	})
	b.Run("sky", func(b *testing.B) {
		for range b.N {
			paintSky(c)
		}
	})
	b.Run("solid", func(b *testing.B) {
		m := p.gripper(.08)
		for range b.N {
			drawSolid(c, &l, m, topDown(r3.Vec{X: .5, Y: .1, Z: .1}), targetLook(sn), &p.solids)
		}
	})
	b.Run("sidebar", func(b *testing.B) {
		for range b.N {
			p.sidebar(img, sn)
		}
	})
	b.Run("scaleFeed", func(b *testing.B) {
		f := sc.Cameras[0].Frame
		for range b.N {
			scale(f.RGB, 640, 480, 400, 300)
		}
	})
	b.Run("jpegTurbo", func(b *testing.B) {
		for range b.N {
			if _, err := JPEG(img, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("jpegPlain", func(b *testing.B) {
		for range b.N {
			if _, err := plainEncode(img, DefaultQuality); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("pick", func(b *testing.B) {
		for range b.N {
			p.Pick(sn, .7, .6)
		}
	})
	b.Run("orbitTarget", func(b *testing.B) {
		for range b.N {
			_ = geom.Deg(sn.Orbit.Azimuth)
		}
	})
}
