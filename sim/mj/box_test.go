package mj

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// One box lies level on a big one, or stands on an edge of it, barely overlapping: no contact may be deeper
// than they overlap, or elsewhere. MuJoCo 2.2.2 alone gets up to a quarter of these wrong (box.c).
func TestLevelBoxesTouchAsDeepAsTheyOverlap(t *testing.T) {
	n := 10000
	if testing.Short() {
		n = 1000
	}
	table, cube := [3]float64{0.425, 0.65, 0.018}, [3]float64{0.0225, 0.0225, 0.0225}
	for _, c := range []struct {
		name      string
		big, half [3]float64
		pitch     float64
	}{
		{"cube on a thin table", table, cube, 0},
		{"cube on a thick table", [3]float64{0.425, 0.65, 0.2}, cube, 0},
		{"cube on a cube", [3]float64{0.025, 0.025, 0.025}, cube, 0},
		{"cube turned on its side", table, cube, math.Pi / 2},
		{"thin sheet", table, [3]float64{0.05, 0.03, 0.0013}, 0},
		{"sheet on its edge", table, [3]float64{0.0013, 0.05, 0.02}, 0.3},
		{"cube on its edge", table, cube, 1},
		{"cube nearly level", table, cube, 1e-16},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, d := load(t, fmt.Sprintf(`<mujoco><worldbody><geom type="box" size="%g %g %g" pos="0.585 0 %g"/>
				<body><freejoint/><geom type="box" size="%g %g %g"/></body></worldbody></mujoco>`,
				c.big[0], c.big[1], c.big[2], -c.big[2], c.half[0], c.half[1], c.half[2]))
			rng := rand.New(rand.NewPCG(1, 2))
			for range n {
				deep := math.Pow(10, -8+6*rng.Float64()) / 10 // 1e-9 to 1e-3 m
				x, y, yaw := 0.585+c.big[0]*(rng.Float64()-0.5), c.big[1]*(rng.Float64()-0.5), 1.5*rng.Float64()
				low := c.half[2]*math.Cos(c.pitch) + c.half[0]*math.Sin(c.pitch)
				sy, cy := math.Sincos(yaw / 2)
				sp, cp := math.Sincos(c.pitch / 2)
				copy(d.Qpos(), []float64{x, y, low - deep, cy * cp, -sy * sp, cy * sp, sy * cp})
				if err := d.Forward(); err != nil {
					t.Fatal(err)
				}
				if why := wrongContacts(d, deep, [2]float64{x, y}); why != "" {
					t.Fatalf("%.3g m deep at %.3f %.3f yaw %.3f: %s", deep, x, y, yaw, why)
				}
			}
		})
	}
}

// wrongContacts wants two upward contacts or more, no deeper than deep, at the table's top and under the box.
func wrongContacts(d *Data, deep float64, at [2]float64) string {
	if d.NContact() < 2 {
		return fmt.Sprintf("%d contacts", d.NContact())
	}
	for i := range d.NContact() {
		c := d.Contact(i)
		away := math.Hypot(c.Pos[0]-at[0], c.Pos[1]-at[1])
		switch {
		case c.Dist < -deep-1e-6:
			return fmt.Sprintf("a contact %.3g m deep", -c.Dist)
		case c.Frame[2] < 1-1e-6:
			return fmt.Sprintf("a normal %v", c.Frame[:3])
		case away > 0.08 || math.Abs(c.Pos[2]) > deep+1e-6:
			return fmt.Sprintf("a contact at %v", c.Pos)
		}
	}
	return ""
}
