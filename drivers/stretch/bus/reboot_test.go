package bus

import (
	"testing"
	"time"
)

// A board that starts anew in mid-motion counts from where it is then, so that goals and stops in its old numbers would
// send it away by as much as it stood at: it gets none, and nothing moves before it is asked everything anew.
func TestBoardStartsAnew(t *testing.T) {
	t.Parallel()
	rig := newRig(t)
	r := started(t, rig, Config{})
	ready(t, r)
	done := follow(t.Context(), r, up(r))
	moving(t, r, rig, lifts)
	var at float64
	rig.change(func() { at = rig.motors[0].pos; rig.motors[0].boot(time.Now()) })
	fails(t, done, time.Second, "lift")
	rig.stands(t, r, 2*time.Second)
	r.until(t.Context(), 2*time.Second, func() bool { return false })
	var now float64
	rig.change(func() { now = rig.motors[0].pos })
	if d := (now - at) * 0.0175070437; d > 0.05 || d < -0.05 {
		t.Errorf("the lift went on by %.3f m after its board was started anew", d)
	}
	if !r.until(t.Context(), 5*time.Second, func() bool { return r.State().Mode.String() == "faulted" }) {
		t.Errorf("it is %v: %s", r.State().Mode, r.State().Fault)
	}
	if err := r.Follow(t.Context(), up(r)); err == nil {
		t.Error("a motion begins with a lift that is not homed")
	}
}
