package tool_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"viad/interface/stage"
)

// held makes motions wait; release lets them go on.
func (r *rig) held() (release func()) {
	hold := make(chan struct{})
	r.w.set(func() { r.w.hold = hold })
	return func() {
		r.w.set(func() { r.w.hold = nil })
		close(hold)
	}
}

// soon waits for f to become true; it fails after a time that only a hang takes.
func soon(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(10 * time.Second)
	for !f() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

func (r *rig) began(t *testing.T) {
	t.Helper()
	select {
	case <-r.w.began:
	case <-time.After(10 * time.Second):
		t.Fatal("no motion began within 10 s")
	}
}

func finish(o *stage.Options) { o.OnClientGone = stage.Finish }

func stopNow(o *stage.Options) { o.OnClientGone = stage.StopNow }

func TestTheSameRequestTwiceMovesOnce(t *testing.T) {
	r := newRig(t, stage.Face3D)
	s := r.session(t, "drive")
	r.raw(t, "drive", s, toolCall("1", "gripper_translate", `{"d_x":0.1}`))
	first := r.raw(t, "drive", s, toolCall("2", "execute_waypoint", `{}`))
	again := r.raw(t, "drive", s, toolCall("2", "execute_waypoint", `{}`))
	if first.bad || again.bad || strings.Contains(first.text(), "repeated") || again.kinds != "itt" ||
		!strings.Contains(again.text(), "repeated: the same request was delivered before") || !strings.Contains(again.text(), first.texts[0]) {
		t.Errorf("first %s\nagain %s", first.text(), again.text())
	}
	// A late duplicate, when something else is staged by then.
	r.raw(t, "drive", s, toolCall("3", "gripper_translate", `{"d_x":0.1}`))
	if late := r.raw(t, "drive", s, toolCall("2", "execute_waypoint", `{}`)); !strings.Contains(late.text(), "repeated") {
		t.Errorf("late %s", late.text())
	}
	// The id as a string is another id.
	if other := r.raw(t, "drive", s, toolCall(`"2"`, "execute_waypoint", `{}`)); strings.Contains(other.text(), "repeated") || other.bad {
		t.Errorf("other %s", other.text())
	}
	if n := r.w.motions(); n != 2 {
		t.Errorf("%d motions, want 2", n)
	}
}

func TestAKeptResultHoldsNoScene(t *testing.T) {
	r := newRig(t, stage.Face3D)
	s := r.session(t, "drive")
	for _, id := range []string{"1", "3", "5"} {
		r.raw(t, "drive", s, toolCall(id, "gripper_translate", `{"d_x":0.05}`))
		r.raw(t, "drive", s, toolCall("2"+id, "execute_waypoint", `{}`))
	}
	soon(t, "the scenes of delivered results let go", func() bool { return r.s.Holding() == 0 })
	if again := r.raw(t, "drive", s, toolCall("25", "execute_waypoint", `{}`)); again.kinds != "itt" || !strings.Contains(again.text(), "repeated") {
		t.Errorf("the result without its scene: %s", again.text())
	}
}

func TestARefusedRequestAgainStaysRefused(t *testing.T) {
	r := newRig(t, stage.Face3D)
	s := r.session(t, "drive")
	refused := r.raw(t, "drive", s, toolCall("1", "execute_waypoint", `{}`))
	r.raw(t, "drive", s, toolCall("2", "gripper_translate", `{"d_x":0.1}`))
	again := r.raw(t, "drive", s, toolCall("1", "execute_waypoint", `{}`))
	// It has no number: the waypoint that runs next takes that.
	if !refused.bad || !again.bad || again.kinds != "t" || !strings.Contains(again.text(), "repeated") || strings.Contains(again.text(), "waypoint 1") ||
		!strings.Contains(again.text(), refused.text()) || r.w.motions() != 0 {
		t.Errorf("refused %s\nagain %s", refused.text(), again.text())
	}
}

func TestTheSameRequestDuringTheMotionJoinsIt(t *testing.T) {
	r := newRig(t, stage.Face2D)
	s := r.session(t, "drive")
	release := r.held()
	r.raw(t, "drive", s, toolCall("1", "nav_translate", `{"dx_m":0.1}`))
	got := make(chan reply, 2)
	for range 2 {
		go func() { got <- r.raw(t, "drive", s, toolCall("2", "execute_waypoint", `{}`)) }()
	}
	r.began(t)
	release()
	a, b := <-got, <-got
	if a.bad || b.bad || strings.Contains(a.text(), "repeated") == strings.Contains(b.text(), "repeated") || r.w.motions() != 1 {
		t.Errorf("%d motions; %s\n%s", r.w.motions(), a.text(), b.text())
	}
	near(t, "realized", a.proprio(t).Proprio.Real.Position.list(), []float64{.6, 0, .8}, half)
}

// abandon starts an execute and drops its connection in mid-motion.
func (r *rig) abandon(t *testing.T, session, id string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.post(ctx, t, "drive", session, toolCall(id, "execute_waypoint", `{}`))
	}()
	r.began(t)
	cancel()
	<-done
}

