package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"viad/interface/operator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeRoom is a robot that is not there.
type fakeRoom struct {
	mu      sync.Mutex
	painted int
	blind   error
	shown   uint64
	calls   []Call
	stops   int
	stopErr error
	did     []string // what was asked, and by whom
}

func (r *fakeRoom) Status() operator.Status {
	return operator.Status{Name: "fake", Armed: true, StateAge: -1}
}

func (r *fakeRoom) Live(context.Context) ([]Picture, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.painted++
	return []Picture{{Name: "ui", JPEG: []byte{0xff, '\n', 0xd8}}}, r.blind
}

func (r *fakeRoom) Shown() (uint64, []Picture) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown, []Picture{{Name: "head", JPEG: []byte("h")}, {Name: "wrist", JPEG: []byte("w"), At: time.Now().Add(-time.Minute)}}
}

func (r *fakeRoom) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

func (r *fakeRoom) Stop(context.Context, string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stops++
	return "stopped, confirmed", r.stopErr
}

func (r *fakeRoom) do(what, who string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did = append(r.did, what+" by "+who)
	return what, nil
}

func (r *fakeRoom) EStop(_ context.Context, who string) (string, error) { return r.do("estop", who) }

func (r *fakeRoom) Clear(_ context.Context, who string) (string, error)  { return r.do("clear", who) }
func (r *fakeRoom) Arm(_ context.Context, who string) (string, error)    { return r.do("arm", who) }
func (r *fakeRoom) Disarm(_ context.Context, who string) (string, error) { return r.do("disarm", who) }

func (r *fakeRoom) Free(_ context.Context, who string) (string, error) { return r.do("free", who) }

func (r *fakeRoom) TakeOver(_ context.Context, who, name string) (string, error) {
	return r.do("takeover", who+" for "+name)
}

func (r *fakeRoom) Health() operator.Health { return operator.Health{} }

func (r *fakeRoom) Do(_ context.Context, who, task string) (string, error) { return r.do(task, who) }

func (r *fakeRoom) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

const goodToken = "viad_good"

// people are who may come in, by token.
var people = map[string]Person{
	goodToken:      {Name: "alice", Role: "operator", Operator: true},
	"viad_driver":  {Name: "dora", Role: "driver"},
	"viad_watcher": {Name: "will", Role: "watcher"},
}

