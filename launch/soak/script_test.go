package soak

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"

	"viad/interface/operator"
)

// toolInfo is a tool as it is listed.
type toolInfo struct {
	Name        string `json:"name"`
	InputSchema struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	} `json:"inputSchema"`
}

type property struct {
	Type    string   `json:"type"`
	Minimum *float64 `json:"minimum"`
	Maximum *float64 `json:"maximum"`
	Enum    []string `json:"enum"`
}

type kind int

const (
	doCall    kind = iota // a tool, to its end
	doAbort               // a tool, given up in the middle
	doKill                // a tool, and in the middle the client dies
	doDelete              // the session is ended properly, and a new one begun
	doRaw                 // an HTTP request that no client makes
	doOp                  // the operator's socket
	doRunstop             // somebody presses the robot's own button
	doFault               // a sensor begins to fail
	doBreak               // the machine will fail in the next motion, or reads wrong from now on
	doHeal                // sensors and machine stop to
	doTurn                // several steps, between which nobody else who waits for his turn does any
)

// step is one thing that a client does. Steps depend on the seed alone, never on what was answered.
type step struct {
	kind kind
	tool string
	args json.RawMessage
	bad  bool // must be refused, whoever calls
	odd  bool // may be answered by a protocol error
	wait time.Duration
	op   operator.Op
	n    int    // which raw request, which sensor, which fault
	own  []step // of a turn
}

// size is how many calls a step is.
func (s *step) size() int { return max(1, len(s.own)) }

type role int

const (
	driver role = iota
	watcher
	person // the operator, with the socket at hand
)

// writer makes a script.
type writer struct {
	rng   *rand.Rand
	tools []toolInfo
	role  role
	out   []step
	size  int    // of out, in calls
	later []step // to follow what was begun: heal, clear and arm
	due   int
	small bool // values are, so that the robot can well go there
}

// script is what one client does.
func script(seed uint64, client int, r role, tools []toolInfo, n int) []step {
	w := &writer{rng: rand.New(rand.NewPCG(seed, uint64(client)+1)), tools: slices.Clone(tools), role: r}
	sort.Slice(w.tools, func(i, j int) bool { return w.tools[i].Name < w.tools[j].Name })
	for w.size < n {
		if len(w.later) > 0 && len(w.out) >= w.due {
			later := w.later
			w.later = nil
			w.add(later...)
			continue
		}
		w.next()
	}
	return append(w.out, w.later...)
}

func (w *writer) add(steps ...step) {
	for _, s := range steps {
		w.out = append(w.out, s)
		w.size += s.size()
	}
}

func (w *writer) chance(percent int) bool { return w.rng.IntN(100) < percent }

func (w *writer) pick(names ...string) string { return names[w.rng.IntN(len(names))] }

func (w *writer) next() {
	switch p := w.rng.IntN(100); {
	case w.role == driver && w.chance(60), w.role == person && w.chance(5):
		w.journey()
	case p < 38:
		w.add(w.hostile())
	case p < 43:
		w.add(step{kind: doRaw, n: w.rng.IntN(1 << 20)})
	case p < 47:
		s := w.valid()
		s.kind, s.wait = doAbort, w.moment()
		w.add(s)
	case p < 49:
		s := w.valid()
		s.kind, s.wait = doKill, w.moment()
		w.add(s)
	case p < 50:
		w.add(step{kind: doDelete})
	case w.role == person && p < 80:
		w.operate()
	case w.role == person && p < 84:
		w.add(step{kind: doFault, n: w.rng.IntN(1 << 20)})
		w.follow(step{kind: doHeal})
	default:
		w.add(w.valid())
	}
}