func (r *rig) recordedLost(t *testing.T) {
	t.Helper()
	soon(t, "the lost call is recorded", func() bool { rec := r.r.last(); return rec.Tool == "execute_waypoint" && rec.Lost })
}

func TestALostReplyIsShownByTheNextLook(t *testing.T) {
	for _, c := range []struct {
		face       stage.Face
		move, args string
		look       string
		kinds      string
	}{
		{stage.Face3D, "gripper_translate", `{"d_x":0.1}`, "screenshot", "itt"},
		{stage.Face2D, "nav_translate", `{"dx_m":0.1}`, "observe", "tititt"},
	} {
		r := newRig(t, c.face, setup{stage: finish})
		s := r.session(t, "drive")
		r.raw(t, "drive", s, toolCall("1", c.move, c.args))
		release := r.held()
		r.abandon(t, s, "2")
		r.recordedLost(t)
		release()
		soon(t, "the motion ends", func() bool { return !r.st.Snapshot().Moving })
		if got := r.raw(t, "watch", r.session(t, "watch"), toolCall("1", c.look, `{}`)); strings.Contains(got.text(), "not delivered") {
			t.Errorf("a watcher got the driver's result: %s", got.text())
		}
		var got reply
		soon(t, "the result is shown", func() bool {
			got = r.raw(t, "drive", s, toolCall("3", c.look, `{}`))
			return strings.Contains(got.text(), "not delivered")
		})
		if got.kinds != c.kinds || !strings.Contains(got.text(), "result of execute_waypoint 1, whose reply was not delivered:") || !strings.Contains(got.text(), "reached") {
			t.Errorf("%s: %q %s", c.look, got.kinds, got.text())
		}
		if c.face == stage.Face2D && got.keys(t) != "proprio" {
			t.Errorf("observe JSON has keys %s", got.keys(t))
		}
		if got = r.raw(t, "drive", s, toolCall("4", c.look, `{}`)); strings.Contains(got.text(), "not delivered") {
			t.Errorf("shown twice: %s", got.text())
		}
		if got = r.raw(t, "drive", s, toolCall("5", "execute_waypoint", `{}`)); !got.bad || r.w.motions() != 1 {
			t.Errorf("%d motions; %s", r.w.motions(), got.text())
		}
	}
}

func TestExecuteAfterALostReplyDoesNotMove(t *testing.T) {
	r := newRig(t, stage.Face2D, setup{stage: finish})
	s := r.session(t, "drive")
	r.raw(t, "drive", s, toolCall("1", "nav_translate", `{"dx_m":0.1}`))
	release := r.held()
	r.abandon(t, s, "2")
	r.recordedLost(t)
	// The agent tries again at once, with another id, while the robot still moves.
	got := make(chan reply, 1)
	go func() { got <- r.raw(t, "drive", s, toolCall("3", "execute_waypoint", `{}`)) }()
	soon(t, "the second call waits", func() bool { return r.s.Waiting() == 1 })
	release()
	again := <-got
	if again.bad || !strings.Contains(again.text(), "repeated: the first reply was not delivered") || again.proprio(t).Outcome.Result != "reached" || r.w.motions() != 1 {
		t.Errorf("%d motions; %s", r.w.motions(), again.text())
	}
	// What is staged from here on runs.
	r.raw(t, "drive", s, toolCall("4", "nav_translate", `{"dx_m":0.1}`))
	if next := r.raw(t, "drive", s, toolCall("5", "execute_waypoint", `{}`)); next.bad || strings.Contains(next.text(), "repeated") || r.w.motions() != 2 {
		t.Errorf("%d motions; %s", r.w.motions(), next.text())
	}
}

