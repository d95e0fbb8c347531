package tool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"viad/interface/stage"
)

// message is what a client may send instead of a call, and what it is told.
type message struct {
	body   string
	status int
	says   []string
}

func messages() []message {
	long := strings.Repeat("i", 300)
	return []message{
		{``, 400, []string{"the message is empty", "send one JSON-RPC message"}},
		{`junk`, 400, []string{"not JSON", "byte 1"}},
		{toolCall("1", "stop", `{`), 400, []string{"not JSON"}},
		{toolCall("1", "stop", `{}`) + ` more`, 400, []string{"not JSON"}},
		{`[` + toolCall("1", "end_episode", `{}`) + `]`, 400, []string{"a batch is not taken", "one JSON-RPC message at a time"}},
		{`5`, 400, []string{"one JSON object", "got 5"}},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, 400, []string{"method is 5", "must be a string"}},
		// The library would take the last of these names, or any letters.
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stop","name":"end_episode"}}`, 400, []string{"name stands there twice", "nothing was called"}},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stop","Name":"end_episode"}}`, 400, []string{"Name must be written name", "nothing was called"}},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"NAME":"end_episode"}}`, 400, []string{"NAME must be written name"}},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"end_episode"}}`, 400, []string{"Method must be written method"}},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gripper_translate","arguments":{"d_x":0.01},"arguments":{"d_x":0.1}}}`, 400, []string{"arguments stands there twice"}},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gripper_translate","ARGUMENTS":{"d_x":0.01}}}`, 400, []string{"must be written arguments"}},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"end_episode"},"params":{"name":"stop"}}`, 400, []string{"params stands there twice"}},
		// A call whose result nobody would hear of.
		{`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"end_episode"}}`, 400, []string{"without an id", "nothing was called"}},
		{`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"end_episode"}}`, 400, []string{"id is null", "nothing was called"}},
		{`{"jsonrpc":"2.0","id":{"a":1},"method":"tools/call","params":{"name":"end_episode"}}`, 400, []string{`id is {"a":1}`, "a string or a number"}},
		{toolCall(`"`+long+`"`, "end_episode", `{}`), 400, []string{"at most 256 characters"}},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 400, []string{"must be an object with name and arguments"}},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}`, 400, []string{"must be an object with name and arguments"}},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, 400, []string{"must be a string"}},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`, 400, []string{"name of tools/call is 5"}},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"end_episode","_meta":"x"}}`, 400, []string{"_meta of tools/call", "must be an object"}},
		{toolCall("1", "nav_rotate", `{}`), 200, []string{"no tool nav_rotate on this face", "tools/list"}},
		{toolCall("1", "", `{}`), 200, []string{`no tool ""`}},
	}
}

// checkFault looks at the JSON-RPC error in body.
func checkFault(t *testing.T, m message, body string) {
	t.Helper()
	var got struct {
		JSONRPC string
		Error   struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.JSONRPC != "2.0" || got.Error.Code > -32600 || strings.Contains(got.Error.Message, "\n") {
		t.Errorf("%.200s: %v %s", m.body, err, body)
	}
	for _, w := range m.says {
		if !strings.Contains(got.Error.Message, w) {
			t.Errorf("%.200s: says %q, want %q", m.body, got.Error.Message, w)
		}
	}
}

func TestUnclearMessagesCallNothing(t *testing.T) {
	r := newRig(t, stage.Face3D)
	session := r.session(t, "drive")
	a := r.agent(t, "drive")
	a.good("gripper_translate", `{"d_x":0.01}`)
	before := r.st.Snapshot()
	for _, m := range messages() {
		status, _, body := r.post(t.Context(), t, "drive", session, m.body)
		if status != m.status {
			t.Errorf("%.200s: status %d, want %d", m.body, status, m.status)
		}
		checkFault(t, m, body)
	}
	if after := r.st.Snapshot(); after.Target != before.Target || after.Episode != before.Episode {
		t.Errorf("target %+v, episode %d; want %+v, %d", after.Target, after.Episode, before.Target, before.Episode)
	}
}

func TestNumbersThatJSONLacksReachTheArgumentCheck(t *testing.T) {
	r := newRig(t, stage.Face3D)
	session := r.session(t, "drive")
	for _, v := range []string{"NaN", "Infinity", "-Infinity", "1e400", "-1e400"} {
		_, _, body := r.post(t.Context(), t, "drive", session, toolCall("1", "gripper_translate", `{"d_x":`+v+`}`))
		want := fmt.Sprintf(`d_x must be a plain number in metres, got %q, limit -0.1 to 0.1 m`, v)
		if got, err := parseWire(body); err != nil || !got.bad || !strings.Contains(got.text(), want) {
			t.Errorf("%s: %v %s", v, err, body)
		}
	}
}

func TestHTTPSaysWhatIsRight(t *testing.T) {
	r := newRig(t, stage.Face3D)
	status, _, body := r.post(t.Context(), t, "drive", "", toolCall("1", "screenshot", `{}`))
	if status != http.StatusBadRequest || !strings.Contains(body, "initialize first") {
		t.Errorf("no session: %d %s", status, body)
	}
	status, _, body = r.post(t.Context(), t, "drive", "junk", toolCall("1", "screenshot", `{}`))
	if status != http.StatusNotFound || !strings.Contains(body, "initialize again") {
		t.Errorf("junk session: %d %s", status, body)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodOptions, http.MethodPatch} {
		req, err := http.NewRequestWithContext(t.Context(), method, r.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer drive")
		tr := &http.Transport{}
		res, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		tr.CloseIdleConnections()
		if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "POST, DELETE" || !strings.Contains(string(b), method+" is not taken here") {
			t.Errorf("%s: %d %q %s", method, res.StatusCode, res.Header.Get("Allow"), b)
		}
	}
}

func TestStdioAnswersWhatIsNoMessage(t *testing.T) {
	r := newRig(t, stage.Face3D)
	p, done := r.stdio(t)
	p.send("") // an empty line is nothing
	for _, m := range messages() {
		if m.body == "" {
			continue
		}
		p.send(m.body)
		line, err := p.out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		checkFault(t, m, line)
	}
	p.send(toolCall("1", "screenshot", `{"a":"`+strings.Repeat("x", 3<<20)+`"}`))
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	checkFault(t, message{"a long line", 0, []string{"longer than 1048576 bytes", "nothing was called"}}, line)
	if !strings.Contains(line, `"id":1,`) {
		t.Errorf("who waits for the answer is not told: %s", line)
	}
	if got := p.call("9", "screenshot", `{}`); got.bad {
		t.Errorf("after all that: %s", got.text())
	}
	if err := p.in.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestStdioStopGoesAheadOfTheQueue: more calls wait than the library has workers, all of them for a motion.
func TestStdioStopGoesAheadOfTheQueue(t *testing.T) {
	r := newRig(t, stage.Face3D, setup{stage: stopNow})
	p, done := r.stdio(t)
	p.call("1", "gripper_translate", `{"d_x":0.1}`)
	release := r.held()
	defer release()
	for i := range 300 { // the same request again waits for the one motion
		p.send(toolCall("2", "execute_waypoint", `{}`))
		if i == 0 {
			r.began(t)
		}
	}
	p.send(toolCall("3", "stop", `{}`))
	if got, err := parseWire(p.answer("3")); err != nil || got.bad {
		t.Errorf("stop: %v %s", err, got.text())
	}
	if _, err := parseWire(p.answer("2")); err != nil { // the motion ends on its own goroutine
		t.Error(err)
	}
	if r.st.Snapshot().Moving {
		t.Error("still moving")
	}
	if n := r.r.count("stop"); n != 1 {
		t.Errorf("%d stops recorded", n)
	}
	if err := p.in.Close(); err != nil {
		t.Error(err)
	}
	go func() {
		if _, err := io.Copy(io.Discard, p.out); err != nil {
			t.Error(err)
		}
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestStdioClientThatTakesNoAnswersIsGone: its input stays open, but how the motion ends cannot be told.
func TestStdioClientThatTakesNoAnswersIsGone(t *testing.T) {
	r := newRig(t, stage.Face3D, setup{stage: stopNow})
	p, done := r.stdio(t)
	p.call("1", "gripper_translate", `{"d_x":0.1}`)
	release := r.held()
	defer release()
	p.send(toolCall("2", "execute_waypoint", `{}`))
	r.began(t)
	if err := p.raw.Close(); err != nil {
		t.Fatal(err)
	}
	p.send(toolCall("3", "screenshot", `{}`)) // its answer finds nobody
	if err := <-done; err == nil || !strings.Contains(err.Error(), "takes no answers any more") {
		t.Errorf("got %v", err)
	}
	soon(t, "the motion stops", func() bool { return !r.st.Snapshot().Moving })
	if err := p.in.Close(); err != nil {
		t.Error(err)
	}
}

func (r *records) count(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range r.all {
		if c.Tool == name {
			n++
		}
	}
	return n
}
