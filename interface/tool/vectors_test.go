package tool_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/interface/view"
)

// The contract's vectors (section 8) through a real client. Numbers are the contract's own, which were
// computed elsewhere.

func nums(t *testing.T, text string) []float64 {
	t.Helper()
	var out []float64
	for _, f := range strings.Fields(text) {
		var v float64
		if _, err := fmt.Sscan(f, &v); err != nil {
			t.Fatalf("%q in %q: %v", f, text, err)
		}
		out = append(out, v)
	}
	return out
}

func near(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol) {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
	}
}

// part is what follows a label in a readout, up to the next semicolon.
func part(t *testing.T, text, label string) []float64 {
	t.Helper()
	for _, p := range strings.Split(text, "; ") {
		if rest, ok := strings.CutPrefix(p, label+" "); ok {
			return nums(t, rest)
		}
	}
	t.Fatalf("no %q in %q", label, text)
	return nil
}

const half = 0.00006 // of the last printed digit, and a little

func TestVectorsGizmo(t *testing.T) {
	for _, c := range []struct {
		axis              string
		approach, opening []float64
	}{
		{"x", []float64{0, .5, -.866025}, []float64{0, .866025, .5}},
		{"y", []float64{-.5, 0, -.866025}, []float64{0, 1, 0}},
		{"z", []float64{0, 0, -1}, []float64{-.5, .866025, 0}},
	} {
		a := newRig(t, stage.Face3D).agent(t, "drive")
		got := a.good("gripper_rotate", `{"axis":"`+c.axis+`","angle":30}`).line(t, "target gripper")
		near(t, c.axis+" approach", part(t, got, "approach"), c.approach, half)
		near(t, c.axis+" opening", part(t, got, "opening"), c.opening, half)
		near(t, c.axis+" position", part(t, got, "position"), []float64{.45, 0, .3}, half)
	}
}

func TestVectorsDragAndTranslate(t *testing.T) {
	r := newRig(t, stage.Face3D)
	r.p.hits = map[[2]float64]view.Hit{{.6, .5}: {Kind: view.Target}}
	a := r.agent(t, "drive")
	end := fmt.Sprintf(`"u1":0.6,"v1":0.5,"u2":%v,"v2":%v`, .6+100.0/1280, .5-50.0/800)
	for _, c := range []struct {
		constraint string
		want       []float64
	}{{"free", []float64{-.015, .06, .025981}}, {"x", []float64{-.015, 0, 0}}, {"y", []float64{0, .06, 0}}, {"z", []float64{0, 0, .025981}}} {
		a.good("gripper_reset", `{}`)
		got := a.good("gripper_drag", `{`+end+`,"constraint":"`+c.constraint+`","steps":200}`)
		near(t, c.constraint, nums(t, got.line(t, "pose delta")), c.want, half)
	}
	a.good("gripper_reset", `{}`)
	near(t, "default", nums(t, a.good("gripper_drag", `{`+end+`}`).line(t, "pose delta")), []float64{-.015, .06, .025981}, half)
	a.refused("gripper_drag", `{"u1":0.6,"v1":0.5,"u2":0.2,"v2":0.5}`, "outside the cloud view", "u 0.3125 to 1")
	a.refused("gripper_drag", `{"u1":0.6,"v1":0.5,"u2":0.6,"v2":0.5}`, "needs a change")
	a.good("gripper_reset", `{}`)
	near(t, "translate", nums(t, a.good("gripper_translate", `{"d_x":0.1}`).line(t, "pose delta")), []float64{.1, 0, 0}, half)
	a.good("gripper_reset", `{}`)
	near(t, "advance", nums(t, a.good("gripper_advance_or_retreat", `{"direction":"f","steps":12}`).line(t, "pose delta")), []float64{0, 0, -.072}, half)
	near(t, "retreat", nums(t, a.good("gripper_advance_or_retreat", `{"direction":"b"}`).line(t, "pose delta")), []float64{0, 0, .006}, half)
}

func camera(t *testing.T, r reply) (target []float64, distance, azimuth, elevation float64) {
	t.Helper()
	text := r.line(t, "camera")
	return part(t, text, "target"), part(t, text, "distance")[0], part(t, text, "azimuth")[0], part(t, text, "elevation")[0]
}

