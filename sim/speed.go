package sim

import (
	"runtime"
	"slices"
)

// Speed measures, side by side on one model, how many physics steps a second of wall time the twin makes
// (servo, sensing, publishing and clock included) and how many MuJoCo's own loop makes in C with the last
// commands left in place. Both start every round from the same state. The figures are
// medians over the rounds.
func Speed(o Options, rounds int) (twin, loop float64, err error) {
	const steps = 200
	t, err := NewTwin(o)
	if err != nil {
		return 0, 0, err
	}
	defer t.Close()
	c, err := t.p.m.NewData()
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var tw, lp []float64
	for range rounds {
		if err := t.p.d.CopyTo(c); err != nil {
			return 0, 0, err
		}
		begin := wallNow()
		for range steps / slice {
			t.advance(1 << 62)
		}
		tw = append(tw, steps/wallSince(begin).Seconds())
		begin = wallNow()
		c.ProbeLoop(steps)
		lp = append(lp, steps/wallSince(begin).Seconds())
	}
	slices.Sort(tw)
	slices.Sort(lp)
	return tw[rounds/2], lp[rounds/2], nil
}
