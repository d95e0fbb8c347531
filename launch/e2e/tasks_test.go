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
