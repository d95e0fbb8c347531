package robottest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"viad/drivers/robot"
)

// spoiledBody breaks a promise that no fault of the fake breaks.
type spoiledBody struct {
	*Body
	how    string
	shared []float64
}

func (s *spoiledBody) State() robot.State {
	st := s.Body.State()
	if s.how == "stamps anew" {
		st.Received = s.clock.Now()
	}
	if s.how == "shares its slices" {
		if s.shared == nil {
			s.shared = make([]float64, len(st.Q))
		}
		copy(s.shared, st.Q)
		st.Q = s.shared
	}
	return st
}

func (s *spoiledBody) Follow(ctx context.Context, t robot.Trajectory) error {
	err := s.Body.Follow(ctx, t)
	if s.how == "follows anything" {
		err = nil
	}
	return err
}

func (s *spoiledBody) Deadman() time.Duration {
	if s.how == "no deadman" {
		return 0
	}
	return s.Body.Deadman()
}

// broken are bodies that the suite must catch, with the check that must say so.
var broken = map[string]struct {
	f     Faults
	check string
}{
	"deaf":              {Faults{DeafBelow: robot.RungPower}, "halt beside follow"},
	"deaf to context":   {Faults{DeafAlways: true}, "end of context"},
	"lies":              {Faults{LieAfter: 500 * time.Millisecond}, "follow arrives and settles"},
	"freezes":           {Faults{FreezeAfter: 500 * time.Millisecond}, "follow arrives and settles"},
	"jaw stuck":         {Faults{JawStuck: true}, "grip shuts and opens"},
	"grip hangs":        {Faults{GripHangs: true}, "grip shuts and opens"},
	"halt hangs":        {Faults{HangBelow: robot.RungHold}, "halt beside follow"},
	"shares its slices": {Faults{}, "states are immutable"},
	"follows anything":  {Faults{}, "malformed trajectories are refused"},
	"no deadman":        {Faults{}, "deadman is stated"},
	"no watchdog":       {Faults{DeafAlways: true}, "the machine stops without the daemon"},
	"stamps anew":       {Faults{}, "readings age without the machine"},
}

// TestBroken is the suite over a broken body, run only as a child of TestSuiteCatches.
func TestBroken(t *testing.T) {
	how := os.Getenv("ROBOTTEST_BROKEN")
	if how == "" {
		t.Skip("run by TestSuiteCatches")
	}
	CheckBody(t, func(t *testing.T) Subject {
		c := NewClock(t) // a bubble would not let a failed check leave a Follow behind
		b := NewBody(model(), c, nil)
		b.Break(broken[how].f)
		return Subject{Body: &spoiledBody{Body: b, how: how}, Clock: c, Model: model(), Sever: b.Sever, Machine: b.Machine}
	}, nil)
}

func TestSuiteCatches(t *testing.T) {
	t.Parallel()
	for how, b := range broken {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			check := strings.ReplaceAll(b.check, " ", "_")
			c := exec.Command(os.Args[0], "-test.run", "^TestBroken$/^"+check+"$", "-test.timeout", "60s")
			c.Env = append(os.Environ(), "ROBOTTEST_BROKEN="+how)
			out, err := c.CombinedOutput()
			name := "--- FAIL: TestBroken/" + check
			if err == nil || !strings.Contains(string(out), name) {
				t.Errorf("the suite does not catch it (%v), want %q in:\n%s", err, name, out)
			}
		})
	}
}
