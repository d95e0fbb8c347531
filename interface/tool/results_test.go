package tool_test

import (
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"strings"
	"testing"

	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/interface/view"
)

// TestBlocksOfEveryTool3D: one picture, then one text block; the overlays are those of the tool.
func TestBlocksOfEveryTool3D(t *testing.T) {
	r := newRig(t, stage.Face3D)
	salient := point(.5, .1, .02)
	r.p.hits = map[[2]float64]view.Hit{{.5, .5}: salient, {.6, .5}: {Kind: view.Target}}
	a := r.agent(t, "drive")
	for _, c := range []struct {
		tool, args string
		ov         view.Overlay
		has        []string
	}{
		{"screenshot", `{}`, view.Overlay{}, []string{"target gripper: position 0.4500 0.0000 0.3000; approach 0.0000 0.0000 -1.0000; opening 0.0000 1.0000 0.0000; open", "camera: ", "staged: nothing"}},
		{"hover", `{"u":0.5,"v":0.5}`, view.Overlay{Crosshair: &view.Mark{U: .5, V: .5}}, []string{"contact point: 0.5000 0.1000 0.0200"}},
		{"gripper_get_pose", `{}`, view.Overlay{Axis: true}, []string{"target gripper: "}},
		{"gripper_show_rotation_gizmo", `{}`, view.Overlay{Axis: true, Gizmo: true}, []string{"target gripper: "}},
		{"gripper_teleport_via_click", `{"u":0.5,"v":0.5}`, view.Overlay{Salient: &salient.Point}, []string{"selected salient point: 0.5000 0.1000 0.0200", "target gripper: position 0.5000 0.1000 0.0900", "reach: Reachable", "way: The way is clear"}},
		{"gripper_drag", `{"u1":0.6,"v1":0.5,"u2":0.7,"v2":0.5,"constraint":"y"}`, view.Overlay{Drag: &view.Drag{U1: .6, V1: .5, U2: .7, V2: .5}}, []string{"pose delta: 0.0000 0.0768 0.0000", "may part"}},
		{"gripper_translate", `{"d_z":0.1}`, view.Overlay{}, []string{"pose delta: 0.0000 0.0000 0.1000", "real gripper: position 0.4500 0.0000 0.3000", "planned time: 2.00 s"}},
		{"gripper_advance_or_retreat", `{"direction":"f"}`, view.Overlay{}, []string{"pose delta: 0.0000 0.0000 -0.0060"}},
		{"gripper_rotate", `{"axis":"z","angle":90}`, view.Overlay{}, []string{"opening -1.0000 0.0000 0.0000"}},
		{"gripper_toggle", `{"state":"closed"}`, view.Overlay{}, []string{"target jaw: closed", "note: jaw and pose together"}},
		{"gripper_toggle", `{"state":"closed"}`, view.Overlay{}, []string{"target jaw: closed, as it already was"}},
		{"gripper_toggle", `{}`, view.Overlay{}, []string{"target jaw: open"}},
		{"camera_orbit_via_key", `{"d_azimuth":10,"d_elevation":0}`, view.Overlay{}, []string{"azimuth 100.00"}},
		{"camera_pan_via_key", `{"d_right":0,"d_up":0}`, view.Overlay{}, []string{"camera: "}},
		{"camera_zoom", `{"u":0.5,"v":0.5}`, view.Overlay{}, []string{"distance 0.9700"}},
		{"camera_reset", `{}`, view.Overlay{}, []string{"azimuth 90.00; elevation 30.00"}},
		{"execute_waypoint", `{}`, view.Overlay{}, []string{"executed waypoint 1: reached; stopped, confirmed; took 2.10 s (planned 2.00 s)", "ordered: position", "realized: position", "off by: 0.0000 m; 0.00 deg"}},
		{"gripper_reset", `{}`, view.Overlay{}, []string{"staged: nothing"}},
		{"end_episode", `{}`, view.Overlay{}, []string{"episode ended and saved as episode-0001", "world was reset"}},
	} {
		r.p.take()
		got := a.good(c.tool, c.args)
		if got.kinds != "it" {
			t.Errorf("%s: blocks %q, want a picture and a text", c.tool, got.kinds)
		}
		for _, h := range c.has {
			if !strings.Contains(got.text(), h) {
				t.Errorf("%s: no %q in\n%s", c.tool, h, got.text())
			}
		}
		d := r.p.take()
		if len(d) != 1 || d[0].what != "ui" || !sameOverlay(d[0].ov, c.ov) {
			t.Errorf("%s: drew %+v, want overlay %+v", c.tool, d, c.ov)
		}
	}
}

