package e2e

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/spatial/r3"
)

// TestStackCubes: the red cube ends on the green one, by physics. Odd seeds speak through mcp-go's client,
// even ones through the official SDK's.
func TestStackCubes(t *testing.T) {
	for i := range *seeds {
		seed := *from + int64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := start(t, "twin-franka.yaml", seed)
			dial := dialMCPGo
			if seed%2 == 0 {
				dial = dialSDK
			}
			a := &tabletop{agentFor(t, d, dial)}
			a.stack(red, green)
			assertStacked(t, d)
		})
	}
}

func assertStacked(t *testing.T, d daemon) {
	t.Helper()
	tr := d.twin.Truth()
	up, down := tr.Objects["red_cube"], tr.Objects["green_cube"]
	off := r3.Sub(up.P, down.P)
	t.Logf("red is %.1f mm beside and %.1f mm above green after %s", 1e3*math.Hypot(off.X, off.Y), 1e3*off.Z, tr.Time)
	if math.Hypot(off.X, off.Y) > 0.025 || math.Abs(off.Z-0.0475) > 0.004 {
		t.Errorf("the red cube does not rest on the green one: offset %v", off)
	}
}

// TestToyIntoBox: the toy, out of view at the start, ends in the box, by physics.
func TestToyIntoBox(t *testing.T) {
	for i := range *seeds {
		seed := *from + int64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := start(t, "twin-stretch4.yaml", seed)
			dial := dialMCPGo
			if seed%2 == 0 {
				dial = dialSDK
			}
			a := &mobile{agent: agentFor(t, d, dial)}
			a.fetch()
			assertInBox(t, d)
		})
	}
}

func assertInBox(t *testing.T, d daemon) {
	t.Helper()
	tr := d.twin.Truth()
	in := tr.Objects["box"].Inv().Point(tr.Objects["toy"].P)
	t.Logf("the toy is at %v in the box's frame after %s", in, tr.Time)
	if math.Abs(in.X) > 0.15 || math.Abs(in.Y) > 0.125 || in.Z < 0 || in.Z > 0.12 {
		t.Error("the toy is not in the box")
	}
}
