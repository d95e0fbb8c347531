package sim

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// atLeast is the share of MuJoCo's own speed that the twin must keep with servo, sensing and clock. It keeps 0.96 or more,
// and 0.93 under the race detector.
const atLeast = 0.8

func TestSpeedAgainstMuJoCosOwnLoop(t *testing.T) {
	rounds := 15
	if testing.Short() {
		rounds = 5
	}
	for _, o := range []Options{{Robot: "fr3", World: "tabletop"}, {Robot: "stretch4", World: "room"}} {
		twin, loop, err := speed(o, rounds)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.0f steps/s, MuJoCo alone %.0f: ratio %.2f", o.Robot, twin, loop, twin/loop)
		if !(twin/loop > atLeast) {
			t.Errorf("%s: the twin makes %.0f steps/s, MuJoCo alone %.0f, less than %.2f of that", o.Robot, twin, loop, atLeast)
		}
	}
}

// speed measures, side by side on one model, how many physics steps the twin makes in a second of its thread's CPU
// time (servo, sensing, publishing and clock included) and how many MuJoCo's own loop makes in C with the last
// commands left in place. Both start every round from the same state. The figures are medians over the rounds.
// CPU time, so that what else the machine does changes neither.
func speed(o Options, rounds int) (twin, loop float64, err error) {
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
		begin, err := threadTime()
		if err != nil {
			return 0, 0, err
		}
		for range steps / slice {
			t.advance(1 << 62)
		}
		end, err := threadTime()
		if err != nil {
			return 0, 0, err
		}
		tw = append(tw, steps/(end-begin).Seconds())
		lp = append(lp, steps/c.ProbeLoop(steps))
	}
	slices.Sort(tw)
	slices.Sort(lp)
	return tw[rounds/2], lp[rounds/2], nil
}

// threadTime is the CPU time of the calling thread so far.
func threadTime() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0, fmt.Errorf("twin: no CPU time of a thread can be had here: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}