func sameOverlay(a, b view.Overlay) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
}

// TestBlocksOfEveryTool2D: which views, in which order, with which keys in the JSON.
func TestBlocksOfEveryTool2D(t *testing.T) {
	r := newRig(t, stage.Face2D)
	at := point(1, 0, .8)
	r.p.hits = map[[2]float64]view.Hit{{.5, .5}: at}
	r.p.axis = at
	a := r.agent(t, "drive")
	click := &view.Mark{U: .5, V: .5}
	x := view.Overlay{X: &at.Point}
	for _, c := range []struct {
		tool, args string
		views      string
		keys       string
		ov         []view.Overlay
	}{
		{"observe", `{}`, "head wrist", "proprio", []view.Overlay{{}, {}}},
		{"hover", `{"view":"head","u":0.5,"v":0.5}`, "head", "offset_m", []view.Overlay{{Crosshair: click}}},
		{"hover", `{"view":"wrist","u":0.5,"v":0.5}`, "wrist", "offset_m", []view.Overlay{{Crosshair: click}}},
		{"hover", `{"view":"head","u":0.1,"v":0.1}`, "head", "message", []view.Overlay{{Crosshair: &view.Mark{U: .1, V: .1}}}},
		{"show_approach_axis", `{}`, "wrist", "", []view.Overlay{x}},
		{"ee_robot_centric_translate", `{"dx_m":0.1}`, "head wrist", "check proprio", []view.Overlay{{}, {}}},
		{"ee_wrist_centric_translate", `{"dx_m":0.1}`, "head wrist", "check proprio", []view.Overlay{{}, x}},
		{"ee_wrist_centric_rotate", `{"roll_deg":10}`, "head wrist", "check proprio", []view.Overlay{{}, x}},
		{"ee_teleport_via_click", `{"u":0.5,"v":0.5}`, "head wrist", "check offset_m proprio", []view.Overlay{{RedDot: click}, {}}},
		{"ee_wrist_centric_translate", `{"dx_m":0.1}`, "head wrist", "check proprio", []view.Overlay{{}, {}}},
		{"reset_target", `{}`, "head wrist", "proprio", []view.Overlay{{}, {}}},
		{"nav_translate", `{"dx_m":0.1}`, "head nav_map", "check proprio staged_base_delta", []view.Overlay{{}, {}}},
		{"nav_rotate", `{"angle_deg":10}`, "head nav_map", "check proprio staged_base_delta", []view.Overlay{{}, {}}},
		{"show_approach_axis", `{}`, "wrist", "", []view.Overlay{x}}, // allowed while nav is staged
		{"execute_waypoint", `{}`, "head wrist", "ordered_vs_realized outcome proprio", []view.Overlay{{}, {}}},
		{"gripper_set", `{"state":"closed"}`, "head wrist", "check proprio", []view.Overlay{{}, {}}},
	} {
		r.p.take()
		got := a.good(c.tool, c.args)
		var drew []string
		for i, d := range r.p.take() {
			drew = append(drew, d.what)
			if i < len(c.ov) && !sameOverlay(d.ov, c.ov[i]) {
				t.Errorf("%s: %s drawn with %+v, want %+v", c.tool, d.what, d.ov, c.ov[i])
			}
		}
		want := strings.Repeat("ti", len(c.ov))
		if c.keys != "" {
			want += "t"
			if k := got.keys(t); k != c.keys {
				t.Errorf("%s: JSON keys %q, want %q", c.tool, k, c.keys)
			}
		}
		var labels []string
		for _, s := range got.texts {
			if l, ok := strings.CutPrefix(s, "view: "); ok {
				labels = append(labels, l)
			}
		}
		if got.kinds != want || strings.Join(labels, " ") != c.views || !slices.Equal(drew, labels) {
			t.Errorf("%s: blocks %q, labels %v, drawn %v; want %q, %s", c.tool, got.kinds, labels, drew, want, c.views)
		}
	}
	if got := a.good("end_episode", `{}`); got.kinds != "t" || !strings.Contains(got.text(), "episode ended") {
		t.Errorf("end_episode: %q %s", got.kinds, got.text())
	}
}

