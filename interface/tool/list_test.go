package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"

	"viad/interface/stage"
	"viad/interface/tool"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s is not what it was; run with -update if it is meant:\n%s", path, d)
	}
}

func (a *agent) list() []mcp.Tool {
	a.t.Helper()
	res, err := a.c.ListTools(context.Background(), mcp.ListToolsRequest{})
	if err != nil {
		a.t.Fatal(err)
	}
	return res.Tools
}

var names3D = strings.Fields(`screenshot hover gripper_get_pose gripper_show_rotation_gizmo camera_get_pose
	gripper_teleport_via_click gripper_drag gripper_translate gripper_advance_or_retreat gripper_rotate gripper_toggle gripper_reset
	camera_orbit_via_key camera_pan_via_key camera_zoom camera_reset execute_waypoint end_episode stop`)

var names2D = strings.Fields(`observe hover show_approach_axis ee_teleport_via_click ee_robot_centric_translate
	ee_wrist_centric_translate ee_wrist_centric_rotate gripper_set reset_target nav_translate nav_rotate
	execute_waypoint end_episode stop`)

func TestToolListsAreTheContract(t *testing.T) {
	for _, c := range []struct {
		file  string
		face  stage.Face
		depth bool
		names []string
	}{
		{"tools-3d.json", stage.Face3D, true, names3D},
		{"tools-2d.json", stage.Face2D, true, names2D},
		{"tools-2d-no-wrist-depth.json", stage.Face2D, false, without(names2D, "show_approach_axis")},
	} {
		r := newRig(t, c.face, setup{tool: func(o *tool.Options) { o.WristDepth = c.depth }})
		tools := r.agent(t, "watch").list()
		got := map[string]bool{}
		for _, tl := range tools {
			got[tl.Name] = true
			lint(t, tl)
		}
		if len(got) != len(c.names) {
			t.Errorf("%s: %d tools, want %d", c.file, len(got), len(c.names))
		}
		for _, n := range c.names {
			if !got[n] {
				t.Errorf("%s: %s is missing", c.file, n)
			}
		}
		golden(t, c.file, r.wireList(t))
	}
}

