package tool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/interface/stage"
	"viad/interface/tool"
	"viad/interface/tool/door"
)

// valid is one good call of every tool that has arguments.
var valid3D = map[string]string{
	"hover": `{"u":0.5,"v":0.5}`, "gripper_teleport_via_click": `{"u":0.5,"v":0.5}`,
	"gripper_drag":               `{"u1":0.6,"v1":0.5,"u2":0.7,"v2":0.5,"constraint":"x","steps":25}`,
	"gripper_translate":          `{"d_x":0.1,"d_y":-0.1,"d_z":0.05}`,
	"gripper_advance_or_retreat": `{"direction":"b","steps":3}`, "gripper_rotate": `{"axis":"z","angle":30}`,
	"gripper_toggle":       `{"state":"closed"}`,
	"camera_orbit_via_key": `{"d_azimuth":10,"d_elevation":5}`, "camera_pan_via_key": `{"d_right":0.1,"d_up":0.1}`,
	"camera_zoom": `{"u":0.5,"v":0.5,"steps":2}`,
}

var valid2D = map[string]string{
	"hover": `{"view":"head","u":0.5,"v":0.5}`, "ee_teleport_via_click": `{"u":0.5,"v":0.5}`,
	"ee_robot_centric_translate": `{"dx_m":0.1,"dy_m":0.1,"dz_m":0.1}`,
	"ee_wrist_centric_translate": `{"dx_m":0.1,"dy_m":0.1,"dz_m":0.1}`,
	"ee_wrist_centric_rotate":    `{"roll_deg":10,"tilt_up_deg":10,"tilt_left_deg":10}`,
	"gripper_set":                `{"state":"closed"}`,
	"nav_translate":              `{"dx_m":0.1,"dy_m":0.1}`, "nav_rotate": `{"angle_deg":30}`,
}