// keys are the sorted top-level keys of the JSON block.
func (r reply) keys(t *testing.T) string {
	t.Helper()
	var m map[string]json.RawMessage
	r.json(t, &m)
	var k []string
	for n := range m {
		k = append(k, n)
	}
	sort.Strings(k)
	return strings.Join(k, " ")
}

func TestObserveJSONGolden(t *testing.T) {
	a := newRig(t, stage.Face2D).agent(t, "watch")
	got := a.good("observe", `{}`)
	want := `{"proprio":{"mode":"none",` +
		`"real":{"position_m":{"x":0.6000,"y":0.0000,"z":0.8000},"approach":{"x":1.0000,"y":0.0000,"z":0.0000},"opening":{"x":0.0000,"y":1.0000,"z":0.0000},"gripper_open":true,"aperture_m":0.0800},` +
		`"target":{"position_m":{"x":0.6000,"y":0.0000,"z":0.8000},"approach":{"x":1.0000,"y":0.0000,"z":0.0000},"opening":{"x":0.0000,"y":1.0000,"z":0.0000},"gripper_open":true}}}`
	if got.texts[2] != want {
		t.Errorf("got  %s\nwant %s", got.texts[2], want)
	}
}

func TestTheXAndItsAbsence(t *testing.T) {
	r := newRig(t, stage.Face2D)
	at := point(1, 0, .8)
	r.p.hits = map[[2]float64]view.Hit{{.5, .5}: at}
	a := r.agent(t, "drive")
	// Nothing within 2 m: message, and no X.
	if got := a.good("show_approach_axis", `{}`); got.keys(t) != "message" || !strings.Contains(got.proprio(t).Message, "within 2 m") {
		t.Errorf("got %s", got.text())
	}
	if got := a.good("ee_wrist_centric_translate", `{"dx_m":0.1}`); got.keys(t) != "check message proprio" {
		t.Errorf("got %s", got.text())
	}
	// After a teleport: neither X nor message, also when wrist edits follow; show_approach_axis refuses.
	a.good("ee_teleport_via_click", `{"u":0.5,"v":0.5}`)
	if got := a.good("ee_wrist_centric_rotate", `{"roll_deg":5}`); got.keys(t) != "check proprio" {
		t.Errorf("got %s", got.text())
	}
	a.refused("show_approach_axis", `{}`, "teleport", "execute_waypoint or reset_target", "Nothing changed.")
	a.good("reset_target", `{}`)
	a.good("show_approach_axis", `{}`)
	a.good("ee_teleport_via_click", `{"u":0.5,"v":0.5}`)
	a.good("execute_waypoint", `{}`)
	a.good("show_approach_axis", `{}`)
}

func TestWithoutWristDepth(t *testing.T) {
	r := newRig(t, stage.Face2D, setup{tool: noWristDepth})
	at := point(1, 0, .8)
	r.p.hits, r.p.axis = map[[2]float64]view.Hit{{.5, .5}: at}, at
	a := r.agent(t, "drive")
	if got := a.good("hover", `{"view":"wrist","u":0.5,"v":0.5}`); got.kinds != "ti" {
		t.Errorf("hover wrist: %q %s", got.kinds, got.text())
	}
	got := a.good("ee_wrist_centric_translate", `{"dx_m":0.1}`)
	if d := r.p.take(); d[len(d)-1].ov.X != nil || !strings.Contains(got.proprio(t).Message, "no wrist depth") {
		t.Errorf("got %s", got.text())
	}
}

// TestChecksAreInEveryStagingResult: reach and way in words, and what execute would say.
func TestChecksAreInEveryStagingResult(t *testing.T) {
	r := newRig(t, stage.Face3D)
	a := r.agent(t, "drive")
	r.w.set(func() { r.w.blocked = refusedRule("clearance") })
	got := a.good("gripper_translate", `{"d_x":0.1}`)
	if !strings.Contains(got.line(t, "way"), "clearance") || !strings.Contains(got.line(t, "execute_waypoint would refuse now"), "clearance") {
		t.Errorf("blocked: %s", got.text())
	}
	a.refused("execute_waypoint", `{}`, "clearance", "Nothing moved.")
	r.w.set(func() { r.w.blocked = nil })
	for range 18 { // z from .3 to beyond 2
		got = a.good("gripper_translate", `{"d_z":0.1}`)
	}
	if !strings.Contains(got.line(t, "reach"), "z_joint") {
		t.Errorf("unreachable: %s", got.text())
	}
	a.refused("execute_waypoint", `{}`, "unreachable", "z_joint")
	b := newRig(t, stage.Face2D)
	c := b.agent(t, "drive")
	c.good("ee_robot_centric_translate", `{"dz_m":0.5}`)
	c.good("ee_robot_centric_translate", `{"dz_m":0.5}`)
	if w := c.good("ee_robot_centric_translate", `{"dz_m":0.3}`).proprio(t); w.Check == nil || w.Check.Executable || w.Check.Reachable || !strings.Contains(w.Check.Reach, "z_joint") {
		t.Errorf("check %+v", w.Check)
	}
	if b.w.motions()+r.w.motions() != 0 {
		t.Error("something moved")
	}
}

