package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An episode whose world cannot be put back goes on, and its record with it; the next end ends it.
func TestAResetThatFailsEndsNoRecord(t *testing.T) {
	var good func(context.Context, int64) error
	d := startWith(t, "twin-franka.yaml", nil, func(s *System) {
		good = s.rig.reset
		s.rig.reset = func(context.Context, int64) error { return errors.New("the physics is stuck") }
	}, nil)
	a := connect(t, d.MCP(), d.Token())
	a.must("gripper_translate", map[string]any{"d_z": -0.05})
	before := d.rec.Status().Folder
	a.refused("the episode goes on as it was", "end_episode", nil)
	if now := d.rec.Status().Folder; now != before || before == "" {
		t.Errorf("recorded into %s, then into %s", before, now)
	}
	if text := a.must("screenshot", nil); strings.Contains(text, "nothing, the target is on the real gripper") {
		t.Errorf("what was staged is gone: %s", text)
	}
	d.rig.reset = good
	if text := a.must("end_episode", nil); !strings.Contains(text, before) {
		t.Errorf("saved elsewhere than in %s: %s", before, text)
	}
	all, err := filepath.Glob(filepath.Join(filepath.Dir(before), "*-episode-*"))
	if err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	b, err := os.ReadFile(filepath.Join(before, "decisions.jsonl"))
	if err != nil || !strings.Contains(string(b), "it could not be ended, and goes on: the physics is stuck") {
		t.Errorf("%v: %s", err, b)
	}
}

// The log is for people: numbers as long as they mean something, and no line for every look.
func TestLogIsReadable(t *testing.T) {
	log := &pages{}
	d := startWith(t, "twin-franka.yaml", nil, func(*System) {}, testConfig(t, "twin-franka.yaml", nil).logger(log))
	a := connect(t, d.MCP(), d.Token())
	a.must("screenshot", nil)
	a.must("gripper_translate", map[string]any{"d_z": -0.0512345})
	a.must("execute_waypoint", nil)
	a.refused("nothing", "execute_waypoint", nil)
	text := log.String()
	for _, l := range strings.Split(text, "\n") {
		for _, w := range strings.Fields(l) {
			if key, v, ok := strings.Cut(w, "="); ok && key != "time" && strings.Contains(v, ".") && len(v) > 12 && !strings.ContainsAny(v[:1], "\"/hv") {
				t.Errorf("%s in %s", w, l)
			}
		}
	}
	for what, n := range map[string]int{"tool=screenshot": 0, "tool=gripper_translate": 0, "tool=execute_waypoint": 2, "\"motion ended\"": 1, "msg=refused": 1} {
		if got := strings.Count(text, what); got != n {
			t.Errorf("%d lines with %s, want %d:\n%s", got, what, n, text)
		}
	}
}