// serve is a page over room, and a browser that keeps cookies.
func serve(t *testing.T, room Room, every time.Duration) (*httptest.Server, *http.Client) {
	t.Helper()
	p, err := New(Options{Room: room, Every: every, Lookup: func(token string) (Person, bool) {
		who, ok := people[token]
		return who, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p.Handler())
	t.Cleanup(s.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, &http.Client{Jar: jar, Transport: s.Client().Transport}
}

func get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return r, string(b)
}

func TestALinkLetsInAndLeavesNoToken(t *testing.T) {
	s, c := serve(t, &fakeRoom{}, time.Hour)
	if r, body := get(t, c, s.URL+"/"); r.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "name=\"token\"") {
		t.Errorf("a stranger: %d", r.StatusCode)
	}
	if r, _ := get(t, c, s.URL+"/?token=viad_bad"); r.StatusCode != http.StatusUnauthorized || len(r.Cookies()) > 0 {
		t.Errorf("a wrong token: %d", r.StatusCode)
	}
	r, body := get(t, c, s.URL+"/?token="+goodToken)
	if r.StatusCode != http.StatusOK || r.Request.URL.RawQuery != "" || !strings.Contains(body, "id=\"stop\"") {
		t.Errorf("the link: %d at %s", r.StatusCode, r.Request.URL)
	}
	for _, h := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"} {
		if r.Header.Get(h) == "" {
			t.Errorf("no %s", h)
		}
	}
	if r.Header.Get("Cache-Control") != "no-store" {
		t.Error("the page may be kept by caches")
	}
	form, err := c.PostForm(s.URL+"/login", map[string][]string{"token": {goodToken}})
	if err != nil || form.StatusCode != http.StatusOK {
		t.Errorf("the form: %v %v", form, err)
	}
	if err := form.Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestAWrongTokenIsTold(t *testing.T) {
	s, c := serve(t, &fakeRoom{}, time.Hour)
	if _, body := get(t, c, s.URL+"/"); strings.Contains(body, unknownWords) {
		t.Error("a stranger without a token is blamed for one")
	}
	r, body := get(t, c, s.URL+"/?token=viad_bad")
	if !strings.Contains(body, unknownWords) || !strings.Contains(body, "name=\"token\"") || strings.Contains(r.Request.URL.String(), "viad_bad") {
		t.Errorf("at %s:\n%s", r.Request.URL, body)
	}
}

func TestWrongPlacesAndWaysAreTold(t *testing.T) {
	s, c := serve(t, &fakeRoom{}, time.Hour)
	for _, q := range []struct {
		method, path  string
		status        int
		allow, phrase string
	}{
		{"GET", "/nothing", 404, "", "agents go to /mcp, people to /"},
		{"GET", "/mcp/", 404, "", "agents go to /mcp"},
		{"GET", "/dist/index.html", 404, "", "there is nothing at"},
		{"POST", "/", 405, "GET", "POST is not taken at \"/\", only GET"},
		{"GET", "/api/stop", 405, "POST", "only POST"},
		{"OPTIONS", "/api/arm", 405, "POST", "only POST"},
		{"DELETE", "/page.js", 405, "GET", "only GET"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), q.method, s.URL+q.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var a actAnswer
		if err := errors.Join(json.NewDecoder(r.Body).Decode(&a), r.Body.Close()); err != nil {
			t.Errorf("%s %s: %v", q.method, q.path, err)
		}
		if r.StatusCode != q.status || r.Header.Get("Allow") != q.allow || a.OK || !strings.Contains(a.Error, q.phrase) {
			t.Errorf("%s %s: %d, Allow %q, %q", q.method, q.path, r.StatusCode, r.Header.Get("Allow"), a.Error)
		}
	}
}

func TestSessionsEndAndAreBounded(t *testing.T) {
	now := time.Now()
	s := newSessions()
	first, err := s.open(Person{Name: "alice"}, now)
	if err != nil {
		t.Fatal(err)
	}
	if who, ok := s.find(first, now.Add(sessionTime-time.Second)); !ok || who.Name != "alice" {
		t.Error("a session ended early")
	}
	if _, ok := s.find(first, now.Add(sessionTime+time.Second)); ok {
		t.Error("a session does not end")
	}
	first, err = s.open(Person{Name: "alice"}, now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxSessions {
		if _, err := s.open(Person{Name: "bob"}, now.Add(time.Duration(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := s.find(first, now); ok || len(s.byID) > maxSessions {
		t.Errorf("%d sessions are kept, the oldest among them: %t", len(s.byID), ok)
	}
	if _, ok := s.find("", now); ok {
		t.Error("no id is an id")
	}
}

func TestStopAnswersWhatWasMeasured(t *testing.T) {
	room := &fakeRoom{}
	s, c := serve(t, room, time.Hour)
	post := func(origin, bearer string) (int, actAnswer) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/stop", nil)
		if err != nil {
			t.Fatal(err)
		}
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		if bearer != "" {
			req.Header.Set("Authorization", "bearer "+bearer) // the scheme in any letters
		}
		r, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var a actAnswer
		if err := errors.Join(json.NewDecoder(r.Body).Decode(&a), r.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, a
	}
	for _, bearer := range []string{"", "viad_bad"} {
		if code, _ := post(s.URL, bearer); code != http.StatusUnauthorized {
			t.Errorf("a stranger with %q: %d", bearer, code)
		}
	}
	if code, a := post("", goodToken); code != http.StatusOK || a.Note != "stopped, confirmed" {
		t.Errorf("a script: %d %+v", code, a)
	}
	get(t, c, s.URL+"/?token="+goodToken)
	for origin, want := range map[string]int{s.URL: 200, "": 403, "null": 403, "https://evil.example": 403} {
		if code, _ := post(origin, ""); code != want {
			t.Errorf("a cookie from %q: %d, want %d", origin, code, want)
		}
	}
	room.set(func() { room.stopErr = errors.New("stop NOT confirmed: use the e-stop") })
	if code, a := post(s.URL, ""); code != http.StatusConflict || a.OK || !strings.Contains(a.Error, "NOT confirmed") {
		t.Errorf("a stop that was not confirmed: %d %+v", code, a)
	}
	if room.stops != 3 {
		t.Errorf("%d stops", room.stops)
	}
}

// Only an operator, and only from the page itself, has the switches; the e-stop is for everybody who is in.
func TestSwitches(t *testing.T) {
	room := &fakeRoom{}
	s, _ := serve(t, room, time.Hour)
	own := http.Header{"Origin": {s.URL}, pageHeader: {"1"}, "Sec-Fetch-Site": {"same-origin"}}
	with := func(name, value string) http.Header {
		h := own.Clone()
		h.Del(name)
		if value != "" {
			h.Set(name, value)
		}
		return h
	}
	acts := []string{"estop", "clear", "arm", "disarm", "takeover", "free"}
	for _, c := range []struct {
		name, token string
		head        http.Header
		want        map[string]int // by act; "" for the others
	}{
		{"a stranger", "", own, map[string]int{"": 401}},
		{"a stranger with a bearer token", "", with("Authorization", "Bearer "+goodToken), map[string]int{"": 401}},
		{"a watcher", "viad_watcher", own, map[string]int{"": 403, "estop": 200}},
		{"a driver", "viad_driver", own, map[string]int{"": 403, "estop": 200}},
		{"another site's form", goodToken, with("Origin", "https://evil.example"), map[string]int{"": 403}},
		{"a sandboxed frame", goodToken, with("Origin", "null"), map[string]int{"": 403}},
		{"no origin", goodToken, with("Origin", ""), map[string]int{"": 403}},
		{"the same name, in clear or not", goodToken, with("Origin", "ftp"+strings.TrimPrefix(s.URL, "http")), map[string]int{"": 403}},
		{"another port", goodToken, with("Origin", "http://127.0.0.1:1"), map[string]int{"": 403}},
		{"no header of the page", goodToken, with(pageHeader, ""), map[string]int{"": 403}},
		{"a browser that says cross-site", goodToken, with("Sec-Fetch-Site", "cross-site"), map[string]int{"": 403}},
		{"a browser that says same-site", goodToken, with("Sec-Fetch-Site", "same-site"), map[string]int{"": 403}},
		{"the operator, in a browser that says nothing", goodToken, with("Sec-Fetch-Site", ""), map[string]int{"": 200}},
		{"the operator", goodToken, own, map[string]int{"": 200}},
	} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		browser := &http.Client{Jar: jar, Transport: s.Client().Transport}
		if c.token != "" {
			get(t, browser, s.URL+"/?token="+c.token)
		}
		for _, act := range acts {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/"+act, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = c.head.Clone()
			r, err := browser.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			want, ok := c.want[act]
			if !ok {
				want = c.want[""]
			}
			room.set(func() {
				if r.StatusCode != want || (len(room.did) == 1) != (want == 200) {
					t.Errorf("%s, %s: status %d, want %d; done: %v", c.name, act, r.StatusCode, want, room.did)
				}
				if name := people[c.token].Name; len(room.did) == 1 && !strings.HasPrefix(room.did[0], act+" by "+name) {
					t.Errorf("%s, %s: %v", c.name, act, room.did)
				}
				room.did = nil
			})
			if err := r.Body.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, act := range acts { // a link or a picture of another site is a GET
			if r, _ := get(t, browser, s.URL+"/api/"+act); r.StatusCode == http.StatusOK {
				t.Errorf("%s: GET %s answers %d", c.name, act, r.StatusCode)
			}
		}
		room.set(func() {
			if len(room.did) > 0 {
				t.Errorf("%s: a GET did %v", c.name, room.did)
			}
		})
	}
}

// message is one message of the feed.
type message struct {
	state *stateMessage
	head  pictureHead
	jpeg  []byte
}

func read(t *testing.T, c *websocket.Conn) message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	kind, b, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var m message
	if kind == websocket.MessageText {
		m.state = &stateMessage{}
		err = json.Unmarshal(b, m.state)
	} else {
		head, jpeg, _ := bytes.Cut(b, []byte("\n"))
		m.jpeg = jpeg
		err = json.Unmarshal(head, &m.head)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func dial(t *testing.T, s *httptest.Server, c *http.Client) (*websocket.Conn, error) {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), s.URL+"/api/feed", &websocket.DialOptions{HTTPClient: c})
	if err == nil {
		t.Cleanup(func() { _ = conn.CloseNow() })
	}
	return conn, err
}

func TestFeedSendsWhatChanged(t *testing.T) {
	room := &fakeRoom{shown: 1, calls: []Call{{Seq: 1, Tool: "observe"}}}
	s, c := serve(t, room, 20*time.Millisecond)
	if _, err := dial(t, s, c); err == nil {
		t.Fatal("a stranger gets the feed")
	}
	get(t, c, s.URL+"/?token="+goodToken)
	conn, err := dial(t, s, c)
	if err != nil {
		t.Fatal(err)
	}
	if m := read(t, conn); m.state == nil || m.state.Status.Name != "fake" || !m.state.You.Operator || len(m.state.Calls) != 1 {
		t.Fatalf("first: %+v", m)
	}
	a, b := read(t, conn), read(t, conn)
	if b.head.Age < 60 || b.head.Age > 70 { // whoever opens the page late must not take an old picture for a new one
		t.Errorf("a picture that was sent a minute ago is %.1f s old", b.head.Age)
	}
	b.head.Age = 0
	if a.head != (pictureHead{"shown", "head", 0, 2, 0}) || b.head != (pictureHead{"shown", "wrist", 1, 2, 0}) || string(b.jpeg) != "w" {
		t.Errorf("shown: %+v %+v", a, b)
	}
	if m := read(t, conn); m.head.Kind != "live" || string(m.jpeg) != "\xff\n\xd8" {
		t.Errorf("a picture with a newline in it comes whole: %+v", m)
	}
	room.set(func() { room.blind = errors.New("the cameras are dark") })
	for dark := false; !dark; {
		m := read(t, conn)
		if m.state != nil && m.state.Calls != nil || m.head.Kind == "shown" {
			t.Fatalf("sent again though nothing changed: %+v", m)
		}
		dark = m.state != nil && m.state.Error == "the cameras are dark"
	}
	room.set(func() { room.shown, room.calls = 2, []Call{{Seq: 2, Tool: "stop"}, {Seq: 1, Tool: "observe"}} })
	for news := 0; news < 2; {
		m := read(t, conn)
		if m.state != nil && len(m.state.Calls) == 2 || m.head.Kind == "shown" && m.head.Index == 1 {
			news++
		}
	}
}

// However many watch, the scene is painted once per update; and not at all when nobody does.
func TestOnePaintingForAll(t *testing.T) {
	room := &fakeRoom{}
	s, c := serve(t, room, time.Hour)
	get(t, c, s.URL+"/?token="+goodToken)
	if room.painted != 0 {
		t.Errorf("painted %d times for nobody", room.painted)
	}
	for range 5 {
		conn, err := dial(t, s, c)
		if err != nil {
			t.Fatal(err)
		}
		for read(t, conn).head.Kind != "live" {
		}
	}
	if room.painted != 1 {
		t.Errorf("painted %d times", room.painted)
	}
}

func TestFeedIsForThePageItself(t *testing.T) {
	s, c := serve(t, &fakeRoom{}, time.Hour)
	get(t, c, s.URL+"/?token="+goodToken)
	_, r, err := websocket.Dial(t.Context(), s.URL+"/api/feed", &websocket.DialOptions{HTTPClient: c, HTTPHeader: http.Header{"Origin": {"https://evil.example"}}})
	if err == nil || r == nil || r.StatusCode != http.StatusForbidden {
		t.Errorf("another site's page: %v %v", r, err)
	}
}