func TestTaskSucceeded(t *testing.T) {
	for _, face := range []stage.Face{stage.Face3D, stage.Face2D} {
		r := newRig(t, face)
		a := r.agent(t, "drive")
		move, args, look := "gripper_translate", `{"d_x":0.1}`, "screenshot"
		if face == stage.Face2D {
			move, args, look = "nav_translate", `{"dx_m":0.1}`, "observe"
		}
		a.good(move, args)
		r.w.set(func() { r.w.success = true })
		if got := a.good("execute_waypoint", `{}`); !strings.Contains(got.text(), "TASK SUCCEEDED") || !strings.Contains(got.text(), "session will be closed") {
			t.Errorf("got %s", got.text())
		}
		a.refused(move, args, "episode finished", "end_episode")
		a.good(look, `{}`)
		a.good("end_episode", `{}`)
		a.good(move, args)
	}
}

func TestTargetStaysOn3D(t *testing.T) {
	r := newRig(t, stage.Face3D)
	r.w.result, r.w.why, r.w.share = robot.ResultContact, "a finger touched", .5
	a := r.agent(t, "drive")
	a.good("gripper_translate", `{"d_x":0.1}`)
	got := a.good("execute_waypoint", `{}`)
	if got.kinds != "it" || !strings.Contains(got.text(), "contact") || !strings.Contains(got.text(), "a finger touched") {
		t.Errorf("got %s", got.text())
	}
	near(t, "target", part(t, got.line(t, "target gripper"), "position"), []float64{.55, 0, .3}, half)
	near(t, "real", part(t, got.line(t, "real gripper"), "position"), []float64{.5, 0, .3}, half)
	near(t, "off", nums(t, strings.Fields(got.line(t, "off by"))[0]), []float64{.05}, half)
	a.refused("execute_waypoint", `{}`, "nothing new staged", "a finger touched")
	a.good("screenshot", `{}`)
	a.good("execute_waypoint", `{}`)
	if r.w.motions() != 2 {
		t.Errorf("%d motions, want 2", r.w.motions())
	}
}

func TestEndEpisodeThatFails(t *testing.T) {
	for _, face := range []stage.Face{stage.Face3D, stage.Face2D} {
		r := newRig(t, face)
		r.e.err = errors.New("the disk is full")
		got := r.agent(t, "drive").do("end_episode", `{}`)
		if !got.bad || got.kinds != "t" || !strings.Contains(got.text(), "the disk is full") {
			t.Errorf("got %q %s", got.kinds, got.text())
		}
	}
}

func TestRecordsOfCalls(t *testing.T) {
	r := newRig(t, stage.Face3D)
	a := r.agent(t, "drive")
	a.good("gripper_translate", `{"d_x":"0.1"}`)
	got := r.r.last()
	if got.Tool != "gripper_translate" || got.Principal != "drive" || got.Role != "driver" || string(got.Args) != `{"d_x":"0.1"}` || got.Refused || got.Shown == nil ||
		len(got.Pictures) != 1 || got.Pictures[0].View != "ui" || len(got.Texts) != 1 || got.ID == "" || got.At.IsZero() {
		t.Errorf("record %+v", got)
	}
	a.good("execute_waypoint", `{}`)
	if got = r.r.last(); got.Report == nil || got.Report.Outcome.Result != robot.ResultReached {
		t.Errorf("record %+v", got)
	}
	a.refused("execute_waypoint", `{"now":true}`)
	if got = r.r.last(); !got.Refused || got.Report != nil || got.Pictures != nil {
		t.Errorf("record %+v", got)
	}
}