func TestVectorsCamera(t *testing.T) {
	a := newRig(t, stage.Face3D).agent(t, "drive")
	if got := a.good("camera_get_pose", `{}`); got.text() != "camera: target 0.4500 0.0000 0.1000; distance 1.0000; azimuth 90.00; elevation 30.00" || got.kinds != "t" {
		t.Errorf("camera_get_pose: %q %s", got.kinds, got.text())
	}
	a.good("camera_orbit_via_key", `{"d_azimuth":0,"d_elevation":30}`)
	got := a.good("camera_orbit_via_key", `{"d_azimuth":0,"d_elevation":45}`)
	if _, _, _, el := camera(t, got); el != 85 || !strings.Contains(got.text(), "clamped") {
		t.Errorf("orbit +45 from 60: %s", got.text())
	}
	a.good("camera_reset", `{}`)
	for range 7 { // 90 - 7*45 = -225 = 135
		got = a.good("camera_orbit_via_key", `{"d_azimuth":-45,"d_elevation":0}`)
	}
	if _, _, az, el := camera(t, got); az != 135 || el != 30 {
		t.Errorf("azimuth wraps: %s", got.text())
	}
	a.good("camera_reset", `{}`)
	got = a.good("camera_pan_via_key", `{"d_right":0.1,"d_up":0.2}`)
	target, d, az, el := camera(t, got)
	near(t, "pan", target, []float64{.45, .1, .3}, half) // right is +Y at azimuth 90, up is world Z
	near(t, "pan keeps", []float64{d, az, el}, []float64{1, 90, 30}, half)
	a.good("camera_reset", `{}`)
	// The middle of the cloud view is u (400+440)/1280: a zoom there moves along forward alone.
	got = a.good("camera_zoom", `{"u":0.65625,"v":0.5,"steps":5}`)
	target, d, az, el = camera(t, got)
	near(t, "zoom", append(target, d, az, el), []float64{.45, 0, .1, .85, 90, 30}, half)
	got = a.good("camera_zoom", `{"u":0.9,"v":0.2,"steps":-50}`)
	if _, d, az, el = camera(t, got); d != 2.35 || az != 90 || el != 30 {
		t.Errorf("zoom out: %s", got.text())
	}
	got = a.good("camera_zoom", `{"u":0.5,"v":0.5,"steps":-50}`)
	if _, d, _, _ = camera(t, got); d != 3 || !strings.Contains(got.text(), "clamped to the range 0.1 to 3 m") {
		t.Errorf("zoom clamp: %s", got.text())
	}
}

func TestTeleportIsTheHoveredPoint(t *testing.T) {
	r := newRig(t, stage.Face3D)
	r.p.hits = map[[2]float64]view.Hit{
		{.7, .4}: point(.5, .1, .02), {.1, .2}: {Kind: view.Feed, Feed: "third_person", Point: point(.4, -.1, .05).Point},
		{.6, .5}: {Kind: view.Target}, {.1, .9}: {Kind: view.Chrome, Why: "the status lines"},
	}
	a := r.agent(t, "drive")
	for uv, want := range map[string][]float64{`{"u":0.7,"v":0.4}`: {.5, .1, .02}, `{"u":0.1,"v":0.2}`: {.4, -.1, .05}} {
		h := a.good("hover", uv)
		near(t, "hover", nums(t, h.line(t, "contact point")), want, half)
		got := a.good("gripper_teleport_via_click", uv)
		if got.line(t, "selected salient point") != h.line(t, "contact point") {
			t.Errorf("hover %s, teleport %s", h.text(), got.text())
		}
		near(t, "pose", part(t, got.line(t, "target gripper"), "position"), []float64{want[0], want[1], want[2] + .07}, half)
	}
	for uv, words := range map[string]string{`{"u":0.6,"v":0.5}`: "blue target gripper", `{"u":0.1,"v":0.9}`: "the status lines", `{"u":0.99,"v":0.99}`: "no point"} {
		h := a.good("hover", uv)
		if h.line(t, "contact point") != "none" || !strings.Contains(h.text(), words) {
			t.Errorf("hover on nothing: %s", h.text())
		}
		a.refused("gripper_teleport_via_click", uv, words, "hover")
	}
}

func (r reply) proprio(t testing.TB) wire {
	t.Helper()
	var w wire
	r.json(t, &w)
	return w
}

type triple struct{ X, Y, Z float64 }

func (v triple) list() []float64 { return []float64{v.X, v.Y, v.Z} }

type pose struct {
	Position triple `json:"position_m"`
	Approach triple `json:"approach"`
	Opening  triple `json:"opening"`
	Open     bool   `json:"gripper_open"`
}

type base struct {
	DX   float64 `json:"dx_m"`
	DY   float64 `json:"dy_m"`
	DYaw float64 `json:"dyaw_deg"`
}

func (b base) list() []float64 { return []float64{b.DX, b.DY, b.DYaw} }

