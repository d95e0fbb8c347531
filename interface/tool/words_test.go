package tool_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"viad/drivers/geom"
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

// A value that is a number but too large is not told to be a number.
func TestOutOfRangeSaysSo(t *testing.T) {
	a := newRig(t, stage.Face3D).agent(t, "drive")
	a.refused("gripper_translate", `{"d_z":0.5}`, "d_z is out of range, got 0.5, limit -0.1 to 0.1 m")
	a.refused("hover", `{"u":55,"v":0.5}`, "u is out of range, got 55, limit 0 to 1", "as a fraction of the picture")
	a.refused("gripper_advance_or_retreat", `{"direction":"f","steps":51}`, "steps is out of range, got 51, limit 1 to 50")
	a.refused("gripper_translate", `{"d_z":"5 cm"}`, "d_z must be a plain number in metres")
}

// A pose of the mobile robot takes the base along: the check says where to, the result how far it went.
func TestAPoseSaysWhereTheBaseGoes(t *testing.T) {
	r := newRig(t, stage.Face2D)
	r.w.set(func() { r.w.drift = geom.SE2{X: .7, Y: -.04, Yaw: geom.Rad(10)} })
	a := r.agent(t, "drive")
	var staged struct {
		Check struct {
			Reach string `json:"reach"`
		} `json:"check"`
	}
	a.good("ee_robot_centric_translate", `{"dx_m":0.4}`).json(t, &staged)
	if want := "Reachable, the base goes 0.70 m forward and 0.04 m to the right and 10 deg to the left; "; !strings.HasPrefix(staged.Check.Reach, want) {
		t.Errorf("reach %q, want %q...", staged.Check.Reach, want)
	}
	var ran struct {
		Outcome struct {
			Base struct {
				X   float64 `json:"dx_m"`
				Y   float64 `json:"dy_m"`
				Yaw float64 `json:"dyaw_deg"`
			} `json:"base_moved"`
		} `json:"outcome"`
	}
	a.good("execute_waypoint", `{}`).json(t, &ran)
	if b := ran.Outcome.Base; b.X != .7 || b.Y != -.04 || b.Yaw != 10 {
		t.Errorf("base moved %+v", b)
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