func TestHangupStopsWhenTheOperatorChoseSo(t *testing.T) {
	for _, how := range []string{"abort", "delete"} {
		r := newRig(t, stage.Face3D, setup{stage: stopNow})
		s := r.session(t, "drive")
		r.raw(t, "drive", s, toolCall("1", "gripper_translate", `{"d_x":0.1}`))
		release := r.held()
		defer release()
		var rest chan reply
		if how == "abort" {
			r.abandon(t, s, "2")
		} else {
			rest = make(chan reply, 1)
			go func() { rest <- r.raw(t, "drive", s, toolCall("2", "execute_waypoint", `{}`)) }()
			r.began(t)
			r.deleteSession(t, "drive", s)
		}
		start := time.Now()
		soon(t, "the motion stops", func() bool { return !r.st.Snapshot().Moving })
		if took := time.Since(start); took > time.Second {
			t.Errorf("%s: stopped after %v, limit 1 s", how, took)
		}
		if rest != nil {
			<-rest
		}
		if last := r.st.Snapshot().Last; last == nil || last.Outcome.Why != "the request ended" {
			t.Errorf("%s: last %+v", how, last)
		}
	}
}

func (r *rig) deleteSession(t *testing.T, token, session string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, r.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Mcp-Session-Id", session)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	return res.StatusCode
}

func TestANewClientCountsItsIdsAnew(t *testing.T) {
	r := newRig(t, stage.Face2D)
	for n := range 3 { // every client of the library starts at the same ids, without a session in protocol 2026-07-28
		a := r.agent(t, "drive")
		a.good("nav_translate", `{"dx_m":0.1}`)
		if got := a.good("execute_waypoint", `{}`); strings.Contains(got.text(), "repeated") {
			t.Errorf("client %d: %s", n, got.text())
		}
	}
	if n := r.w.motions(); n != 3 {
		t.Errorf("%d motions, want 3", n)
	}
}

func TestSessionsBelongToTheirToken(t *testing.T) {
	r := newRig(t, stage.Face3D)
	s := r.session(t, "drive")
	if status, _, body := r.post(t.Context(), t, "drive2", s, toolCall("1", "stop", `{}`)); status != http.StatusNotFound {
		t.Errorf("another token used the session: %d %s", status, body)
	}
	if status := r.deleteSession(t, "drive2", s); status != http.StatusNotFound {
		t.Errorf("another token ended the session: %d", status)
	}
	if status, _, _ := r.post(t.Context(), t, "drive", "mcp-session-00000000-0000-0000-0000-000000000000", toolCall("1", "stop", `{}`)); status != http.StatusNotFound {
		t.Errorf("unknown session: %d, want 404", status)
	}
	r.raw(t, "drive", s, toolCall("1", "screenshot", `{}`))
	if status := r.deleteSession(t, "drive", s); status != http.StatusOK {
		t.Errorf("delete: %d", status)
	}
	if status, _, _ := r.post(t.Context(), t, "drive", s, toolCall("2", "stop", `{}`)); status != http.StatusNotFound {
		t.Errorf("ended session: %d, want 404", status)
	}
}

func TestCloseStopsTheMotion(t *testing.T) {
	r := newRig(t, stage.Face3D)
	s := r.session(t, "drive")
	r.raw(t, "drive", s, toolCall("1", "gripper_translate", `{"d_x":0.1}`))
	release := r.held()
	defer release()
	got := make(chan reply, 1)
	go func() { got <- r.raw(t, "drive", s, toolCall("2", "execute_waypoint", `{}`)) }()
	r.began(t)
	if err := r.s.Close(); err != nil {
		t.Fatal(err)
	}
	if last := r.st.Snapshot().Last; last == nil || last.Outcome.Result.String() != "stopped_short" {
		t.Errorf("last %+v", last)
	}
	<-got
	if after := r.raw(t, "drive", s, toolCall("3", "execute_waypoint", `{}`)); !after.bad || r.w.motions() != 1 {
		t.Errorf("a closed server moved: %s", after.text())
	}
}