// journey stages a waypoint or a few from where the real gripper is, and executes each. Most journeys wait for their
// turn: two drivers who never do take the seat from each other for good.
func (w *writer) journey() {
	own := []step{{kind: doOp, op: operator.OpFree}, {tool: w.tool("gripper_reset", "reset_target").Name}}
	for range 1 + w.rng.IntN(3) {
		own = append(own, w.waypoint()...)
	}
	if w.chance(5) { // a world put back
		own = append(own, step{tool: "end_episode"})
	}
	if w.role == person { // and leaves the seat to the drivers
		own = append(own, step{kind: doOp, op: operator.OpFree})
	}
	if w.chance(90) {
		w.add(step{kind: doTurn, own: own})
	} else {
		w.add(own[1:]...) // in whatever seat there is
	}
}

// waypoint is one edit and its execute; at times the client does not wait for the end, or the machine fails.
func (w *writer) waypoint() []step {
	edit := w.tool("gripper_translate", "gripper_translate", "gripper_advance_or_retreat", "gripper_rotate", "gripper_toggle", "gripper_teleport_via_click",
		"ee_robot_centric_translate", "ee_wrist_centric_translate", "ee_wrist_centric_rotate", "ee_teleport_via_click", "nav_translate", "nav_rotate", "gripper_set")
	w.small = true
	out := []step{{tool: edit.Name, args: w.args(edit)}}
	w.small = false
	run := step{tool: "execute_waypoint"}
	switch p := w.rng.IntN(100); {
	case p < 8:
		run.kind, run.wait = doAbort, 4*w.moment()
	case p < 14:
		run.kind, run.wait = doKill, 4*w.moment()
	}
	if !w.chance(25) {
		return append(out, run)
	}
	out = append(out, step{kind: doBreak, n: w.rng.IntN(1 << 20)}, run, step{kind: doHeal})
	return append(out, rearm()...)
}

func rearm() []step {
	return []step{{kind: doOp, op: operator.OpClear}, {kind: doOp, op: operator.OpArm}}
}

// moment is how long a call goes on before its client gives up: mostly hardly at all, at times into a motion.
func (w *writer) moment() time.Duration {
	return time.Duration(w.rng.ExpFloat64() * float64(40*time.Millisecond))
}

// follow puts steps some way behind what they undo.
func (w *writer) follow(s ...step) {
	w.later = append(w.later, s...)
	w.due = len(w.out) + 1 + w.rng.IntN(6)
}

func (w *writer) operate() {
	arm := rearm()
	switch p := w.rng.IntN(100); {
	case p < 30:
		w.add(step{kind: doOp, op: operator.OpStatus})
	case p < 40:
		w.add(step{kind: doOp, op: operator.OpStop})
	case p < 45:
		w.add(step{kind: doOp, op: operator.OpEStop})
		w.follow(arm...)
	case p < 50:
		w.add(step{kind: doOp, op: operator.OpDisarm})
		w.follow(arm...)
	case p < 53:
		w.add(step{kind: doRunstop})
		w.follow(arm...)
	case p < 56:
		w.add(step{kind: doOp, op: operator.OpTakeOver})
		w.follow(step{kind: doOp, op: operator.OpFree})
	case p < 65:
		w.add(step{kind: doOp, op: operator.OpFree})
	default: // when nobody is under way
		w.add(step{kind: doTurn, own: []step{{kind: doOp, op: operator.OpFree}}})
	}
}

// valid is a call as an agent makes it; the watcher also tries what it may not.
func (w *writer) valid() step {
	var t toolInfo
	p := w.rng.IntN(100)
	switch {
	case p < 3:
		t = w.tool("stop")
	case p < 4:
		t = w.tool("end_episode")
	case p < 12 && w.role != person:
		t = w.tool("execute_waypoint")
	case p < 40 || w.role == person: // whose edits would keep the seat from the drivers
		t = w.tool("screenshot", "observe", "hover", "gripper_get_pose", "camera_get_pose", "show_approach_axis")
	default:
		t = w.tool("gripper_translate", "gripper_advance_or_retreat", "gripper_toggle", "ee_robot_centric_translate",
			"ee_wrist_centric_translate", "ee_wrist_centric_rotate", "nav_translate", "nav_rotate", "gripper_set", "reset_target")
		if w.chance(10) {
			t = w.tool()
		}
	}
	return step{tool: t.Name, args: w.args(t)}
}