type wire struct {
	Offset  *triple `json:"offset_m"`
	Delta   *base   `json:"staged_base_delta"`
	Ordered *struct {
		Mode     string          `json:"mode"`
		Ordered  json.RawMessage `json:"ordered"`
		Realized json.RawMessage `json:"realized"`
	} `json:"ordered_vs_realized"`
	Outcome *struct{ Result, Stop string } `json:"outcome"`
	Message string                         `json:"message"`
	Check   *struct {
		Executable, Reachable bool
		Reach, Way            string
	} `json:"check"`
	Proprio struct {
		Mode         string
		Real, Target pose
	} `json:"proprio"`
}

func TestVectorsWrist(t *testing.T) {
	for args, want := range map[string][3][]float64{
		`{"roll_deg":30}`:      {{.6, 0, .8}, {1, 0, 0}, {0, .866025, -.5}},
		`{"tilt_up_deg":30}`:   {{.569497, 0, .91384}, {.866025, 0, .5}, {0, 1, 0}},
		`{"tilt_left_deg":30}`: {{.569497, .11384, .8}, {.866025, .5, 0}, {-.5, .866025, 0}},
		`{"roll_deg":30,"tilt_up_deg":20,"tilt_left_deg":10}`: {{.583019, .072583, .846646}, {.925417, .318796, .204874}, {-.163176, .823173, -.543838}},
	} {
		a := newRig(t, stage.Face2D).agent(t, "drive")
		got := a.good("ee_wrist_centric_rotate", args).proprio(t).Proprio
		near(t, args+" position", got.Target.Position.list(), want[0], half)
		near(t, args+" approach", got.Target.Approach.list(), want[1], half)
		near(t, args+" opening", got.Target.Opening.list(), want[2], half)
		if got.Mode != "pose" {
			t.Errorf("mode %s", got.Mode)
		}
	}
	a := newRig(t, stage.Face2D).agent(t, "drive")
	a.good("ee_wrist_centric_rotate", `{"roll_deg":30}`)
	a.good("ee_wrist_centric_rotate", `{"tilt_up_deg":20}`)
	got := a.good("ee_wrist_centric_rotate", `{"tilt_left_deg":10}`).proprio(t).Proprio.Target
	near(t, "three calls", got.Position.list(), []float64{.583019, .072583, .846646}, half)
	b := newRig(t, stage.Face2D).agent(t, "drive")
	b.good("ee_wrist_centric_rotate", `{"tilt_up_deg":20}`)
	b.good("ee_wrist_centric_rotate", `{"roll_deg":30}`)
	got = b.good("ee_wrist_centric_rotate", `{"tilt_left_deg":10}`).proprio(t).Proprio.Target
	near(t, "another order", got.Position.list(), []float64{.58978, .034239, .858112}, half)
}

func TestVectorsNav(t *testing.T) {
	type step struct{ tool, args string }
	for _, c := range []struct {
		steps []step
		want  []float64
	}{
		{[]step{{"nav_rotate", `{"angle_deg":90}`}, {"nav_translate", `{"dx_m":0.3}`}}, []float64{0, .3, 90}},
		{[]step{
			{"nav_rotate", `{"angle_deg":90}`},
			{"nav_translate", `{"dx_m":0.3,"dy_m":0}`},
			{"nav_rotate", `{"angle_deg":-45}`},
			{"nav_translate", `{"dx_m":0,"dy_m":0.1}`},
		}, []float64{-.0707, .3707, 45}},
		{[]step{{"nav_translate", `{"dx_m":0.3}`}, {"nav_rotate", `{"angle_deg":30}`}, {"nav_translate", `{"dx_m":0.1,"dy_m":0.1}`}}, []float64{.336603, .136603, 30}},
		{[]step{{"nav_translate", `{"dx_m":0.3}`}, {"nav_translate", `{"dx_m":0.2}`}}, []float64{.5, 0, 0}},
		{[]step{{"nav_translate", `{"dx_m":0.4}`}, {"nav_translate", `{"dx_m":-0.4}`}, {"nav_translate", `{"dx_m":0.4}`}}, []float64{.4, 0, 0}},
		{[]step{{"nav_rotate", `{"angle_deg":60}`}, {"nav_rotate", `{"angle_deg":-60}`}, {"nav_rotate", `{"angle_deg":90}`}}, []float64{0, 0, 90}},
	} {
		a := newRig(t, stage.Face2D).agent(t, "drive")
		var got reply
		for _, s := range c.steps {
			got = a.good(s.tool, s.args)
		}
		w := got.proprio(t)
		near(t, fmt.Sprint(c.steps), w.Delta.list(), c.want, half)
		if w.Proprio.Mode != "nav" {
			t.Errorf("mode %s", w.Proprio.Mode)
		}
	}
	r := newRig(t, stage.Face2D)
	r.w.st.Q = joints(geom.SE2{}, geom.At(.6, -.1, .8))
	a := r.agent(t, "drive")
	a.good("nav_translate", `{"dx_m":0.3}`)
	a.good("nav_rotate", `{"angle_deg":30}`)
	got := a.good("nav_translate", `{"dx_m":0.1,"dy_m":0.1}`).proprio(t).Proprio.Target
	near(t, "target", got.Position.list(), []float64{.906218, .35, .8}, half)
	a.refused("nav_translate", `{"dx_m":0.3}`, "0.5 m")
}

