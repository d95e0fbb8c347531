package tool_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/interface/tool"
	"viad/safety"
)

// late is the wall clock, moved on by hand.
type late struct {
	robot.WallClock
	by *atomic.Int64
}

func (c late) Now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

// A hover resolves in the picture that was shown, however long ago: its age is that of now.
func TestHoverSaysHowOldItsPictureIs(t *testing.T) {
	c := late{by: &atomic.Int64{}}
	r := newRig(t, stage.Face3D, setup{stage: func(o *stage.Options) { o.Clock = c }, tool: func(o *tool.Options) { o.Clock = c }})
	a := r.agent(t, "drive")
	a.good("gripper_translate", `{"d_z":0.1}`)
	c.by.Store(int64(2 * time.Minute))
	got := a.good("hover", `{"u":0.5,"v":0.5}`).line(t, "scene")
	if _, age, _ := strings.Cut(got, ", "); !strings.HasPrefix(age, "120.") && !strings.HasPrefix(age, "121.") {
		t.Errorf("the picture is two minutes old, said is %q", got)
	}
}

// Open and closed are not all that a jaw can be.
func TestJawInWords(t *testing.T) {
	r := newRig(t, stage.Face3D)
	a := r.agent(t, "drive")
	for _, c := range []struct {
		jaw  robot.Jaw
		want string
	}{
		{robot.Jaw{Known: true, Aperture: .045, Holding: true}, "closed; aperture 0.0450, on something that it holds"},
		{robot.Jaw{Known: true, Aperture: .067}, "closed; aperture 0.0670, neither open nor closed"},
		{robot.Jaw{Known: true}, "closed; aperture 0.0000"},
	} {
		r.w.mu.Lock()
		r.w.st.Jaw = c.jaw
		r.w.mu.Unlock()
		if got := a.good("screenshot", `{}`).line(t, "real gripper"); !strings.Contains(got+"\n", c.want) || c.want == "closed; aperture 0.0000" && !strings.HasSuffix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.jaw, got, c.want)
		}
	}
	r.w.mu.Lock()
	r.w.st.Jaw = robot.Jaw{Known: true, Aperture: .067}
	r.w.mu.Unlock()
	if got := a.good("gripper_toggle", `{"state":"closed"}`).text(); strings.Contains(got, "already was") || !strings.Contains(got, "planned time") {
		t.Errorf("a jaw halfway that is asked to close:\n%s", got)
	}
}

// Who looks learns that nothing may move, also before anything is staged.
func TestBarredIsSaidWithNothingStaged(t *testing.T) {
	r := newRig(t, stage.Face3D)
	r.w.mu.Lock()
	r.w.ready = &safety.Refused{Rule: safety.RuleLatch, Value: "e-stop: viactl", Next: "an operator must look"}
	r.w.mu.Unlock()
	if got := r.agent(t, "drive").good("screenshot", `{}`).line(t, "nothing may move now"); got != "latched: got e-stop: viactl; an operator must look" {
		t.Errorf("said is %q", got)
	}
}

// After a stop of a motion of the mobile robot nothing is staged, and stop says so; before one it says the contrary.
func TestStopSaysWhatIsStaged(t *testing.T) {
	r := newRig(t, stage.Face2D, setup{stage: finish})
	a, b := r.agent(t, "drive"), r.agent(t, "watch")
	a.good("nav_translate", `{"dx_m":0.1}`)
	if got := b.good("stop", `{}`).text(); !strings.Contains(got, "still staged") || r.st.Snapshot().Mode != stage.ModeNav {
		t.Errorf("at rest: %q, staged %v", got, r.st.Snapshot().Mode)
	}
	a.good("observe", `{}`)
	release := r.held()
	defer release()
	done := make(chan reply, 1)
	go func() { done <- a.do("execute_waypoint", `{}`) }()
	r.began(t)
	if got := b.good("stop", `{}`).text(); !strings.Contains(got, "no longer staged") {
		t.Errorf("in a motion: %q", got)
	}
	<-done
	if m := r.st.Snapshot().Mode; m != stage.ModeNone {
		t.Errorf("after the stop %v is staged", m)
	}
}