// with is the good arguments with one of them replaced.
func with(t *testing.T, good, name, value string) string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(good), &all); err != nil {
		t.Fatal(err)
	}
	delete(all, name)
	var parts []string
	for k, v := range all {
		parts = append(parts, fmt.Sprintf("%q:%s", k, v))
	}
	if value != "" {
		parts = append(parts, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestBadInputForEveryParameter sends every kind of bad value to every parameter of every tool: each gets one
// line that names the parameter and the range, and nothing is staged.
func TestBadInputForEveryParameter(t *testing.T) {
	for _, c := range []struct {
		face  stage.Face
		valid map[string]string
	}{{stage.Face3D, valid3D}, {stage.Face2D, valid2D}} {
		r := newRig(t, c.face)
		session := r.session(t, "drive")
		id := 0
		raw := func(name, args string, want ...string) {
			t.Helper()
			id++
			before := r.st.Snapshot()
			res := r.raw(t, "drive", session, toolCall(fmt.Sprint(id), name, args))
			if !res.bad || res.kinds != "t" || strings.Contains(res.text(), "\n") || !strings.HasPrefix(res.text(), name+" refused: ") {
				t.Fatalf("%s %s: want a refusal of one line, got error=%v %q: %s", name, args, res.bad, res.kinds, res.text())
			}
			for _, w := range want {
				if !strings.Contains(res.text(), w) {
					t.Errorf("%s %s: %q does not name %q", name, args, res.text(), w)
				}
			}
			after := r.st.Snapshot()
			if after.Target != before.Target || after.Mode != before.Mode || after.Orbit != before.Orbit {
				t.Fatalf("%s %s: a refused call changed something", name, args)
			}
		}
		listed := 0
		for _, tl := range r.agent(t, "drive2").list() {
			schema, err := json.Marshal(tl.InputSchema)
			if err != nil {
				t.Fatal(err)
			}
			var s struct {
				schemaOf
				Required []string `json:"required"`
			}
			if err := json.Unmarshal(schema, &s); err != nil {
				t.Fatal(err)
			}
			if tl.Name == "stop" {
				continue // is never refused: TestStopStopsWhateverIsSaidWithIt
			}
			good, has := c.valid[tl.Name]
			if has != (len(s.Properties) > 0) {
				t.Fatalf("%s: this test does not know its arguments", tl.Name)
			}
			if !has {
				good = `{}`
			} else {
				listed++
			}
			raw(tl.Name, strings.Replace(`{"nonsense":1,`+good[1:], ",}", "}", 1), "nonsense")
			raw(tl.Name, `[1,2]`, "one JSON object")
			raw(tl.Name, `"text"`, "one JSON object")
			for name, p := range s.Properties {
				raw(tl.Name, `{"`+name+`":`+first(good, name)+`,`+good[1:], name, "twice")
				for _, v := range []string{`[0]`, `{}`, `true`, `"0.1m"`, `"five"`, `"NaN"`, `"Infinity"`, `1e400`, `-1e400`, `"1e400"`, `""`, `"0x1"`, `"１"`, `"\u0000"`} {
					raw(tl.Name, with(t, good, name, v), name, "limit")
				}
				if p.Type == "string" {
					raw(tl.Name, with(t, good, name, `0`), name, p.Enum[0])
					continue
				}
				raw(tl.Name, with(t, good, name, fmt.Sprint(*p.Maximum+.0001)), name)
				raw(tl.Name, with(t, good, name, fmt.Sprint(*p.Minimum-.0001)), name)
				if p.Type == "integer" {
					raw(tl.Name, with(t, good, name, "1.5"), name, "whole number")
				}
			}
			for _, name := range s.Required {
				raw(tl.Name, with(t, good, name, ""), "missing argument "+name)
				raw(tl.Name, with(t, good, name, "null"), name, "null")
			}
		}
		if listed != len(c.valid) {
			t.Errorf("%d tools with arguments, this test knows %d", listed, len(c.valid))
		}
	}
}

type schemaOf struct {
	Properties map[string]struct {
		Type             string
		Enum             []string
		Minimum, Maximum *float64
	}
}

// first is the value of a good argument.
func first(good, name string) string {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(good), &all) != nil {
		return "0"
	}
	return string(all[name])
}

// raw is a call by hand.
func (r *rig) raw(t testing.TB, token, session, body string) reply {
	t.Helper()
	status, _, text := r.post(t.Context(), t, token, session, body)
	res, err := parseWire(text)
	if status != 200 || err != nil {
		t.Fatalf("%s: %d %s: %v", body, status, text, err)
	}
	return res
}

func TestNumericStringsAndNullsAreFine(t *testing.T) {
	r := newRig(t, stage.Face3D)
	a := r.agent(t, "drive")
	if got := a.good("gripper_translate", `{"d_x":"0.05","d_y":null,"d_z":" -1e-2 "}`).line(t, "pose delta"); got != "0.0500 0.0000 -0.0100" {
		t.Errorf("pose delta %s", got)
	}
	if got := a.good("gripper_advance_or_retreat", `{"direction":"f","steps":"2"}`).line(t, "pose delta"); got != "0.0000 0.0000 -0.0120" {
		t.Errorf("pose delta %s", got)
	}
}

func TestRefusalsOfTheRules(t *testing.T) {
	r := newRig(t, stage.Face3D)
	a := r.agent(t, "drive")
	a.refused("gripper_translate", `{"d_x":0.1001}`, "d_x", "0.1001", "-0.1 to 0.1 m", "Nothing staged.")
	a.refused("gripper_translate", `{}`, "d_x", "at least one not zero")
	a.refused("gripper_rotate", `{"axis":"x","angle":0}`, "angle")
	a.refused("gripper_rotate", `{"axis":"x","angle":90.01}`, "angle", "-90 to 90 deg")
	a.refused("camera_zoom", `{"u":0.1,"v":0.5}`, "outside the cloud view", "u 0.3125 to 1")
	a.refused("camera_zoom", `{"u":0.5,"v":0.5,"steps":0}`, "steps")
	a.refused("gripper_teleport_via_click", `{"u":0.5,"v":0.5}`, "no scene point", "hover")
	a.refused("gripper_drag", `{"u1":0.5,"v1":0.5,"u2":0.6,"v2":0.5}`, "does not start on the blue target")
	a.refused("execute_waypoint", `{}`, "nothing to do", "Nothing moved.")
	a.good("gripper_translate", `{"d_z":-0.05}`)
	r.w.set(func() { r.w.ready = refusedRule("not armed") })
	a.refused("execute_waypoint", `{}`, "not armed")
	r.w.set(func() { r.w.ready = nil })
	if r.w.motions() != 0 {
		t.Fatal("a refused execute moved the robot")
	}
	if got := a.good("execute_waypoint", `{}`); !strings.Contains(got.text(), "executed waypoint 1: ") {
		t.Errorf("refused executes took numbers: %s", got.text())
	}
	a.refused("execute_waypoint", `{}`, "nothing to do", "reached", "stopped, confirmed")
	if r.w.motions() != 1 {
		t.Fatalf("%d motions, want 1", r.w.motions())
	}
}

func TestRefusalsOfTheModes(t *testing.T) {
	r := newRig(t, stage.Face2D)
	a := r.agent(t, "drive")
	a.refused("execute_waypoint", `{}`, "nothing staged")
	a.refused("ee_robot_centric_translate", `{}`, "dx_m")
	a.refused("ee_wrist_centric_rotate", `{}`, "roll_deg")
	a.refused("ee_wrist_centric_rotate", `{"tilt_up_deg":45.01}`, "tilt_up_deg", "-45 to 45 deg")
	a.refused("ee_wrist_centric_translate", `{"dx_m":0.2001}`, "dx_m", "-0.2 to 0.2 m")
	a.refused("nav_translate", `{"dx_m":0,"dy_m":0}`, "dx_m")
	a.refused("nav_rotate", `{"angle_deg":0}`, "angle_deg")
	a.refused("nav_translate", `{"dx_m":0.5,"dy_m":0.5}`, "0.707107 m", "0.5 m")
	a.refused("gripper_set", `{"state":"open"}`, "open")
	if got := a.good("reset_target", `{}`); got.kinds != "t" || !strings.Contains(got.text(), "nothing is staged") {
		t.Errorf("reset with nothing staged: %q %s", got.kinds, got.text())
	}
	a.good("nav_rotate", `{"angle_deg":60}`)
	a.refused("nav_rotate", `{"angle_deg":40}`, "100 deg", "90 deg")
	a.refused("ee_wrist_centric_translate", `{"dx_m":0.1}`, "nav waypoint is staged", "reset_target")
	a.refused("ee_teleport_via_click", `{"u":0.5,"v":0.5}`)
	a.refused("gripper_set", `{"state":"closed"}`, "nav waypoint is staged")
	a.good("reset_target", `{}`)
	a.good("gripper_set", `{"state":"closed"}`)
	a.good("gripper_set", `{"state":"open"}`) // flips back, and stays a gripper waypoint
	a.refused("nav_translate", `{"dx_m":0.1}`, "gripper waypoint is staged")
	a.good("reset_target", `{}`)
	a.good("ee_robot_centric_translate", `{"dx_m":0.5}`)
	a.good("ee_robot_centric_translate", `{"dx_m":0.5}`)
	a.good("ee_robot_centric_translate", `{"dx_m":0.5}`)
	a.refused("ee_robot_centric_translate", `{"dx_m":0.001}`, "1.501 m", "1.5 m")
	if r.w.motions() != 0 {
		t.Fatal("something moved")
	}
}

func TestNoSceneYet(t *testing.T) {
	r := newRig(t, stage.Face3D)
	r.w.set(func() { r.w.scene, r.w.blind = nil, errors.New("third_person gave no frame") })
	a := r.agent(t, "drive")
	for _, n := range []string{"screenshot", "gripper_get_pose", "gripper_reset", "camera_reset"} {
		a.refused(n, `{}`, "no picture yet")
	}
	a.refused("hover", `{"u":0.5,"v":0.5}`, "no picture yet")
	// A call waits for the first scene where it can come.
	r.w.set(func() { r.w.blind = nil })
	a.good("screenshot", `{}`)
}

func TestOldPicturesSayThatTheyAreOld(t *testing.T) {
	for _, face := range []stage.Face{stage.Face3D, stage.Face2D} {
		r := newRig(t, face)
		look := "screenshot"
		if face == stage.Face2D {
			look = "observe"
		}
		a := r.agent(t, "drive")
		seq := r.w.Scene().Seq
		r.w.set(func() { r.w.scene.At = time.Now().Add(-time.Minute) })
		if got := a.good(look, `{}`); strings.Contains(got.text(), "not renewed") || r.w.Scene().Seq == seq {
			t.Errorf("a look did not renew an old scene: %s", got.text())
		}
		r.w.set(func() { r.w.scene.At, r.w.blind = time.Now().Add(-time.Minute), errors.New("the camera is unplugged") })
		got := a.good(look, `{}`)
		if !strings.Contains(got.text(), "The pictures are 60.") || !strings.Contains(got.text(), "the camera is unplugged") {
			t.Errorf("%s: %s", look, got.text())
		}
		if face == stage.Face2D && got.keys(t) != "proprio" {
			t.Errorf("keys %s", got.keys(t))
		}
	}
}

func TestNoStateYet(t *testing.T) {
	r := newRig(t, stage.Face2D)
	r.w.set(func() { r.w.st.Q = nil })
	a := r.agent(t, "drive")
	a.refused("observe", `{}`, "robot state missing")
	a.refused("nav_rotate", `{"angle_deg":10}`, "robot state missing")
	b := newRig(t, stage.Face3D)
	b.w.set(func() { b.w.st.HasBase = false })
	if got := b.agent(t, "drive").good("screenshot", `{}`).line(t, "real gripper"); !strings.HasPrefix(got, "unknown") {
		t.Errorf("real gripper: %s", got)
	}
}

func TestStopStopsWhateverIsSaidWithIt(t *testing.T) {
	for _, args := range []string{`{"reason":"it will hit the cup"}`, `[1]`, `"now"`, `{"u":NaN}`, `{"a":1,"a":2}`, `null`} {
		r := newRig(t, stage.Face3D)
		r.agent(t, "drive").good("gripper_translate", `{"d_x":0.1}`)
		release := r.held()
		session := r.session(t, "drive")
		ended := make(chan reply, 1)
		go func() { ended <- r.raw(t, "drive", session, toolCall("1", "execute_waypoint", `{}`)) }()
		r.began(t)
		got := r.raw(t, "watch", r.session(t, "watch"), toolCall("1", "stop", args))
		if got.bad || got.kinds != "t" || !strings.HasPrefix(got.text(), "stop: stopped, confirmed") {
			t.Errorf("%s: %s", args, got.text())
		}
		if ignored := strings.Contains(got.text(), "(Ignored: "); ignored != (args != "null") {
			t.Errorf("%s: %s", args, got.text())
		}
		if e := <-ended; !strings.Contains(e.text(), "stopped on request") {
			t.Errorf("%s: execute: %s", args, e.text())
		}
		release()
	}
}

func TestAPanicIsOneSentence(t *testing.T) {
	r := newRig(t, stage.Face3D)
	a := r.agent(t, "drive")
	r.p.boom = true
	got := a.do("screenshot", `{}`)
	if !got.bad || !strings.Contains(got.text(), "internal fault") || strings.Contains(got.text(), "colours") {
		t.Errorf("got %s", got.text())
	}
	a.do("gripper_translate", `{"d_x":0.01}`) // the lock of edits is free again
	r.p.boom = false
	a.good("screenshot", `{}`)
	a.good("gripper_translate", `{"d_x":0.01}`)
	r.p.boom = true
	if got := a.do("execute_waypoint", `{}`); !got.bad || !strings.Contains(got.text(), "internal fault") {
		t.Errorf("got %s", got.text())
	}
	r.p.boom = false
	a.good("screenshot", `{}`)
}

// FuzzCall sends any bytes as the arguments of any tool: nothing panics, and what is refused changes nothing.
func FuzzCall(f *testing.F) {
	f.Add(0, []byte(`{"u":0.5,"v":0.5}`))
	f.Add(5, []byte(`{"d_x":1e400}`))
	f.Add(3, []byte(`{"direction":"f","steps":"2"}`))
	rigs := []*rig{newRig(f, stage.Face3D), newRig(f, stage.Face2D)}
	names := [][]string{names3D, names2D}
	f.Fuzz(func(t *testing.T, n int, raw []byte) {
		if n < 0 {
			n = -(n + 1)
		}
		r, all := rigs[n%2], names[n%2]
		name := all[n/2%len(all)]
		before := r.st.Snapshot()
		bad, text := r.s.Fuzz(door.Principal{Name: "drive", Role: door.Driver}, name, raw)
		if strings.Contains(text, "internal fault") {
			t.Fatalf("%s %q panicked", name, raw)
		}
		after := r.st.Snapshot()
		if bad && (after.Target != before.Target || after.Orbit != before.Orbit || after.Mode != before.Mode) {
			t.Errorf("%s %q: refused (%s), and yet something changed", name, raw, text)
		}
		if !finitePose(after.Target.Pose) {
			t.Errorf("%s %q: the target is at %v", name, raw, after.Target.Pose)
		}
	})
}

func finitePose(p geom.Pose) bool { return p.Finite() }

func noWristDepth(o *tool.Options) { o.WristDepth = false }