// tool is one of these that this face has, or any.
func (w *writer) tool(names ...string) toolInfo {
	var have []toolInfo
	for _, n := range names {
		for _, t := range w.tools {
			if t.Name == n {
				have = append(have, t)
			}
		}
	}
	if len(have) > 0 {
		return have[w.rng.IntN(len(have))]
	}
	for {
		if t := w.tools[w.rng.IntN(len(w.tools))]; t.Name != "end_episode" {
			return t
		}
	}
}

// args are good ones, mostly small, that the robot may well be able to carry out.
func (w *writer) args(t toolInfo) json.RawMessage {
	var parts []string
	for _, name := range w.names(t) {
		if !slices.Contains(t.InputSchema.Required, name) && w.chance(30) {
			continue
		}
		parts = append(parts, fmt.Sprintf("%q:%s", name, w.value(t.InputSchema.Properties[name])))
	}
	if len(parts) == 0 && w.chance(50) {
		return nil
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

func (w *writer) names(t toolInfo) []string {
	names := make([]string, 0, len(t.InputSchema.Properties))
	for n := range t.InputSchema.Properties {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func (w *writer) value(p property) string {
	if len(p.Enum) > 0 {
		return fmt.Sprintf("%q", w.pick(p.Enum...))
	}
	lo, hi := 0.0, 1.0
	if p.Minimum != nil && p.Maximum != nil {
		lo, hi = *p.Minimum, *p.Maximum
	}
	v := lo + (hi-lo)*w.rng.Float64()
	if lo < 0 && (w.small || w.chance(75)) {
		v *= 0.4
	}
	if p.Type == "integer" {
		return fmt.Sprintf("%d", int(v))
	}
	s := fmt.Sprintf("%.4f", v)
	if w.chance(5) {
		return `"` + s + `"` // a plain number in a string is one
	}
	return s
}

// hostile is a call that must be refused.
func (w *writer) hostile() step {
	if w.chance(12) {
		return step{tool: w.pick("", "gripper", "Stop", "stop ", "../stop", "execute_waypoint\x00", "viad arm", strings.Repeat("x", 5000), "\u202estop"), odd: true, bad: true}
	}
	t := w.tools[w.rng.IntN(len(w.tools))]
	s := step{tool: t.Name, bad: t.Name != "stop"} // which stops whatever comes with it
	names := w.names(t)
	if len(names) == 0 || w.chance(10) {
		s.args = json.RawMessage(w.pick(`{"speed":99}`, `{"__proto__":{}}`, `{"":1}`, `{"force":true,"confirm":"yes"}`, `{"`+strings.Repeat("k", 3000)+`":1}`))
		return s
	}
	if w.chance(8) {
		s.args, s.odd = json.RawMessage(w.pick(`[1,2]`, `"x"`, `7`, `true`)), true
		return s
	}
	name := names[w.rng.IntN(len(names))]
	p := t.InputSchema.Properties[name]
	v := w.pick(`"NaN"`, `"Infinity"`, `"-inf"`, `1e400`, `-1e308`, `1e17`, `"0.1 m"`, `"1,5"`, `"0x10"`, `"１"`, `{}`, `[]`, `[0.1]`, `true`, `""`,
		`"\u0000"`, `"; rm -rf /"`, `"`+strings.Repeat("9", 70)+`"`, `"`+strings.Repeat("A", 60000)+`"`, `{"a":{"a":{"a":{}}}}`)
	s.odd = v == `1e400` // which go-sdk's client cannot read itself
	parts := []string{fmt.Sprintf("%q:%s", name, v)}
	for _, n := range names {
		if n != name {
			parts = append(parts, fmt.Sprintf("%q:%s", n, w.value(t.InputSchema.Properties[n])))
		}
	}
	if w.chance(8) { // twice, however good
		parts = []string{fmt.Sprintf("%q:%s", name, w.value(p)), fmt.Sprintf("%q:%s", name, w.value(p))}
	}
	s.args = json.RawMessage("{" + strings.Join(parts, ",") + "}")
	return s
}