// TestVectorsOrdered: staged (.9,.1,.7) facing x, base moved (.1,-.05,+10 deg).
func TestVectorsOrdered(t *testing.T) {
	r := newRig(t, stage.Face2D)
	r.w.drift = geom.SE2{X: .1, Y: -.05, Yaw: geom.Rad(10)}
	a := r.agent(t, "drive")
	a.good("ee_robot_centric_translate", `{"dx_m":0.3,"dy_m":0.1,"dz_m":-0.1}`)
	w := a.good("execute_waypoint", `{}`).proprio(t)
	if w.Ordered == nil || w.Ordered.Mode != "pose" {
		t.Fatalf("ordered_vs_realized %+v", w.Ordered)
	}
	for what, raw := range map[string]json.RawMessage{"ordered": w.Ordered.Ordered, "realized": w.Ordered.Realized} {
		var p pose
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		near(t, what, p.Position.list(), []float64{.813893, .008803, .7}, half)
		near(t, what+" approach", p.Approach.list(), []float64{.984808, -.173648, 0}, half)
	}
	if w.Proprio.Mode != "none" || w.Proprio.Target != w.Proprio.Real {
		t.Errorf("the target did not snap: %+v", w.Proprio)
	}
}

func TestOrderedOfTheOtherModes(t *testing.T) {
	r := newRig(t, stage.Face2D)
	a := r.agent(t, "drive")
	a.good("nav_rotate", `{"angle_deg":90}`)
	a.good("nav_translate", `{"dx_m":0.3}`)
	w := a.good("execute_waypoint", `{}`).proprio(t)
	if got, want := string(w.Ordered.Ordered), `{"dx_m":0.0000,"dy_m":0.3000,"dyaw_deg":90.00}`; got != want || string(w.Ordered.Realized) != want {
		t.Errorf("nav: %s, %s", got, w.Ordered.Realized)
	}
	a.good("gripper_set", `{"state":"closed"}`)
	w = a.good("execute_waypoint", `{}`).proprio(t)
	if got := string(w.Ordered.Ordered) + string(w.Ordered.Realized); got != `{"gripper_open":false}{"gripper_open":false,"aperture_m":0.0000}` || w.Message != "" {
		t.Errorf("gripper: %s, message %q", got, w.Message)
	}
	r.w.set(func() { r.w.result, r.w.why, r.w.share = robot.ResultStoppedShort, "stalled against something", .5 })
	a.good("ee_robot_centric_translate", `{"dx_m":0.1}`)
	got := a.good("execute_waypoint", `{}`) // a cut-short motion has pictures to show and is no error
	w = got.proprio(t)
	if got.kinds != "titit" || !strings.Contains(w.Message, "stalled") || w.Outcome.Result != "stopped_short" || w.Outcome.Stop != "stopped, confirmed" || w.Proprio.Mode != "none" {
		t.Errorf("cut short: %q %s", got.kinds, got.text())
	}
}

func TestOffsetIsFromTheRealGripper(t *testing.T) {
	r := newRig(t, stage.Face2D)
	r.w.st.Base = geom.SE2{X: 1, Y: 2, Yaw: geom.Rad(90)}
	r.w.renew()
	r.p.hits = map[[2]float64]view.Hit{{.5, .5}: point(.5, 2.9, .9)} // odometry; on the robot's axes (.9, .5, .9)
	a := r.agent(t, "drive")
	a.good("ee_robot_centric_translate", `{"dx_m":0.2}`) // the staged target must not count
	w := a.good("hover", `{"view":"head","u":0.5,"v":0.5}`).proprio(t)
	near(t, "hover", w.Offset.list(), []float64{.3, .5, .1}, half)
	w = a.good("ee_teleport_via_click", `{"u":0.5,"v":0.5}`).proprio(t)
	near(t, "teleport", w.Offset.list(), []float64{.3, .5, .1}, half)
	near(t, "target", w.Proprio.Target.Position.list(), []float64{.83, .5, .9}, half)
}