// wireList is tools/list as it is sent, indented.
func (r *rig) wireList(t *testing.T) []byte {
	t.Helper()
	session := r.session(t, "watch")
	status, _, body := r.post(context.Background(), t, "watch", session, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var msg struct {
		Result struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(body), &msg); err != nil || status != 200 {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, msg.Result.Tools, "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), '\n')
}

func without(s []string, drop string) (out []string) {
	for _, v := range s {
		if v != drop {
			out = append(out, v)
		}
	}
	return out
}

type schema struct {
	Type       string `json:"type"`
	Properties map[string]struct {
		Type        string   `json:"type"`
		Description string   `json:"description"`
		Enum        []string `json:"enum"`
		Minimum     *float64 `json:"minimum"`
		Maximum     *float64 `json:"maximum"`
	} `json:"properties"`
	Additional *bool `json:"additionalProperties"`
}

var goodName = regexp.MustCompile(`^[a-z][a-z_0-9]{0,39}$`)

// lint holds what real clients impose on a tool.
func lint(t *testing.T, tl mcp.Tool) {
	t.Helper()
	if !goodName.MatchString(tl.Name) {
		t.Errorf("%s: name", tl.Name)
	}
	if n := len(tl.Description); n < 80 || n > 2500 {
		t.Errorf("%s: description has %d characters", tl.Name, n)
	}
	b, err := json.Marshal(tl)
	if err != nil {
		t.Fatal(err)
	}
	for _, no := range []string{"outputSchema", "oneOf", "anyOf", "allOf", "$ref"} {
		if strings.Contains(string(b), `"`+no+`"`) {
			t.Errorf("%s: has %s", tl.Name, no)
		}
	}
	var s schema
	raw, err := json.Marshal(tl.InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if s.Type != "object" || s.Additional == nil || *s.Additional {
		t.Errorf("%s: schema %s", tl.Name, raw)
	}
	for n, p := range s.Properties {
		if !goodName.MatchString(n) || p.Description == "" {
			t.Errorf("%s.%s: name or description", tl.Name, n)
		}
		switch p.Type {
		case "string":
			if len(p.Enum) == 0 || !strings.Contains(p.Description, strings.Join(p.Enum, ", ")) {
				t.Errorf("%s.%s: words are not repeated in %q", tl.Name, n, p.Description)
			}
		case "number", "integer":
			if p.Minimum == nil || p.Maximum == nil || !strings.Contains(p.Description, "Allowed: ") {
				t.Errorf("%s.%s: limits are not repeated in %q", tl.Name, n, p.Description)
			}
		default:
			t.Errorf("%s.%s: type %q", tl.Name, n, p.Type)
		}
	}
}

func TestHints(t *testing.T) {
	type hint struct{ readOnly, destructive, idempotent bool }
	look, plain := hint{readOnly: true}, hint{}
	want := map[string]hint{
		"screenshot": look, "hover": look, "gripper_get_pose": look, "gripper_show_rotation_gizmo": look, "camera_get_pose": look,
		"observe": look, "show_approach_axis": look,
		"gripper_reset": {idempotent: true}, "camera_reset": {idempotent: true}, "reset_target": {idempotent: true},
		"execute_waypoint": {destructive: true}, "end_episode": {destructive: true}, "stop": {idempotent: true},
	}
	for _, face := range []stage.Face{stage.Face3D, stage.Face2D} {
		for _, tl := range newRig(t, face).agent(t, "drive").list() {
			a := tl.Annotations
			got := hint{*a.ReadOnlyHint, *a.DestructiveHint, *a.IdempotentHint}
			w, listed := want[tl.Name]
			if !listed {
				w = plain
			}
			if got != w || *a.OpenWorldHint {
				t.Errorf("%s: hints %+v, want %+v", tl.Name, got, w)
			}
			always := tl.Meta != nil && tl.Meta.AdditionalFields["anthropic/alwaysLoad"] == true
			if always != (tl.Name == "stop") {
				t.Errorf("%s: alwaysLoad is %v", tl.Name, always)
			}
		}
	}
}

func TestDescriptionsCarryTheFacts(t *testing.T) {
	has := func(tools []mcp.Tool, name string, words ...string) {
		t.Helper()
		for _, tl := range tools {
			if tl.Name != name {
				continue
			}
			for _, w := range words {
				if !strings.Contains(tl.Description, w) {
					t.Errorf("%s does not say %q: %s", name, w, tl.Description)
				}
			}
		}
	}
	d3 := newRig(t, stage.Face3D).agent(t, "drive").list()
	for _, tl := range d3 {
		preamble := strings.Contains(tl.Description, "Frame: the robot frame")
		if want := strings.HasPrefix(tl.Name, "gripper_") && tl.Name != "gripper_toggle"; preamble != want {
			t.Errorf("%s: frame preamble %v, want %v", tl.Name, preamble, want)
		}
	}
	has(d3, "gripper_translate", "+-0.1 m")
	has(d3, "gripper_rotate", "+-90 degrees", "gripper_show_rotation_gizmo")
	has(d3, "camera_orbit_via_key", "+-45", "0..85")
	has(d3, "camera_pan_via_key", "+-0.2 m")
	has(d3, "camera_zoom", "0.03 m", "0.1 to 3 m", "u 0.3125 to 1, v 0 to 1")
	has(d3, "screenshot", "1280x800", "u 0 to 0.3125, v 0.03 to 0.405")
	has(d3, "execute_waypoint", "30 s", "40 s", "TASK SUCCEEDED")
	d2 := newRig(t, stage.Face2D).agent(t, "drive").list()
	has(d2, "ee_robot_centric_translate", "+-0.5 m", "1.5 m")
	has(d2, "ee_wrist_centric_translate", "+-0.2 m")
	has(d2, "ee_wrist_centric_rotate", "+-45 degrees", "roll, tilt_up, tilt_left", "roll -61.9 to +65.0", "pitch -61.8 to +75.0", "yaw -62.8 to +89.9")
	has(d2, "nav_translate", "+-0.5 m", "0.5 m in all")
	has(d2, "nav_rotate", "+-90 degrees", "90 in all")
}

func TestGuides(t *testing.T) {
	for _, c := range []struct {
		face   stage.Face
		prompt string
	}{{stage.Face3D, "drive_arm"}, {stage.Face2D, "drive_mobile_robot"}} {
		r := newRig(t, c.face)
		in := r.s.Instructions()
		if n := len(in); n == 0 || n >= 4096 {
			t.Errorf("instructions have %d characters, limit 4095", n)
		}
		for _, w := range []string{"`stop`", "metres and degrees", "30 s", "40 s", "+x forward"} {
			if c.face == stage.Face3D && w == "+x forward" {
				w = "X red"
			}
			if !strings.Contains(in[:500], w) {
				t.Errorf("the first 500 characters do not say %q: %s", w, in[:500])
			}
		}
		a := r.agent(t, "drive")
		list, err := a.c.ListPrompts(context.Background(), mcp.ListPromptsRequest{})
		if err != nil || len(list.Prompts) != 1 || list.Prompts[0].Name != c.prompt || list.Prompts[0].Description == "" {
			t.Fatalf("prompts %+v, %v", list, err)
		}
		var req mcp.GetPromptRequest
		req.Params.Name = c.prompt
		got, err := a.c.GetPrompt(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		text, ok := got.Messages[0].Content.(mcp.TextContent)
		if !ok || !strings.Contains(text.Text, "execute_waypoint") {
			t.Errorf("prompt %+v", got.Messages)
		}
		namesExist(t, in+text.Text, a.list())
	}
}

var toolish = regexp.MustCompile(`\b(?:gripper|camera|ee|nav|execute|end|reset|show)_[a-z_]+[a-z]\b`)

// namesExist fails when a guide speaks of a tool that its face does not have.
func namesExist(t *testing.T, guide string, tools []mcp.Tool) {
	t.Helper()
	known := map[string]bool{"nav_map": true} // a view
	for _, tl := range tools {
		known[tl.Name] = true
	}
	for _, n := range toolish.FindAllString(guide, -1) {
		if !known[n] {
			t.Errorf("the guide names %s, which this face does not have", n)
		}
	}
}
