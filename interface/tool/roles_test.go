package tool_test

import (
	"errors"
	"strings"
	"testing"

	"viad/interface/stage"
	"viad/interface/view"
)

func TestWatchersLookAndStop(t *testing.T) {
	for _, face := range []stage.Face{stage.Face3D, stage.Face2D} {
		r := newRig(t, face)
		valid, names := valid3D, names3D
		if face == stage.Face2D {
			valid, names = valid2D, names2D
		}
		look := map[string]bool{}
		a := r.agent(t, "watch")
		for _, tl := range a.list() {
			look[tl.Name] = *tl.Annotations.ReadOnlyHint || tl.Name == "stop"
		}
		for _, n := range names {
			args := valid[n]
			if args == "" {
				args = `{}`
			}
			if look[n] {
				a.good(n, args)
				continue
			}
			a.refused(n, args, "role", "got watcher", "driver or operator")
		}
		if r.s.Holder() != "" {
			t.Errorf("a watcher took the seat")
		}
	}
}

func TestOneSeat(t *testing.T) {
	r := newRig(t, stage.Face3D)
	a, b, op := r.agent(t, "drive"), r.agent(t, "drive2"), r.agent(t, "operate")
	a.good("screenshot", `{}`) // looking takes nothing
	b.good("camera_orbit_via_key", `{"d_azimuth":10,"d_elevation":0}`)
	a.refused("gripper_translate", `{"d_x":0.1}`, `"drive2" is driving`)
	a.refused("camera_reset", `{}`, `"drive2" is driving`)
	op.refused("execute_waypoint", `{}`, `"drive2" is driving`)
	a.refused("end_episode", `{}`, `"drive2" is driving`)
	a.good("hover", `{"u":0.5,"v":0.5}`)
	a.good("stop", `{}`)
	b.good("end_episode", `{}`)
	a.good("gripper_translate", `{"d_x":0.1}`)
	b.refused("gripper_toggle", `{}`, `"drive" is driving`)
}

// TestOthersDoNotShiftTheDriversClicks: what a watcher or another driver looks at is not what clicks resolve in.
func TestOthersDoNotShiftTheDriversClicks(t *testing.T) {
	r := newRig(t, stage.Face3D)
	at := point(.5, .1, .02)
	r.p.hits = map[[2]float64]view.Hit{{.5, .5}: at}
	a, b := r.agent(t, "drive"), r.agent(t, "drive2")
	a.good("gripper_toggle", `{}`)
	shown := r.st.Pinned()
	r.w.set(func() { r.w.renew() })
	for _, who := range []*agent{r.agent(t, "watch"), b} {
		who.good("screenshot", `{}`)
		who.good("gripper_get_pose", `{}`)
		who.good("hover", `{"u":0.5,"v":0.5}`)
		if r.st.Pinned() != shown {
			t.Fatal("somebody else's look changed what the driver's clicks resolve in")
		}
	}
	a.good("hover", `{"u":0.5,"v":0.5}`)
	if r.st.Pinned() != shown {
		t.Error("a hover changed what a click at the same place selects")
	}
	a.good("screenshot", `{}`)
	if r.st.Pinned() == shown {
		t.Error("the driver's own look did not renew the view")
	}
}

func TestDuringAMotion(t *testing.T) {
	r := newRig(t, stage.Face3D)
	a, w := r.agent(t, "drive"), r.agent(t, "watch")
	a.good("gripper_translate", `{"d_x":0.1}`)
	release := r.held()
	defer release()
	got := make(chan reply, 1)
	go func() { got <- a.do("execute_waypoint", `{}`) }()
	r.began(t)
	for tool, args := range map[string]string{"gripper_translate": `{"d_x":0.1}`, "gripper_toggle": `{}`, "gripper_reset": `{}`, "end_episode": `{}`} {
		a.refused(tool, args, "motion running", "stop")
	}
	if s := a.good("screenshot", `{}`); !strings.Contains(s.text(), "motion: running") {
		t.Errorf("screenshot: %s", s.text())
	}
	a.good("hover", `{"u":0.5,"v":0.5}`)
	a.good("camera_orbit_via_key", `{"d_azimuth":5,"d_elevation":0}`)
	if s := w.good("stop", `{}`); !strings.Contains(s.text(), "stopped, confirmed") {
		t.Errorf("stop: %s", s.text())
	}
	if res := <-got; res.bad || !strings.Contains(res.text(), "stopped on request") {
		t.Errorf("execute: %s", res.text())
	}
}

func TestStopThatIsNotConfirmed(t *testing.T) {
	r := newRig(t, stage.Face2D)
	r.w.stopErr = errors.New("joint 3 still turns at 0.1 rad/s")
	got := r.agent(t, "watch").do("stop", `{}`)
	if !got.bad || !strings.Contains(got.text(), "stop NOT confirmed: use the e-stop") || !strings.Contains(got.text(), "joint 3") {
		t.Errorf("got %s", got.text())
	}
}

// TestStopBeforeTheMotionBegins: an execute that is still being checked does not move after the stop.
func TestStopBeforeTheMotionBegins(t *testing.T) {
	r := newRig(t, stage.Face3D)
	a, w := r.agent(t, "drive"), r.agent(t, "watch")
	a.good("gripper_translate", `{"d_x":0.1}`)
	checking, stopped := make(chan struct{}), make(chan struct{})
	r.w.set(func() {
		r.w.check = func() {
			close(checking)
			r.w.set(func() { r.w.check = nil })
			<-stopped
		}
	})
	got := make(chan reply, 1)
	go func() { got <- a.do("execute_waypoint", `{}`) }()
	<-checking
	w.good("stop", `{}`)
	close(stopped)
	if res := <-got; !res.bad || !strings.Contains(res.text(), "refused: stopped") || r.w.motions() != 0 {
		t.Errorf("%d motions; %s", r.w.motions(), res.text())
	}
	a.good("screenshot", `{}`)
	a.good("execute_waypoint", `{}`)
}
